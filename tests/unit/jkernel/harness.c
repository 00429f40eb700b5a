/* See harness.h. Failures are reported by cmocka's assertions, in the test's thread. */
#include "harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* --- The kernel --------------------------------------------------------------------------------------------
 */

void connection_file(const char *text, unsigned mode, char *path)
{
    snprintf(path, 64, "/tmp/jk-test-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

const char *connection_text(const char *key)
{
    static char text[512];
    snprintf(
        text, sizeof text,
        "{\"transport\":\"tcp\",\"ip\":\"127.0.0.1\",\"shell_port\":0,\"iopub_port\":0,\"stdin_port\":\"0\","
        "\"control_port\":0,\"hb_port\":0,\"key\":\"%s\",\"signature_scheme\":\"hmac-sha256\","
        "\"kernel_name\":\"fake\"}",
        key);
    return text;
}

static void *kernel_run(void *argument)
{
    test_kernel *kernel = argument;
    jk_server *server =
        jk_server_open(kernel->path, &kernel->fake.executor, kernel->problem, sizeof kernel->problem);
    if (server && kernel->capture && jk_server_capture_stdio(server) != 0) {
        snprintf(kernel->problem, sizeof kernel->problem, "cannot capture");
    }
    pthread_mutex_lock(&kernel->lock);
    kernel->fake.server = server;
    kernel->ready = true;
    pthread_cond_signal(&kernel->opened);
    pthread_mutex_unlock(&kernel->lock);
    if (!server) return NULL;
    fake_executor_run(&kernel->fake);
    jk_server_close(server);
    return NULL;
}

static void kernel_launch(test_kernel *kernel)
{
    connection_file(connection_text("secret"), 0600, kernel->path);
    pthread_mutex_init(&kernel->lock, NULL);
    pthread_cond_init(&kernel->opened, NULL);
    assert_int_equal(pthread_create(&kernel->thread, NULL, kernel_run, kernel), 0);
    pthread_mutex_lock(&kernel->lock);
    while (!kernel->ready) pthread_cond_wait(&kernel->opened, &kernel->lock);
    pthread_mutex_unlock(&kernel->lock);
    assert_string_equal(kernel->problem, "");
    assert_non_null(kernel->fake.server);
}

void kernel_start(test_kernel *kernel, bool capture)
{
    memset(kernel, 0, sizeof *kernel);
    fake_executor_init(&kernel->fake);
    kernel->capture = capture;
    kernel_launch(kernel);
}

void kernel_start_prepared(test_kernel *kernel, void (*prepare)(fake_executor *fake))
{
    memset(kernel, 0, sizeof *kernel);
    fake_executor_init(&kernel->fake);
    prepare(&kernel->fake);
    kernel_launch(kernel);
}

void kernel_start_subshells(test_kernel *kernel)
{
    kernel_start_prepared(kernel, fake_executor_with_subshells);
}

void kernel_stop(test_kernel *kernel)
{
    atomic_store(&kernel->fake.stop, true);
    /* Whatever still waits may end. */
    for (int i = 0; i < 100; i++) fake_executor_release(&kernel->fake);
    jk_server_wake(kernel->fake.server);
    pthread_join(kernel->thread, NULL);
    pthread_mutex_destroy(&kernel->lock);
    pthread_cond_destroy(&kernel->opened);
    unlink(kernel->path);
}

/* --- The client --------------------------------------------------------------------------------------------
 */

static void socket_encrypt(void *socket, const jk_config *config)
{
    char public_key[JK_KEY_Z85], secret_key[JK_KEY_Z85];
    assert_int_equal(zmq_curve_keypair(public_key, secret_key), 0);
    zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, config->curve_public, JK_KEY_Z85);
    zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, public_key, JK_KEY_Z85);
    assert_int_equal(zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, secret_key, JK_KEY_Z85), 0);
}

void *client_socket(test_client *client, int type)
{
    int none = 0, wait = WAIT;
    void *socket = zmq_socket(client->context, type);
    assert_non_null(socket);
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none);
    zmq_setsockopt(socket, ZMQ_SNDTIMEO, &wait, sizeof wait);
    return socket;
}

static void open_sockets(test_client *client, const char *path, bool encrypted)
{
    char endpoint[JK_ENDPOINT_SIZE];
    static const int types[JK_CHANNELS] = {ZMQ_DEALER, ZMQ_SUB, ZMQ_DEALER, ZMQ_DEALER, ZMQ_DEALER};
    memset(client, 0, sizeof *client);
    if (jk_config_read(path, &client->config) != 0) fail_msg("%s", drupe_error_last()->text);
    assert_int_equal(
        jk_signer_create(client->config.scheme, client->config.key, client->config.key_size, &client->signer),
        0);
    assert_int_equal(jk_session_open(&client->session), 0);
    client->context = zmq_ctx_new();
    for (int i = 0; i < JK_CHANNELS; i++) {
        int none = 0;
        client->sockets[i] = client_socket(client, types[i]);
        if (i == JK_IOPUB) {
            zmq_setsockopt(client->sockets[i], ZMQ_RCVHWM, &none, sizeof none);
        } else {
            zmq_setsockopt(client->sockets[i], ZMQ_ROUTING_ID, client->session.id, 32);
        }
        if (encrypted) socket_encrypt(client->sockets[i], &client->config);
        jk_endpoint_format(client->config.transport, client->config.ip, client->config.ports[i], endpoint);
        assert_int_equal(zmq_connect(client->sockets[i], endpoint), 0);
    }
}

