/* The Python type Subshell, which a worker's thread serves. */
#include "jkernel/pyexec/pyexec.h"

#include <structmember.h>

typedef struct subshell_object {
    PyObject ob_base;
    jk_subshell *subshell; /* retained */
    char ended;
} subshell_object;

PyObject *jk_subshell_object_new(jk_state *state, jk_subshell *subshell)
{
    PyObject *object = state->subshell_type->tp_alloc(state->subshell_type, 0);
    if (object) ((subshell_object *)object)->subshell = jk_subshell_retain(subshell);
    return object;
}

static void subshell_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    jk_subshell_release(((subshell_object *)object)->subshell);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *subshell_id(PyObject *object, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(jk_subshell_id(((subshell_object *)object)->subshell));
}

static PyObject *subshell_number(PyObject *object, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLong(jk_subshell_number(((subshell_object *)object)->subshell));
}

static PyObject *subshell_fileno(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLong(jk_subshell_fd(((subshell_object *)object)->subshell));
}

static PyObject *subshell_dispatch(PyObject *object, PyObject *unused)
{
    (void)unused;
    subshell_object *self = (subshell_object *)object;
    jk_state *state = PyType_GetModuleState(Py_TYPE(object));
    if (!state) return NULL;
    bool ended = true;
    jk_request *request = NULL;
    if (jk_kernel_enter()) {
        request = jk_subshell_next(self->subshell, &ended);
        jk_kernel_leave();
    }
    self->ended = ended;
    return request ? jk_request_object_new(state, request) : Py_NewRef(Py_None);
}

static PyMethodDef subshell_methods[] = {
    {"fileno", subshell_fileno, METH_NOARGS,
     "A descriptor that is readable while requests wait, or it has ended."},
    {"dispatch", subshell_dispatch, METH_NOARGS, "The next Request, or None."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef subshell_members[] = {
    {"ended", T_BOOL, offsetof(subshell_object, ended), READONLY,
     "The last dispatch() found that no request will follow."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef subshell_getset[] = {
    {"id", subshell_id, NULL, "Its subshell_id.", NULL},
    {"number", subshell_number, NULL, "From 1, in the order of creation.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot subshell_slots[] = {
    {Py_tp_doc, "A shell beside the main one, served by a thread of its own."},
    {Py_tp_dealloc, JK_SLOT(subshell_dealloc)},
    {Py_tp_methods, subshell_methods},
    {Py_tp_members, subshell_members},
    {Py_tp_getset, subshell_getset},
    {0, NULL},
};

PyType_Spec jk_subshell_spec = {
    .name = "drupe._jkernel.Subshell",
    .basicsize = sizeof(subshell_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = subshell_slots,
};
