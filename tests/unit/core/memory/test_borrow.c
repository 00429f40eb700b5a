/* Memory that others allocated: found by its addresses, shared and overlapping, kept while it is used. */
#include "core/device/device_room.h"
#include "core_bench.h"

#define BYTES 4096u

static _Alignas(64) char lent[BYTES];

/* A lender that counts how often it got its bytes back. */
static void take_back(void *object)
{
    ++*(int *)object;
}

static drupe_memory *borrow(void *pointer, size_t bytes, int *returned)
{
    const drupe_keep keep = {returned, take_back};
    drupe_memory *memory;
    OK(drupe_memory_borrow(bench.queue, pointer, bytes, &keep, &memory));
    return memory;
}

static void refuse(drupe_queue *queue, void *pointer, size_t bytes, drupe_status status, const char *part)
{
    int returned = 0;
    const drupe_keep keep = {&returned, take_back};
    drupe_memory *memory;
    FAILS(drupe_memory_borrow(queue, pointer, bytes, &keep, &memory), status, part);
    assert_null(memory);
    assert_int_equal(returned, 0); /* the caller has it still */
}

static void assert_found(char *at, const drupe_memory *expected)
{
    drupe_memory *found = drupe_memory_find(at);
    assert_ptr_equal(found, expected);
    drupe_memory_release(found);
}

static void kernels_work_on_the_bytes_themselves(void **state)
{
    (void)state;
    int returned = 0;
    drupe_pool_stats stats;
    memset(lent, 3, BYTES);
    drupe_memory *memory = borrow(lent + 64, 1024, &returned);
    assert_ptr_equal(drupe_memory_pointer(memory), lent + 64);
    assert_int_equal(drupe_memory_size(memory), 1024);
    assert_int_equal(drupe_memory_kind(memory), DRUPE_MEM_HOST);
    drupe_pool_stats_of(bench.device, &stats);
    assert_int_equal(stats.used, 0);
    assert_false(drupe_memory_sole(memory, bench.queue)); /* nobody's result may be put there */
    OK(bench_fill(bench.queue, memory, 7, NULL, NULL));
    OK(drupe_queue_wait(bench.queue, LONG));
    assert_int_equal(lent[63], 3);
    assert_int_equal(lent[64], 7);
    assert_int_equal(lent[64 + 1023], 7);
    assert_int_equal(lent[64 + 1024], 3);
    drupe_queue_collect(bench.queue);
    assert_int_equal(returned, 0);
    drupe_memory_release(memory);
    assert_int_equal(returned, 1);
    assert_null(drupe_memory_find(lent + 64));
}

static void the_lender_waits_for_the_work(void **state)
{
    (void)state;
    int returned = 0;
    drupe_event *gate = bench_gate();
    drupe_memory *memory = borrow(lent, BYTES, &returned);
    OK(bench_fill(bench.queue, memory, 9, gate, NULL));
    drupe_memory_release(memory);
    assert_int_equal(returned, 0);
    assert_null(drupe_memory_find(lent));
    bench_open_gate(gate);
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_collect(bench.queue);
    assert_int_equal(returned, 1);
    assert_int_equal(lent[BYTES - 1], 9);
}

static void the_same_bytes_are_the_same_memory(void **state)
{
    (void)state;
    int first = 0, second = 0;
    drupe_memory *memory = borrow(lent, 1024, &first), *part = borrow(lent + 32, 100, &second);
    assert_ptr_equal(part, memory);
    assert_int_equal(second, 1);
    drupe_memory_release(memory);
    assert_int_equal(first, 0);
    drupe_memory_release(part);
    assert_int_equal(first, 1);
    /* Elements of 16 bytes could not be counted from there. */
    memory = borrow(lent + 8, 1024, &first);
    part = borrow(lent + 16, 100, &second);
    assert_ptr_not_equal(part, memory);
    drupe_memory_release(part);
    drupe_memory_release(memory);
    assert_int_equal(first, 2);
    assert_int_equal(second, 2);
    /* What the engine allocated is its own. */
    memory = bench_memory(bench.queue, DRUPE_MEM_DEVICE, 256);
    part = borrow((char *)drupe_memory_pointer(memory) + 64, 64, &first);
    assert_ptr_equal(part, memory);
    assert_int_equal(first, 3);
    refuse(bench.queue, (char *)drupe_memory_pointer(memory) + 200, 100, DRUPE_E_UNSUPPORTED, "Copy them");
    drupe_memory_release(part);
    drupe_memory_release(memory);
}

