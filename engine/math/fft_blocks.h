/* The ways into and out of blocks. Included by fft_body.h once for each precision. */

/* --- How lines lie
 * ----------------------------------------------------------------------------------------------- */

enum FN(form) { FN(ANY), FN(PAIRS), FN(APART), FN(LINES) };

/* PAIRS: lanes are neighbouring complex numbers. APART: lanes are neighbouring reals. LINES: each lane is a
 * line of neighbouring elements. */
static enum FN(form) FN(form_of)(const fft_lines *lines)
{
    if (lines->count < LANES) return FN(ANY);
    if ((lines->step == 2 && lines->im == 1) || (lines->step == 1 && lines->im == 0)) return FN(LINES);
    const ptrdiff_t apart = lines->lane[1] - lines->lane[0];
    for (size_t v = 1; v < LANES; v++)
        if (lines->lane[v] - lines->lane[v - 1] != apart) return FN(ANY);
    if (apart == 2 && lines->im == 1) return FN(PAIRS);
    return apart == 1 ? FN(APART) : FN(ANY);
}

/* How many elements all lanes have. */
static size_t FN(common)(const fft_lines *lines, size_t n)
{
    for (size_t v = 0; v < LANES; v++)
        if (v >= lines->count)
            n = 0;
        else if (lines->valid[v] < n)
            n = lines->valid[v];
    return n;
}

/* --- Into a block
 * ------------------------------------------------------------------------------------------------ */

static void FN(load_any)(const fft_lines *lines, size_t from, size_t to, int swap, VEC *block)
{
    const REAL *x = lines->data;
    for (size_t j = from; j < to; j++) {
        REAL *re = (REAL *)(block + j * STRIDE) + (swap ? LANES : 0);
        REAL *im = (REAL *)(block + j * STRIDE) + (swap ? 0 : LANES);
        for (size_t v = 0; v < LANES; v++) {
            const bool there = v < lines->count && j < lines->valid[v];
            const REAL *at = there ? x + lines->lane[v] + (ptrdiff_t)j * lines->step : NULL;
            re[v] = there ? at[0] : 0;
            im[v] = there && lines->im ? at[lines->im] : 0;
        }
    }
}

static void FN(load_pairs)(const fft_lines *lines, size_t n, int swap, VEC *block)
{
    const REAL *x = (const REAL *)lines->data + lines->lane[0];
    VEC *re = block + (swap ? UNITS : 0), *im = block + (swap ? 0 : UNITS);
    for (size_t j = 0; j < n; j++) {
        const UVEC *at = (const UVEC *)(x + (ptrdiff_t)j * lines->step);
        for (size_t u = 0; u < UNITS; u++) {
            const VEC a = at[2 * u], b = at[2 * u + 1];
            re[j * STRIDE + u] = __builtin_shufflevector(a, b, EACH(EVEN));
            im[j * STRIDE + u] = __builtin_shufflevector(a, b, EACH(ODD));
        }
    }
}

static void FN(load_apart)(const fft_lines *lines, size_t n, int swap, VEC *block)
{
    const REAL *x = (const REAL *)lines->data + lines->lane[0];
    VEC *re = block + (swap ? UNITS : 0), *im = block + (swap ? 0 : UNITS);
    for (size_t j = 0; j < n; j++) {
        const REAL *at = x + (ptrdiff_t)j * lines->step;
        for (size_t u = 0; u < UNITS; u++) {
            re[j * STRIDE + u] = ((const UVEC *)at)[u];
            im[j * STRIDE + u] = lines->im ? (VEC)((const UVEC *)(at + lines->im))[u] : (VEC){0};
        }
    }
}

/* Returns how many elements it loaded: whole registers of each line. */
static size_t FN(load_lines)(const fft_lines *lines, size_t n, int swap, VEC *block)
{
    const REAL *x = lines->data;
    const size_t parts = lines->im ? 2 : 1, each = WIDTH / parts, whole = n - n % each;
    for (size_t j = 0; j < whole; j += each)
        for (size_t u = 0; u < UNITS; u++) {
            VEC square[WIDTH];
            for (size_t i = 0; i < WIDTH; i++)
                square[i] = *(const UVEC *)(x + lines->lane[u * WIDTH + i] + (ptrdiff_t)(j * parts));
            FN(transpose)(square);
            VEC *to = block + j * STRIDE + u;
            if (parts == 2)
                for (size_t i = 0; i < WIDTH; i++)
                    to[i / 2 * STRIDE + ((i & 1) ^ (size_t)swap) * UNITS] = square[i];
            else
                for (size_t i = 0; i < WIDTH; i++) {
                    to[i * STRIDE + (size_t)swap * UNITS] = square[i];
                    to[i * STRIDE + (size_t)!swap * UNITS] = (VEC){0};
                }
        }
    return whole;
}

