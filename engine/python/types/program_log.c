/* Compiler messages for people.
 *
 * Compilers agree on ":line:column: " and on little else: some put a path before it (of a temporary file that
 * is gone by now), some the severity, some a number. The path is dropped, everything else is kept. */
#include "engine/python/types/types_room.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct text_span {
    const char *start;
    size_t size;
} text_span;

/* The next line of `rest`, without its end; false at the end of the text. */
static bool line_next(text_span *rest, text_span *line)
{
    if (rest->size == 0) return false;
    const char *end = memchr(rest->start, '\n', rest->size);
    size_t size = !end ? rest->size : (size_t)(end - rest->start);
    *line = (text_span){rest->start, size > 0 && rest->start[size - 1] == '\r' ? size - 1 : size};
    size_t step = !end ? size : size + 1;
    *rest = (text_span){rest->start + step, rest->size - step};
    return true;
}

static bool line_at(text_span text, unsigned long number, text_span *line)
{
    for (unsigned long i = 0; i < number; i++)
        if (!line_next(&text, line)) return false;
    return number > 0;
}

static size_t digits(const char *text, size_t size)
{
    size_t count = 0;
    while (count < size && count < 9 && text[count] >= '0' && text[count] <= '9') count++;
    return count;
}

/* Where a message says its position. */
typedef struct log_position {
    size_t path;  /* where the path begins */
    size_t after; /* where the message goes on */
    unsigned long line, column;
} log_position;

static bool position_find(text_span line, log_position *position)
{
    for (size_t i = 0; i < line.size; i++) {
        if (line.start[i] != ':') continue;
        size_t first = digits(line.start + i + 1, line.size - i - 1), j = i + 1 + first;
        if (first == 0 || j >= line.size || line.start[j] != ':') continue;
        size_t second = digits(line.start + j + 1, line.size - j - 1), k = j + 1 + second;
        if (second == 0 || k >= line.size || line.start[k] != ':') continue;
        size_t path = i;
        while (path > 0 && line.start[path - 1] != ' ') path--;
        *position = (log_position){path, k + 1, strtoul(line.start + i + 1, NULL, 10),
                                   strtoul(line.start + j + 1, NULL, 10)};
        while (position->after < line.size && line.start[position->after] == ' ') position->after++;
        return true;
    }
    return false;
}

static bool contains(text_span text, text_span part)
{
    return part.size > 0 && memmem(text.start, text.size, part.start, part.size);
}

static void span_write(FILE *out, text_span span)
{
    (void)fwrite(span.start, 1, span.size, out);
}

/* The line of the source and a mark under the column; tabs are copied, so that the mark stays in place. */
static void source_write(FILE *out, text_span source_line, unsigned long column)
{
    (void)fputs("    ", out);
    span_write(out, source_line);
    (void)fputs("\n    ", out);
    for (unsigned long i = 0; i + 1 < column && i < source_line.size; i++)
        (void)fputc(source_line.start[i] == '\t' ? '\t' : ' ', out);
    (void)fputs("^\n", out);
}

static void message_write(FILE *out, text_span line, text_span rest, text_span source)
{
    log_position at;
    text_span source_line, following = {NULL, 0};
    if (!position_find(line, &at) || !line_at(source, at.line, &source_line)) {
        span_write(out, line);
        (void)fputc('\n', out);
        return;
    }
    (void)fprintf(out, "line %lu, column %lu: ", at.line, at.column);
    span_write(out, (text_span){line.start, at.path});
    span_write(out, (text_span){line.start + at.after, line.size - at.after});
    (void)fputc('\n', out);
    /* Some compilers show the line themselves. */
    if (!(line_next(&rest, &following) && contains(following, source_line)))
        source_write(out, source_line, at.column);
}

PyObject *drupe_py_log_explain(const char *log, const char *source, size_t source_size)
{
    char *text = NULL;
    size_t size = 0;
    if (!log) return PyUnicode_FromString("");
    FILE *out = open_memstream(&text, &size);
    if (!out) return PyErr_NoMemory();
    text_span rest = {log, strlen(log)}, line;
    while (line_next(&rest, &line)) message_write(out, line, rest, (text_span){source, source_size});
    bool good = fclose(out) == 0 && text;
    PyObject *result = good ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "replace") : PyErr_NoMemory();
    free(text);
    return result;
}
