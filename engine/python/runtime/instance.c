/* Instances of our types come and go, and are counted; which module an object belongs to. */
#include "engine/python/runtime/runtime_room.h"

static struct PyModuleDef *module_def;

void drupe_py_instances_open(struct PyModuleDef *def)
{
    module_def = def;
}

drupe_py_state *drupe_py_state_of_pair(PyObject *a, PyObject *b)
{
    PyObject *const both[] = {a, b};
    for (int i = 0; i < 2; i++) {
        PyTypeObject *type = Py_TYPE(both[i]);
        if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) continue;
        PyObject *module = PyType_GetModuleByDef(type, module_def);
        if (module) return drupe_py_state_of_module(module);
        PyErr_Clear();
    }
    return NULL;
}

int drupe_py_type_add(PyObject *module, PyType_Spec *spec, PyTypeObject **kept)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    const int result = type ? PyModule_AddType(module, (PyTypeObject *)type) : -1;
    if (kept)
        *kept = (PyTypeObject *)type;
    else
        Py_XDECREF(type);
    return result;
}

/* Instances alive, for leak tests. Not in the module's state, which types cannot reach any more when the
 * interpreter ends and their last instances go. */
static Py_ssize_t live_instances[DRUPE_PY_TYPE_COUNT];

PyObject *drupe_py_new(drupe_py_state *state, drupe_py_type type)
{
    PyTypeObject *class = state->types[type];
    PyObject *self = type == DRUPE_PY_TYPE_Event && state->nspares > 0
                         ? PyObject_Init(state->spares[--state->nspares], class)
                         : class->tp_alloc(class, 0);
    if (self) live_instances[type]++;
    return self;
}

PyObject *drupe_py_new_of(drupe_py_state *state, drupe_py_type type, Py_ssize_t items)
{
    PyTypeObject *class = state->types[type];
    PyObject *self = class->tp_alloc(class, items);
    if (self) live_instances[type]++;
    return self;
}

/* One Event comes and goes with nearly each submission: this makes such a launch 3 % shorter. */
static bool keep_spare(PyObject *self)
{
    drupe_py_state *state = drupe_py_state_left(self);
    if (!state || state->nspares < 0 || state->nspares == DRUPE_PY_SPARES) return false;
    state->spares[state->nspares++] = self;
    return true;
}

void drupe_py_spares_clear(drupe_py_state *state)
{
    while (state->nspares > 0) PyObject_Free(state->spares[--state->nspares]);
    state->nspares = -1;
}

void drupe_py_free(PyObject *self, drupe_py_type type)
{
    PyTypeObject *class = Py_TYPE(self);
    live_instances[type]--;
    if (type != DRUPE_PY_TYPE_Event || !keep_spare(self)) class->tp_free(self);
    Py_DECREF(class);
}

int drupe_py_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    return 0;
}

Py_ssize_t drupe_py_instances(drupe_py_type type)
{
    return live_instances[type];
}
