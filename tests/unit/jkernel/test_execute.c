/* Requests as a client sees them: order, statuses, aborts, and what is answered without the language. */
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_order(void **state)
{
    (void)state;
    char id[64];
    test_received reply;
    client_execute(&the_client, "print hello", NULL, id);
    client_expect(&the_client, JK_SHELL, "execute_reply", id, &reply);
    assert_string_equal(received_text(&reply, "status"), "ok");
    assert_string_equal(json_string_value(json_object_get(reply.metadata, "started")), "now");
    received_clear(&reply);
    client_expect_iopub(&the_client, "status:busy", id);
    client_expect_iopub(&the_client, "execute_input", id);
    client_expect_iopub(&the_client, "stream", id);
    client_expect_iopub(&the_client, "status:idle", id);
    client_expect_silence(&the_client, JK_IOPUB, 100);
}

static void test_one_session(void **state)
{
    (void)state;
    char id[64], session[64] = "", ids[8][64];
    test_received message;
    client_execute(&the_client, "print a\\ndisplay b", NULL, id);
    for (int i = 0; i < 6; i++) {
        jk_channel channel = i == 0 ? JK_SHELL : JK_IOPUB;
        assert_true(client_receive(&the_client, channel, WAIT, &message));
        const char *found = json_string_value(json_object_get(message.header, "session"));
        if (i == 0) snprintf(session, sizeof session, "%s", found);
        assert_string_equal(found, session);
        assert_string_not_equal(found, the_client.session.id);
        snprintf(ids[i], sizeof ids[i], "%s", message.id);
        for (int j = 0; j < i; j++) assert_string_not_equal(ids[i], ids[j]);
        received_clear(&message);
    }
}

static void test_parent_is_verbatim(void **state)
{
    (void)state;
    char id[64];
    test_received reply;
    client_execute(&the_client, "", NULL, id);
    client_expect(&the_client, JK_SHELL, "execute_reply", id, &reply);
    assert_string_equal(json_string_value(json_object_get(reply.parent, "session")), the_client.session.id);
    assert_string_equal(json_string_value(json_object_get(reply.parent, "username")), "kernel");
    received_clear(&reply);
}

static void test_starting_once(void **state)
{
    (void)state;
    jk_server_started(the_kernel.fake.server);
    jk_server_started(the_kernel.fake.server);
    client_expect_iopub(&the_client, "status:starting", "");
    client_expect_silence(&the_client, JK_IOPUB, 100);
}

static void test_every_subscriber_is_welcomed(void **state)
{
    (void)state;
    static const char *const topics[] = {"", "stream", "", "kernel."};
    for (int i = 0; i < 4; i++) {
        test_client other;
        test_received message;
        client_open_quiet(&other, the_kernel.path);
        client_subscribe(&other, topics[i]);
        assert_true(client_receive(&other, JK_IOPUB, WAIT, &message));
        assert_string_equal(message.type, "iopub_welcome");
        assert_string_equal(received_text(&message, "subscription"), topics[i]);
        assert_int_equal(json_object_size(message.parent), 0);
        assert_int_equal(json_object_size(message.metadata), 0);
        received_clear(&message);
        client_close(&other);
    }
}

/* One message may overtake the welcome: libzmq may take a subscription during a send. No second one may. */
static void test_welcome_comes_under_load(void **state)
{
    (void)state;
    char id[64];
    client_execute(&the_client, "flood 200000", NULL, id);
    for (int i = 0; i < 5; i++) {
        test_client other;
        test_received message;
        client_open_quiet(&other, the_kernel.path);
        client_subscribe(&other, "");
        assert_true(client_receive(&other, JK_IOPUB, WAIT, &message));
        if (strcmp(message.type, "iopub_welcome") != 0) {
            received_clear(&message);
            assert_true(client_receive(&other, JK_IOPUB, WAIT, &message));
        }
        assert_string_equal(message.type, "iopub_welcome");
        received_clear(&message);
        client_close(&other);
    }
    expect_reply("execute_reply", id, "ok");
}

/* The reply may be there before the subscription is, as when a server does not wait for it because the kernel
 * is busy; clients wait for both the reply and the idle. */
