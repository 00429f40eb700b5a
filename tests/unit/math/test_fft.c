/* Fourier transforms against the sum that defines them, in long double: all lengths to 300 and some large
 * ones, both precisions, lines side by side and behind each other. */
#include "math/fft.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka's header needs the ones above. */
#include <cmocka.h>

#define LONGEST 4100

typedef struct line {
    size_t n;
    long double x[2 * LONGEST], spectrum[2 * LONGEST]; /* pairs; the spectrum of the forward transform */
} line;

static double number(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(int64_t)state / 9.3e18;
}

static void transform(line *l)
{
    static long double roots[2 * LONGEST];
    const size_t n = l->n;
    for (size_t k = 0; k < n; k++) {
        const long double angle = 6.283185307179586476925286766559L * (long double)k / (long double)n;
        roots[2 * k] = cosl(angle);
        roots[2 * k + 1] = -sinl(angle);
    }
    for (size_t k = 0; k < n; k++) {
        long double re = 0, im = 0;
        for (size_t j = 0, turn = 0; j < n; j++, turn = turn + k < n ? turn + k : turn + k - n) {
            const long double c = roots[2 * turn], s = roots[2 * turn + 1];
            re += l->x[2 * j] * c - l->x[2 * j + 1] * s;
            im += l->x[2 * j] * s + l->x[2 * j + 1] * c;
        }
        l->spectrum[2 * k] = re;
        l->spectrum[2 * k + 1] = im;
    }
}

/* A line of n random numbers, zero from `length` on; they are exact in float. */
static line *line_make(size_t n, size_t length, bool real)
{
    static line l;
    l.n = n;
    memset(l.x, 0, sizeof l.x);
    for (size_t j = 0; j < length && j < n; j++) {
        l.x[2 * j] = (float)number();
        l.x[2 * j + 1] = real ? 0 : (float)number();
    }
    transform(&l);
    return &l;
}

static void put(const drupe_fft *fft, void *array, size_t i, long double value)
{
    if (fft->wide)
        ((double *)array)[i] = (double)value;
    else
        ((float *)array)[i] = (float)value;
}

static long double get(const drupe_fft *fft, const void *array, size_t i)
{
    return fft->wide ? ((const double *)array)[i] : ((const float *)array)[i];
}

static bool reals_in(const drupe_fft *fft)
{
    return fft->kind == DRUPE_FFT_REAL || fft->kind == DRUPE_FFT_REAL_HALF;
}

/* Each line is the first one times a power of two, which is exact. */
static long double factor(size_t i)
{
    return ldexpl(1, (int)(i % 5));
}

/* What goes in: x, or the spectrum's half for transforms to reals, conjugated for those that are not inverse.
 */
static void *input(const drupe_fft *fft, const line *l)
{
    const bool to_reals = fft->kind == DRUPE_FFT_HALF_REAL;
    const size_t parts = reals_in(fft) ? 1 : 2, lines = fft->outer * fft->inner;
    void *in = calloc(lines * fft->length * parts, fft->wide ? sizeof(double) : sizeof(float));
    for (size_t v = 0; v < lines; v++)
        for (size_t j = 0; j < fft->length; j++) {
            const size_t at = (v / fft->inner * fft->length + j) * fft->inner + v % fft->inner;
            if (j >= l->n && !to_reals) continue;
            const long double *from = to_reals ? &l->spectrum[2 * (j % l->n)] : &l->x[2 * j];
            put(fft, in, at * parts, from[0] * factor(v));
            if (parts == 2)
                put(fft, in, at * 2 + 1, from[1] * factor(v) * (to_reals && !fft->inverse ? -1 : 1));
        }
    return in;
}

/* Element k of the result that is wanted. */
static void wanted(const drupe_fft *fft, const line *l, size_t k, long double *re, long double *im)
{
    const long double *at = fft->kind == DRUPE_FFT_HALF_REAL ? &l->x[2 * k]
                            : fft->inverse                   ? &l->spectrum[2 * ((l->n - k) % l->n)]
                                                             : &l->spectrum[2 * k];
    const long double scale = fft->scale * (fft->kind == DRUPE_FFT_HALF_REAL ? (long double)l->n : 1);
    *re = at[0] * scale;
    *im = at[1] * scale;
}

