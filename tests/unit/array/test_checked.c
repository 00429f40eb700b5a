/* Instrumented kernels: indices outside of an operand are reported, and nothing is touched there. The kernels
 * are right, so what they are told is wrong here. That they report nothing otherwise is seen by the other
 * tests of this folder, which run in checked mode, too. */
#include "array/array_room.h"
#include "array_fixture.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N      200 /* elements that there are */
#define SHOWN  100 /* that the operands have */
#define FILLED 7

struct bench {
    drupe_queue *queue;
    drupe_target *target;
    drupe_array whole[3], operands[3]; /* float32; the second are views of the first halves of the first */
};

static void make(struct bench *b, drupe_queue *queue)
{
    const size_t count = N;
    const drupe_operand value = {.scalar = {.kind = DRUPE_SCALAR_KIND_INT, .i = FILLED}};
    *b = (struct bench){.queue = queue};
    drupe_check_begin();
    CHECK(drupe_target_get(queue, &b->target));
    assert_true(b->target->checked);
    for (int i = 0; i < 3; i++) {
        CHECK(drupe_array_empty(queue, DRUPE_MEM_DEVICE, DRUPE_FLOAT32, 1, &count, &b->whole[i]));
        CHECK(drupe_array_assign(&b->whole[i], &value));
        b->operands[i] = b->whole[i];
        b->operands[i].size = b->operands[i].shape[0] = SHOWN;
    }
    CHECK(drupe_queue_wait(queue, DRUPE_FOREVER));
}

static void drop(struct bench *b)
{
    for (int i = 0; i < 3; i++) drupe_array_clear(&b->whole[i]);
    drupe_check_end();
}

static drupe_status launch(struct bench *b, kernel_parts key, size_t operands, const void *params,
                           size_t size)
{
    void *pointers[3];
    drupe_arg args[4];
    drupe_access accesses[3];
    size_t elements[3];
    drupe_range range;
    for (size_t i = 0; i < operands; i++) {
        pointers[i] = drupe_array_pointer(&b->operands[i]);
        args[i] = (drupe_arg){DRUPE_ARG_POINTER, sizeof(void *), &pointers[i]};
        accesses[i] = drupe_layout_access(&b->operands[i], i == 0);
        elements[i] = sizeof(float);
    }
    args[operands] = (drupe_arg){DRUPE_ARG_VALUE, size, params};
    if (b->target->builtin) {
        key.layout = 0;
        key.out = key.in[0] = key.in[1] = -1;
    }
    drupe_target_range(b->target, SHOWN, 16, &range);
    const drupe_submission s = {
        .queue = b->queue, .ordered = true, .accesses = accesses, .naccesses = operands, .site = 77};
    kernel_recipe recipe;
    drupe_recipe_make(&key, &recipe);
    CHECK(drupe_target_submit(b->target, &recipe, &s, &range, args, operands + 1, elements));
    return drupe_queue_wait(b->queue, DRUPE_FOREVER);
}

/* Argument `operand` is told about, and what is behind the operands is as it was. */
static void expect_report(struct bench *b, drupe_status status, int operand)
{
    char part[32];
    const char *text = drupe_error_last()->text;
    snprintf(part, sizeof part, "of argument %d,", operand);
    assert_int_equal(status, DRUPE_E_CHECK);
    if (!strstr(text, "Out of bounds: '") || !strstr(text, part)) fail_msg("%s", text);
    for (int i = 0; i < 3; i++) {
        float *found = array_fetch(&b->whole[i]);
        for (size_t k = SHOWN; k < N; k++) {
            if (found[k] != FILLED) fail_msg("element %zu of operand %d is %f", k, i, (double)found[k]);
        }
        free(found);
    }
}

static void each(void (*test)(struct bench *b))
{
    for (size_t q = 0; q < queue_count; q++) {
        struct bench b;
        make(&b, queues[q]);
        test(&b);
        drop(&b);
    }
}

