/* The precompiled kernels' table, and a few kernels called as the host backend calls them. */
#include "backends/builtin.h"
#include "kernels/params.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* cmocka's header needs the ones above. */
#include <cmocka.h>

enum { INT32 = 5, FLOAT32 = 10, FLOAT64 = 11 }; /* element types, by their numbers */

static void test_find(void **state)
{
    static const char *const names[] = {"add_f32", "exp_f64",    "less_i64",      "logical_and_b8",
                                        "copy_b8", "matmul_i32", "sequence_f64",  "sum_f32_by_row",
                                        "pow_i32", "sqrt_f32",   "all_b8_by_row", "max_i32_by_column"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const drupe_builtin *kernel = drupe_builtin_find(names[i]);
        assert_non_null(kernel);
        assert_string_equal(kernel->name, names[i]);
        assert_non_null(kernel->fn);
    }
    assert_null(drupe_builtin_find("add"));
    assert_null(drupe_builtin_find(""));
    assert_int_equal(drupe_builtin_find("add_f32")->nargs, 4);
    assert_int_equal(drupe_builtin_find("exp_f32")->nargs, 3);
}

static void test_variant(void **state)
{
    const char *variant = drupe_builtin_variant();
    (void)state;
    assert_true(strcmp(variant, "baseline") == 0 || strcmp(variant, "avx2") == 0 ||
                strcmp(variant, "avx512") == 0);
    assert_ptr_equal(variant, drupe_builtin_variant());
}

/* Any division into work-items covers every element once, and nothing beyond. */
static void test_shares(void **state)
{
    enum { MOST = 1000 };
    static const drupe_i64 sizes[] = {1, 2, 63, 64, 65, 130, 999, MOST};
    static float in[MOST], out[MOST + 1];
    const void *pointers[] = {out, in};
    (void)state;
    for (int i = 0; i < MOST; i++) in[i] = (float)i;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        for (size_t items = 1; items < 12; items++) {
            drupe_map_head p = {.n = sizes[s], .dtypes = {FLOAT32, FLOAT32, FLOAT32}};
            const void *const args[] = {&pointers[0], &pointers[1], &pointers[1], &p};
            memset(out, 0, sizeof(out));
            for (size_t item = 0; item < items; item++)
                drupe_builtin_find("add_f32")->fn(item, item + 1, items, args);
            for (int i = 0; i < MOST + 1; i++) assert_true(out[i] == (i < sizes[s] ? 2.0f * (float)i : 0.0f));
        }
}

/* Casts in the load and in the store, a constant, and strides, across block boundaries. */
static void test_blocks(void **state)
{
    enum { N = 3000 };
    static int32_t in[2 * N];
    static double out[N];
    const void *pointers[] = {out, in, NULL};
    const float constant = 0.5f;
    (void)state;
    for (int i = 0; i < 2 * N; i++) in[i] = i;
    drupe_map_params p = {.head = {.n = N, .dtypes = {FLOAT64, INT32, FLOAT32}, .constants = 2, .ndim = 2},
                          .shape = {N / 3, 3},
                          .strides = {{3, 1}, {6, 2}}};
    memcpy(p.head.value[1], &constant, sizeof(constant));
    const void *const args[] = {&pointers[0], &pointers[1], &pointers[2], &p};
    drupe_builtin_find("multiply_f32")->fn(0, 2, 2, args);
    for (int i = 0; i < N; i++) assert_true(out[i] == (double)i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_variant),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
