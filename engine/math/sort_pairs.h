/* Stable sorts of complex numbers: see sort.h. */
#ifndef DRUPE_MATH_SORT_PAIRS_H
#define DRUPE_MATH_SORT_PAIRS_H

#include "math/sort.h"

/* Whether a stands before b. */
static inline bool drupe_pair_less(drupe_pair64 a, drupe_pair64 b)
{
    const bool a_nan = a.re != a.re, b_nan = b.re != b.re, a_odd = a.im != a.im, b_odd = b.im != b.im;
    if (a_nan != b_nan) return b_nan;
    if (a_odd != b_odd) return b_odd;
    if (!a_nan && a.re != b.re) return a.re < b.re;
    return !a_odd && a.im < b.im;
}

/* drupe_sort_run() for DRUPE_ELEMENT_C64 and _C128. */
drupe_status drupe_sort_pairs(const drupe_sort *sort) DRUPE_MUST_CHECK;

#endif
