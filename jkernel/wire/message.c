/* Messages: what is inside the frames. Jansson reads headers and the two requests that are answered without
 * the language; everything else crosses as bytes, because numbers and text in it are the language's business.
 */
#include "jkernel/wire/wire.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define DELIMITER       "<IDS|MSG>"
#define IDENTITIES_MOST 16
#define HEADER_MOST     65536
#define DEPTH_MOST      2048

enum { PART_SIGNATURE = 1, PART_HEADER, PART_BUFFERS = PART_HEADER + JK_SIGNED_PARTS };

static jk_bytes frame_slice(const jk_frames *frames, size_t index)
{
    zmq_msg_t *frame = &frames->items[index];
    return (jk_bytes){zmq_msg_data(frame), zmq_msg_size(frame)};
}

static jk_bytes message_part(const jk_message *message, size_t part)
{
    return frame_slice(&message->frames, message->identities + part);
}

static bool slice_is(jk_bytes slice, const char *text)
{
    return slice.size == strlen(text) && memcmp(slice.data, text, slice.size) == 0;
}

/* Whether the text can be a whole JSON object: brackets paired by kind, strings ended, nothing after it. It
 * is what keeps a truncated message from the language; the language's own parser judges the rest. */
static bool slice_is_object(jk_bytes slice)
{
    char open[DEPTH_MOST];
    size_t depth = 0;
    bool in_string = false, begun = false;
    const char *text = slice.data;
    for (size_t i = 0; i < slice.size; i++) {
        char c = text[i];
        if (in_string) {
            if (c == '\\') i++;
            in_string = c != '"';
            continue;
        }
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r') continue;
        if (depth == 0 && (begun || c != '{')) return false;
        begun = true;
        in_string = c == '"';
        if (c == '{' || c == '[') {
            if (depth == DEPTH_MOST) return false;
            open[depth++] = c == '{' ? '}' : ']';
        } else if (c == '}' || c == ']') {
            if (open[--depth] != c) return false;
        }
    }
    return begun && depth == 0 && !in_string;
}

static const char *header_parse(jk_message *message)
{
    jk_bytes part = message->parts[JK_HEADER];
    if (part.size > HEADER_MOST) return "its header is longer than 64 KiB";
    json_error_t error;
    json_t *header = json_loadb(part.data, part.size, 0, &error);
    const char *id = json_string_value(json_object_get(header, "msg_id"));
    const char *type = json_string_value(json_object_get(header, "msg_type"));
    const char *subshell = json_string_value(json_object_get(header, "subshell_id"));
    const char *problem = NULL;
    if (!header) {
        problem = "its header is not JSON";
    } else if (!id || !type) {
        problem = "its header has no msg_id or msg_type";
    } else {
        message->id = strdup(id);
        message->type = strdup(type);
        if (subshell) message->subshell = strdup(subshell);
        if (!message->id || !message->type || (subshell && !message->subshell)) problem = "no memory for it";
    }
    json_decref(header);
    return problem;
}

static const char *delimiter_find(jk_message *message)
{
    size_t at = 0, most = message->frames.count;
    if (most > IDENTITIES_MOST) most = IDENTITIES_MOST;
    while (at < most && !slice_is(frame_slice(&message->frames, at), DELIMITER)) at++;
    if (at == most) return "it has no delimiter";
    if (message->frames.count - at < PART_BUFFERS) return "it has too few frames";
    message->identities = at;
    return NULL;
}

static const char *message_check(jk_message *message, const jk_signer *signer, jk_replay *replay)
{
    const char *problem = delimiter_find(message);
    if (problem) return problem;
    jk_bytes *parts = message->parts;
    for (size_t i = 0; i < JK_SIGNED_PARTS; i++) parts[i] = message_part(message, PART_HEADER + i);
    jk_bytes signature = message_part(message, PART_SIGNATURE);
    if (!jk_signer_verify(signer, signature, parts)) return "its signature is wrong";

    problem = header_parse(message);
    if (problem) return problem;
    for (size_t i = 1; i < JK_SIGNED_PARTS; i++) {
        if (slice_is(parts[i], "null")) parts[i] = (jk_bytes){"{}", 2};
        if (!slice_is_object(parts[i])) return "its parent header, metadata or content is not a JSON object";
    }
    if (replay && !jk_replay_record(replay, signature)) return "it is a replay";
    return NULL;
}

