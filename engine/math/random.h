/* Random numbers in bulk, from the state of a Philox generator, on several threads. The results depend on the
 * state alone, not on the number of threads.
 *
 * Uniform numbers and integers are NumPy's, bit for bit. For the other distributions a call takes two words
 * of the state as the key of streams of its own: elements 256 c ... 256 c + 255 come from stream c, so every
 * stretch can be made by itself. */
#ifndef DRUPE_MATH_RANDOM_H
#define DRUPE_MATH_RANDOM_H

#include "math/philox.h"

/* Numbers of [0, 1): double from 53 bits of a word, float from 24 bits of half a word. */
void drupe_random_doubles(drupe_philox *state, size_t n, double *out);
void drupe_random_floats(drupe_philox *state, size_t n, float *out);
/* low + an integer of 0 ... range, as integers of `bytes` 1, 2, 4 or 8, or bools (0). Arithmetic is modulo
 * 2^64. */
void drupe_random_integers(drupe_philox *state, unsigned bytes, uint64_t low, uint64_t range, size_t n,
                           void *out);
/* low[i * low_step] + an integer of 0 ... range[i * range_step]; steps are 0 or 1. */
void drupe_random_integers_each(drupe_philox *state, unsigned bytes, const uint64_t *low, size_t low_step,
                                const uint64_t *range, size_t range_step, size_t n, void *out);
/* The integers 0 ... n-1 in random order. */
void drupe_random_permutation(drupe_philox *state, size_t n, int64_t *out);
/* `count` different integers below n, in random order when `shuffle`. False: no memory. */
bool drupe_random_sample(drupe_philox *state, uint64_t n, size_t count, bool shuffle, int64_t *out);
/* The same, from the end of all integers below n in random order: faster where `count` is a large part of n.
 */
bool drupe_random_deal(drupe_philox *state, size_t n, size_t count, int64_t *out);

typedef enum drupe_random_kind {
    DRUPE_RANDOM_NORMAL,        /* standard; double, or float */
    DRUPE_RANDOM_EXPONENTIAL,   /* standard; double, or float */
    DRUPE_RANDOM_GAMMA,         /* of shape a > 0 */
    DRUPE_RANDOM_BETA,          /* a > 0, b > 0 */
    DRUPE_RANDOM_VONMISES,      /* around 0, of concentration a >= 0 */
    DRUPE_RANDOM_POISSON,       /* of mean a >= 0; int64_t */
    DRUPE_RANDOM_BINOMIAL,      /* a trials of probability b; int64_t */
    DRUPE_RANDOM_ZIPF,          /* of exponent a > 1; int64_t */
    DRUPE_RANDOM_HYPERGEOMETRIC /* c of a good and b bad ones; int64_t */
} drupe_random_kind;

/* Parameters of element i: a[i * a_step]. What is no valid parameter gives NaN, or -1 among integers. */
typedef struct drupe_random_law {
    drupe_random_kind kind;
    bool wide; /* NORMAL and EXPONENTIAL: double; else float */
    const double *a, *b, *c;
    size_t a_step, b_step, c_step; /* 0 or 1 */
} drupe_random_law;
void drupe_random_draw(drupe_philox *state, const drupe_random_law *law, size_t n, void *out);

#endif
