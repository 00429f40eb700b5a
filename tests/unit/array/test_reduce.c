/* Reductions over every subset of axes, layout and type; numbers are small, so that sums are exact. */
#include "array_fixture.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static drupe_dtype result_type(drupe_op op, drupe_dtype in)
{
    if (op == DRUPE_OP_ANY || op == DRUPE_OP_ALL) return DRUPE_BOOL;
    if ((op == DRUPE_OP_SUM || op == DRUPE_OP_PROD) && is_whole(in))
        return drupe_dtype_kind(in) == 'u' ? DRUPE_UINT64 : DRUPE_INT64;
    return in;
}

/* Fold the sample into the outputs one element at a time. */
static void check_result(drupe_op op, const sample *s, uint32_t axes, drupe_dtype compute,
                         const drupe_array *out, int ulps)
{
    const drupe_array *in = &s->array;
    compute = computed_in(compute);
    number *expected = calloc(out->size + 1, sizeof(*expected));
    assert_non_null(expected);
    size_t index[DRUPE_MAX_DIMS] = {0}, size = drupe_dtype_size(out->dtype);
    for (size_t k = 0; k < out->size; k++) expected[k] = number_identity(op, compute);
    for (size_t k = 0; k < in->size; k++) {
        size_t to = 0;
        for (int d = 0; d < in->ndim; d++)
            if (!(axes >> d & 1)) to = to * in->shape[d] + index[d];
        expected[to] = number_combine(op, expected[to], number_cast(sample_at(s, in->ndim, index), compute));
        index_next(in->ndim, in->shape, index);
    }
    char *bytes = array_fetch(out);
    for (size_t k = 0; k < out->size; k++) {
        const number got = number_load(bytes + k * size, out->dtype);
        const number wanted = number_cast(expected[k], out->dtype);
        if (!number_close(got, wanted, ulps))
            fail_msg("%s of %s over axes %x, element %zu: %.17g %" PRId64 ", not %.17g %" PRId64,
                     drupe_op_name(op), drupe_dtype_name(in->dtype), axes, k, got.f, got.i, wanted.f,
                     wanted.i);
    }
    free(bytes);
    free(expected);
}

static void reduce_and_check(drupe_op op, const sample *s, uint32_t axes, bool keepdims)
{
    drupe_array out = {0};
    const drupe_dtype result = result_type(op, s->array.dtype);
    CHECK(drupe_array_reduce(op, &s->array, axes, keepdims, DRUPE_DTYPE_NONE, &out));
    assert_int_equal(out.dtype, result);
    assert_int_equal(out.ndim, keepdims ? s->array.ndim : s->array.ndim - __builtin_popcount(axes));
    check_result(op, s, axes, result, &out, is_complex(result) ? 8 : 1);
    drupe_array_clear(&out);
}

static bool takes(drupe_op op, drupe_dtype dtype)
{
    return !is_complex(dtype) || (op != DRUPE_OP_MAX && op != DRUPE_OP_MIN);
}

static void test_subsets(void **state)
{
    static const size_t shape[] = {3, 4, 5};
    (void)state;
    for (size_t q = 0; q < queue_count; q++)
        for (int op = DRUPE_OP_SUM; op <= DRUPE_OP_ALL; op++)
            for (int dtype = 0; dtype < DRUPE_DTYPE_COUNT; dtype++)
                for (int x = 0; x < LAYOUT_COUNT; x++) {
                    sample s;
                    if (!takes((drupe_op)op, (drupe_dtype)dtype)) continue;
                    /* Each type and operation is a program or a kernel to build there. */
                    if (!queue_is_host(queues[q]) && (dtype + op) % 4) continue;
                    sample_make(queues[q], (drupe_dtype)dtype, (sample_layout)x, 3, shape, 2, false, &s);
                    for (uint32_t axes = 0; axes < 1u << s.array.ndim; axes++)
                        reduce_and_check((drupe_op)op, &s, axes, axes & 1);
                    sample_clear(&s);
                }
}

/* Shapes that take each path: split rows, many rows, wide and narrow columns, short rows, several passes. */
static void test_paths(void **state)
{
    static const size_t shapes[][3] = {{1, 1, 70003}, {1, 2500, 20}, {1, 20, 2500}, {2, 20000, 3},
                                       {3, 33000, 1}, {30, 25, 35},  {1, 3, 9000},  {2, 5000, 9}};
    (void)state;
    for (size_t q = 0; q < queue_count; q++)
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
            for (int x = 0; x < BROADCAST; x++)
                for (int t = 0; t < 2; t++) {
                    const drupe_dtype dtype = t ? DRUPE_FLOAT32 : DRUPE_INT32;
                    sample s;
                    if (!queue_is_host(queues[q]) && dtype == DRUPE_INT32) continue;
                    sample_make(queues[q], (drupe_dtype)dtype, (sample_layout)x, 3, shapes[i], 2, false, &s);
                    for (uint32_t axes = 1; axes < 8; axes++) {
                        reduce_and_check(DRUPE_OP_SUM, &s, axes, false);
                        if (dtype == DRUPE_INT32) reduce_and_check(DRUPE_OP_MIN, &s, axes, false);
                    }
                    sample_clear(&s);
                }
}

