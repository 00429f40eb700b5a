/* The extension module drupe._engine.
 *
 * Multi-phase, with every object in the module's state, so that nothing but the engine itself is shared by
 * the whole process. */
#include "engine/python/array/py_array_room.h"
#include "engine/python/dispatch/dispatch_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/module/module_room.h"
#include "engine/python/native/py_native_room.h"
#include "engine/python/notebook/notebook_room.h"
#include "engine/python/submit/py_submit_room.h"
#include "engine/python/types/types_room.h"
#include "engine/python/waits/waits_room.h"
#include <stddef.h>

static const char *const name_texts[] = {
#define NAME_TEXT(name) #name,
    DRUPE_PY_NAMES(NAME_TEXT)
#undef NAME_TEXT
};

static PyType_Spec *const specs[] = {
#define SPEC(type) &drupe_py_##type##_spec,
    DRUPE_PY_TYPES(SPEC)
#undef SPEC
};

static PyObject *module_live(PyObject *module, PyObject *ignored)
{
    (void)module;
    (void)ignored;
    PyObject *live = PyDict_New();
    if (!live) return NULL;
    drupe_py_keepalive_collect();
    for (int i = 0; i < DRUPE_PY_TYPE_COUNT; i++) {
        const char *name = strrchr(specs[i]->name, '.') + 1;
        PyObject *count = PyLong_FromSsize_t(drupe_py_instances((drupe_py_type)i));
        if (!count || PyDict_SetItemString(live, name, count) < 0) {
            Py_XDECREF(count);
            Py_DECREF(live);
            return NULL;
        }
        Py_DECREF(count);
    }
    return live;
}

static PyMethodDef own_functions[] = {
    {"_live", module_live, METH_NOARGS,
     PyDoc_STR("_live()\n--\n\nThe number of living instances of each type, for leak tests.")},
    {NULL, NULL, 0, NULL},
};

static const char *short_name(const PyTypeObject *type)
{
    return strrchr(type->tp_name, '.') + 1;
}

/* --- Members that are written in Python ----------------------------------------------------------------- */

static PyObject *member_get(PyObject *object, void *getter)
{
    return PyObject_CallOneArg(getter, object);
}

/* A property as an attribute of a type in C: IPython looks through those, for `?` and completion. It lives as
 * long as the process. */
static PyObject *attribute_of(PyTypeObject *type, PyObject *name, PyObject *property)
{
    PyObject *getter = PyObject_GetAttrString(property, "fget"),
             *doc = PyObject_GetAttrString(property, "__doc__");
    PyGetSetDef *found = PyMem_Calloc(1, sizeof *found);
    PyObject *attribute = found ? NULL : PyErr_NoMemory();
    if (getter && doc && found) {
        *found = (PyGetSetDef){.name = PyUnicode_AsUTF8(name), .get = member_get, .closure = getter};
        if (doc != Py_None) found->doc = PyUnicode_AsUTF8(doc);
        attribute = PyDescr_NewGetSet(type, found);
    }
    if (attribute) return attribute;
    PyMem_Free(found);
    Py_XDECREF(getter);
    Py_XDECREF(doc);
    return NULL;
}

/* Set in the type's own dict, since it takes no new attributes. */
static int members_put(PyTypeObject *type, PyObject *members)
{
    PyObject *name, *member;
    for (Py_ssize_t at = 0;
         PyDict_Next(members, &at, &name, &member);) { /* both borrowed: nobody else has it */
        bool attribute = PyObject_TypeCheck(member, &PyProperty_Type);
        PyObject *value = attribute ? attribute_of(type, name, member) : Py_NewRef(member);
        int result = value ? PyDict_SetItem(type->tp_dict, name, value) : -1;
        Py_XDECREF(value);
        if (result < 0) return -1;
    }
    return 0;
}

static int members_add(PyTypeObject *type)
{
    PyObject *members = drupe_py_call("drupe._members", "of", "(sO)", short_name(type), type);
    int result = members ? members_put(type, members) : -1;
    PyType_Modified(type);
    Py_XDECREF(members);
    return result;
}

static int members_init(drupe_py_state *state)
{
    for (int i = 0; i < DRUPE_PY_TYPE_COUNT; i++)
        if (members_add(state->types[i]) < 0) return -1;
    return members_add(state->times);
}

static int types_init(PyObject *module, drupe_py_state *state)
{
    for (int i = 0; i < DRUPE_PY_TYPE_COUNT; i++) {
        if (drupe_py_type_add(module, specs[i], &state->types[i]) < 0) return -1;
    }
    drupe_py_memory_init(state);
    drupe_py_ranges_init(state);
    return drupe_py_lender_init(module) < 0 ? -1 : drupe_py_import_guard_init(module);
}