static void test_a_late_subscriber_hears_the_end_of_its_kernel_info(void **state)
{
    (void)state;
    test_client other;
    test_received message;
    char id[64], cell[64];
    jk_server_started(the_kernel.fake.server);
    client_expect_iopub(&the_client, "status:starting", "");
    client_execute(&the_client, "sleep 600000", NULL, cell);
    client_expect_iopub(&the_client, "status:busy", cell);
    client_expect_iopub(&the_client, "execute_input", cell);
    client_open_quiet(&other, the_kernel.path);
    client_send(&other, JK_SHELL, "kernel_info_request", "{}", id);
    client_expect(&other, JK_SHELL, "kernel_info_reply", id, &message);
    received_clear(&message);
    client_expect_iopub(&the_client, "status:busy", id);
    client_expect_iopub(&the_client, "status:idle", id);
    client_expect_iopub(&the_client, "status:busy", cell);
    client_subscribe(&other, "");
    client_expect_iopub(&other, "iopub_welcome", "");
    client_expect_iopub(&other, "status:idle", id);
    client_expect_iopub(&other, "status:busy", cell);
    client_close(&other);
    client_send(&the_client, JK_CONTROL, "interrupt_request", "{}", NULL);
    expect_reply("execute_reply", cell, "error");
}

/* It knows that its cell runs: no idle came between. */
static void test_a_second_subscription_is_not_told_the_state_again(void **state)
{
    (void)state;
    char cell[64];
    test_received message;
    jk_server_started(the_kernel.fake.server);
    client_expect_iopub(&the_client, "status:starting", "");
    client_execute(&the_client, "sleep 600000", NULL, cell);
    client_expect_iopub(&the_client, "status:busy", cell);
    client_expect_iopub(&the_client, "execute_input", cell);
    client_subscribe(&the_client, "stream");
    client_expect_iopub(&the_client, "iopub_welcome", "");
    client_expect_silence(&the_client, JK_IOPUB, 100);
    client_send(&the_client, JK_CONTROL, "interrupt_request", "{}", NULL);
    client_expect(&the_client, JK_SHELL, "execute_reply", cell, &message);
    received_clear(&message);
}

static void test_other_requests(void **state)
{
    (void)state;
    static const char *const types[] = {"complete", "inspect", "history", "is_complete", "comm_info"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char id[64], request[64], reply[64];
        snprintf(request, sizeof request, "%s_request", types[i]);
        snprintf(reply, sizeof reply, "%s_reply", types[i]);
        client_send(&the_client, JK_SHELL, request, "{}", id);
        expect_reply(reply, id, "ok");
        client_expect_iopub(&the_client, "status:busy", id);
        client_expect_iopub(&the_client, "status:idle", id);
    }
}

static void test_no_reply(void **state)
{
    (void)state;
    static const char *const types[] = {"comm_open",    "comm_msg", "comm_close",
                                        "wish_request", "wish",     "input_reply"};
    static const jk_channel channels[] = {JK_SHELL, JK_CONTROL};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        for (int c = 0; c < 2; c++) {
            char id[64];
            client_send(&the_client, channels[c], types[i], "{}", id);
            client_expect_iopub(&the_client, "status:busy", id);
            client_expect_iopub(&the_client, "status:idle", id);
        }
    }
    client_expect_silence(&the_client, JK_SHELL, 50);
    client_expect_silence(&the_client, JK_CONTROL, 50);
}

static void test_control_takes_everything(void **state)
{
    (void)state;
    char id[64];
    test_received reply;
    client_send(&the_client, JK_CONTROL, "complete_request", "{}", id);
    client_expect(&the_client, JK_CONTROL, "complete_reply", id, &reply);
    received_clear(&reply);
    client_send(&the_client, JK_CONTROL, "execute_request", "{\"code\":\"print there\"}", id);
    client_expect(&the_client, JK_CONTROL, "execute_reply", id, &reply);
    assert_string_equal(received_text(&reply, "status"), "ok");
    received_clear(&reply);
    char text[64];
    client_until_idle(&the_client, id, text, sizeof text);
    assert_string_equal(text, "there\n");
    client_expect_silence(&the_client, JK_SHELL, 20);
}

