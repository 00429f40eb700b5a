/* Real lines that stand alone, as pairs one behind the other: what split, join and mirror do to blocks.
 * Included by fft_body.h once for each precision. */

static void FN(line_take)(const fft_lines *lines, size_t n, void *line)
{
    const REAL *x = (const REAL *)lines->data + lines->lane[0];
    const size_t valid = lines->valid[0] < n ? lines->valid[0] : n;
    REAL *y = line;
    for (size_t j = 0; j < valid; j++) {
        const REAL *at = x + (ptrdiff_t)j * lines->step;
        y[2 * j] = at[0];
        y[2 * j + 1] = lines->im ? at[lines->im] : 0;
    }
    memset(y + 2 * valid, 0, 2 * (n - valid) * sizeof(REAL));
}

static void FN(line_put)(const void *line, size_t n, const fft_lines *lines)
{
    const REAL *x = line;
    REAL *y = (REAL *)lines->data + lines->lane[0];
    for (size_t j = 0; j < n; j++) {
        REAL *at = y + (ptrdiff_t)j * lines->step;
        at[0] = x[2 * j];
        if (lines->im) at[lines->im] = x[2 * j + 1];
    }
}

static void FN(line_split)(const void *half, size_t n, double sign, void *line)
{
    const REAL *w = half, s = (REAL)sign;
    REAL *x = line;
    for (size_t k = 0; k <= n / 2; k++) {
        REAL *low = x + 2 * k, *high = x + 2 * (n - k);
        const REAL *top = k ? high : x; /* element n is element 0 */
        const REAL even_re = (low[0] + top[0]) * HALF, even_im = (low[1] - top[1]) * HALF;
        const REAL odd_re = (low[1] + top[1]) * HALF, odd_im = (top[0] - low[0]) * HALF;
        const REAL re = odd_re * w[2 * k] - odd_im * w[2 * k + 1],
                   im = odd_re * w[2 * k + 1] + odd_im * w[2 * k];
        low[0] = even_re + re;
        low[1] = (even_im + im) * s;
        high[0] = even_re - re;
        high[1] = (im - even_im) * s;
    }
}

static void FN(line_join)(const void *half, size_t n, double sign, void *line)
{
    const REAL *w = half, s = (REAL)sign;
    REAL *x = line;
    x[1] = x[2 * n + 1] = 0;
    for (size_t k = 0; k <= n / 2; k++) {
        REAL *low = x + 2 * k, *high = x + 2 * (n - k);
        const REAL low_im = low[1] * s, high_im = high[1] * s, even_re = low[0] + high[0],
                   even_im = low_im - high_im;
        const REAL odd_re = low[0] - high[0], odd_im = low_im + high_im, c = w[2 * k], d = -w[2 * k + 1];
        const REAL re = odd_re * c - odd_im * d, im = odd_re * d + odd_im * c;
        low[0] = even_re - im;
        low[1] = even_im + re;
        high[0] = even_re + im;
        high[1] = re - even_im;
    }
}

static void FN(line_mirror)(size_t n, double sign, void *line)
{
    REAL *x = line;
    for (size_t k = 0; k <= n / 2; k++) {
        const REAL im = x[2 * k + 1];
        x[2 * k + 1] = im * (REAL)sign;
        if (k == 0 || k >= n - k) continue;
        x[2 * (n - k)] = x[2 * k];
        x[2 * (n - k) + 1] = im * (REAL)-sign;
    }
}
