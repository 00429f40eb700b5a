/* Element types: names, promotion, results with weak scalars, and scalars as elements. */
#include "array_fixture.h"
#include <math.h>
#include <string.h>

enum {
    B = DRUPE_BOOL,
    I8 = DRUPE_INT8,
    U8 = DRUPE_UINT8,
    I16 = DRUPE_INT16,
    U16 = DRUPE_UINT16,
    I32 = DRUPE_INT32,
    U32 = DRUPE_UINT32,
    I = DRUPE_INT64,
    U = DRUPE_UINT64,
    H = DRUPE_FLOAT16,
    F = DRUPE_FLOAT32,
    D = DRUPE_FLOAT64,
    C = DRUPE_COMPLEX64,
    Z = DRUPE_COMPLEX128,
    TYPES
};

static void test_names(void **state)
{
    static const struct {
        const char *name, *typestr;
        size_t size;
        int real;
    } types[] = {{"bool", "|b1", 1, B},      {"int8", "|i1", 1, I8},       {"uint8", "|u1", 1, U8},
                 {"int16", "<i2", 2, I16},   {"uint16", "<u2", 2, U16},    {"int32", "<i4", 4, I32},
                 {"uint32", "<u4", 4, U32},  {"int64", "<i8", 8, I},       {"uint64", "<u8", 8, U},
                 {"float16", "<f2", 2, H},   {"float32", "<f4", 4, F},     {"float64", "<f8", 8, D},
                 {"complex64", "<c8", 8, F}, {"complex128", "<c16", 16, D}};
    (void)state;
    assert_int_equal(TYPES, DRUPE_DTYPE_COUNT);
    for (int i = 0; i < DRUPE_DTYPE_COUNT; i++) {
        assert_string_equal(drupe_dtype_name((drupe_dtype)i), types[i].name);
        assert_int_equal(drupe_dtype_size((drupe_dtype)i), types[i].size);
        assert_int_equal(drupe_dtype_find(types[i].name), i);
        assert_int_equal(drupe_dtype_find(types[i].typestr), i);
        assert_int_equal(drupe_dtype_kind((drupe_dtype)i), types[i].typestr[1]);
        assert_int_equal(drupe_dtype_real((drupe_dtype)i), types[i].real);
    }
    assert_int_equal(drupe_dtype_find("?"), DRUPE_BOOL);
    assert_int_equal(drupe_dtype_find("complex256"), DRUPE_DTYPE_NONE);
    assert_int_equal(drupe_dtype_find(">f4"), DRUPE_DTYPE_NONE);
    assert_int_equal(drupe_dtype_find(""), DRUPE_DTYPE_NONE);
    assert_int_equal(drupe_dtype_find(NULL), DRUPE_DTYPE_NONE);
    assert_int_equal(drupe_dtype_size(DRUPE_DTYPE_NONE), 0);
    assert_int_equal(drupe_dtype_kind(DRUPE_DTYPE_NONE), '?');
    assert_int_equal(drupe_dtype_real(DRUPE_DTYPE_NONE), DRUPE_DTYPE_NONE);
}

/* The rule behind NumPy's table: the least type of the higher kind that has every number of both. */
static int promoted(int a, int b)
{
    static const int digits[] = {1, 7, 8, 15, 16, 31, 32, 63, 64, 11, 24, 53, 24, 53};
    static const int floats[] = {H, F, D}, complexes[] = {C, Z}, integers[] = {I8, I16, I32, I};
    const char ka = drupe_dtype_kind((drupe_dtype)a), kb = drupe_dtype_kind((drupe_dtype)b);
    const int most = digits[a] > digits[b] ? digits[a] : digits[b];
    if (ka == kb || ka == 'b' || kb == 'b') return a > b ? a : b;
    if (ka == 'c' || kb == 'c') return complexes[most > 24];
    if (ka == 'f' || kb == 'f') return most > 24 ? D : floats[most > 11];
    for (int i = 0; i < 4; i++)
        if (digits[integers[i]] >= most) return integers[i];
    return D;
}

static void test_promotion(void **state)
{
    (void)state;
    for (int a = 0; a < DRUPE_DTYPE_COUNT; a++)
        for (int b = 0; b < DRUPE_DTYPE_COUNT; b++)
            assert_int_equal(drupe_dtype_promote((drupe_dtype)a, (drupe_dtype)b), promoted(a, b));
    assert_int_equal(drupe_dtype_promote(DRUPE_DTYPE_NONE, DRUPE_BOOL), DRUPE_DTYPE_NONE);
}

static drupe_dtype result_with(drupe_op op, drupe_dtype dtype, drupe_scalar scalar)
{
    static const size_t shape[] = {2};
    sample s;
    sample_make(queues[0], dtype, CONTIGUOUS, 1, shape, 0, false, &s);
    const drupe_operand in[] = {{.array = &s.array}, {.scalar = scalar}};
    const drupe_dtype result = drupe_op_result(op, in, 2);
    sample_clear(&s);
    return result;
}

