#include "base/base.h"
#include "engine/python/errors/errors_room.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void drupe_py_strbuf_add(drupe_py_strbuf *to, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vsnprintf(to->text + to->used, to->size - to->used, format, list);
    va_end(list);
    if (length < 0) return;
    to->used += (size_t)length;
    if (to->used >= to->size) to->used = to->size - 1;
}

static void add_bytes(drupe_py_strbuf *to, const char *bytes, size_t count)
{
    size_t room = to->size - to->used - 1;
    if (count > room) count = room;
    memcpy(to->text + to->used, bytes, count);
    to->used += count;
    to->text[to->used] = '\0';
}

void drupe_py_strbuf_put(drupe_py_strbuf *to, const char *text)
{
    add_bytes(to, text, strlen(text));
}

void drupe_py_strbuf_add_json(drupe_py_strbuf *to, const char *text)
{
    while (*text != '\0') {
        const unsigned char byte = (unsigned char)*text;
        const int length = drupe_utf8_next(text, 4);
        if (length <= 0)
            add_bytes(to, "\\ufffd", 6);
        else if (byte == '"' || byte == '\\')
            drupe_py_strbuf_add(to, "\\%c", byte);
        else if (byte < 0x20 || byte == 0x7f)
            drupe_py_strbuf_add(to, "\\u%04x", byte);
        else
            add_bytes(to, text, (size_t)length);
        text += length > 0 ? length : 1;
    }
}

size_t drupe_py_utf8_cut(const char *text, size_t most)
{
    size_t length = strlen(text);
    if (length <= most) return length;
    while (most > 0 && ((unsigned char)text[most] & 0xc0) == 0x80) most--;
    return most;
}
