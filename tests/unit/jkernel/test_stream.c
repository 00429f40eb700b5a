/* Output: order, coalescing, captured descriptors, slow subscribers, forked children. */
#include "harness.h"

#include "jkernel/server/server_room.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int run(const char *code, char *text, size_t size)
{
    char id[64];
    client_execute(&the_client, code, NULL, id);
    expect_reply("execute_reply", id, "ok");
    return client_until_idle(&the_client, id, text, size);
}

static void test_coalesced(void **state)
{
    (void)state;
    size_t size = 20000 * 190 + 1;
    char *text = malloc(size), line[16];
    assert_non_null(text);
    int streams = run("flood 20000", text, size);
    assert_int_equal(strlen(text), size - 1);
    for (int i = 0; i < 20000; i++) {
        snprintf(line, sizeof line, "%07d", i);
        assert_memory_equal(text + i * 190, line, 7);
    }
    /* One a pause, and one a MiB: far below the 1000 a second that clients accept. */
    assert_true(streams < 200);
    free(text);
}

/* Text leaves while the cell runs on: the first of it, and what comes later. */
static void test_text_leaves_by_itself(void **state)
{
    (void)state;
    char id[64];
    client_execute(&the_client, "print one\\nstuck\\nprint two\\nprint three\\nstuck", NULL, id);
    client_expect_iopub(&the_client, "status:busy", id);
    client_expect_iopub(&the_client, "execute_input", id);
    client_expect_iopub(&the_client, "stream", id);
    fake_executor_release(&the_kernel.fake);
    client_expect_iopub(&the_client, "stream", id);
    fake_executor_release(&the_kernel.fake);
    expect_reply("execute_reply", id, "ok");
}

static void expect_stream(const char *name, const char *text)
{
    test_received message;
    assert_true(client_receive(&the_client, JK_IOPUB, WAIT, &message));
    assert_string_equal(message.type, "stream");
    assert_string_equal(received_text(&message, "name"), name);
    assert_string_equal(received_text(&message, "text"), text);
    received_clear(&message);
}

static void test_switches_keep_order(void **state)
{
    (void)state;
    char id[64];
    client_execute(&the_client, "print a\\neprint b\\nprint c\\ndisplay d\\nprint e\\neprint f", NULL, id);
    expect_reply("execute_reply", id, "ok");
    client_expect_iopub(&the_client, "status:busy", id);
    client_expect_iopub(&the_client, "execute_input", id);
    expect_stream("stdout", "a\n");
    expect_stream("stderr", "b\n");
    expect_stream("stdout", "c\n");
    client_expect_iopub(&the_client, "display_data", id);
    expect_stream("stdout", "e\n");
    expect_stream("stderr", "f\n");
    client_expect_iopub(&the_client, "status:idle", id);
}

static void test_captured_order(void **state)
{
    (void)state;
    char text[4096], code[2048], expected[512];
    int coded = 0, wanted = 0;
    for (int i = 0; i < 20; i++) {
        coded += snprintf(code + coded, sizeof code - (size_t)coded, "print p%d\\nwrite w%d\\ncprint c%d\\n",
                          i, i, i);
        wanted += snprintf(expected + wanted, sizeof expected - (size_t)wanted, "p%d\nw%d\nc%d\n", i, i, i);
    }
    run(code, text, sizeof text);
    assert_string_equal(text, expected);
}

static void test_captured_before_display(void **state)
{
    (void)state;
    char id[64];
    client_execute(&the_client, "write before\\ndisplay d\\nwrite after", NULL, id);
    expect_reply("execute_reply", id, "ok");
    client_expect_iopub(&the_client, "status:busy", id);
    client_expect_iopub(&the_client, "execute_input", id);
    expect_stream("stdout", "before\n");
    client_expect_iopub(&the_client, "display_data", id);
    expect_stream("stdout", "after\n");
    client_expect_iopub(&the_client, "status:idle", id);
}