jk_message *jk_message_parse(jk_frames *frames, const jk_signer *signer, jk_replay *replay,
                             const char **problem)
{
    jk_message *message = calloc(1, sizeof *message);
    if (!message) {
        jk_frames_clear(frames);
        *problem = "no memory for it";
        return NULL;
    }
    message->frames = *frames;
    memset(frames, 0, sizeof *frames);
    *problem = message_check(message, signer, replay);
    if (*problem) {
        jk_message_release(message);
        return NULL;
    }
    return message;
}

void jk_message_release(jk_message *message)
{
    if (!message) return;
    jk_frames_clear(&message->frames);
    free(message->id);
    free(message->type);
    free(message->subshell);
    free(message);
}

size_t jk_message_buffer_count(const jk_message *message)
{
    return message->frames.count - message->identities - PART_BUFFERS;
}

jk_bytes jk_message_buffer(const jk_message *message, size_t index)
{
    return message_part(message, PART_BUFFERS + index);
}

jk_bytes jk_message_identity(const jk_message *message, size_t index)
{
    return frame_slice(&message->frames, index);
}

bool jk_message_flag(const jk_message *message, const char *name)
{
    jk_bytes part = message->parts[JK_CONTENT];
    json_error_t error;
    json_t *content = json_loadb(part.data, part.size, 0, &error);
    bool flag = json_is_true(json_object_get(content, name));
    json_decref(content);
    return flag;
}

static char *member_text(jk_bytes part, const char *name)
{
    json_error_t error;
    json_t *object = json_loadb(part.data, part.size, 0, &error);
    const char *text = json_string_value(json_object_get(object, name));
    char *copy = text ? strdup(text) : NULL;
    json_decref(object);
    return copy;
}

char *jk_message_text(const jk_message *message, const char *name)
{
    return member_text(message->parts[JK_CONTENT], name);
}

char *jk_message_parent_id(const jk_message *message)
{
    return member_text(message->parts[JK_PARENT_HEADER], "msg_id");
}

bool jk_message_date(const jk_message *message, struct timespec *date)
{
    char *text = member_text(message->parts[JK_HEADER], "date");
    bool known = text && jk_date_parse(text, date);
    free(text);
    return known;
}

/* --- Our own headers -------------------------------------------------------------------------------------
 */

int jk_session_open(jk_session *session)
{
    unsigned char random[16];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) return -1;
    for (size_t i = 0; i < sizeof random; i++) {
        snprintf(session->id + 2 * i, 3, "%02x", random[i]);
    }
    session->pid = (long)getpid();
    atomic_init(&session->count, 0);
    return 0;
}

unsigned long jk_session_header(jk_session *session, const char *type, struct timespec date,
                                jk_buffer *header)
{
    char text[192], when[JK_DATE_SIZE];
    unsigned long number = atomic_fetch_add(&session->count, 1) + 1;
    jk_date_format(date, when);
    snprintf(text, sizeof text,
             "{\"msg_id\":\"%s_%ld_%lu\",\"username\":\"kernel\",\"session\":\"%s\",\"date\":\"%s\",",
             session->id, session->pid, number, session->id, when);
    jk_buffer_append_text(header, text);
    jk_buffer_append_text(header, "\"version\":\"" JK_PROTOCOL_VERSION "\",\"msg_type\":");
    jk_buffer_append_json(header, type, strlen(type));
    jk_buffer_append(header, "}", 1);
    return number;
}

unsigned long jk_session_number(const jk_session *session, const char *id)
{
    char start[64];
    int size = snprintf(start, sizeof start, "%s_%ld_", session->id, session->pid);
    return strncmp(id, start, (size_t)size) == 0 ? strtoul(id + size, NULL, 10) : 0;
}
