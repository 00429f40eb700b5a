/* Arguments of native functions.
 *
 * The usual ones, arrays of the declared type, small ints and floats, are taken without running Python code.
 * Everything else is looked at one by one, and so is what is wrong: its message names the function, the
 * argument's number and the declaration. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/native/py_native_room.h"

static const drupe_py_native_param *param_of(const drupe_py_native_call *call, size_t i)
{
    return call->function->declared ? &call->function->params[i] : NULL;
}

/* Put the function and the argument in front of the exception that is set. One that is made of other things
 * than a text, as an object's own may be, becomes the nearest that is. */
static bool fail(const drupe_py_native_call *call, size_t i)
{
    const drupe_py_native_param *param = param_of(call, i);
    PyObject *exception = drupe_py_exception_take();
    PyObject *const kinds[] = {PyExc_OverflowError, PyExc_TypeError, PyExc_ValueError, PyExc_BufferError};
    PyObject *kind = NULL;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && !kind; k++)
        if (PyErr_GivenExceptionMatches(exception, kinds[k])) kind = kinds[k];
    if (!kind) {
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
        Py_DECREF(exception);
        return false;
    }
    PyErr_Format(kind, "%s(), argument %zu%s%s%s: %S", drupe_native_function_name(call->function->function),
                 i + 1, param ? " (" : "", param ? param->text : "", param ? ")" : "", exception);
    Py_DECREF(exception);
    return false;
}

/* --- Where pointers lead ------------------------------------------------------------------------------- */

static bool type_fits(const drupe_py_native_param *param, drupe_dtype dtype, size_t itemsize)
{
    if (!param || param->any || dtype == param->dtype) return true;
    return param->bytes && itemsize == 1;
}

static bool type_refuse(const drupe_py_native_call *call, size_t i, const char *given)
{
    const drupe_py_native_param *param = param_of(call, i);
    PyErr_Format(PyExc_TypeError, "the elements are %s, not %s: convert them with astype()", given,
                 drupe_dtype_name(param->dtype));
    return fail(call, i);
}

/* Side by side, row by row or column by column. */
static bool lies_together(const drupe_array *array)
{
    if (drupe_array_contiguous(array)) return true;
    ptrdiff_t step = 1;
    for (int axis = 0; axis < array->ndim; axis++) {
        if (array->shape[axis] > 1 && array->strides[axis] != step) return false;
        step *= (ptrdiff_t)array->shape[axis];
    }
    return true;
}

static bool reaches(const drupe_queue *queue, const drupe_memory *memory)
{
    return !memory || drupe_memory_host_accessible(memory) ||
           drupe_device_kind(drupe_queue_device(queue)) == DRUPE_DEVICE_CPU;
}

/* Memory of a queue takes its place in the call. False where it does not fit, without an exception. */
static inline bool place(drupe_py_native_call *call, size_t i, drupe_queue *queue, drupe_memory *memory,
                         void *pointer)
{
    const drupe_py_native_param *param = param_of(call, i);
    drupe_native_arg *arg = &call->args[i];
    if (!call->queue) {
        call->queue = queue;
        call->queue_arg = i;
    }
    *arg = (drupe_native_arg){
        .words = {(uintptr_t)pointer, 0}, .reads_only = param && param->reads_only, .memory = memory};
    return call->queue == queue && reaches(queue, memory);
}

static bool place_refuse(drupe_py_native_call *call, size_t i, drupe_queue *queue, const drupe_memory *memory)
{
    const char *device = drupe_device_filter(drupe_queue_device(queue));
    if (!reaches(queue, memory)) {
        PyErr_Format(PyExc_ValueError,
                     "the array lies in memory of %s, which functions of the host cannot reach: copy it with "
                     "to_device(\"host\"), or make it with usm_type=\"shared\"",
                     device);
        return fail(call, i);
    }
    if (call->queue_given) return true;
    drupe_py_raise_text(call->state, DRUPE_E_PLACEMENT,
                        "%s(): arguments %zu (on %s) and %zu (on %s) live on different queues. Bring them "
                        "together with to_device(), or name the queue with queue= and order the work with "
                        "wait_for=.",
                        drupe_native_function_name(call->function->function), call->queue_arg + 1,
                        drupe_device_filter(drupe_queue_device(call->queue)), i + 1, device);
    return false;
}

