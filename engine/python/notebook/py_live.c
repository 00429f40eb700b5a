/* Views that show themselves in the output of the cell that asked.
 *
 * What is drawn follows from the view alone, so "something changed" means that the drawing did. A look that
 * cannot differ from the last one is not even taken: nothing was submitted, nothing was going on, and as much
 * memory is in use as before. While nothing goes on, the drawing is the record that a saved notebook keeps.
 */
#include "drupe/memory.h"
#include "drupe/view.h"
#include "drupe_link.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/notebook/notebook_room.h"
#include "engine/python/waits/waits_room.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SPANS_LIVE   400u /* of the JSON always, of the drawing while it changes */
#define SPANS_RECORD 4000u
#define DEVICES_MOST 32
#define LISTED_MOST  64
#define HZ_MOST      2.0
#define HZ_LEAST     0.01
#define WINDOW_NS    UINT64_C(75000000000)

typedef struct live_view {
    char id[DRUPE_PY_DISPLAY_ID];
    void *cell; /* retained */
    drupe_frame_kind kind;
    drupe_view_wish wish;
    uint32_t columns;
    /* Of the last look: */
    uint64_t latest, used, hash;
    bool going, shown, live;
    bool heard;      /* somebody who listens to cells alone has got what is shown */
    unsigned wished; /* live_wishes when it was published */
} live_view;

static atomic_uint live_wishes; /* how often all that is shown was to be published anew */
/* Who asked, where that is not the cell that the display belongs to: its message is the one that clients
 * listen to at this moment. */
static _Thread_local void *asking;

static uint64_t memory_used(void)
{
    drupe_device_figures figures[DEVICES_MOST];
    uint64_t sum = 0;
    size_t count = drupe_device_figures_of(figures, DEVICES_MOST);
    for (size_t i = 0; i < count; i++) sum += figures[i].use.used + figures[i].use.reserved;
    return sum;
}

