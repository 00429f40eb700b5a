/* The Python types Request and Parent.
 *
 * A Request owns its jk_request until reply(); one that is dropped without a reply is answered with an error,
 * so that no client waits for ever. Its frames become Python bytes only when asked for. */
#include "jkernel/pyexec/pyexec.h"

#include <structmember.h>

typedef struct request_object {
    PyObject ob_base;
    jk_request *request; /* NULL once replied */
    PyObject *parent;
} request_object;

static PyObject *bytes_object(jk_bytes bytes)
{
    return PyBytes_FromStringAndSize(bytes.data, (Py_ssize_t)bytes.size);
}

/* --- Parent ------------------------------------------------------------------------------------------------
 */

PyObject *jk_parent_object_new(jk_state *state, jk_parent *parent)
{
    PyObject *object = state->parent_type->tp_alloc(state->parent_type, 0);
    if (!object) return NULL;
    jk_parent_object *self = (jk_parent_object *)object;
    self->parent = jk_parent_retain(parent);
    self->message = Py_NewRef(Py_None);
    self->cell = Py_NewRef(Py_None);
    return object;
}

static PyObject *parent_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    char *names[] = {"", NULL}; /* no keywords */
    const char *header = NULL;
    Py_ssize_t size = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y#:Parent", names, &header, &size)) return NULL;
    jk_parent *parent = jk_parent_create((jk_bytes){header, (size_t)size});
    if (!parent) return PyErr_NoMemory();
    jk_state *state = PyType_GetModuleState(type);
    PyObject *object = state ? jk_parent_object_new(state, parent) : NULL;
    jk_parent_release(parent);
    return object;
}

static int parent_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((jk_parent_object *)object)->message);
    Py_VISIT(((jk_parent_object *)object)->cell);
    return 0;
}

static int parent_clear(PyObject *object)
{
    Py_CLEAR(((jk_parent_object *)object)->message);
    Py_CLEAR(((jk_parent_object *)object)->cell);
    return 0;
}

static void parent_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    parent_clear(object);
    jk_parent_release(((jk_parent_object *)object)->parent);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *parent_header(PyObject *object, void *closure)
{
    (void)closure;
    jk_parent *parent = ((jk_parent_object *)object)->parent;
    return parent ? bytes_object(jk_parent_header(parent)) : PyBytes_FromString("{}");
}

static PyObject *parent_silent(PyObject *object, void *closure)
{
    (void)closure;
    jk_parent *parent = ((jk_parent_object *)object)->parent;
    return PyBool_FromLong(parent && jk_parent_silent(parent));
}

static int parent_set_silent(PyObject *object, PyObject *value, void *closure)
{
    (void)closure;
    jk_parent *parent = ((jk_parent_object *)object)->parent;
    int silent = value ? PyObject_IsTrue(value) : 0;
    if (silent < 0) return -1;
    if (parent) jk_parent_silence(parent, silent);
    return 0;
}

