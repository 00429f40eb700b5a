/* Discrete Fourier transforms of any length, along one axis of arrays in C order.
 *
 * Forward: X[k] = sum over j of x[j] exp(-2 pi i j k / n); inverse: the other sign; both times `scale`. The
 * work is shared among the threads of parallel.h. Any thread may call. */
#ifndef DRUPE_MATH_FFT_H
#define DRUPE_MATH_FFT_H

#include "drupe/status.h"
#include <stdbool.h>
#include <stddef.h>

typedef enum drupe_fft_kind {
    DRUPE_FFT_COMPLEX,   /* complex -> complex, n elements */
    DRUPE_FFT_REAL,      /* real -> complex, n elements: the whole spectrum */
    DRUPE_FFT_REAL_HALF, /* real -> complex, elements 0 ... n / 2 of the spectrum */
    DRUPE_FFT_HALF_REAL  /* elements 0 ... n / 2 of a spectrum -> n real elements */
} drupe_fft_kind;

typedef struct drupe_fft {
    drupe_fft_kind kind;
    bool wide;    /* float64 and complex128; else float32 and complex64 */
    bool inverse; /* the sign of the exponent; HALF_REAL with `inverse` false takes the conjugate of its input
                   */
    size_t n;     /* at least 1 */
    size_t outer, inner; /* arrays are [outer][length][inner] */
    size_t length; /* of the input; what lies beyond the elements that a transform takes is not read, and what
                    * is missing counts as zero */
    double scale;
} drupe_fft;

/* How many elements the result has along the axis. */
size_t drupe_fft_result_length(const drupe_fft *fft);

/* `out` may be `in` where both have the same length and element size. DRUPE_E_NO_MEMORY. */
drupe_status drupe_fft_run(const drupe_fft *fft, const void *in, void *out);

#endif