/* Nobody prints: the io thread takes it from the pipe by itself. */
static void test_captured_without_a_producer(void **state)
{
    (void)state;
    char id[64];
    client_execute(&the_client, "write alone\\nstuck", NULL, id);
    client_expect_iopub(&the_client, "status:busy", id);
    client_expect_iopub(&the_client, "execute_input", id);
    expect_stream("stdout", "alone\n");
    fake_executor_release(&the_kernel.fake);
    expect_reply("execute_reply", id, "ok");
}

static void test_captured_bytes(void **state)
{
    (void)state;
    char id[64];
    client_execute(&the_client, "stuck", NULL, id);
    client_expect_iopub(&the_client, "status:busy", id);
    client_expect_iopub(&the_client, "execute_input", id);
    /* A character in two writes, with time between them, and a byte that is none. */
    assert_int_equal(write(1, "\xe2\x82", 2), 2);
    usleep(50000);
    assert_int_equal(write(1, "\xac!", 2), 2);
    expect_stream("stdout", "\xe2\x82\xac!");
    assert_int_equal(write(2, "\xff?", 2), 2);
    expect_stream("stderr", "\xef\xbf\xbd?");
    fake_executor_release(&the_kernel.fake);
    expect_reply("execute_reply", id, "ok");
}

static void test_captured_flood(void **state)
{
    (void)state;
    char id[64];
    size_t size = 3u << 20, got = 0;
    client_execute(&the_client, "later", NULL, id);
    client_expect_iopub(&the_client, "status:busy", id);
    client_expect_iopub(&the_client, "execute_input", id);
    char *block = malloc(size);
    assert_non_null(block);
    memset(block, 'z', size);
    for (size_t at = 0; at < size;) {
        ssize_t done = write(1, block + at, size - at);
        assert_true(done > 0);
        at += (size_t)done;
    }
    while (got < size) {
        test_received message;
        assert_true(client_receive(&the_client, JK_IOPUB, WAIT, &message));
        assert_string_equal(message.type, "stream");
        assert_string_equal(message.parent_id, id);
        got += strlen(received_text(&message, "text"));
        received_clear(&message);
    }
    assert_int_equal(got, size);
    free(block);
    fake_executor_release(&the_kernel.fake);
    expect_reply("execute_reply", id, "ok");
}

static void test_closed_descriptor(void **state)
{
    (void)state;
    char text[64];
    /* What a program does that daemonizes: the kernel must go on, and not spin. */
    close(2);
    assert_int_equal(dup2(1, 2), 2);
    run("write first\\nprint second", text, sizeof text);
    assert_string_equal(text, "first\nsecond\n");
}

static void test_forked_child(void **state)
{
    (void)state;
    char text[256];
    run("print before\\nfork from the child\\nprint after", text, sizeof text);
    assert_string_equal(text, "before\nfrom the child\nafter\n");
}

static void test_slow_subscriber(void **state)
{
    (void)state;
    test_client slow;
    char id[64], line[16];
    size_t size = 20000 * 190 + 1;
    char *text = malloc(size);
    assert_non_null(text);
    client_open_quiet(&slow, the_kernel.path);
    int few = 2;
    zmq_setsockopt(slow.sockets[JK_IOPUB], ZMQ_RCVHWM, &few, sizeof few);
    client_subscribe(&slow, "");
    test_received message;
    assert_true(client_receive(&slow, JK_IOPUB, WAIT, &message));
    received_clear(&message);
    client_execute(&the_client, "flood 20000", NULL, id);
    expect_reply("execute_reply", id, "ok");
    client_until_idle(&the_client, id, text, size);
    assert_int_equal(strlen(text), size - 1);
    /* Only now does it read. */
    client_until_idle(&slow, id, text, size);
    assert_int_equal(strlen(text), size - 1);
    for (int i = 0; i < 20000; i++) {
        snprintf(line, sizeof line, "%07d", i);
        assert_memory_equal(text + i * 190, line, 7);
    }
    free(text);
    client_close(&slow);
}

