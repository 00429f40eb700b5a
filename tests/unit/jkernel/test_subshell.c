/* Subshells as a client sees them: parallel to the main shell, with queues, aborts and statuses of their own.
 */
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ID 64

static void expect_control(const char *type, const char *id, test_received *reply)
{
    client_expect(&the_client, JK_CONTROL, type, id, reply);
    client_expect_iopub(&the_client, "status:busy", id);
    client_expect_iopub(&the_client, "status:idle", id);
}

/* Make a subshell while nothing runs. */
static void subshell_make(char shell[ID])
{
    char id[ID];
    test_received reply;
    client_send(&the_client, JK_CONTROL, "create_subshell_request", "{}", id);
    expect_control("create_subshell_reply", id, &reply);
    assert_string_equal(received_text(&reply, "status"), "ok");
    snprintf(shell, ID, "%s", received_text(&reply, "subshell_id"));
    assert_int_equal(strlen(shell), 36);
    received_clear(&reply);
}

static void subshell_delete(const char *shell, const char *status)
{
    char id[ID], content[128];
    test_received reply;
    snprintf(content, sizeof content, "{\"subshell_id\":\"%.40s\"}", shell);
    client_send(&the_client, JK_CONTROL, "delete_subshell_request", content, id);
    client_expect(&the_client, JK_CONTROL, "delete_subshell_reply", id, &reply);
    assert_string_equal(received_text(&reply, "status"), status);
    received_clear(&reply);
}

/* Send to a subshell; `id` is chosen by the caller. */
static void send_to(const char *shell, const char *type, const char *content, const char *id)
{
    char header[256];
    snprintf(header, sizeof header, "{\"msg_id\":\"%.40s\",\"msg_type\":\"%.40s\",\"subshell_id\":\"%.40s\"}",
             id, type, shell);
    client_send_header(&the_client, JK_SHELL, header, content);
}

static void execute_in(const char *shell, const char *code, const char *id)
{
    char content[256];
    snprintf(content, sizeof content, "{\"code\":\"%s\"}", code);
    send_to(shell, "execute_request", content, id);
}

static void test_create_list_delete(void **state)
{
    (void)state;
    char first[ID], second[ID], id[ID];
    test_received reply;
    subshell_make(first);
    subshell_make(second);
    assert_string_not_equal(first, second);
    client_send(&the_client, JK_CONTROL, "list_subshell_request", "{}", id);
    expect_control("list_subshell_reply", id, &reply);
    json_t *list = json_object_get(reply.content, "subshell_id");
    assert_int_equal(json_array_size(list), 2);
    assert_string_equal(json_string_value(json_array_get(list, 0)), first);
    assert_string_equal(json_string_value(json_array_get(list, 1)), second);
    received_clear(&reply);
    subshell_delete(first, "ok");
    subshell_delete(first, "error");
    subshell_delete("no such id", "error");
    subshell_delete(second, "ok");
    client_send(&the_client, JK_CONTROL, "delete_subshell_request", "{\"subshell_id\":3}", id);
    client_expect(&the_client, JK_CONTROL, "delete_subshell_reply", id, &reply);
    assert_string_equal(received_text(&reply, "status"), "error");
    received_clear(&reply);
    client_send(&the_client, JK_CONTROL, "list_subshell_request", "{}", id);
    client_expect(&the_client, JK_CONTROL, "list_subshell_reply", id, &reply);
    assert_int_equal(json_array_size(json_object_get(reply.content, "subshell_id")), 0);
    received_clear(&reply);
}

