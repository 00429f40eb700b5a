/* Every element-wise operation on every pair of types and layouts, against arithmetic on single numbers. */
#include "array_fixture.h"
#include <stdlib.h>
#include <string.h>

static const size_t SHAPE[] = {3, 4, 5};

/* OpenCL promises a few units in the last place where the host is exact. */
static int tolerance(drupe_op op)
{
    switch ((int)op) {
    case DRUPE_OP_FLOOR_DIVIDE: return 1;
    case DRUPE_OP_RECIPROCAL:
    case DRUPE_OP_DIVIDE:
    case DRUPE_OP_SQRT:
    case DRUPE_OP_EXP:
    case DRUPE_OP_EXPM1:
    case DRUPE_OP_LOG:
    case DRUPE_OP_LOG2:
    case DRUPE_OP_LOG10:
    case DRUPE_OP_LOG1P:
    case DRUPE_OP_SINH:
    case DRUPE_OP_COSH:
    case DRUPE_OP_ASIN:
    case DRUPE_OP_ACOS:
    case DRUPE_OP_ASINH:
    case DRUPE_OP_ACOSH:
    case DRUPE_OP_HYPOT: return 4;
    case DRUPE_OP_SIN:
    case DRUPE_OP_COS:
    case DRUPE_OP_TAN:
    case DRUPE_OP_TANH:
    case DRUPE_OP_ATAN:
    case DRUPE_OP_ATANH: return 5;
    case DRUPE_OP_ATAN2: return 6;
    case DRUPE_OP_POW: return 16;
    case DRUPE_OP_LOGADDEXP: return 32; /* the sum of two logarithms loses what they have in common */
    default: return 0;
    }
}

/* The type that operands are rounded to, found without the engine's tables. */
static drupe_dtype common_type(drupe_op op, const drupe_operand *in, size_t nin)
{
    drupe_dtype common = DRUPE_DTYPE_NONE;
    if (op == DRUPE_OP_LOGICAL_AND || op == DRUPE_OP_LOGICAL_OR || op == DRUPE_OP_LOGICAL_XOR ||
        op == DRUPE_OP_LOGICAL_NOT)
        return DRUPE_BOOL;
    for (size_t i = 0; i < nin; i++)
        if (in[i].array)
            common = common == DRUPE_DTYPE_NONE ? in[i].array->dtype
                                                : drupe_dtype_promote(common, in[i].array->dtype);
    for (size_t i = 0; i < nin; i++) {
        if (in[i].array) continue;
        if (in[i].scalar.kind == DRUPE_SCALAR_KIND_FLOAT && is_whole(common)) common = DRUPE_FLOAT64;
        if (in[i].scalar.kind == DRUPE_SCALAR_KIND_INT && common == DRUPE_BOOL) common = DRUPE_INT64;
    }
    switch ((int)op) { /* of integers, these are floats */
    case DRUPE_OP_DIVIDE:
    case DRUPE_OP_ANGLE:
    case DRUPE_OP_ATAN2:
    case DRUPE_OP_HYPOT:
    case DRUPE_OP_COPYSIGN:
    case DRUPE_OP_NEXTAFTER:
    case DRUPE_OP_LOGADDEXP: return is_whole(common) ? DRUPE_FLOAT64 : common;
    default:
        return tolerance(op) && op != DRUPE_OP_POW && op != DRUPE_OP_FLOOR_DIVIDE && is_whole(common)
                   ? DRUPE_FLOAT64
                   : common;
    }
}

static number operand_at(const drupe_operand *in, const sample *s, int ndim, const size_t *index)
{
    return in->array ? sample_at(s, ndim, index) : number_of(&in->scalar);
}

/* Of complex functions the parts may lose what the whole has. */
static int complex_tolerance(drupe_op op, drupe_dtype common)
{
    return is_complex(common) && op != DRUPE_OP_REAL ? tolerance(op) + 24 : tolerance(op);
}

