/* drupe._engine._view(): what the devices did, for magics. The pictures themselves are made in C. */
#include "drupe/view.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/notebook/notebook_room.h"
#include <stdlib.h>
#include <string.h>

typedef struct drupe_py_view {
    PyObject_HEAD drupe_view *view;
} drupe_py_view;

static void view_dealloc(PyObject *self)
{
    drupe_view_release(((drupe_py_view *)self)->view);
    drupe_py_free(self, DRUPE_PY_TYPE_View);
}

/* --- Frames -------------------------------------------------------------------------------------------- */

typedef drupe_status (*frame_fn)(const drupe_view *view, drupe_frame_kind kind,
                                 const drupe_frame_style *style, char **text, size_t *size);

static const char *const kinds[] = {[DRUPE_FRAME_EVENTS] = "events",
                                    [DRUPE_FRAME_TABLE] = "table",
                                    [DRUPE_FRAME_MEMORY] = "memory",
                                    [DRUPE_FRAME_DASHBOARD] = "dashboard",
                                    [DRUPE_FRAME_FOOTER] = "footer"};

const char *drupe_py_frame_name(drupe_frame_kind kind)
{
    return kinds[kind];
}

int drupe_py_frame_kind(PyObject *object, void *kind)
{
    for (size_t i = 0; PyUnicode_Check(object) && i < sizeof kinds / sizeof *kinds; i++) {
        *(drupe_frame_kind *)kind = (drupe_frame_kind)i;
        if (PyUnicode_CompareWithASCIIString(object, kinds[i]) == 0) return 1;
    }
    PyErr_Format(PyExc_ValueError,
                 "there is no frame %R: take 'events', 'table', 'memory', 'dashboard' or 'footer'", object);
    return 0;
}

/* Takes `text`. */
static PyObject *str_of(PyObject *self, drupe_status status, char *text, size_t size)
{
    if (status != DRUPE_OK) return drupe_py_raise(drupe_py_state_of(self), NULL);
    PyObject *result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "replace");
    free(text);
    return result;
}

static PyObject *frame(PyObject *self, PyObject *args, PyObject *kwargs, frame_fn make)
{
    static char *names[] = {"kind", "columns", "cell", "device", NULL};
    const char *device = NULL;
    unsigned int columns = 80, cell = 0;
    drupe_frame_kind kind;
    char *text = NULL;
    size_t size = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|IIz:frame", names, drupe_py_frame_kind, &kind,
                                     &columns, &cell, &device))
        return NULL;
    drupe_frame_style style = {.columns = columns, .cell = cell, .device = device};
    drupe_status status = make(((drupe_py_view *)self)->view, kind, &style, &text, &size);
    return str_of(self, status, text, size);
}

static PyObject *view_text(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return frame(self, args, kwargs, drupe_frame_text);
}

static PyObject *view_html(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return frame(self, args, kwargs, drupe_frame_html);
}

static PyObject *view_json(PyObject *self, PyObject *ignored)
{
    char *text = NULL;
    size_t size = 0;
    (void)ignored;
    drupe_status status = drupe_frame_json(((drupe_py_view *)self)->view, &text, &size);
    return str_of(self, status, text, size);
}

