/* Server: the kernel's sockets as Python sees them. One per process; close() is final. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jkernel/pyexec/pyexec.h"

/* The wait for input comes back to Python this often, where interrupts are looked for. */
#define INPUT_SLICE_MS 50
#define FLUSH_LIMIT_MS 1000

static jk_server *server_enter(void)
{
    jk_server *server = jk_kernel_enter();
    if (!server) PyErr_SetString(PyExc_RuntimeError, "the kernel is closed");
    return server;
}

static PyObject *server_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    char *names[] = {"", "", NULL}; /* no keywords */
    const char *info = NULL;
    PyObject *path = NULL;
    char problem[512] = "";
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&s:Server", names, PyUnicode_FSConverter, &path, &info))
        return NULL;
    PyObject *object = type->tp_alloc(type, 0);
    if (!object) {
        Py_DECREF(path);
        return NULL;
    }
    jk_sigint_ignore();
    int failed = jk_executor_open(PyBytes_AS_STRING(path), info, problem, sizeof problem);
    Py_DECREF(path);
    if (failed) {
        Py_DECREF(object);
        PyErr_SetString(PyExc_RuntimeError, problem);
        return NULL;
    }
    jk_server *server = jk_kernel_enter();
    if (server) {
        jk_crash_install(server);
        jk_holding_install();
        jk_kernel_leave();
    }
    return object;
}