static void ranges_may_overlap(void **state)
{
    (void)state;
    int returned = 0;
    char there[600];
    drupe_memory *a = borrow(lent + 100, 100, &returned), *b = borrow(lent + 150, 200, &returned),
                 *all = borrow(lent + 4, 1000, &returned), *end = borrow(lent + 900, 300, &returned);
    assert_int_equal(returned, 0);
    assert_found(lent + 3, NULL);
    assert_found(lent + 4, all);
    assert_found(lent + 100, a);
    assert_found(lent + 149, a);
    assert_found(lent + 150, b);
    assert_found(lent + 349, b);
    assert_found(lent + 350, all); /* past those inside of it */
    assert_found(lent + 1003, end);
    assert_found(lent + 1199, end);
    assert_found(lent + 1200, NULL);
    /* The one that has all of a range is taken, and none runs into a neighbour. */
    const drupe_submission s = {.queue = bench.queue};
    OK(drupe_submit_fill(&s, lent + 100, "\5", 1, 600, NULL));
    OK(drupe_submit_copy(&s, there, lent + 100, 600, NULL));
    OK(drupe_queue_wait(bench.queue, LONG));
    assert_int_equal(there[599], 5);
    FAILS(drupe_submit_fill(&s, lent + 900, "\5", 1, 301, NULL), DRUPE_E_OUT_OF_RANGE, "run past the end");
    OK(drupe_submit_copy(&s, there, lent, 50, NULL)); /* host memory, which runs into what is borrowed */
    OK(drupe_queue_wait(bench.queue, LONG));
    drupe_queue_collect(bench.queue);
    drupe_memory_release(all);
    assert_found(lent + 350, NULL);
    assert_found(lent + 349, b);
    drupe_memory_release(a);
    assert_found(lent + 149, NULL);
    assert_found(lent + 150, b);
    drupe_memory_release(end);
    assert_found(lent + 200, b);
    drupe_memory_release(b);
    assert_int_equal(returned, 4);
}

static void one_context_has_them(void **state)
{
    (void)state;
    int returned = 0;
    drupe_queue *other = bench_elsewhere();
    drupe_memory *memory = borrow(lent + 64, 128, &returned);
    refuse(other, lent + 64, 128, DRUPE_E_UNSUPPORTED, "another context");
    refuse(other, lent, 65, DRUPE_E_UNSUPPORTED, "another context");
    refuse(other, lent + 191, 8, DRUPE_E_UNSUPPORTED, "another context");
    const drupe_keep keep = {&returned, take_back};
    drupe_memory *beside;
    OK(drupe_memory_borrow(other, lent, 64, &keep, &beside));
    drupe_memory_release(beside);
    drupe_memory_release(memory);
    assert_int_equal(returned, 2);
    drupe_queue_release(other);
}

static void what_cannot_be_borrowed(void **state)
{
    (void)state;
    unsigned char handle[DRUPE_IPC_BYTES];
    int returned = 0;
    refuse(bench.queue, NULL, 8, DRUPE_E_INVALID, "no memory");
    refuse(bench.queue, lent, 0, DRUPE_E_INVALID, "0 bytes");
    refuse(bench.queue, lent, SIZE_MAX, DRUPE_E_INVALID, "no memory");
    drupe_memory *memory = borrow(lent, 64, &returned);
    FAILS(drupe_memory_export(memory, handle), DRUPE_E_INVALID, "somebody else");
    drupe_memory_release(memory);
    bench.device->info[DRUPE_INFO_HAS_USM_SYSTEM].number[0] = 0;
    refuse(bench.queue, lent, 64, DRUPE_E_UNSUPPORTED, "Copy it to the device");
    bench.device->info[DRUPE_INFO_HAS_USM_SYSTEM].number[0] = 1;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)
    const struct CMUnitTest tests[] = {
        TEST(kernels_work_on_the_bytes_themselves),
        TEST(the_lender_waits_for_the_work),
        TEST(the_same_bytes_are_the_same_memory),
        TEST(ranges_may_overlap),
        TEST(one_context_has_them),
        TEST(what_cannot_be_borrowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
