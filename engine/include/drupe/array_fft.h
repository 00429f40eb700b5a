/* Discrete Fourier transforms of arrays.
 *
 * Any length: lengths whose prime factors are small are fastest, others cost a few times as much. float16,
 * float32 and complex64 are transformed in single precision; all other types in double, or in single on
 * devices without it. The error is a few units in the last place, relative to the root mean square of the
 * result. Threads: as for arrays. */
#ifndef DRUPE_ARRAY_FFT_H
#define DRUPE_ARRAY_FFT_H

#include "drupe/array.h"

typedef enum drupe_fft_result {
    DRUPE_FFT_WHOLE, /* real or complex -> n complex elements */
    DRUPE_FFT_HALF,  /* real -> elements 0 ... n / 2 of the spectrum, whose others are their conjugates */
    DRUPE_FFT_REALS /* such elements 0 ... n / 2 -> n real elements; parts that cannot be there are not looked
                       at */
} drupe_fft_result;

/* The transform along `axis` over n >= 1 elements: the input is cut to what the transform takes, or counts as
 * zero beyond its end. `inverse` is the sign of the exponent; for REALS false means the conjugate input.
 * Everything is multiplied by `scale`. `spent`: the caller drops `in` unread afterwards, so its memory may
 * become the result's. `out` must be empty. DRUPE_E_INVALID for no elements, an axis that is none, and a
 * complex input to HALF. */
DRUPE_API drupe_status drupe_array_fft(const drupe_array *in, int axis, size_t n, drupe_fft_result result,
                                       bool inverse, double scale, bool spent,
                                       drupe_array *out) DRUPE_MUST_CHECK;

#endif