/* Ask while the cell `running` is stuck: busy, idle, and the running cell's busy again. */
static void check_answered(jk_channel channel, const char *type, const char *running, test_received *reply)
{
    char id[64], request[64], answer[64];
    snprintf(request, sizeof request, "%s_request", type);
    snprintf(answer, sizeof answer, "%s_reply", type);
    client_send(&the_client, channel, request, "{}", id);
    client_expect(&the_client, channel, answer, id, reply);
    assert_string_equal(received_text(reply, "status"), "ok");
    client_expect_iopub(&the_client, "status:busy", id);
    client_expect_iopub(&the_client, "status:idle", id);
    client_expect_iopub(&the_client, "status:busy", running);
}

static void test_answers_while_stuck(void **state)
{
    (void)state;
    static const jk_channel channels[] = {JK_SHELL, JK_CONTROL, JK_SHELL};
    char id[64];
    test_received reply;
    client_execute(&the_client, "stuck", NULL, id);
    client_expect_iopub(&the_client, "status:busy", id);
    client_expect_iopub(&the_client, "execute_input", id);
    for (int i = 0; i < 3; i++) {
        check_answered(channels[i], "kernel_info", id, &reply);
        assert_string_equal(received_text(&reply, "implementation"), "fake");
        received_clear(&reply);
        check_answered(channels[i], "connect", id, &reply);
        assert_int_equal(json_integer_value(json_object_get(reply.content, "stdin_port")),
                         the_client.config.ports[JK_STDIN]);
        received_clear(&reply);
    }
    fake_executor_release(&the_kernel.fake);
    expect_reply("execute_reply", id, "ok");
    client_expect_iopub(&the_client, "status:idle", id);
    client_expect_silence(&the_client, JK_IOPUB, 50);
}

static void test_requests_overtake_an_awaiting_cell(void **state)
{
    (void)state;
    char first[64], second[64], other[64];
    client_execute(&the_client, "later", NULL, first);
    client_execute(&the_client, "print two", NULL, second);
    client_send(&the_client, JK_SHELL, "complete_request", "{}", other);
    expect_reply("complete_reply", other, "ok");
    fake_executor_release(&the_kernel.fake);
    expect_reply("execute_reply", first, "ok");
    expect_reply("execute_reply", second, "ok");
    client_expect_iopub(&the_client, "status:busy", first);
    client_expect_iopub(&the_client, "execute_input", first);
    client_expect_iopub(&the_client, "status:busy", other);
    client_expect_iopub(&the_client, "status:idle", other);
    client_expect_iopub(&the_client, "status:busy", first);
    client_expect_iopub(&the_client, "status:idle", first);
    client_expect_iopub(&the_client, "status:busy", second);
    client_expect_iopub(&the_client, "execute_input", second);
    client_expect_iopub(&the_client, "stream", second);
    client_expect_iopub(&the_client, "status:idle", second);
}

static void test_burst(void **state)
{
    (void)state;
    for (int round = 0; round < 30; round++) {
        char ids[6][64];
        bool seen[6] = {false};
        client_execute(&the_client, "print first", ",\"store_history\":true", ids[0]);
        expect_reply("execute_reply", ids[0], "ok");
        for (int i = 1; i < 5; i++)
            client_execute(&the_client, "print more", ",\"store_history\":true", ids[i]);
        client_send(&the_client, JK_SHELL, "complete_request", "{}", ids[5]);
        for (int i = 1; i < 6; i++) {
            test_received reply;
            if (!client_receive(&the_client, JK_SHELL, WAIT, &reply)) fail_msg("round %d: no reply", round);
            for (int j = 1; j < 6; j++) {
                if (strcmp(reply.parent_id, ids[j]) == 0) seen[j] = true;
            }
            received_clear(&reply);
        }
        for (int i = 1; i < 6; i++) assert_true(seen[i]);
        client_until_idle(&the_client, ids[5], NULL, 0);
    }
}

