/* Functions of the host over arrays: on the memory itself, and on copies, for which the form for GPUs stands.
 */
#include "array/array_room.h"
#include "array_fixture.h"
#include "base/parallel.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct sum_params {
    size_t n;
    int64_t add;
} sum_params;

static drupe_status sum(void *const *pointers, const void *params)
{
    const sum_params *p = params;
    const int64_t *a = pointers[1], *b = pointers[2];
    int64_t *out = pointers[0];
    for (size_t i = 0; i < p->n; i++) out[i] = a[i] + b[i] + p->add;
    return DRUPE_OK;
}

static drupe_status refuse(void *const *pointers, const void *params)
{
    (void)params;
    memset(pointers[0], 1, sizeof(int64_t));
    return drupe_error_set(DRUPE_E_OUT_OF_RANGE, "index 7 is not there");
}

#define N 1000

typedef struct trio {
    drupe_array arrays[3];
    const drupe_array *list[3];
} trio;

static void trio_make(drupe_queue *queue, trio *t)
{
    const size_t n = N;
    *t = (trio){0};
    for (int i = 0; i < 3; i++) {
        CHECK(drupe_array_empty(queue, DRUPE_MEM_DEVICE, DRUPE_INT64, 1, &n, &t->arrays[i]));
        CHECK(drupe_array_sequence(&t->arrays[i], (drupe_scalar){.kind = DRUPE_SCALAR_KIND_INT, .i = i},
                                   (drupe_scalar){.kind = DRUPE_SCALAR_KIND_INT, .i = i}));
        t->list[i] = &t->arrays[i];
    }
}

static void trio_clear(trio *t)
{
    for (int i = 0; i < 3; i++) drupe_array_clear(&t->arrays[i]);
}

static drupe_call sum_of(const trio *t, const sum_params *params)
{
    return (drupe_call){.label = "test_sum",
                        .fn = sum,
                        .params = params,
                        .params_size = sizeof *params,
                        .arrays = t->list,
                        .count = 3,
                        .reads = 6,
                        .writes = 1};
}

/* What goes before and behind on the queue is seen in its order. */
static void test_order(void **state)
{
    (void)state;
    for (size_t q = 0; q < queue_count; q++) {
        trio t;
        trio_make(queues[q], &t);
        for (int64_t round = 0; round < 20; round++) {
            const sum_params params = {N, round};
            const drupe_call call = sum_of(&t, &params);
            CHECK(drupe_array_call(&call));
            drupe_operand in[] = {{.array = &t.arrays[0]},
                                  {.scalar = {.kind = DRUPE_SCALAR_KIND_INT, .i = 1}}};
            CHECK(drupe_array_apply(DRUPE_OP_ADD, in, 2, &t.arrays[1]));
        }
        int64_t *got = array_fetch(&t.arrays[1]);
        /* a = a + b + round + 1, twenty times, from a = 1 + i and b = 2 + 2i */
        for (int64_t i = 0; i < N; i++) assert_int_equal(got[i], 1 + i + 20 * (2 + 2 * i) + 190 + 20);
        free(got);
        trio_clear(&t);
    }
}

static void test_failure(void **state)
{
    (void)state;
    for (size_t q = 0; q < queue_count; q++) {
        trio t;
        trio_make(queues[q], &t);
        const sum_params params = {N, 0};
        drupe_call call = sum_of(&t, &params);
        call.fn = refuse;
        CHECK(drupe_array_call(&call));
        assert_int_equal(drupe_queue_wait(queues[q], DRUPE_FOREVER), DRUPE_E_OUT_OF_RANGE);
        assert_non_null(strstr(drupe_error_last()->text, "index 7 is not there"));
        /* What the work was to write is not what a program may read. */
        assert_int_not_equal(drupe_memory_contents(t.arrays[0].memory), DRUPE_OK);
        trio_clear(&t);
        CHECK(drupe_queue_wait(queues[q], DRUPE_FOREVER));
    }
}

static bool staged(void)
{
    const char *form = getenv("DRUPE_FORM");
    return form && strcmp(form, "gpu") == 0;
}

static void test_staging(void **state)
{
    (void)state;
    if (!staged() || queue_count < 2) skip();
    trio t;
    trio_make(queues[1], &t);
    const sum_params params = {N, 5};
    const drupe_call call = sum_of(&t, &params);
    drupe_array_staging_allow(false);
    assert_false(drupe_array_staging_allowed());
    assert_int_equal(drupe_array_call(&call), DRUPE_E_UNSUPPORTED);
    assert_non_null(strstr(drupe_error_last()->text, "test_sum has no kernel for"));
    drupe_array_staging_allow(true);
    CHECK(drupe_array_call(&call));
    int64_t *got = array_fetch(&t.arrays[0]);
    for (int64_t i = 0; i < N; i++) assert_int_equal(got[i], 3 + 3 * i + 5);
    free(got);
    trio_clear(&t);
}

/* It is told once in the life of a process: the cases before have staged some. */
static void test_told(void **state)
{
    (void)state;
    const char *label = drupe_array_staged();
    if (staged() && queue_count > 1)
        assert_string_equal(label, "test_sum");
    else
        assert_null(label);
    assert_null(drupe_array_staged());
}

/* --- Several processors --------------------------------------------------------------------------------- */

typedef struct counted {
    _Atomic(size_t) sum;
    size_t seen[N];
} counted;

static void count(size_t i, void *user)
{
    counted *c = user;
    c->seen[i]++;
    atomic_fetch_add(&c->sum, i);
}

static void *loop(void *user)
{
    (void)user;
    for (int round = 0; round < 200; round++) {
        counted c = {0};
        const size_t parts = (size_t)round * 5 % N;
        drupe_parallel(parts, count, &c);
        for (size_t i = 0; i < N; i++)
            if (c.seen[i] != (i < parts)) return "a part was left out, or done twice";
        if (atomic_load(&c.sum) != parts * (parts - (parts > 0)) / 2) return "the sum is wrong";
    }
    return NULL;
}

static void test_parallel(void **state)
{
    (void)state;
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, loop, NULL), 0);
    for (int i = 0; i < 3; i++) {
        void *problem;
        pthread_join(threads[i], &problem);
        if (problem) fail_msg("%s", (char *)problem);
    }
    drupe_parallel_stop();
    assert_null(loop(NULL));
}

static void test_parts(void **state)
{
    (void)state;
    assert_int_equal(drupe_parallel_parts(0, 10), 1);
    assert_int_equal(drupe_parallel_parts(19, 10), 1);
    assert_int_equal(drupe_parallel_parts(SIZE_MAX, 1), drupe_parallel_width());
    for (size_t parts = 1; parts < 8; parts++) {
        assert_int_equal(drupe_parallel_begin(20, 0, parts), 0);
        assert_int_equal(drupe_parallel_begin(20, parts, parts), 20);
        for (size_t i = 0; i < parts; i++)
            assert_true(drupe_parallel_begin(20, i, parts) < drupe_parallel_begin(20, i + 1, parts));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order),    cmocka_unit_test(test_failure),
                                       cmocka_unit_test(test_staging),  cmocka_unit_test(test_told),
                                       cmocka_unit_test(test_parallel), cmocka_unit_test(test_parts)};
    return cmocka_run_group_tests(tests, queues_open, queues_close);
}
