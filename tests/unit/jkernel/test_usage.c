/* Control groups in a made-up /proc, and usage_request with a language that is stuck. */
#include "harness.h"
#include "jkernel/server/usage/usage_room.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char root[] = "/tmp/drupe-proc-XXXXXX";

static void put(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(const char *name, const char *format, ...)
{
    char path[256];
    va_list arguments;
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = strchr(path + sizeof root, '/'); slash; slash = strchr(slash + 1, '/')) {
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

static int proc_set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(root));
    setenv("DRUPE_TEST_PROC", root, 1);
    drupe_proc_choose(getenv("DRUPE_TEST_PROC"));
    return 0;
}

static int proc_tear_down(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", root);
    unsetenv("DRUPE_TEST_PROC");
    drupe_proc_choose(getenv("DRUPE_TEST_PROC"));
    return system(command);
}

static void test_nothing_there(void **state)
{
    (void)state;
    drupe_groups group;
    jk_memory memory;
    drupe_groups_find(&group);
    assert_string_equal(group.memory.path, "");
    assert_true(drupe_group_memory_limit(&group.memory, NULL) == 0);
    assert_true(jk_cgroup_kills(&group.memory) == DRUPE_NOT_KNOWN);
    assert_true(drupe_group_cpus(&group.cpu) <= 0 && jk_cgroup_cpu_time(&group) < 0);
    jk_memory_read(&group.memory, &memory);
    assert_true(memory.total == 0);
}

static void test_garbage(void **state)
{
    (void)state;
    drupe_groups group;
    put("self/cgroup", "\n:\n0:\n0::\n::::\n4:mem\n0::/../../etc\n");
    put("self/mountinfo", "30 24\n - cgroup2 x y\n30 24 0:26 / %s/none rw - cgroup2 cgroup2 rw\nx - \n",
        root);
    drupe_groups_find(&group);
    assert_true(drupe_group_memory_limit(&group.memory, NULL) == 0);
    put("vmstat", "nr_free 3\noom_kill 7\n");
    assert_true(jk_cgroup_kills(&group.memory) == 7);
}

/* The smallest limit between the group and the mount point, and nothing above. */
static void test_nested(void **state)
{
    (void)state;
    drupe_groups group;
    drupe_group at;
    put("self/cgroup", "0::/a/b/c\n");
    put("self/mountinfo", "30 24 0:26 / %s/mount rw,nosuid shared:4 - cgroup2 cgroup2 rw\n", root);
    put("mount/a/b/c/memory.max", "max\n");
    put("mount/a/b/memory.high", "5000\n");
    put("mount/a/memory.max", "9000\n");
    put("memory.max", "1\n");
    put("mount/a/b/c/memory.events", "oom 3\noom_kill 12\noom_group_kill 1\n");
    put("mount/a/cpu.max", "150000 100000\n");
    put("mount/a/b/c/cpu.max", "max 100000\n");
    put("mount/a/b/c/cpu.stat", "usage_usec 2500000\n");
    drupe_groups_find(&group);
    assert_true(drupe_group_memory_limit(&group.memory, &at) == 5000);
    assert_string_equal(strrchr(at.path, '/'), "/b");
    assert_true(jk_cgroup_kills(&group.memory) == 12);
    assert_true(drupe_group_cpus(&group.cpu) > 1.49 && drupe_group_cpus(&group.cpu) < 1.51);
    assert_true(jk_cgroup_cpu_time(&group) > 2.49 && jk_cgroup_cpu_time(&group) < 2.51);
}

/* Version 1: each controller has its hierarchy; 2^63 less a page means "no limit". */
static void test_version_1(void **state)
{
    (void)state;
    drupe_groups group;
    put("self/cgroup", "5:cpu,cpuacct:/job\n4:memory:/job\n0::/\n");
    put("self/mountinfo",
        "33 24 0:28 / %s/v1/memory rw - cgroup cgroup rw,memory\n"
        "34 24 0:29 / %s/v1/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
        root, root);
    put("v1/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
    put("v1/memory/memory.limit_in_bytes", "7777\n");
    put("v1/memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    put("v1/cpu/job/cpu.cfs_quota_us", "-1\n");
    put("v1/cpu/job/cpu.cfs_period_us", "100000\n");
    put("v1/cpu/job/cpuacct.usage", "3000000000\n");
    drupe_groups_find(&group);
    assert_true(drupe_group_memory_limit(&group.memory, NULL) == 7777);
    assert_true(jk_cgroup_kills(&group.memory) == 2);
    assert_true(drupe_group_cpus(&group.cpu) <= 0);
    assert_true(jk_cgroup_cpu_time(&group) > 2.9 && jk_cgroup_cpu_time(&group) < 3.1);
}

static void test_request(void **state)
{
    (void)state;
    char busy[64], asked[64];
    test_received reply;
    client_execute(&the_client, "stuck", NULL, busy);
    client_expect_iopub(&the_client, "status:busy", busy);
    client_send(&the_client, JK_CONTROL, "usage_request", "{}", asked);
    client_expect(&the_client, JK_CONTROL, "usage_reply", asked, &reply);
    assert_true(json_integer_value(json_object_get(reply.content, "pid")) > 0);
    assert_true(json_integer_value(json_object_get(reply.content, "kernel_memory")) > 0);
    assert_true(json_is_object(json_object_get(reply.content, "host_virtual_memory")));
    assert_int_equal(json_array_size(json_object_get(reply.content, "devices")), 1);
    received_clear(&reply);
    fake_executor_release(&the_kernel.fake);
    expect_reply("execute_reply", busy, "ok");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_request, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_there, proc_set_up, NULL),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_nested),
        cmocka_unit_test_setup_teardown(test_version_1, NULL, proc_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
