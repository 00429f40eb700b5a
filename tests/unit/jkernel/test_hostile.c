/* What strangers and broken clients send: dropped, and the next good request is served. */
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void check_alive(void)
{
    char id[64], text[64];
    test_received reply;
    client_execute(&the_client, "print alive", NULL, id);
    client_expect(&the_client, JK_SHELL, "execute_reply", id, &reply);
    assert_string_equal(received_text(&reply, "status"), "ok");
    received_clear(&reply);
    client_until_idle(&the_client, id, text, sizeof text);
    assert_string_equal(text, "alive\n");
    client_send(&the_client, JK_CONTROL, "kernel_info_request", "{}", id);
    client_expect(&the_client, JK_CONTROL, "kernel_info_reply", id, &reply);
    received_clear(&reply);
    client_until_idle(&the_client, id, NULL, 0);
}

static void test_garbage(void **state)
{
    (void)state;
    srand(3);
    void *iopub = client_socket(&the_client, ZMQ_XSUB);
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%d", the_client.config.ports[JK_IOPUB]);
    zmq_connect(iopub, endpoint);
    for (int round = 0; round < 2000; round++) {
        int channel = rand() % JK_CHANNELS;
        void *socket = channel == JK_IOPUB ? iopub : the_client.sockets[channel];
        int frames = 1 + rand() % 9;
        for (int i = 0; i < frames; i++) {
            char bytes[40];
            size_t size = (size_t)rand() % sizeof bytes;
            for (size_t j = 0; j < size; j++) bytes[j] = (char)(rand() % 256);
            bool delimiter = rand() % 3 == 0;
            zmq_send(socket, delimiter ? "<IDS|MSG>" : bytes, delimiter ? 9 : size,
                     i + 1 < frames ? ZMQ_SNDMORE : 0);
        }
    }
    check_alive();
    zmq_close(iopub);
    check_alive();
}

/* Raw TCP bytes that are not even ZMTP. */
static void test_not_zmq(void **state)
{
    (void)state;
    void *stream = zmq_socket(the_client.context, ZMQ_STREAM);
    int none = 0;
    zmq_setsockopt(stream, ZMQ_LINGER, &none, sizeof none);
    for (int i = 0; i < JK_CHANNELS; i++) {
        char endpoint[64], id[256];
        size_t size = sizeof id;
        snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%d", the_client.config.ports[i]);
        assert_int_equal(zmq_connect(stream, endpoint), 0);
        assert_int_equal(zmq_getsockopt(stream, ZMQ_ROUTING_ID, id, &size), 0);
        zmq_send(stream, id, size, ZMQ_SNDMORE | ZMQ_DONTWAIT);
        zmq_send(stream, "GET / HTTP/1.1\r\n\r\n", 18, ZMQ_DONTWAIT);
    }
    check_alive();
    zmq_close(stream);
}

static void send_signed(const jk_bytes parts[JK_SIGNED_PARTS])
{
    char signature[JK_SIGNATURE_SIZE];
    int size = jk_signer_sign(the_client.signer, parts, signature);
    void *socket = the_client.sockets[JK_SHELL];
    zmq_send(socket, "<IDS|MSG>", 9, ZMQ_SNDMORE);
    zmq_send(socket, signature, (size_t)size, ZMQ_SNDMORE);
    for (int i = 0; i < JK_SIGNED_PARTS; i++)
        zmq_send(socket, parts[i].data, parts[i].size, i < 3 ? ZMQ_SNDMORE : 0);
}

static void test_replay(void **state)
{
    (void)state;
    const char *header = "{\"msg_id\":\"again\",\"msg_type\":\"execute_request\"}";
    const char *content = "{\"code\":\"print once\"}";
    jk_bytes parts[JK_SIGNED_PARTS] = {
        {header, strlen(header)}, {"{}", 2}, {"{}", 2}, {content, strlen(content)}};
    test_received reply;
    send_signed(parts);
    client_expect(&the_client, JK_SHELL, "execute_reply", "again", &reply);
    received_clear(&reply);
    send_signed(parts);
    client_expect_silence(&the_client, JK_SHELL, 300);
    assert_int_equal(atomic_load(&the_kernel.fake.executed), 1);
    /* Nor on the other channel. */
    char signature[JK_SIGNATURE_SIZE];
    int size = jk_signer_sign(the_client.signer, parts, signature);
    void *socket = the_client.sockets[JK_CONTROL];
    zmq_send(socket, "<IDS|MSG>", 9, ZMQ_SNDMORE);
    zmq_send(socket, signature, (size_t)size, ZMQ_SNDMORE);
    for (int i = 0; i < JK_SIGNED_PARTS; i++)
        zmq_send(socket, parts[i].data, parts[i].size, i < 3 ? ZMQ_SNDMORE : 0);
    client_expect_silence(&the_client, JK_CONTROL, 300);
    assert_int_equal(atomic_load(&the_kernel.fake.executed), 1);
}

