/* Plans: what the parameters of a compiled kernel are, taken from a call.
 *
 * A plan is read once, when its kernel is added, and checked against what the compiler told of the
 * parameters. Filling is the hot path: it only fails for a number that does not fit, and leaves the complaint
 * to Python.
 */
#include "engine/python/dispatch/dispatch_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/submit/py_submit_room.h"

#define SHARES 8u  /* of the range for each worker, as many as the host device makes */
#define ROUND  64u /* work-items: chunks of neighbours share no cache line of elements */

/* Values come first, since to take them may run Python code. */
enum { VALUE, LOCAL, SHAPE, GLOBAL_SIZE, LOCAL_SIZE, CHUNK, STRIDE, POINTER, FAILURES, KINDS };

static const struct {
    const char *word;
    int count; /* of the tuple that is a step */
} kinds[KINDS] = {
    [VALUE] = {"value", 3},           [LOCAL] = {"local", 2},
    [SHAPE] = {"shape", 3},           [GLOBAL_SIZE] = {"global_size", 2},
    [LOCAL_SIZE] = {"local_size", 2}, [CHUNK] = {"chunk", 1},
    [STRIDE] = {"stride", 3},         [POINTER] = {"pointer", 2},
    [FAILURES] = {"failures", 1},
};

/* --- Reading ----------------------------------------------------------------------------------------------
 */

static bool on_host(const drupe_py_entry *entry)
{
    return entry->form == DRUPE_PY_FORM_HOST_RANGE || entry->form == DRUPE_PY_FORM_HOST_GROUPS;
}

static bool refuse(PyObject *step, const char *why)
{
    if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "%R in a plan: %s", step, why);
    return false;
}

static int kind_of(PyObject *step)
{
    PyObject *word = PyTuple_Check(step) && PyTuple_GET_SIZE(step) > 0 ? PyTuple_GET_ITEM(step, 0) : NULL;
    for (int i = 0; word && PyUnicode_Check(word) && i < KINDS; i++)
        if (PyUnicode_CompareWithASCIIString(word, kinds[i].word) == 0)
            return PyTuple_GET_SIZE(step) == kinds[i].count ? i : -1;
    return -1;
}

/* "float32", or "complex64.re", "complex64.im" */
static bool read_dtype(PyObject *object, drupe_py_step *to)
{
    const char *text = PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : NULL;
    const char *dot = text ? strchr(text, '.') : NULL;
    char name[16];
    if (!text || strlen(text) >= sizeof name) return false;
    PyOS_snprintf(name, sizeof name, "%.*s", (int)(dot ? dot - text : (ptrdiff_t)strlen(text)), text);
    drupe_dtype dtype = drupe_dtype_find(name);
    if (dtype == DRUPE_DTYPE_NONE) return false;
    bool complex = drupe_dtype_kind(dtype) == 'c';
    to->part = !dot ? 0 : strcmp(dot, ".re") == 0 ? 1 : strcmp(dot, ".im") == 0 ? 2 : 3;
    if (to->part == 3 || complex != (to->part > 0)) return false;
    to->dtype = (int8_t)drupe_dtype_real(dtype);
    to->scalar = (uint8_t)(complex ? DRUPE_SCALAR_UNKNOWN : drupe_py_scalar_of(dtype));
    to->size = (uint8_t)drupe_dtype_size((drupe_dtype)to->dtype);
    return true;
}

static bool read_dim(PyObject *object, int dims, drupe_py_step *to)
{
    Py_ssize_t dim = PyLong_AsSsize_t(object);
    if (dim < 0 || dim >= dims) return false;
    to->dim = (uint8_t)dim;
    return true;
}

/* The number of dimensions of what the step's node is, if it has some that `what` tells, or 0. */
static int dims_of(drupe_py_state *state, const drupe_py_kernel_call *call, const drupe_py_step *to)
{
    size_t shape[DRUPE_MAX_DIMS];
    PyObject *object = call->objects[to->node];
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_Array)) return drupe_py_array_of(object)->ndim;
    if (to->what != SHAPE || Py_TYPE(object) != (PyTypeObject *)state->local_accessor) return 0;
    return drupe_py_local_shape(object, shape);
}

