/* Butterflies: small transforms of one register of lanes. Included by fft_body.h once for each precision.
 *
 * Input k is at x[k * in] and its imaginary part UNITS later; output k goes to y[k * out], times the root w[k
 * - 1] unless w is NULL. */

static inline PAIR FN(get)(const VEC *x)
{
    return (PAIR){x[0], x[UNITS]};
}

static inline void FN(set)(VEC *y, PAIR a)
{
    y[0] = a.re;
    y[UNITS] = a.im;
}

static inline PAIR FN(times)(PAIR a, REAL re, REAL im)
{
    return (PAIR){a.re * re - a.im * im, a.re * im + a.im * re};
}

static inline void FN(set_turned)(VEC *y, PAIR a, const REAL *w, size_t k)
{
    FN(set)(y, w ? FN(times)(a, w[2 * k - 2], w[2 * k - 1]) : a);
}

static inline PAIR FN(plus)(PAIR a, PAIR b)
{
    return (PAIR){a.re + b.re, a.im + b.im};
}

static inline PAIR FN(minus)(PAIR a, PAIR b)
{
    return (PAIR){a.re - b.re, a.im - b.im};
}

/* -i (a - b) */
static inline PAIR FN(minus_turned)(PAIR a, PAIR b)
{
    return (PAIR){a.im - b.im, b.re - a.re};
}

static inline void FN(fly2)(const VEC *x, size_t in, const REAL *w, VEC *y, size_t out)
{
    const PAIR a = FN(get)(x), b = FN(get)(x + in);
    FN(set)(y, FN(plus)(a, b));
    FN(set_turned)(y + out, FN(minus)(a, b), w, 1);
}

static inline void FN(fly3)(const VEC *x, size_t in, const REAL *w, VEC *y, size_t out)
{
    const REAL sine = (REAL)0.86602540378443864676;
    const PAIR a = FN(get)(x), b = FN(get)(x + in), c = FN(get)(x + 2 * in);
    const PAIR sum = FN(plus)(b, c), turned = FN(minus_turned)(b, c);
    const PAIR mid = {a.re - sum.re * HALF, a.im - sum.im * HALF};
    const PAIR side = {turned.re * sine, turned.im * sine};
    FN(set)(y, FN(plus)(a, sum));
    FN(set_turned)(y + out, FN(plus)(mid, side), w, 1);
    FN(set_turned)(y + 2 * out, FN(minus)(mid, side), w, 2);
}

static inline void FN(fly4)(const VEC *x, size_t in, const REAL *w, VEC *y, size_t out)
{
    const PAIR a = FN(get)(x), b = FN(get)(x + in), c = FN(get)(x + 2 * in), d = FN(get)(x + 3 * in);
    const PAIR ac = FN(plus)(a, c), a_c = FN(minus)(a, c), bd = FN(plus)(b, d), b_d = FN(minus_turned)(b, d);
    FN(set)(y, FN(plus)(ac, bd));
    FN(set_turned)(y + out, FN(plus)(a_c, b_d), w, 1);
    FN(set_turned)(y + 2 * out, FN(minus)(ac, bd), w, 2);
    FN(set_turned)(y + 3 * out, FN(minus)(a_c, b_d), w, 3);
}

static inline void FN(fly5)(const VEC *x, size_t in, const REAL *w, VEC *y, size_t out)
{
    const REAL c1 = (REAL)0.30901699437494742410, c2 = (REAL)-0.80901699437494742410;
    const REAL s1 = (REAL)0.95105651629515357212, s2 = (REAL)0.58778525229247312917;
    const PAIR a = FN(get)(x), b = FN(get)(x + in), c = FN(get)(x + 2 * in), d = FN(get)(x + 3 * in),
               e = FN(get)(x + 4 * in);
    const PAIR be = FN(plus)(b, e), cd = FN(plus)(c, d), b_e = FN(minus_turned)(b, e),
               c_d = FN(minus_turned)(c, d);
    const PAIR mid1 = {a.re + be.re * c1 + cd.re * c2, a.im + be.im * c1 + cd.im * c2};
    const PAIR mid2 = {a.re + be.re * c2 + cd.re * c1, a.im + be.im * c2 + cd.im * c1};
    const PAIR side1 = {b_e.re * s1 + c_d.re * s2, b_e.im * s1 + c_d.im * s2};
    const PAIR side2 = {b_e.re * s2 - c_d.re * s1, b_e.im * s2 - c_d.im * s1};
    FN(set)(y, FN(plus)(a, FN(plus)(be, cd)));
    FN(set_turned)(y + out, FN(plus)(mid1, side1), w, 1);
    FN(set_turned)(y + 2 * out, FN(plus)(mid2, side2), w, 2);
    FN(set_turned)(y + 3 * out, FN(minus)(mid2, side2), w, 3);
    FN(set_turned)(y + 4 * out, FN(minus)(mid1, side1), w, 4);
}