static void test_wrong_key(void **state)
{
    (void)state;
    jk_signer *right = the_client.signer, *wrong;
    assert_int_equal(jk_signer_create("hmac-sha256", "other", 5, &wrong), 0);
    the_client.signer = wrong;
    client_execute(&the_client, "print never", NULL, NULL);
    client_send(&the_client, JK_CONTROL, "shutdown_request", "{}", NULL);
    the_client.signer = right;
    jk_signer_release(wrong);
    check_alive();
    assert_int_equal(atomic_load(&the_kernel.fake.executed), 1);
    assert_int_equal(atomic_load(&the_kernel.fake.shutdowns), 0);
}

static void test_nulls_and_extras(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "{\"msg_id\":\"n0\",\"msg_type\":\"execute_request\"}",
        "{\"msg_id\":\"n1\",\"msg_type\":\"execute_request\",\"subshell_id\":null,\"date\":7,\"x\":{\"y\":["
        "null]}}",
    };
    for (int i = 0; i < 2; i++) {
        char id[4];
        snprintf(id, sizeof id, "n%d", i);
        jk_bytes parts[JK_SIGNED_PARTS] = {
            {headers[i], strlen(headers[i])}, {"null", 4}, {"null", 4}, {"{\"code\":\"\"}", 11}};
        test_received reply;
        send_signed(parts);
        client_expect(&the_client, JK_SHELL, "execute_reply", id, &reply);
        received_clear(&reply);
    }
}

static void test_large(void **state)
{
    (void)state;
    size_t size = 64u << 20;
    char *content = malloc(size);
    assert_non_null(content);
    memset(content, ' ', size);
    const char *header = "{\"msg_id\":\"big\",\"msg_type\":\"complete_request\"}";
    content[0] = '{';
    jk_bytes parts[JK_SIGNED_PARTS] = {{header, strlen(header)}, {"{}", 2}, {"{}", 2}, {content, size}};
    send_signed(parts);
    check_alive();
    content[size - 1] = '}';
    test_received reply;
    send_signed(parts);
    client_expect(&the_client, JK_SHELL, "complete_reply", "big", &reply);
    received_clear(&reply);
    free(content);
}

/* Clients that leave before their replies, and come back under the same name. */
static void test_vanishing_clients(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        test_client other;
        client_open_quiet(&other, the_kernel.path);
        client_send(&other, JK_SHELL, "kernel_info_request", "{}", NULL);
        client_send(&other, JK_CONTROL, "kernel_info_request", "{}", NULL);
        client_execute(&other, "print gone", NULL, NULL);
        usleep((unsigned)(i * 500));
        client_close(&other);
    }
    check_alive();
    for (int i = 0; i < 5; i++) {
        char endpoint[64];
        zmq_close(the_client.sockets[JK_SHELL]);
        void *socket = client_socket(&the_client, ZMQ_DEALER);
        zmq_setsockopt(socket, ZMQ_ROUTING_ID, the_client.session.id, 32);
        snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%d", the_client.config.ports[JK_SHELL]);
        zmq_connect(socket, endpoint);
        the_client.sockets[JK_SHELL] = socket;
        check_alive();
    }
}

/* With keys in the connection file only clients that know them get through. */
static void test_curve(void **state)
{
    (void)state;
    if (!zmq_has("curve")) skip();
    char public_key[JK_KEY_Z85], secret_key[JK_KEY_Z85], text[700], path[64], problem[512] = "", id[64];
    test_received reply;
    test_client outside, inside;
    fake_executor fake;
    assert_int_equal(zmq_curve_keypair(public_key, secret_key), 0);
    const char *usual = connection_text("secret");
    snprintf(text, sizeof text, "%.*s,\"curve_publickey\":\"%s\",\"curve_secretkey\":\"%s\"}",
             (int)strlen(usual) - 1, usual, public_key, secret_key);
    connection_file(text, 0600, path);
    fake_executor_init(&fake);
    fake.server = jk_server_open(path, &fake.executor, problem, sizeof problem);
    assert_string_equal(problem, "");
    client_open_quiet(&outside, path);
    client_open_encrypted(&inside, path);
    static const char header[] = "{\"msg_id\":\"o\",\"msg_type\":\"kernel_info_request\",\"session\":\"s\","
                                 "\"username\":\"\",\"date\":\"2026-01-01T00:00:00Z\",\"version\":\"5.3\"}";
    (void)client_offer(&outside, JK_SHELL, header, "{}", 300);
    client_expect_silence(&outside, JK_SHELL, 300);
    client_send(&inside, JK_SHELL, "kernel_info_request", "{}", id);
    client_expect(&inside, JK_SHELL, "kernel_info_reply", id, &reply);
    received_clear(&reply);
    client_close(&outside);
    client_close(&inside);
    jk_server_close(fake.server);
    unlink(path);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_garbage),           CASE(test_not_zmq),           CASE(test_replay),
        CASE(test_wrong_key),         CASE(test_nulls_and_extras),  CASE(test_large),
        CASE(test_vanishing_clients), cmocka_unit_test(test_curve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
