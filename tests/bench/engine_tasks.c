/* A million tiny tasks of a random graph on the host device, through the public interface.
 *
 * Each task adds its own number to a cell that its queue owns and checks that what it waits for has run. It
 * stands on a random queue of eight and waits for up to two of the last thousand tasks. Prints tasks per
 * second, from the first submission until the last task is over, and what the process's memory grew by.
 *
 *   engine_tasks [TASKS [ROUNDS [QUEUES]]] */
#include "bench.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define WINDOW      1024u
#define MOST_QUEUES 64u

typedef struct graph_task {
    uint32_t waits[2]; /* numbers of tasks; its own: none */
    uint32_t nwaits, queue;
    _Atomic(uint32_t) done;
} graph_task;

typedef struct graph {
    graph_task *tasks;
    size_t ntasks, nqueues;
    drupe_queue *queues[MOST_QUEUES];
    drupe_event *events[WINDOW];
    _Atomic(uint64_t) wrong;
    uint64_t random;
} graph;

static graph the_graph;

static uint64_t dice(uint64_t sides)
{
    the_graph.random = the_graph.random * 6364136223846793005u + 1442695040888963407u;
    return (the_graph.random >> 33) % sides;
}

static void plan(uint64_t seed)
{
    graph *g = &the_graph;
    g->random = seed;
    for (size_t i = 0; i < g->ntasks; i++) {
        graph_task *task = &g->tasks[i];
        task->queue = (uint32_t)dice(g->nqueues);
        task->nwaits = i ? (uint32_t)dice(3) : 0;
        uint64_t span = i < WINDOW ? i : WINDOW;
        for (uint32_t w = 0; w < task->nwaits; w++) task->waits[w] = (uint32_t)(i - 1 - dice(span));
        atomic_store(&task->done, 0);
    }
}

static drupe_status run(void *user)
{
    graph_task *task = user;
    for (uint32_t w = 0; w < task->nwaits; w++) {
        if (!atomic_load_explicit(&the_graph.tasks[task->waits[w]].done, memory_order_relaxed))
            atomic_fetch_add(&the_graph.wrong, 1);
    }
    atomic_store_explicit(&task->done, 1, memory_order_relaxed);
    return DRUPE_OK;
}

static void submit(size_t number)
{
    graph *g = &the_graph;
    graph_task *task = &g->tasks[number];
    drupe_event *waits[2], *event;
    for (uint32_t w = 0; w < task->nwaits; w++) waits[w] = g->events[task->waits[w] % WINDOW];
    drupe_submission s = {.queue = g->queues[task->queue], .waits = waits, .nwaits = task->nwaits};
    check(drupe_submit_host(&s, run, task, &event));
    drupe_event_release(g->events[number % WINDOW]);
    g->events[number % WINDOW] = event;
}

static double cpu_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* `submitted`, `thread`: until the last submission, by the clock and of this thread's processor time. */
static double once(uint64_t seed, double *submitted, double *thread)
{
    graph *g = &the_graph;
    plan(seed);
    uint64_t started = now_ns();
    *thread = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    for (size_t i = 0; i < g->ntasks; i++) submit(i);
    *submitted = (double)(now_ns() - started);
    *thread = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - *thread;
    for (size_t q = 0; q < g->nqueues; q++) check(drupe_queue_wait(g->queues[q], DRUPE_FOREVER));
    double spent = (double)(now_ns() - started);
    for (size_t i = 0; i < WINDOW; i++) {
        drupe_event_release(g->events[i]);
        g->events[i] = NULL;
    }
    for (size_t i = 0; i < g->ntasks; i++) {
        if (!atomic_load(&g->tasks[i].done)) atomic_fetch_add(&g->wrong, 1);
    }
    return spent;
}

static long memory_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

int main(int argc, char **argv)
{
    graph *g = &the_graph;
    g->ntasks = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    size_t rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : 5;
    g->nqueues = argc > 3 ? strtoull(argv[3], NULL, 10) : 8;
    if (g->nqueues == 0 || g->nqueues > MOST_QUEUES || g->ntasks == 0) return 2;
    g->tasks = calloc(g->ntasks, sizeof *g->tasks);
    if (!g->tasks) return 1;
    drupe_device *device;
    drupe_context *context;
    check(drupe_device_select("host", &device));
    check(drupe_device_context(device, &context));
    for (size_t q = 0; q < g->nqueues; q++) check(drupe_queue_open(context, device, 0, &g->queues[q]));
    for (size_t i = 0; i < g->ntasks; i++) atomic_store(&g->tasks[i].done, 0);
    long before = memory_kib();
    for (size_t r = 0; r < rounds; r++) {
        double submitted, thread, cpu = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
        double spent = once(r + 1, &submitted, &thread);
        cpu = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        double n = (double)g->ntasks;
        printf("tasks_per_s %.0f submit_ns %.0f submit_cpu_ns %.0f wall_ns %.0f cpu_ns %.0f grown_kib %ld "
               "wrong %llu\n",
               n / spent * 1e9, submitted / n, thread / n, spent / n, cpu / n, memory_kib() - before,
               (unsigned long long)g->wrong);
    }
    for (size_t q = 0; q < g->nqueues; q++) drupe_queue_release(g->queues[q]);
    drupe_context_release(context);
    drupe_device_release(device);
    return drupe_library_close(1000000000u) != 0 || g->wrong != 0;
}
