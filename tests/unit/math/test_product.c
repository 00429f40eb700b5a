/* Products of stacks against the definition. Numbers are small, so that they are exact in every type. */
#include "math/product.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
/* cmocka's header needs the ones above. */
#include <cmocka.h>

enum { LONGEST = 70 };

static const size_t sizes[DRUPE_PRODUCT_TYPES] = {1, 1, 2, 4, 8, 4, 8, 8, 16};

static bool is_complex(drupe_product_type type)
{
    return type >= DRUPE_PRODUCT_CFLOAT;
}

/* Part 0 or 1 of an element, as a number; integers wrap in their type. */
static double load(drupe_product_type type, const void *data, ptrdiff_t at, int part)
{
    switch (type) {
    case DRUPE_PRODUCT_BOOL:
    case DRUPE_PRODUCT_INT8: return part ? 0 : ((const uint8_t *)data)[at];
    case DRUPE_PRODUCT_INT16: return part ? 0 : ((const uint16_t *)data)[at];
    case DRUPE_PRODUCT_INT32: return part ? 0 : ((const uint32_t *)data)[at];
    case DRUPE_PRODUCT_INT64: return part ? 0 : (double)((const uint64_t *)data)[at];
    case DRUPE_PRODUCT_FLOAT: return part ? 0 : (double)((const float *)data)[at];
    case DRUPE_PRODUCT_DOUBLE: return part ? 0 : ((const double *)data)[at];
    case DRUPE_PRODUCT_CFLOAT: return (double)((const float *)data)[2 * at + part];
    default: return ((const double *)data)[2 * at + part];
    }
}

static void store(drupe_product_type type, void *data, size_t at, int value)
{
    switch (type) {
    case DRUPE_PRODUCT_BOOL: ((uint8_t *)data)[at] = value & 1; break;
    case DRUPE_PRODUCT_INT8: ((uint8_t *)data)[at] = (uint8_t)value; break;
    case DRUPE_PRODUCT_INT16: ((uint16_t *)data)[at] = (uint16_t)value; break;
    case DRUPE_PRODUCT_INT32: ((uint32_t *)data)[at] = (uint32_t)value; break;
    case DRUPE_PRODUCT_INT64: ((uint64_t *)data)[at] = (uint64_t)value; break;
    case DRUPE_PRODUCT_FLOAT: ((float *)data)[at] = (float)value; break;
    case DRUPE_PRODUCT_DOUBLE: ((double *)data)[at] = value; break;
    case DRUPE_PRODUCT_CFLOAT:
        ((float *)data)[2 * at] = (float)value;
        ((float *)data)[2 * at + 1] = (float)(1 - value);
        break;
    default: ((double *)data)[2 * at] = value; ((double *)data)[2 * at + 1] = 1 - value;
    }
}

static void fill(drupe_product_type type, void *data, size_t count, unsigned seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1103515245u + 12345u;
        store(type, data, i, (int)(seed >> 16) % 4);
    }
}

/* Element (i, j) of the product of two matrices, by the definition. */
static void expect(const drupe_product *p, const char *a, const char *b, size_t i, size_t j, double sum[2])
{
    sum[0] = sum[1] = 0;
    for (size_t l = 0; l < p->k; l++) {
        const ptrdiff_t x = (ptrdiff_t)i * p->a.row + (ptrdiff_t)l * p->a.column;
        const ptrdiff_t y = (ptrdiff_t)l * p->b.row + (ptrdiff_t)j * p->b.column;
        double u[2], v[2];
        for (int part = 0; part < 2; part++) {
            u[part] = load(p->type, a, x, part);
            v[part] = load(p->type, b, y, part);
        }
        sum[0] += u[0] * v[0] - u[1] * v[1];
        sum[1] += u[0] * v[1] + u[1] * v[0];
    }
    if (p->type == DRUPE_PRODUCT_BOOL) sum[0] = sum[0] > 0;
    if (p->type == DRUPE_PRODUCT_INT8) sum[0] = (double)(uint8_t)(uint64_t)sum[0];
}

static void check(const drupe_product *p, size_t index, const char *a, const char *b)
{
    const char *out = (const char *)p->out + index * p->m * p->n * sizes[p->type];
    for (size_t i = 0; i < p->m; i++)
        for (size_t j = 0; j < p->n; j++) {
            double sum[2];
            expect(p, a, b, i, j, sum);
            for (int part = 0; part <= is_complex(p->type); part++) {
                const double got = load(p->type, out, (ptrdiff_t)(i * p->n + j), part);
                if (got != sum[part])
                    fail_msg("type %d, %zux%zux%zu, element (%zu, %zu): %g, not %g", (int)p->type, p->m, p->n,
                             p->k, i, j, got, sum[part]);
            }
        }
}

