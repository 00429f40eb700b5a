/* Element types: names, promotion, results with weak scalars. */
#include "array_fixture.h"
#include <string.h>

enum { B = DRUPE_BOOL, I = DRUPE_INT32, L = DRUPE_INT64, F = DRUPE_FLOAT32, D = DRUPE_FLOAT64 };

static void test_names(void **state)
{
    static const char *const names[] = {"bool", "int32", "int64", "float32", "float64"};
    static const char *const typestrs[] = {"|b1", "<i4", "<i8", "<f4", "<f8"};
    static const size_t sizes[] = {1, 4, 8, 4, 8};
    (void)state;
    for (int i = 0; i < DRUPE_DTYPE_COUNT; i++) {
        assert_string_equal(drupe_dtype_name((drupe_dtype)i), names[i]);
        assert_int_equal(drupe_dtype_size((drupe_dtype)i), sizes[i]);
        assert_int_equal(drupe_dtype_find(names[i]), i);
        assert_int_equal(drupe_dtype_find(typestrs[i]), i);
    }
    assert_int_equal(drupe_dtype_find("?"), DRUPE_BOOL);
    assert_int_equal(drupe_dtype_find("complex64"), DRUPE_DTYPE_NONE);
    assert_int_equal(drupe_dtype_find(">f4"), DRUPE_DTYPE_NONE);
    assert_int_equal(drupe_dtype_find(""), DRUPE_DTYPE_NONE);
    assert_int_equal(drupe_dtype_find(NULL), DRUPE_DTYPE_NONE);
    assert_int_equal(drupe_dtype_size(DRUPE_DTYPE_NONE), 0);
}

static void test_promotion(void **state)
{
    static const int expected[5][5] = {
        {B, I, L, F, D}, {I, I, L, D, D}, {L, L, L, D, D}, {F, D, D, F, D}, {D, D, D, D, D}};
    (void)state;
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < 5; b++)
            assert_int_equal(drupe_dtype_promote((drupe_dtype)a, (drupe_dtype)b), expected[a][b]);
    assert_int_equal(drupe_dtype_promote(DRUPE_DTYPE_NONE, DRUPE_BOOL), DRUPE_DTYPE_NONE);
}

static drupe_dtype result_with_scalar(drupe_op op, drupe_dtype dtype, int kind)
{
    static const size_t shape[] = {2};
    sample s;
    sample_make(queues[0], dtype, CONTIGUOUS, 1, shape, 0, false, &s);
    drupe_operand in[] = {{.array = &s.array}, {.array = NULL}};
    in[1].scalar.kind = kind;
    in[1].scalar.i = 1;
    in[1].scalar.f = 1.5;
    const drupe_dtype result = drupe_op_result(op, in, 2);
    sample_clear(&s);
    return result;
}

static void test_weak_scalars(void **state)
{
    /* Rows: array type. Columns: bool, int, float scalar. */
    static const int add[5][3] = {{B, L, D}, {I, I, D}, {L, L, D}, {F, F, F}, {D, D, D}};
    static const int divide[5][3] = {{D, D, D}, {D, D, D}, {D, D, D}, {F, F, F}, {D, D, D}};
    (void)state;
    for (int dtype = 0; dtype < 5; dtype++)
        for (int kind = 0; kind < 3; kind++) {
            const drupe_dtype t = (drupe_dtype)dtype;
            assert_int_equal(result_with_scalar(DRUPE_OP_ADD, t, kind), add[dtype][kind]);
            assert_int_equal(result_with_scalar(DRUPE_OP_DIVIDE, t, kind), divide[dtype][kind]);
            assert_int_equal(result_with_scalar(DRUPE_OP_LESS, t, kind), B);
            assert_int_equal(result_with_scalar(DRUPE_OP_LOGICAL_AND, t, kind), B);
        }
    assert_int_equal(result_with_scalar(DRUPE_OP_SUBTRACT, DRUPE_BOOL, DRUPE_SCALAR_KIND_BOOL),
                     DRUPE_DTYPE_NONE);
    assert_non_null(strstr(drupe_error_last()->text, "astype"));
}

static void test_operations(void **state)
{
    (void)state;
    for (int op = 0; op < DRUPE_OP_COUNT; op++) {
        assert_true(strlen(drupe_op_name((drupe_op)op)) > 1);
        assert_uint_in_range(drupe_op_arity((drupe_op)op), 1, 3);
    }
    assert_string_equal(drupe_op_name(DRUPE_OP_FLOOR_DIVIDE), "floor_divide");
    assert_int_equal(drupe_op_kind_of(DRUPE_OP_SUM), DRUPE_OP_REDUCTION);
    assert_int_equal(drupe_op_kind_of(DRUPE_OP_ADD), DRUPE_OP_ELEMENTWISE);
    assert_int_equal(drupe_op_result(DRUPE_OP_ADD, NULL, 1), DRUPE_DTYPE_NONE);
    assert_int_equal(drupe_op_result(DRUPE_OP_COUNT, NULL, 0), DRUPE_DTYPE_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_promotion),
        cmocka_unit_test(test_weak_scalars),
        cmocka_unit_test(test_operations),
    };
    return cmocka_run_group_tests(tests, queues_open, queues_close);
}
