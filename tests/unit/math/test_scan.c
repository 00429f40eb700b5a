/* Running sums of every type, against one element after the other; conversions of float16. */
#include "element_fixture.h"
#include "math/scan.h"
#include <math.h>
#include <stdlib.h>

typedef struct state {
    uint64_t whole;
    double re, im;
} state;

static state step(drupe_element type, state s, const void *in, size_t i, bool product)
{
    const element_value v = element_at(type, in, i);
    if (v.is_whole) return (state){product ? s.whole * v.whole : s.whole + v.whole, 0, 0};
    if (!product) return (state){0, s.re + v.re, s.im + v.im};
    return (state){0, s.re * v.re - s.im * v.im, s.re * v.im + s.im * v.re};
}

/* Integers wrap at their size; floats may be off by as much as their type allows in so many steps. */
static bool holds(drupe_element type, const void *out, size_t i, state s, double largest)
{
    const element_value v = element_at(type, out, i);
    const size_t size = drupe_element_size(type);
    if (v.is_whole) return memcmp((const char *)out + i * size, &s.whole, size) == 0;
    const double unit = type == DRUPE_ELEMENT_F16                                 ? 1e-3
                        : type == DRUPE_ELEMENT_F64 || type == DRUPE_ELEMENT_C128 ? 1e-13
                                                                                  : 1e-5;
    return fabs(v.re - s.re) <= unit * largest && fabs(v.im - s.im) <= unit * largest;
}

static double size_of(state s)
{
    return fmax(1, fabs(s.re) + fabs(s.im));
}

static void check(const drupe_scan *s)
{
    for (size_t o = 0; o < s->outer; o++)
        for (size_t c = 0; c < s->inner; c++) {
            const size_t in = o * s->n * s->inner + c, out = o * (s->n + s->initial) * s->inner + c;
            state now = {s->product, s->product, 0};
            double largest = 1;
            if (s->initial) assert_true(holds(s->type, s->out, out, now, 1));
            for (size_t i = 0; i < s->n; i++) {
                now = step(s->type, now, s->in, in + i * s->inner, s->product);
                largest = fmax(largest, size_of(now));
                if (!holds(s->type, s->out, out + (i + s->initial) * s->inner, now,
                           largest * (1 + (double)i / 100)))
                    fail_msg("type %d, [%zu][%zu][%zu]: element %zu is wrong", (int)s->type, s->outer, s->n,
                             s->inner, i);
            }
        }
}

/* Numbers near 1, whose products stay small. */
static void tame(drupe_element type, void *in, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const double re = i % 2 ? 1.02 : 0.98, im = i % 3 ? 0.0 : 0.001;
        if (type == DRUPE_ELEMENT_F16) ((uint16_t *)in)[i] = drupe_float_half((float)re);
        if (type == DRUPE_ELEMENT_F32) ((float *)in)[i] = (float)re;
        if (type == DRUPE_ELEMENT_F64) ((double *)in)[i] = re;
        if (type == DRUPE_ELEMENT_C64) ((drupe_pair32 *)in)[i] = (drupe_pair32){(float)re, (float)im};
        if (type == DRUPE_ELEMENT_C128) ((drupe_pair64 *)in)[i] = (drupe_pair64){re, im};
    }
}

static void run_and_check(drupe_element type, size_t outer, size_t n, size_t inner)
{
    const size_t size = drupe_element_size(type);
    void *in = elements_make(type, outer * n * inner, false);
    void *out = malloc(outer * (n + 1) * inner * size);
    for (int what = 0; what < 4; what++) {
        const drupe_scan s = {in, out, outer, n, inner, type, what & 1, what & 2};
        if (s.product) tame(type, in, outer * n * inner);
        drupe_scan_run(&s);
        check(&s);
    }
    free(out);
    free(in);
}

static void test_every_type(void **unused)
{
    (void)unused;
    static const size_t blocks[][3] = {{1, 1, 1},   {3, 17, 1}, {2, 5, 3}, {1, 4, 700},
                                       {50, 20, 2}, {1, 0, 4},  {3, 0, 1}};
    for (int type = 1; type < DRUPE_ELEMENT_COUNT; type++)
        for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
            run_and_check((drupe_element)type, blocks[i][0], blocks[i][1], blocks[i][2]);
}

/* Rows and blocks that are cut into parts. Products of float16 would lose too much on the way. */
static void test_parts(void **unused)
{
    (void)unused;
    for (int type = 1; type < DRUPE_ELEMENT_COUNT; type++) {
        if (type == DRUPE_ELEMENT_F16) continue;
        run_and_check((drupe_element)type, 1, 200003, 1);
        run_and_check((drupe_element)type, 40, 3000, 1);
        run_and_check((drupe_element)type, 1, 500, 300);
    }
}

/* Every float16 is the float that rounds to it, and what lies between two rounds to the nearer or the even
 * one. */
static void test_half(void **unused)
{
    (void)unused;
    for (uint32_t half = 0; half < 0x10000; half++) {
        const float value = drupe_half_float((uint16_t)half);
        if (isnan(value)) {
            assert_true((drupe_float_half(value) & 0x7fff) > 0x7c00);
            continue;
        }
        assert_int_equal(drupe_float_half(value), half);
        if ((half & 0x7fff) >= 0x7bff) continue;
        const float next = drupe_half_float((uint16_t)(half + 1)), middle = (value + next) / 2;
        assert_int_equal(drupe_float_half(middle), half % 2 ? half + 1 : half);
        assert_int_equal(drupe_float_half(nextafterf(middle, value)), half);
        assert_int_equal(drupe_float_half(nextafterf(middle, next)), half + 1);
    }
    assert_true((double)drupe_half_float(0x3c00) == 1.0 && (double)drupe_half_float(0x0001) == 0x1p-24);
    assert_int_equal(drupe_float_half(65519.9f), 0x7bff);
    assert_int_equal(drupe_float_half(65520.0f), 0x7c00);
    assert_int_equal(drupe_float_half(-1e30f), 0xfc00);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_type), cmocka_unit_test(test_parts),
                                       cmocka_unit_test(test_half)};
    return cmocka_run_group_tests_name("scan", tests, NULL, NULL);
}
