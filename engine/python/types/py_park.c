/* Parking, for drupe.hosted. The GIL is kept all the time: so no other thread of Python can be between an
 * address and its submission, but for those that hold addresses. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/objects/objects_room.h"
#include "engine/python/types/types_room.h"
#include "engine/python/waits/waits_room.h"

#define HOLDERS_MOST 16

static drupe_device *device_of(drupe_py_state *state, PyObject *object)
{
    if (!drupe_py_enter(state)) return NULL;
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_Device)) return ((drupe_py_device *)object)->device;
    PyErr_Format(PyExc_TypeError, "a drupe.Device is expected, not %s", Py_TYPE(object)->tp_name);
    return NULL;
}

static PyObject *holder_list(drupe_device *device)
{
    drupe_holder holders[HOLDERS_MOST];
    size_t count = drupe_park_holders(device, holders, HOLDERS_MOST);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count && i < HOLDERS_MOST; i++)
        drupe_py_append(&list, drupe_py_holder_tuple(&holders[i]));
    return list;
}

/* A dict; "why" is None, or why the device cannot be parked. What else fails is an exception. */
static PyObject *answer(drupe_py_state *state, drupe_device *device, drupe_status status,
                        const drupe_park_report *report)
{
    if (status != DRUPE_OK && status != DRUPE_E_BUSY) return drupe_py_raise(state, device);
    PyObject *why = status == DRUPE_OK ? Py_NewRef(Py_None) : drupe_py_text(drupe_error_last()->text);
    PyObject *holders = status == DRUPE_OK ? PyList_New(0) : holder_list(device);
    if (!why || !holders) {
        Py_XDECREF(why);
        Py_XDECREF(holders);
        return NULL;
    }
    return Py_BuildValue(
        "{sNsNsKsKsKsdsKsKsKsKsKsO}", "why", why, "holders", holders, "bytes",
        (unsigned long long)report->bytes, "pieces", (unsigned long long)report->pieces, "freed",
        (unsigned long long)report->freed, "seconds", (double)report->ns / 1e9, "unfinished",
        (unsigned long long)report->unfinished, "given_bytes", (unsigned long long)report->given_bytes,
        "given_pieces", (unsigned long long)report->given_pieces, "foreign_bytes",
        (unsigned long long)report->foreign_bytes, "foreign_pieces",
        (unsigned long long)report->foreign_pieces, "held", report->held ? Py_True : Py_False);
}

static PyObject *park(PyObject *module, PyObject *args)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    PyObject *object;
    int kept;
    drupe_park_report report;
    if (!PyArg_ParseTuple(args, "Op:_park", &object, &kept)) return NULL;
    drupe_device *device = device_of(state, object);
    if (!device) return NULL;
    drupe_py_collect_all();
    const drupe_status status = drupe_park(device, kept ? DRUPE_PARK_KEPT : 0, &report);
    return PyErr_Occurred() ? NULL : answer(state, device, status, &report);
}

static PyObject *parkable(PyObject *module, PyObject *object)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    drupe_park_report report;
    drupe_device *device = device_of(state, object);
    if (!device) return NULL;
    drupe_py_collect_all();
    const drupe_status status = drupe_parkable(device, &report);
    return answer(state, device, status, &report);
}

static PyObject *unpark(PyObject *module, PyObject *object)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    drupe_park_report report;
    drupe_device *device = device_of(state, object);
    if (!device) return NULL;
    const drupe_status status = drupe_unpark(device, &report);
    return status == DRUPE_OK ? answer(state, device, status, &report) : drupe_py_raise(state, device);
}

static PyObject *parked(PyObject *module, PyObject *object)
{
    drupe_device *device = device_of(drupe_py_state_of_module(module), object);
    return device ? PyBool_FromLong(drupe_device_parked(device)) : NULL;
}

PyMethodDef drupe_py_park_functions[] = {
    {"_park", park, METH_VARARGS, PyDoc_STR("Park a device; the second argument: until it is asked back.")},
    {"_parkable", parkable, METH_O, PyDoc_STR("What _park() of a device would do.")},
    {"_unpark", unpark, METH_O, PyDoc_STR("Have a device's memory come back.")},
    {"_parked", parked, METH_O, PyDoc_STR("Whether a device is parked.")},
    {NULL, NULL, 0, NULL},
};