static bool array_read(drupe_py_native_call *call, size_t i, const drupe_array *array)
{
    const size_t itemsize = drupe_dtype_size(array->dtype);
    if (!drupe_py_settle(call->state, array)) return false;
    if (!type_fits(param_of(call, i), array->dtype, itemsize))
        return type_refuse(call, i, drupe_dtype_name(array->dtype));
    if (!lies_together(array)) {
        PyErr_SetString(PyExc_ValueError,
                        "the array is a strided view, and a function needs its elements side "
                        "by side: pass drupe.array.asarray(x, copy=True)");
        return fail(call, i);
    }
    call->elements[i] = array->size;
    return place(call, i, array->queue, array->memory, array->size ? drupe_array_pointer(array) : NULL) ||
           place_refuse(call, i, array->queue, array->memory);
}

static bool memory_read(drupe_py_native_call *call, size_t i, PyObject *object)
{
    const drupe_py_native_param *param = param_of(call, i);
    drupe_memory *memory = ((drupe_py_memory *)object)->memory;
    const size_t nbytes = ((drupe_py_memory *)object)->nbytes;
    call->elements[i] = param && !param->any ? nbytes / drupe_dtype_size(param->dtype) : nbytes;
    return place(call, i, drupe_memory_queue(memory), memory, drupe_py_memory_pointer(object)) ||
           place_refuse(call, i, drupe_memory_queue(memory), memory);
}

/* --- Memory of Python objects -------------------------------------------------------------------------- */

/* NONE: a type that arrays do not have. */
static drupe_dtype dtype_of_view(const Py_buffer *view)
{
    const char *format = view->format ? view->format : "B";
    static const char *const kinds[] = {"b?", "ibhilqn", "uBHILQN", "fefd"};
    if (*format == '@' || *format == '=' || *format == '<' || *format == '^') format++;
    const bool complex = *format == 'Z';
    if (complex) format++;
    if (!*format || format[1]) return DRUPE_DTYPE_NONE;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (strchr(kinds[k] + 1, *format))
            return drupe_py_dtype_of_kind(complex ? 'c' : kinds[k][0], (size_t)view->itemsize);
    return DRUPE_DTYPE_NONE;
}

static bool view_check(const drupe_py_native_call *call, size_t i, const Py_buffer *view)
{
    const drupe_py_native_param *param = param_of(call, i);
    const char *format = view->format ? view->format : "B";
    if (strchr(format, 'O')) {
        PyErr_SetString(PyExc_TypeError, "its elements are Python objects, which C functions do not know");
        return fail(call, i);
    }
    if ((*format == '>' || *format == '!') && view->itemsize > 1) {
        PyErr_SetString(PyExc_TypeError,
                        "its elements have the other byte order: convert them with astype()");
        return fail(call, i);
    }
    const drupe_dtype dtype = dtype_of_view(view);
    if (type_fits(param, dtype, (size_t)view->itemsize)) return true;
    return type_refuse(call, i, dtype == DRUPE_DTYPE_NONE ? "of another type" : drupe_dtype_name(dtype));
}

