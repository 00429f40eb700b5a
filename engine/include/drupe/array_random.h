/* Arrays of random numbers, made by a Philox generator whose state is an array too.
 *
 * The state is an int64 array of DRUPE_RANDOM_WORDS elements on the queue that the numbers are for: key (2),
 * counter (4), block (4), words taken of the block, whether half a word waits, and that half. Each call is
 * work of the queue, which reads the state and leaves it advanced, so calls follow each other as if they had
 * been made one at a time.
 *
 * Uniform numbers, integers, permutations and samples are those of
 * numpy.random.Generator(numpy.random.Philox(seed)), bit for bit. The other distributions are not. Threads:
 * as for arrays. */
#ifndef DRUPE_ARRAY_RANDOM_H
#define DRUPE_ARRAY_RANDOM_H

#include "drupe/array.h"

#define DRUPE_RANDOM_WORDS      13
#define DRUPE_RANDOM_PARAMETERS 3

typedef enum drupe_random_what {
    DRUPE_RANDOM_UNIFORM,     /* float32 or float64, of [0, 1) */
    DRUPE_RANDOM_INTEGERS,    /* bool or integers: low + 0 ... range, modulo 2^64 */
    DRUPE_RANDOM_PERMUTATION, /* int64, one axis: 0 ... n-1 in random order */
    DRUPE_RANDOM_SAMPLE, /* int64, one axis: different integers below `low`; `range` 1: in random order; 2:
                          * too, as the end of all of them in random order */
    DRUPE_RANDOM_LAW     /* a distribution: `law` */
} drupe_random_what;

typedef enum drupe_random_law_name {
    DRUPE_LAW_NORMAL,        /* standard; float32 or float64 */
    DRUPE_LAW_EXPONENTIAL,   /* standard; float32 or float64 */
    DRUPE_LAW_GAMMA,         /* of shape a; float64 */
    DRUPE_LAW_BETA,          /* of a and b; float64 */
    DRUPE_LAW_VONMISES,      /* angles around 0, of concentration a; float64 */
    DRUPE_LAW_POISSON,       /* of mean a; int64 */
    DRUPE_LAW_BINOMIAL,      /* a trials of probability b; int64 */
    DRUPE_LAW_ZIPF,          /* of exponent a; int64 */
    DRUPE_LAW_HYPERGEOMETRIC /* c of a good and b bad ones; int64 */
} drupe_random_law_name;

typedef struct drupe_random_request {
    drupe_random_what what;
    drupe_random_law_name law;
    uint64_t low, range;
    /* Parameters a, b and c of the law: float64 arrays in C order with an element for each of the result
     * (borrowed), or NULL and a number. A parameter outside of its domain gives NaN, or -1 among integers.
     * INTEGERS: arrays of int64 or uint64 for `low` and `range`, or NULL. */
    const drupe_array *arrays[DRUPE_RANDOM_PARAMETERS];
    double numbers[DRUPE_RANDOM_PARAMETERS];
} drupe_random_request;

/* A new array of these numbers on the state's queue. `out` must be empty. DRUPE_E_INVALID for a state or a
 * type that is none; DRUPE_E_PLACEMENT for parameters on another queue. Work that did not run has left the
 * state as it was, and the next draw goes on from there. */
DRUPE_API drupe_status drupe_array_random(const drupe_array *state, const drupe_random_request *request,
                                          drupe_dtype dtype, int ndim, const size_t *shape,
                                          drupe_array *out) DRUPE_MUST_CHECK;

#endif
