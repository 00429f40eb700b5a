/* Control groups of both versions in a made-up /proc, where mount points are folders beside it. */
#include "base/machine.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char root[32];

static void put(const char *name, const char *format, ...) DRUPE_PRINTF(2, 3);
static void put(const char *name, const char *format, ...)
{
    char path[256];
    va_list arguments;
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
    fclose(file);
}

static int set_up(void **state)
{
    (void)state;
    strcpy(root, "/tmp/drupe-proc-XXXXXX");
    if (!mkdtemp(root)) return -1;
    drupe_proc_choose(root);
    return 0;
}

static int tear_down(void **state)
{
    char command[64];
    (void)state;
    drupe_proc_choose(NULL);
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

/* cpuset stands before cpu in both files, as it often does, and must not be taken for it. */
static void version_1(void **state)
{
    (void)state;
    drupe_groups groups;
    drupe_group at;
    put("self/cgroup", "5:cpuset:/set\n4:cpu,cpuacct:/job/step\n3:memory:/job\n0::/elsewhere\n");
    put("self/mountinfo",
        "30 24 0:25 / %s/cpuset rw - cgroup cgroup rw,cpuset\n"
        "31 24 0:26 / %s/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "32 24 0:27 / %s/memory rw - cgroup cgroup rw,memory\n",
        root, root, root);
    put("cpuset/set/cpu.cfs_quota_us", "100000\n");
    put("cpuset/set/cpu.cfs_period_us", "100000\n");
    put("cpu,cpuacct/job/step/cpu.cfs_quota_us", "-1\n");
    put("cpu,cpuacct/job/step/cpu.cfs_period_us", "100000\n");
    put("cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n");
    put("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    put("memory/job/memory.limit_in_bytes", "5000\n");
    put("memory/job/memory.usage_in_bytes", "4000\n");
    put("memory/job/memory.stat", "cache 1\ntotal_inactive_file 200\ntotal_active_file 100\n");
    put("memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("memory/memory.usage_in_bytes", "70000\n");
    put("meminfo", "MemTotal: 100 kB\nMemAvailable:      50 kB\n");
    drupe_groups_find(&groups);
    assert_false(groups.cpu.unified || groups.memory.unified);
    assert_non_null(strstr(groups.cpu.path, "/cpu,cpuacct/job/step"));
    assert_true(drupe_group_cpus(&groups.cpu) > 2.49 && drupe_group_cpus(&groups.cpu) < 2.51);
    assert_true(drupe_group_memory_limit(&groups.memory, &at) == 5000);
    assert_true(drupe_group_memory_room(&groups.memory) == 1300);
    assert_true(drupe_machine_memory() == 5000);
    assert_true(drupe_machine_memory_free() == 1300);
    unsigned all = drupe_cpus_by_affinity();
    assert_int_equal(drupe_machine_cpus(), all < 3 ? all : 3);
}

static void version_2(void **state)
{
    (void)state;
    drupe_groups groups;
    drupe_group at;
    put("self/cgroup", "0::/slice/scope\n");
    put("self/mountinfo", "30 24 0:25 / %s/sys rw shared:4 - cgroup2 cgroup2 rw\n", root);
    put("sys/slice/scope/cpu.max", "max 100000\n");
    put("sys/slice/cpu.max", "50000 100000\n");
    put("sys/slice/scope/memory.max", "max\n");
    put("sys/slice/scope/memory.current", "100\n");
    put("sys/slice/memory.max", "9000\n");
    put("sys/slice/memory.current", "8000\n");
    put("sys/slice/memory.stat", "file 5000\ninactive_file 1000\nactive_file 500\n");
    put("meminfo", "MemAvailable: 2 kB\n");
    drupe_groups_find(&groups);
    assert_true(groups.cpu.unified && groups.memory.unified);
    assert_true(drupe_group_cpus(&groups.cpu) > 0.49 && drupe_group_cpus(&groups.cpu) < 0.51);
    assert_true(drupe_group_memory_limit(&groups.memory, &at) == 9000);
    assert_true(strlen(at.path) < strlen(groups.memory.path));
    assert_true(drupe_group_memory_room(&groups.memory) == 2500);
    assert_true(drupe_machine_memory_free() == 2048);
    assert_int_equal(drupe_machine_cpus(), 1);
}

static void no_groups(void **state)
{
    (void)state;
    drupe_groups groups;
    drupe_groups_find(&groups);
    assert_string_equal(groups.memory.path, "");
    assert_true(drupe_group_memory_limit(&groups.memory, NULL) == 0);
    assert_true(drupe_group_memory_room(&groups.memory) == UINT64_MAX);
    assert_true(drupe_group_cpus(&groups.cpu) <= 0);
    assert_int_equal(drupe_machine_cpus(), drupe_cpus_by_affinity());
    assert_true(drupe_machine_memory() > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(version_1, set_up, tear_down),
        cmocka_unit_test_setup_teardown(version_2, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_groups, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