/* Compare `out` with the reference at every index. */
static void check_result(drupe_op op, const drupe_operand *in, const sample *samples, size_t nin,
                         const drupe_array *out)
{
    const drupe_dtype common = common_type(op, in, nin);
    const drupe_dtype compute = op == DRUPE_OP_NEXTAFTER ? common : computed_in(common);
    size_t index[DRUPE_MAX_DIMS] = {0};
    const size_t size = drupe_dtype_size(out->dtype);
    char *bytes = array_fetch(out);
    for (size_t k = 0; k < out->size; k++) {
        number x[2];
        for (size_t i = 0; i < nin; i++)
            x[i] =
                number_cast(number_cast(operand_at(&in[i], &samples[i], out->ndim, index), common), compute);
        const number a = x[0], b = x[nin - 1];
        const number expected = number_cast(number_apply(op, a, b), out->dtype);
        const number got = number_load(bytes + k * size, out->dtype);
        if (!number_close(got, expected, complex_tolerance(op, common)))
            fail_msg("%s of %s, element %zu: %s(%.17g %" PRId64 ", %.17g %" PRId64 ") = %.17g %" PRId64
                     ", not %.17g %" PRId64,
                     drupe_op_name(op), drupe_dtype_name(compute), k, drupe_op_name(op), a.f, a.i, b.f, b.i,
                     got.f, got.i, expected.f, expected.i);
        index_next(out->ndim, out->shape, index);
    }
    free(bytes);
}

static void apply_and_check(drupe_op op, const drupe_operand *in, const sample *samples, size_t nin)
{
    drupe_array out = {0};
    const drupe_dtype result = drupe_op_result(op, in, nin);
    if (result == DRUPE_DTYPE_NONE) {
        assert_int_not_equal(drupe_array_apply(op, in, nin, &out), DRUPE_OK);
        assert_null(out.memory);
        return;
    }
    CHECK(drupe_array_apply(op, in, nin, &out));
    assert_int_equal(out.dtype, result);
    check_result(op, in, samples, nin, &out);
    drupe_array_clear(&out);
}

/* On OpenCL each operation, layout and pair of types is a program to build: there an operation meets one type
 * that it is computed in, in turn another, and some a mixed pair. */
static bool worth_testing(const drupe_queue *queue, int op, drupe_dtype a, drupe_dtype b)
{
    if (queue_is_host(queue)) return a == b || ((int)a * DRUPE_DTYPE_COUNT + (int)b + op) % 9 == 0;
    if (a == DRUPE_COMPLEX64 && a == b) return drupe_op_arity((drupe_op)op) == 1;
    if (a == b) return (int)a == (op % 2 ? DRUPE_FLOAT32 : op / 2 % DRUPE_DTYPE_COUNT);
    if (a == DRUPE_INT32 && b == DRUPE_FLOAT32) return op % 8 == 0;
    return a == DRUPE_FLOAT64 && b == DRUPE_BOOL && op % 8 == 4;
}

static void binary_layouts(drupe_queue *queue, drupe_op op, drupe_dtype a, drupe_dtype b)
{
    for (int x = 0; x < LAYOUT_COUNT; x++) {
        for (int y = 0; y < LAYOUT_COUNT; y++) {
            sample samples[2];
            sample_make(queue, a, (sample_layout)x, 3, SHAPE, 1, true, &samples[0]);
            sample_make(queue, b, (sample_layout)y, 3, SHAPE, 40, true, &samples[1]);
            const drupe_operand in[] = {{.array = &samples[0].array}, {.array = &samples[1].array}};
            apply_and_check(op, in, samples, 2);
            sample_clear(&samples[1]);
            sample_clear(&samples[0]);
        }
    }
}

static void binary_scalars(drupe_queue *queue, drupe_op op, drupe_dtype dtype)
{
    static const drupe_scalar scalars[] = {{.kind = DRUPE_SCALAR_KIND_BOOL, .i = 1},
                                           {.kind = DRUPE_SCALAR_KIND_INT, .i = -3},
                                           {.kind = DRUPE_SCALAR_KIND_FLOAT, .f = 2.5}};
    for (int x = 0; x < LAYOUT_COUNT; x++) {
        sample samples[2];
        sample_make(queue, dtype, (sample_layout)x, 3, SHAPE, 9, true, &samples[0]);
        samples[1] = samples[0];
        for (size_t i = 0; i < 3; i++) {
            const drupe_operand array = {.array = &samples[0].array}, scalar = {.scalar = scalars[i]};
            if (!queue_is_host(queue) && (int)scalars[i].kind != (is_whole(dtype) ? 1 : 2)) continue;
            if (drupe_dtype_kind(dtype) == 'u' && scalars[i].i < 0) continue; /* see test_beyond */
            apply_and_check(op, (const drupe_operand[]){array, scalar}, samples, 2);
            apply_and_check(op, (const drupe_operand[]){scalar, array}, samples, 2);
        }
        sample_clear(&samples[0]);
    }
}

