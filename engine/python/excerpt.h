/* The lines around a place of the program, for those who may not ask Python for them. */
#ifndef DRUPE_PYTHON_EXCERPT_H
#define DRUPE_PYTHON_EXCERPT_H

#include "paper.h"
#include "state.h"

#define DRUPE_PY_EXCERPT_MOST 2560u /* bytes that drupe_py_excerpt_add() writes at most */

/* Note the lines of all places that were submitted from since the last call, and whether texts are to be
 * coloured. Needs the GIL; leaves no exception. */
void drupe_py_excerpts_prepare(void);
/* Whether they are to be coloured, as it was noted. Any thread, without the GIL. */
bool drupe_py_excerpts_colour(void);
/* Where the place is, and the lines around it with an arrow at its own, as IPython shows them. False, and
 * nothing is added, when they were not noted or are forgotten. Any thread, without the GIL. */
bool drupe_py_excerpt_add(drupe_py_paper *to, uint32_t site);
void drupe_py_excerpts_clear(void);

#endif