static uint64_t text_hash(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (; *text != '\0'; text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

/* Work that is not over. */
static bool view_waits(const drupe_view *view)
{
    for (size_t i = 0; i < view->ndevices; i++)
        if (view->devices[i].waiting > 0) return true;
    for (size_t i = 0; i < view->nlanes; i++)
        if (view->lanes[i].waiting > 0) return true;
    return false;
}

/* A device that was busy a moment ago: its share falls while nothing is submitted. */
static bool view_fades(const drupe_view *view)
{
    for (size_t i = 0; i < view->ndevices; i++)
        if (view->devices[i].busy > 0.0) return true;
    return false;
}

static bool view_runs(const drupe_view *view)
{
    for (size_t i = 0; i < view->ncells; i++)
        if (view->cells[i].running) return true;
    return false;
}

static bool draw(const live_view *display, const drupe_view *view, bool live, drupe_py_mime_bundle *mime)
{
    drupe_frame_style style = {.columns = display->columns, .live = live};
    drupe_view_wish brief = display->wish;
    drupe_view *small = NULL;
    size_t size = 0;
    /* A view of so many has some more that are not over. */
    bool many = view->nspans > 2 * SPANS_LIVE;
    brief.spans = SPANS_LIVE;
    mime->kind = drupe_py_frame_name(display->kind);
    mime->live = live;
    if (drupe_frame_text(view, display->kind, &style, &mime->text, &size) != DRUPE_OK ||
        drupe_frame_html(view, display->kind, &style, &mime->html, &size) != DRUPE_OK)
        return false;
    if (many && drupe_view_take(&brief, &small) != DRUPE_OK) return false;
    bool made = drupe_frame_json(small ? small : view, &mime->trace, &size) == DRUPE_OK;
    drupe_view_release(small);
    return made;
}

/* A dashboard that moves shows the last minute; a little more is taken than it shows. */
static uint64_t window_start(const live_view *display)
{
    struct timespec time = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    uint64_t now = (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
    return display->kind == DRUPE_FRAME_DASHBOARD && now > WINDOW_NS ? now - WINDOW_NS : 0;
}

/* A view, and whether more is to come: then few spans do. */
static drupe_view *take(live_view *display, drupe_live_reason reason, bool *live)
{
    drupe_view_wish wish = display->wish;
    drupe_view *view = NULL;
    bool timed = reason == DRUPE_LIVE_TIME;
    wish.spans = timed && display->live ? SPANS_LIVE : SPANS_RECORD;
    wish.since_ns = timed && display->live ? window_start(display) : 0;
    if (drupe_view_take(&wish, &view) != DRUPE_OK) return NULL;
    bool waits = view_waits(view), runs = drupe_py_cell_runs(display->cell) || view_runs(view);
    /* A cell that asks is about to end: what has been shown then is a record, until something new happens. */
    display->going = waits || (timed && view_fades(view));
    *live = reason != DRUPE_LIVE_LAST && (waits || (timed && runs));
    if (*live || wish.spans == SPANS_RECORD) return view;
    drupe_view_release(view);
    wish.spans = SPANS_RECORD;
    wish.since_ns = 0;
    return drupe_view_take(&wish, &view) == DRUPE_OK ? view : NULL;
}

/* What is drawn, or false. */
static bool look(live_view *display, drupe_live_reason reason, bool *live, drupe_py_mime_bundle *mime)
{
    drupe_view *view = take(display, reason, live);
    bool drawn = view && draw(display, view, *live, mime);
    drupe_view_release(view);
    return drawn;
}

/* Publish what is drawn, if it is not what is shown already. */
static drupe_live_answer publish(live_view *display, bool live, drupe_live_reason reason,
                                 const drupe_py_mime_bundle *mime)
{
    uint64_t hash = text_hash(mime->html);
    void *cell = asking ? asking : display->cell;
    unsigned wished = atomic_load(&live_wishes);
    bool same = display->shown && hash == display->hash && live == display->live && wished == display->wished;
    if (same && (reason == DRUPE_LIVE_TIME || display->heard)) return DRUPE_LIVE_SAME;
    if (drupe_py_mime_bundle_publish(cell, display->id, display->shown, mime) < 0) return DRUPE_LIVE_OVER;
    display->hash = hash;
    display->live = live;
    display->wished = wished;
    display->shown = true;
    display->heard = reason != DRUPE_LIVE_TIME || drupe_py_cell_runs(display->cell);
    return DRUPE_LIVE_SHOWN;
}

static drupe_live_answer view_show(void *user, drupe_live_reason reason)
{
    live_view *display = user;
    drupe_py_mime_bundle mime = {.text = NULL};
    uint64_t latest = drupe_trace_latest(), used = memory_used();
    bool live = false, runs = drupe_py_cell_runs(display->cell);
    drupe_live_answer answer = DRUPE_LIVE_SAME;
    bool quiet = latest == display->latest && used == display->used && !display->going;
    bool wished = display->wished != atomic_load(&live_wishes);
    bool due = reason == DRUPE_LIVE_TIME    ? wished || (display->live && !runs)
               : reason == DRUPE_LIVE_ASKED ? display->live || !display->heard
                                            : true;
    if (!display->shown || !quiet || due) {
        display->latest = latest;
        display->used = used;
        if (look(display, reason, &live, &mime)) answer = publish(display, live, reason, &mime);
        drupe_py_mime_bundle_clear(&mime);
    }
    /* What shows one cell is over with it. */
    bool over = display->wish.last_cell != 0 && display->shown && !runs && !display->going;
    return over ? DRUPE_LIVE_OVER : answer;
}

/* The line under a cell whose work goes on: it says so, and changes once, when the work is over. Until
 * somebody has heard of that who listens to cells that run alone, it stays open. */
static drupe_live_answer footer_show(void *user, drupe_live_reason reason)
{
    live_view *display = user;
    drupe_frame_style style = {.columns = display->columns, .cell = display->wish.last_cell};
    drupe_py_mime_bundle mime = {.text = NULL};
    drupe_view *view = NULL;
    size_t size = 0;
    if (display->shown && !display->live && reason == DRUPE_LIVE_TIME)
        return display->heard ? DRUPE_LIVE_OVER : DRUPE_LIVE_SAME;
    if (drupe_view_take(&display->wish, &view) != DRUPE_OK) return DRUPE_LIVE_OVER;
    bool waits = view->ncells > 0 && view->cells->waiting > 0;
    drupe_live_answer answer = DRUPE_LIVE_SAME;
    if ((!display->shown || !waits) &&
        drupe_frame_text(view, DRUPE_FRAME_FOOTER, &style, &mime.text, &size) == DRUPE_OK &&
        drupe_frame_html(view, DRUPE_FRAME_FOOTER, &style, &mime.html, &size) == DRUPE_OK)
        answer = publish(display, waits, reason, &mime);
    drupe_py_mime_bundle_clear(&mime);
    drupe_view_release(view);
    /* Also the first time: whoever opened it must learn that it is shown. */
    return waits || !display->shown || !display->heard || answer == DRUPE_LIVE_SHOWN ? answer
                                                                                     : DRUPE_LIVE_OVER;
}

static void view_release(void *user)
{
    live_view *display = user;
    drupe_py_link->cell_release(display->cell);
    free(display);
}

/* --- For Python ------------------------------------------------------------------------------------------
 */

/* Shows it for the first time. Without the GIL. */
static drupe_status live_start(live_view *display, double hz, uint64_t *id)
{
    drupe_live_source source = {display->kind == DRUPE_FRAME_FOOTER ? footer_show : view_show, view_release,
                                display};
    drupe_status status = drupe_view_start();
    if (status != DRUPE_OK || source.show(display, DRUPE_LIVE_TIME) != DRUPE_LIVE_SHOWN) {
        view_release(display);
        return status;
    }
    return drupe_live_open(&source, (uint64_t)(1e9 / hz), id);
}

static PyObject *module_live_open(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"kind", "hz", "first_cell", "last_cell", "columns", NULL};
    drupe_frame_kind kind = DRUPE_FRAME_DASHBOARD;
    double hz = HZ_MOST;
    unsigned first = 0, last = 0, columns = 0;
    uint64_t id = 0;
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|dIII:_live_open", names, drupe_py_frame_kind, &kind,
                                     &hz, &first, &last, &columns))
        return NULL;
    if (!drupe_py_enter(state)) return NULL;
    if (!(hz >= HZ_LEAST && hz <= HZ_MOST))
        return PyErr_Format(PyExc_ValueError, "hz must be from 0.01 to 2");
    void *cell = !drupe_py_link ? NULL : drupe_py_link->cell_retain();
    if (!cell) return PyLong_FromLong(0);
    live_view *display = calloc(1, sizeof *display);
    if (!display) {
        drupe_py_link->cell_release(cell);
        return PyErr_NoMemory();
    }
    *display =
        (live_view){.cell = cell, .kind = kind, .columns = columns, .wished = atomic_load(&live_wishes)};
    display->wish = (drupe_view_wish){.first_cell = first, .last_cell = last};
    drupe_py_display_id(display->id);
    PyThreadState *thread = PyEval_SaveThread();
    drupe_status status = live_start(display, hz, &id);
    PyEval_RestoreThread(thread);
    if (status != DRUPE_OK) return drupe_py_raise(state, NULL);
    return PyLong_FromUnsignedLongLong(id);
}