static void test_runs_beside_the_main_shell(void **state)
{
    (void)state;
    char shell[ID], cell[ID];
    subshell_make(shell);
    client_execute(&the_client, "stuck", NULL, cell);
    client_expect_iopub(&the_client, "status:busy", cell);
    client_expect_iopub(&the_client, "execute_input", cell);
    execute_in(shell, "print beside", "b");
    expect_reply("execute_reply", "b", "ok");
    client_expect_iopub(&the_client, "status:busy", "b");
    client_expect_iopub(&the_client, "execute_input", "b");
    client_expect_iopub(&the_client, "stream", "b");
    client_expect_iopub(&the_client, "status:idle", "b");
    client_expect_iopub(&the_client, "status:busy", cell);
    fake_executor_release(&the_kernel.fake);
    expect_reply("execute_reply", cell, "ok");
    client_expect_iopub(&the_client, "status:idle", cell);
    client_expect_silence(&the_client, JK_IOPUB, 50);
}

static void test_busy_names_a_cell_that_still_runs(void **state)
{
    (void)state;
    char shell[ID], cell[ID], info[ID];
    test_received reply;
    subshell_make(shell);
    client_execute(&the_client, "stuck", NULL, cell);
    client_expect_iopub(&the_client, "status:busy", cell);
    client_expect_iopub(&the_client, "execute_input", cell);
    execute_in(shell, "sleep 60000", "s");
    client_expect_iopub(&the_client, "status:busy", "s");
    client_expect_iopub(&the_client, "execute_input", "s");
    client_send(&the_client, JK_CONTROL, "kernel_info_request", "{}", info);
    client_expect(&the_client, JK_CONTROL, "kernel_info_reply", info, &reply);
    received_clear(&reply);
    client_expect_iopub(&the_client, "status:busy", info);
    client_expect_iopub(&the_client, "status:idle", info);
    client_expect_iopub(&the_client, "status:busy", "s"); /* the one that began last */
    fake_executor_release(&the_kernel.fake);
    expect_reply("execute_reply", cell, "ok");
    client_expect_iopub(&the_client, "status:idle", cell);
    client_expect_iopub(&the_client, "status:busy", "s");
    atomic_store(&the_kernel.fake.interrupted, true);
    expect_reply("execute_reply", "s", "error");
    client_expect_iopub(&the_client, "error", "s");
    client_expect_iopub(&the_client, "status:idle", "s");
    client_expect_silence(&the_client, JK_IOPUB, 50);
}

static void test_a_failed_cell_aborts_its_own_queue(void **state)
{
    (void)state;
    char shell[ID], other[ID], cell[ID];
    subshell_make(shell);
    subshell_make(other);
    client_execute(&the_client, "stuck", NULL, cell);
    client_expect_iopub(&the_client, "status:busy", cell);
    execute_in(shell, "sleep 300\\nerror", "failed");
    execute_in(shell, "print never", "queued");
    send_to(shell, "complete_request", "{\"code\":\"\"}", "complete");
    execute_in(other, "print other", "other");
    client_execute(&the_client, "print waits", NULL, NULL);
    /* In any order but the last: the completion, the other shell's cell, the failure and its abort. */
    bool aborted = false, completed = false, ran = false;
    for (int i = 0; i < 4; i++) {
        test_received reply;
        assert_true(client_receive(&the_client, JK_SHELL, WAIT, &reply));
        const char *status = received_text(&reply, "status");
        if (strcmp(reply.parent_id, "queued") == 0) aborted = strcmp(status, "aborted") == 0;
        if (strcmp(reply.parent_id, "complete") == 0) completed = strcmp(status, "ok") == 0;
        if (strcmp(reply.parent_id, "other") == 0) ran = strcmp(status, "ok") == 0;
        received_clear(&reply);
    }
    assert_true(aborted && completed && ran);
    client_expect_silence(&the_client, JK_SHELL, 50);
    fake_executor_release(&the_kernel.fake);
    expect_reply("execute_reply", cell, "ok");
    test_received reply;
    assert_true(client_receive(&the_client, JK_SHELL, WAIT, &reply));
    assert_string_equal(received_text(&reply, "status"), "ok"); /* the main shell's queue was left alone */
    received_clear(&reply);
}