/* The error relative to the result, in units of the last place. */
static void check(const drupe_fft *fft, const line *l)
{
    const size_t parts = fft->kind == DRUPE_FFT_HALF_REAL ? 1 : 2, lines = fft->outer * fft->inner;
    const size_t length = drupe_fft_result_length(fft);
    void *in = input(fft, l),
         *out = calloc(lines * length * parts, fft->wide ? sizeof(double) : sizeof(float));
    assert_int_equal(drupe_fft_run(fft, in, out), DRUPE_OK);
    for (size_t v = 0; v < lines; v++) {
        long double error = 0, norm = 0;
        for (size_t k = 0; k < length; k++) {
            long double re, im;
            wanted(fft, l, k, &re, &im);
            const size_t at = (v / fft->inner * length + k) * fft->inner + v % fft->inner;
            const long double a = get(fft, out, at * parts) / factor(v) - re;
            const long double b = parts == 2 ? get(fft, out, at * 2 + 1) / factor(v) - im : 0;
            error += a * a + b * b;
            norm += re * re + (parts == 2 ? im * im : 0);
        }
        const long double unit = fft->wide ? 2.220446e-16L : 1.1920929e-7L;
        if (!(sqrtl(error) <= 5 * unit * sqrtl(norm)))
            fail_msg("kind %d wide %d inverse %d n %zu of %zu [%zu][][%zu] line %zu: %Lg units",
                     (int)fft->kind, fft->wide, fft->inverse, fft->n, fft->length, fft->outer, fft->inner, v,
                     sqrtl(error / norm) / unit);
    }
    free(out);
    free(in);
}

/* All kinds of one line's transforms; `real`: the line has no imaginary parts. */
static void check_kinds(const line *l, bool real, size_t length, size_t outer, size_t inner)
{
    for (int kind = 0; kind < 4; kind++)
        for (int way = 0; way < 4; way++) {
            drupe_fft fft = {.kind = (drupe_fft_kind)kind, .wide = way & 1, .inverse = way & 2, .n = l->n};
            fft.outer = outer;
            fft.inner = inner;
            fft.length = kind == DRUPE_FFT_HALF_REAL ? l->n / 2 + 1 : length;
            fft.scale = 0.25;
            if ((kind != DRUPE_FFT_COMPLEX) == real) check(&fft, l);
        }
}

static void test_every_length(void **state)
{
    (void)state;
    for (size_t n = 1; n <= 300; n++)
        for (int real = 0; real < 2; real++) {
            const line *l = line_make(n, n, real);
            check_kinds(l, real, n, 1, 1);
            if (n % 4 == 0 || n < 50) check_kinds(l, real, n, 19, 1);
            if (n % 5 == 0 || n < 50) check_kinds(l, real, n, 2, 20);
            if (n % 7 == 0 || n < 50) check_kinds(l, real, n, 3, 3);
        }
}

static void test_long_lines(void **state)
{
    static const size_t lengths[] = {1021, 1024, 2042, 2048, 2187, 3000, 4096, 4099};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int real = 0; real < 2; real++)
            check_kinds(line_make(lengths[i], lengths[i], real), real, lengths[i], 1, 1);
    check_kinds(line_make(2100, 2100, false), false, 2100, 3, 5);
    check_kinds(line_make(2100, 2100, true), true, 2100, 3, 5);
}

static void test_cut_and_padded(void **state)
{
    static const size_t lengths[] = {2, 3, 8, 9, 30, 31, 64, 97, 106, 128, 2500};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int real = 0; real < 2; real++)
            for (size_t missing = 1; missing <= 2 && missing < lengths[i]; missing++) {
                const size_t n = lengths[i];
                check_kinds(line_make(n, n - missing, real), real, n - missing, 1, 1);
                if (n > 2000) continue;
                check_kinds(line_make(n, n - missing, real), real, n - missing, 17, 1);
                check_kinds(line_make(n, n - missing, real), real, n - missing, 1, 17);
                check_kinds(line_make(n, n, real), real, n + missing, 17, 1);
            }
}

static void test_in_place(void **state)
{
    static const size_t lengths[] = {16, 47, 53, 240, 4096};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const line *l = line_make(lengths[i], lengths[i], false);
        const drupe_fft fft = {.kind = DRUPE_FFT_COMPLEX,
                               .wide = true,
                               .n = l->n,
                               .outer = 1,
                               .inner = 9,
                               .length = l->n,
                               .scale = 1};
        double *in = input(&fft, l), *out = malloc(2 * sizeof(double) * l->n * 9);
        assert_int_equal(drupe_fft_run(&fft, in, out), DRUPE_OK);
        assert_int_equal(drupe_fft_run(&fft, in, in), DRUPE_OK);
        assert_memory_equal(in, out, 2 * sizeof(double) * l->n * 9);
        free(out);
        free(in);
    }
}

/* More lengths than the cache has plans: each still gives its own result. */
static void test_many_plans(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++)
        for (size_t n = 400; n < 480; n++) check_kinds(line_make(n, n, false), false, n, 1, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_length),   cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_cut_and_padded), cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_many_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
