/* The distinct elements of a sorted row.
 *
 * Threads: from any; the work is shared as parallel.h says. */
#ifndef DRUPE_MATH_UNIQUE_H
#define DRUPE_MATH_UNIQUE_H

#include "drupe/status.h"
#include "math/element.h"
#include <stdbool.h>

typedef struct drupe_unique {
    const void *sorted;    /* n of them, as sort.h orders them */
    const int64_t *places; /* [n] where each was; NULL if neither `firsts` nor `inverse` is wanted */
    size_t n;
    drupe_element type;
    bool equal_nan;   /* all NaNs of a real type are one; else each stands for itself */
    void *values;     /* [n], as are the others, each of which may be NULL */
    int64_t *firsts;  /* where each distinct element was first */
    int64_t *inverse; /* of each element, by its place, the number of the distinct one */
    int64_t *counts;  /* how often each is there */
    int64_t *count;   /* [1] how many distinct elements there are; not NULL */
} drupe_unique;

/* Writes the first `*count` elements of the results. DRUPE_E_NO_MEMORY. */
drupe_status drupe_unique_run(const drupe_unique *unique) DRUPE_MUST_CHECK;

#endif
