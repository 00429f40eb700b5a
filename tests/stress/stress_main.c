/* graph [BACKEND] [COUNT] [FIRST] [STEPS]: random scripts for COUNT seeds from FIRST on.
 *
 * BACKEND is host, opencl or both. A seed decides over everything, so that `graph BACKEND 1 SEED` does the
 * same again, but for the timing of devices and threads. */
#include "drupe/check.h"
#include "stress/stress_graph.h"
#include <inttypes.h>
#include <stdio.h>

#define SKIPPED 77
#define THREADS 3

static void add_line(struct world *world, struct bench *bench, drupe_device *device)
{
    if (world->nlines < LINES) world->lines[world->nlines++] = (struct line){bench, device};
}

/* Two sub-devices of the first bench's device take the place of the last lines, where it can be divided. */
static void add_subdevices(struct world *world, struct bench *bench)
{
    const uint32_t units[] = {1, 1};
    const drupe_partition partition = {
        .kind = DRUPE_SPLIT_COUNTS, .count = 2, .units = units, .domain = DRUPE_DOMAIN_NONE};
    drupe_device *subs[2];
    size_t count = 0;
    if (drupe_device_split(bench->device, &partition, subs, 2, &count) != DRUPE_OK) return;
    drupe_queue *queue;
    /* Some drivers want a context that was opened over the sub-devices. */
    bool usable = drupe_queue_open(bench->context, subs[0], DRUPE_QUEUE_DEFAULT, &queue) == DRUPE_OK;
    if (usable) drupe_queue_release(queue);
    for (size_t i = 0; i < count; i++) {
        if (usable && world->nlines < LINES)
            add_line(world, bench, subs[i]);
        else
            drupe_device_release(subs[i]);
    }
}

void lane_open(struct lane *lane, uint64_t dice)
{
    uint32_t flags = dice % 3 == 0 ? DRUPE_QUEUE_OUT_OF_ORDER : DRUPE_QUEUE_DEFAULT;
    if (dice / 3 % 3 == 0) flags |= DRUPE_QUEUE_PROFILING;
    lane->ordered = !(flags & DRUPE_QUEUE_OUT_OF_ORDER);
    drupe_status status =
        drupe_queue_open(lane->line->bench->context, lane->line->device, flags, &lane->queue);
    if (status != DRUPE_OK && !lane->ordered) {
        flags &= ~(uint32_t)DRUPE_QUEUE_OUT_OF_ORDER;
        status = drupe_queue_open(lane->line->bench->context, lane->line->device, flags, &lane->queue);
    }
    OK(status);
    lane->ordered = !(drupe_queue_flags_of(lane->queue) & DRUPE_QUEUE_OUT_OF_ORDER);
}

void world_open(struct world *world, struct bench *const *benches, size_t nbenches, uint64_t seed)
{
    memset(world, 0, sizeof *world);
    for (size_t b = 0; b < nbenches; b++) add_line(world, benches[b], benches[b]->device);
    if (seed % 2 == 0) add_subdevices(world, benches[0]);
    world->nlanes = 2 + seed / 2 % (QUEUES - 1);
    for (size_t i = 0; i < world->nlanes; i++) {
        world->lanes[i].line = &world->lines[i % world->nlines];
        lane_open(&world->lanes[i], seed / 8 + i);
    }
    world->failures = seed % 4 == 3;
    world->alone = world->failures || seed % 5 != 0;
    world->checked = world->alone && !world->failures && seed % 3 == 0;
    if (world->checked) drupe_check_begin();
}

void world_close(struct world *world)
{
    if (world->checked) drupe_check_end();
    for (size_t i = 0; i < world->nlanes; i++) drupe_queue_release(world->lanes[i].queue);
    for (size_t i = 0; i < world->nlines; i++) {
        if (world->lines[i].device != world->lines[i].bench->device)
            drupe_device_release(world->lines[i].device);
    }
}

static void *thread_main(void *user)
{
    script_run(user);
    return NULL;
}

/* Failures that scripts caused on purpose are reported here, so that the next seed begins without any. */
static void take_failures(void)
{
    drupe_failure failure;
    while (drupe_failure_take(&failure)) continue;
}

static bool run_seed(struct bench *const *benches, size_t nbenches, uint64_t seed, size_t steps)
{
    static struct world world;
    static struct script scripts[THREADS];
    pthread_t threads[THREADS];
    bool right = true;
    world_open(&world, benches, nbenches, seed);
    size_t count = world.alone ? 1 : THREADS;
    for (size_t i = 0; i < count; i++) script_open(&scripts[i], &world, seed + (i << 32), steps);
    for (size_t i = 1; i < count; i++) {
        if (pthread_create(&threads[i], NULL, thread_main, &scripts[i]) != 0) abort();
    }
    script_run(&scripts[0]);
    for (size_t i = 1; i < count; i++) pthread_join(threads[i], NULL);
    /* What a wrong script left in flight still uses it. */
    for (size_t i = 0; i < count; i++) right = right && !scripts[i].failed;
    if (!right) return false;
    for (size_t i = 0; i < count; i++) right = script_close(&scripts[i]) && right;
    world_close(&world);
    take_failures();
    return right;
}

static size_t open_benches(const char *backend, struct bench *benches, struct bench **list)
{
    static const char *const names[] = {"host", "opencl"};
    size_t count = 0;
    for (size_t i = 0; i < COUNT(names); i++) {
        const struct fixture *fixture = fixture_find(names[i]);
        drupe_device *device;
        if (strcmp(backend, "both") != 0 && strcmp(backend, names[i]) != 0) continue;
        if (drupe_device_select(fixture->filter, &device) != DRUPE_OK) return 0;
        drupe_context *context;
        OK(drupe_context_open(&device, 1, &context));
        drupe_device_release(device);
        bench_open(list[count] = &benches[count], fixture, NULL);
        count++;
        bench_open(list[count] = &benches[count], fixture, context);
        count++;
    }
    return count;
}

static uint64_t number_arg(int argc, char **argv, int index, uint64_t otherwise)
{
    return argc > index ? strtoull(argv[index], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    setenv("DRUPE_CACHE", "0", 0);
    const char *backend = argc > 1 ? argv[1] : "host";
    uint64_t count = number_arg(argc, argv, 2, 20), first = number_arg(argc, argv, 3, 1);
    size_t steps = (size_t)number_arg(argc, argv, 4, STEPS);
    struct bench benches[4], *list[4];
    setvbuf(stdout, NULL, _IOLBF, 0);
    setenv("DRUPE_HOST_THREADS", "3", 0);
    size_t nbenches = open_benches(backend, benches, list);
    if (nbenches == 0) {
        printf("no device for '%s': %s\n", backend, drupe_error_last()->text);
        return SKIPPED;
    }
    for (uint64_t seed = first; seed < first + count; seed++) {
        printf("seed %" PRIu64 "\n", seed);
        if (!run_seed(list, nbenches, seed, steps)) {
            printf("again: graph %s 1 %" PRIu64 " %zu\n", backend, seed, steps);
            return 1;
        }
    }
    for (size_t i = 0; i < nbenches; i++) bench_close(list[i]);
    size_t left = drupe_library_close(30ull * SECOND);
    if (left) printf("%zu objects are left\n", left);
    return left != 0;
}
