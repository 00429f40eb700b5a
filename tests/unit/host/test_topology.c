/* Caches and NUMA nodes of machines made of files, and the division of the host device along them. */
#include "backends/host/host.h"
#include "drupe/memory.h"
#include "drupe/program.h"
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[64];

static void ok(drupe_status status)
{
    if (status != DRUPE_OK) fail_msg("%s: %s", drupe_status_name(status), drupe_error_last()->text);
}

static void write_file(const char *text, const char *format, ...) DRUPE_PRINTF(2, 3);

/* Below the root; the folders on the way are made. */
static void write_file(const char *text, const char *format, ...)
{
    char path[256];
    int length = snprintf(path, sizeof path, "%s/", root);
    va_list list;
    va_start(list, format);
    vsnprintf(path + length, sizeof path - (size_t)length, format, list);
    va_end(list);
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%s\n", text);
    fclose(file);
}

static void write_cache(unsigned cpu, unsigned index, const char *level, const char *type, const char *shared)
{
    static const char *const names[] = {"level", "type", "shared_cpu_list"};
    const char *const texts[] = {level, type, shared};
    for (size_t i = 0; i < DRUPE_COUNT_OF(names); i++)
        write_file(texts[i], "devices/system/cpu/cpu%u/cache/index%u/%s", cpu, index, names[i]);
}

/* Eight CPUs: the even ones on one node, the odd ones on the other; pairs share a second-level cache. */
static void two_nodes(void)
{
    static const char *const thirds[] = {"0,2,4,6", "1,3,5,7"};
    write_file("0-7", "devices/system/cpu/online");
    write_file("0-1", "devices/system/node/online");
    for (unsigned node = 0; node < 2; node++)
        write_file(thirds[node], "devices/system/node/node%u/cpulist", node);
    for (unsigned cpu = 0; cpu < 8; cpu++) {
        char own[8], pair[16];
        unsigned first = cpu % 4 < 2 ? cpu : cpu - 2;
        snprintf(own, sizeof own, "%u", cpu);
        snprintf(pair, sizeof pair, "%u,%u", first, first + 2);
        write_cache(cpu, 0, "1", "Data", own);
        write_cache(cpu, 1, "1", "Instruction", "0-7");
        write_cache(cpu, 2, "2", "Unified", pair);
        write_cache(cpu, 3, "3", "Unified", thirds[cpu % 2]);
    }
}

