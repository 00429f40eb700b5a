/* The display of an event that is not over, which changes once: when it is.
 *
 * What it will look like is made in Python beforehand, but for what is not known yet, whose places are
 * marked. The display knows the event by the number of its submission and reads its record, so it keeps
 * nothing alive, and all of it goes on while Python is stuck. */
#include "base/base.h"
#include "drupe/trace.h"
#include "drupe_link.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/notebook/notebook_room.h"
#include "engine/python/waits/waits_room.h"
#include <stdatomic.h>
#include <stdlib.h>

#define PERIOD_NS  UINT64_C(200000000)
#define OPEN_MOST  32
#define MARK_TIMES '\x01'
#define MARK_ERROR '\x02'
#define WORDS_SIZE 640

enum { GOOD_TEXT, GOOD_HTML, BAD_TEXT, BAD_HTML, FORMS };

typedef struct event_display {
    uint64_t id;    /* of the submission */
    uint32_t queue; /* drupe_queue_number() */
    void *cell;     /* retained */
    char name[DRUPE_PY_DISPLAY_ID];
    char *forms[FORMS];
    bool published;
    drupe_trace_record record; /* once it is over */
} event_display;

static atomic_int open_count;

static void write_times(const drupe_trace_record *record, char *words, size_t size)
{
    bool exact = record->started_ns != 0 && record->ended_ns >= record->started_ns;
    words[0] = '\0';
    if (exact)
        PyOS_snprintf(words, size, "ran %s%s", drupe_unit_time(record->ended_ns - record->started_ns).text,
                      record->own_clock ? ", by the device's clock" : "");
    else if (record->seen_ns != 0)
        PyOS_snprintf(words, size, "finished within %s of its submission",
                      drupe_unit_time(record->seen_ns - record->submitted_ns).text);
}

/* The first line of what the log of failures has about a submission. */
static bool find_failure(uint64_t id, char *words, size_t size)
{
    drupe_failure_note *notes = calloc(DRUPE_FAILURE_NOTES, sizeof *notes);
    size_t count = !notes ? 0 : drupe_failures_read(0, notes, DRUPE_FAILURE_NOTES), i = 0;
    while (i < count && notes[i].failure.submission != id) i++;
    if (i < count) {
        PyOS_snprintf(words, size, "%s", notes[i].failure.error.text);
        words[strcspn(words, "\n")] = '\0';
        words[drupe_py_utf8_cut(words, size / 2)] = '\0';
    }
    free(notes);
    return i < count;
}

static void write_error(const drupe_trace_record *record, char *words, size_t size)
{
    if (find_failure(record->id, words, size)) return;
    PyOS_snprintf(words, size, "%s",
                  record->status == DRUPE_TRACE_CANCELLED ? "it was cancelled"
                  : record->status == DRUPE_TRACE_SKIPPED ? "it did not run: something before it failed"
                                                          : "it failed");
}

/* Of work whose record has been overwritten, the log of failures knows whether it failed. */
static drupe_trace_status gone_status(uint64_t id)
{
    char words[WORDS_SIZE];
    return find_failure(id, words, sizeof words) ? DRUPE_TRACE_FAILED : DRUPE_TRACE_PASSED;
}

static void add_plain(drupe_py_strbuf *to, const char *words, bool html)
{
    for (; *words != '\0'; words++) {
        const char *name = !html           ? NULL
                           : *words == '<' ? "&lt;"
                           : *words == '>' ? "&gt;"
                           : *words == '&' ? "&amp;"
                           : *words == '"' ? "&quot;"
                                           : NULL;
        if (name)
            drupe_py_strbuf_add(to, "%s", name);
        else
            drupe_py_strbuf_add(to, "%c", *words);
    }
}

/* The form with what is known now; NULL: no memory. */
static char *fill(const char *form, bool html, const char *times, const char *error)
{
    size_t size = strlen(form) + 12 * WORDS_SIZE;
    drupe_py_strbuf to = {malloc(size), size, 0};
    if (!to.text) return NULL;
    to.text[0] = '\0';
    while (*form != '\0') {
        static const char marks[] = {MARK_TIMES, MARK_ERROR, '\0'};
        size_t plain = strcspn(form, marks);
        drupe_py_strbuf_add(&to, "%.*s", (int)plain, form);
        form += plain;
        if (*form == '\0') break;
        add_plain(&to, *form == MARK_TIMES ? times : error, html);
        form++;
    }
    return to.text;
}

