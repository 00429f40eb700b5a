/* drupe._engine._Launcher: the compiled kernels of one kernel in Python.
 *
 * Entries are few, since most kernels are called with one kind of arguments, so they are compared one after
 * the other, the one that was used last first. */
#include "engine/python/dispatch/dispatch_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"
#include <stddef.h>
#include <structmember.h>

static drupe_py_launcher *launcher_of(PyObject *self)
{
    return (drupe_py_launcher *)self;
}

/* --- Entries ----------------------------------------------------------------------------------------------
 */

static void to_front(drupe_py_launcher *self, size_t index)
{
    drupe_py_entry *entry = self->entries[index];
    memmove(&self->entries[1], &self->entries[0], index * sizeof *self->entries);
    self->entries[0] = entry;
}

drupe_py_entry *drupe_py_launcher_find(drupe_py_launcher *self, const drupe_py_kernel_call *call,
                                       const drupe_queue *queue)
{
    for (size_t i = 0; i < self->count; i++) {
        drupe_py_entry *entry = self->entries[i];
        entry->references++;
        if (drupe_py_entry_serves(entry, call, queue)) {
            if (i > 0 && i < self->count && self->entries[i] == entry) to_front(self, i);
            return entry;
        }
        drupe_py_entry_release(entry);
        if (PyErr_Occurred()) break;
    }
    return NULL;
}

/* Take one out, which then is the caller's to release. */
static drupe_py_entry *take_out(drupe_py_launcher *self, size_t index)
{
    drupe_py_entry *entry = self->entries[index];
    self->count--;
    memmove(&self->entries[index], &self->entries[index + 1], (self->count - index) * sizeof *self->entries);
    return entry;
}

static void clear(drupe_py_launcher *self)
{
    while (self->count > 0) drupe_py_entry_release(take_out(self, self->count - 1));
}

/* It takes the place of one that serves the same calls, or else of the one that was used least lately. */
static void put(drupe_py_launcher *self, drupe_py_entry *entry)
{
    size_t i = 0;
    while (i < self->count && !drupe_py_entry_same(self->entries[i], entry)) i++;
    if (i == DRUPE_PY_ENTRIES) i--;
    drupe_py_entry *old = i < self->count ? take_out(self, i) : NULL;
    self->entries[self->count++] = entry;
    to_front(self, self->count - 1);
    drupe_py_entry_release(old);
}

/* --- The type ---------------------------------------------------------------------------------------------
 */

static PyObject *launcher_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"owner", "slow", NULL};
    drupe_py_state *state = drupe_py_state_of_type(type);
    PyObject *owner, *slow;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:_Launcher", names, &owner, &slow)) return NULL;
    PyObject *self = drupe_py_new(state, DRUPE_PY_TYPE_Launcher);
    if (!self) return NULL;
    launcher_of(self)->vectorcall = drupe_py_launcher_call;
    launcher_of(self)->owner = Py_NewRef(owner);
    launcher_of(self)->slow = Py_NewRef(slow);
    return self;
}

static int launcher_clear(PyObject *self)
{
    Py_CLEAR(launcher_of(self)->owner);
    clear(launcher_of(self));
    Py_XSETREF(launcher_of(self)->slow, Py_NewRef(Py_None)); /* it may still be called */
    return 0;
}

static void launcher_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    (void)launcher_clear(self);
    Py_CLEAR(launcher_of(self)->slow);
    drupe_py_free(self, DRUPE_PY_TYPE_Launcher);
}

static int launcher_traverse(PyObject *self, visitproc visit, void *arg)
{
    const drupe_py_launcher *launcher = launcher_of(self);
    Py_VISIT(launcher->owner);
    Py_VISIT(launcher->slow);
    for (size_t i = 0; i < launcher->count; i++) {
        Py_VISIT(launcher->entries[i]->kernel);
        Py_VISIT(launcher->entries[i]->watched);
        Py_VISIT(launcher->entries[i]->failures);
        Py_VISIT(launcher->entries[i]->told);
    }
    return drupe_py_traverse(self, visit, arg);
}

static PyObject *launcher_add(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"args",  "space", "kernel",   "plan", "form",       "watched",
                            "local", "grain", "failures", "room", "item_bytes", NULL};
    drupe_py_addition given = {0};
    if (!drupe_py_enter(drupe_py_state_of(self)) ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOO|OOOOO:add", names, &given.args, &given.space,
                                     &given.kernel, &given.plan, &given.form, &given.watched, &given.local,
                                     &given.grain, &given.failures, &given.room, &given.item_bytes))
        return NULL;
    drupe_py_entry *entry = drupe_py_entry_new(drupe_py_state_of(self), &given);
    if (!entry) return NULL;
    put(launcher_of(self), entry);
    Py_RETURN_NONE;
}

