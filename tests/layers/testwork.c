/* Work for the Python tests: it lasts as long as a test likes, on a thread of the engine, and fails with a
 * text if one is given. So waits, interrupts, references and reports of failures are tested on every device.
 */
#include <drupe/ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct work {
    struct timespec duration;
    int fails;
    char text[256];
} work;

static drupe_status work_run(void *user)
{
    const work *self = user;
    (void)nanosleep(&self->duration, NULL);
    return self->fails ? drupe_ext->error_set(DRUPE_E_INTERNAL, self->text) : DRUPE_OK;
}

static PyObject *task(PyObject *module, PyObject *args)
{
    PyObject *object, *wait_for = NULL;
    double seconds = 0;
    const char *text = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "Od|zO:task", &object, &seconds, &text, &wait_for)) return NULL;
    drupe_queue *queue = drupe_ext->queue_of(object);
    work *self = !queue ? NULL : calloc(1, sizeof *self);
    if (!self) return !queue ? NULL : PyErr_NoMemory();
    self->duration.tv_sec = (time_t)seconds;
    self->duration.tv_nsec = (long)((seconds - (double)self->duration.tv_sec) * 1e9);
    self->fails = text != NULL;
    snprintf(self->text, sizeof self->text, "%s", !text ? "" : text);
    return drupe_ext->submit_host(queue, "task", work_run, self, free, NULL, 0, wait_for);
}

static PyMethodDef functions[] = {
    {"task", task, METH_VARARGS,
     PyDoc_STR("task(queue, seconds, text=None, wait_for=())\n--\n\n"
               "Queue work that sleeps, and fails if a text is given.")},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "testwork_c", .m_size = -1,
                                        .m_methods = functions};

PyMODINIT_FUNC PyInit_testwork_c(void);

PyMODINIT_FUNC PyInit_testwork_c(void)
{
    return drupe_ext_import() < 0 ? NULL : PyModule_Create(&definition);
}