/* What a step takes of an argument. */
static bool read_argument(drupe_py_state *state, const drupe_py_entry *entry, PyObject *step, PyObject *args,
                          const drupe_py_kernel_call *call, drupe_py_step *to)
{
    int node = drupe_py_call_find(args, PyTuple_GET_ITEM(step, 1));
    if (node < 0) return false;
    PyObject *object = call->objects[node];
    to->node = (uint8_t)node;
    switch (to->what) {
    case POINTER: return drupe_py_is(state, object, DRUPE_PY_TYPE_Array) || refuse(step, "it is no array");
    case VALUE:
        if (!drupe_py_call_number(state, object)) return refuse(step, "it is no number");
        return read_dtype(PyTuple_GET_ITEM(step, 2), to) || refuse(step, "there is no such type of a value");
    case LOCAL:
        to->size = on_host(entry) ? sizeof(int64_t) : 0;
        return Py_TYPE(object) == (PyTypeObject *)state->local_accessor ||
               refuse(step, "it is no LocalAccessor");
    default:
        return read_dim(PyTuple_GET_ITEM(step, 2), dims_of(state, call, to), to) ||
               refuse(step, "it has no such dimension");
    }
}

static bool read_step(drupe_py_state *state, const drupe_py_entry *entry, PyObject *step, PyObject *args,
                      const drupe_py_kernel_call *call, drupe_py_step *to)
{
    int what = kind_of(step);
    if (what < 0) return refuse(step, "it is not known, or has another number of parts");
    to->what = (uint8_t)what;
    to->size = what == POINTER || what == FAILURES ? sizeof(void *) : sizeof(int64_t);
    switch (what) {
    case CHUNK:
        return entry->form == DRUPE_PY_FORM_HOST_RANGE || refuse(step, "only a host_range has chunks");
    case FAILURES: return entry->failures || refuse(step, "failures= is missing");
    case GLOBAL_SIZE:
        return read_dim(PyTuple_GET_ITEM(step, 1), call->dims, to) ||
               refuse(step, "there is no such dimension");
    case LOCAL_SIZE:
        return read_dim(PyTuple_GET_ITEM(step, 1), call->grouped ? call->dims : 0, to) ||
               refuse(step, "there is no such dimension of a group");
    default: return read_argument(state, entry, step, args, call, to);
    }
}

/* Against what the compiler told. */
static bool check_step(const drupe_py_kernel *kernel, PyObject *step, const drupe_py_step *to)
{
    if (!kernel->typed) return true;
    const drupe_arg_info *info = &kernel->params[to->index];
    drupe_arg_kind kind = to->what == POINTER || to->what == FAILURES ? DRUPE_ARG_POINTER
                          : to->size == 0                             ? DRUPE_ARG_LOCAL
                                                                      : DRUPE_ARG_VALUE;
    size_t size = drupe_py_scalar_size(info->scalar) * info->lanes;
    if (info->kind == kind && (kind != DRUPE_ARG_VALUE || size == 0 || size == to->size)) return true;
    PyErr_Format(PyExc_ValueError, "%R in a plan: the kernel's parameter %d ('%s') is %s", step,
                 (int)to->index, info->name, info->type_name);
    return false;
}

/* In the order in which they are filled. */
static void insert(drupe_py_entry *entry, const drupe_py_step *step)
{
    size_t at = entry->nsteps++;
    for (; at > 0 && entry->steps[at - 1].what > step->what; at--) entry->steps[at] = entry->steps[at - 1];
    entry->steps[at] = *step;
}

/* A kernel that did not run has noted no failure, and may note one whatever became of the one before. */
static void set_effects(drupe_py_entry *entry)
{
    const drupe_py_kernel *kernel = entry->kernel;
    entry->effects = (drupe_effects){UINT64_MAX, UINT64_MAX, 0};
    for (size_t i = 0; i < kernel->nparams && i < DRUPE_PY_PARAMETERS; i++)
        if (kernel->params[i].reads_only) entry->effects.writes &= ~(UINT64_C(1) << i);
    for (size_t i = 0; i < entry->nsteps; i++) {
        if (entry->steps[i].what != FAILURES) continue;
        entry->effects.reads &= ~(UINT64_C(1) << entry->steps[i].index);
        entry->effects.writes &= ~(UINT64_C(1) << entry->steps[i].index);
    }
}

