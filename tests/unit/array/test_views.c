/* Views: they touch descriptors only, so the expectations are written out. */
#include "array_fixture.h"
#include <string.h>

static void make(int ndim, const size_t *shape, drupe_array *array)
{
    CHECK(drupe_array_empty(queues[0], DRUPE_MEM_DEVICE, DRUPE_INT32, ndim, shape, array));
}

static void check_axes(const drupe_array *a, int ndim, const size_t *shape, const ptrdiff_t *strides,
                       size_t offset)
{
    size_t size = 1;
    assert_int_equal(a->ndim, ndim);
    assert_int_equal(a->offset, offset);
    for (int d = 0; d < ndim; d++) {
        assert_int_equal(a->shape[d], shape[d]);
        if (shape[d] > 1) assert_int_equal(a->strides[d], strides[d]);
        size *= shape[d];
    }
    assert_int_equal(a->size, size);
}

#define SIZES(...)   ((const size_t[]){__VA_ARGS__})
#define STRIDES(...) ((const ptrdiff_t[]){__VA_ARGS__})

static void test_slice(void **state)
{
    drupe_array a, v;
    (void)state;
    make(3, SIZES(4, 5, 6), &a);
    check_axes(&a, 3, SIZES(4, 5, 6), STRIDES(30, 6, 1), 0);
    assert_true(drupe_array_contiguous(&a));
    drupe_array_view(&a, &v);
    CHECK(drupe_array_slice(&v, (drupe_slice[]){{1, 2, 2, false}, {4, -2, 3, false}, {3, 0, 0, true}}));
    check_axes(&v, 2, SIZES(2, 3), STRIDES(60, -12), 30 + 24 + 3);
    assert_false(drupe_array_contiguous(&v));
    assert_ptr_equal(drupe_array_pointer(&v), (int32_t *)drupe_array_pointer(&a) + 57);
    drupe_array_clear(&v);
    drupe_array_view(&a, &v);
    assert_int_equal(
        drupe_array_slice(&v, (drupe_slice[]){{0, 1, 4, false}, {0, 1, 6, false}, {0, 1, 6, false}}),
        DRUPE_E_OUT_OF_RANGE);
    assert_int_equal(
        drupe_array_slice(&v, (drupe_slice[]){{4, 0, 0, true}, {0, 1, 5, false}, {0, 1, 6, false}}),
        DRUPE_E_OUT_OF_RANGE);
    check_axes(&v, 3, SIZES(4, 5, 6), STRIDES(30, 6, 1), 0);
    CHECK(drupe_array_slice(&v, (drupe_slice[]){{4, 1, 0, false}, {0, 1, 5, false}, {5, 1, 1, false}}));
    assert_int_equal(v.size, 0);
    drupe_array_clear(&v);
    drupe_array_clear(&a);
    drupe_array_clear(&a);
}

static void test_axes(void **state)
{
    drupe_array a;
    (void)state;
    make(3, SIZES(2, 3, 4), &a);
    CHECK(drupe_array_permute(&a, (const int[]){2, 0, 1}));
    check_axes(&a, 3, SIZES(4, 2, 3), STRIDES(1, 12, 4), 0);
    assert_int_equal(drupe_array_permute(&a, (const int[]){0, 0, 1}), DRUPE_E_INVALID);
    assert_int_equal(drupe_array_permute(&a, (const int[]){0, 1, 3}), DRUPE_E_INVALID);
    check_axes(&a, 3, SIZES(4, 2, 3), STRIDES(1, 12, 4), 0);
    CHECK(drupe_array_permute(&a, NULL));
    check_axes(&a, 3, SIZES(3, 2, 4), STRIDES(4, 12, 1), 0);
    CHECK(drupe_array_insert_axis(&a, 3));
    CHECK(drupe_array_insert_axis(&a, 0));
    check_axes(&a, 5, SIZES(1, 3, 2, 4, 1), STRIDES(0, 4, 12, 1, 0), 0);
    assert_int_equal(drupe_array_insert_axis(&a, 6), DRUPE_E_OUT_OF_RANGE);
    assert_int_equal(drupe_array_insert_axis(&a, -1), DRUPE_E_OUT_OF_RANGE);
    drupe_array_clear(&a);
}