static void FN(load)(const fft_lines *lines, size_t n, int swap, void *block)
{
    size_t done = FN(common)(lines, n);
    switch (FN(form_of)(lines)) {
    case FN(PAIRS): FN(load_pairs)(lines, done, swap, block); break;
    case FN(APART): FN(load_apart)(lines, done, swap, block); break;
    case FN(LINES): done = FN(load_lines)(lines, done, swap, block); break;
    default: done = 0;
    }
    FN(load_any)(lines, done, n, swap, block);
}

/* --- Out of a block
 * ---------------------------------------------------------------------------------------------- */

static void FN(store_any)(const fft_lines *lines, size_t from, size_t to, int swap, REAL scale,
                          const VEC *block)
{
    REAL *x = lines->data;
    for (size_t j = from; j < to; j++) {
        const REAL *re = (const REAL *)(block + j * STRIDE) + (swap ? LANES : 0);
        const REAL *im = (const REAL *)(block + j * STRIDE) + (swap ? 0 : LANES);
        for (size_t v = 0; v < lines->count; v++) {
            REAL *at = x + lines->lane[v] + (ptrdiff_t)j * lines->step;
            at[0] = re[v] * scale;
            if (lines->im) at[lines->im] = im[v] * scale;
        }
    }
}

static void FN(store_pairs)(const fft_lines *lines, size_t n, int swap, REAL scale, const VEC *block)
{
    REAL *x = (REAL *)lines->data + lines->lane[0];
    const VEC *re = block + (swap ? UNITS : 0), *im = block + (swap ? 0 : UNITS);
    for (size_t j = 0; j < n; j++) {
        UVEC *at = (UVEC *)(x + (ptrdiff_t)j * lines->step);
        for (size_t u = 0; u < UNITS; u++) {
            const VEC a = re[j * STRIDE + u] * scale, b = im[j * STRIDE + u] * scale;
            at[2 * u] = __builtin_shufflevector(a, b, EACH(LOW));
            at[2 * u + 1] = __builtin_shufflevector(a, b, EACH(HIGH));
        }
    }
}

static void FN(store_apart)(const fft_lines *lines, size_t n, int swap, REAL scale, const VEC *block)
{
    REAL *x = (REAL *)lines->data + lines->lane[0];
    const VEC *re = block + (swap ? UNITS : 0), *im = block + (swap ? 0 : UNITS);
    for (size_t j = 0; j < n; j++) {
        REAL *at = x + (ptrdiff_t)j * lines->step;
        for (size_t u = 0; u < UNITS; u++) {
            ((UVEC *)at)[u] = re[j * STRIDE + u] * scale;
            if (lines->im) ((UVEC *)(at + lines->im))[u] = im[j * STRIDE + u] * scale;
        }
    }
}

static size_t FN(store_lines)(const fft_lines *lines, size_t n, int swap, REAL scale, const VEC *block)
{
    REAL *x = lines->data;
    const size_t parts = lines->im ? 2 : 1, each = WIDTH / parts, whole = n - n % each;
    for (size_t j = 0; j < whole; j += each)
        for (size_t u = 0; u < UNITS; u++) {
            VEC square[WIDTH];
            const VEC *from = block + j * STRIDE + u;
            if (parts == 2)
                for (size_t i = 0; i < WIDTH; i++)
                    square[i] = from[i / 2 * STRIDE + ((i & 1) ^ (size_t)swap) * UNITS] * scale;
            else
                for (size_t i = 0; i < WIDTH; i++)
                    square[i] = from[i * STRIDE + (size_t)swap * UNITS] * scale;
            FN(transpose)(square);
            for (size_t i = 0; i < WIDTH; i++)
                *(UVEC *)(x + lines->lane[u * WIDTH + i] + (ptrdiff_t)(j * parts)) = square[i];
        }
    return whole;
}

static void FN(store)(const fft_lines *lines, size_t n, int swap, double scale, const void *block)
{
    size_t done = n;
    switch (FN(form_of)(lines)) {
    case FN(PAIRS): FN(store_pairs)(lines, n, swap, (REAL)scale, block); break;
    case FN(APART): FN(store_apart)(lines, n, swap, (REAL)scale, block); break;
    case FN(LINES): done = FN(store_lines)(lines, n, swap, (REAL)scale, block); break;
    default: done = 0;
    }
    FN(store_any)(lines, done, n, swap, (REAL)scale, block);
}