static void test_binary(void **state)
{
    (void)state;
    for (size_t q = 0; q < queue_count; q++)
        for (int op = 0; op < DRUPE_OP_COUNT; op++) {
            if (drupe_op_kind_of((drupe_op)op) != DRUPE_OP_ELEMENTWISE || drupe_op_arity((drupe_op)op) != 2)
                continue;
            for (int a = 0; a < DRUPE_DTYPE_COUNT; a++) {
                for (int b = 0; b < DRUPE_DTYPE_COUNT; b++)
                    if (worth_testing(queues[q], op, (drupe_dtype)a, (drupe_dtype)b))
                        binary_layouts(queues[q], (drupe_op)op, (drupe_dtype)a, (drupe_dtype)b);
                if (worth_testing(queues[q], op, (drupe_dtype)a, (drupe_dtype)a) &&
                    (queue_is_host(queues[q]) || op % 4 == 1))
                    binary_scalars(queues[q], (drupe_op)op, (drupe_dtype)a);
            }
        }
}

static void test_unary(void **state)
{
    (void)state;
    for (size_t q = 0; q < queue_count; q++)
        for (int op = 0; op < DRUPE_OP_COUNT; op++) {
            if (drupe_op_kind_of((drupe_op)op) != DRUPE_OP_ELEMENTWISE || drupe_op_arity((drupe_op)op) != 1)
                continue;
            for (int dtype = 0; dtype < DRUPE_DTYPE_COUNT; dtype++)
                for (int x = 0; x < LAYOUT_COUNT; x++) {
                    sample s;
                    if (!worth_testing(queues[q], op, (drupe_dtype)dtype, (drupe_dtype)dtype)) continue;
                    sample_make(queues[q], (drupe_dtype)dtype, (sample_layout)x, 3, SHAPE, 5, true, &s);
                    apply_and_check((drupe_op)op, &(drupe_operand){.array = &s.array}, &s, 1);
                    sample_clear(&s);
                }
        }
}

/* The condition is whether it differs from zero, whatever its type; the others promote among themselves. */
static void where_of(drupe_queue *queue, drupe_dtype condition, drupe_dtype a, drupe_dtype b, int layouts)
{
    static const sample_layout kinds[] = {CONTIGUOUS, TRANSPOSED, STRIDED, ROW};
    sample samples[3];
    sample_make(queue, condition, kinds[layouts % 4], 3, SHAPE, 2, true, &samples[0]);
    sample_make(queue, a, kinds[layouts / 4 % 4], 3, SHAPE, 1, true, &samples[1]);
    sample_make(queue, b, kinds[(layouts + 1) % 4], 3, SHAPE, 40, true, &samples[2]);
    for (int scalars = 0; scalars < 4; scalars++) {
        drupe_array out = {0};
        drupe_operand in[] = {{.array = &samples[0].array},
                              {.scalar = {.kind = DRUPE_SCALAR_KIND_INT, .i = 3}},
                              {.scalar = {.kind = DRUPE_SCALAR_KIND_FLOAT, .f = 0.5}}};
        for (int i = 0; i < 2; i++)
            if (!(scalars >> i & 1)) in[i + 1] = (drupe_operand){.array = &samples[i + 1].array};
        const drupe_dtype type = drupe_op_result(DRUPE_OP_WHERE, in, 3);
        if (scalars == 3) assert_int_equal(type, DRUPE_FLOAT64);
        if (scalars == 0) assert_int_equal(type, drupe_dtype_promote(a, b));
        CHECK(drupe_array_apply(DRUPE_OP_WHERE, in, 3, &out));
        assert_int_equal(out.dtype, type);
        size_t index[DRUPE_MAX_DIMS] = {0};
        char *bytes = array_fetch(&out);
        for (size_t k = 0; k < out.size; k++, index_next(out.ndim, out.shape, index)) {
            const number c = number_cast(sample_at(&samples[0], out.ndim, index), DRUPE_BOOL);
            const int chosen = c.i ? 1 : 2;
            const number expected =
                number_cast(operand_at(&in[chosen], &samples[chosen], out.ndim, index), type);
            assert_true(number_close(number_load(bytes + k * drupe_dtype_size(type), type), expected, 0));
        }
        free(bytes);
        drupe_array_clear(&out);
    }
    for (int i = 0; i < 3; i++) sample_clear(&samples[i]);
}

