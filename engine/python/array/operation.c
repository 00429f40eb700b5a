/* The operations of the table as callable objects: drupe.array.add and so on, made at import. */
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"
#include <stddef.h>

typedef struct operation {
    PyObject_HEAD vectorcallfunc vectorcall;
    drupe_op op;
    const char *name;
    int arity;
} operation;

/* By drupe_op, whose numbering the order of the table is. */
static const char *const docs[] = {
#define DRUPE_OP(id, name, kind, arity, doc) doc,
#include "drupe/ops.def"
#undef DRUPE_OP
};

static drupe_op op_of(PyObject *self)
{
    return ((operation *)self)->op;
}

/* --- Calls --------------------------------------------------------------------------------------------- */

static PyObject *call_elementwise(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    drupe_py_state *state = drupe_py_state_of(self);
    drupe_op op = op_of(self);
    int arity = drupe_op_arity(op);
    drupe_py_signature signature = {
        drupe_op_name(op), arity, arity, arity + 1, {DRUPE_PY_NAME_x1, DRUPE_PY_NAME_x2, DRUPE_PY_NAME_out}};
    if (arity == 1) {
        signature.names[0] = DRUPE_PY_NAME_x;
        signature.names[1] = DRUPE_PY_NAME_out;
    }
    if (arity == 3) {
        signature.names[0] = DRUPE_PY_NAME_condition;
        signature.names[1] = DRUPE_PY_NAME_x1;
        signature.names[2] = DRUPE_PY_NAME_x2;
        signature.names[3] = DRUPE_PY_NAME_out;
    }
    PyObject *given[4];
    drupe_operand operands[3];
    /* where(condition) alone: where it is true. */
    if (op == DRUPE_OP_WHERE && PyVectorcall_NARGS(nargsf) == 1 && !kwnames)
        return drupe_py_call("drupe.array", "nonzero", "(O)", args[0]);
    if (!drupe_py_enter(state) ||
        !drupe_py_args(state, &signature, args, PyVectorcall_NARGS(nargsf), kwnames, given))
        return NULL;
    bool any_array = false;
    for (int i = 0; i < arity; i++) {
        int found = drupe_py_operand_arg(state, given[i], &operands[i]);
        if (found == 0) drupe_py_operand_refuse(given[i], drupe_op_name(op));
        if (found <= 0) return NULL;
        any_array = any_array || operands[i].array;
    }
    PyObject *out = drupe_py_given(given[arity]) ? given[arity] : NULL;
    if (!any_array || (out != NULL && !drupe_py_is(state, out, DRUPE_PY_TYPE_Array))) {
        PyErr_Format(PyExc_TypeError, "%s: %s must be a drupe.array.Array", drupe_op_name(op),
                     any_array ? "out" : "one operand at least");
        return NULL;
    }
    return drupe_py_apply(state, op, operands, (size_t)arity, out);
}

static bool is_sum(drupe_op op)
{
    return op == DRUPE_OP_SUM || op == DRUPE_OP_PROD;
}

static PyObject *call_reduction(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    static const drupe_py_signature sums =
        DRUPE_PY_SIGNATURE(NULL, 2, 1, DRUPE_PY_NAME_x, DRUPE_PY_NAME_axis, DRUPE_PY_NAME_keepdims,
                           DRUPE_PY_NAME_out, DRUPE_PY_NAME_dtype);
    drupe_py_state *state = drupe_py_state_of(self);
    drupe_op op = op_of(self);
    drupe_py_signature signature = sums;
    signature.function = drupe_op_name(op);
    signature.count -= !is_sum(op); /* the others have no dtype */
    PyObject *given[5] = {NULL};
    if (!drupe_py_enter(state) ||
        !drupe_py_args(state, &signature, args, PyVectorcall_NARGS(nargsf), kwnames, given))
        return NULL;
    return drupe_py_into(state, drupe_py_reduce(state, op, given[0], given[1], given[4], given[2]), given[3]);
}

/* --- The type ------------------------------------------------------------------------------------------ */

static const char *parameters(drupe_op op)
{
    if (drupe_op_kind_of(op) == DRUPE_OP_REDUCTION)
        return is_sum(op) ? "x, /, axis=None, *, dtype=None, keepdims=False, out=None"
                          : "x, /, axis=None, *, keepdims=False, out=None";
    static const char *const by_arity[] = {"", "x, /, *, out=None", "x1, x2, /, *, out=None",
                                           "condition, x1, x2, /, *, out=None"};
    return by_arity[drupe_op_arity(op)];
}

static PyObject *operation_doc(PyObject *self, void *closure)
{
    (void)closure;
    drupe_op op = op_of(self);
    return drupe_py_call("drupe.array._documents", "operation", "(sss)", drupe_op_name(op), parameters(op),
                         docs[op]);
}

/* inspect knows objects of foreign types by a Signature only: see signature() of drupe/_members.py. */
static PyObject *operation_signature(PyObject *self, void *closure)
{
    (void)closure;
    return drupe_py_call("drupe._members", "signature", "(s)", parameters(op_of(self)));
}

static PyObject *operation_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<drupe.array.%s>", drupe_op_name(op_of(self)));
}

static void operation_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    drupe_py_free(self, DRUPE_PY_TYPE_Operation);
}

static PyMemberDef operation_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(operation, vectorcall), READONLY, NULL},
    {"__name__", T_STRING, offsetof(operation, name), READONLY, NULL},
    {"__qualname__", T_STRING, offsetof(operation, name), READONLY, NULL},
    {"nin", T_INT, offsetof(operation, arity), READONLY, "Number of operands."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef operation_getset[] = {
    {"__doc__", operation_doc, NULL, NULL, NULL},
    {"__signature__", operation_signature, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot operation_slots[] = {
    {Py_tp_dealloc, DRUPE_PY_FUNCTION(operation_dealloc)},
    {Py_tp_traverse, DRUPE_PY_FUNCTION(drupe_py_traverse)},
    {Py_tp_repr, DRUPE_PY_FUNCTION(operation_repr)},
    {Py_tp_call, DRUPE_PY_FUNCTION(PyVectorcall_Call)},
    {Py_tp_members, operation_members},
    {Py_tp_getset, operation_getset},
    {0, NULL},
};

DRUPE_PY_SPEC(Operation, "drupe.array.Operation", operation,
              Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_HAVE_VECTORCALL,
              operation_slots);

/* A new Operation in `all`, which keeps it. */
static bool operation_add(drupe_py_state *state, drupe_op op, PyObject *all)
{
    operation *self = (operation *)drupe_py_new(state, DRUPE_PY_TYPE_Operation);
    if (!self) return false;
    self->op = op;
    self->name = drupe_op_name(op);
    self->arity = drupe_op_arity(op);
    self->vectorcall = drupe_op_kind_of(op) == DRUPE_OP_REDUCTION ? call_reduction : call_elementwise;
    int added = PyDict_SetItemString(all, self->name, (PyObject *)self);
    Py_DECREF((PyObject *)self);
    return added == 0;
}

int drupe_py_operations_init(PyObject *module, drupe_py_state *state)
{
    PyObject *all = PyDict_New();
    for (int op = 0; all && op < DRUPE_OP_COUNT; op++)
        if (!operation_add(state, (drupe_op)op, all)) Py_CLEAR(all);
    int result = !all ? -1 : PyModule_AddObjectRef(module, "operations", all);
    Py_XDECREF(all);
    return result;
}
