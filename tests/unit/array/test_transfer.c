/* Assignment, casts, copies between queues, sequences, and the way to and from the host. */
#include "array_fixture.h"
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

static const size_t SHAPE[] = {3, 4, 5};

/* dst, a view of its sample, must hold src broadcast and cast; what lies beside it must be untouched. */
static void check_assigned(const drupe_array *dst, const sample *src)
{
    size_t index[DRUPE_MAX_DIMS] = {0};
    const size_t size = drupe_dtype_size(dst->dtype);
    char *bytes = array_fetch(dst);
    for (size_t k = 0; k < dst->size; k++) {
        const number expected = number_cast(sample_at(src, dst->ndim, index), dst->dtype);
        const number got = number_load(bytes + k * size, dst->dtype);
        if (!number_close(got, expected, 0))
            fail_msg("element %zu of %s from %s: %.17g %" PRId64 ", not %.17g %" PRId64, k,
                     drupe_dtype_name(dst->dtype), drupe_dtype_name(src->array.dtype), got.f, got.i,
                     expected.f, expected.i);
        index_next(dst->ndim, dst->shape, index);
    }
    free(bytes);
}

static void assign(drupe_queue *to, drupe_queue *from, drupe_dtype to_type, drupe_dtype from_type, int x,
                   int y)
{
    sample dst, src;
    sample_make(to, to_type, (sample_layout)x, 3, SHAPE, 3, false, &dst);
    sample_make(from, from_type, (sample_layout)y, 3, SHAPE, 8, false, &src);
    CHECK(drupe_array_assign(&dst.array, &(drupe_operand){.array = &src.array}));
    check_assigned(&dst.array, &src);
    sample_clear(&src);
    sample_clear(&dst);
}

static void test_assign(void **state)
{
    (void)state;
    for (size_t q = 0; q < queue_count; q++)
        for (int a = 0; a < DRUPE_DTYPE_COUNT; a++)
            for (int b = 0; b < DRUPE_DTYPE_COUNT; b++)
                for (int x = 0; (queue_is_host(queues[q]) || (a + b) % 5 == 0) && x < BROADCAST; x++)
                    for (int y = 0; y < LAYOUT_COUNT; y++)
                        assign(queues[q], queues[q], (drupe_dtype)a, (drupe_dtype)b, x, y);
}

static void test_assign_across(void **state)
{
    drupe_queue *second = NULL;
    (void)state;
    for (size_t q = 0; q < queue_count; q++) {
        drupe_queue *first = queues[q];
        CHECK(drupe_queue_open(drupe_queue_context(first), drupe_queue_device(first), 0, &second));
        for (int x = 0; x < BROADCAST; x++)
            for (int y = 0; y < LAYOUT_COUNT; y++) {
                assign(second, first, DRUPE_FLOAT64, DRUPE_INT32, x, y);
                assign(first, second, DRUPE_INT32, DRUPE_INT32, x, y);
                if (queue_count > 1) {
                    assign(first, queues[1 - q], DRUPE_FLOAT32, DRUPE_FLOAT32, x, y);
                    assign(first, queues[1 - q], DRUPE_BOOL, DRUPE_FLOAT64, x, y);
                }
            }
        CHECK(drupe_queue_wait(second, DRUPE_FOREVER));
        drupe_queue_release(second);
    }
}

/* Of the scalars below: -9 has no place among unsigned integers, a complex number none among real ones. */
static drupe_status fill_status(int kind, drupe_dtype dtype)
{
    if (kind == DRUPE_SCALAR_KIND_INT && drupe_dtype_kind(dtype) == 'u') return DRUPE_E_OUT_OF_RANGE;
    if (kind == DRUPE_SCALAR_KIND_COMPLEX && dtype != DRUPE_BOOL && !is_complex(dtype))
        return DRUPE_E_INVALID;
    return DRUPE_OK;
}

