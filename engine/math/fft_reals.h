/* Real lines that stand alone, as pairs one behind the other: what split, join and mirror do to blocks.
 * Included by fft_body.h once for each precision. */

static void FN(line_take)(const fft_lines *lines, size_t n, void *line)
{
    const REAL *x = (const REAL *)lines->data + lines->lane[0];
    const size_t valid = lines->valid[0] < n ? lines->valid[0] : n;
    REAL *y = line;
    if (lines->step == 2 && lines->im == 1) memcpy(y, x, 2 * valid * sizeof(REAL));
    for (size_t j = lines->step == 2 && lines->im == 1 ? valid : 0; j < valid; j++) {
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

/* Elements k and n - k of a line from each other: the sum of one and the other's conjugate, plus and minus
 * their difference turned by v = -i exp(-pi i k / n), or by its conjugate on the way back. */
static void FN(fold_one)(const REAL *w, size_t n, size_t k, bool back, REAL sign, REAL *x)
{
    REAL *low = x + 2 * k, *high = x + 2 * (n - k);
    const REAL *top = k || back ? high : x; /* element n is element 0 before the split */
    const REAL factor = back ? 1 : HALF, in = back ? sign : 1, out = back ? 1 : sign;
    if (back && k == 0) low[1] = high[1] = 0; /* which a real line's spectrum has not */
    const REAL low_im = low[1] * in, top_im = top[1] * in;
    const REAL even_re = (low[0] + top[0]) * factor, even_im = (low_im - top_im) * factor;
    const REAL odd_re = (low[0] - top[0]) * factor, odd_im = (low_im + top_im) * factor;
    const REAL v_re = w[2 * k + 1], v_im = back ? w[2 * k] : -w[2 * k];
    const REAL re = odd_re * v_re - odd_im * v_im, im = odd_re * v_im + odd_im * v_re;
    low[0] = even_re + re;
    low[1] = (even_im + im) * out;
    high[0] = even_re - re;
    high[1] = (im - even_im) * out;
}

#define FIRST(i)     ((i) & ~1)
#define SECOND(i)    ((i) | 1)
#define OTHER(i)     ((i) ^ 1)
#define BACKWARD(i)  (W - 2 - ((i) & ~1) + ((i)&1))
#define PLACES(a, F) __builtin_shufflevector(a, a, EACH(F))
#define ONE_AND(i)   ((i)&1 ? -1 : 1)

/* The same for k = from ... to - 1, a register of elements at a time. */
static void FN(line_fold)(const void *half, size_t n, bool back, double sign, size_t from, size_t to,
                          void *line)
{
    const REAL *w = half;
    REAL *x = line;
    const VEC conjugate = {EACH(ONE_AND)};
    const VEC signs = (conjugate + (REAL)1) * HALF + ((REAL)1 - conjugate) * HALF * (REAL)sign;
    const VEC in = back ? signs : conjugate * conjugate, out = back ? conjugate * conjugate : signs;
    const REAL factor = back ? 1 : HALF, way = back ? -1 : 1;
    size_t k = from;
    for (; k < to && k == 0; k++) FN(fold_one)(w, n, k, back, (REAL)sign, x);
    for (; k + WIDTH / 2 <= to && 2 * k + WIDTH - 1 <= n; k += WIDTH / 2) {
        UVEC *low = (UVEC *)(x + 2 * k), *high = (UVEC *)(x + 2 * (n - k) - (WIDTH - 2));
        const VEC turns = *(const UVEC *)(w + 2 * k), a = *low * in,
                  b = PLACES(*high, BACKWARD) * in * conjugate;
        const VEC even = (a + b) * factor, odd = (a - b) * factor;
        const VEC turned =
            odd * PLACES(turns, SECOND) + PLACES(odd, OTHER) * PLACES(turns, FIRST) * conjugate * way;
        *low = (even + turned) * out;
        *high = PLACES((even - turned) * conjugate * out, BACKWARD);
    }
    for (; k < to; k++) FN(fold_one)(w, n, k, back, (REAL)sign, x);
}
#undef FIRST
#undef SECOND
#undef OTHER
#undef BACKWARD
#undef PLACES
#undef ONE_AND

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
