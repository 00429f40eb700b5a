/* Growing text and UTF-8. Stream text comes from descriptors that anything may write to, so it is made valid
 * here, on its way into JSON. */
#include "base/base.h"
#include "jkernel/wire/wire.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool buffer_reserve(jk_buffer *buffer, size_t more)
{
    if (buffer->failed) return false;
    bool fits = more <= SIZE_MAX / 2 - buffer->size;
    size_t wanted = buffer->size + more;
    if (fits && wanted <= buffer->capacity) return true;
    size_t capacity = buffer->capacity ? buffer->capacity : 128;
    while (fits && capacity < wanted) capacity *= 2;
    char *data = fits ? jk_memory_take(capacity) : NULL;
    buffer->failed = !data;
    if (!data) return false;
    if (buffer->size) memcpy(data, buffer->data, buffer->size);
    jk_memory_release(buffer->data);
    buffer->data = data;
    buffer->capacity = jk_memory_room(data);
    return true;
}

void jk_buffer_append(jk_buffer *buffer, const void *data, size_t size)
{
    if (size == 0 || !buffer_reserve(buffer, size)) return;
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
}

void jk_buffer_append_text(jk_buffer *buffer, const char *text)
{
    jk_buffer_append(buffer, text, strlen(text));
}

void jk_buffer_clear(jk_buffer *buffer)
{
    jk_memory_release(buffer->data);
    memset(buffer, 0, sizeof *buffer);
}

void jk_line_clean(char *line, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f) line[i] = '?';
    }
}

int jk_fail(const char *format, ...)
{
    char line[sizeof drupe_error_last()->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    jk_line_clean(line, strlen(line));
    drupe_error_set(DRUPE_E_INVALID, "%s", line);
    return -1;
}

static void append_escape(jk_buffer *buffer, unsigned char byte)
{
    static const char names[] = "\"\"\\\\\nn\rr\tt\bb\ff";
    for (size_t i = 0; i + 1 < sizeof names; i += 2) {
        if ((unsigned char)names[i] == byte) {
            char pair[2] = {'\\', names[i + 1]};
            jk_buffer_append(buffer, pair, 2);
            return;
        }
    }
    char code[8];
    snprintf(code, sizeof code, "\\u%04x", byte);
    jk_buffer_append(buffer, code, 6);
}

void jk_buffer_append_json(jk_buffer *buffer, const char *text, size_t size)
{
    size_t start = 0; /* of the run that can be copied as it is */
    jk_buffer_append(buffer, "\"", 1);
    for (size_t at = 0; at < size;) {
        unsigned char byte = (unsigned char)text[at];
        if (byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\') {
            at++;
            continue;
        }
        int length = byte < 0x80 ? 1 : drupe_utf8_next(text + at, size - at);
        if (byte >= 0x80 && length > 0) {
            at += (size_t)length;
            continue;
        }
        jk_buffer_append(buffer, text + start, at - start);
        if (byte < 0x80) {
            append_escape(buffer, byte);
        } else {
            jk_buffer_append(buffer, "\xef\xbf\xbd", 3);
        }
        start = ++at;
    }
    jk_buffer_append(buffer, text + start, size - start);
    jk_buffer_append(buffer, "\"", 1);
}
