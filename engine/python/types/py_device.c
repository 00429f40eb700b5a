/* drupe.Device. Its properties come from device_info.def: one getter serves them all, with the key as
 * closure. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/objects/objects_room.h"
#include "engine/python/types/types_room.h"
#include "engine/python/waits/waits_room.h"
#include <stdlib.h>

#define SUBS_MAX 4096u

static drupe_device *device_of(PyObject *self)
{
    return ((drupe_py_device *)self)->device;
}

static PyObject *device_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static const drupe_py_signature signature = DRUPE_PY_SIGNATURE("Device", 1, 0, DRUPE_PY_NAME_filter);
    drupe_py_state *state = drupe_py_state_of_type(type);
    PyObject *given[1];
    if (!drupe_py_enter(state) || !drupe_py_args_new(state, &signature, args, kwargs, given)) return NULL;
    drupe_device *device = drupe_py_device_arg(state, given[0]);
    return !device ? NULL : drupe_py_device_wrap(state, device);
}

static void device_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    drupe_py_queue_release(((drupe_py_device *)self)->queue);
    drupe_py_queue_release(((drupe_py_device *)self)->array_queue);
    if (!drupe_py_forked()) drupe_device_release(device_of(self));
    drupe_py_free(self, DRUPE_PY_TYPE_Device);
}

static PyObject *device_repr(PyObject *self)
{
    char name[256] = "";
    if (drupe_device_info(device_of(self), DRUPE_INFO_NAME, name, sizeof name, NULL) != DRUPE_OK)
        name[0] = '\0';
    return PyUnicode_FromFormat("<drupe.Device %s: %s>", drupe_device_filter(device_of(self)), name);
}

/* --- Properties ---------------------------------------------------------------------------------------- */

static PyObject *device_get_info(PyObject *self, void *closure)
{
    drupe_py_state *state = drupe_py_state_of(self);
    if (!drupe_py_enter(state)) return NULL;
    return drupe_py_info_value(state, device_of(self), (drupe_info)(intptr_t)closure);
}

static PyObject *device_get_backend(PyObject *self, void *closure)
{
    (void)closure;
    return drupe_py_word(drupe_py_state_of(self), "backend_type", drupe_device_backend(device_of(self)));
}

static PyObject *device_get_type(PyObject *self, void *closure)
{
    (void)closure;
    return drupe_py_word(drupe_py_state_of(self), "device_type",
                         drupe_device_type_name(drupe_device_kind(device_of(self))));
}

static PyObject *device_is_type(PyObject *self, void *closure)
{
    return PyBool_FromLong(drupe_device_kind(device_of(self)) == (drupe_device_type)(intptr_t)closure);
}

static PyObject *device_get_filter(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(drupe_device_filter(device_of(self)));
}

static PyObject *device_get_score(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(drupe_device_score(device_of(self)));
}

static PyObject *device_get_usm(PyObject *self, void *closure)
{
    drupe_info key = (drupe_info)(intptr_t)closure;
    return PyBool_FromLong(drupe_device_number(device_of(self), key, DRUPE_USM_NONE) != DRUPE_USM_NONE);
}

static PyObject *device_get_parent(PyObject *self, void *closure)
{
    (void)closure;
    drupe_device *parent = drupe_device_parent(device_of(self));
    if (!parent) Py_RETURN_NONE;
    return drupe_py_device_wrap(drupe_py_state_of(self), drupe_device_retain(parent));
}

static PyObject *device_get_context(PyObject *self, void *closure)
{
    (void)closure;
    drupe_py_state *state = drupe_py_state_of(self);
    drupe_context *context = NULL;
    if (!drupe_py_enter(state)) return NULL;
    if (drupe_device_context(device_of(self), &context) != DRUPE_OK)
        return drupe_py_raise(state, device_of(self));
    return drupe_py_context_wrap(state, context);
}

