/* debug_request without a language: what C answers, what it hands over, and the names of cells. */
#include "harness.h"

#include "jkernel/server/server_room.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ID   64
#define INFO "{\"type\":\"request\",\"seq\":7,\"command\":\"debugInfo\",\"arguments\":{}}"
#define STOP "{\"type\":\"request\",\"seq\":8,\"command\":\"disconnect\"}"

static int set_up_debugger(void **state)
{
    (void)state;
    kernel_start_prepared(&the_kernel, fake_executor_with_debugger);
    client_open(&the_client, the_kernel.path);
    return 0;
}

/* Ask on `channel`, between busy and idle. */
static void ask(jk_channel channel, const char *content, test_received *reply)
{
    char id[ID];
    client_send(&the_client, channel, "debug_request", content, id);
    client_expect(&the_client, channel, "debug_reply", id, reply);
    client_expect_iopub(&the_client, "status:busy", id);
    client_expect_iopub(&the_client, "status:idle", id);
}

static void expect_info(const test_received *reply)
{
    json_t *body = json_object_get(reply->content, "body");
    assert_true(json_is_true(json_object_get(reply->content, "success")));
    assert_int_equal(json_integer_value(json_object_get(reply->content, "request_seq")), 7);
    assert_string_equal(received_text(reply, "type"), "response");
    assert_string_equal(received_text(reply, "command"), "debugInfo");
    assert_true(json_is_false(json_object_get(body, "isStarted")));
    assert_string_equal(json_string_value(json_object_get(body, "hashMethod")), "Murmur2");
    assert_int_equal(json_integer_value(json_object_get(body, "hashSeed")), JK_CELL_SEED);
    assert_string_equal(json_string_value(json_object_get(body, "tmpFileSuffix")), ".py");
    assert_int_equal(json_array_size(json_object_get(body, "breakpoints")), 0);
    assert_true(json_is_array(json_object_get(body, "stoppedThreads")));
    assert_true(json_is_true(json_object_get(body, "richRendering")));
    assert_true(json_is_array(json_object_get(body, "exceptionPaths")));
    assert_true(json_is_true(json_object_get(body, "copyToGlobals")));
}

static void test_info_while_the_language_is_stuck(void **state)
{
    (void)state;
    char cell[ID];
    test_received reply;
    client_execute(&the_client, "stuck", "", cell);
    client_expect_iopub(&the_client, "status:busy", cell);
    client_expect_iopub(&the_client, "execute_input", cell);
    char id[ID];
    client_send(&the_client, JK_CONTROL, "debug_request", INFO, id);
    client_expect(&the_client, JK_CONTROL, "debug_reply", id, &reply);
    expect_info(&reply);
    const char *prefix =
        json_string_value(json_object_get(json_object_get(reply.content, "body"), "tmpFilePrefix"));
    assert_string_equal(prefix, the_kernel.fake.server->answers->cell_prefix);
    received_clear(&reply);
    fake_executor_release(&the_kernel.fake);
    client_expect(&the_client, JK_SHELL, "execute_reply", cell, &reply);
    received_clear(&reply);
}

static void test_info_on_shell(void **state)
{
    (void)state;
    test_received reply;
    ask(JK_SHELL, INFO, &reply);
    expect_info(&reply);
    received_clear(&reply);
}

static void test_the_executor_answers_from_its_first_request_on(void **state)
{
    (void)state;
    static const char *const requests[] = {STOP, INFO, STOP};
    test_received reply;
    ask(JK_CONTROL, INFO, &reply);
    expect_info(&reply);
    received_clear(&reply);
    for (size_t i = 0; i < 3; i++) {
        ask(i == 1 ? JK_SHELL : JK_CONTROL, requests[i], &reply);
        assert_string_equal(received_text(&reply, "message"), "from the executor");
        received_clear(&reply);
    }
}

static void expect_refusal(const char *content, const char *why)
{
    test_received reply;
    ask(JK_CONTROL, content, &reply);
    assert_string_equal(received_text(&reply, "type"), "response");
    assert_true(json_is_false(json_object_get(reply.content, "success")));
    if (!strstr(received_text(&reply, "message"), why)) fail_msg("%s", received_text(&reply, "message"));
    received_clear(&reply);
}

