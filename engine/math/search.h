/* Binary searches in a sorted row.
 *
 * Threads: from any; the work is shared as parallel.h says. */
#ifndef DRUPE_MATH_SEARCH_H
#define DRUPE_MATH_SEARCH_H

#include "math/element.h"
#include <stdbool.h>

typedef struct drupe_search {
    const void *sorted; /* n of them, ascending as sort.h orders them */
    const void *values; /* m of them */
    size_t n, m;
    drupe_element type;
    bool right;      /* behind equal elements, else in front of them */
    int64_t *places; /* [m] where each value belongs, 0 to n; or NULL */
    uint8_t *found;  /* [m] whether it is there, when not `right`; NaN is not. Or NULL */
    bool absent;     /* the opposite in `found` */
} drupe_search;

void drupe_search_run(const drupe_search *search);

#endif