#define KEY(shape, op, layout)                                                                               \
    {                                                                                                        \
        shape, op, layout, DRUPE_FLOAT32, DRUPE_FLOAT32,                                                     \
        {                                                                                                    \
            DRUPE_FLOAT32, -1, -1                                                                            \
        }                                                                                                    \
    }

static void map_flat(struct bench *b)
{
    kernel_parts key = KEY(SHAPE_MAP, DRUPE_OP_ADD, 0);
    drupe_map_head p = {.n = SHOWN, .dtypes = {DRUPE_FLOAT32, DRUPE_FLOAT32, DRUPE_FLOAT32}};
    key.in[1] = DRUPE_FLOAT32;
    uint64_t before = drupe_check_findings();
    CHECK(launch(b, key, 3, &p, sizeof p));
    assert_int_equal(drupe_check_findings(), before);
    p.n = SHOWN + 1;
    drupe_status status = launch(b, key, 3, &p, sizeof p);
    assert_int_equal(status, DRUPE_E_CHECK);
    const char *text = drupe_error_last()->text;
    if (!strstr(text, "element 100 of argument") || !strstr(text, "0 to 99")) fail_msg("%s", text);
    /* One operand shorter than the others: it is the one. */
    p.n = SHOWN;
    b->operands[2].size = b->operands[2].shape[0] = SHOWN - 1;
    expect_report(b, launch(b, key, 3, &p, sizeof p), 2);
    CHECK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
}

static void map_strided(struct bench *b)
{
    kernel_parts key = KEY(SHAPE_MAP, DRUPE_OP_NEGATIVE, LAYOUT_STRIDED);
    drupe_map_params p = {.head = {.n = SHOWN, .dtypes = {DRUPE_FLOAT32, DRUPE_FLOAT32}, .ndim = 2},
                          .shape = {10, 10},
                          .strides = {{10, 1}, {1, 10}}};
    CHECK(launch(b, key, 2, &p, sizeof p));
    p.strides[1][0] = 2; /* to 108 */
    expect_report(b, launch(b, key, 2, &p, sizeof p), 1);
    p.strides[1][0] = -1;
    expect_report(b, launch(b, key, 2, &p, sizeof p), 1);
    p.strides[1][0] = 1;
    p.strides[0][0] = 11; /* to 108; no two work-items write one element */
    expect_report(b, launch(b, key, 2, &p, sizeof p), 0);
}

static void reduce_rows(struct bench *b)
{
    kernel_parts key = KEY(SHAPE_ROW, DRUPE_OP_SUM, LAYOUT_STRIDED);
    drupe_reduce_params p = {.outputs = 10, .extent = 10, .stride = 10, .splits = 1, .team = 1, .ndim = 1};
    p.shape[0] = 10;
    p.strides[0] = 1;
    p.in_dtype = p.out_dtype = DRUPE_FLOAT32;
    CHECK(launch(b, key, 2, &p, sizeof p));
    p.stride = 11; /* to 108 */
    expect_report(b, launch(b, key, 2, &p, sizeof p), 1);
    p.stride = 10;
    b->operands[0].size = b->operands[0].shape[0] = 9;
    expect_report(b, launch(b, key, 2, &p, sizeof p), 0);
}

static void reduce_columns(struct bench *b)
{
    kernel_parts key = KEY(SHAPE_COLUMN, DRUPE_OP_MAX, LAYOUT_STRIDED);
    drupe_reduce_params p = {.outputs = 10, .extent = 10, .stride = 10, .splits = 1, .team = 1, .ndim = 1};
    p.shape[0] = 10;
    p.strides[0] = 1;
    p.in_dtype = p.out_dtype = DRUPE_FLOAT32;
    CHECK(launch(b, key, 2, &p, sizeof p));
    p.extent = 11;
    expect_report(b, launch(b, key, 2, &p, sizeof p), 1);
}