/* A stack of three, of which the second operand has one matrix if `shared`; transposed as the bits say. */
static void multiply(drupe_product_type type, size_t m, size_t n, size_t k, bool shared, int transposed)
{
    const size_t size = sizes[type];
    drupe_product p = {.type = type, .m = m, .n = n, .k = k, .ndim = 1, .shape = {3}};
    char *a = malloc(3 * m * k * size), *b = malloc(3 * k * n * size);
    p.out = malloc(3 * m * n * size);
    fill(type, a, 3 * m * k, 1);
    fill(type, b, 3 * k * n, 2);
    p.a = (drupe_product_operand){a, (ptrdiff_t)k, 1, {(ptrdiff_t)(m * k)}};
    if (transposed & 1) p.a = (drupe_product_operand){a, 1, (ptrdiff_t)m, {(ptrdiff_t)(m * k)}};
    p.b = (drupe_product_operand){b, (ptrdiff_t)n, 1, {(ptrdiff_t)(k * n)}};
    if (transposed & 2) p.b = (drupe_product_operand){b, 1, (ptrdiff_t)k, {(ptrdiff_t)(k * n)}};
    if (transposed & 4)
        p.b = (drupe_product_operand){b + (k - 1) * n * size, -(ptrdiff_t)n, 1, {(ptrdiff_t)(k * n)}};
    if (shared) p.b.stack[0] = 0;
    drupe_product_run(&p);
    for (size_t i = 0; i < 3; i++)
        check(&p, i, (const char *)p.a.data + i * m * k * size,
              (const char *)p.b.data + (shared ? 0 : i * k * n * size));
    free(p.out);
    free(b);
    free(a);
}

static void test_run(void **state)
{
    static const size_t shapes[][3] = {
        {1, 1, 1}, {3, 4, 5}, {1, 40, 7}, {40, 1, 7}, {LONGEST, LONGEST, LONGEST}};
    (void)state;
    for (int type = 0; type < DRUPE_PRODUCT_TYPES; type++)
        for (size_t s = 0; s < 5; s++)
            for (int variant = 0; variant < 10; variant++)
                multiply((drupe_product_type)type, shapes[s][0], shapes[s][1], shapes[s][2], variant % 2,
                         variant / 2);
}

static void loops_check(drupe_product_loop *const *loops)
{
    enum { M = 6, N = 37, K = 131 };
    static char a[M * K * 16], b[K * N * 16], out[M * N * 16];
    for (int type = 0; type < DRUPE_PRODUCT_TYPES; type++)
        for (size_t n = 1; n <= N; n += 36) {
            drupe_product p = {.type = (drupe_product_type)type, .m = M, .n = n, .k = K, .out = out};
            fill(p.type, a, M * K, 3);
            fill(p.type, b, K * n, 4);
            p.a = (drupe_product_operand){a, K, 1, {0}};
            p.b = (drupe_product_operand){b, (ptrdiff_t)n, 1, {0}};
            const drupe_product_tile tile = {M, n, K, a, b, K, 1, (ptrdiff_t)n, 1, out, n};
            memset(out, 0x55, sizeof out);
            loops[type](&tile);
            check(&p, 0, a, b);
        }
}

static void test_loops(void **state)
{
    (void)state;
    loops_check(drupe_product_baseline);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        loops_check(drupe_product_avx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        loops_check(drupe_product_avx512);
#endif
}

static void test_addressable(void **state)
{
    (void)state;
    const drupe_product_operand rows = {NULL, 5, 1, {0}}, columns = {NULL, 1, 4, {0}},
                                apart = {NULL, 10, 2, {0}};
    const drupe_product_operand backwards = {NULL, -5, 1, {0}}, same = {NULL, 0, 1, {0}};
    assert_true(drupe_product_addressable(&rows, 4, 5));
    assert_true(drupe_product_addressable(&columns, 4, 5));
    assert_false(drupe_product_addressable(&apart, 4, 5));
    assert_false(drupe_product_addressable(&backwards, 4, 5));
    assert_true(drupe_product_addressable(&backwards, 1, 5));
    assert_false(drupe_product_addressable(&same, 4, 5));
    assert_true(drupe_product_addressable(&apart, 4, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_addressable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