static int setup(void **state)
{
    (void)state;
    strcpy(root, "/tmp/drupe-sys-XXXXXX");
    if (!mkdtemp(root)) return -1;
    setenv("DRUPE_TEST_SYS", root, 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", root);
    unsetenv("DRUPE_TEST_SYS");
    unsetenv("DRUPE_HOST_THREADS");
    size_t left = drupe_library_close(5000000000u);
    return system(command) == 0 && left == 0 ? 0 : -1;
}

static void domains_are_ranges(void **state)
{
    (void)state;
    two_nodes();
    drupe_host_topology topology;
    drupe_host_topology_probe(&topology, 8);
    assert_int_equal(topology.count, 8);
    assert_int_equal(drupe_host_topology_parts(&topology, DRUPE_DOMAIN_NUMA, 0, 8), 2);
    assert_int_equal(drupe_host_topology_parts(&topology, DRUPE_DOMAIN_L3, 0, 8), 2);
    assert_int_equal(drupe_host_topology_parts(&topology, DRUPE_DOMAIN_L2, 0, 8), 4);
    assert_int_equal(drupe_host_topology_parts(&topology, DRUPE_DOMAIN_L1, 0, 8), 8);
    assert_int_equal(drupe_host_topology_parts(&topology, DRUPE_DOMAIN_L4, 0, 8), 0); /* there is none */
    assert_int_equal(drupe_host_topology_run(&topology, DRUPE_DOMAIN_NUMA, 4, 4), 4);
    assert_int_equal(drupe_host_topology_parts(&topology, DRUPE_DOMAIN_L2, 4, 4), 2);
    assert_int_equal(drupe_host_topology_parts(&topology, DRUPE_DOMAIN_L2, 4, 5),
                     0); /* more than there are */
    drupe_host_topology_clear(&topology);
    /* Workers that do not stand for CPUs have no place. */
    drupe_host_topology_probe(&topology, 4);
    assert_int_equal(drupe_host_topology_parts(&topology, DRUPE_DOMAIN_NUMA, 0, 4), 0);
    drupe_host_topology_clear(&topology);
}

static void broken_files(void **state)
{
    (void)state;
    static const char *const lists[] = {"", "x", "0-", "1-0", "0,,1", "0-99999999999", "-1", "0;1"};
    drupe_host_topology topology;
    drupe_host_topology_probe(&topology, 8); /* nothing there */
    assert_int_equal(topology.count, 0);
    for (size_t i = 0; i < DRUPE_COUNT_OF(lists); i++) {
        two_nodes();
        write_file(lists[i], "devices/system/node/node1/cpulist");
        write_file(lists[i], "devices/system/cpu/cpu5/cache/index2/level");
        drupe_host_topology_probe(&topology, 8);
        assert_int_equal(topology.count, 8);
        /* What one CPU does not tell divides nothing. */
        assert_int_equal(drupe_host_topology_parts(&topology, DRUPE_DOMAIN_L2, 0, 8), 0);
        assert_true(drupe_host_topology_parts(&topology, DRUPE_DOMAIN_NUMA, 0, 8) == 0);
        drupe_host_topology_clear(&topology);
        write_file(lists[i], "devices/system/cpu/online");
        drupe_host_topology_probe(&topology, 8);
        assert_int_equal(topology.count, 0);
        drupe_host_topology_clear(&topology);
    }
}

static void release_all(drupe_device **devices, size_t count)
{
    for (size_t i = 0; i < count; i++) drupe_device_release(devices[i]);
}

static void divided_along(void **state)
{
    (void)state;
    two_nodes();
    setenv("DRUPE_HOST_THREADS", "8", 1);
    drupe_device *device, *nodes[2], *pairs[2], *found;
    size_t count;
    drupe_partition next = {.kind = DRUPE_SPLIT_AFFINITY, .domain = DRUPE_DOMAIN_NEXT};
    drupe_partition fourth = {.kind = DRUPE_SPLIT_AFFINITY, .domain = DRUPE_DOMAIN_L4};
    ok(drupe_device_select("host", &device));
    uint64_t domains = drupe_device_number(device, DRUPE_INFO_PARTITION_DOMAINS, 0);
    assert_int_equal(domains, DRUPE_FLAG(DRUPE_DOMAIN_NUMA) | DRUPE_FLAG(DRUPE_DOMAIN_L3) |
                                  DRUPE_FLAG(DRUPE_DOMAIN_L2) | DRUPE_FLAG(DRUPE_DOMAIN_L1) |
                                  DRUPE_FLAG(DRUPE_DOMAIN_NEXT));
    ok(drupe_device_split(device, &next, NULL, 0, &count));
    assert_int_equal(count, 2);
    ok(drupe_device_split(device, &next, nodes, 2, &count));
    assert_string_equal(drupe_device_filter(nodes[1]), "host:cpu:0{numa}.1");
    assert_int_equal(drupe_device_number(nodes[1], DRUPE_INFO_MAX_COMPUTE_UNITS, 0), 4);
    assert_int_equal(drupe_device_number(nodes[1], DRUPE_INFO_PARTITION_TYPE, 0), DRUPE_SPLIT_AFFINITY);
    assert_int_equal(drupe_device_number(nodes[1], DRUPE_INFO_PARTITION_TYPE_DOMAIN, 0), DRUPE_DOMAIN_NUMA);
    /* One node has one third-level cache: the next domain is the second level. */
    ok(drupe_device_split(nodes[1], &next, pairs, 2, &count));
    assert_int_equal(count, 2);
    assert_string_equal(drupe_device_filter(pairs[0]), "host:cpu:0{numa}.1{L2_cache}.0");
    ok(drupe_device_select("host:0{numa}.1{next_partitionable}.0", &found));
    assert_ptr_equal(found, pairs[0]);
    assert_int_equal(drupe_device_split(device, &fourth, NULL, 0, &count), DRUPE_E_UNSUPPORTED);
    assert_non_null(strstr(drupe_error_last()->text, "numa, L3_cache, L2_cache, L1_cache"));
    drupe_device_release(found);
    release_all(pairs, 2);
    release_all(nodes, 2);
    drupe_device_release(device);
}

/* Where the thread that ran an item of test_worker may run. */
static int only_cpu_of(uint64_t thread)
{
    cpu_set_t set;
    assert_int_equal(sched_getaffinity((pid_t)thread, sizeof set, &set), 0);
    for (int cpu = 0; CPU_COUNT(&set) == 1 && cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &set)) return cpu;
    }
    return -1;
}