static void test_empty(void **state)
{
    static const size_t shape[] = {3, 0};
    (void)state;
    for (size_t q = 0; q < queue_count; q++)
        for (int op = DRUPE_OP_SUM; op <= DRUPE_OP_ALL; op++)
            for (int dtype = 0; dtype < DRUPE_DTYPE_COUNT; dtype++) {
                sample s;
                if (!takes((drupe_op)op, (drupe_dtype)dtype)) continue;
                if (!queue_is_host(queues[q]) && (dtype + op) % 4) continue;
                sample_make(queues[q], (drupe_dtype)dtype, CONTIGUOUS, 2, shape, 0, false, &s);
                for (uint32_t axes = 0; axes < 4; axes++) {
                    drupe_array out = {0};
                    if ((op != DRUPE_OP_MAX && op != DRUPE_OP_MIN) || !(axes & 2))
                        reduce_and_check((drupe_op)op, &s, axes, false);
                    else
                        assert_int_equal(
                            drupe_array_reduce((drupe_op)op, &s.array, axes, false, DRUPE_DTYPE_NONE, &out),
                            DRUPE_E_INVALID);
                }
                sample_clear(&s);
            }
}

static void test_not_a_number(void **state)
{
    static const size_t n = 70000;
    (void)state;
    for (size_t q = 0; q < queue_count; q++) {
        sample s;
        drupe_array out = {0};
        sample_make(queues[q], DRUPE_FLOAT32, CONTIGUOUS, 1, &n, 1, true, &s);
        for (int op = DRUPE_OP_SUM; op <= DRUPE_OP_MIN; op++) {
            CHECK(drupe_array_reduce((drupe_op)op, &s.array, 1, false, DRUPE_DTYPE_NONE, &out));
            float *value = array_fetch(&out);
            assert_true(isnan(*value));
            free(value);
            drupe_array_clear(&out);
        }
        sample_clear(&s);
    }
}

/* Float sums must not lose what a plain loop in float32 loses: 2^25 ones add up to 2^24 there. */
static void test_accuracy(void **state)
{
    static const size_t n = (size_t)1 << 25;
    (void)state;
    for (size_t q = 0; q < queue_count; q++) {
        drupe_array ones = {0}, out = {0};
        CHECK(drupe_array_empty(queues[q], DRUPE_MEM_DEVICE, DRUPE_FLOAT32, 1, &n, &ones));
        CHECK(drupe_array_assign(&ones, &(drupe_operand){.scalar = {.kind = DRUPE_SCALAR_KIND_INT, .i = 1}}));
        CHECK(drupe_array_reduce(DRUPE_OP_SUM, &ones, 1, false, DRUPE_DTYPE_NONE, &out));
        float *value = array_fetch(&out);
        assert_true(*value == 0x1p25f);
        free(value);
        drupe_array_clear(&out);
        drupe_array_clear(&ones);
    }
}

static void test_dtype(void **state)
{
    static const size_t shape[] = {30, 40};
    (void)state;
    for (size_t q = 0; q < queue_count; q++) {
        sample s;
        drupe_array out = {0};
        sample_make(queues[q], DRUPE_INT32, CONTIGUOUS, 2, shape, 1, false, &s);
        CHECK(drupe_array_reduce(DRUPE_OP_SUM, &s.array, 2, false, DRUPE_FLOAT32, &out));
        assert_int_equal(out.dtype, DRUPE_FLOAT32);
        check_result(DRUPE_OP_SUM, &s, 2, DRUPE_FLOAT32, &out, 0);
        drupe_array_clear(&out);
        CHECK(drupe_array_reduce(DRUPE_OP_SUM, &s.array, 1, false, DRUPE_INT32, &out));
        assert_int_equal(out.dtype, DRUPE_INT32);
        check_result(DRUPE_OP_SUM, &s, 1, DRUPE_INT32, &out, 0);
        drupe_array_clear(&out);
        CHECK(drupe_array_reduce(DRUPE_OP_PROD, &s.array, 1, false, DRUPE_UINT8, &out));
        assert_int_equal(out.dtype, DRUPE_UINT8);
        check_result(DRUPE_OP_PROD, &s, 1, DRUPE_UINT8, &out, 0);
        drupe_array_clear(&out);
        CHECK(drupe_array_reduce(DRUPE_OP_SUM, &s.array, 1, false, DRUPE_FLOAT16, &out));
        assert_int_equal(out.dtype, DRUPE_FLOAT16);
        check_result(DRUPE_OP_SUM, &s, 1, DRUPE_FLOAT16, &out, 0);
        drupe_array_clear(&out);
        assert_int_equal(drupe_array_reduce(DRUPE_OP_SUM, &s.array, 4, false, DRUPE_DTYPE_NONE, &out),
                         DRUPE_E_OUT_OF_RANGE);
        assert_int_equal(drupe_array_reduce(DRUPE_OP_ADD, &s.array, 1, false, DRUPE_DTYPE_NONE, &out),
                         DRUPE_E_INVALID);
        sample_clear(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_subsets),      cmocka_unit_test(test_paths),    cmocka_unit_test(test_empty),
        cmocka_unit_test(test_not_a_number), cmocka_unit_test(test_accuracy), cmocka_unit_test(test_dtype),
    };
    return cmocka_run_group_tests(tests, queues_open, queues_close);
}
