/* Not a library for computing: it has the names of one, and says that it chose routines for an old processor.
 */
#include "math/provider.h"

char *openblas_get_corename(void);
char *openblas_get_corename(void)
{
    static char name[] = "Prescott";
    return name;
}

#define ONE(letter, id, name)                                                                                \
    void letter##_##id(void) __asm__(#letter name "_");                                                      \
    void letter##_##id(void) {}
#define FOUR(id, real, complex) ONE(s, id, real) ONE(d, id, real) ONE(c, id, complex) ONE(z, id, complex)

DRUPE_ROUTINES(FOUR)