static void test_where(void **state)
{
    (void)state;
    for (size_t q = 0; q < queue_count; q++) {
        const bool host = queue_is_host(queues[q]);
        for (int layouts = 0; layouts < 16; layouts++)
            where_of(queues[q], DRUPE_BOOL, DRUPE_FLOAT32, DRUPE_FLOAT32, layouts);
        for (int a = 0; host && a < DRUPE_DTYPE_COUNT; a++)
            for (int b = a % 3; b < DRUPE_DTYPE_COUNT; b += 3)
                where_of(queues[q], (drupe_dtype)((a + b) % DRUPE_DTYPE_COUNT), (drupe_dtype)a,
                         (drupe_dtype)b, a + b);
        where_of(queues[q], DRUPE_FLOAT64, DRUPE_INT32, DRUPE_INT64, 5);
    }
}

/* Long enough for several work-items, blocks and vector tails. */
static void test_long(void **state)
{
    static const size_t shapes[][2] = {{1, 100003}, {317, 331}, {40001, 3}};
    static const drupe_op ops[] = {DRUPE_OP_ADD, DRUPE_OP_EXP, DRUPE_OP_LESS};
    (void)state;
    for (size_t q = 0; q < queue_count; q++)
        for (size_t i = 0; i < 3; i++)
            for (size_t k = 0; k < 3; k++)
                for (int x = 0; x < LAYOUT_COUNT - 1; x++) {
                    sample samples[2];
                    sample_make(queues[q], DRUPE_FLOAT32, (sample_layout)x, 2, shapes[i], 3, true,
                                &samples[0]);
                    sample_make(queues[q], DRUPE_INT32, CONTIGUOUS, 2, shapes[i], 8, false, &samples[1]);
                    const drupe_operand in[] = {{.array = &samples[0].array}, {.array = &samples[1].array}};
                    apply_and_check(ops[k], in, samples, (size_t)drupe_op_arity(ops[k]));
                    sample_clear(&samples[1]);
                    sample_clear(&samples[0]);
                }
}

static void test_empty(void **state)
{
    static const size_t shape[] = {2, 0, 3};
    (void)state;
    for (size_t q = 0; q < queue_count; q++) {
        sample samples[2];
        sample_make(queues[q], DRUPE_FLOAT32, CONTIGUOUS, 3, shape, 0, false, &samples[0]);
        sample_make(queues[q], DRUPE_FLOAT32, ROW, 3, shape, 0, false, &samples[1]);
        const drupe_operand in[] = {{.array = &samples[0].array}, {.array = &samples[1].array}};
        drupe_array out = {0};
        CHECK(drupe_array_apply(DRUPE_OP_ADD, in, 2, &out));
        assert_int_equal(out.ndim, 3);
        assert_int_equal(out.size, 0);
        assert_int_equal(out.shape[2], 3);
        CHECK(drupe_array_apply(DRUPE_OP_ADD, in, 2, &out));
        drupe_array_clear(&out);
        sample_clear(&samples[1]);
        sample_clear(&samples[0]);
    }
}

/* Results are stored in place in types of their kind, or of a higher one. */
static bool may_hold(drupe_dtype out, drupe_dtype result)
{
    static const char kinds[] = "biufc";
    const char to = drupe_dtype_kind(out), from = drupe_dtype_kind(result);
    if (to == 'i' && from == 'u') return true;
    if (to == 'u' && from == 'i') return false;
    return strchr(kinds, from) <= strchr(kinds, to);
}

static void test_in_place(void **state)
{
    (void)state;
    for (size_t q = 0; q < queue_count; q++)
        for (int a = 0; a < DRUPE_DTYPE_COUNT; a++)
            for (int b = 0; b < DRUPE_DTYPE_COUNT; b++)
                for (int x = 0; x < BROADCAST; x++) {
                    sample samples[2];
                    if (!worth_testing(queues[q], DRUPE_OP_SUBTRACT, (drupe_dtype)a, (drupe_dtype)b))
                        continue;
                    sample_make(queues[q], (drupe_dtype)a, (sample_layout)x, 3, SHAPE, 1, false, &samples[0]);
                    sample_make(queues[q], (drupe_dtype)b, ROW, 3, SHAPE, 7, false, &samples[1]);
                    const drupe_operand in[] = {{.array = &samples[0].array}, {.array = &samples[1].array}};
                    const drupe_dtype result = drupe_op_result(DRUPE_OP_MULTIPLY, in, 2);
                    drupe_array out;
                    drupe_array_view(&samples[0].array, &out);
                    const bool fits = may_hold((drupe_dtype)a, result);
                    const drupe_status status = drupe_array_apply(DRUPE_OP_MULTIPLY, in, 2, &out);
                    assert_int_equal(status, fits ? DRUPE_OK : DRUPE_E_INVALID);
                    if (fits) check_result(DRUPE_OP_MULTIPLY, in, samples, 2, &out);
                    drupe_array_clear(&out);
                    sample_clear(&samples[1]);
                    sample_clear(&samples[0]);
                }
}

