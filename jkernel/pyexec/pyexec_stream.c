/* Stream: the fast path under sys.stdout and sys.stderr. drupe.jupyter.streams wraps it into a file object.
 *
 * print() calls write() for every piece, so a write is one lookup in the context and one append to the
 * server's queue. */
#include "jkernel/pyexec/pyexec.h"

typedef struct stream_object {
    PyObject ob_base;
    jk_stream which;
} stream_object;

static void stream_send(stream_object *self, const char *text, size_t size)
{
    jk_parent_object *cell = jk_parent_object_current();
    jk_server *server = jk_kernel_enter();
    if (server) {
        jk_parent *parent = cell ? cell->parent : NULL;
        if (size < JK_GIL_RELEASE_SIZE && jk_server_has_room(server)) {
            jk_stream_write(server, parent, self->which, text, size);
        } else {
            Py_BEGIN_ALLOW_THREADS jk_stream_write(server, parent, self->which, text, size);
            Py_END_ALLOW_THREADS
        }
        jk_kernel_leave();
    }
    Py_XDECREF(cell);
}

static PyObject *stream_write(PyObject *object, PyObject *text)
{
    if (!PyUnicode_Check(text)) {
        return PyErr_Format(PyExc_TypeError, "write() argument must be str, not %s", Py_TYPE(text)->tp_name);
    }
    Py_ssize_t size = 0;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &size);
    PyObject *escaped = NULL;
    if (!utf8) { /* lone surrogates: shown as \udcxx */
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) return NULL;
        PyErr_Clear();
        escaped = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
        if (!escaped) return NULL;
        utf8 = PyBytes_AS_STRING(escaped);
        size = PyBytes_GET_SIZE(escaped);
    }
    if (size > 0) stream_send((stream_object *)object, utf8, (size_t)size);
    Py_XDECREF(escaped);
    return PyLong_FromSsize_t(PyUnicode_GET_LENGTH(text));
}

static PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    char *names[] = {"", NULL}; /* no keywords */
    int fd = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "i:Stream", names, &fd)) return NULL;
    if (fd != 1 && fd != 2) {
        PyErr_SetString(PyExc_ValueError, "a Stream stands for descriptor 1 or 2");
        return NULL;
    }
    PyObject *object = type->tp_alloc(type, 0);
    if (object) ((stream_object *)object)->which = fd == 1 ? JK_STDOUT : JK_STDERR;
    return object;
}

static void stream_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMethodDef stream_methods[] = {
    {"write", stream_write, METH_O, "write(text, /)\n--\n\nSend text to the cell that the caller works for."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot stream_slots[] = {
    {Py_tp_doc, "Stream(fd)\n--\n\nText on its way to the front-end: fd 1 is stdout, 2 is stderr."},
    {Py_tp_new, JK_SLOT(stream_new)},
    {Py_tp_dealloc, JK_SLOT(stream_dealloc)},
    {Py_tp_methods, stream_methods},
    {0, NULL},
};

PyType_Spec jk_stream_spec = {
    .name = "drupe._jkernel.Stream",
    .basicsize = sizeof(stream_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = stream_slots,
};