/* Two butterflies of four, of the even and of the odd inputs. */
static inline void FN(fly8)(const VEC *x, size_t in, const REAL *w, VEC *y, size_t out)
{
    const REAL h = (REAL)0.70710678118654752440;
    PAIR even[4], odd[4];
    for (int i = 0; i < 2; i++) {
        const VEC *from = x + (size_t)i * in;
        PAIR *to = i ? odd : even;
        const PAIR a = FN(get)(from), b = FN(get)(from + 2 * in), c = FN(get)(from + 4 * in),
                   d = FN(get)(from + 6 * in);
        const PAIR ac = FN(plus)(a, c), a_c = FN(minus)(a, c), bd = FN(plus)(b, d),
                   b_d = FN(minus_turned)(b, d);
        to[0] = FN(plus)(ac, bd);
        to[1] = FN(plus)(a_c, b_d);
        to[2] = FN(minus)(ac, bd);
        to[3] = FN(minus)(a_c, b_d);
    }
    /* The odd ones times the roots of order 8: 1, (1 - i) h, -i, (-1 - i) h. */
    odd[1] = (PAIR){(odd[1].re + odd[1].im) * h, (odd[1].im - odd[1].re) * h};
    odd[2] = (PAIR){odd[2].im, -odd[2].re};
    odd[3] = (PAIR){(odd[3].im - odd[3].re) * h, (odd[3].re + odd[3].im) * -h};
    FN(set)(y, FN(plus)(even[0], odd[0]));
    for (size_t k = 1; k < 4; k++) FN(set_turned)(y + k * out, FN(plus)(even[k], odd[k]), w, k);
    for (size_t k = 0; k < 4; k++) FN(set_turned)(y + (k + 4) * out, FN(minus)(even[k], odd[k]), w, k + 4);
}

/* An odd radix: inputs k and r - k have the same cosines and opposite sines. `turns` holds the roots of order
 * r. */
static inline void FN(fly_any)(size_t r, const REAL *turns, const VEC *x, size_t in, const REAL *w, VEC *y,
                               size_t out)
{
    PAIR sums[FFT_LARGEST_PRIME / 2 + 1], sides[FFT_LARGEST_PRIME / 2 + 1];
    const PAIR first = FN(get)(x);
    PAIR total = first;
    for (size_t j = 1; j <= r / 2; j++) {
        const PAIR a = FN(get)(x + j * in), b = FN(get)(x + (r - j) * in);
        sums[j] = FN(plus)(a, b);
        sides[j] = FN(minus_turned)(a, b);
        total = FN(plus)(total, sums[j]);
    }
    FN(set)(y, total);
    for (size_t k = 1; k <= r / 2; k++) {
        PAIR mid = first, side = {{0}, {0}};
        size_t turn = 0;
        for (size_t j = 1; j <= r / 2; j++) {
            turn = turn + k < r ? turn + k : turn + k - r;
            const REAL c = turns[2 * turn], s = -turns[2 * turn + 1];
            mid.re += sums[j].re * c;
            mid.im += sums[j].im * c;
            side.re += sides[j].re * s;
            side.im += sides[j].im * s;
        }
        FN(set_turned)(y + k * out, FN(plus)(mid, side), w, k);
        FN(set_turned)(y + (r - k) * out, FN(minus)(mid, side), w, r - k);
    }
}
