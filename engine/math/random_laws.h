/* Draws from single distributions, one at a time: what random_draw.c makes stretches of. */
#ifndef DRUPE_MATH_RANDOM_LAWS_H
#define DRUPE_MATH_RANDOM_LAWS_H

#include "math/philox.h"

/* Between 0 and 1, without both. */
static inline double drupe_random_open(drupe_philox *stream)
{
    return ((double)(drupe_philox_next64(stream) >> 11) + 0.5) * (1.0 / 9007199254740992.0);
}

/* An angle around 0, from -pi to pi, of von Mises' distribution; NaN unless kappa >= 0. `normal` draws a
 * standard normal number. */
double drupe_random_vonmises(drupe_philox *stream, double kappa, double (*normal)(drupe_philox *stream));

/* An integer k >= 1 whose probability goes as k^-a, up to 2^63 - 1024; -1 unless a > 1. */
int64_t drupe_random_zipf(drupe_philox *stream, double a);

/* What draws of one population share. */
typedef struct drupe_hypergeometric {
    int64_t good, sample; /* as asked for; sample -1: no parameters */
    int64_t total, rare;  /* the population, and those of the rarer kind */
    int64_t drawn;        /* those that are drawn or those that are left, whichever are fewer */
    double centre, spread, top;
} drupe_hypergeometric;
/* good, bad and sample are cut to integers; good + bad is at most 10^9. */
drupe_hypergeometric drupe_hypergeometric_make(double good, double bad, double sample);
/* How many good ones are in a sample without replacement; -1: no parameters. */
int64_t drupe_random_hypergeometric(drupe_philox *stream, const drupe_hypergeometric *law);

#endif