static uint64_t worker_of(drupe_device *device)
{
    drupe_queue *queue;
    drupe_context *context;
    drupe_program *program;
    drupe_kernel *kernel;
    drupe_memory *memory;
    drupe_source source = {.language = DRUPE_LANG_BUILTIN};
    ok(drupe_device_queue(device, &queue));
    ok(drupe_device_context(device, &context));
    ok(drupe_program_open(context, device, &source, NULL, &program));
    ok(drupe_kernel_open(program, "test_worker", &kernel));
    ok(drupe_memory_alloc(queue, DRUPE_MEM_HOST, 8, 0, &memory));
    uint64_t *out = drupe_memory_pointer(memory), rounds = 10, thread;
    drupe_arg args[] = {{DRUPE_ARG_POINTER, 0, &out}, {DRUPE_ARG_VALUE, sizeof rounds, &rounds}};
    drupe_range range = {.dims = 1, .global = {1}};
    drupe_submission s = {.queue = queue};
    ok(drupe_submit_kernel(&s, kernel, &range, args, 2, NULL));
    ok(drupe_queue_wait(queue, DRUPE_FOREVER));
    thread = *out;
    drupe_memory_release(memory);
    drupe_kernel_release(kernel);
    drupe_program_release(program);
    drupe_context_release(context);
    drupe_queue_release(queue);
    return thread;
}

/* Started before or after the division, a worker runs on its domain's CPU only. */
static void workers_stay_at_home(void **state)
{
    (void)state;
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    if (!CPU_ISSET(0, &set) || !CPU_ISSET(1, &set)) skip();
    write_file("0-1", "devices/system/cpu/online");
    write_file("0-1", "devices/system/node/online");
    write_file("0", "devices/system/node/node0/cpulist");
    write_file("1", "devices/system/node/node1/cpulist");
    setenv("DRUPE_HOST_THREADS", "2", 1);
    for (int started = 0; started < 2; started++) {
        drupe_device *device, *nodes[2], *first;
        size_t count;
        drupe_partition numa = {.kind = DRUPE_SPLIT_AFFINITY, .domain = DRUPE_DOMAIN_NUMA};
        ok(drupe_device_select("host", &device));
        if (started) {
            ok(drupe_device_select("host:0.0", &first));
            worker_of(first);
            drupe_device_release(first);
        }
        ok(drupe_device_split(device, &numa, nodes, 2, &count));
        assert_int_equal(only_cpu_of(worker_of(nodes[0])), 0);
        assert_int_equal(only_cpu_of(worker_of(nodes[1])), 1);
        release_all(nodes, 2);
        drupe_device_release(device);
        assert_int_equal(drupe_library_close(5000000000u), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(domains_are_ranges, setup, teardown),
        cmocka_unit_test_setup_teardown(broken_files, setup, teardown),
        cmocka_unit_test_setup_teardown(divided_along, setup, teardown),
        cmocka_unit_test_setup_teardown(workers_stay_at_home, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
