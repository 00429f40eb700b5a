/* Reading ZMTP 3.0. A frame that lies whole in what was read is handed on where it lies; only one that comes
 * in pieces is gathered, in memory that grows with what has come and not with what was announced. */
#include "jkernel/wire/zmtp.h"

#include <stdint.h>
#include <string.h>

enum { FLAG_MORE = 1, FLAG_LONG = 2, FLAG_COMMAND = 4 };

#define MAJOR_AT     10 /* in the greeting: signature of 10 bytes, version of 2, mechanism of 20 */
#define MECHANISM_AT 12
#define MECHANISM    20

/* --- Reading ----------------------------------------------------------------------------------------------
 */

/* Gather `size` bytes of head; false while some are missing. */
static bool head_gather(jk_zmtp *reader, jk_bytes *rest, size_t size)
{
    size_t part = size - reader->have;
    if (part > rest->size) part = rest->size;
    memcpy(reader->head + reader->have, rest->data, part);
    reader->have += part;
    rest->data = (const char *)rest->data + part;
    rest->size -= part;
    return reader->have == size;
}

static bool greeting_good(const unsigned char head[JK_GREETING_SIZE])
{
    static const char null_mechanism[MECHANISM] = "NULL";
    return head[0] == 0xff && (head[9] & 1) && head[MAJOR_AT] >= 3 &&
           memcmp(head + MECHANISM_AT, null_mechanism, MECHANISM) == 0;
}

/* JK_ZMTP_FRAME when the head of a frame is whole. */
static jk_zmtp_event head_read(jk_zmtp *reader, jk_bytes *rest)
{
    if (reader->have == 0 && !head_gather(reader, rest, 1)) return JK_ZMTP_WANTS;
    unsigned flags = reader->head[0];
    if (flags & ~(unsigned)(FLAG_MORE | FLAG_LONG | FLAG_COMMAND)) return JK_ZMTP_BROKEN;
    bool is_long = (flags & FLAG_LONG) != 0;
    if (!head_gather(reader, rest, is_long ? JK_FRAME_HEAD : 2)) return JK_ZMTP_WANTS;
    uint64_t size = 0;
    for (size_t i = 1; i < reader->have; i++) size = size << 8 | reader->head[i];
    if (size > reader->frame_most) return JK_ZMTP_BROKEN;
    reader->size = (size_t)size;
    reader->command = (flags & FLAG_COMMAND) != 0;
    if (!reader->command) reader->more = (flags & FLAG_MORE) != 0;
    reader->have = 0;
    reader->in_body = true;
    return JK_ZMTP_FRAME;
}

static jk_zmtp_event body_read(jk_zmtp *reader, jk_bytes *rest, jk_bytes *body)
{
    size_t part = reader->size - reader->frame.size;
    bool whole = part <= rest->size;
    if (!whole) part = rest->size;
    if (whole && reader->frame.size == 0) {
        *body = (jk_bytes){rest->data, part};
    } else {
        jk_buffer_append(&reader->frame, rest->data, part);
        if (reader->frame.failed) return JK_ZMTP_BROKEN;
        *body = (jk_bytes){reader->frame.data, reader->frame.size};
    }
    rest->data = (const char *)rest->data + part;
    rest->size -= part;
    if (!whole) return JK_ZMTP_WANTS;
    reader->in_body = false;
    return JK_ZMTP_FRAME;
}

/* Whether the command in `body` has this name; cuts the name off. */
static bool command_is(jk_bytes *body, const char *name)
{
    const unsigned char *data = body->data;
    size_t length = strlen(name);
    if (body->size < 1 + length || data[0] != length || memcmp(data + 1, name, length) != 0) return false;
    body->data = data + 1 + length;
    body->size -= 1 + length;
    return true;
}

/* Whether a property's name is this, which is in small letters. */
static bool name_is(const unsigned char *name, size_t size, const char *wanted)
{
    if (size != strlen(wanted)) return false;
    for (size_t i = 0; i < size; i++)
        if (name[i] != (unsigned char)wanted[i] && (name[i] | 0x20) != wanted[i]) return false;
    return true;
}

static void property_keep(jk_zmtp *reader, const unsigned char *name, size_t name_size, jk_bytes value)
{
    if (name_is(name, name_size, "socket-type") && value.size < sizeof reader->kind) {
        memcpy(reader->kind, value.data, value.size);
        reader->kind[value.size] = '\0';
    }
    if (name_is(name, name_size, "identity") && value.size <= sizeof reader->identity) {
        memcpy(reader->identity, value.data, value.size);
        reader->identity_size = value.size;
    }
}