static bool buffer_view(drupe_py_native_call *call, size_t i, PyObject *object, Py_buffer *view)
{
    const drupe_py_native_param *param = param_of(call, i);
    const bool writes = !param || !param->reads_only;
    if (PyObject_GetBuffer(object, view,
                           PyBUF_ANY_CONTIGUOUS | PyBUF_FORMAT | (writes ? PyBUF_WRITABLE : 0)) == 0)
        return true;
    if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_ValueError))
        return fail(call, i);
    PyErr_Clear();
    if (writes && PyObject_GetBuffer(object, view, PyBUF_ANY_CONTIGUOUS | PyBUF_FORMAT) == 0) {
        PyBuffer_Release(view);
        PyErr_SetString(PyExc_ValueError,
                        "it cannot be written, and the function may write it: pass a copy, or "
                        "declare the parameter as a pointer to const");
        return fail(call, i);
    }
    PyErr_Clear();
    if (PyObject_GetBuffer(object, view, PyBUF_FULL_RO) != 0) return fail(call, i); /* it says why */
    PyBuffer_Release(view);
    PyErr_SetString(PyExc_ValueError,
                    "its elements do not lie side by side: pass a contiguous copy, such as "
                    "numpy.ascontiguousarray(x), and assign it back if the function writes it");
    return fail(call, i);
}

static bool buffer_read(drupe_py_native_call *call, size_t i, PyObject *object)
{
    drupe_py_keepalive *keepalive = drupe_py_keepalive_new();
    if (!keepalive) return false;
    call->keepalives[call->nkeepalives++] = keepalive;
    if (!buffer_view(call, i, object, &keepalive->view) || !view_check(call, i, &keepalive->view))
        return false;
    const Py_buffer *view = &keepalive->view;
    const drupe_py_native_param *param = param_of(call, i);
    call->borrows = true;
    call->elements[i] = view->itemsize > 0 ? (size_t)(view->len / view->itemsize) : 0;
    if (param && param->any) call->elements[i] = (size_t)view->len;
    call->args[i] = (drupe_native_arg){.words = {view->len ? (uintptr_t)view->buf : 0, 0}};
    return true;
}

/* Text for a `const char *`, with a NUL behind it. */
static bool text_read(drupe_py_native_call *call, size_t i, PyObject *object)
{
    Py_ssize_t size;
    const char *text =
        PyBytes_Check(object) ? PyBytes_AsString(object) : PyUnicode_AsUTF8AndSize(object, &size);
    drupe_py_keepalive *keepalive = text ? drupe_py_keepalive_new() : NULL;
    if (!keepalive) return fail(call, i);
    keepalive->owner = Py_NewRef(object); /* a str keeps its text */
    call->keepalives[call->nkeepalives++] = keepalive;
    call->elements[i] = strlen(text) + 1;
    call->args[i] = (drupe_native_arg){.words = {(uintptr_t)text, 0}};
    return true;
}

/* --- Numbers ------------------------------------------------------------------------------------------- */

static bool number_store(drupe_py_native_call *call, size_t i, PyObject *object, drupe_dtype dtype,
                         uint64_t words[2])
{
    drupe_scalar scalar;
    size_t size;
    words[0] = words[1] = 0;
    const drupe_scalar_type type = drupe_py_scalar_of(dtype);
    if (dtype == DRUPE_BOOL && PyBool_Check(object)) {
        words[0] = object == Py_True;
        return true;
    }
    if (dtype != DRUPE_BOOL && type != DRUPE_SCALAR_UNKNOWN)
        return drupe_py_scalar_bytes(object, type, "the value", words, &size) || fail(call, i);
    const int found = drupe_py_scalar_arg(call->state, object, &scalar);
    if (found > 0 && (dtype != DRUPE_BOOL || scalar.kind == DRUPE_SCALAR_KIND_BOOL))
        return drupe_py_element_store(call->state, &scalar, dtype, (uint8_t *)words) || fail(call, i);
    if (found < 0) return fail(call, i);
    PyErr_Format(PyExc_TypeError, "the value must be a %s, not %s", dtype == DRUPE_BOOL ? "bool" : "number",
                 Py_TYPE(object)->tp_name);
    return fail(call, i);
}