/* out is a shifted or reversed view of an input. */
static void test_overlap(void **state)
{
    static const size_t n = 5000;
    (void)state;
    for (size_t q = 0; q < queue_count; q++)
        for (int reversed = 0; reversed < 2; reversed++) {
            sample s;
            sample_make(queues[q], DRUPE_INT32, CONTIGUOUS, 1, &n, 1, false, &s);
            drupe_array whole, out;
            drupe_array_view(&s.array, &whole);
            drupe_array_view(&s.array, &out);
            const ptrdiff_t last = (ptrdiff_t)n - 1;
            const drupe_slice from = {0, 1, n - 1, false};
            const drupe_slice forward = {1, 1, n - 1, false}, backward = {last, -1, n - 1, false};
            CHECK(drupe_array_slice(&s.array, &from));
            CHECK(drupe_array_slice(&out, reversed ? &backward : &forward));
            const drupe_operand in[] = {{.array = &s.array}, {.array = &s.array}};
            CHECK(drupe_array_apply(DRUPE_OP_ADD, in, 2, &out));
            check_result(DRUPE_OP_ADD, in, (const sample[]){s, s}, 2, &out);
            drupe_array_clear(&out);
            drupe_array_clear(&whole);
            sample_clear(&s);
        }
}

/* An output of a higher kind receives what the type of the result holds: not what was computed in a wider
 * one. */
static void test_wider_out(void **state)
{
    static const size_t shape[] = {3, 4, 5};
    static const struct {
        drupe_op op;
        drupe_dtype in;
    } cases[] = {{DRUPE_OP_ADD, DRUPE_UINT32},     {DRUPE_OP_NEGATIVE, DRUPE_UINT64},
                 {DRUPE_OP_POW, DRUPE_UINT8},      {DRUPE_OP_FLOOR_DIVIDE, DRUPE_INT8},
                 {DRUPE_OP_DIVIDE, DRUPE_FLOAT16}, {DRUPE_OP_BITWISE_INVERT, DRUPE_UINT16},
                 {DRUPE_OP_SQUARE, DRUPE_FLOAT16}};
    (void)state;
    for (size_t q = 0; q < queue_count; q++)
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            sample samples[2];
            drupe_array out, plain = {0};
            sample_make(queues[q], cases[i].in, CONTIGUOUS, 3, shape, 1, true, &samples[0]);
            sample_make(queues[q], cases[i].in, CONTIGUOUS, 3, shape, 9, true, &samples[1]);
            const drupe_operand in[] = {{.array = &samples[0].array}, {.array = &samples[1].array}};
            const size_t nin = (size_t)drupe_op_arity(cases[i].op);
            CHECK(drupe_array_empty(queues[q], DRUPE_MEM_DEVICE, DRUPE_FLOAT64, 3, shape, &out));
            CHECK(drupe_array_apply(cases[i].op, in, nin, &out));
            CHECK(drupe_array_apply(cases[i].op, in, nin, &plain));
            char *wide = array_fetch(&out), *narrow = array_fetch(&plain);
            for (size_t k = 0; k < out.size; k++)
                assert_true(number_close(
                    number_load(wide + 8 * k, DRUPE_FLOAT64),
                    number_cast(number_load(narrow + k * drupe_dtype_size(plain.dtype), plain.dtype),
                                DRUPE_FLOAT64),
                    0));
            free(narrow);
            free(wide);
            drupe_array_clear(&plain);
            drupe_array_clear(&out);
            sample_clear(&samples[1]);
            sample_clear(&samples[0]);
        }
}

