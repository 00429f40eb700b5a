/* What single calls of the engine cost a C program, on the device that a filter names: nanoseconds, the
 * median of the turns. Prints lines "name value".
 *
 *   engine_costs [FILTER [TURNS]] */
#include "bench.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define EACH       1000
#define MOST_TURNS 1001

static drupe_queue *queue;
static drupe_event *finished;

static void alloc_and_free(void)
{
    drupe_memory *memory;
    check(drupe_memory_alloc(queue, DRUPE_MEM_DEVICE, 4000, 0, &memory));
    drupe_memory_release(memory);
}

static void event_and_wait(void)
{
    drupe_submission s = {.queue = queue};
    drupe_event *event;
    check(drupe_submit_barrier(&s, &event));
    check(drupe_event_wait(event, DRUPE_FOREVER));
    drupe_event_release(event);
}

static void wait_on_finished(void)
{
    check(drupe_event_wait(finished, DRUPE_FOREVER));
}

static drupe_status nothing(void *user)
{
    (void)user;
    return DRUPE_OK;
}

static void function_and_wait(void)
{
    drupe_submission s = {.queue = queue};
    check(drupe_submit_host(&s, nothing, NULL, NULL));
    check(drupe_queue_wait(queue, DRUPE_FOREVER));
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, void (*call)(void), int turns, int each)
{
    static double times[MOST_TURNS];
    for (int turn = -3; turn < turns; turn++) {
        uint64_t started = now_ns();
        for (int i = 0; i < each; i++) call();
        double spent = (double)(now_ns() - started) / each;
        if (turn >= 0) times[turn] = spent;
        check(drupe_queue_wait(queue, DRUPE_FOREVER));
        drupe_queue_collect(queue);
    }
    qsort(times, (size_t)turns, sizeof *times, compare);
    printf("%s %.1f\n", name, times[turns / 2]);
}

int main(int argc, char **argv)
{
    int turns = argc > 2 ? atoi(argv[2]) : 101;
    if (turns < 1 || turns > MOST_TURNS) return 2;
    drupe_device *device;
    check(drupe_device_select(argc > 1 ? argv[1] : "host", &device));
    check(drupe_device_queue(device, &queue));
    drupe_submission s = {.queue = queue};
    check(drupe_submit_barrier(&s, &finished));
    check(drupe_event_wait(finished, DRUPE_FOREVER));
    measure("alloc_free", alloc_and_free, turns, EACH);
    measure("event_wait", event_and_wait, turns, EACH);
    measure("wait_finished", wait_on_finished, turns, EACH);
    measure("function_wait", function_and_wait, turns, 50);
    drupe_event_release(finished);
    drupe_queue_release(queue);
    drupe_device_release(device);
    return drupe_library_close(1000000000u) != 0;
}
