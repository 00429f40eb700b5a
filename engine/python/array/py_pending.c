/* Pending arrays: what they would take, as tuples for drupe/array/_recipe.py, and the switches of
 * drupe/array/_fusing.py. */
#include "drupe/array_pending.h"
#include "engine/python/array/py_array_room.h"
#include "engine/python/errors/errors_room.h"
#include <stdlib.h>

/* --- What would run --------------------------------------------------------------------------------------
 */

static PyObject *shape_of(int ndim, const size_t *shape)
{
    return drupe_py_axes_tuple(ndim, (const ptrdiff_t *)shape); /* no size is above its most */
}

/* (0, number of the operation), (1, number of the array) or (2, the number itself) */
static PyObject *input_tuple(const drupe_look_input *in)
{
    PyObject *what =
        in->source == DRUPE_LOOK_NUMBER ? drupe_py_number(&in->scalar) : PyLong_FromLong(in->index);
    return Py_BuildValue("iN", (int)in->source, what);
}

/* (name, inputs, dtype, shape, kernel or -1, place, whether it is stored) */
static PyObject *operation_tuple(drupe_py_state *state, const drupe_look_operation *one)
{
    PyObject *inputs = PyTuple_New(one->ninputs);
    for (int i = 0; inputs && i < one->ninputs; i++) {
        PyObject *input = input_tuple(&one->inputs[i]);
        if (!input)
            Py_CLEAR(inputs);
        else
            PyTuple_SET_ITEM(inputs, i, input);
    }
    if (!inputs) return NULL;
    return Py_BuildValue("sNNNisN", one->name, inputs, drupe_py_dtype_object(state, one->dtype),
                         shape_of(one->ndim, one->shape), one->kernel, one->place,
                         PyBool_FromLong(one->stored));
}

static PyObject *look_tuple(drupe_py_state *state, const drupe_look *look)
{
    PyObject *operations = PyList_New(0), *arrays = PyList_New(0);
    for (int i = 0; i < look->noperations; i++)
        drupe_py_append(&operations, operation_tuple(state, &look->operations[i]));
    for (int i = 0; i < look->narrays; i++) {
        const drupe_look_array *one = &look->arrays[i];
        drupe_py_append(&arrays, Py_BuildValue("NN", drupe_py_dtype_object(state, one->dtype),
                                               shape_of(one->ndim, one->shape)));
    }
    if (operations && arrays)
        return Py_BuildValue("NNiN", operations, arrays, look->kernels, PyBool_FromLong(look->more));
    Py_XDECREF(operations);
    Py_XDECREF(arrays);
    return NULL;
}

PyObject *drupe_py_array_pending(PyObject *self, void *closure)
{
    (void)closure;
    drupe_py_state *state = drupe_py_state_of(self);
    drupe_look *look;
    if (!drupe_py_enter(state)) return NULL;
    if (drupe_array_look(drupe_py_array_of(self), &look) != DRUPE_OK)
        return drupe_py_raise_on(state, drupe_py_array_of(self)->queue);
    if (!look) Py_RETURN_NONE;
    PyObject *told = look_tuple(state, look);
    free(look);
    PyObject *recipe = !told ? NULL : drupe_py_call("drupe.array._recipe", "of", "(OO)", self, told);
    Py_XDECREF(told);
    return recipe;
}

/* --- Switches ------------------------------------------------------------------------------------------ */

static PyObject *module_switch(PyObject *number, void (*change)(int by))
{
    const long by = PyLong_AsLong(number);
    if (by == -1 && PyErr_Occurred()) return NULL;
    change(by > 0 ? 1 : -1);
    Py_RETURN_NONE;
}

static PyObject *module_eager(PyObject *module, PyObject *number)
{
    (void)module;
    return module_switch(number, drupe_array_eager);
}

static PyObject *module_fuse(PyObject *module, PyObject *number)
{
    (void)module;
    return module_switch(number, drupe_array_fuse);
}

/* All are asked for before the first error is raised. */
static PyObject *module_settle(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    PyObject *failed = NULL;
    if (!drupe_py_enter(state)) return NULL;
    for (Py_ssize_t i = 0; i < nargs; i++) {
        if (drupe_py_is(state, args[i], DRUPE_PY_TYPE_Array) &&
            drupe_py_settle(state, drupe_py_array_of(args[i])))
            continue;
        if (!PyErr_Occurred()) drupe_py_operand_refuse(args[i], "_settle");
        PyObject *raised = drupe_py_exception_take();
        if (!failed)
            failed = raised;
        else
            Py_DECREF(raised);
    }
    if (!failed) Py_RETURN_NONE;
    drupe_py_raise_object(failed);
    return NULL;
}

static PyObject *module_settle_all(PyObject *module, PyObject *ignored)
{
    (void)ignored;
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_enter(state)) return NULL;
    if (drupe_array_settle_all() != DRUPE_OK) return drupe_py_raise_on(state, NULL);
    Py_RETURN_NONE;
}

PyMethodDef drupe_py_pending_functions[] = {
    {"_eager", module_eager, METH_O, PyDoc_STR("One eager() more (1) or fewer (-1) on this thread.")},
    {"_fuse", module_fuse, METH_O, PyDoc_STR("One fuse() more (1) or fewer (-1) on this thread.")},
    {"_settle", (PyCFunction)(void (*)(void))module_settle, METH_FASTCALL,
     PyDoc_STR("Have the values of these arrays submitted.")},
    {"_settle_all", module_settle_all, METH_NOARGS, PyDoc_STR("Have all that is pending submitted.")},
    {NULL, NULL, 0, NULL},
};