/* The socket is in order: what was sent before this answer is in the kernel's queue. */
static void shell_settle(void)
{
    char id[64];
    test_received reply;
    client_send(&the_client, JK_SHELL, "kernel_info_request", "{}", id);
    client_expect(&the_client, JK_SHELL, "kernel_info_reply", id, &reply);
    received_clear(&reply);
}

/* Send a cell that waits and fails, three cells and a completion behind it; then let it fail. */
static void abort_begin(const char *more, char ids[5][64])
{
    client_execute(&the_client, "stuck\\nerror", more, ids[0]);
    for (int i = 1; i < 4; i++) client_execute(&the_client, "print never", NULL, ids[i]);
    client_send(&the_client, JK_SHELL, "complete_request", "{}", ids[4]);
    shell_settle();
    fake_executor_release(&the_kernel.fake);
}

static void check_abort(const char *more)
{
    char ids[5][64], after[64] = "";
    int aborted = 0, completed = 0, again = 0;
    json_int_t count = 0;
    abort_begin(more, ids);
    /* Five replies to what was sent at once, and one to what is sent after the error. */
    for (int i = 0; i < 6; i++) {
        test_received reply;
        assert_true(client_receive(&the_client, JK_SHELL, WAIT, &reply));
        const char *status = received_text(&reply, "status");
        json_int_t counted = json_integer_value(json_object_get(reply.content, "execution_count"));
        if (strcmp(reply.parent_id, ids[0]) == 0) {
            assert_string_equal(status, "error");
            count = counted;
            client_execute(&the_client, "print again", NULL, after);
        } else if (strcmp(reply.parent_id, ids[4]) == 0) {
            completed++;
        } else if (strcmp(reply.parent_id, after) == 0) {
            assert_string_equal(status, "ok");
            again++;
        } else {
            assert_string_equal(status, "aborted");
            assert_int_equal(counted, count);
            assert_string_equal(reply.parent_id, ids[++aborted]);
        }
        received_clear(&reply);
    }
    assert_int_equal(aborted, 3);
    assert_int_equal(completed, 1);
    assert_int_equal(again, 1);
}

static void test_abort(void **state)
{
    (void)state;
    char text[64], id[64];
    for (int i = 0; i < 10; i++) check_abort(i % 2 ? NULL : ",\"stop_on_error\":true");
    client_execute(&the_client, "print end", NULL, id);
    expect_reply("execute_reply", id, "ok");
    client_until_idle(&the_client, id, text, sizeof text);
    assert_string_equal(text, "end\n");
    /* Two cells ran for every round: the failed one and the one sent after it. */
    assert_int_equal(atomic_load(&the_kernel.fake.executed), 2 * 10 + 1);
}

/* A burst whose first cell fails at once. How many of the others the kernel has by then is a matter of
 * timing, but everyone is answered, and what is aborted is what came first. */
static void test_abort_in_a_burst(void **state)
{
    (void)state;
    int aborts = 0;
    for (int round = 0; round < 20; round++) {
        char failed[64], id[64];
        client_execute(&the_client, "error", NULL, failed);
        for (int i = 0; i < 4; i++) client_execute(&the_client, "print later", NULL, id);
        expect_reply("execute_reply", failed, "error");
        bool ran = false;
        for (int i = 0; i < 4; i++) {
            test_received reply;
            assert_true(client_receive(&the_client, JK_SHELL, WAIT, &reply));
            bool aborted = strcmp(received_text(&reply, "status"), "aborted") == 0;
            assert_false(aborted && ran);
            ran = !aborted;
            aborts += aborted;
            received_clear(&reply);
        }
    }
    print_message("%d of 80 cells were aborted\n", aborts);
}

static void test_abort_statuses(void **state)
{
    (void)state;
    char failed[64], queued[64];
    client_execute(&the_client, "stuck\\nerror", NULL, failed);
    client_execute(&the_client, "print never", NULL, queued);
    client_expect_iopub(&the_client, "status:busy", failed);
    client_expect_iopub(&the_client, "execute_input", failed);
    test_received reply;
    check_answered(JK_SHELL, "kernel_info", failed, &reply);
    received_clear(&reply);
    fake_executor_release(&the_kernel.fake);
    expect_reply("execute_reply", failed, "error");
    expect_reply("execute_reply", queued, "aborted");
    client_expect_iopub(&the_client, "error", failed);
    client_expect_iopub(&the_client, "status:idle", failed);
    client_expect_iopub(&the_client, "status:busy", queued);
    client_expect_iopub(&the_client, "status:idle", queued);
}

