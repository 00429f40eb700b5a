/* Transforms of one line by its plan: what fft.c does with lines that are long, few or of awkward lengths. */
#ifndef DRUPE_MATH_FFT_LINE_H
#define DRUPE_MATH_FFT_LINE_H

#include "math/fft_loops.h"

/* The transform of lane 0 of `in` into lane 0 of `out`, forward, or inverse when `swap` is 1, times `scale`;
 * they may be the same memory. `shared`: with the help of other threads. DRUPE_E_NO_MEMORY. */
drupe_status drupe_fft_line(const fft_plan *plan, const fft_lines *in, const fft_lines *out, int swap,
                            double scale, bool shared);

/* Blocks for a plan of lanes: `count` blocks of `rows` elements, aligned; free() releases them. NULL with the
 * error set. */
void *drupe_fft_blocks(bool wide, size_t rows, size_t count);

#endif
