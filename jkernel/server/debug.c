/* debug_request, the Debug Adapter Protocol inside Jupyter messages.
 *
 * Front-ends ask every kernel for `debugInfo` when they connect, debugging or not. So it is answered here, on
 * the thread that owns the socket, until the first request that needs the language's debugger; from then on
 * the executor answers all of them, in order. Commands that C always answers belong into `commands`; those of
 * the devices, whose names begin with "drupe/", are always answered on that thread too, and never start a
 * debugger. */
#include "jkernel/server/server.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- The names of cells ------------------------------------------------------------------------------------
 */

/* MurmurHash2 of 32 bits: front-ends compute the same from the text of a cell. */
uint32_t jk_cell_hash(const void *data, size_t size)
{
    const uint32_t factor = 0x5bd1e995u;
    const unsigned char *at = data;
    uint32_t hash = JK_CELL_SEED ^ (uint32_t)size;
    for (; size >= 4; at += 4, size -= 4) {
        uint32_t word =
            (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        word *= factor;
        word ^= word >> 24;
        hash = (hash * factor) ^ (word * factor);
    }
    if (size > 2) hash ^= (uint32_t)at[2] << 16;
    if (size > 1) hash ^= (uint32_t)at[1] << 8;
    if (size > 0) hash = (hash ^ at[0]) * factor;
    hash ^= hash >> 13;
    hash *= factor;
    return hash ^ hash >> 15;
}

/* Libraries that cache compiled functions (numba, joblib) know a cell by a folder that begins with
 * "ipykernel_". The rest of the name is random: nobody can have made the folder before us. */
void jk_debug_open(jk_server *server)
{
    const char *folder = getenv("TMPDIR");
    if (!folder || folder[0] != '/' || strlen(folder) > sizeof server->cell_prefix - 64 ||
        access(folder, W_OK | X_OK) != 0) {
        folder = "/tmp";
    }
    snprintf(server->cell_prefix, sizeof server->cell_prefix, "%s/ipykernel_%.16s/", folder,
             server->session.id);
}

const char *jk_server_cell_prefix(const jk_server *server)
{
    return server->cell_prefix;
}

void jk_server_cell_name(const jk_server *server, jk_bytes code, char name[JK_CELL_NAME_SIZE])
{
    snprintf(name, JK_CELL_NAME_SIZE, "%s%lu%s", server->cell_prefix,
             (unsigned long)jk_cell_hash(code.data, code.size), JK_CELL_SUFFIX);
}

/* --- Requests ----------------------------------------------------------------------------------------------
 */

typedef struct debug_call {
    jk_server *server;
    json_t *content; /* owned; NULL when it is no JSON */
    const char *command;
    json_int_t seq;
} debug_call;

static debug_call call_of(jk_server *server, jk_slice text)
{
    json_error_t error;
    debug_call call = {.server = server, .content = json_loadb(text.data, text.size, 0, &error)};
    call.command = json_string_value(json_object_get(call.content, "command"));
    call.seq = json_integer_value(json_object_get(call.content, "seq"));
    return call;
}

/* The start of a response; the caller adds its body or message and the closing brace. */
static void response_begin(const debug_call *call, bool success, jk_buffer *content)
{
    const char *command = call->command ? call->command : "";
    char text[120];
    snprintf(text, sizeof text,
             "{\"type\":\"response\",\"seq\":%" JSON_INTEGER_FORMAT ",\"request_seq\":%" JSON_INTEGER_FORMAT
             ",\"success\":%s,\"command\":",
             call->seq, call->seq, success ? "true" : "false");
    jk_buffer_append_text(content, text);
    jk_buffer_append_json(content, command, strlen(command));
}

static void refuse(const debug_call *call, const char *why, jk_buffer *content)
{
    response_begin(call, false, content);
    jk_buffer_append_text(content, ",\"message\":");
    jk_buffer_append_json(content, why, strlen(why));
    jk_buffer_append_text(content, ",\"body\":{}}");
}

static bool debug_info(const debug_call *call, jk_buffer *content)
{
    jk_server *server = call->server;
    if (!server->executor->debug || atomic_load(&server->debugging)) return false;
    char seed[80];
    snprintf(seed, sizeof seed, ",\"body\":{\"isStarted\":false,\"hashMethod\":\"Murmur2\",\"hashSeed\":%lu,",
             (unsigned long)JK_CELL_SEED);
    response_begin(call, true, content);
    jk_buffer_append_text(content, seed);
    jk_buffer_append_text(content, "\"tmpFilePrefix\":");
    jk_buffer_append_json(content, server->cell_prefix, strlen(server->cell_prefix));
    jk_buffer_append_text(content, ",\"tmpFileSuffix\":\"" JK_CELL_SUFFIX
                                   "\",\"breakpoints\":[],\"stoppedThreads\":[],"
                                   "\"richRendering\":true,\"exceptionPaths\":[],\"copyToGlobals\":true}}");
    return true;
}

/* --- The devices' own commands ----------------------------------------------------------------------------
 */

static int has_argument(const void *all, const char *name)
{
    return json_object_get(all, name) != NULL;
}

static int64_t number_argument(const void *all, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(all, name);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

static const char *word_argument(const void *all, const char *name, const char *otherwise)
{
    const json_t *value = json_object_get(all, name);
    return json_is_string(value) ? json_string_value(value) : otherwise;
}

static void device_answer(const debug_call *call, jk_buffer *content)
{
    const jk_executor *executor = call->server->executor;
    const json_t *all = json_object_get(call->content, "arguments");
    const jk_arguments arguments = {all, has_argument, number_argument, word_argument};
    char *text = NULL;
    size_t size = 0;
    if (all && !json_is_object(all)) {
        refuse(call, "the arguments of a debug_request are an object", content);
        return;
    }
    if (executor->answer) size = executor->answer(executor->self, call->command, &arguments, &text);
    if (size > 0) {
        response_begin(call, true, content);
        jk_buffer_append_text(content, ",\"body\":");
        jk_buffer_append(content, text, size);
        jk_buffer_append_text(content, "}");
    } else {
        refuse(call, text ? text : "no device has been used in this kernel yet: there is nothing to show",
               content);
    }
    free(text);
}

/* What C answers. Each writes the whole response and returns true, or leaves the request to the executor. */
static const struct {
    const char *command;
    bool (*answer)(const debug_call *call, jk_buffer *content);
} commands[] = {
    {"debugInfo", debug_info},
};

static bool answer_here(const debug_call *call, jk_buffer *content)
{
    if (!call->command) {
        refuse(call, "a debug_request needs a command", content);
        return true;
    }
    if (strncmp(call->command, "drupe/", 6) == 0) {
        device_answer(call, content);
        return true;
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(call->command, commands[i].command) == 0 && commands[i].answer(call, content)) return true;
    }
    if (call->server->executor->debug) return false;
    refuse(call, "this kernel has no debugger: install debugpy where the kernel runs, then restart it",
           content);
    return true;
}

static void answer(jk_server *server, jk_channel channel, const jk_message *message, const jk_buffer *content)
{
    jk_parent *parent = jk_parent_create(jk_bytes_of(jk_message_header(message)));
    if (!parent || content->failed) {
        jk_log("no memory for the reply to a debug_request");
    } else {
        jk_status_busy(server, parent, false);
        jk_answer(server, channel, message, (jk_slice){content->data, content->size});
        jk_status_idle(server, parent, NULL);
    }
    jk_parent_release(parent);
}

static void hand_over(jk_server *server, jk_channel channel, jk_message *message)
{
    jk_request *request = jk_request_create(server, message, channel);
    if (!request) {
        jk_log("no memory for a debug_request; it is lost");
        return;
    }
    atomic_store(&server->debugging, true);
    jk_status_busy(server, request->parent, false);
    server->executor->debug(server->executor->self, request);
}

void jk_debug_request(jk_server *server, jk_channel channel, jk_message *message)
{
    jk_buffer content = {0};
    debug_call call = call_of(server, jk_message_content(message));
    if (!answer_here(&call, &content)) {
        hand_over(server, channel, message);
    } else {
        answer(server, channel, message, &content);
        jk_message_release(message);
    }
    jk_buffer_clear(&content);
    json_decref(call.content);
}