void client_open_quiet(test_client *client, const char *path)
{
    open_sockets(client, path, false);
}

void client_open_encrypted(test_client *client, const char *path)
{
    open_sockets(client, path, true);
}

void client_subscribe(test_client *client, const char *topic)
{
    assert_int_equal(zmq_setsockopt(client->sockets[JK_IOPUB], ZMQ_SUBSCRIBE, topic, strlen(topic)), 0);
}

void client_open(test_client *client, const char *path)
{
    client_open_quiet(client, path);
    client_subscribe(client, "");
    test_received message;
    assert_true(client_receive(client, JK_IOPUB, WAIT, &message));
    assert_string_equal(message.type, "iopub_welcome");
    assert_string_equal(received_text(&message, "subscription"), "");
    assert_int_equal(json_object_size(message.parent), 0);
    received_clear(&message);
}

void client_close(test_client *client)
{
    for (int i = 0; i < JK_CHANNELS; i++) zmq_close(client->sockets[i]);
    zmq_ctx_term(client->context);
    jk_signer_release(client->signer);
    jk_config_clear(&client->config);
    jk_frames_clear(&client->raw);
}

void client_send(test_client *client, jk_channel channel, const char *type, const char *content, char *id)
{
    jk_buffer header = {0};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    jk_session_header(&client->session, type, now, &header);
    jk_buffer_append(&header, "", 1);
    assert_false(header.failed);
    if (id) {
        snprintf(id, 64, "%s_%ld_%lu", client->session.id, client->session.pid,
                 atomic_load(&client->session.count));
    }
    client_send_header(client, channel, header.data, content);
    jk_buffer_clear(&header);
}

bool client_offer(test_client *client, jk_channel channel, const char *header, const char *content, int ms)
{
    jk_bytes parts[JK_SIGNED_PARTS] = {
        {header, strlen(header)}, {"{}", 2}, {"{}", 2}, {content, strlen(content)}};
    char signature[JK_SIGNATURE_SIZE];
    int size = jk_signer_sign(client->signer, parts, signature);
    void *socket = client->sockets[channel];
    zmq_setsockopt(socket, ZMQ_SNDTIMEO, &ms, sizeof ms);
    bool sent = zmq_send(socket, "<IDS|MSG>", 9, ZMQ_SNDMORE) >= 0 &&
                zmq_send(socket, signature, (size_t)size, ZMQ_SNDMORE) >= 0;
    for (int i = 0; i < JK_SIGNED_PARTS && sent; i++) {
        int more = i + 1 < JK_SIGNED_PARTS ? ZMQ_SNDMORE : 0;
        sent = zmq_send(socket, parts[i].data, parts[i].size, more) >= 0;
    }
    return sent;
}

void client_send_header(test_client *client, jk_channel channel, const char *header, const char *content)
{
    assert_true(client_offer(client, channel, header, content, WAIT));
}

void client_execute(test_client *client, const char *code, const char *more, char *id)
{
    char content[2048];
    snprintf(content, sizeof content, "{\"code\":\"%s\"%s}", code, more ? more : "");
    client_send(client, JK_SHELL, "execute_request", content, id);
}

static json_t *part_load(jk_bytes part)
{
    json_error_t error;
    json_t *value = json_loadb(part.data, part.size, 0, &error);
    if (!json_is_object(value))
        fail_msg("a part is not a JSON object: %.*s", (int)part.size, (char *)part.data);
    return value;
}

static void copy_text(json_t *object, const char *name, char text[64])
{
    const char *value = json_string_value(json_object_get(object, name));
    snprintf(text, 64, "%s", value ? value : "");
}

static void header_check(json_t *header)
{
    static const char *const names[] = {"msg_id", "msg_type", "session", "username", "date", "version"};
    for (size_t i = 0; i < 6; i++) assert_true(json_is_string(json_object_get(header, names[i])));
    const char *date = json_string_value(json_object_get(header, "date"));
    assert_int_equal(strlen(date), 27);
    assert_int_equal(date[26], 'Z');
    assert_string_equal(json_string_value(json_object_get(header, "version")), JK_PROTOCOL_VERSION);
}

