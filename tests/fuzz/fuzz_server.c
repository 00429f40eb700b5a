/* A whole server, with an executor that answers at once: whatever a client that has the key sends, the server
 * goes on, and every message that it sends is made of JSON objects.
 * The first byte chooses the channel; pieces: type, subshell_id, parent header, metadata, content, buffers.
 */
#include "fuzz.h"

#include "jkernel/executor.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE 10000 /* ms */

static struct {
    jk_server *server;
    jk_signer *signer;
    void *context, *sockets[JK_CHANNELS];
    unsigned long count;
    jk_subshell *debugger; /* what is sent to it is served beside the rest */
} the;

/* Looks at all that a request has, as a language does. */
static void own_handle(jk_request *request)
{
    jk_bytes parts[] = {jk_request_part(request, JK_HEADER), jk_request_part(request, JK_PARENT_HEADER),
                        jk_request_part(request, JK_METADATA), jk_request_part(request, JK_CONTENT)};
    for (int i = 0; i < 4; i++) FUZZ_CHECK(parts[i].size >= 2);
    size_t total = 0;
    for (size_t i = 0; i < jk_request_buffer_count(request); i++) total += jk_request_buffer(request, i).size;
    jk_stream_write(the.server, jk_request_parent(request), JK_STDOUT, "x\n", 2);
    jk_request_reply(request, (jk_bytes){"{\"status\":\"ok\"}", 15}, parts[2], total & 1 ? JK_REPLY_NONE : 0);
}

static int own_debugger(void *self, jk_subshell *subshell)
{
    (void)self;
    the.debugger = subshell;
    return 0;
}

static void requests_serve(void)
{
    jk_request *request;
    bool ended;
    while ((request = jk_server_next(the.server))) own_handle(request);
    while (the.debugger && (request = jk_subshell_next(the.debugger, &ended))) own_handle(request);
}

static void own_nothing(void *self)
{
    (void)self;
}

static void own_shutdown(void *self, bool restart)
{
    (void)self;
    (void)restart;
}

static void file_write(const char *path, const char *folder)
{
    FILE *file = fopen(path, "w");
    FUZZ_CHECK(file && fchmod(fileno(file), 0600) == 0);
    fprintf(file,
            "{\"transport\":\"ipc\",\"ip\":\"%s\",\"key\":\"key\",\"shell_port\":1,\"iopub_port\":2,"
            "\"stdin_port\":3,\"control_port\":4,\"hb_port\":5}",
            folder);
    fclose(file);
}

/* Removes its sockets, too. */
static void the_close(void)
{
    jk_server_close(the.server);
    jk_subshell_release(the.debugger);
}

static void the_open(void)
{
    static const jk_executor executor = {
        .kernel_info = "{\"implementation\":\"fuzz\"}",
        .interrupt = own_nothing,
        .shutdown = own_shutdown,
        .debugger_open = own_debugger,
    };
    static const int kinds[JK_CHANNELS] = {ZMQ_DEALER, ZMQ_SUB, ZMQ_DEALER, ZMQ_DEALER, ZMQ_DEALER};
    char start[64], path[80], endpoint[100], problem[512] = "";
    snprintf(start, sizeof start, "/tmp/fuzz-%ld", (long)getpid());
    snprintf(path, sizeof path, "%s.json", start);
    file_write(path, start);
    the.server = jk_server_open(path, &executor, problem, sizeof problem);
    FUZZ_CHECK(the.server && unlink(path) == 0 && atexit(the_close) == 0);
    FUZZ_CHECK(jk_signer_create("hmac-sha256", "key", 3, &the.signer) == 0);
    the.context = zmq_ctx_new();
    for (int i = 0; i < JK_CHANNELS; i++) {
        int none = 0;
        the.sockets[i] = zmq_socket(the.context, kinds[i]);
        zmq_setsockopt(the.sockets[i], ZMQ_LINGER, &none, sizeof none);
        snprintf(endpoint, sizeof endpoint, "ipc://%s-%d", start, i + 1);
        FUZZ_CHECK(zmq_connect(the.sockets[i], endpoint) == 0);
    }
    FUZZ_CHECK(zmq_setsockopt(the.sockets[JK_IOPUB], ZMQ_SUBSCRIBE, "", 0) == 0);
}

