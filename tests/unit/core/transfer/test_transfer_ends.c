/* Copies between contexts without host memory, one allocation after the other. */
#include "core_ends.h"
#include <stdatomic.h>

/* With what a copy uses itself as many as a submission has room for at first, or one more. */
enum { KEEPS = 13 };
static _Atomic(unsigned) given_back;

static void give_back(void *object)
{
    (void)object;
    atomic_fetch_add(&given_back, 1);
}

static void copies(void)
{
    drupe_keep keeps[KEEPS];
    unsigned submitted = 0;
    drupe_context *context = NULL;
    drupe_queue *far = NULL;
    drupe_memory *near = NULL, *there = NULL, *beyond = NULL;
    const drupe_submission s = {.queue = bench.queue, .keeps = keeps, .nkeeps = KEEPS};
    for (size_t i = 0; i < KEEPS; i++) keeps[i] = (drupe_keep){.object = keeps, .release = give_back};
    atomic_store(&given_back, 0);
    if (ends_good(drupe_context_open(&bench.device, 1, &context)) &&
        ends_good(drupe_queue_open(context, bench.device, 0, &far)) &&
        ends_good(drupe_memory_alloc(bench.queue, DRUPE_MEM_DEVICE, 256, 0, &near)) &&
        ends_good(drupe_memory_alloc(far, DRUPE_MEM_DEVICE, 256, 0, &there)) &&
        ends_good(drupe_memory_alloc(far, DRUPE_MEM_DEVICE, 256, 0, &beyond))) {
        drupe_memory *const ends[][2] = {{there, near}, {near, there}, {beyond, there}};
        for (; submitted < DRUPE_COUNT_OF(ends); submitted++)
            ends_good(drupe_submit_copy(&s, drupe_memory_pointer(ends[submitted][0]),
                                        drupe_memory_pointer(ends[submitted][1]), 256, NULL));
    }
    ends_settle(bench.queue);
    assert_int_equal(atomic_load(&given_back), submitted * KEEPS);
    drupe_memory_release(near);
    drupe_memory_release(there);
    drupe_memory_release(beyond);
    drupe_queue_release(far);
    drupe_context_release(context);
}

static void without_memory_nothing_is_left(void **state)
{
    (void)state;
    ends_walk(copies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(without_memory_nothing_is_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
