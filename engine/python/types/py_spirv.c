/* Specialisation constants: values for a module, and what a module has.
 *
 * What may stand for a value (numbers, NumPy scalars, SpecializationConstant objects) is decided in Python,
 * by drupe.program; here they are a tuple of numbers and bytes. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/types/types_room.h"

bool drupe_py_values_arg(PyObject *object, PyObject *module, drupe_py_values *values)
{
    *values = (drupe_py_values){NULL, NULL, 0};
    if (!drupe_py_given(object)) return true;
    values->owner = drupe_py_call("drupe.program", "_spec_values", "(OO)", module, object);
    if (!values->owner) return false;
    values->count = (size_t)PyTuple_GET_SIZE(values->owner);
    values->list = PyMem_Calloc(values->count + 1, sizeof *values->list);
    bool good = values->list != NULL;
    if (!good) PyErr_NoMemory();
    for (size_t i = 0; i < values->count && good; i++) {
        unsigned id;
        const char *bytes;
        Py_ssize_t size;
        good = PyArg_ParseTuple(PyTuple_GET_ITEM(values->owner, (Py_ssize_t)i), "Iy#", &id, &bytes, &size);
        if (good) values->list[i] = (drupe_spec_value){.id = id, .size = (size_t)size, .value = bytes};
    }
    if (!good) drupe_py_values_clear(values);
    return good;
}

void drupe_py_values_clear(drupe_py_values *values)
{
    PyMem_Free(values->list);
    Py_CLEAR(values->owner);
    *values = (drupe_py_values){NULL, NULL, 0};
}

static PyObject *constants_list(const drupe_spec_constant *constants, size_t count)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; i < count; i++) {
        const drupe_spec_constant *one = &constants[i];
        PyObject *name = PyUnicode_DecodeUTF8(one->name, (Py_ssize_t)strlen(one->name), "replace");
        PyObject *item = !name ? NULL
                               : Py_BuildValue("(kCIOy#)", (unsigned long)one->id, one->type, one->bytes,
                                               name, (const char *)one->value, (Py_ssize_t)one->bytes);
        Py_XDECREF(name);
        drupe_py_append(&list, item);
    }
    return list;
}

static PyObject *spirv_constants(PyObject *module, PyObject *object)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    drupe_spec_constant *constants = NULL;
    size_t count = 0;
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, PyBUF_SIMPLE) < 0) return NULL;
    drupe_status status = drupe_spirv_constants(view.buf, (size_t)view.len, &constants, &count);
    PyBuffer_Release(&view);
    if (status != DRUPE_OK) return drupe_py_raise(state, NULL);
    PyObject *list = constants_list(constants, count);
    free(constants);
    return list;
}

PyMethodDef drupe_py_spirv_functions[] = {
    {"_spirv_constants", spirv_constants, METH_O,
     PyDoc_STR("_spirv_constants(module)\n--\n\n"
               "(number, type, bytes, name, default) of each specialisation constant; type is b, i or f.")},
    {NULL, NULL, 0, NULL},
};