/* The properties of READY: a name with its length in a byte, a value with its length in four. */
static bool ready_read(jk_zmtp *reader, jk_bytes rest)
{
    while (rest.size > 0) {
        const unsigned char *data = rest.data;
        size_t name = data[0];
        if (rest.size < 1 + name + 4) return false;
        const unsigned char *at = data + 1 + name;
        uint64_t value = (uint64_t)at[0] << 24 | (uint64_t)at[1] << 16 | (uint64_t)at[2] << 8 | at[3];
        if (rest.size - (1 + name + 4) < value) return false;
        property_keep(reader, data + 1, name, (jk_bytes){at + 4, (size_t)value});
        rest.data = at + 4 + value;
        rest.size -= 1 + name + 4 + value;
    }
    return reader->kind[0] != '\0';
}

/* WANTS: a command that needs no answer. */
static jk_zmtp_event command_read(jk_zmtp *reader, jk_bytes *body)
{
    if (!reader->ready) {
        if (!command_is(body, "READY") || !ready_read(reader, *body)) return JK_ZMTP_BROKEN;
        reader->ready = true;
        return JK_ZMTP_READY;
    }
    if (command_is(body, "SUBSCRIBE")) return JK_ZMTP_SUBSCRIBE;
    if (command_is(body, "CANCEL")) return JK_ZMTP_CANCEL;
    if (!command_is(body, "PING")) return JK_ZMTP_WANTS;
    if (body->size < 2) return JK_ZMTP_BROKEN;
    body->data = (const char *)body->data + 2; /* for how long it is good: nobody waits for it */
    body->size -= 2;
    return JK_ZMTP_PING;
}

jk_zmtp_event jk_zmtp_read(jk_zmtp *reader, jk_bytes *rest, jk_bytes *body)
{
    if (!reader->greeted) {
        if (!head_gather(reader, rest, JK_GREETING_SIZE)) {
            return reader->have > 0 && reader->head[0] != 0xff ? JK_ZMTP_BROKEN : JK_ZMTP_WANTS;
        }
        if (!greeting_good(reader->head)) return JK_ZMTP_BROKEN;
        reader->greeted = true;
        reader->have = 0;
    }
    for (;;) {
        jk_zmtp_event event = JK_ZMTP_FRAME;
        if (!reader->in_body) {
            reader->frame.size = 0; /* of the frame before */
            event = head_read(reader, rest);
        }
        if (event == JK_ZMTP_FRAME) event = body_read(reader, rest, body);
        if (event != JK_ZMTP_FRAME) return event;
        if (!reader->command) return reader->ready ? JK_ZMTP_FRAME : JK_ZMTP_BROKEN;
        event = command_read(reader, body);
        if (event != JK_ZMTP_WANTS) return event;
    }
}

bool jk_zmtp_keep(jk_zmtp *reader, jk_bytes body, jk_buffer *kept)
{
    if (body.size == 0 || body.data != reader->frame.data) return false;
    *kept = reader->frame;
    memset(&reader->frame, 0, sizeof reader->frame);
    return true;
}

void jk_zmtp_clear(jk_zmtp *reader)
{
    jk_buffer_clear(&reader->frame);
}

/* --- Writing ----------------------------------------------------------------------------------------------
 */

size_t jk_zmtp_head(char head[JK_FRAME_HEAD], size_t size, bool more)
{
    char flags = more ? FLAG_MORE : 0;
    if (size <= UINT8_MAX) {
        head[0] = flags;
        head[1] = (char)size;
        return 2;
    }
    head[0] = (char)(flags | FLAG_LONG);
    for (int i = 0; i < 8; i++) head[1 + i] = (char)((uint64_t)size >> (56 - 8 * i));
    return JK_FRAME_HEAD;
}

/* Commands of ours are short. */
static void command_write(jk_buffer *out, const char *name, const void *more, size_t size)
{
    size_t length = strlen(name);
    const char head[3] = {FLAG_COMMAND, (char)(1 + length + size), (char)length};
    jk_buffer_append(out, head, sizeof head);
    jk_buffer_append(out, name, length);
    jk_buffer_append(out, more, size);
}

void jk_zmtp_greet(jk_buffer *out, const char *kind)
{
    static const char greeting[JK_GREETING_SIZE] = {
        [0] = (char)0xff, [9] = 0x7f, [MAJOR_AT] = 3, [MECHANISM_AT] = 'N', 'U', 'L', 'L'};
    jk_buffer_append(out, greeting, sizeof greeting);
    char property[64] = "\x0bSocket-Type\0\0\0";
    size_t length = strlen(kind);
    property[15] = (char)length;
    for (size_t i = 0; i < length; i++) property[16 + i] = kind[i];
    command_write(out, "READY", property, 16 + length);
}

void jk_zmtp_pong(jk_buffer *out, jk_bytes context)
{
    /* The protocol gives a context 16 bytes at most. */
    command_write(out, "PONG", context.data, context.size < 16 ? context.size : 16);
}

void jk_zmtp_rename(jk_zmtp *reader, uint64_t number)
{
    reader->identity[0] = 0;
    memcpy(reader->identity + 1, &number, sizeof number);
    reader->identity_size = 1 + sizeof number;
}