/* The type by which a number without a declaration is passed; NONE: it is none. */
static drupe_dtype dtype_of_number(drupe_py_native_call *call, PyObject *object)
{
    if (PyBool_Check(object)) return DRUPE_BOOL;
    if (PyLong_Check(object)) return DRUPE_INT64;
    if (PyFloat_CheckExact(object)) return DRUPE_FLOAT64;
    if (PyComplex_CheckExact(object)) return DRUPE_COMPLEX128;
    drupe_dtype dtype = DRUPE_DTYPE_NONE;
    drupe_scalar scalar;
    if (drupe_py_scalar_arg(call->state, object, &scalar) <= 0) {
        PyErr_Clear();
        return DRUPE_DTYPE_NONE;
    }
    if (call->state->numpy_generic) { /* since it was looked at, if not before */
        PyObject *type = PyObject_GetAttrString(object, "dtype");
        if (!type || !drupe_py_dtype_arg(call->state, type, &dtype)) PyErr_Clear();
        Py_XDECREF(type);
    }
    return dtype;
}

static bool inside_read(drupe_py_native_call *call, size_t i, PyObject *object, drupe_dtype dtype)
{
    drupe_native_arg *arg = &call->args[i];
    *arg = (drupe_native_arg){.inside = true};
    call->elements[i] = 1;
    return number_store(call, i, object, dtype, arg->words);
}

/* The number that a ctypes object holds: a new reference, or NULL without an exception. */
static PyObject *ctypes_number(PyObject *object)
{
    PyObject *value = strcmp(Py_TYPE(Py_TYPE(object))->tp_name, "_ctypes.PyCSimpleType") == 0
                          ? PyObject_GetAttrString(object, "value")
                          : NULL;
    if (!value) PyErr_Clear();
    return value;
}

static bool value_read(drupe_py_native_call *call, size_t i, PyObject *object)
{
    const drupe_py_native_param *param = param_of(call, i);
    PyObject *number = ctypes_number(object);
    call->args[i] = (drupe_native_arg){.inside = false};
    call->elements[i] = SIZE_MAX;
    const bool good = number_store(call, i, number ? number : object, param->dtype, call->args[i].words);
    Py_XDECREF(number);
    return good;
}

/* --- One argument -------------------------------------------------------------------------------------- */

/* An object that stands for an Array or memory: what its attribute __drupe_array__ is. 1, 0, or -1. */
static int stand_in_read(drupe_py_native_call *call, size_t i, PyObject *object)
{
    PyObject *array = PyObject_GetAttrString(object, "__drupe_array__");
    if (!array) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
        PyErr_Clear();
        return 0;
    }
    call->owned[call->nowned++] = array;
    if (drupe_py_is(call->state, array, DRUPE_PY_TYPE_Array))
        return array_read(call, i, drupe_py_array_of(array)) ? 1 : -1;
    if (drupe_py_is_memory(call->state, array)) return memory_read(call, i, array) ? 1 : -1;
    PyErr_SetString(PyExc_TypeError, "__drupe_array__ is to be an array of drupe.array, or USM memory");
    fail(call, i);
    return -1;
}

static bool pointer_refuse(drupe_py_native_call *call, size_t i, PyObject *object)
{
    PyErr_Format(PyExc_TypeError,
                 "an array of drupe.array or NumPy, USM memory, a number or None is needed, not %s",
                 Py_TYPE(object)->tp_name);
    return fail(call, i);
}

static bool pointer_read(drupe_py_native_call *call, size_t i, PyObject *object)
{
    const drupe_py_native_param *param = param_of(call, i);
    if (drupe_py_is(call->state, object, DRUPE_PY_TYPE_Array))
        return array_read(call, i, drupe_py_array_of(object));
    if (drupe_py_is_memory(call->state, object)) return memory_read(call, i, object);
    if (object == Py_None) {
        call->args[i] = (drupe_native_arg){.inside = false};
        call->elements[i] = SIZE_MAX;
        return true;
    }
    if (param && param->bytes && param->reads_only && (PyUnicode_Check(object) || PyBytes_Check(object)))
        return text_read(call, i, object);
    const drupe_dtype dtype = dtype_of_number(call, object);
    if (dtype != DRUPE_DTYPE_NONE)
        return inside_read(call, i, object, param && !param->any ? param->dtype : dtype);
    const int stood = stand_in_read(call, i, object);
    if (stood != 0) return stood > 0;
    return PyObject_CheckBuffer(object) ? buffer_read(call, i, object) : pointer_refuse(call, i, object);
}

