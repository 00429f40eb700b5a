/* Properties of devices as Python objects. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/objects/objects_room.h"
#include <stdlib.h>

PyObject *drupe_py_word(drupe_py_state *state, const char *enumeration, const char *word)
{
    if (!state->enums) state->enums = PyImport_ImportModule("drupe.enums");
    PyObject *class = !state->enums ? NULL : PyObject_GetAttrString(state->enums, enumeration);
    /* The very string that names the member: the interpreter's cache of attributes would keep others. */
    PyObject *name = !class ? NULL : PyUnicode_InternFromString(word);
    PyObject *member = !name ? NULL : PyObject_GetAttr(class, name);
    Py_XDECREF(name);
    Py_XDECREF(class);
    return member;
}

static PyObject *words(drupe_py_state *state, drupe_info key, uint64_t bits)
{
    PyObject *list = PyList_New(0);
    const char *word;
    for (unsigned i = 0; list && (word = drupe_info_word(key, i)); i++) {
        if (!(bits & DRUPE_FLAG(i))) continue;
        drupe_py_append(&list, drupe_py_word(state, drupe_info_enumeration(key), word));
    }
    return drupe_py_tuple(list);
}

static PyObject *numbers_tuple(const uint64_t *numbers, size_t count)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; i < count; i++) drupe_py_append(&list, PyLong_FromUnsignedLongLong(numbers[i]));
    return drupe_py_tuple(list);
}

/* None for what means nothing, else the exception. */
static PyObject *no_value(drupe_py_state *state, drupe_device *device, drupe_status status)
{
    if (status == DRUPE_E_UNSUPPORTED) Py_RETURN_NONE;
    return drupe_py_raise(state, device);
}

/* A STRING, or a LIST of numbers. */
static PyObject *info_bytes(drupe_py_state *state, drupe_device *device, drupe_info key)
{
    size_t needed = 0;
    drupe_status status = drupe_device_info(device, key, NULL, 0, &needed);
    if (status != DRUPE_OK) return no_value(state, device, status);
    uint64_t *room = calloc(needed / sizeof *room + 1, sizeof *room);
    if (!room) return PyErr_NoMemory();
    PyObject *result = NULL;
    status = drupe_device_info(device, key, room, needed, NULL);
    if (status != DRUPE_OK)
        result = no_value(state, device, status);
    else if (drupe_info_type_of(key) == DRUPE_INFO_LIST)
        result = numbers_tuple(room, needed / sizeof *room);
    else
        result = PyUnicode_DecodeUTF8((const char *)room, (Py_ssize_t)strlen((const char *)room), "replace");
    free(room);
    return result;
}

PyObject *drupe_py_info_value(drupe_py_state *state, drupe_device *device, drupe_info key)
{
    uint64_t value[3] = {0, 0, 0};
    drupe_info_type type = drupe_info_type_of(key);
    if (type == DRUPE_INFO_STRING || type == DRUPE_INFO_LIST) return info_bytes(state, device, key);
    size_t size = type == DRUPE_INFO_U64X3 ? sizeof value : sizeof *value;
    drupe_status status = drupe_device_info(device, key, value, size, NULL);
    if (status != DRUPE_OK) return no_value(state, device, status);
    if (type == DRUPE_INFO_U64X3) return numbers_tuple(value, 3);
    if (type == DRUPE_INFO_BOOL) return PyBool_FromLong(value[0] != 0);
    if (type == DRUPE_INFO_FLAGS) return words(state, key, value[0]);
    if (type == DRUPE_INFO_U64) return PyLong_FromUnsignedLongLong(value[0]);
    const char *word = drupe_info_word(key, (unsigned)value[0]);
    if (!word) Py_RETURN_NONE;
    return drupe_py_word(state, drupe_info_enumeration(key), word);
}