static void test_reshape(void **state)
{
    drupe_array a, v;
    (void)state;
    make(2, SIZES(6, 8), &a);
    drupe_array_view(&a, &v);
    CHECK(drupe_array_reshape(&v, 3, SIZES(4, 4, 3)));
    check_axes(&v, 3, SIZES(4, 4, 3), STRIDES(12, 3, 1), 0);
    assert_int_equal(drupe_array_reshape(&v, 1, SIZES(47)), DRUPE_E_INVALID);
    drupe_array_clear(&v);
    /* Every second row: the rows can be divided, but not joined. */
    drupe_array_view(&a, &v);
    CHECK(drupe_array_slice(&v, (drupe_slice[]){{0, 2, 3, false}, {0, 1, 8, false}}));
    CHECK(drupe_array_reshape(&v, 4, SIZES(3, 1, 2, 4)));
    check_axes(&v, 4, SIZES(3, 1, 2, 4), STRIDES(16, 0, 4, 1), 0);
    assert_int_equal(drupe_array_reshape(&v, 1, SIZES(24)), DRUPE_E_UNSUPPORTED);
    assert_int_equal(drupe_array_reshape(&v, 2, SIZES(2, 12)), DRUPE_E_UNSUPPORTED);
    drupe_array_clear(&v);
    /* Every second column keeps one stride throughout. */
    drupe_array_view(&a, &v);
    CHECK(drupe_array_slice(&v, (drupe_slice[]){{0, 1, 6, false}, {1, 2, 4, false}}));
    CHECK(drupe_array_reshape(&v, 2, SIZES(12, 2)));
    check_axes(&v, 2, SIZES(12, 2), STRIDES(4, 2), 1);
    CHECK(drupe_array_slice(&v, (drupe_slice[]){{0, 1, 1, false}, {0, 1, 1, false}}));
    CHECK(drupe_array_reshape(&v, 0, NULL));
    assert_int_equal(v.size, 1);
    drupe_array_clear(&v);
    drupe_array_clear(&a);
}

static void test_broadcast(void **state)
{
    drupe_array a, b;
    int ndim;
    size_t shape[DRUPE_MAX_DIMS];
    (void)state;
    make(2, SIZES(3, 1), &a);
    make(1, SIZES(4), &b);
    const drupe_array *both[] = {&a, &b};
    CHECK(drupe_shape_broadcast(both, 2, &ndim, shape));
    assert_int_equal(ndim, 2);
    assert_int_equal(shape[0], 3);
    assert_int_equal(shape[1], 4);
    CHECK(drupe_array_broadcast(&a, 3, SIZES(2, 3, 4)));
    assert_int_equal(a.strides[0], 0);
    assert_int_equal(a.strides[1], 1);
    assert_int_equal(a.strides[2], 0);
    assert_int_equal(a.size, 24);
    assert_int_equal(drupe_array_broadcast(&b, 1, SIZES(5)), DRUPE_E_INVALID);
    assert_int_equal(drupe_array_broadcast(&a, 2, SIZES(3, 4)), DRUPE_E_INVALID);
    CHECK(drupe_array_broadcast(&b, 2, SIZES(5, 4)));
    assert_int_equal(drupe_shape_broadcast(both, 2, &ndim, shape), DRUPE_E_INVALID);
    assert_non_null(strstr(drupe_error_last()->text, "(2, 3, 4) and (5, 4)"));
    drupe_array_clear(&b);
    drupe_array_clear(&a);
}

static void test_over(void **state)
{
    drupe_array a, v;
    (void)state;
    make(1, SIZES(12), &a);
    CHECK(drupe_array_over(a.memory, a.queue, DRUPE_INT64, 2, SIZES(2, 3), NULL, 0, &v));
    check_axes(&v, 2, SIZES(2, 3), STRIDES(3, 1), 0);
    drupe_array_clear(&v);
    CHECK(drupe_array_over(a.memory, a.queue, DRUPE_INT32, 2, SIZES(3, 4), STRIDES(-4, 1), 8, &v));
    drupe_array_clear(&v);
    const drupe_dtype t = DRUPE_INT32;
    assert_int_equal(drupe_array_over(a.memory, a.queue, t, 1, SIZES(13), NULL, 0, &v), DRUPE_E_OUT_OF_RANGE);
    assert_int_equal(drupe_array_over(a.memory, a.queue, t, 1, SIZES(12), NULL, 1, &v), DRUPE_E_OUT_OF_RANGE);
    assert_int_equal(drupe_array_over(a.memory, a.queue, t, 2, SIZES(3, 4), STRIDES(-4, 1), 7, &v),
                     DRUPE_E_OUT_OF_RANGE);
    assert_int_equal(drupe_array_over(a.memory, a.queue, t, 1, SIZES(3), STRIDES(PTRDIFF_MAX), 0, &v),
                     DRUPE_E_OUT_OF_RANGE);
    assert_null(v.memory);
    drupe_array_clear(&a);
    assert_int_equal(drupe_array_empty(queues[0], DRUPE_MEM_DEVICE, t, 2, SIZES(SIZE_MAX / 2, 16), &a),
                     DRUPE_E_NO_MEMORY);
    assert_int_equal(drupe_array_empty(queues[0], DRUPE_MEM_DEVICE, t, DRUPE_MAX_DIMS + 1,
                                       (size_t[DRUPE_MAX_DIMS + 1]){1}, &a),
                     DRUPE_E_INVALID);
    assert_int_equal(drupe_array_empty(queues[0], DRUPE_MEM_DEVICE, DRUPE_DTYPE_NONE, 0, NULL, &a),
                     DRUPE_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slice),     cmocka_unit_test(test_axes), cmocka_unit_test(test_reshape),
        cmocka_unit_test(test_broadcast), cmocka_unit_test(test_over),
    };
    return cmocka_run_group_tests(tests, queues_open, queues_close);
}
