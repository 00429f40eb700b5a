/* The loops of Fourier transforms, over lines that lie side by side.
 *
 * A block holds `lanes` lines: element j has its real parts at block[j * 2 * lanes] and its imaginary parts
 * `lanes` later (the other way round when swapped, by which an inverse transform becomes a forward one).
 * Blocks are aligned to 64 bytes. A line alone has pairs of reals, one behind the other. */
#ifndef DRUPE_MATH_FFT_LOOPS_H
#define DRUPE_MATH_FFT_LOOPS_H

#include "math/fft_plan.h"

#define FFT_MAX_LANES 16

/* Where lines lie in memory; offsets and steps are counted in reals. */
typedef struct fft_lines {
    void *data;
    size_t count;                  /* lanes in use; the others are zero */
    ptrdiff_t lane[FFT_MAX_LANES]; /* from data to the first element of each line */
    size_t valid[FFT_MAX_LANES];   /* how many elements each line has; what is loaded beyond is zero */
    ptrdiff_t step, im; /* to the next element; from its real to its imaginary part, 0: it has none */
} fft_lines;

typedef struct fft_loops {
    void (*load)(const fft_lines *lines, size_t n, int swap, void *block);
    /* Element j times `scale`, for j < n. */
    void (*store)(const fft_lines *lines, size_t n, int swap, double scale, const void *block);
    /* The forward transform of each lane by a FFT_LANES plan, in `block` or in `other`: which, it returns. */
    void *(*passes)(const fft_plan *plan, void *block, void *other);
    /* Between the two halves of a FFT_MATRIX: out = block times the roots of a chunk of columns; and a block
     * of rows k1 ... k1 + lanes - 1 from all chunks, each of which has `rows` rows. */
    void (*rotate)(const fft_plan *plan, size_t chunk, const void *block, void *out);
    void (*regroup)(const void *chunks, size_t rows, size_t k1, size_t n2, void *block);
    /* n complex elements -> elements 0 ... n of the spectrum of 2 n real ones, and back (twice what they
     * were, and swapped). `half` as in fft_plan. `sign` -1: of the conjugate spectrum. */
    void (*split)(const void *half, size_t n, double sign, void *block);
    void (*join)(const void *half, size_t n, double sign, void *block);
    /* Elements n/2 + 1 ... n - 1 of a real line's spectrum from those below; all conjugated when `sign` is
     * -1. */
    void (*mirror)(size_t n, double sign, void *block);
    /* For a line alone: n elements into it and out of it; split, or `back` join (which does not swap), of
     * elements `from` to `to` - 1 of 0 ... n / 2 and those opposite; mirror. */
    void (*line_take)(const fft_lines *lines, size_t n, void *line);
    void (*line_put)(const void *line, size_t n, const fft_lines *lines);
    void (*line_fold)(const void *half, size_t n, bool back, double sign, size_t from, size_t to, void *line);
    void (*line_mirror)(size_t n, double sign, void *line);
    /* FFT_CHIRP: line[j] = x[j] chirp[j], zero to the convolution's length; line *= filter, parts swapped;
     * store line[j] chirp[j] scale. */
    void (*chirp_in)(const fft_plan *plan, const fft_lines *x, int swap, void *line);
    void (*chirp_filter)(const fft_plan *plan, void *line);
    void (*chirp_out)(const fft_plan *plan, const fft_lines *out, int swap, double scale, const void *line);
} fft_loops;

/* The loops for this processor. */
const fft_loops *drupe_fft_loops(bool wide);

/* What fft_loops.c defines for each set of instructions. */
#define FFT_VARIANT(name) extern const fft_loops drupe_fft_##name##_f32, drupe_fft_##name##_f64
FFT_VARIANT(baseline);
FFT_VARIANT(avx2);
FFT_VARIANT(avx512);

#endif