static PyMemberDef parent_members[] = {
    {"message", T_OBJECT_EX, offsetof(jk_parent_object, message), 0, "The parsed request, or None."},
    {"cell", T_OBJECT, offsetof(jk_parent_object, cell), 0, "The Cell that runs for it, or None."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef parent_getset[] = {
    {"header", parent_header, NULL, "The request's header: JSON text as received.", NULL},
    {"silent", parent_silent, parent_set_silent, "Outputs for it are discarded, but for comm messages.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot parent_slots[] = {
    {Py_tp_doc, "Parent(header)\n--\n\nThe request that outputs belong to, by its header as JSON text."},
    {Py_tp_new, JK_SLOT(parent_new)},
    {Py_tp_traverse, JK_SLOT(parent_traverse)},
    {Py_tp_clear, JK_SLOT(parent_clear)},
    {Py_tp_dealloc, JK_SLOT(parent_dealloc)},
    {Py_tp_members, parent_members},
    {Py_tp_getset, parent_getset},
    {0, NULL},
};

PyType_Spec jk_parent_spec = {
    .name = "drupe._jkernel.Parent",
    .basicsize = sizeof(jk_parent_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = parent_slots,
};

/* --- Request -----------------------------------------------------------------------------------------------
 */

static void reply_dropped(jk_request *request)
{
    static const char text[] =
        "{\"status\":\"error\",\"ename\":\"KernelError\",\"evalue\":\"the kernel ended before "
        "it answered this request\",\"traceback\":[],\"execution_count\":0}";
    jk_request_reply(request, (jk_bytes){text, sizeof text - 1}, (jk_bytes){NULL, 0}, 0);
}

PyObject *jk_request_object_new(jk_state *state, jk_request *request)
{
    PyObject *parent = jk_parent_object_new(state, jk_request_parent(request));
    PyObject *object = parent ? state->request_type->tp_alloc(state->request_type, 0) : NULL;
    if (!object) {
        Py_XDECREF(parent);
        reply_dropped(request);
        return NULL;
    }
    request_object *self = (request_object *)object;
    self->request = request;
    self->parent = parent;
    return object;
}

jk_request *jk_request_object_get(PyObject *object)
{
    jk_request *request = ((request_object *)object)->request;
    if (!request) PyErr_SetString(PyExc_ValueError, "this request was replied to already");
    return request;
}

static int request_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((request_object *)object)->parent);
    return 0;
}

static int request_clear(PyObject *object)
{
    Py_CLEAR(((request_object *)object)->parent);
    return 0;
}

static void request_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    jk_request *request = ((request_object *)object)->request;
    if (request && jk_kernel_enter()) {
        reply_dropped(request);
        jk_kernel_leave();
    }
    request_clear(object);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *request_type(PyObject *object, void *closure)
{
    (void)closure;
    jk_request *request = jk_request_object_get(object);
    return request ? PyUnicode_FromString(jk_request_type(request)) : NULL;
}

/* The closure is one of these. */
static const jk_part parts[] = {JK_HEADER, JK_PARENT_HEADER, JK_METADATA, JK_CONTENT};

static PyObject *request_frame(PyObject *object, void *closure)
{
    jk_request *request = jk_request_object_get(object);
    return request ? bytes_object(jk_request_part(request, *(const jk_part *)closure)) : NULL;
}

static PyObject *request_buffers(PyObject *object, void *closure)
{
    (void)closure;
    jk_request *request = jk_request_object_get(object);
    if (!request) return NULL;
    size_t count = jk_request_buffer_count(request);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *bytes = bytes_object(jk_request_buffer(request, i));
        PyObject *view = bytes ? PyMemoryView_FromObject(bytes) : NULL;
        Py_XDECREF(bytes);
        if (!view) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, view);
    }
    return list;
}

static PyObject *request_reply(PyObject *object, PyObject *args)
{
    const char *content = NULL, *metadata = NULL;
    Py_ssize_t content_size = 0, metadata_size = 0;
    unsigned flags = 0;
    if (!PyArg_ParseTuple(args, "y#|y#I:reply", &content, &content_size, &metadata, &metadata_size, &flags)) {
        return NULL;
    }
    jk_request *request = jk_request_object_get(object);
    if (!request) return NULL;
    ((request_object *)object)->request = NULL;
    if (jk_kernel_enter()) {
        jk_request_reply(request, (jk_bytes){content, (size_t)content_size},
                         (jk_bytes){metadata, (size_t)metadata_size}, flags);
        jk_kernel_leave();
    }
    Py_RETURN_NONE;
}

static PyMethodDef request_methods[] = {
    {"reply", request_reply, METH_VARARGS,
     "reply(content, metadata=b'', flags=0)\n--\n\nSend the reply and publish idle; once."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef request_members[] = {
    {"parent", T_OBJECT_EX, offsetof(request_object, parent), READONLY, "The Parent of its outputs."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef request_getset[] = {
    {"type", request_type, NULL, "The message type.", NULL},
    {"header", request_frame, NULL, "JSON text as received.", (void *)&parts[0]},
    {"parent_header", request_frame, NULL, "JSON text as received.", (void *)&parts[1]},
    {"metadata", request_frame, NULL, "JSON text as received.", (void *)&parts[2]},
    {"content", request_frame, NULL, "JSON text as received.", (void *)&parts[3]},
    {"buffers", request_buffers, NULL, "A list of memoryviews.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot request_slots[] = {
    {Py_tp_doc, "One request of a client, until it is replied to."},
    {Py_tp_traverse, JK_SLOT(request_traverse)},
    {Py_tp_clear, JK_SLOT(request_clear)},
    {Py_tp_dealloc, JK_SLOT(request_dealloc)},
    {Py_tp_methods, request_methods},
    {Py_tp_members, request_members},
    {Py_tp_getset, request_getset},
    {0, NULL},
};

PyType_Spec jk_request_spec = {
    .name = "drupe._jkernel.Request",
    .basicsize = sizeof(request_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = request_slots,
};