static void test_the_main_shells_failure_leaves_subshells_alone(void **state)
{
    (void)state;
    char shell[ID], cell[ID], queued[ID];
    subshell_make(shell);
    client_execute(&the_client, "sleep 200\\nerror", NULL, cell);
    client_execute(&the_client, "print never", NULL, queued);
    execute_in(shell, "stuck", "one");
    execute_in(shell, "print two", "two");
    expect_reply("execute_reply", cell, "error");
    expect_reply("execute_reply", queued, "aborted");
    fake_executor_release(&the_kernel.fake);
    expect_reply("execute_reply", "one", "ok");
    expect_reply("execute_reply", "two", "ok");
}

static void test_deletion_lets_the_running_cell_finish(void **state)
{
    (void)state;
    char shell[ID];
    subshell_make(shell);
    execute_in(shell, "stuck\\nprint done", "runs");
    client_expect_iopub(&the_client, "status:busy", "runs");
    client_expect_iopub(&the_client, "execute_input", "runs");
    execute_in(shell, "print never", "queued");
    /* The shell's queue is in order: this one is behind both. */
    send_to("x", "complete_request", "{}", "mark");
    expect_reply("complete_reply", "mark", "error");
    subshell_delete(shell, "ok");
    expect_reply("execute_reply", "queued", "aborted");
    execute_in(shell, "print never", "late");
    expect_reply("execute_reply", "late", "error");
    fake_executor_release(&the_kernel.fake);
    expect_reply("execute_reply", "runs", "ok");
    char text[64];
    client_until_idle(&the_client, "runs", text, sizeof text);
    assert_string_equal(text, "done\n");
}

static void test_unknown_id(void **state)
{
    (void)state;
    send_to("nobody", "execute_request", "{\"code\":\"print never\"}", "a");
    expect_reply("execute_reply", "a", "error");
    client_expect_iopub(&the_client, "status:busy", "a");
    client_expect_iopub(&the_client, "status:idle", "a");
    send_to("nobody", "comm_msg", "{}", "b");
    client_expect_iopub(&the_client, "status:busy", "b");
    client_expect_iopub(&the_client, "status:idle", "b");
    client_expect_silence(&the_client, JK_SHELL, 50);
    assert_int_equal(atomic_load(&the_kernel.fake.executed), 0);
}

static void test_refused_and_gone(void **state)
{
    (void)state;
    char shell[ID], id[ID];
    test_received reply;
    subshell_make(shell); /* what is opened once is open now */
    subshell_delete(shell, "ok");
    long descriptors = 0;
    enum { REFUSALS = 20 };
    for (int i = 0; i < REFUSALS; i++) {
        atomic_store(&the_kernel.fake.refuses, true);
        client_send(&the_client, JK_CONTROL, "create_subshell_request", "{}", id);
        client_expect(&the_client, JK_CONTROL, "create_subshell_reply", id, &reply);
        assert_string_equal(received_text(&reply, "status"), "error");
        assert_true(strlen(received_text(&reply, "evalue")) > 0);
        received_clear(&reply);
        if (i == 0) descriptors = descriptors_count();
    }
    /* A leak is one for each. The client's connections of stdin and of the heartbeat may have come since. */
    assert_true(descriptors_count() < descriptors + REFUSALS - 1);
}

static void test_twenty(void **state)
{
    (void)state;
    char shells[20][ID], id[ID];
    bool seen[20] = {false};
    for (int i = 0; i < 20; i++) subshell_make(shells[i]);
    for (int i = 0; i < 20; i++) {
        snprintf(id, sizeof id, "cell-%d", i);
        execute_in(shells[i], "stuck", id);
    }
    for (int i = 0; i < 20; i++) fake_executor_release(&the_kernel.fake);
    for (int i = 0; i < 20; i++) {
        test_received reply;
        assert_true(client_receive(&the_client, JK_SHELL, WAIT, &reply));
        int number = atoi(reply.parent_id + 5);
        assert_true(number >= 0 && number < 20 && !seen[number]);
        seen[number] = true;
        received_clear(&reply);
    }
    for (int i = 0; i < 20; i++) subshell_delete(shells[i], "ok");
}