bool drupe_py_plan_read(drupe_py_state *state, drupe_py_entry *entry, PyObject *plan, PyObject *args,
                        const drupe_py_kernel_call *call)
{
    const drupe_py_kernel *kernel = entry->kernel;
    Py_ssize_t count = PyTuple_GET_SIZE(plan);
    if (count > DRUPE_PY_PARAMETERS || (kernel->counted && (size_t)count != kernel->nparams)) {
        PyErr_Format(PyExc_ValueError,
                     "a plan of %zd parameters for the kernel '%s', which has %zu; at most %d", count,
                     drupe_kernel_name(kernel->kernel), kernel->nparams, DRUPE_PY_PARAMETERS);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        drupe_py_step step = {.index = (uint8_t)i};
        PyObject *given = PyTuple_GET_ITEM(plan, i);
        if (!read_step(state, entry, given, args, call, &step) || !check_step(kernel, given, &step))
            return false;
        insert(entry, &step);
    }
    set_effects(entry);
    return true;
}

/* --- Filling ----------------------------------------------------------------------------------------------
 */

/* The chunks of a range, and how many work-items each has: as many chunks as the host device makes shares, of
 * at least `grain`. */
static size_t make_chunks(const drupe_py_entry *entry, size_t total, size_t *chunk)
{
    size_t shares = entry->workers * SHARES, size = total / shares + (total % shares > 0);
    if (size < entry->grain) size = entry->grain;
    if (size > ROUND) size += (ROUND - size % ROUND) % ROUND;
    *chunk = size > 0 ? size : 1;
    return total / *chunk + (total % *chunk > 0);
}

static size_t product(const size_t *sizes, int dims)
{
    size_t items = 1;
    for (int i = 0; i < dims; i++) items *= sizes[i];
    return items;
}

/* The engine's dimension 0 runs fastest, which is the last one of the call. */
static size_t fill_range(const drupe_py_entry *entry, const drupe_py_kernel_call *call, drupe_range *range)
{
    size_t chunk = 0;
    *range = (drupe_range){.dims = 1};
    switch (entry->form) {
    case DRUPE_PY_FORM_HOST_RANGE:
        range->global[0] = make_chunks(entry, product(call->global, call->dims), &chunk);
        return chunk;
    case DRUPE_PY_FORM_HOST_GROUPS:
        range->global[0] = 1;
        for (int i = 0; i < call->dims; i++) range->global[0] *= call->global[i] / call->local[i];
        return 0;
    default: break;
    }
    range->dims = (uint32_t)call->dims;
    for (int i = 0; i < call->dims; i++) {
        int d = call->dims - 1 - i;
        size_t local = entry->form == DRUPE_PY_FORM_GROUPS ? call->local[i] : entry->local[d];
        range->global[d] = call->global[i];
        range->local[d] = local;
        if (local > 0) range->global[d] += (local - call->global[i] % local) % local;
    }
    return 0;
}

/* What is the matter with a value: 0 or -1, as drupe_py_plan_fill(). */
static int misfit(void)
{
    return !PyErr_Occurred() || drupe_py_forgive() ? 0 : -1;
}

/* A number that needs a conversion, such as one of NumPy's or a part of a complex one. */
static int fill_number(drupe_py_state *state, PyObject *object, const drupe_py_step *step, uint64_t *word)
{
    drupe_scalar scalar;
    if (drupe_py_scalar_arg(state, object, &scalar) <= 0) return misfit();
    if (step->part > 0) {
        bool complex = scalar.kind == DRUPE_SCALAR_KIND_COMPLEX;
        scalar.f = step->part == 1 ? scalar.f : complex ? scalar.im : 0;
        scalar.kind = DRUPE_SCALAR_KIND_FLOAT;
    }
    *word = 0;
    return drupe_scalar_bytes(&scalar, (drupe_dtype)step->dtype, word) == DRUPE_OK;
}

/* The bytes of a LocalAccessor. */
static int fill_local(drupe_py_state *state, PyObject *object, uint64_t *word)
{
    size_t bytes = 0;
    PyObject *number = PyObject_GetAttr(object, state->names[DRUPE_PY_NAME__nbytes]);
    bool good = number && drupe_py_size(number, "_nbytes", &bytes) && bytes > 0;
    Py_XDECREF(number);
    *word = bytes;
    return good ? 1 : misfit();
}