/* A subscriber that takes one message before it is read. */
static void dead_open(test_client *dead)
{
    client_open_quiet(dead, the_kernel.path);
    int one = 1;
    zmq_setsockopt(dead->sockets[JK_IOPUB], ZMQ_RCVHWM, &one, sizeof one);
    client_subscribe(dead, "");
    test_received message;
    assert_true(client_receive(dead, JK_IOPUB, WAIT, &message));
    received_clear(&message);
}

/* Read until the idle of `id`, with a pause after each message. Returns the bytes of text on stdout; `*lost`
 * is what notes tell of. */
static size_t text_count_slowly(test_client *client, const char *id, size_t *lost, useconds_t pause)
{
    bool idle = false;
    size_t got = 0, told = 0;
    *lost = 0;
    while (!idle) {
        test_received message;
        if (!client_receive(client, JK_IOPUB, WAIT, &message)) fail_msg("no idle");
        const char *text = received_text(&message, "text");
        if (sscanf(text, "\n[%zu bytes of output were left out here: this client did not read]", &told) ==
            1) {
            assert_string_equal(received_text(&message, "name"), "stderr");
            assert_string_equal(message.parent_id, id);
            *lost += told;
        } else if (strcmp(message.parent_id, id) == 0) {
            got += strlen(text);
        }
        idle = strcmp(message.parent_id, id) == 0 &&
               strcmp(received_text(&message, "execution_state"), "idle") == 0;
        received_clear(&message);
        if (pause) usleep(pause);
    }
    return got;
}

static size_t text_count(test_client *client, const char *id, size_t *lost)
{
    return text_count_slowly(client, id, lost, 0);
}

/* More than all limits together: whoever prints waits for one that is slow, and nothing is left out. */
static void test_slow_subscriber_beyond_the_limits(void **state)
{
    (void)state;
    test_client slow;
    char id[64];
    size_t lost;
    dead_open(&slow);
    client_execute(&the_client, "flood 600000", NULL, id);
    assert_int_equal(text_count_slowly(&slow, id, &lost, 10000), 600000 * 190);
    assert_int_equal(lost, 0);
    assert_int_equal(text_count(&the_client, id, &lost), 600000 * 190);
    assert_int_equal(lost, 0);
    expect_reply("execute_reply", id, "ok");
    client_close(&slow);
}

/* One subscriber never reads: the other one gets every byte. The first one gets a note where something was
 * left out for it, everything that is no text, and when it has read all of that everything as before. */
static void test_dead_subscriber(void **state)
{
    (void)state;
    enum { LINES = 700000 };
    test_client dead;
    char id[64], text[1024];
    size_t lost;
    dead_open(&dead);

    client_execute(&the_client, "flood 700000\\nprint end", NULL, id);
    assert_int_equal(text_count(&the_client, id, &lost), LINES * 190 + 4);
    assert_int_equal(lost, 0);
    expect_reply("execute_reply", id, "ok");

    size_t got = text_count(&dead, id, &lost);
    assert_true(lost > 0 && got > JK_IN_FLIGHT_LIMIT / 2);
    assert_int_equal(got + lost, LINES * 190 + 4);
    client_execute(&the_client, "flood 1\\nprint whole", NULL, id);
    client_until_idle(&dead, id, text, sizeof text);
    assert_int_equal(strlen(text), 196);
    client_until_idle(&the_client, id, text, sizeof text);
    assert_int_equal(strlen(text), 196);
    expect_reply("execute_reply", id, "ok");
    client_close(&dead);
}

static size_t kept_bytes(void)
{
    jk_server *server = the_kernel.fake.server;
    pthread_mutex_lock(&server->output->outbox.lock);
    size_t kept = jk_publisher_kept(server->ports->publisher);
    pthread_mutex_unlock(&server->output->outbox.lock);
    return kept;
}

/* Subscribers that do not read, one after the other, so that each keeps displays of its own: all together
 * cost the kernel so much memory and no more. */