static inline bool quick_array(drupe_py_native_call *call, size_t i, PyObject *object)
{
    const drupe_array *array = drupe_py_array_of(object);
    const drupe_py_native_param *param = param_of(call, i);
    const bool flat = array->ndim == 1 && array->strides[0] == 1;
    if (array->node || array->size == 0 || (!flat && !drupe_array_contiguous(array))) return false;
    if (param && !param->any && param->dtype != array->dtype) return false;
    call->elements[i] = array->size;
    return place(call, i, array->queue, array->memory, drupe_array_pointer(array));
}

static inline bool quick_read(drupe_py_native_call *call, size_t i, PyObject *object)
{
    const drupe_py_native_param *param = param_of(call, i);
    drupe_native_arg *arg = &call->args[i];
    if (param && !param->pointer) {
        *arg = (drupe_native_arg){.inside = false};
        return drupe_py_quick_number(object, drupe_py_scalar_of(param->dtype), &arg->words[0]);
    }
    if (drupe_py_is(call->state, object, DRUPE_PY_TYPE_Array)) return quick_array(call, i, object);
    if (param) return false;
    *arg = (drupe_native_arg){.inside = true};
    call->elements[i] = 1;
    return drupe_py_quick_number(object, DRUPE_SCALAR_I64, &arg->words[0]) ||
           drupe_py_quick_number(object, DRUPE_SCALAR_F64, &arg->words[0]);
}

/* --- All of them --------------------------------------------------------------------------------------- */

static bool count_check(const drupe_py_native_call *call, size_t nargs)
{
    const drupe_py_native_function *function = call->function;
    const char *name = drupe_native_function_name(function->function);
    if (function->declared ? nargs == function->count : nargs <= DRUPE_NATIVE_PLAIN) return true;
    if (function->declared)
        PyErr_Format(PyExc_TypeError, "%s() takes %zu argument%s, and %zu %s given", name, function->count,
                     function->count == 1 ? "" : "s", nargs, nargs == 1 ? "was" : "were");
    else
        PyErr_Format(
            PyExc_TypeError,
            "%s() was given %zu arguments; without a declaration there are at most %u: declare it with "
            "library.declare(\"%s\", ...)",
            name, nargs, DRUPE_NATIVE_PLAIN, name);
    return false;
}

/* The value of an integer; a negative one asks for nothing. */
static uint64_t factor_of(const drupe_py_native_call *call, size_t i)
{
    const drupe_native_arg *arg = &call->args[i];
    const drupe_py_native_param *param = &call->function->params[i];
    uint64_t word = arg->words[0];
    const size_t bits = 8 * drupe_dtype_size(param->dtype);
    if (drupe_dtype_kind(param->dtype) != 'i') return word;
    const int64_t number = (int64_t)(word << (64 - bits)) >> (64 - bits);
    return number > 0 ? (uint64_t)number : 0;
}

/* How many elements argument `i` has to have at least. */
static uint64_t least_of(const drupe_py_native_call *call, size_t i)
{
    const drupe_py_native_param *param = &call->function->params[i];
    uint64_t least = param->least;
    for (size_t k = 0; k < param->nfactors && least; k++)
        if (__builtin_mul_overflow(least, factor_of(call, param->factors[k]), &least)) least = UINT64_MAX;
    return least;
}

/* The first array that has fewer elements than the declaration asks for, or the number of arguments. */
static size_t find_small(const drupe_py_native_call *call)
{
    if (!call->function->declared) return call->count;
    for (size_t i = 0; i < call->count; i++) {
        const drupe_py_native_param *param = &call->function->params[i];
        if (param->least && param->pointer && call->elements[i] < least_of(call, i)) return i;
    }
    return call->count;
}

