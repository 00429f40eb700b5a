/* _engine._ImportGuard(usual, names, refuse): stands before a function that imports, for example
 * builtins.__import__. A name whose first part is not in the set `names` goes straight to usual(name, ...).
 * Of the others, refuse(name, ...) is asked first, and what it gives is the result, but for Ellipsis.
 *
 * It is no function in Python, since its frame would stand between an import statement and the module:
 * warnings of a module that name who imports it would name that frame, every traceback of an import that
 * fails would show it, and an import statement in a function would take several times as long. */
#include "engine/python/types/types_room.h"
#include <stddef.h>
#include <structmember.h>

typedef struct import_guard {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *usual, *names, *refuse, *dict;
} import_guard;

/* Whether the first part of a dotted name is one of `names`; -1 with an exception set. */
static int is_asked_for(const import_guard *guard, PyObject *name)
{
    if (!PyUnicode_Check(name)) return 0;
    Py_ssize_t dot = PyUnicode_FindChar(name, '.', 0, PyUnicode_GET_LENGTH(name), 1);
    if (dot == -2) return -1;
    if (dot < 0) return PySet_Contains(guard->names, name);
    PyObject *top = PyUnicode_Substring(name, 0, dot);
    int found = top ? PySet_Contains(guard->names, top) : -1;
    Py_XDECREF(top);
    return found;
}

static PyObject *guard_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *keywords)
{
    const import_guard *guard = (import_guard *)self;
    Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    /* A name that is given by keyword is rare: refuse() finds it by itself. */
    int asked = count > 0 ? is_asked_for(guard, args[0]) : keywords != NULL;
    if (asked < 0) return NULL;
    if (asked) {
        PyObject *answer = PyObject_Vectorcall(guard->refuse, args, (size_t)count, keywords);
        if (answer != Py_Ellipsis) return answer;
        Py_DECREF(answer);
    }
    return PyObject_Vectorcall(guard->usual, args, (size_t)count, keywords);
}

static PyObject *guard_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *usual, *names, *refuse;
    if (keywords && PyDict_GET_SIZE(keywords) > 0)
        return PyErr_Format(PyExc_TypeError, "%s takes no keywords", type->tp_name);
    if (!PyArg_ParseTuple(args, "OO!O:_ImportGuard", &usual, &PyFrozenSet_Type, &names, &refuse)) return NULL;
    import_guard *guard = (import_guard *)type->tp_alloc(type, 0);
    if (!guard) return NULL;
    guard->vectorcall = guard_call;
    guard->usual = Py_NewRef(usual);
    guard->names = Py_NewRef(names);
    guard->refuse = Py_NewRef(refuse);
    return (PyObject *)guard;
}

static int guard_traverse(PyObject *self, visitproc visit, void *arg)
{
    const import_guard *guard = (import_guard *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(guard->usual);
    Py_VISIT(guard->names);
    Py_VISIT(guard->refuse);
    Py_VISIT(guard->dict);
    return 0;
}

/* The functions stay until the end, since whoever still holds the guard may call it. Cycles that lead through
 * them end in the dictionary of a module, which breaks them. */
static int guard_clear(PyObject *self)
{
    Py_CLEAR(((import_guard *)self)->dict);
    return 0;
}

static void guard_dealloc(PyObject *self)
{
    import_guard *guard = (import_guard *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    (void)guard_clear(self);
    Py_XDECREF(guard->usual);
    Py_XDECREF(guard->names);
    Py_XDECREF(guard->refuse);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef guard_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(import_guard, vectorcall), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(import_guard, dict), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef guard_properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot guard_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("Stands before a function that imports, and refuses some names.")},
    {Py_tp_new, DRUPE_PY_FUNCTION(guard_new)},
    {Py_tp_call, DRUPE_PY_FUNCTION(PyVectorcall_Call)},
    {Py_tp_traverse, DRUPE_PY_FUNCTION(guard_traverse)},
    {Py_tp_clear, DRUPE_PY_FUNCTION(guard_clear)},
    {Py_tp_dealloc, DRUPE_PY_FUNCTION(guard_dealloc)},
    {Py_tp_members, guard_members},
    {Py_tp_getset, guard_properties},
    {0, NULL},
};

static PyType_Spec guard_spec = {
    .name = "drupe._engine._ImportGuard",
    .basicsize = sizeof(import_guard),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = guard_slots,
};

int drupe_py_import_guard_init(PyObject *module)
{
    return drupe_py_type_add(module, &guard_spec, NULL);
}
