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

/* The length of the UTF-8 sequence at `text`, or 0 when it is none. */
static size_t utf8_length(const unsigned char *text)
{
    size_t length = text[0] < 0x80 ? 1 : text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    if (text[0] > 0xf4) return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    bool surrogate = text[0] == 0xed && text[1] >= 0xa0;
    bool overlong = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    bool beyond = text[0] == 0xf4 && text[1] >= 0x90;
    return surrogate || overlong || beyond ? 0 : length;
}

void drupe_py_strbuf_add_json(drupe_py_strbuf *to, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0';) {
        size_t plain = 0;
        while (at[plain] >= 0x20 && at[plain] < 0x7f && at[plain] != '"' && at[plain] != '\\') plain++;
        if (plain > 0) {
            add_bytes(to, (const char *)at, plain);
            at += plain;
            continue;
        }
        size_t length = utf8_length(at);
        if (length == 0) {
            add_bytes(to, "\\ufffd", 6);
            at++;
            continue;
        }
        if (*at == '"' || *at == '\\')
            add_bytes(to, *at == '"' ? "\\\"" : "\\\\", 2);
        else if (*at < 0x20 || *at == 0x7f)
            drupe_py_strbuf_add(to, "\\u%04x", *at);
        else
            add_bytes(to, (const char *)at, length);
        at += length;
    }
}

size_t drupe_py_utf8_cut(const char *text, size_t most)
{
    size_t length = strlen(text);
    if (length <= most) return length;
    while (most > 0 && ((unsigned char)text[most] & 0xc0) == 0x80) most--;
    return most;
}
