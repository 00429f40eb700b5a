/* Plans of Fourier transforms: how a length is divided, and the roots of unity that this needs.
 *
 * A plan never changes once it is made, so any thread may use it. Plans are kept for reuse, the last used
 * ones up to a bound of bytes. Roots are computed in double with the angle reduced to an octant, and rounded
 * once.
 *
 * Sources: Cooley and Tukey 1965; Stockham 1966 (passes that sort by themselves); Bailey 1990 (a long line as
 * a matrix); Bluestein 1970 (any length as a convolution). */
#ifndef DRUPE_MATH_FFT_PLAN_H
#define DRUPE_MATH_FFT_PLAN_H

#include "drupe/status.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define FFT_PASSES        48
#define FFT_LARGEST_PRIME 47 /* of a pass; above it a convolution is faster */

typedef enum fft_form {
    FFT_LANES,  /* several lines side by side, pass by pass */
    FFT_MATRIX, /* one line as a matrix of n1 rows and n2 columns, both of which are transformed as lanes */
    FFT_CHIRP   /* one line as a convolution with a chirp, for lengths with a large prime factor */
} fft_form;

typedef struct fft_pass {
    size_t radix;
    size_t groups; /* m: the pass makes `groups` times `run` butterflies ... */
    size_t run;    /* ... of which `run` neighbours share their roots */
    const void
        *roots; /* [groups][radix - 1] pairs; one pair (re, im) per input of the butterfly but the first */
    const void
        *turns; /* the roots of order `radix`, for radices without a butterfly of their own; else NULL */
} fft_pass;

typedef struct fft_plan fft_plan;
struct fft_plan {
    size_t n;
    bool wide; /* float64; else float32 */
    fft_form form;
    bool real;    /* `half` is there */
    void *memory; /* all tables of this plan */
    size_t bytes;
    const void *half; /* exp(-pi i k / n) for k = 0 ... n / 2: from n complex to 2 n real numbers and back */
    int npasses;      /* FFT_LANES */
    fft_pass passes[FFT_PASSES];
    fft_plan *rows,
        *columns;      /* FFT_MATRIX: of n1 and n2 elements; FFT_CHIRP: `rows` is that of the convolution */
    const void *outer; /* FFT_MATRIX: [chunk][k1]: exp(-2 pi i k1 (chunk lanes) / n) */
    const void *inner; /* FFT_MATRIX: [k1][2][lanes]: exp(-2 pi i k1 lane / n) */
    const void *chirp; /* FFT_CHIRP: exp(-pi i j^2 / n) */
    void *filter;      /* FFT_CHIRP: the transform of its conjugate, over the length of the convolution */
    atomic_int references;
    unsigned long used; /* for the cache */
};

/* How many lines go side by side. */
static inline size_t fft_lanes(bool wide)
{
    return wide ? 8 : 16;
}

/* A plan for transforms of `n` >= 1 elements, retained. `form` FFT_LANES or FFT_MATRIX is a wish: lengths
 * that have no such plan get another one. FFT_CHIRP plans come without their filter, see
 * drupe_fft_filter_set(). */
drupe_status drupe_fft_plan_get(size_t n, bool wide, fft_form form, bool real, fft_plan **plan);
void drupe_fft_plan_release(fft_plan *plan); /* NULL is allowed */

/* exp(-2 pi i k / n) to double precision, for k < n. */
void drupe_fft_root(size_t k, size_t n, double *re, double *im);

/* Computes plan->filter, a line of plan->rows->n elements; fft.c has it, since it takes a transform. */
drupe_status drupe_fft_filter_make(fft_plan *plan);

#endif
