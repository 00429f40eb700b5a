/* Included by fft_loops.c once for each precision, with REAL, REAL_BYTES and FN(name) defined. */
#include "math/fft_vector.h"
/* The ones below need the one above. */
#include "math/fft_blocks.h"
#include "math/fft_butterfly.h"
#include "math/fft_reals.h"

/* --- Passes
 * ------------------------------------------------------------------------------------------------------ */

/* One pass of Stockham's: inputs of a butterfly lie a whole `groups * run` apart, its outputs `run` apart. */
#define PASS(r)                                                                                              \
    static void FN(pass##r)(const fft_pass *pass, const VEC *restrict x, VEC *restrict y)                    \
    {                                                                                                        \
        const size_t in = pass->groups * pass->run * STRIDE, out = pass->run * STRIDE;                       \
        const REAL *w = pass->roots;                                                                         \
        for (size_t q = 0; q < pass->run; q++)                                                               \
            for (size_t u = 0; u < UNITS; u++)                                                               \
                FN(fly##r)(x + q * STRIDE + u, in, NULL, y + q * STRIDE + u, out);                           \
        for (size_t p = 1; p < pass->groups; p++) {                                                          \
            const VEC *from = x + p * pass->run * STRIDE;                                                    \
            VEC *to = y + p * pass->run * r * STRIDE;                                                        \
            w += 2 * (r - 1);                                                                                \
            for (size_t q = 0; q < pass->run; q++)                                                           \
                for (size_t u = 0; u < UNITS; u++)                                                           \
                    FN(fly##r)(from + q * STRIDE + u, in, w, to + q * STRIDE + u, out);                      \
        }                                                                                                    \
    }

PASS(2)
PASS(3)
PASS(4)
PASS(5)
PASS(8)
#undef PASS

static void FN(pass_any)(const fft_pass *pass, const VEC *restrict x, VEC *restrict y)
{
    const size_t r = pass->radix, in = pass->groups * pass->run * STRIDE, out = pass->run * STRIDE;
    for (size_t p = 0; p < pass->groups; p++) {
        const REAL *w = p ? (const REAL *)pass->roots + 2 * (r - 1) * p : NULL;
        for (size_t q = 0; q < pass->run; q++)
            for (size_t u = 0; u < UNITS; u++) FN(fly_any)
        (r, pass->turns, x + (p * pass->run + q) * STRIDE + u, in, w,
         y + (p * pass->run * r + q) * STRIDE + u, out);
    }
}

static void *FN(passes)(const fft_plan *plan, void *block, void *other)
{
    for (int i = 0; i < plan->npasses; i++) {
        const fft_pass *pass = &plan->passes[i];
        switch (pass->radix) {
        case 2: FN(pass2)(pass, block, other); break;
        case 3: FN(pass3)(pass, block, other); break;
        case 4: FN(pass4)(pass, block, other); break;
        case 5: FN(pass5)(pass, block, other); break;
        case 8: FN(pass8)(pass, block, other); break;
        default: FN(pass_any)(pass, block, other);
        }
        void *result = other;
        other = block;
        block = result;
    }
    return block;
}

/* --- The matrix
 * -------------------------------------------------------------------------------------------------- */

static void FN(rotate)(const fft_plan *plan, size_t chunk, const void *block, void *out)
{
    const size_t n1 = plan->rows->n;
    const REAL *outer = (const REAL *)plan->outer + 2 * chunk * n1;
    const VEC *restrict x = block, *restrict inner = plan->inner;
    VEC *restrict y = out;
    for (size_t k = 0; k < n1; k++)
        for (size_t u = 0; u < UNITS; u++) {
            const size_t i = k * STRIDE + u;
            const PAIR turn = FN(times)((PAIR){inner[i], inner[i + UNITS]}, outer[2 * k], outer[2 * k + 1]);
            y[i] = x[i] * turn.re - x[i + UNITS] * turn.im;
            y[i + UNITS] = x[i] * turn.im + x[i + UNITS] * turn.re;
        }
}

/* Per chunk, two square matrices of lanes are transposed, register by register. */
static void FN(regroup)(const void *chunks, size_t rows, size_t k1, size_t n2, void *block)
{
    VEC *restrict y = block;
    for (size_t c = 0; c * LANES < n2; c++) {
        const VEC *x = (const VEC *)chunks + (c * rows + k1) * STRIDE;
        for (size_t part = 0; part < 2; part++)
            for (size_t a = 0; a < UNITS; a++)       /* registers of columns */
                for (size_t b = 0; b < UNITS; b++) { /* registers of rows */
                    VEC square[WIDTH];
                    for (size_t i = 0; i < WIDTH; i++)
                        square[i] = x[(b * WIDTH + i) * STRIDE + part * UNITS + a];
                    FN(transpose)(square);
                    for (size_t i = 0; i < WIDTH && c * LANES + a * WIDTH + i < n2; i++)
                        y[(c * LANES + a * WIDTH + i) * STRIDE + part * UNITS + b] = square[i];
                }
    }
}

/* --- Real lines
 * -------------------------------------------------------------------------------------------------- */

static void FN(split)(const void *half, size_t n, double sign, void *block)
{
    const REAL *w = half;
    VEC *x = block;
    for (size_t k = 0; k <= n / 2; k++) {
        VEC *low = x + k * STRIDE, *high = x + (n - k) * STRIDE;
        const VEC *top = k ? high : x; /* element n is element 0 */
        const REAL c = w[2 * k], s = w[2 * k + 1];
        for (size_t u = 0; u < UNITS; u++) {
            const VEC even_re = (low[u] + top[u]) * HALF, even_im = (low[u + UNITS] - top[u + UNITS]) * HALF;
            /* -i times half the difference. */
            const PAIR odd = {(low[u + UNITS] + top[u + UNITS]) * HALF, (top[u] - low[u]) * HALF};
            const PAIR turned = FN(times)(odd, c, s);
            low[u] = even_re + turned.re;
            low[u + UNITS] = (even_im + turned.im) * (REAL)sign;
            high[u] = even_re - turned.re;
            high[u + UNITS] = (turned.im - even_im) * (REAL)sign;
        }
    }
}

static void FN(join)(const void *half, size_t n, double sign, void *block)
{
    const REAL *w = half;
    VEC *x = block;
    for (size_t u = 0; u < UNITS; u++) x[u + UNITS] = x[n * STRIDE + u + UNITS] = (VEC){0};
    for (size_t k = 0; k <= n / 2; k++) {
        VEC *low = x + k * STRIDE, *high = x + (n - k) * STRIDE;
        const REAL c = w[2 * k], s = -w[2 * k + 1];
        for (size_t u = 0; u < UNITS; u++) {
            const VEC low_im = low[u + UNITS] * (REAL)sign, high_im = high[u + UNITS] * (REAL)sign;
            const VEC even_re = low[u] + high[u], even_im = low_im - high_im;
            const PAIR odd = FN(times)((PAIR){low[u] - high[u], low_im + high_im}, c, s);
            low[u + UNITS] = even_re - odd.im;
            low[u] = even_im + odd.re;
            high[u + UNITS] = even_re + odd.im;
            high[u] = odd.re - even_im;
        }
    }
}

static void FN(mirror)(size_t n, double sign, void *block)
{
    VEC *x = block;
    for (size_t k = 0; k <= n / 2; k++) {
        VEC *low = x + k * STRIDE, *high = x + (n - k) * STRIDE;
        const bool own = k > 0 && k < n - k; /* element n - k is another one */
        for (size_t u = 0; u < UNITS; u++) {
            const VEC im = low[u + UNITS];
            low[u + UNITS] = im * (REAL)sign;
            if (!own) continue;
            high[u] = low[u];
            high[u + UNITS] = im * (REAL)-sign;
        }
    }
}

/* --- The chirp
 * --------------------------------------------------------------------------------------------------- */

static void FN(chirp_in)(const fft_plan *plan, const fft_lines *lines, int swap, void *line)
{
    const REAL *x = (const REAL *)lines->data + lines->lane[0], *w = plan->chirp;
    const size_t valid = lines->valid[0] < plan->n ? lines->valid[0] : plan->n;
    REAL *y = line;
    for (size_t j = 0; j < valid; j++) {
        const REAL *at = x + (ptrdiff_t)j * lines->step, im = lines->im ? at[lines->im] : 0;
        const REAL a = swap ? im : at[0], b = swap ? at[0] : im;
        y[2 * j] = a * w[2 * j] - b * w[2 * j + 1];
        y[2 * j + 1] = a * w[2 * j + 1] + b * w[2 * j];
    }
    memset(y + 2 * valid, 0, 2 * (plan->rows->n - valid) * sizeof(REAL));
}

static void FN(chirp_filter)(const fft_plan *plan, void *line)
{
    const REAL *restrict w = plan->filter;
    REAL *restrict y = line;
    for (size_t j = 0; j < plan->rows->n; j++) {
        const REAL a = y[2 * j], b = y[2 * j + 1];
        y[2 * j] = a * w[2 * j + 1] + b * w[2 * j];
        y[2 * j + 1] = a * w[2 * j] - b * w[2 * j + 1];
    }
}

static void FN(chirp_out)(const fft_plan *plan, const fft_lines *out, int swap, double scale,
                          const void *line)
{
    const REAL *x = line, *w = plan->chirp, factor = (REAL)scale;
    REAL *y = (REAL *)out->data + out->lane[0];
    const size_t n = out->valid[0] < plan->n ? out->valid[0] : plan->n;
    for (size_t j = 0; j < n; j++) {
        const REAL b = x[2 * j], a = x[2 * j + 1]; /* swapped back */
        const REAL re = (a * w[2 * j] - b * w[2 * j + 1]) * factor,
                   im = (a * w[2 * j + 1] + b * w[2 * j]) * factor;
        REAL *at = y + (ptrdiff_t)j * out->step;
        at[0] = swap ? im : re;
        if (out->im) at[out->im] = swap ? re : im;
    }
}

const fft_loops FFT_TABLE(FFT_NAME, FN()) = {
    .load = FN(load),
    .store = FN(store),
    .passes = FN(passes),
    .rotate = FN(rotate),
    .regroup = FN(regroup),
    .split = FN(split),
    .join = FN(join),
    .mirror = FN(mirror),
    .line_take = FN(line_take),
    .line_put = FN(line_put),
    .line_fold = FN(line_fold),
    .line_mirror = FN(line_mirror),
    .chirp_in = FN(chirp_in),
    .chirp_filter = FN(chirp_filter),
    .chirp_out = FN(chirp_out),
};