/* Numbers that the type of the array does not hold are still less, greater or not equal. */
static void test_beyond(void **state)
{
    static const size_t n = 50;
    static const drupe_op ops[] = {DRUPE_OP_LESS, DRUPE_OP_EQUAL, DRUPE_OP_GREATER_EQUAL};
    static const drupe_scalar scalars[] = {
        {.kind = DRUPE_SCALAR_KIND_INT, .i = INT64_MIN},
        {.kind = DRUPE_SCALAR_KIND_INT, .i = -1},
        {.kind = DRUPE_SCALAR_KIND_INT, .i = 256},
        {.kind = DRUPE_SCALAR_KIND_INT, .i = INT64_MAX},
        {.kind = DRUPE_SCALAR_KIND_INT, .i = INT64_MIN, .big = true}, /* 2**63 */
    };
    (void)state;
    for (size_t q = 0; q < queue_count; q++)
        for (int dtype = DRUPE_INT8; dtype <= DRUPE_UINT64; dtype++)
            for (size_t i = 0; i < sizeof(scalars) / sizeof(scalars[0]); i++)
                for (size_t k = 0; k < 3; k++) {
                    if (!queue_is_host(queues[q]) && (dtype + (int)i + (int)k) % 8) continue;
                    sample s;
                    drupe_array out = {0};
                    sample_make(queues[q], (drupe_dtype)dtype, CONTIGUOUS, 1, &n, 1, true, &s);
                    const drupe_operand in[] = {{.array = &s.array}, {.scalar = scalars[i]}};
                    CHECK(drupe_array_apply(ops[k], in, 2, &out));
                    char *bytes = array_fetch(&out);
                    for (size_t j = 0; j < n; j++) {
                        const number a = sample_at(&s, 1, &j), b = number_of(&scalars[i]);
                        const bool a_big = a.dtype == DRUPE_UINT64 && a.i < 0;
                        const int order =
                            a_big != scalars[i].big ? (a_big ? 1 : -1) : (a.i > b.i) - (a.i < b.i);
                        assert_int_equal(bytes[j], k == 0 ? order < 0 : k == 1 ? order == 0 : order >= 0);
                    }
                    free(bytes);
                    drupe_array_clear(&out);
                    sample_clear(&s);
                }
}

static void test_errors(void **state)
{
    static const size_t shape[] = {2, 3}, other[] = {4};
    drupe_array out = {0};
    (void)state;
    for (size_t q = 0; q < queue_count; q++) {
        sample a, b, c;
        sample_make(queues[q], DRUPE_INT32, CONTIGUOUS, 2, shape, 0, false, &a);
        sample_make(queues[q], DRUPE_INT32, CONTIGUOUS, 1, other, 0, false, &b);
        sample_make(queues[queue_count - 1 - q], DRUPE_INT32, CONTIGUOUS, 2, shape, 0, false, &c);
        const drupe_operand clash[] = {{.array = &a.array}, {.array = &b.array}};
        assert_int_equal(drupe_array_apply(DRUPE_OP_ADD, clash, 2, &out), DRUPE_E_INVALID);
        assert_non_null(strstr(drupe_error_last()->text, "(2, 3) and (4,)"));
        assert_int_equal(drupe_array_apply(DRUPE_OP_ADD, clash, 1, &out), DRUPE_E_INVALID);
        assert_int_equal(drupe_array_apply(DRUPE_OP_SUM, clash, 1, &out), DRUPE_E_INVALID);
        assert_int_equal(drupe_array_apply(DRUPE_OP_NEGATIVE, &(drupe_operand){.scalar = {.i = 1}}, 1, &out),
                         DRUPE_E_INVALID);
        const drupe_operand large[] = {{.array = &a.array},
                                       {.scalar = {.kind = DRUPE_SCALAR_KIND_INT, .i = INT64_C(1) << 40}}};
        assert_int_equal(drupe_array_apply(DRUPE_OP_ADD, large, 2, &out), DRUPE_E_OUT_OF_RANGE);
        CHECK(drupe_array_apply(DRUPE_OP_LESS, large, 2, &out));
        drupe_array_clear(&out);
        if (queue_count > 1) {
            const drupe_operand apart[] = {{.array = &a.array}, {.array = &c.array}};
            assert_int_equal(drupe_array_apply(DRUPE_OP_ADD, apart, 2, &out), DRUPE_E_PLACEMENT);
            assert_non_null(strstr(drupe_error_last()->text, "to_device"));
        }
        assert_null(out.memory);
        sample_clear(&c);
        sample_clear(&b);
        sample_clear(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_binary), cmocka_unit_test(test_unary),    cmocka_unit_test(test_long),
        cmocka_unit_test(test_empty),  cmocka_unit_test(test_in_place), cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_errors), cmocka_unit_test(test_where),    cmocka_unit_test(test_wider_out),
        cmocka_unit_test(test_beyond),
    };
    return cmocka_run_group_tests(tests, queues_open, queues_close);
}