static PyObject *launcher_replace(PyObject *self, PyObject *args)
{
    drupe_py_launcher *launcher = launcher_of(self);
    PyObject *old, *kernel;
    PyTypeObject *type = drupe_py_state_of(self)->types[DRUPE_PY_TYPE_Kernel];
    Py_ssize_t count = 0;
    if (!PyArg_ParseTuple(args, "O!O!:replace", type, &old, type, &kernel)) return NULL;
    for (size_t i = 0; i < launcher->count; i++) {
        if ((PyObject *)launcher->entries[i]->kernel != old) continue;
        if (!drupe_py_entry_replace(launcher->entries[i], kernel)) return NULL;
        count++;
    }
    return PyLong_FromSsize_t(count);
}

static PyObject *launcher_forget(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    clear(launcher_of(self));
    Py_RETURN_NONE;
}

static PyObject *launcher_entries(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < launcher_of(self)->count; i++) {
        const drupe_py_entry *entry = launcher_of(self)->entries[i];
        PyObject *kernel = Py_NewRef(entry->kernel), *one = PyDict_Copy(entry->told);
        if (one && PyDict_SetItemString(one, "kernel", kernel) < 0) Py_CLEAR(one);
        Py_DECREF(kernel);
        drupe_py_append(&list, one);
    }
    return list;
}

static PyMethodDef launcher_methods[] = {
    {"add", DRUPE_PY_KEYWORDS(launcher_add),
     PyDoc_STR(
         "add($self, args, space, kernel, plan, form, watched, local=None, grain=1, failures=None,\n"
         "room=None, item_bytes=0)\n--\n\n"
         "From now on a drupe.Kernel serves calls with arguments and a space of these kinds, on the device\n"
         "of the arrays, as long as what is watched, (dict, name, value) or (cell, name, value), is the\n"
         "same; NotImplemented stands for no value. plan says what each parameter of the kernel is: "
         "(\"pointer\", path), (\"shape\", path, "
         "dim),\n"
         "(\"stride\", path, dim) in elements, (\"value\", path, dtype), (\"local\", path), "
         "(\"global_size\",\n"
         "dim), (\"local_size\", dim), (\"chunk\",) or (\"failures\",), the address of that array. form "
         "says\n"
         "how many work-items the engine is given. A group of host_groups whose local memory, and "
         "item_bytes\n"
         "for each of its work-items, take more than room bytes is left to slow().")},
    {"replace", launcher_replace, METH_VARARGS,
     PyDoc_STR("replace($self, old, new, /)\n--\n\nLet a drupe.Kernel serve in the place of another one, "
               "which has\n"
               "the same parameters. How many entries had that.")},
    {"clear", launcher_forget, METH_NOARGS, PyDoc_STR("clear($self, /)\n--\n\nForget all entries.")},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef launcher_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(drupe_py_launcher, vectorcall), READONLY, NULL},
    {"owner", T_OBJECT, offsetof(drupe_py_launcher, owner), READONLY, "What was given as that."},
    {"slow", T_OBJECT, offsetof(drupe_py_launcher, slow), READONLY, "What was given as that."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef launcher_getset[] = {
    {"entries", launcher_entries, NULL, "What was added, as dicts; what was used last comes first.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot launcher_slots[] = {
    {Py_tp_doc,
     (void *)PyDoc_STR(
         "_Launcher(owner, slow)\n--\n\n"
         "Calls of one kernel in Python: launcher(space, wait_for, args) gives its Event. A call that\n"
         "no entry serves is one of slow(space, wait_for, args), which launches it itself and gives\n"
         "the Event, or adds an entry for it and gives None.")},
    {Py_tp_new, DRUPE_PY_FUNCTION(launcher_new)},
    {Py_tp_dealloc, DRUPE_PY_FUNCTION(launcher_dealloc)},
    {Py_tp_traverse, DRUPE_PY_FUNCTION(launcher_traverse)},
    {Py_tp_clear, DRUPE_PY_FUNCTION(launcher_clear)},
    {Py_tp_call, DRUPE_PY_FUNCTION(PyVectorcall_Call)},
    {Py_tp_methods, launcher_methods},
    {Py_tp_members, launcher_members},
    {Py_tp_getset, launcher_getset},
    {0, NULL},
};

DRUPE_PY_SPEC(Launcher, "drupe._engine._Launcher", drupe_py_launcher,
              Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, launcher_slots);

/* --- For the module ---------------------------------------------------------------------------------------
 */

static PyObject *local_accessor(PyObject *module, PyObject *class)
{
    drupe_py_state *state = drupe_py_state_of_module(module);
    if (!PyType_Check(class)) {
        PyErr_Format(PyExc_TypeError, "LocalAccessor is a class, not %s", Py_TYPE(class)->tp_name);
        return NULL;
    }
    Py_XSETREF(state->local_accessor, Py_NewRef(class));
    Py_RETURN_NONE;
}

PyMethodDef drupe_py_dispatch_functions[] = {
    {"_local_accessor", local_accessor, METH_O,
     PyDoc_STR("_local_accessor(cls, /)\n--\n\nTell the class whose instances are local memory of kernels in "
               "Python.\n"
               "They have a shape, _dtype (a data type or its name) and _nbytes.")},
    {NULL, NULL, 0, NULL},
};