/* Cells on their way while their subshell is deleted: each is answered once, one way or another. */
static void test_deletion_races_with_requests(void **state)
{
    (void)state;
    for (int round = 0; round < 30; round++) {
        char shell[ID], id[ID], content[128];
        test_received reply;
        client_send(&the_client, JK_CONTROL, "create_subshell_request", "{}", id);
        client_expect(&the_client, JK_CONTROL, "create_subshell_reply", id, &reply);
        snprintf(shell, sizeof shell, "%s", received_text(&reply, "subshell_id"));
        received_clear(&reply);
        snprintf(content, sizeof content, "{\"subshell_id\":\"%s\"}", shell);
        for (int i = 0; i < 10; i++) {
            snprintf(id, sizeof id, "race-%d-%d", round, i);
            execute_in(shell, i == 3 ? "error" : "print x", id);
            if (i == round % 10)
                client_send(&the_client, JK_CONTROL, "delete_subshell_request", content, NULL);
        }
        for (int i = 0; i < 10; i++) {
            assert_true(client_receive(&the_client, JK_SHELL, WAIT, &reply));
            received_clear(&reply);
        }
        assert_true(client_receive(&the_client, JK_CONTROL, WAIT, &reply));
        assert_string_equal(received_text(&reply, "status"), "ok");
        received_clear(&reply);
    }
    client_expect_silence(&the_client, JK_SHELL, 50);
}

static void test_shutdown_ends_them(void **state)
{
    (void)state;
    char shell[ID], idle[ID], id[ID];
    test_received reply;
    subshell_make(shell);
    subshell_make(idle);
    execute_in(shell, "stuck", "runs");
    client_expect_iopub(&the_client, "status:busy", "runs");
    execute_in(shell, "print never", "queued");
    send_to("x", "complete_request", "{}", "mark");
    expect_reply("complete_reply", "mark", "error");
    client_send(&the_client, JK_CONTROL, "shutdown_request", "{\"restart\":false}", id);
    client_expect(&the_client, JK_CONTROL, "shutdown_reply", id, &reply);
    received_clear(&reply);
    expect_reply("execute_reply", "queued", "aborted");
    client_send(&the_client, JK_CONTROL, "create_subshell_request", "{}", id);
    client_expect(&the_client, JK_CONTROL, "create_subshell_reply", id, &reply);
    assert_string_equal(received_text(&reply, "status"), "error");
    received_clear(&reply);
    /* tear_down() releases the stuck one and joins all threads. */
}

static void test_off(void **state)
{
    (void)state;
    static const char *const kinds[] = {"create_subshell", "delete_subshell", "list_subshell"};
    for (int i = 0; i < 3; i++) {
        char id[ID], type[64];
        test_received reply;
        snprintf(type, sizeof type, "%s_request", kinds[i]);
        client_send(&the_client, JK_CONTROL, type, "{\"subshell_id\":\"x\"}", id);
        snprintf(type, sizeof type, "%s_reply", kinds[i]);
        expect_control(type, id, &reply);
        assert_string_equal(received_text(&reply, "status"), "error");
        received_clear(&reply);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up_subshells, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_create_list_delete),
        CASE(test_runs_beside_the_main_shell),
        CASE(test_busy_names_a_cell_that_still_runs),
        CASE(test_a_failed_cell_aborts_its_own_queue),
        CASE(test_the_main_shells_failure_leaves_subshells_alone),
        CASE(test_deletion_lets_the_running_cell_finish),
        CASE(test_unknown_id),
        CASE(test_refused_and_gone),
        CASE(test_twenty),
        CASE(test_deletion_races_with_requests),
        CASE(test_shutdown_ends_them),
        cmocka_unit_test_setup_teardown(test_off, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