static bool sizes_check(const drupe_py_native_call *call)
{
    const size_t i = find_small(call);
    if (i == call->count) return true;
    PyErr_Format(PyExc_ValueError, "it has %zu element%s, and the declaration asks for %llu",
                 call->elements[i], call->elements[i] == 1 ? "" : "s", (unsigned long long)least_of(call, i));
    return fail(call, i);
}

bool drupe_py_native_quick(drupe_py_native_call *call, PyObject *const *args, size_t nargs)
{
    const drupe_py_native_function *function = call->function;
    drupe_queue *given = call->queue;
    call->count = nargs;
    bool good = function->declared ? nargs == function->count : nargs <= DRUPE_NATIVE_PLAIN;
    for (size_t i = 0; i < nargs && good; i++) good = quick_read(call, i, args[i]);
    if (good && find_small(call) == nargs) return true;
    call->queue = given;
    return false;
}

bool drupe_py_native_read(drupe_py_native_call *call, PyObject *const *args, size_t nargs)
{
    if (!count_check(call, nargs)) return false;
    call->count = nargs;
    for (size_t i = 0; i < nargs; i++) {
        if (quick_read(call, i, args[i])) continue;
        const drupe_py_native_param *param = param_of(call, i);
        if (!(param && !param->pointer ? value_read(call, i, args[i]) : pointer_read(call, i, args[i])))
            return false;
    }
    return sizes_check(call);
}

static bool result_refuse(drupe_py_native_call *call, const char *why)
{
    PyErr_Format(PyExc_TypeError, "%s(): result= is to be an array of one %s%s",
                 drupe_native_function_name(call->function->function),
                 drupe_dtype_name(call->function->result), why);
    return false;
}

static bool result_array(drupe_py_native_call *call, const drupe_array *array)
{
    if (!drupe_py_settle(call->state, array)) return false;
    if (array->dtype != call->function->result || array->size == 0) return result_refuse(call, "");
    if (!reaches(array->queue, array->memory)) return result_refuse(call, " that the host can reach");
    if (call->queue && call->queue != array->queue && !call->queue_given)
        return result_refuse(call, " on the queue of the arguments");
    if (!call->queue) call->queue = array->queue;
    call->result = drupe_array_pointer(array);
    call->result_memory = array->memory;
    return true;
}

bool drupe_py_native_result(drupe_py_native_call *call, PyObject *object)
{
    if (call->function->result == DRUPE_DTYPE_NONE) {
        PyErr_Format(PyExc_TypeError,
                     "%s(): result= needs a declaration with a result, such as \"double(...)\"",
                     drupe_native_function_name(call->function->function));
        return false;
    }
    if (drupe_py_is(call->state, object, DRUPE_PY_TYPE_Array))
        return result_array(call, drupe_py_array_of(object));
    drupe_py_keepalive *keepalive = drupe_py_keepalive_new();
    if (!keepalive) return false;
    call->keepalives[call->nkeepalives++] = keepalive;
    Py_buffer *view = &keepalive->view;
    if (PyObject_GetBuffer(object, view, PyBUF_ANY_CONTIGUOUS | PyBUF_FORMAT | PyBUF_WRITABLE) < 0) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) return false;
        PyErr_Clear();
        return result_refuse(call, " that can be written");
    }
    if (view->len == 0 || dtype_of_view(view) != call->function->result) return result_refuse(call, "");
    call->borrows = true;
    call->result = view->buf;
    return true;
}

void drupe_py_native_clear(drupe_py_native_call *call)
{
    for (size_t i = 0; i < call->nkeepalives; i++) drupe_py_keepalive_free(call->keepalives[i]);
    for (size_t i = 0; i < call->nowned; i++) Py_DECREF(call->owned[i]);
    call->nkeepalives = call->nowned = 0;
}
