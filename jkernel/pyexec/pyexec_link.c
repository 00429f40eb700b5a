/* drupe_link for the engine: cells, publishing, the cell check, and what the engine adds to crash reports and
 * usage figures.
 *
 * A thread that holds the GIL belongs to the cell in its context variable (a task or a thread that outlived
 * its cell keeps it); a C thread of a driver belongs to the cell that runs. The functions carry no context
 * argument, hence the file's own state. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "drupe_link.h"
#include "jkernel/pyexec/pyexec.h"

typedef int claim_function(int signal, void *siginfo, void *ucontext);
typedef size_t text_function(char *text, size_t size);
typedef void watch_function(void *cell, int began);
typedef size_t answer_function(const char *command, const drupe_link_request *request, char **json);

static struct {
    PyObject *cell_var; /* both NULL when the module is gone */
    PyTypeObject *parent_type;
    pthread_mutex_t mutex; /* of the check */
    int (*check)(void *user);
    void *check_user;
    /* Read in a signal handler, so no lock. */
    _Atomic(claim_function *) claim;
    _Atomic(text_function *) notes, usage;
    _Atomic(watch_function *) watch;
    /* Held while an answer is made: who takes the function away may unload what it uses. */
    pthread_mutex_t answer_mutex;
    answer_function *answer;
    char *lease; /* JSON, malloc'ed, under that mutex; NULL: this kernel has none */
} engine = {.mutex = PTHREAD_MUTEX_INITIALIZER, .answer_mutex = PTHREAD_MUTEX_INITIALIZER};

jk_parent_object *jk_parent_object_current(void)
{
    PyObject *value = NULL;
    if (!engine.cell_var) return NULL;
    if (PyContextVar_Get(engine.cell_var, NULL, &value) < 0) {
        PyErr_Clear();
        return NULL;
    }
    if (value && !Py_IS_TYPE(value, engine.parent_type)) Py_CLEAR(value);
    return (jk_parent_object *)value;
}

static jk_parent *cell_of_python_thread(void)
{
    if (!Py_IsInitialized() || !PyGILState_Check()) return NULL;
    jk_parent_object *object = jk_parent_object_current();
    if (!object) return NULL;
    jk_parent *parent = jk_parent_retain(object->parent);
    Py_DECREF(object);
    return parent;
}

static void *cell_retain(void)
{
    jk_parent *parent = cell_of_python_thread();
    if (parent) return parent;
    jk_server *server = jk_kernel_enter();
    if (!server) return NULL;
    parent = jk_server_current_cell(server);
    jk_kernel_leave();
    return parent;
}

static void cell_release(void *cell)
{
    jk_parent_release(cell);
}

static int publish(void *cell, const char *msg_type, const char *content, size_t size)
{
    jk_server *server = jk_kernel_enter();
    if (!server) return -1;
    jk_bytes body = {content, size};
    jk_bytes none = {NULL, 0};
    int result = jk_publish(server, cell, msg_type, body, none, NULL, 0);
    jk_kernel_leave();
    return result;
}

static void *cell_share(void *cell)
{
    return jk_parent_retain(cell);
}

static uint32_t cell_number(void *cell)
{
    return cell ? jk_parent_number(cell) : 0;
}

static int cell_running(void *cell)
{
    jk_server *server = jk_kernel_enter();
    if (!server) return 0;
    bool running = jk_server_cell_runs(server, cell);
    jk_kernel_leave();
    return running;
}

static void tell_begin(uint32_t number)
{
    jk_parent *parent = cell_of_python_thread();
    bool fresh = parent && jk_parent_number(parent) == 0;
    if (fresh) {
        jk_parent_set_number(parent, number);
        watch_function *watch = atomic_load(&engine.watch);
        if (watch) watch(parent, 1);
    }
    jk_parent_release(parent);
}

PyObject *jk_link_note_cell(PyObject *module, PyObject *arguments)
{
    const char *name;
    Py_ssize_t size;
    long number;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "s#l:note_cell", &name, &size, &number)) return NULL;
    uint32_t shown = number > 0 ? (uint32_t)number : 0;
    jk_cells_note(name, (size_t)size, shown);
    if (shown > 0) tell_begin(shown);
    Py_RETURN_NONE;
}

static void tell_end(void)
{
    watch_function *watch = atomic_load(&engine.watch);
    jk_parent *parent = watch ? cell_of_python_thread() : NULL;
    if (parent && jk_parent_number(parent) > 0) watch(parent, 0);
    jk_parent_release(parent);
}

static void set_cell_check(int (*check)(void *user), void *user)
{
    pthread_mutex_lock(&engine.mutex);
    engine.check = check;
    engine.check_user = user;
    pthread_mutex_unlock(&engine.mutex);
}

static void set_fault_claim(claim_function *claim)
{
    atomic_store(&engine.claim, claim);
}

static void set_crash_notes(text_function *notes)
{
    atomic_store(&engine.notes, notes);
}