static void test_no_abort(void **state)
{
    (void)state;
    static const char *const more[] = {",\"stop_on_error\":false", ",\"silent\":true"};
    for (int i = 0; i < 2; i++) {
        char failed[64], queued[64];
        client_execute(&the_client, "error", more[i], failed);
        client_execute(&the_client, "print ran", NULL, queued);
        expect_reply("execute_reply", failed, "error");
        expect_reply("execute_reply", queued, "ok");
    }
}

static void test_unknown_subshell(void **state)
{
    (void)state;
    const char *header = "{\"msg_id\":\"sub\",\"msg_type\":\"execute_request\",\"subshell_id\":\"x\"}";
    client_send_header(&the_client, JK_SHELL, header, "{\"code\":\"\"}");
    expect_reply("execute_reply", "sub", "error");
    client_expect_iopub(&the_client, "status:busy", "sub");
    client_expect_iopub(&the_client, "status:idle", "sub");
}

static void test_silent_parent(void **state)
{
    (void)state;
    static const char header[] = "{\"msg_id\":\"quiet\",\"msg_type\":\"execute_request\"}";
    const jk_bytes content = {"{}", 2}, none = {NULL, 0};
    jk_server *server = the_kernel.fake.server;
    jk_parent *parent = jk_parent_create((jk_bytes){header, sizeof header - 1});
    assert_non_null(parent);
    assert_false(jk_parent_silent(parent));
    jk_parent_silence(parent, true);
    assert_int_equal(jk_publish(server, parent, "display_data", content, none, NULL, 0), 0);
    assert_int_equal(jk_stream_write(server, parent, JK_STDOUT, "unheard", 7), 0);
    assert_int_equal(jk_publish(server, parent, "comm_msg", content, none, NULL, 0), 0);
    jk_parent_silence(parent, false);
    assert_int_equal(jk_publish(server, parent, "display_data", content, none, NULL, 0), 0);
    jk_parent_release(parent);
    client_expect_iopub(&the_client, "comm_msg", "quiet");
    client_expect_iopub(&the_client, "display_data", "quiet");
    client_expect_silence(&the_client, JK_IOPUB, 100);
}

static void test_heartbeat(void **state)
{
    (void)state;
    void *socket = the_client.sockets[JK_HEARTBEAT];
    for (int i = 0; i < 3; i++) {
        zmq_send(socket, "", 0, ZMQ_SNDMORE);
        zmq_send(socket, "pi\0ng", 5, 0);
        zmq_pollitem_t item = {.socket = socket, .events = ZMQ_POLLIN};
        assert_int_equal(zmq_poll(&item, 1, WAIT), 1);
        jk_frames frames;
        assert_int_equal(jk_frames_receive(socket, &frames), 1);
        assert_int_equal(frames.count, 2);
        assert_int_equal(zmq_msg_size(&frames.items[1]), 5);
        assert_memory_equal(zmq_msg_data(&frames.items[1]), "pi\0ng", 5);
        jk_frames_clear(&frames);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_order),
        CASE(test_one_session),
        CASE(test_parent_is_verbatim),
        CASE(test_starting_once),
        CASE(test_every_subscriber_is_welcomed),
        CASE(test_welcome_comes_under_load),
        CASE(test_a_late_subscriber_hears_the_end_of_its_kernel_info),
        CASE(test_a_second_subscription_is_not_told_the_state_again),
        CASE(test_other_requests),
        CASE(test_no_reply),
        CASE(test_control_takes_everything),
        CASE(test_answers_while_stuck),
        CASE(test_requests_overtake_an_awaiting_cell),
        CASE(test_burst),
        CASE(test_abort),
        CASE(test_abort_in_a_burst),
        CASE(test_abort_statuses),
        CASE(test_no_abort),
        CASE(test_unknown_subshell),
        CASE(test_silent_parent),
        CASE(test_heartbeat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
