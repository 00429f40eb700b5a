/* Programs that were used the last time are opened from the disk cache in advance. */
#include "array_fixture.h"
#include "drupe/cache.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LONG UINT64_C(60000000000)

static char root[] = "/tmp/drupe-warm-XXXXXX";

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static drupe_cache_info info(void)
{
    drupe_cache_info now;
    drupe_cache_info_get(&now);
    return now;
}

/* As a process begins: nothing is open. */
static void begin(const char *name)
{
    drupe_array_forget();
    assert_int_equal(drupe_library_close(LONG), 0);
    drupe_array_warm(name);
}

static drupe_queue *open_queue(void)
{
    drupe_device *device;
    drupe_queue *queue;
    if (drupe_device_select("opencl:cpu,opencl", &device) != DRUPE_OK) {
        print_message("skipped: %s\n", drupe_error_last()->text);
        skip();
    }
    assert_int_equal(drupe_device_queue(device, &queue), DRUPE_OK);
    drupe_device_release(device);
    return queue;
}

static void operate(drupe_queue *queue, drupe_op op)
{
    size_t shape[] = {64};
    drupe_array x = {0}, y = {0};
    assert_int_equal(drupe_array_empty(queue, DRUPE_MEM_DEVICE, DRUPE_FLOAT32, 1, shape, &x), DRUPE_OK);
    drupe_operand in[] = {{.array = &x}, {.array = &x}};
    assert_int_equal(drupe_array_apply(op, in, 2, &y), DRUPE_OK);
    assert_int_equal(drupe_queue_wait(queue, DRUPE_FOREVER), DRUPE_OK);
    drupe_array_clear(&x);
    drupe_array_clear(&y);
}

/* Any use of an array on the device makes it known. */
static void touch(drupe_queue *queue)
{
    operate(queue, DRUPE_OP_EQUAL);
}

static void use_once(const char *name)
{
    begin(name);
    drupe_queue *queue = open_queue();
    operate(queue, DRUPE_OP_ADD);
    touch(queue);
    assert_int_equal(drupe_cache_flush(LONG), DRUPE_OK);
    drupe_queue_release(queue);
    begin(NULL); /* writes the note */
}

/* Until the programs of the last time are open, or for good. */
static bool hits_reach(uint64_t wanted, uint64_t seconds)
{
    uint64_t deadline = now_ns() + seconds * UINT64_C(1000000000);
    while (info().hits < wanted && now_ns() < deadline) usleep(10000);
    return info().hits >= wanted;
}

static void opened_in_advance(void **state)
{
    (void)state;
    use_once("one");
    uint64_t stored = info().stored;
    assert_true(stored >= 2);
    begin("one");
    drupe_queue *queue = open_queue();
    uint64_t before = info().hits, misses = info().misses;
    touch(queue); /* one hit of its own */
    assert_true(hits_reach(before + 2, 60));
    operate(queue, DRUPE_OP_ADD);
    operate(queue, DRUPE_OP_SUBTRACT); /* of the same program */
    assert_int_equal(info().misses, misses);
    assert_int_equal(info().stored, stored);
    drupe_queue_release(queue);
}

static void other_names_and_none(void **state)
{
    (void)state;
    static const char *const names[] = {"another", NULL};
    use_once("one");
    for (int i = 0; i < 2; i++) {
        begin(names[i]);
        drupe_queue *queue = open_queue();
        uint64_t before = info().hits;
        touch(queue);
        assert_false(hits_reach(before + 2, 1));
        drupe_queue_release(queue);
    }
}

static void never_while_work_comes(void **state)
{
    (void)state;
    use_once("busy");
    begin("busy");
    drupe_queue *queue = open_queue();
    uint64_t last = now_ns(), deadline = last + UINT64_C(1000000000);
    touch(queue);
    uint64_t before = info().hits;
    bool slow = false;
    while (last < deadline) {
        touch(queue);
        uint64_t now = now_ns();
        slow |= now - last > UINT64_C(50000000); /* a machine under load may look idle */
        last = now;
    }
    if (!slow) assert_int_equal(info().hits, before);
    assert_true(hits_reach(before + 1, 60));
    drupe_queue_release(queue);
}

static void hostile_notes(void **state)
{
    (void)state;
    unsigned seed = 7;
    use_once("hostile");
    void *good;
    size_t size;
    assert_int_equal(drupe_cache_note_read("warm hostile", &good, &size), DRUPE_OK);
    assert_true(size > 0);
    for (int round = 0; round < 12; round++) {
        char *bytes = calloc(size * 40 + 1, 1); /* one that is cut in the middle of a wish has a byte more */
        assert_non_null(bytes);
        for (size_t i = 0; i < 40; i++) memcpy(bytes + i * size, good, size);
        for (size_t i = 0; i < size * 40; i++) {
            seed = seed * 1103515245u + 12345u;
            if (i % 40 >= 8 && seed >> 30 == 0) bytes[i] = (char)(round % 2 ? seed >> 16 : (seed >> 16) % 12);
        }
        assert_int_equal(
            drupe_cache_note_write("warm hostile", bytes, size * (round ? 40 : 0) + (round == 3)), DRUPE_OK);
        free(bytes);
        begin("hostile");
        drupe_queue *queue = open_queue();
        touch(queue);
        usleep(150000);
        operate(queue, DRUPE_OP_ADD);
        drupe_queue_release(queue);
    }
    free(good);
}

int main(void)
{
    char command[64];
    if (!mkdtemp(root)) return 1;
    setenv("DRUPE_CACHE_DIR", root, 1);
    setenv("DRUPE_CACHE", "1", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opened_in_advance),
        cmocka_unit_test(other_names_and_none),
        cmocka_unit_test(never_while_work_comes),
        cmocka_unit_test(hostile_notes),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    drupe_array_warm(NULL);
    drupe_array_forget();
    if (drupe_library_close(LONG) != 0) failed = 1;
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command) == 0 ? failed : 1;
}