static void set_usage(text_function *usage)
{
    atomic_store(&engine.usage, usage);
}

static void set_cell_watch(watch_function *watch)
{
    atomic_store(&engine.watch, watch);
}

static void set_answer(answer_function *answer)
{
    pthread_mutex_lock(&engine.answer_mutex);
    engine.answer = answer;
    pthread_mutex_unlock(&engine.answer_mutex);
}

PyObject *jk_link_note_lease(PyObject *module, PyObject *text)
{
    (void)module;
    const char *json = text == Py_None ? NULL : PyUnicode_AsUTF8(text);
    if (!json && text != Py_None) return NULL;
    char *copy = json ? strdup(json) : NULL;
    if (json && !copy) return PyErr_NoMemory();
    pthread_mutex_lock(&engine.answer_mutex);
    char *old = engine.lease;
    engine.lease = copy;
    pthread_mutex_unlock(&engine.answer_mutex);
    free(old);
    Py_RETURN_NONE;
}

/* What the session's thread has noted: there may be a lease before there is an engine. */
static size_t answer_lease_locked(char **json)
{
    *json = strdup(engine.lease ? engine.lease : "this kernel holds no lease of a broker");
    return engine.lease && *json ? strlen(*json) : 0;
}

size_t jk_link_answer(void *self, const char *command, const jk_arguments *arguments, char **json)
{
    (void)self;
    const drupe_link_request request = {.arguments = arguments->all,
                                        .has = arguments->has,
                                        .number = arguments->number,
                                        .word = arguments->word};
    pthread_mutex_lock(&engine.answer_mutex);
    size_t size = 0;
    if (strcmp(command, "drupe/lease") == 0)
        size = answer_lease_locked(json);
    else if (engine.answer)
        size = engine.answer(command, &request, json);
    pthread_mutex_unlock(&engine.answer_mutex);
    return size;
}

int jk_link_claim(int signal, void *siginfo, void *ucontext)
{
    claim_function *claim = atomic_load(&engine.claim);
    return claim ? claim(signal, siginfo, ucontext) : 0;
}

size_t jk_link_notes(char *text, size_t size)
{
    text_function *notes = atomic_load(&engine.notes);
    return notes ? notes(text, size) : 0;
}

size_t jk_link_usage(void *self, char *json, size_t size)
{
    (void)self;
    text_function *usage = atomic_load(&engine.usage);
    return usage ? usage(json, size) : 0;
}

static void text_cell(void *cell)
{
    jk_server *server = jk_kernel_enter();
    if (!server) return;
    jk_server_give_text(server, cell);
    jk_kernel_leave();
}

static void keep_notes(const char *text, size_t size)
{
    jk_server *server = jk_kernel_enter();
    if (!server) return;
    jk_server_keep(server, text, size);
    jk_kernel_leave();
}

static int device_work(int goes_on)
{
    jk_server *server = jk_kernel_enter();
    if (!server) return 0;
    bool wanted = jk_server_work(server, goes_on != 0);
    jk_kernel_leave();
    return wanted;
}

static drupe_link link_table = {
    .size = sizeof(drupe_link),
    .version = DRUPE_LINK_VERSION,
    .cell_retain = cell_retain,
    .cell_release = cell_release,
    .publish = publish,
    .set_cell_check = set_cell_check,
    .set_fault_claim = set_fault_claim,
    .set_crash_notes = set_crash_notes,
    .set_usage = set_usage,
    .cell_number = cell_number,
    .cell_share = cell_share,
    .file_cell = jk_cells_number,
    .cell_running = cell_running,
    .log = jk_server_note,
    .text_cell = text_cell,
    .set_cell_watch = set_cell_watch,
    .set_answer = set_answer,
    .keep_notes = keep_notes,
    .exiting = jk_server_exiting,
    .device_work = device_work,
};

PyObject *jk_link_capsule(PyObject *cell_var, PyTypeObject *parent_type)
{
    PyObject *capsule = PyCapsule_New(&link_table, DRUPE_LINK_CAPSULE, NULL);
    if (!capsule) return NULL;
    Py_XSETREF(engine.cell_var, Py_NewRef(cell_var));
    Py_XSETREF(engine.parent_type, (PyTypeObject *)Py_NewRef((PyObject *)parent_type));
    return capsule;
}

void jk_link_clear(void)
{
    set_cell_check(NULL, NULL);
    set_usage(NULL);
    set_cell_watch(NULL);
    set_answer(NULL);
    Py_CLEAR(engine.cell_var);
    Py_CLEAR(engine.parent_type);
}

PyObject *jk_link_run_check(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    pthread_mutex_lock(&engine.mutex);
    int (*check)(void *user) = engine.check;
    void *user = engine.check_user;
    pthread_mutex_unlock(&engine.mutex);
    tell_end();
    if (!check || check(user) == 0) Py_RETURN_NONE;
    if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_SystemError, "the device engine reported a failed cell without saying why");
    }
    return NULL;
}