static void test_fill(void **state)
{
    static const drupe_scalar scalars[] = {{.kind = DRUPE_SCALAR_KIND_BOOL, .i = 1},
                                           {.kind = DRUPE_SCALAR_KIND_INT, .i = -9},
                                           {.kind = DRUPE_SCALAR_KIND_FLOAT, .f = 2.5},
                                           {.kind = DRUPE_SCALAR_KIND_COMPLEX, .f = 0.5, .im = -2}};
    (void)state;
    for (size_t q = 0; q < queue_count; q++)
        for (int dtype = 0; dtype < DRUPE_DTYPE_COUNT; dtype++)
            for (int x = 0; x < BROADCAST; x++)
                for (int i = 0; i < 4; i++) {
                    sample s;
                    sample_make(queues[q], (drupe_dtype)dtype, (sample_layout)x, 3, SHAPE, 3, false, &s);
                    const drupe_status status =
                        drupe_array_assign(&s.array, &(drupe_operand){.scalar = scalars[i]});
                    const number value = number_of(&scalars[i]);
                    const drupe_status wanted = fill_status(scalars[i].kind, (drupe_dtype)dtype);
                    assert_int_equal(status, wanted);
                    if (wanted != DRUPE_OK) {
                        sample_clear(&s);
                        continue;
                    }
                    char *bytes = array_fetch(&s.array);
                    for (size_t k = 0; k < s.array.size; k++)
                        assert_true(number_close(
                            number_load(bytes + k * drupe_dtype_size(s.array.dtype), s.array.dtype),
                            number_cast(value, s.array.dtype), 0));
                    free(bytes);
                    sample_clear(&s);
                }
}

/* A write through a strided view leaves its neighbours alone. */
static void test_neighbours(void **state)
{
    static const size_t n = 1000;
    (void)state;
    for (size_t q = 0; q < queue_count; q++) {
        sample s;
        drupe_array view;
        sample_make(queues[q], DRUPE_INT32, CONTIGUOUS, 1, &n, 3, false, &s);
        drupe_array_view(&s.array, &view);
        CHECK(drupe_array_slice(&view, &(drupe_slice){1, 3, 333, false}));
        CHECK(
            drupe_array_assign(&view, &(drupe_operand){.scalar = {.kind = DRUPE_SCALAR_KIND_INT, .i = 77}}));
        int32_t *values = array_fetch(&s.array);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(values[i], i % 3 == 1 ? 77 : ((int32_t *)(void *)s.base)[i]);
        free(values);
        drupe_array_clear(&view);
        sample_clear(&s);
    }
}

static void test_sequence(void **state)
{
    static const size_t n = 40000;
    (void)state;
    for (size_t q = 0; q < queue_count; q++)
        for (int dtype = DRUPE_INT8; dtype < DRUPE_DTYPE_COUNT; dtype++)
            for (int x = 0; x < TRANSPOSED; x++) {
                const drupe_scalar start = {.kind = DRUPE_SCALAR_KIND_INT, .i = -5, .f = 0.5};
                const drupe_scalar whole = {.kind = DRUPE_SCALAR_KIND_INT, .i = 3};
                const drupe_scalar real = {.kind = DRUPE_SCALAR_KIND_FLOAT, .f = 0.1};
                const bool use_real = !is_whole((drupe_dtype)dtype);
                sample s;
                sample_make(queues[q], (drupe_dtype)dtype, (sample_layout)x, 1, &n, 0, false, &s);
                CHECK(drupe_array_sequence(&s.array, start, use_real ? real : whole));
                char *bytes = array_fetch(&s.array);
                for (size_t k = 0; k < n; k++) {
                    const number got =
                        number_load(bytes + k * drupe_dtype_size((drupe_dtype)dtype), (drupe_dtype)dtype);
                    const number expected = {.dtype = DRUPE_INT64, .i = -5 + 3 * (int64_t)k};
                    const number expected_real = {.dtype = DRUPE_FLOAT64, .f = -5 + (double)k * 0.1};
                    assert_true(number_close(
                        got, number_cast(use_real ? expected_real : expected, (drupe_dtype)dtype), 0));
                }
                free(bytes);
                sample_clear(&s);
            }
}

static int dropped;

static void count_drop(void *object)
{
    (void)object;
    dropped++;
}

static void test_host(void **state)
{
    (void)state;
    for (size_t q = 0; q < queue_count; q++)
        for (int x = 0; x < BROADCAST; x++) {
            float values[60];
            sample s;
            for (int i = 0; i < 60; i++) values[i] = (float)i + 0.25f;
            sample_make(queues[q], DRUPE_FLOAT32, (sample_layout)x, 3, SHAPE, 0, false, &s);
            const int before = dropped;
            const drupe_keep keep = {values, count_drop};
            CHECK(drupe_array_from_host(&s.array, values, false, &keep));
            float *back = array_fetch(&s.array);
            assert_memory_equal(values, back, sizeof(values));
            CHECK(drupe_queue_wait(queues[q], DRUPE_FOREVER));
            drupe_queue_collect(queues[q]);
            assert_int_equal(dropped, before + 1);
            free(back);
            sample_clear(&s);
        }
}