static void server_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *server_close(PyObject *object, PyObject *unused)
{
    (void)object;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS jk_kernel_close();
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyObject *server_capture(PyObject *object, PyObject *unused)
{
    (void)object;
    (void)unused;
    jk_server *server = server_enter();
    if (!server) return NULL;
    int failed = jk_server_capture_stdio(server);
    jk_kernel_leave();
    return failed ? PyErr_SetFromErrno(PyExc_OSError) : Py_NewRef(Py_None);
}

static PyObject *server_started(PyObject *object, PyObject *unused)
{
    (void)object;
    (void)unused;
    jk_server *server = server_enter();
    if (!server) return NULL;
    jk_server_started(server);
    jk_kernel_leave();
    Py_RETURN_NONE;
}

static PyObject *server_fileno(PyObject *object, PyObject *unused)
{
    (void)object;
    (void)unused;
    jk_server *server = server_enter();
    if (!server) return NULL;
    int fd = jk_server_request_fd(server);
    jk_kernel_leave();
    return PyLong_FromLong(fd);
}

static PyObject *server_dispatch(PyObject *object, PyObject *unused)
{
    (void)unused;
    jk_state *state = PyType_GetModuleState(Py_TYPE(object));
    jk_server *server = state ? server_enter() : NULL;
    if (!server) return NULL;
    jk_request *request = jk_server_next(server);
    jk_kernel_leave();
    return request ? jk_request_object_new(state, request) : Py_NewRef(Py_None);
}

static PyObject *server_flush(PyObject *object, PyObject *unused)
{
    (void)object;
    (void)unused;
    jk_server *server = jk_kernel_enter();
    if (!server) Py_RETURN_FALSE;
    int failed;
    Py_BEGIN_ALLOW_THREADS failed = jk_server_flush(server, FLUSH_LIMIT_MS);
    Py_END_ALLOW_THREADS jk_kernel_leave();
    return PyBool_FromLong(!failed);
}

static PyObject *server_interrupt_taken(PyObject *object, PyObject *unused)
{
    (void)object;
    (void)unused;
    jk_server *server = jk_kernel_enter();
    if (server) {
        jk_server_interrupt_taken(server);
        jk_kernel_leave();
    }
    Py_RETURN_NONE;
}

static PyObject *server_leave(PyObject *object, PyObject *told)
{
    (void)object;
    int client_told = PyObject_IsTrue(told);
    if (client_told < 0) return NULL;
    jk_server *server = jk_kernel_enter();
    if (server) {
        Py_BEGIN_ALLOW_THREADS jk_server_leave(server, client_told);
        Py_END_ALLOW_THREADS jk_kernel_leave();
    }
    Py_RETURN_NONE;
}

static PyObject *server_set_execution_count(PyObject *object, PyObject *value)
{
    (void)object;
    long count = PyLong_AsLong(value);
    if (count == -1 && PyErr_Occurred()) return NULL;
    jk_server *server = jk_kernel_enter();
    if (server) {
        jk_server_set_execution_count(server, count);
        jk_kernel_leave();
    }
    Py_RETURN_NONE;
}

/* --- Publishing --------------------------------------------------------------------------------------------
 */

typedef struct buffer_list {
    Py_ssize_t count; /* filled so far */
    Py_buffer *views;
    jk_bytes *bytes;
} buffer_list;

static void buffers_release(buffer_list *list)
{
    for (Py_ssize_t i = 0; i < list->count; i++) PyBuffer_Release(&list->views[i]);
    PyMem_Free(list->views);
    PyMem_Free(list->bytes);
    *list = (buffer_list){0};
}

static int buffers_acquire(PyObject *source, buffer_list *list)
{
    PyObject *tuple = PySequence_Tuple(source);
    if (!tuple) return -1;
    Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    list->views = PyMem_Calloc((size_t)count + 1, sizeof *list->views);
    list->bytes = PyMem_Calloc((size_t)count + 1, sizeof *list->bytes);
    int failed = !list->views || !list->bytes;
    if (failed) PyErr_NoMemory();
    for (Py_ssize_t i = 0; !failed && i < count; i++) {
        failed = PyObject_GetBuffer(PyTuple_GET_ITEM(tuple, i), &list->views[i], PyBUF_SIMPLE) < 0;
        if (failed) break;
        list->bytes[i] = (jk_bytes){list->views[i].buf, (size_t)list->views[i].len};
        list->count = i + 1;
    }
    Py_DECREF(tuple); /* the views keep the exporters alive */
    if (failed) buffers_release(list);
    return failed ? -1 : 0;
}

static PyObject *server_publish(PyObject *object, PyObject *args)
{
    jk_state *state = PyType_GetModuleState(Py_TYPE(object));
    const char *type = NULL, *content = NULL, *metadata = NULL;
    Py_ssize_t content_size = 0, metadata_size = 0;
    PyObject *parent = NULL, *buffers = NULL;
    if (!state) return NULL;
    if (!PyArg_ParseTuple(args, "Osy#|y#O:publish", &parent, &type, &content, &content_size, &metadata,
                          &metadata_size, &buffers)) {
        return NULL;
    }
    if (parent != Py_None && !Py_IS_TYPE(parent, state->parent_type)) {
        PyErr_SetString(PyExc_TypeError, "publish() needs a Parent or None first");
        return NULL;
    }
    jk_parent_object *cell = parent == Py_None ? NULL : (jk_parent_object *)parent;
    buffer_list list = {0};
    if (buffers && buffers != Py_None && buffers_acquire(buffers, &list) < 0) return NULL;
    jk_server *server = jk_kernel_enter();
    int failed = 1;
    if (server) {
        jk_parent *to = cell ? cell->parent : NULL;
        jk_bytes body = {content, (size_t)content_size}, extra = {metadata, (size_t)metadata_size};
        if (body.size < JK_GIL_RELEASE_SIZE && list.count == 0 && jk_server_has_room(server)) {
            failed = jk_publish(server, to, type, body, extra, NULL, 0);
        } else {
            Py_BEGIN_ALLOW_THREADS failed =
                jk_publish(server, to, type, body, extra, list.bytes, (size_t)list.count);
            Py_END_ALLOW_THREADS
        }
        jk_kernel_leave();
    }
    buffers_release(&list);
    return PyBool_FromLong(!failed);
}

/* --- Input -------------------------------------------------------------------------------------------------
 */

static PyObject *server_input_ask(PyObject *object, PyObject *args)
{
    jk_state *state = PyType_GetModuleState(Py_TYPE(object));
    PyObject *request_object = NULL;
    const char *content = NULL;
    Py_ssize_t size = 0;
    if (!state) return NULL;
    if (!PyArg_ParseTuple(args, "O!y#:input_ask", state->request_type, &request_object, &content, &size))
        return NULL;
    jk_request *request = jk_request_object_get(request_object);
    jk_server *server = request ? server_enter() : NULL;
    if (!server) return NULL;
    int failed = jk_input_ask(server, request, (jk_bytes){content, (size_t)size});
    jk_kernel_leave();
    if (!failed) Py_RETURN_NONE;
    PyErr_SetString(PyExc_EOFError, "the front-end cannot be asked for input");
    return NULL;
}

static PyObject *server_input_wait(PyObject *object, PyObject *unused)
{
    (void)object;
    (void)unused;
    jk_server *server = server_enter();
    if (!server) return NULL;
    char *text = NULL;
    size_t size = 0;
    int status;
    Py_BEGIN_ALLOW_THREADS status = jk_input_wait(server, INPUT_SLICE_MS, &text, &size);
    Py_END_ALLOW_THREADS jk_kernel_leave();
    if (status == 0) {
        PyObject *content = PyBytes_FromStringAndSize(text, (Py_ssize_t)size);
        free(text);
        return content;
    }
    if (PyErr_CheckSignals() < 0) return NULL; /* a KeyboardInterrupt comes before the end of the kernel */
    if (status == JK_INPUT_CLOSED || jk_kernel_shutdown_state()) {
        PyErr_SetString(PyExc_EOFError, "the kernel is shutting down");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *server_shutdown(PyObject *object, void *closure)
{
    (void)object;
    (void)closure;
    return PyLong_FromLong(jk_kernel_shutdown_state());
}

static PyObject *server_subshells_made(PyObject *object, void *closure)
{
    (void)object;
    (void)closure;
    jk_server *server = jk_kernel_enter();
    unsigned made = server ? jk_subshells_made(server) : 0;
    if (server) jk_kernel_leave();
    return PyLong_FromUnsignedLong(made);
}

/* The closure is one of the functions below. */
typedef const char *(*text_getter)(const jk_server *server);
static const text_getter text_getters[] = {jk_server_session, jk_server_connection_file};

static PyObject *server_text(PyObject *object, void *closure)
{
    (void)object;
    jk_server *server = jk_kernel_enter();
    const char *text = server ? (*(const text_getter *)closure)(server) : NULL;
    PyObject *result = PyUnicode_DecodeFSDefault(text ? text : "");
    if (server) jk_kernel_leave();
    return result;
}

static PyObject *server_kernel_info(PyObject *object, void *closure)
{
    (void)object;
    (void)closure;
    return PyUnicode_FromString(jk_executor_info());
}

static PyMethodDef server_methods[] = {
    {"capture", server_capture, METH_NOARGS, "Redirect descriptors 1 and 2 into the running cell."},
    {"started", server_started, METH_NOARGS, "Publish the one status `starting`."},
    {"fileno", server_fileno, METH_NOARGS, "A descriptor that is readable while requests wait."},
    {"dispatch", server_dispatch, METH_NOARGS, "The next Request, or None."},
    {"flush", server_flush, METH_NOARGS, "Wait until what was published is on its way."},
    {"interrupt_taken", server_interrupt_taken, METH_NOARGS,
     "Python reports what the interrupts so far did not end."},
    {"leave", server_leave, METH_O,
     "Shut down, as when a client asks for it; when a reply has told the client to ask, wait for that."},
    {"set_execution_count", server_set_execution_count, METH_O, "The counter that aborted replies carry."},
    {"publish", server_publish, METH_VARARGS,
     "publish(parent, type, content, metadata=b'', buffers=None)\n--\n\nSend a message on iopub."},
    {"input_ask", server_input_ask, METH_VARARGS,
     "input_ask(request, content)\n--\n\nAsk the client. One question at a time."},
    {"input_wait", server_input_wait, METH_NOARGS,
     "The content of the client's answer, or None when none came for a moment."},
    {"close", server_close, METH_NOARGS, "Flush, stop the threads, restore the descriptors."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef server_getset[] = {
    {"session", server_text, NULL, "The session id in every header of this process.",
     (void *)&text_getters[0]},
    {"connection_file", server_text, NULL, "Its path.", (void *)&text_getters[1]},
    {"kernel_info", server_kernel_info, NULL, "What a kernel_info_reply says about the language, as JSON.",
     NULL},
    {"subshells_made", server_subshells_made, NULL, "How many subshells there have been.", NULL},
    {"shutdown", server_shutdown, NULL, "0, or 1 when the kernel must end, 2 for a restart.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot server_slots[] = {
    {Py_tp_doc, "Server(connection_file, kernel_info, /)\n--\n\nBind the sockets and answer from C. "
                "`kernel_info` is what it says about the language, as JSON."},
    {Py_tp_new, JK_SLOT(server_new)},
    {Py_tp_dealloc, JK_SLOT(server_dealloc)},
    {Py_tp_methods, server_methods},
    {Py_tp_getset, server_getset},
    {0, NULL},
};

PyType_Spec jk_server_spec = {
    .name = "drupe._jkernel.Server",
    .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = server_slots,
};