bool client_receive(test_client *client, jk_channel channel, int timeout_ms, test_received *message)
{
    memset(message, 0, sizeof *message);
    zmq_pollitem_t item = {.socket = client->sockets[channel], .events = ZMQ_POLLIN};
    if (zmq_poll(&item, 1, timeout_ms) <= 0) return false;
    jk_frames frames;
    const char *problem;
    if (jk_frames_receive(client->sockets[channel], &frames) <= 0) return false;
    jk_message *parsed = jk_message_parse(&frames, client->signer, NULL, &problem);
    if (!parsed) {
        fail_msg("the kernel sent a bad message: %s", problem);
        return false;
    }
    message->header = part_load(parsed->parts[JK_HEADER]);
    message->parent = part_load(parsed->parts[JK_PARENT_HEADER]);
    message->metadata = part_load(parsed->parts[JK_METADATA]);
    message->content = part_load(parsed->parts[JK_CONTENT]);
    header_check(message->header);
    copy_text(message->header, "msg_type", message->type);
    copy_text(message->header, "msg_id", message->id);
    copy_text(message->parent, "msg_id", message->parent_id);
    jk_message_release(parsed);
    return true;
}

void received_clear(test_received *message)
{
    json_decref(message->header);
    json_decref(message->parent);
    json_decref(message->metadata);
    json_decref(message->content);
    memset(message, 0, sizeof *message);
}

const char *received_text(const test_received *message, const char *name)
{
    const char *text = json_string_value(json_object_get(message->content, name));
    return text ? text : "";
}

void client_expect(test_client *client, jk_channel channel, const char *type, const char *id,
                   test_received *message)
{
    if (!client_receive(client, channel, WAIT, message)) fail_msg("no %s", type);
    assert_string_equal(message->type, type);
    assert_string_equal(message->parent_id, id);
}

void client_expect_iopub(test_client *client, const char *type, const char *id)
{
    test_received message;
    char found[128];
    if (!client_receive(client, JK_IOPUB, WAIT, &message)) fail_msg("no %s on iopub", type);
    bool status = strcmp(message.type, "status") == 0;
    snprintf(found, sizeof found, "%s%s%s", message.type, status ? ":" : "",
             status ? received_text(&message, "execution_state") : "");
    assert_string_equal(found, type);
    assert_string_equal(message.parent_id, id);
    received_clear(&message);
}

int client_until_idle(test_client *client, const char *id, char *text, size_t size)
{
    size_t used = 0;
    int streams = 0;
    bool idle = false;
    if (text) text[0] = '\0';
    while (!idle) {
        test_received message;
        if (!client_receive(client, JK_IOPUB, WAIT, &message)) fail_msg("no idle");
        bool ours = strcmp(message.parent_id, id) == 0;
        if (ours && strcmp(message.type, "stream") == 0) {
            streams++;
            const char *part = received_text(&message, "text");
            if (text && used + strlen(part) < size) {
                memcpy(text + used, part, strlen(part) + 1);
                used += strlen(part);
            }
        }
        idle = ours && strcmp(message.type, "status") == 0 &&
               strcmp(received_text(&message, "execution_state"), "idle") == 0;
        received_clear(&message);
    }
    return streams;
}

void client_expect_silence(test_client *client, jk_channel channel, int ms)
{
    test_received message;
    if (client_receive(client, channel, ms, &message)) {
        char type[64];
        snprintf(type, sizeof type, "%s", message.type);
        received_clear(&message);
        fail_msg("an unexpected %s", type);
    }
}

/* --- Counting ----------------------------------------------------------------------------------------------
 */

static long entries_count(const char *path)
{
    long count = 0;
    DIR *folder = opendir(path);
    assert_non_null(folder);
    struct dirent *entry;
    while ((entry = readdir(folder))) count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

long threads_count(void)
{
    return entries_count("/proc/self/task");
}

void threads_settle(long most)
{
    double end = seconds_now() + WAIT / 1000.0;
    while (threads_count() > most && seconds_now() < end) usleep(1000);
    assert_true(threads_count() <= most);
}

long descriptors_count(void)
{
    return entries_count("/proc/self/fd");
}

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* --- The one kernel and its client -----------------------------------------------------------------------
 */

test_kernel the_kernel;
test_client the_client;

static int open_with(bool capture)
{
    kernel_start(&the_kernel, capture);
    client_open(&the_client, the_kernel.path);
    return 0;
}

int set_up(void **state)
{
    (void)state;
    return open_with(false);
}

int set_up_captured(void **state)
{
    (void)state;
    return open_with(true);
}

int set_up_subshells(void **state)
{
    (void)state;
    kernel_start_subshells(&the_kernel);
    client_open(&the_client, the_kernel.path);
    return 0;
}

int tear_down(void **state)
{
    (void)state;
    client_close(&the_client);
    kernel_stop(&the_kernel);
    return 0;
}

void expect_reply(const char *type, const char *id, const char *status)
{
    test_received reply;
    client_expect(&the_client, JK_SHELL, type, id, &reply);
    assert_string_equal(received_text(&reply, "status"), status);
    received_clear(&reply);
}