static PyObject *number_of(const void *id)
{
    return PyLong_FromUnsignedLongLong(*(const uint64_t *)id);
}

static PyObject *open_numbers(void)
{
    uint64_t ids[LISTED_MOST];
    size_t count = drupe_live_list(ids, LISTED_MOST);
    return drupe_py_list(ids, count < LISTED_MOST ? count : LISTED_MOST, sizeof *ids, number_of);
}

static void call_for(void *cell, uint64_t id, void (*call)(uint64_t id))
{
    asking = cell;
    PyThreadState *thread = PyEval_SaveThread();
    call(id);
    PyEval_RestoreThread(thread);
    asking = NULL;
}

drupe_live_answer drupe_py_live_last(bool *told, void *cell, void (*send)(void *user, void *cell), void *user)
{
    bool first = !*told;
    if (first) send(user, cell);
    *told = true;
    if (first && drupe_py_cell_runs(cell)) return DRUPE_LIVE_OVER;
    if (asking) send(user, asking);
    return asking ? DRUPE_LIVE_OVER : first ? DRUPE_LIVE_SHOWN : DRUPE_LIVE_SAME;
}

void drupe_py_live_wish(void)
{
    atomic_fetch_add(&live_wishes, 1);
}

void drupe_py_live_show(void *cell)
{
    call_for(cell, 0, drupe_live_show);
}

static PyObject *live_call(PyObject *args, const char *format, void (*call)(uint64_t id))
{
    unsigned long long id = 0;
    if (!PyArg_ParseTuple(args, format, &id)) return NULL;
    if (drupe_py_forked() || !drupe_py_link) return PyList_New(0);
    void *cell = drupe_py_link->cell_retain();
    call_for(cell, id, call);
    drupe_py_link->cell_release(cell);
    return open_numbers();
}

static PyObject *module_live_show(PyObject *module, PyObject *args)
{
    (void)module;
    return live_call(args, "|K:_live_show", drupe_live_show);
}

static PyObject *module_live_close(PyObject *module, PyObject *args)
{
    (void)module;
    return live_call(args, "|K:_live_close", drupe_live_close);
}

static PyObject *module_cell(PyObject *module, PyObject *ignored)
{
    (void)module;
    (void)ignored;
    uint32_t number = 0;
    void *cell = !drupe_py_link ? NULL : drupe_py_link->cell_retain();
    if (cell && DRUPE_LINK_HAS(drupe_py_link, cell_number)) number = drupe_py_link->cell_number(cell);
    if (cell) drupe_py_link->cell_release(cell);
    return PyLong_FromUnsignedLong(number);
}

static PyObject *module_quiet(PyObject *module, PyObject *on)
{
    (void)module;
    int truth = PyObject_IsTrue(on);
    return truth < 0 ? NULL : PyBool_FromLong(drupe_py_building_quiet(truth != 0));
}

PyMethodDef drupe_py_live_functions[] = {
    {"_live_open", DRUPE_PY_KEYWORDS(module_live_open),
     PyDoc_STR("_live_open(kind, hz=2.0, first_cell=0, last_cell=0, columns=80)\n--\n\n"
               "Show a view in the output of this cell and keep it up to date, without Python.\n"
               "Its number, or 0 where there is no cell.")},
    {"_live_show", module_live_show, METH_VARARGS,
     PyDoc_STR("_live_show(number=0)\n--\n\nBring a display, or all, up to date now. The numbers of those "
               "that are open.")},
    {"_live_close", module_live_close, METH_VARARGS,
     PyDoc_STR("_live_close(number=0)\n--\n\nLeave a display, or all, as it is now.")},
    {"_quiet", module_quiet, METH_O,
     PyDoc_STR("_quiet(on)\n--\n\n"
               "Whether this thread's builds and launches show no lines of their own, however\n"
               "long they take. What was before.")},
    {"_cell", module_cell, METH_NOARGS,
     PyDoc_STR("_cell()\n--\n\nThe number of the cell that the caller works for, 0: none.")},
    {NULL, NULL, 0, NULL},
};
