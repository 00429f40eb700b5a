/* Questions to the client. The io thread owns the socket; the main thread waits on an eventfd with poll(),
 * which a signal ends, unlike a condition variable.
 *
 * A client's sockets connect one by one: its first cell can ask before its stdin socket is there. The
 * question is then kept and sent again until somebody takes it or its request is replied to. */
#include "jkernel/server/requests/requests_room.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define RESEND_PAUSE 20 /* ms */

int jk_input_open(jk_input *input)
{
    input->answered = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    jk_mutex_open(&input->lock);
    return input->answered < 0 ? -1 : 0;
}

static void unsent_drop(jk_input *input)
{
    jk_entry_release(input->unsent);
    input->unsent = NULL;
}

void jk_input_clear(jk_input *input)
{
    unsent_drop(input);
    free(input->answer);
    input->answer = NULL;
    if (input->answered >= 0) close(input->answered);
    input->answered = -1;
}

void jk_input_close(jk_input *input)
{
    pthread_mutex_lock(&input->lock);
    input->closed = true;
    pthread_mutex_unlock(&input->lock);
    jk_event_raise(input->answered);
}

static void answer_forget(jk_input *input, bool waiting)
{
    pthread_mutex_lock(&input->lock);
    free(input->answer);
    input->answer = NULL;
    input->waiting = waiting;
    if (!input->closed) jk_event_clear(input->answered);
    pthread_mutex_unlock(&input->lock);
}

int jk_input_ask(jk_server *server, const jk_request *request, jk_bytes content)
{
    if (!jk_server_alive(server)) return -1;
    jk_entry *entry = jk_entry_create(JK_ENTRY_INPUT, "input_request", request->parent);
    if (!entry) return -1;
    entry->to = request->message;
    jk_buffer_append(&entry->content, content.data, content.size);
    answer_forget(&server->requests->input, false);
    jk_stdio_flush(server);
    bool entered = jk_stdio_enter(server);
    int result = jk_outbox_push(server, entry);
    jk_stdio_leave(server, entered);
    return result;
}

int jk_input_wait(jk_server *server, int timeout_ms, char **content, size_t *size)
{
    jk_input *input = &server->requests->input;
    *content = NULL;
    *size = 0;
    if (!jk_server_alive(server)) return JK_INPUT_CLOSED;
    struct pollfd item = {.fd = input->answered, .events = POLLIN};
    int ready = poll(&item, 1, timeout_ms);
    int result = JK_INPUT_TIMEOUT;
    pthread_mutex_lock(&input->lock);
    if (input->closed) {
        result = JK_INPUT_CLOSED;
    } else if (ready > 0) {
        jk_event_clear(input->answered);
        *content = input->answer;
        *size = input->answer_size;
        input->answer = NULL;
        if (*content) result = 0;
    }
    pthread_mutex_unlock(&input->lock);
    return result;
}

/* It answers what was sent before the question. Of a thread whose cell has ended, nobody waits for it any
 * more. Some clients do not say what they answer: they mean the newest question. */
static bool answer_is_late(jk_server *server, const jk_message *message)
{
    char *id = jk_message_parent_id(message);
    unsigned long number = id ? jk_session_number(server->session, id) : 0;
    free(id);
    return number > 0 && number < server->requests->input.question;
}

static void answer_receive(jk_server *server, const jk_message *message)
{
    jk_input *input = &server->requests->input;
    jk_bytes content = message->parts[JK_CONTENT];
    char *text = answer_is_late(server, message) ? NULL : malloc(content.size + 1);
    pthread_mutex_lock(&input->lock);
    bool wanted = input->waiting && text;
    if (wanted) {
        memcpy(text, content.data, content.size);
        text[content.size] = '\0';
        input->answer = text;
        input->answer_size = content.size;
        input->waiting = false;
    }
    pthread_mutex_unlock(&input->lock);
    if (wanted) {
        jk_event_raise(input->answered);
    } else {
        jk_log("stdin: dropped an answer to no question");
        free(text);
    }
}

void jk_input_receive(jk_server *server)
{
    jk_frames frames;
    int result;
    jk_channel_read(server, JK_STDIN);
    while ((result = jk_channel_receive(server, JK_STDIN, &frames)) != 0) {
        if (result < 0 && zmq_errno() == ETERM) return;
        const char *problem = "it cannot be received";
        jk_message *message = NULL;
        if (result > 0) message = jk_message_parse(&frames, server->signer, server->replay, &problem);
        if (message && strcmp(message->type, "input_reply") == 0) {
            answer_receive(server, message);
        } else {
            jk_log("stdin: dropped a message: %s", message ? "it is not an input_reply" : problem);
        }
        jk_message_release(message);
    }
}

/* False: the client's stdin socket is not connected. */
static bool question_send(jk_server *server, const jk_entry *entry)
{
    jk_envelope envelope = {
        .to = entry->to,
        .parent = {entry->parent->header, entry->parent->size},
        .content = {entry->content.data, entry->content.size},
    };
    unsigned long number = jk_channel_send(server, JK_STDIN, "input_request", entry->date, &envelope);
    bool reached = number == 0 || errno != EHOSTUNREACH;
    if (number) server->requests->input.question = number;
    return reached;
}

void jk_input_send(jk_server *server, jk_entry *entry)
{
    /* What is in the socket now answers an older question. */
    jk_input_receive(server);
    answer_forget(&server->requests->input, true);
    unsent_drop(&server->requests->input);
    if (question_send(server, entry)) {
        jk_entry_release(entry);
    } else {
        jk_log("stdin: the client is not connected yet");
        server->requests->input.unsent = entry;
    }
}

int jk_input_resend(jk_server *server)
{
    if (!server->requests->input.unsent) return -1;
    if (!question_send(server, server->requests->input.unsent)) return RESEND_PAUSE;
    unsent_drop(&server->requests->input);
    return -1;
}

void jk_input_end(jk_server *server, const jk_request *request)
{
    if (server->requests->input.unsent && server->requests->input.unsent->to == request->message)
        unsent_drop(&server->requests->input);
}