static PyMethodDef view_methods[] = {
    {"text", DRUPE_PY_KEYWORDS(view_text),
     PyDoc_STR("text($self, kind, columns=80, cell=0, device=None)\n--\n\nA frame (\"events\", \"table\", "
               "\"memory\", "
               "\"dashboard\" or \"footer\") as plain text.")},
    {"html", DRUPE_PY_KEYWORDS(view_html),
     PyDoc_STR("html($self, kind, columns=80, cell=0, device=None)\n--\n\nThe same as HTML.")},
    {"json", view_json, METH_NOARGS, PyDoc_STR("json($self)\n--\n\nAs application/vnd.drupe.trace+json.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot view_slots[] = {
    {Py_tp_doc, "What the devices did: a copy that never changes. Made by _engine._view()."},
    {Py_tp_dealloc, DRUPE_PY_FUNCTION(view_dealloc)},
    {Py_tp_methods, view_methods},
    {0, NULL},
};

DRUPE_PY_SPEC(View, "drupe._engine.View", drupe_py_view, Py_TPFLAGS_DISALLOW_INSTANTIATION, view_slots);

/* --- Functions of the module --------------------------------------------------------------------------- */

static PyObject *module_view(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"first_cell", "last_cell", "since_ns", "spans", "after", NULL};
    drupe_py_state *state = drupe_py_state_of_module(module);
    unsigned int first = 0, last = 0;
    unsigned long long since = 0, after = 0;
    Py_ssize_t spans = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|IIKnK:_view", names, &first, &last, &since, &spans,
                                     &after))
        return NULL;
    if (spans < 0) {
        PyErr_SetString(PyExc_ValueError, "spans must not be negative");
        return NULL;
    }
    drupe_view_wish wish = {
        .first_cell = first, .last_cell = last, .since_ns = since, .spans = (size_t)spans};
    wish.after = after;
    drupe_view *view = NULL;
    PyThreadState *thread = PyEval_SaveThread();
    drupe_status status = drupe_view_take(&wish, &view);
    PyEval_RestoreThread(thread);
    if (status != DRUPE_OK) return drupe_py_raise(state, NULL);
    PyObject *self = drupe_py_new(state, DRUPE_PY_TYPE_View);
    if (!self)
        drupe_view_release(view);
    else
        ((drupe_py_view *)self)->view = view;
    return self;
}

static PyObject *module_view_start(PyObject *module, PyObject *ignored)
{
    (void)ignored;
    if (drupe_view_start() == DRUPE_OK) Py_RETURN_NONE;
    return drupe_py_raise(drupe_py_state_of_module(module), NULL);
}

static PyObject *module_view_stop(PyObject *module, PyObject *ignored)
{
    (void)module;
    (void)ignored;
    PyThreadState *thread = PyEval_SaveThread();
    drupe_view_stop();
    PyEval_RestoreThread(thread);
    Py_RETURN_NONE;
}

static PyObject *module_view_works(PyObject *module, PyObject *ignored)
{
    (void)module;
    (void)ignored;
    return PyBool_FromLong(drupe_view_works());
}

static PyObject *module_view_colour(PyObject *module, PyObject *arg)
{
    (void)module;
    unsigned long cell = PyLong_AsUnsignedLong(arg);
    if (cell == (unsigned long)-1 && PyErr_Occurred()) return NULL;
    return PyUnicode_FromFormat("#%06x", (unsigned)drupe_view_colour((uint32_t)cell));
}

PyMethodDef drupe_py_view_functions[] = {
    {"_view", DRUPE_PY_KEYWORDS(module_view),
     PyDoc_STR("_view(first_cell=0, last_cell=0, since_ns=0, spans=0, after=0)\n--\n\n"
               "What the devices did, see drupe/view.h: of these cells (0: all), since this\n"
               "time, with at most so many spans, changed after that serial. UnsupportedError\n"
               "without a recorder.")},
    {"_view_start", module_view_start, METH_NOARGS,
     PyDoc_STR("_view_start()\n--\n\nStart to record what the devices do; in the kernel that is on.")},
    {"_view_stop", module_view_stop, METH_NOARGS,
     PyDoc_STR("_view_stop()\n--\n\nStop it and forget what was recorded.")},
    {"_view_works", module_view_works, METH_NOARGS,
     PyDoc_STR("_view_works()\n--\n\nWhether work of any device goes on, or was over a moment ago.")},
    {"_view_colour", module_view_colour, METH_O,
     PyDoc_STR("_view_colour(cell)\n--\n\nThe colour of a cell, as \"#rrggbb\".")},
    {NULL, NULL, 0, NULL},
};