static PyObject *device_get_queue(PyObject *self, void *closure)
{
    (void)closure;
    drupe_py_state *state = drupe_py_state_of(self);
    drupe_queue *queue = NULL;
    if (!drupe_py_enter(state)) return NULL;
    if (drupe_device_queue(device_of(self), &queue) != DRUPE_OK)
        return drupe_py_raise(state, device_of(self));
    return drupe_py_queue_wrap(state, queue);
}

static PyObject *device_get_sycl_queue(PyObject *self, void *closure)
{
    drupe_queue *queue = ((drupe_py_device *)self)->array_queue;
    if (!queue) return device_get_queue(self, closure);
    return drupe_py_queue_wrap(drupe_py_state_of(self), drupe_queue_retain(queue));
}

/* The first entries of max_work_item_sizes; None where a range cannot have so many dimensions. */
static PyObject *device_get_sizes(PyObject *self, void *closure)
{
    drupe_py_state *state = drupe_py_state_of(self);
    Py_ssize_t dims = (Py_ssize_t)(intptr_t)closure;
    if (!drupe_py_enter(state)) return NULL;
    if (drupe_device_number(device_of(self), DRUPE_INFO_MAX_WORK_ITEM_DIMS, 0) < (uint64_t)dims)
        Py_RETURN_NONE;
    PyObject *sizes = drupe_py_info_value(state, device_of(self), DRUPE_INFO_MAX_WORK_ITEM_SIZES);
    PyObject *some = !sizes || sizes == Py_None ? Py_XNewRef(sizes) : PyTuple_GetSlice(sizes, 0, dims);
    Py_XDECREF(sizes);
    return some;
}

/* --- Dividing ------------------------------------------------------------------------------------------ */

/* A list that notebooks show as a table. */
static PyObject *subs_list(drupe_py_state *state, drupe_device **subs, size_t count)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; i < count; i++) drupe_py_append(&list, drupe_py_device_wrap(state, subs[i]));
    return drupe_py_call("drupe._listed", "DeviceList", "(N)", list);
}

/* A word of partition_affinity_domain. */
static bool domain_arg(PyObject *object, drupe_partition *partition)
{
    const char *word = PyUnicode_AsUTF8(object);
    int domain = !word ? -1 : drupe_info_find_word(DRUPE_INFO_PARTITION_DOMAINS, word);
    *partition = (drupe_partition){.kind = DRUPE_SPLIT_AFFINITY, .domain = (drupe_domain)domain};
    if (domain > DRUPE_DOMAIN_NONE) return true;
    if (word)
        PyErr_Format(PyExc_ValueError,
                     "partition is a number, a sequence of numbers, or one of \"numa\", \"L4_cache\", "
                     "\"L3_cache\", \"L2_cache\", \"L1_cache\", \"next_partitionable\", not %R",
                     object);
    return false;
}

static bool partition_arg(PyObject *object, uint32_t *units, drupe_partition *partition)
{
    if (PyUnicode_Check(object)) return domain_arg(object, partition);
    size_t sizes[DRUPE_MAX_DIMS * 16];
    int count = drupe_py_sizes(object, "partition", sizes, (int)(sizeof sizes / sizeof *sizes));
    if (count < 0) return false;
    for (int i = 0; i < count; i++) {
        if (sizes[i] == 0 || sizes[i] > UINT32_MAX) {
            PyErr_Format(PyExc_ValueError,
                         "partition counts compute units: at least 1 for each sub-device, not %zu", sizes[i]);
            return false;
        }
        units[i] = (uint32_t)sizes[i];
    }
    bool equally = PyIndex_Check(object) && !PySequence_Check(object);
    *partition = (drupe_partition){equally ? DRUPE_SPLIT_EQUALLY : DRUPE_SPLIT_COUNTS, (size_t)count, units,
                                   DRUPE_DOMAIN_NONE};
    return true;
}

