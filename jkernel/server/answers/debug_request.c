/* debug_request, the Debug Adapter Protocol inside Jupyter messages.
 *
 * Front-ends ask every kernel for `debugInfo` when they connect, debugging or not. So it is answered here, on
 * the thread that owns the socket, until the first request that needs the language's debugger; from then on
 * the executor answers all of them, in order, in a subshell of their own. Commands that C always answers
 * belong into `commands`; those of the devices, whose names begin with "drupe/", are always answered on that
 * thread too, and never start a debugger. */
#include "jkernel/server/answers/answers_room.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct debug_call {
    jk_server *server;
    json_t *content; /* owned; NULL when it is no JSON */
    const char *command;
    json_int_t seq;
} debug_call;

static debug_call call_of(jk_server *server, jk_bytes text)
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
    if (!server->executor->debugger_open || atomic_load(&server->answers->debugging)) return false;
    char seed[80];
    snprintf(seed, sizeof seed, ",\"body\":{\"isStarted\":false,\"hashMethod\":\"Murmur2\",\"hashSeed\":%lu,",
             (unsigned long)JK_CELL_SEED);
    response_begin(call, true, content);
    jk_buffer_append_text(content, seed);
    jk_buffer_append_text(content, "\"tmpFilePrefix\":");
    jk_buffer_append_json(content, server->answers->cell_prefix, strlen(server->answers->cell_prefix));
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
    if (strcmp(call->command, "debugInfo") == 0 && debug_info(call, content)) return true;
    if (call->server->executor->debugger_open) return false;
    refuse(call, "this kernel has no debugger: install debugpy where the kernel runs, then restart it",
           content);
    return true;
}

static void answer(jk_server *server, jk_channel channel, const jk_message *message, const jk_buffer *content)
{
    jk_parent *parent = jk_parent_create(message->parts[JK_HEADER]);
    if (!parent || content->failed) {
        jk_log("no memory for the reply to a debug_request");
    } else {
        jk_status_busy(server, parent, false);
        jk_answer(server, channel, message, (jk_bytes){content->data, content->size});
        jk_status_idle(server, parent, NULL);
    }
    jk_parent_release(parent);
}

static void hand_over(jk_server *server, jk_channel channel, jk_message *message)
{
    jk_subshell *shell = jk_debugger_shell(server);
    jk_request *request = jk_request_create(server, message, channel, shell); /* takes both */
    if (!request) {
        jk_log("no memory for a debug_request; it is lost");
        return;
    }
    atomic_store(&server->answers->debugging, true);
    if (shell && jk_inbox_push(&shell->inbox, request)) return;
    jk_request_refuse(request, "the debugger cannot be started: the kernel is closing or out of resources");
}

void jk_debug_request(jk_server *server, jk_channel channel, jk_message *message)
{
    jk_buffer content = {0};
    debug_call call = call_of(server, message->parts[JK_CONTENT]);
    if (!answer_here(&call, &content)) {
        hand_over(server, channel, message);
    } else {
        answer(server, channel, message, &content);
        jk_message_release(message);
    }
    jk_buffer_clear(&content);
    json_decref(call.content);
}
