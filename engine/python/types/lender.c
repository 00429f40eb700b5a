/* _engine._Lender: the base of Python classes that have one object, `_drupe`, and whose buffer is that
 * object's. Before CPython 3.12 a class in Python cannot offer a buffer. The lender is out of it at once: a
 * view holds the object itself. */
#include "engine/python/types/types_room.h"
#include <stddef.h>
#include <structmember.h>

typedef struct lender {
    PyObject_HEAD PyObject *held; /* NULL until somebody sets it */
} lender;

static int lender_buffer(PyObject *self, Py_buffer *view, int flags)
{
    PyObject *held = ((lender *)self)->held;
    view->obj = NULL;
    if (held) return PyObject_GetBuffer(held, view, flags);
    PyErr_Format(PyExc_BufferError, "this %s was not initialised", Py_TYPE(self)->tp_name);
    return -1;
}

static int lender_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((lender *)self)->held);
    return 0;
}

static int lender_clear(PyObject *self)
{
    Py_CLEAR(((lender *)self)->held);
    return 0;
}

static void lender_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    (void)lender_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef lender_members[] = {
    {"_drupe", T_OBJECT_EX, offsetof(lender, held), 0, "The object whose buffer this is."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot lender_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("Base of classes whose buffer is that of the object `_drupe`.")},
    {Py_tp_traverse, DRUPE_PY_FUNCTION(lender_traverse)},
    {Py_tp_clear, DRUPE_PY_FUNCTION(lender_clear)},
    {Py_tp_dealloc, DRUPE_PY_FUNCTION(lender_dealloc)},
    {Py_tp_members, lender_members},
    {Py_bf_getbuffer, DRUPE_PY_FUNCTION(lender_buffer)},
    {0, NULL},
};

static PyType_Spec lender_spec = {
    .name = "drupe._engine._Lender",
    .basicsize = sizeof(lender),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = lender_slots,
};

int drupe_py_lender_init(PyObject *module)
{
    return drupe_py_type_add(module, &lender_spec, NULL);
}