static void matmul(struct bench *b)
{
    kernel_parts key = KEY(SHAPE_MATMUL, 0, 0);
    key.in[0] = -1;
    drupe_matmul_params p = {10, 10, 10, 10, 1, 10};
    CHECK(launch(b, key, 3, &p, sizeof p));
    p.a_row = 11;
    expect_report(b, launch(b, key, 3, &p, sizeof p), 1);
    p.a_row = 10;
    p.b_row = 12;
    expect_report(b, launch(b, key, 3, &p, sizeof p), 2);
    p.b_row = 10;
    p.m = 11; /* a's row, and then the output's */
    assert_int_equal(launch(b, key, 3, &p, sizeof p), DRUPE_E_CHECK);
}

static void sequence(struct bench *b)
{
    const drupe_dtype compute = b->target->fp64 ? DRUPE_FLOAT64 : DRUPE_FLOAT32;
    kernel_parts key = {SHAPE_SEQUENCE, 0, 0, (int32_t)compute, DRUPE_FLOAT32, {-1, -1, -1}};
    drupe_sequence_params p = {.n = SHOWN, .stride = 1, .dtype = DRUPE_FLOAT32};
    CHECK(launch(b, key, 1, &p, sizeof p));
    p.stride = 2;
    expect_report(b, launch(b, key, 1, &p, sizeof p), 0);
}

/* What arrays submit is told with the line of the program, once; the queue works on. */
static void places(struct bench *b)
{
    kernel_parts key = KEY(SHAPE_MAP, DRUPE_OP_NEGATIVE, 0);
    drupe_map_head p = {.n = N, .dtypes = {DRUPE_FLOAT32, DRUPE_FLOAT32}};
    drupe_failure failure, cause;
    assert_int_equal(launch(b, key, 2, &p, sizeof p), DRUPE_E_CHECK);
    assert_true(drupe_failure_last(&failure, &cause));
    assert_int_equal(failure.site, 77);
    CHECK(drupe_queue_wait(b->queue, DRUPE_FOREVER));
    p.n = SHOWN;
    CHECK(launch(b, key, 2, &p, sizeof p));
}

#define TEST(name)                                                                                           \
    static void test_##name(void **state)                                                                    \
    {                                                                                                        \
        (void)state;                                                                                         \
        each(name);                                                                                          \
    }
TEST(map_flat)
TEST(map_strided)
TEST(reduce_rows)
TEST(reduce_columns)
TEST(matmul)
TEST(sequence)
TEST(places)

static void test_misuse(void **state)
{
    (void)state;
    const size_t elements[] = {4};
    const drupe_access access = {NULL, 4, true};
    const drupe_arg value = {DRUPE_ARG_VALUE, 8, elements};
    const drupe_submission s = {.queue = queues[0], .accesses = &access, .naccesses = 1};
    struct bench b;
    make(&b, queues[0]);
    kernel_parts key = KEY(SHAPE_SEQUENCE, 0, 0);
    key.compute = DRUPE_INT64;
    key.in[0] = -1;
    drupe_kernel *kernel;
    const drupe_range range = {.dims = 1, .global = {1}};
    kernel_recipe recipe;
    drupe_recipe_make(&key, &recipe);
    CHECK(drupe_target_kernel(b.target, &recipe, &kernel));
    assert_int_equal(drupe_check_submit(&s, kernel, &range, &value, 1, elements), DRUPE_E_INVALID);
    assert_int_equal(drupe_check_submit(&s, kernel, &range, &value, 0, elements), DRUPE_E_INVALID);
    drop(&b);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_flat),    cmocka_unit_test(test_map_strided),
        cmocka_unit_test(test_reduce_rows), cmocka_unit_test(test_reduce_columns),
        cmocka_unit_test(test_matmul),      cmocka_unit_test(test_sequence),
        cmocka_unit_test(test_places),      cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, queues_open, queues_close);
}