static int fill_shape(drupe_py_state *state, PyObject *object, const drupe_py_step *step, uint64_t *word)
{
    size_t shape[DRUPE_MAX_DIMS];
    if (drupe_py_is(state, object, DRUPE_PY_TYPE_Array)) {
        *word = drupe_py_array_of(object)->shape[step->dim];
        return 1;
    }
    if (drupe_py_local_shape(object, shape) <= step->dim) return misfit();
    *word = shape[step->dim];
    return 1;
}

/* Python code that ran after the call was read may have made it pending once more. */
static inline int fill_pointer(const drupe_array *array, drupe_py_filled *filled, size_t index)
{
    if (array->node) return DRUPE_PY_AGAIN;
    /* Without elements there may be no memory at the address. */
    bool empty = array->size == 0;
    filled->memories[index] = empty ? NULL : array->memory;
    filled->words[index] = empty ? 0 : (uintptr_t)drupe_array_pointer(array);
    return 1;
}

static inline int fill_step(drupe_py_state *state, const drupe_py_entry *entry,
                            const drupe_py_kernel_call *call, const drupe_py_step *step, uint64_t chunk,
                            drupe_py_filled *filled)
{
    uint64_t *word = &filled->words[step->index];
    PyObject *const *object = &call->objects[step->node]; /* if the step has one */
    switch (step->what) {
    case POINTER: return fill_pointer(drupe_py_array_of(*object), filled, step->index);
    case VALUE:
        return drupe_py_quick_number(*object, step->scalar, word) ? 1
                                                                  : fill_number(state, *object, step, word);
    case SHAPE: return fill_shape(state, *object, step, word);
    case STRIDE: *word = (uint64_t)drupe_py_array_of(*object)->strides[step->dim]; return 1;
    case GLOBAL_SIZE: *word = call->global[step->dim]; return 1;
    case LOCAL_SIZE: *word = call->local[step->dim]; return 1;
    case CHUNK: *word = chunk; return 1;
    case LOCAL: return fill_local(state, *object, word);
    default: return fill_pointer(drupe_py_array_of(entry->failures), filled, step->index);
    }
}

static void make_args(const drupe_py_entry *entry, drupe_py_filled *filled)
{
    for (size_t i = 0; i < entry->nsteps; i++) {
        const drupe_py_step *step = &entry->steps[i];
        drupe_arg *arg = &filled->args[step->index];
        const uint64_t *word = &filled->words[step->index];
        if (step->what == POINTER || step->what == FAILURES)
            *arg = (drupe_arg){DRUPE_ARG_POINTER, sizeof(void *), word};
        else if (step->size == 0)
            *arg = (drupe_arg){DRUPE_ARG_LOCAL, (size_t)*word, NULL};
        else
            *arg = (drupe_arg){DRUPE_ARG_VALUE, step->size, word};
    }
}

/* A group's memory lies on a thread's stack, whose end is only found where that can be caught. */
static bool has_room(const drupe_py_entry *entry, const drupe_py_kernel_call *call,
                     const drupe_py_filled *filled)
{
    if (entry->form != DRUPE_PY_FORM_HOST_GROUPS || entry->room == SIZE_MAX) return true;
    size_t left = entry->room, items = product(call->local, call->dims);
    if (entry->item_bytes > 0 && items > left / entry->item_bytes) return false;
    left -= items * entry->item_bytes;
    for (size_t i = 0; i < entry->nsteps && entry->steps[i].what <= LOCAL; i++) {
        if (entry->steps[i].what != LOCAL) continue;
        const uint64_t bytes = filled->words[entry->steps[i].index];
        if (bytes > left) return false;
        left -= bytes;
    }
    return true;
}

int drupe_py_plan_fill(drupe_py_state *state, const drupe_py_entry *entry, const drupe_py_kernel *kernel,
                       const drupe_py_kernel_call *call, drupe_py_filled *filled)
{
    const size_t chunk = fill_range(entry, call, &filled->range);
    for (size_t i = 0; i < entry->nsteps; i++) {
        int result = fill_step(state, entry, call, &entry->steps[i], chunk, filled);
        if (result != 1) return result;
    }
    if (!has_room(entry, call, filled)) return 0;
    if (!kernel->worded) make_args(entry, filled);
    return 1;
}
