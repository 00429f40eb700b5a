/* Every function of drupe/ext.h, for test_extension.py. */
#include <dlfcn.h>
#include <drupe/ext.h>
#include <stdlib.h>
#include <string.h>

static long released;

static void release(void *user)
{
    released++;
    free(user);
}

static drupe_status fails(void *user)
{
    return drupe_ext->error_set(DRUPE_E_OUT_OF_RANGE, user);
}

/* failing(queue, text, kept): a function that fails with the text. */
static PyObject *failing(PyObject *self, PyObject *args)
{
    PyObject *object, *kept, *waits = NULL;
    const char *text;
    if (!PyArg_ParseTuple(args, "OsO|O", &object, &text, &kept, &waits)) return NULL;
    drupe_queue *queue = drupe_ext->queue_of(object);
    if (queue == NULL) return NULL;
    return drupe_ext->submit_host(queue, "failing", fails, strdup(text), release, &kept, 1, waits);
}

/* doubled(array): a new array of its shape, copied twice over. */
static PyObject *twin(PyObject *self, PyObject *object)
{
    drupe_ext_array in, out;
    if (drupe_ext->array_of(object, &in) < 0) return NULL;
    PyObject *result = drupe_ext->array_new(in.queue, in.kind, in.type, in.itemsize, in.ndim, in.shape);
    if (result == NULL || drupe_ext->array_of(result, &out) < 0) return NULL;
    PyObject *keep[] = {object, result};
    PyObject *event =
        drupe_ext->submit_copy(in.queue, out.data, in.data, in.size * (size_t)in.itemsize, keep, 2, NULL);
    if (event == NULL) Py_CLEAR(result);
    Py_XDECREF(event);
    return result;
}

/* native_fill(memory, byte): by the OpenCL driver, on the native queue. */
static PyObject *native_fill(PyObject *self, PyObject *args)
{
    PyObject *object;
    unsigned char byte;
    void *native;
    drupe_ext_array array;
    if (!PyArg_ParseTuple(args, "Ob", &object, &byte) || drupe_ext->array_of(object, &array) < 0 ||
        drupe_ext->queue_native(array.queue, &native) < 0)
        return NULL;
    void *driver = dlopen("libOpenCL.so.1", RTLD_NOW);
    int (*fill)(void *, void *, const void *, size_t, size_t, unsigned, const void *, void *) =
        driver ? (int (*)(void *, void *, const void *, size_t, size_t, unsigned, const void *, void *))dlsym(
                     driver, "clEnqueueSVMMemFill")
               : NULL;
    if (fill == NULL || fill(native, array.data, &byte, 1, array.size, 0, NULL, NULL) != 0)
        return PyErr_Format(PyExc_RuntimeError, "the driver did not take the fill");
    return drupe_ext->keep_alive(array.queue, &object, 1, NULL);
}

static PyObject *about(PyObject *self, PyObject *object)
{
    drupe_ext_array array;
    if (drupe_ext->array_of(object, &array) < 0) return NULL;
    PyObject *shape = PyTuple_New(array.ndim), *strides = PyTuple_New(array.ndim);
    for (int i = 0; i < array.ndim; i++) {
        PyTuple_SET_ITEM(shape, i, PyLong_FromSize_t(array.shape[i]));
        PyTuple_SET_ITEM(strides, i, PyLong_FromSsize_t(array.strides[i]));
    }
    return Py_BuildValue("{sN sN sC si si sn sN ss}", "shape", shape, "strides", strides, "type", array.type,
                         "itemsize", array.itemsize, "kind", array.kind, "size", (Py_ssize_t)array.size,
                         "queue", drupe_ext->queue_object(array.queue), "backend",
                         drupe_ext->queue_backend(array.queue));
}

static PyObject *like(PyObject *self, PyObject *object)
{
    drupe_ext_array array;
    if (drupe_ext->array_like(object, "x", 'f', 4, 2, 1, &array) < 0) return NULL;
    Py_RETURN_TRUE;
}

static PyObject *wrong_type(PyObject *self, PyObject *object)
{
    size_t shape[] = {2};
    drupe_queue *queue = drupe_ext->queue_of(object);
    return queue == NULL ? NULL : drupe_ext->array_new(queue, DRUPE_EXT_DEVICE, 'c', 32, 1, shape);
}

static PyObject *last_error(PyObject *self, PyObject *ignored)
{
    (void)drupe_ext->error_set(DRUPE_E_BUSY, "set by an extension");
    return drupe_ext->error_raise();
}

static PyObject *count(PyObject *self, PyObject *ignored)
{
    return PyLong_FromLong(released);
}

static PyMethodDef methods[] = {{"failing", failing, METH_VARARGS, NULL},
                                {"twin", twin, METH_O, NULL},
                                {"native_fill", native_fill, METH_VARARGS, NULL},
                                {"about", about, METH_O, NULL},
                                {"like", like, METH_O, NULL},
                                {"wrong_type", wrong_type, METH_O, NULL},
                                {"last_error", last_error, METH_NOARGS, NULL},
                                {"released", count, METH_NOARGS, NULL},
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "extension", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_extension(void)
{
    return drupe_ext_import() < 0 ? NULL : PyModule_Create(&module);
}