static PyObject *device_split(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const drupe_py_signature signature =
        DRUPE_PY_SIGNATURE("create_sub_devices", 1, 1, DRUPE_PY_NAME_partition);
    drupe_py_state *state = drupe_py_state_of(self);
    PyObject *given[1];
    uint32_t units[DRUPE_MAX_DIMS * 16];
    drupe_partition partition;
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given) ||
        !partition_arg(given[0], units, &partition))
        return NULL;
    drupe_device **subs = PyMem_New(drupe_device *, SUBS_MAX);
    if (!subs) return PyErr_NoMemory();
    size_t count = 0;
    PyObject *result = NULL;
    if (drupe_device_split(device_of(self), &partition, subs, SUBS_MAX, &count) != DRUPE_OK)
        drupe_py_raise(state, device_of(self));
    else
        result = subs_list(state, subs, count < SUBS_MAX ? count : SUBS_MAX);
    PyMem_Free(subs);
    return result;
}

static PyMethodDef device_methods[] = {
    {"create_sub_devices", DRUPE_PY_FAST(device_split),
     PyDoc_STR("create_sub_devices($self, partition)\n--\n\n"
               "Divide the device: an integer gives as many sub-devices of that many compute\n"
               "units as there are, a sequence one sub-device of each number of units, a word\n"
               "one for each domain that its units share: \"numa\", \"L3_cache\", ..., or\n"
               "\"next_partitionable\", the first that divides it.")},
    {"addressof_ref", drupe_py_address, METH_NOARGS,
     PyDoc_STR("addressof_ref($self)\n--\n\nThe address of the engine's device, for extensions in C.")},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef device_getset[] = {
    {"filter_string", device_get_filter, NULL, "The filter that selects this device again.", NULL},
    {"backend", device_get_backend, NULL, "A member of drupe.backend_type: host or opencl.", NULL},
    {"device_type", device_get_type, NULL, "A member of drupe.device_type.", NULL},
    {"default_selector_score", device_get_score, NULL, "Higher is chosen first.", NULL},
    {"is_cpu", device_is_type, NULL, "Whether it is a CPU.", (void *)(intptr_t)DRUPE_DEVICE_CPU},
    {"is_gpu", device_is_type, NULL, "Whether it is a GPU.", (void *)(intptr_t)DRUPE_DEVICE_GPU},
    {"is_accelerator", device_is_type, NULL, "Whether it is an accelerator.",
     (void *)(intptr_t)DRUPE_DEVICE_ACCELERATOR},
    {"has_aspect_cpu", device_is_type, NULL, "Whether it is a CPU.", (void *)(intptr_t)DRUPE_DEVICE_CPU},
    {"has_aspect_gpu", device_is_type, NULL, "Whether it is a GPU.", (void *)(intptr_t)DRUPE_DEVICE_GPU},
    {"has_aspect_accelerator", device_is_type, NULL, "Whether it is an accelerator.",
     (void *)(intptr_t)DRUPE_DEVICE_ACCELERATOR},
    {"has_aspect_custom", device_is_type, NULL, "Whether it is a custom device.",
     (void *)(intptr_t)DRUPE_DEVICE_CUSTOM},
    {"has_aspect_usm_device_allocations", device_get_usm, NULL, "Whether there is device memory.",
     (void *)(intptr_t)DRUPE_INFO_USM_DEVICE},
    {"has_aspect_usm_host_allocations", device_get_usm, NULL, "Whether there is host memory.",
     (void *)(intptr_t)DRUPE_INFO_USM_HOST},
    {"has_aspect_usm_shared_allocations", device_get_usm, NULL, "Whether there is shared memory.",
     (void *)(intptr_t)DRUPE_INFO_USM_SHARED},
    {"max_work_item_sizes1d", device_get_sizes, NULL, "Most work-items of a group of one dimension.",
     (void *)(intptr_t)1},
    {"max_work_item_sizes2d", device_get_sizes, NULL, "Most work-items of a group of two dimensions.",
     (void *)(intptr_t)2},
    {"max_work_item_sizes3d", device_get_sizes, NULL, "Most work-items of a group of three dimensions.",
     (void *)(intptr_t)3},
    {"parent_device", device_get_parent, NULL, "The device this is a part of, or None.", NULL},
    {"context", device_get_context, NULL, "The default context of the device.", NULL},
    {"queue", device_get_queue, NULL, "The default queue of the device: always the same one.", NULL},
    {"sycl_queue", device_get_sycl_queue, NULL,
     "What device= means with this object: of x.device the queue of x, else the default queue.", NULL},
#define DRUPE_INFO(key, type, enumeration, name, doc)                                                        \
    {#name, device_get_info, NULL, doc, (void *)(intptr_t)DRUPE_INFO_##key},
#include "drupe/device_info.def"
#undef DRUPE_INFO
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot device_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("Device(filter=None)\n--\n\n"
                                  "A device: the best one for a filter such as \"gpu\", \"host\" or "
                                  "\"opencl:cpu:0\", or the default device.")},
    {Py_tp_new, DRUPE_PY_FUNCTION(device_new)},
    {Py_tp_dealloc, DRUPE_PY_FUNCTION(device_dealloc)},
    {Py_tp_traverse, DRUPE_PY_FUNCTION(drupe_py_traverse)},
    {Py_tp_richcompare, DRUPE_PY_FUNCTION(drupe_py_same)},
    {Py_tp_hash, DRUPE_PY_FUNCTION(drupe_py_same_hash)},
    {Py_tp_repr, DRUPE_PY_FUNCTION(device_repr)},
    {Py_tp_methods, device_methods},
    {Py_tp_getset, device_getset},
    {0, NULL},
};

DRUPE_PY_SPEC(Device, "drupe.Device", drupe_py_device, Py_TPFLAGS_HAVE_GC, device_slots);

/* --- Functions of the module --------------------------------------------------------------------------- */

static PyObject *module_devices(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const drupe_py_signature signature = DRUPE_PY_SIGNATURE("devices", 1, 0, DRUPE_PY_NAME_filter);
    drupe_py_state *state = drupe_py_state_of_module(module);
    PyObject *given[1];
    const char *filter = NULL;
    if (!drupe_py_enter(state) || !drupe_py_args(state, &signature, args, nargs, kwnames, given)) return NULL;
    if (drupe_py_given(given[0]) && !(filter = PyUnicode_AsUTF8(given[0]))) return NULL;
    drupe_device **devices = PyMem_New(drupe_device *, SUBS_MAX);
    if (!devices) return PyErr_NoMemory();
    size_t count = 0;
    drupe_status status;
    PyThreadState *thread = PyEval_SaveThread();
    status = drupe_device_list(filter, devices, SUBS_MAX, &count);
    PyEval_RestoreThread(thread);
    PyObject *result = NULL;
    if (status != DRUPE_OK)
        drupe_py_raise(state, NULL);
    else
        result = subs_list(state, devices, count < SUBS_MAX ? count : SUBS_MAX);
    PyMem_Free(devices);
    return result;
}

static PyObject *module_known_devices(PyObject *module, PyObject *ignored)
{
    (void)ignored;
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!drupe_py_enter(state)) return NULL;
    drupe_device **devices = PyMem_New(drupe_device *, SUBS_MAX);
    if (!devices) return PyErr_NoMemory();
    PyObject *result = subs_list(state, devices, drupe_device_known(devices, SUBS_MAX));
    PyMem_Free(devices);
    return result;
}

PyMethodDef drupe_py_device_functions[] = {
    {"devices", DRUPE_PY_FAST(module_devices),
     PyDoc_STR(
         "devices(filter=None)\n--\n\n"
         "The devices of this machine that match a filter such as \"cpu\" or \"opencl:gpu\", best first.")},
    {"_known_devices", module_known_devices, METH_NOARGS,
     PyDoc_STR("_known_devices()\n--\n\nThe devices of the backends that are open; opens none.")},
    {NULL, NULL, 0, NULL},
};