/* Within the call where the elements lie side by side and the queue has nothing in flight, else not at all.
 */
static void test_from_host_now(void **state)
{
    (void)state;
    for (size_t q = 0; q < queue_count; q++)
        for (int x = 0; x < BROADCAST; x++) {
            float values[60];
            sample s;
            for (int i = 0; i < 60; i++) values[i] = (float)i + 0.75f;
            sample_make(queues[q], DRUPE_FLOAT32, (sample_layout)x, 3, SHAPE, 0, false, &s);
            CHECK(drupe_queue_wait(queues[q], DRUPE_FOREVER));
            drupe_queue_collect(queues[q]);
            const bool now = drupe_array_from_host_now(&s.array, values);
            assert_false(now && !drupe_array_contiguous(&s.array));
            if (drupe_array_contiguous(&s.array)) assert_int_equal(now, drupe_queue_quiet(queues[q]));
            if (!now) CHECK(drupe_array_from_host(&s.array, values, true, NULL));
            float *back = array_fetch(&s.array), again[60];
            assert_memory_equal(values, back, sizeof(values));
            free(back);
            const bool fetched = drupe_array_to_host_now(&s.array, again);
            assert_int_equal(fetched, now);
            if (fetched) assert_memory_equal(values, again, sizeof(values));
            sample_clear(&s);
        }
}

static drupe_status gate_pass(void *gate)
{
    return sem_wait(gate) == 0 ? DRUPE_OK : DRUPE_E_INTERNAL;
}

/* What is written to is held until the copy is over, whoever has given up waiting for it. */
static void test_to_host_holds_its_target(void **state)
{
    (void)state;
    for (size_t q = 0; q < queue_count; q++) {
        float values[60];
        sample s;
        sem_t gate;
        drupe_event *event = NULL;
        sample_make(queues[q], DRUPE_FLOAT32, CONTIGUOUS, 3, SHAPE, 0, false, &s);
        const int before = dropped;
        const drupe_keep keep = {values, count_drop};
        const drupe_submission behind = {.queue = queues[q]};
        assert_int_equal(sem_init(&gate, 0, 0), 0);
        CHECK(drupe_submit_host(&behind, gate_pass, &gate, NULL));
        CHECK(drupe_array_to_host(&s.array, values, &keep, &event));
        assert_int_equal(drupe_event_wait(event, 0), DRUPE_E_TIMEOUT);
        drupe_event_release(event);
        drupe_queue_collect(queues[q]);
        assert_int_equal(dropped, before);
        assert_int_equal(sem_post(&gate), 0);
        CHECK(drupe_queue_wait(queues[q], DRUPE_FOREVER));
        drupe_queue_collect(queues[q]);
        assert_int_equal(dropped, before + 1);
        float *back = array_fetch(&s.array);
        assert_memory_equal(values, back, sizeof values);
        free(back);
        (void)sem_destroy(&gate);
        sample_clear(&s);
    }
}

static void test_errors(void **state)
{
    static const size_t shape[] = {4, 5}, other[] = {3};
    (void)state;
    for (size_t q = 0; q < queue_count; q++) {
        sample a, b;
        sample_make(queues[q], DRUPE_INT32, CONTIGUOUS, 2, shape, 0, false, &a);
        sample_make(queues[q], DRUPE_INT32, CONTIGUOUS, 1, other, 0, false, &b);
        assert_int_equal(drupe_array_assign(&a.array, &(drupe_operand){.array = &b.array}), DRUPE_E_INVALID);
        const drupe_operand large = {.scalar = {.kind = DRUPE_SCALAR_KIND_INT, .i = INT64_C(1) << 40}};
        assert_int_equal(drupe_array_assign(&a.array, &large), DRUPE_E_OUT_OF_RANGE);
        const drupe_operand nan = {.scalar = {.kind = DRUPE_SCALAR_KIND_FLOAT, .f = __builtin_nan("")}};
        assert_int_equal(drupe_array_assign(&a.array, &nan), DRUPE_E_OUT_OF_RANGE);
        assert_int_equal(drupe_array_sequence(&a.array, large.scalar, large.scalar), DRUPE_E_INVALID);
        sample_clear(&b);
        sample_clear(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_assign),   cmocka_unit_test(test_assign_across),
        cmocka_unit_test(test_fill),     cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_sequence), cmocka_unit_test(test_host), cmocka_unit_test(test_from_host_now),
        cmocka_unit_test(test_errors),   cmocka_unit_test(test_to_host_holds_its_target),
    };
    return cmocka_run_group_tests(tests, queues_open, queues_close);
}