static PyStructSequence_Field times_fields[] = {
    {"queued", "when the work was given to the queue, in ns"},
    {"submitted", "when it was handed to the device, in ns"},
    {"started", "when the device began, in ns"},
    {"ended", "when the device was done, in ns"},
    {"duration", "ended - started, in ns"},
    {NULL, NULL},
};

static PyStructSequence_Desc times_desc = {
    "drupe.EventTimes",
    "The four times of an event in nanoseconds. Only differences between times of\n"
    "one device mean something.",
    times_fields, 5};

static int times_init(PyObject *module, drupe_py_state *state)
{
    state->times = PyStructSequence_NewType(&times_desc);
    return !state->times ? -1 : PyModule_AddType(module, state->times);
}

static int look_init(drupe_py_state *state)
{
    PyObject *globals = PyDict_New();
    if (!globals) return -1;
    state->look = PyRun_String("lambda: None", Py_eval_input, globals, globals);
    Py_DECREF(globals);
    return !state->look ? -1 : 0;
}

/* One for each thread and task, as context variables are. Set by drupe.device, read by drupe_py_device_arg().
 */
static int chosen_init(PyObject *module, drupe_py_state *state)
{
    state->chosen = PyContextVar_New("drupe.device", NULL);
    return !state->chosen ? -1 : PyModule_AddObjectRef(module, "_chosen_device", state->chosen);
}

static int names_init(drupe_py_state *state)
{
    for (int i = 0; i < DRUPE_PY_NAME_COUNT; i++) {
        state->names[i] = PyUnicode_InternFromString(name_texts[i]);
        if (!state->names[i]) return -1;
    }
    return 0;
}

static int functions_init(PyObject *module)
{
    PyMethodDef *const tables[] = {own_functions,
                                   drupe_py_device_functions,
                                   drupe_py_queue_functions,
                                   drupe_py_check_functions,
                                   drupe_py_pool_functions,
                                   drupe_py_park_functions,
                                   drupe_py_make_functions,
                                   drupe_py_task_functions,
                                   drupe_py_cache_functions,
                                   drupe_py_spirv_functions,
                                   drupe_py_trace_functions,
                                   drupe_py_failure_functions,
                                   drupe_py_live_functions,
                                   drupe_py_event_display_functions,
                                   drupe_py_notice_functions,
                                   drupe_py_site_functions,
                                   drupe_py_fault_functions,
                                   drupe_py_array_functions,
                                   drupe_py_numeric_functions,
                                   drupe_py_order_functions,
                                   drupe_py_index_functions,
                                   drupe_py_dlpack_functions,
                                   drupe_py_linalg_functions,
                                   drupe_py_pending_functions,
                                   drupe_py_view_functions,
                                   drupe_py_wait_functions,
                                   drupe_py_program_functions,
                                   drupe_py_dispatch_functions,
                                   NULL};
    for (size_t i = 0; tables[i]; i++)
        if (PyModule_AddFunctions(module, tables[i]) < 0) return -1;
    return PyModule_AddStringConstant(module, "__version__", drupe_version());
}

static int module_exec(PyObject *module)
{
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError, "drupe works in the main interpreter only: its devices belong to "
                                           "the whole process. Import it there.");
        return -1;
    }
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (names_init(state) < 0 || look_init(state) < 0 || chosen_init(module, state) < 0 ||
        drupe_py_errors_init(module, state) < 0 || times_init(module, state) < 0)
        return -1;
    if (types_init(module, state) < 0 || functions_init(module) < 0) return -1;
    if (drupe_py_dtypes_init(module, state) < 0 || drupe_py_operations_init(module, state) < 0) return -1;
    if (drupe_py_call_kernel_init(module) < 0 || drupe_py_ext_init(module, state) < 0 ||
        members_init(state) < 0)
        return -1;
    return drupe_py_link_init(module, state);
}

/* The objects of the state stand in front of its other members. */
#define STATE_OBJECTS (offsetof(drupe_py_state, spares) / sizeof(PyObject *))

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    PyObject **objects = PyModule_GetState(module);
    for (size_t i = 0; objects && i < STATE_OBJECTS; i++) Py_VISIT(objects[i]);
    return 0;
}

static int module_clear(PyObject *module)
{
    PyObject **objects = PyModule_GetState(module);
    if (objects) drupe_py_spares_clear(drupe_py_state_of_module(module));
    for (size_t i = 0; objects && i < STATE_OBJECTS; i++) Py_CLEAR(objects[i]);
    return 0;
}

static void module_free(void *module)
{
    (void)module_clear(module);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, DRUPE_PY_FUNCTION(module_exec)},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef engine_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "drupe._engine",
    .m_doc = "The device engine: devices, queues, memory, programs and arrays. Use it through `drupe`.",
    .m_size = sizeof(drupe_py_state),
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__engine(void);

PyMODINIT_FUNC PyInit__engine(void)
{
    drupe_py_instances_open(&engine_module);
    return PyModuleDef_Init(&engine_module);
}