static void publish(void *user, void *cell)
{
    event_display *one = user;
    const drupe_trace_record *record = &one->record;
    char times[WORDS_SIZE], error[WORDS_SIZE] = "";
    bool bad = record->status != DRUPE_TRACE_COMPLETE && record->status != DRUPE_TRACE_PASSED;
    write_times(record, times, sizeof times);
    if (bad) write_error(record, error, sizeof error);
    drupe_py_mime_bundle mime = {.text = fill(one->forms[bad ? BAD_TEXT : GOOD_TEXT], false, times, error),
                                 .html = fill(one->forms[bad ? BAD_HTML : GOOD_HTML], true, times, error)};
    if (mime.text && mime.html) (void)drupe_py_mime_bundle_publish(cell, one->name, true, &mime);
    drupe_py_mime_bundle_clear(&mime);
}

static bool is_over(event_display *one)
{
    drupe_trace_record *record = &one->record;
    bool gone = false;
    drupe_trace_look();
    if (!drupe_trace_over(one->id, &gone) && (!gone || drupe_trace_oldest(one->queue) <= one->id))
        return false;
    if (drupe_trace_read(one->id - 1, record, 1) != 1 || record->id != one->id)
        *record = (drupe_trace_record){.id = one->id, .status = (uint8_t)gone_status(one->id)};
    return true;
}

static drupe_live_answer show(void *user, drupe_live_reason reason)
{
    event_display *one = user;
    (void)reason;
    if (!one->published && !is_over(one)) return DRUPE_LIVE_SAME;
    return drupe_py_live_last(&one->published, one->cell, publish, one);
}

static void release(void *user)
{
    event_display *one = user;
    for (size_t i = 0; i < FORMS; i++) free(one->forms[i]);
    drupe_py_link->cell_release(one->cell);
    free(one);
    atomic_fetch_sub(&open_count, 1);
}

/* See the table below. */
static PyObject *module_event_display(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned long long id = 0;
    const char *name = NULL, *forms[FORMS];
    uint64_t number = 0;
    drupe_trace_record record;
    if (!PyArg_ParseTuple(args, "Ks(ssss):_event_display", &id, &name, &forms[0], &forms[1], &forms[2],
                          &forms[3]))
        return NULL;
    if (id == 0 || !drupe_py_link || drupe_py_forked()) return PyLong_FromLong(0);
    if (drupe_trace_read(id - 1, &record, 1) != 1 || record.id != id) return PyLong_FromLong(0);
    void *cell = drupe_py_link->cell_retain();
    event_display *one = !cell ? NULL : calloc(1, sizeof *one);
    if (!one) {
        if (cell) drupe_py_link->cell_release(cell);
        return PyLong_FromLong(0);
    }
    bool room = atomic_fetch_add(&open_count, 1) < OPEN_MOST;
    one->id = id;
    one->queue = record.queue;
    one->cell = cell;
    PyOS_snprintf(one->name, sizeof one->name, "%s", name);
    for (size_t i = 0; i < FORMS; i++) room = (one->forms[i] = strdup(forms[i])) != NULL && room;
    if (!room) {
        release(one);
        return PyLong_FromLong(0);
    }
    drupe_live_source source = {show, release, one};
    if (drupe_live_open(&source, PERIOD_NS, &number) != DRUPE_OK) number = 0;
    return PyLong_FromUnsignedLongLong(number);
}

PyMethodDef drupe_py_event_display_functions[] = {
    {"_event_display", module_event_display, METH_VARARGS,
     PyDoc_STR(
         "_event_display(submission, display_id, (text, html, failed text, failed html))\n--\n\n"
         "Update a display of this cell once, without Python, when the submission is over. In the forms \\1 "
         "stands for when that was, \\2 for why it failed. The number for _live_show(), 0: that cannot be.")},
    {NULL, NULL, 0, NULL},
};