static void test_weak_scalars(void **state)
{
    /* Rows: array type. Columns: bool, int, float, complex scalar. */
    static const int add[TYPES][4] = {{B, I, D, Z},     {I8, I8, D, Z},   {U8, U8, D, Z},   {I16, I16, D, Z},
                                      {U16, U16, D, Z}, {I32, I32, D, Z}, {U32, U32, D, Z}, {I, I, D, Z},
                                      {U, U, D, Z},     {H, H, H, C},     {F, F, F, C},     {D, D, D, Z},
                                      {C, C, C, C},     {Z, Z, Z, Z}};
    (void)state;
    for (int dtype = 0; dtype < TYPES; dtype++)
        for (int kind = 0; kind < 4; kind++) {
            const drupe_dtype t = (drupe_dtype)dtype;
            const drupe_scalar scalar = {.kind = kind, .i = 1, .f = 1.5};
            const int sum = add[dtype][kind], quotient = sum < H ? D : sum;
            assert_int_equal(result_with(DRUPE_OP_ADD, t, scalar), sum);
            assert_int_equal(result_with(DRUPE_OP_DIVIDE, t, scalar), quotient);
            assert_int_equal(result_with(DRUPE_OP_LESS, t, scalar), sum < C ? B : DRUPE_DTYPE_NONE);
            assert_int_equal(result_with(DRUPE_OP_EQUAL, t, scalar), B);
            assert_int_equal(result_with(DRUPE_OP_LOGICAL_AND, t, scalar), B);
        }
    const drupe_scalar truth = {.kind = DRUPE_SCALAR_KIND_BOOL};
    assert_int_equal(result_with(DRUPE_OP_SUBTRACT, DRUPE_BOOL, truth), DRUPE_DTYPE_NONE);
    assert_non_null(strstr(drupe_error_last()->text, "astype"));
}

/* What the integer types hold, and what they do not. */
static void test_ranges(void **state)
{
    (void)state;
    for (int dtype = I8; dtype <= U; dtype++) {
        const drupe_dtype t = (drupe_dtype)dtype;
        const number low = number_identity(DRUPE_OP_MAX, t), high = number_identity(DRUPE_OP_MIN, t);
        drupe_scalar scalar = {.kind = DRUPE_SCALAR_KIND_INT, .i = low.i}, back;
        char bytes[16];
        CHECK(drupe_scalar_bytes(&scalar, t, bytes));
        assert_true(number_close(number_load(bytes, t), low, 0));
        drupe_scalar_load(bytes, t, &back);
        assert_true(back.i == low.i && !back.big && back.kind == DRUPE_SCALAR_KIND_INT);
        scalar.i = high.i;
        scalar.big = t == DRUPE_UINT64;
        CHECK(drupe_scalar_bytes(&scalar, t, bytes));
        assert_true(number_close(number_load(bytes, t), high, 0));
        drupe_scalar_load(bytes, t, &back);
        assert_true(back.i == high.i && back.big == scalar.big);
        scalar = (drupe_scalar){.kind = DRUPE_SCALAR_KIND_INT, .i = (int64_t)((uint64_t)high.i + 1)};
        scalar.big = t == DRUPE_INT64;
        if (t != DRUPE_UINT64) {
            assert_int_equal(drupe_scalar_bytes(&scalar, t, bytes), DRUPE_E_OUT_OF_RANGE);
            assert_int_equal(result_with(DRUPE_OP_ADD, t, scalar), DRUPE_DTYPE_NONE);
            assert_int_equal(result_with(DRUPE_OP_LESS, t, scalar), DRUPE_BOOL);
        }
        scalar = (drupe_scalar){.kind = DRUPE_SCALAR_KIND_INT, .i = low.i - (t != DRUPE_INT64)};
        if (t != DRUPE_INT64) assert_int_equal(drupe_scalar_bytes(&scalar, t, bytes), DRUPE_E_OUT_OF_RANGE);
        scalar = (drupe_scalar){.kind = DRUPE_SCALAR_KIND_FLOAT, .f = 100.75};
        CHECK(drupe_scalar_bytes(&scalar, t, bytes));
        assert_int_equal(number_load(bytes, t).i, 100);
        scalar.f = NAN;
        assert_int_equal(drupe_scalar_bytes(&scalar, t, bytes), DRUPE_E_OUT_OF_RANGE);
        scalar = (drupe_scalar){.kind = DRUPE_SCALAR_KIND_COMPLEX, .f = 1};
        assert_int_equal(drupe_scalar_bytes(&scalar, t, bytes), DRUPE_E_INVALID);
    }
}

/* Every float16 there is comes back, and what lies between two goes to the nearer, or to the even one. */
static void test_halves(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x7c00; bits++) {
        const uint16_t here = (uint16_t)bits, even = (uint16_t)(bits + (bits & 1));
        drupe_scalar low, scalar;
        uint16_t got;
        drupe_scalar_load(&here, DRUPE_FLOAT16, &low);
        const double next = number_load(&(uint16_t){(uint16_t)(bits + 1)}, DRUPE_FLOAT16).f;
        const double above = bits == 0x7bff ? 65536 : next, middle = (low.f + above) / 2;
        assert_true(low.f == number_load(&here, DRUPE_FLOAT16).f);
        const struct {
            double value;
            uint16_t bits;
        } cases[] = {{low.f, here},
                     {middle, even},
                     {nextafter(middle, 0), here},
                     {nextafter(middle, INFINITY), (uint16_t)(here + 1)}};
        for (size_t i = 0; i < 4; i++) {
            scalar = (drupe_scalar){.kind = DRUPE_SCALAR_KIND_FLOAT, .f = cases[i].value};
            CHECK(drupe_scalar_bytes(&scalar, DRUPE_FLOAT16, &got));
            assert_int_equal(got, cases[i].bits);
            scalar.f = -cases[i].value;
            CHECK(drupe_scalar_bytes(&scalar, DRUPE_FLOAT16, &got));
            assert_int_equal(got, cases[i].bits | 0x8000);
        }
    }
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
        cmocka_unit_test(test_names),  cmocka_unit_test(test_promotion), cmocka_unit_test(test_weak_scalars),
        cmocka_unit_test(test_ranges), cmocka_unit_test(test_halves),    cmocka_unit_test(test_operations),
    };
    return cmocka_run_group_tests(tests, queues_open, queues_close);
}