/* A printf() that waits for its pipe to be read has stdout's lock. */
static void test_a_refusal_from_the_io_thread_waits_for_nobody(void **state)
{
    (void)state;
    test_received reply;
    assert_int_equal(jk_server_capture_stdio(the_kernel.fake.server), 0);
    atomic_store(&the_kernel.fake.refuses, true);
    flockfile(stdout);
    ask(JK_SHELL, STOP, &reply);
    assert_non_null(strstr(received_text(&reply, "message"), "cannot be started"));
    received_clear(&reply);
    ask(JK_CONTROL, STOP, &reply);
    received_clear(&reply);
    funlockfile(stdout);
    atomic_store(&the_kernel.fake.refuses, false);
    ask(JK_CONTROL, STOP, &reply);
    assert_string_equal(received_text(&reply, "message"), "from the executor");
    received_clear(&reply);
}

static void test_a_debugger_that_has_ended_is_started_again(void **state)
{
    (void)state;
    test_received reply;
    ask(JK_CONTROL, STOP, &reply);
    received_clear(&reply);
    assert_int_equal(atomic_load(&the_kernel.fake.nsubshells), 1);
    jk_subshell_end(the_kernel.fake.subshells[0], "a test has ended it");
    ask(JK_CONTROL, STOP, &reply);
    assert_string_equal(received_text(&reply, "message"), "from the executor");
    assert_int_equal(atomic_load(&the_kernel.fake.nsubshells), 2);
    received_clear(&reply);
}

static void test_no_debugger(void **state)
{
    (void)state;
    expect_refusal(INFO, "install debugpy");
    expect_refusal(STOP, "install debugpy");
}

static void test_garbage(void **state)
{
    (void)state;
    expect_refusal("{}", "needs a command");
    expect_refusal("{\"command\":5,\"seq\":\"x\"}", "needs a command");
    expect_refusal("{\"command\":}", "needs a command");
    test_received reply;
    ask(JK_CONTROL, "{\"command\":\"\\u0001\\\"quoted\\\"\",\"seq\":1e99}", &reply);
    assert_string_equal(received_text(&reply, "message"), "from the executor");
    received_clear(&reply);
}

/* What @jupyterlab/debugger 4.6 computes for the same texts with this seed. */
static void test_names_of_cells(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t hash;
    } cells[] = {
        {"", 3990065800u},
        {"a", 2167009006u},
        {"ab", 2805137849u},
        {"abc", 3350977461u},
        {"abcd", 804720481u},
        {"print('x')\n", 2055824452u},
        {"na\xc3\xafve = '\xe2\x82\xac'", 806727115u},
        {"def f(x):\n    return x\n", 2569970551u},
    };
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        size_t size = strlen(cells[i].text);
        assert_int_equal(jk_cell_hash(cells[i].text, size), cells[i].hash);
        char name[JK_CELL_NAME_SIZE], ending[40];
        jk_server_cell_name(the_kernel.fake.server, (jk_bytes){cells[i].text, size}, name);
        snprintf(ending, sizeof ending, "/%lu.py", (unsigned long)cells[i].hash);
        assert_string_equal(strrchr(name, '/'), ending);
        assert_memory_equal(name, the_kernel.fake.server->answers->cell_prefix,
                            strlen(the_kernel.fake.server->answers->cell_prefix));
    }
}

static void test_odd_folders_for_cells(void **state)
{
    (void)state;
    static char folder[400] = "/";
    jk_session session = {.id = "0123456789abcdef0123456789abcdef"};
    jk_answers answers = {.cell_prefix = ""};
    jk_server server = {.session = &session, .answers = &answers};
    static const struct {
        const char *folder, *prefix;
    } cases[] = {
        {"/dev/shm", "/dev/shm/ipykernel_0123456789abcdef/"},
        {"relative", "/tmp/ipykernel_0123456789abcdef/"},
        {"/does/not/exist", "/tmp/ipykernel_0123456789abcdef/"},
        {folder, "/tmp/ipykernel_0123456789abcdef/"},
        {"", "/tmp/ipykernel_0123456789abcdef/"},
    };
    memset(folder + 1, '.', sizeof folder - 2);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setenv("TMPDIR", cases[i].folder, 1);
        jk_cell_names_open(&server);
        assert_string_equal(answers.cell_prefix, cases[i].prefix);
    }
    unsetenv("TMPDIR");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up_debugger, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_info_while_the_language_is_stuck),
        CASE(test_info_on_shell),
        CASE(test_the_executor_answers_from_its_first_request_on),
        cmocka_unit_test_setup_teardown(test_no_debugger, set_up, tear_down),
        CASE(test_a_refusal_from_the_io_thread_waits_for_nobody),
        CASE(test_a_debugger_that_has_ended_is_started_again),
        CASE(test_garbage),
        CASE(test_names_of_cells),
        cmocka_unit_test(test_odd_folders_for_cells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
