/* A growing string; failure is sticky so that callers check once. */
#include "base/base.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRINTF_ROOM 64u /* bytes: most of what is printed takes fewer, and so is formatted once */

/* Room for `extra` more bytes and the NUL. */
static bool text_reserve(drupe_text *text, size_t extra)
{
    if (text->failed) return false;
    bool fits = extra < SIZE_MAX / 2 - text->length;
    size_t needed = text->length + extra + 1;
    if (fits && needed <= text->capacity) return true;
    size_t capacity = text->capacity ? text->capacity : 64;
    while (fits && capacity < needed) capacity *= 2;
    char *data = fits ? realloc(text->data, capacity) : NULL;
    text->failed = !data;
    if (!data) return false;
    text->data = data;
    text->capacity = capacity;
    return true;
}

void drupe_text_append(drupe_text *text, const char *bytes, size_t size)
{
    if (!text_reserve(text, size)) return;
    if (size) memcpy(text->data + text->length, bytes, size);
    text->length += size;
    text->data[text->length] = '\0';
}

void drupe_text_printf(drupe_text *text, const char *format, ...)
{
    va_list args;
    if (!text_reserve(text, PRINTF_ROOM)) return;
    size_t room = text->capacity - text->length;
    va_start(args, format);
    int length = vsnprintf(text->data + text->length, room, format, args);
    va_end(args);
    if (length < 0) {
        text->data[text->length] = '\0';
        text->failed = true;
        return;
    }
    if ((size_t)length >= room) {
        text->data[text->length] = '\0';
        if (!text_reserve(text, (size_t)length)) return;
        va_start(args, format);
        vsnprintf(text->data + text->length, (size_t)length + 1, format, args);
        va_end(args);
    }
    text->length += (size_t)length;
}

const char *drupe_text_get(const drupe_text *text)
{
    return text->data ? text->data : "";
}

drupe_status drupe_text_check(const drupe_text *text)
{
    if (!text->failed) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a text of more than %zu bytes.", text->length);
}

char *drupe_text_take(drupe_text *text)
{
    char *data = text->data;
    if (text->failed || text->length == 0) {
        free(data);
        data = NULL;
    }
    *text = (drupe_text){0};
    return data;
}

void drupe_text_clear(drupe_text *text)
{
    free(text->data);
    *text = (drupe_text){0};
}