static void test_many_dead_subscribers(void **state)
{
    (void)state;
    enum { DEAD = 4, SIZE = 4 << 20 };
    test_client dead[DEAD];
    size_t most = 0;
    char *content = malloc(SIZE), id[64];
    assert_non_null(content);
    snprintf(content, SIZE, "{\"data\":\"%0*d\"}", SIZE - 20, 0);
    for (int i = 0; i < DEAD * (int)(JK_KEPT_MOST / SIZE + 4); i++) {
        if (i % (JK_KEPT_MOST / SIZE + 4) == 0) dead_open(&dead[i / (int)(JK_KEPT_MOST / SIZE + 4)]);
        jk_bytes bytes = {content, strlen(content)};
        assert_int_equal(
            jk_publish(the_kernel.fake.server, NULL, "display_data", bytes, (jk_bytes){0}, NULL, 0), 0);
        test_received message;
        for (bool found = false; !found; received_clear(&message)) {
            assert_true(client_receive(&the_client, JK_IOPUB, WAIT, &message));
            found = strcmp(message.type, "display_data") == 0;
        }
        size_t kept = kept_bytes();
        if (kept > most) most = kept;
    }
    assert_true(most > JK_TOTAL_MOST - 2 * SIZE && most < JK_TOTAL_MOST + 2 * SIZE);
    free(content);
    client_execute(&the_client, "print whole", NULL, id);
    client_until_idle(&the_client, id, NULL, 0);
    expect_reply("execute_reply", id, "ok");
    for (int i = 0; i < DEAD; i++) client_close(&dead[i]);
}

static void test_flush(void **state)
{
    (void)state;
    char id[64];
    client_execute(&the_client, "print a", NULL, id);
    expect_reply("execute_reply", id, "ok");
    client_until_idle(&the_client, id, NULL, 0);
    jk_server *server = the_kernel.fake.server;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(jk_stream_write(server, NULL, JK_STDOUT, "late\n", 5), 0);
        assert_int_equal(jk_server_flush(server, WAIT), 0);
        test_received message;
        assert_true(client_receive(&the_client, JK_IOPUB, WAIT, &message));
        assert_string_equal(received_text(&message, "text"), "late\n");
        assert_string_equal(message.parent_id, id);
        received_clear(&message);
    }
}

static void test_publish_buffers(void **state)
{
    (void)state;
    const jk_bytes buffers[] = {{"one", 3}, {NULL, 0}, {"three", 5}};
    jk_server *server = the_kernel.fake.server;
    assert_int_equal(jk_publish(server, NULL, "comm_msg", (jk_bytes){"{\"comm_id\":\"c\"}", 15},
                                (jk_bytes){"{\"m\":1}", 7}, buffers, 3),
                     0);
    jk_frames frames;
    zmq_pollitem_t item = {.socket = the_client.sockets[JK_IOPUB], .events = ZMQ_POLLIN};
    assert_int_equal(zmq_poll(&item, 1, WAIT), 1);
    assert_int_equal(jk_frames_receive(the_client.sockets[JK_IOPUB], &frames), 1);
    const char *problem;
    jk_message *message = jk_message_parse(&frames, the_client.signer, NULL, &problem);
    assert_non_null(message);
    assert_int_equal(jk_message_buffer_count(message), 3);
    assert_int_equal(jk_message_buffer(message, 1).size, 0);
    assert_memory_equal(jk_message_buffer(message, 2).data, "three", 5);
    assert_memory_equal(message->parts[JK_METADATA].data, "{\"m\":1}", 7);
    jk_message_release(message);
}

#define CASE(name)     cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define CAPTURED(name) cmocka_unit_test_setup_teardown(name, set_up_captured, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_coalesced),
        CASE(test_text_leaves_by_itself),
        CASE(test_switches_keep_order),
        CAPTURED(test_captured_order),
        CAPTURED(test_captured_before_display),
        CAPTURED(test_captured_without_a_producer),
        CAPTURED(test_captured_bytes),
        CAPTURED(test_captured_flood),
        CAPTURED(test_closed_descriptor),
        CAPTURED(test_forked_child),
        CASE(test_slow_subscriber),
        CASE(test_slow_subscriber_beyond_the_limits),
        CASE(test_dead_subscriber),
        CASE(test_many_dead_subscribers),
        CASE(test_flush),
        CASE(test_publish_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