static void message_send(jk_channel channel, jk_bytes type, jk_bytes subshell, jk_bytes rest)
{
    char id[64], hex[JK_SIGNATURE_SIZE];
    jk_buffer header = {0};
    snprintf(id, sizeof id, "{\"msg_id\":\"%lu\",\"msg_type\":", ++the.count);
    jk_buffer_append_text(&header, id);
    jk_buffer_append_json(&header, type.data, type.size);
    if (subshell.size) {
        jk_buffer_append_text(&header, ",\"subshell_id\":");
        jk_buffer_append_json(&header, subshell.data, subshell.size);
    }
    jk_buffer_append(&header, "}", 1);
    jk_bytes parts[JK_SIGNED_PARTS] = {
        {header.data, header.size}, fuzz_piece(&rest), fuzz_piece(&rest), fuzz_piece(&rest)};
    int size = jk_signer_sign(the.signer, parts, hex);
    FUZZ_CHECK(!header.failed && size == 64);
    void *socket = the.sockets[channel];
    zmq_send(socket, "<IDS|MSG>", 9, ZMQ_SNDMORE);
    zmq_send(socket, hex, 64, ZMQ_SNDMORE);
    for (int i = 0; i < JK_SIGNED_PARTS; i++) {
        zmq_send(socket, parts[i].data, parts[i].size, i < 3 || rest.size ? ZMQ_SNDMORE : 0);
    }
    while (rest.size) {
        jk_bytes buffer = fuzz_piece(&rest);
        zmq_send(socket, buffer.data, buffer.size, rest.size ? ZMQ_SNDMORE : 0);
    }
    jk_buffer_clear(&header);
}

/* Read one message of the server's; returns whether it is a kernel_info_reply. */
static bool message_read(jk_channel channel, int timeout_ms)
{
    zmq_pollitem_t item = {.socket = the.sockets[channel], .events = ZMQ_POLLIN};
    if (zmq_poll(&item, 1, timeout_ms) <= 0) return false;
    jk_frames frames;
    const char *problem = NULL;
    FUZZ_CHECK(jk_frames_receive(the.sockets[channel], &frames) == 1);
    jk_message *message = jk_message_parse(&frames, the.signer, NULL, &problem);
    FUZZ_CHECK(message);
    fuzz_check_object(message->parts[JK_HEADER]);
    fuzz_check_object(message->parts[JK_PARENT_HEADER]);
    fuzz_check_object(message->parts[JK_CONTENT]);
    bool info = strcmp(message->type, "kernel_info_reply") == 0;
    jk_message_release(message);
    return info;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const jk_channel channels[] = {JK_SHELL, JK_CONTROL, JK_STDIN};
    if (size < 1) return 0;
    if (!the.server) the_open();
    jk_channel channel = channels[data[0] % 3];
    jk_bytes rest = {data + 1, size - 1}, type = fuzz_piece(&rest), subshell = fuzz_piece(&rest);
    /* What ends the server is not sent. */
    if (type.size == 16 && memcmp(type.data, "shutdown_request", 16) == 0) return 0;
    message_send(channel, type, subshell, rest);
    /* It has been served when what was sent after it is. */
    jk_channel asked = channel == JK_STDIN ? JK_SHELL : channel;
    static const char objects[] = "{}\xff{}\xff{}";
    message_send(asked, (jk_bytes){"kernel_info_request", 19}, (jk_bytes){0}, (jk_bytes){objects, 8});
    int64_t turns = 0;
    while (!message_read(asked, 1)) {
        requests_serve();
        FUZZ_CHECK(++turns < PATIENCE);
    }
    requests_serve();
    for (int i = 0; i < 16; i++) {
        message_read(asked, 0);
        message_read(JK_IOPUB, 0);
    }
    return 0;
}
