/* The `error` message that shows a failure in a cell that does not run any more.
 *
 * It looks as if the cell had failed at the line that submitted the work. All of it is made in C from what
 * was noted before: the thread that sends it never takes the GIL. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/notebook/notebook_room.h"
#include <stdlib.h>

#define WIDTH 75 /* of IPython's tracebacks */
#define LATE  "Failed after its submission"

typedef struct marks {
    const char *red, *end;
} marks;

static void add_header(drupe_py_strbuf *to, const char *name, const marks *colours)
{
    static const char dashes[] =
        "---------------------------------------------------------------------------";
    int room = WIDTH - (int)strlen(name);
    drupe_py_strbuf_add(to, "%s%s%s\n%s%s%s%*s", colours->red, dashes, colours->end, colours->red, name,
                        colours->end, room, LATE);
}

/* "kernel 'add', opencl:cpu:0, queue 2, submission 17" */
static void add_facts(drupe_py_strbuf *to, const drupe_failure *own)
{
    const char *operation = drupe_py_operation_name(own->kind);
    drupe_py_strbuf_add(to, "%c%s", operation[0] - 'a' + 'A', operation + 1);
    if (strcmp(operation, own->label) != 0) drupe_py_strbuf_add(to, " '%s'", own->label);
    if (own->device[0] != '\0') drupe_py_strbuf_add(to, ", %s", own->device);
    if (own->queue != 0) drupe_py_strbuf_add(to, ", queue %u", (unsigned)own->queue);
    if (own->submission != 0)
        drupe_py_strbuf_add(to, ", submission %llu", (unsigned long long)own->submission);
}

size_t drupe_py_failure_json(const drupe_failure *own, drupe_py_reader reader, char *json, size_t size)
{
    const char *name = drupe_py_error_name(own->error.status);
    marks colours =
        drupe_py_excerpts_colour() ? (struct marks){"\x1b[31m", "\x1b[39m"} : (struct marks){"", ""};
    char text[DRUPE_PY_FAILURE_TEXT], part[DRUPE_PY_EXCERPT_MOST];
    drupe_py_strbuf to = {json, size, 0}, piece = {part, sizeof part, 0};
    (void)drupe_py_failure_text(own, NULL, reader, NULL, text, sizeof text);
    drupe_py_strbuf_add(&to, "{\"ename\": \"%s\", \"evalue\": \"", name);
    drupe_py_strbuf_add_json(&to, text);
    drupe_py_strbuf_add(&to, "\", \"traceback\": [\"");
    add_header(&piece, name, &colours);
    drupe_py_strbuf_add_json(&to, part);
    piece.used = 0;
    if (drupe_py_excerpt_add(&piece, own->site)) {
        drupe_py_strbuf_add(&to, "\", \"");
        drupe_py_strbuf_add_json(&to, part);
    }
    piece.used = 0;
    drupe_py_strbuf_add(&piece, "%s%s%s: ", colours.red, name, colours.end);
    drupe_py_strbuf_add(&to, "\", \"");
    drupe_py_strbuf_add_json(&to, part);
    drupe_py_strbuf_add_json(&to, text);
    piece.used = 0;
    add_facts(&piece, own);
    drupe_py_strbuf_add(&to, "\", \"");
    drupe_py_strbuf_add_json(&to, part);
    drupe_py_strbuf_add(&to, "\"]}");
    return to.used;
}
