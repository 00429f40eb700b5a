/* debug_request on its way to the debugger's thread (drupe.kernel.debugger), which is started by the first.
 *
 * The control thread appends to a queue and raises an eventfd; the Python thread, woken by it or by the
 * debugger's own socket, takes one request at a time. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "jkernel/pyexec/pyexec.h"

typedef struct waiting {
    jk_request *request;
    struct waiting *next;
} waiting;

static struct {
    pthread_mutex_t lock;
    waiting *first, *last;
    int wake;     /* eventfd, -1 before the first request */
    bool running; /* there is a worker that will look at the queue */
    atomic_bool closing;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = -1};

static void queue_wake(void)
{
    uint64_t one = 1;
    ssize_t ignored = write(queue.wake, &one, sizeof one);
    (void)ignored;
}

static jk_request *queue_take(void)
{
    pthread_mutex_lock(&queue.lock);
    waiting *first = queue.first;
    if (first) queue.first = first->next;
    if (!queue.first) queue.last = NULL;
    pthread_mutex_unlock(&queue.lock);
    jk_request *request = first ? first->request : NULL;
    free(first);
    return request;
}

/* --- The worker --------------------------------------------------------------------------------------------
 */

static void refuse(jk_request *request, const char *why)
{
    char clean[256], content[400];
    size_t size = 0;
    for (; *why && size < sizeof clean - 1; why++) {
        clean[size++] =
            *why == '"' || *why == '\\' || (unsigned char)*why < 0x20 || (unsigned char)*why > 0x7e ? '\''
                                                                                                    : *why;
    }
    clean[size] = '\0';
    int length =
        snprintf(content, sizeof content,
                 "{\"type\":\"response\",\"seq\":0,\"request_seq\":0,\"success\":false,\"message\":\"%s\","
                 "\"body\":{}}",
                 clean);
    jk_request_reply(request, (jk_bytes){content, (size_t)length}, (jk_bytes){NULL, 0}, 0);
}

static void refuse_all(const char *why)
{
    jk_request *request;
    while ((request = queue_take())) refuse(request, why);
}

static PyObject *worker_wrap(jk_state *state, void *argument)
{
    (void)state;
    (void)argument;
    return PyLong_FromLong(queue.wake);
}

static void worker_stop(void *argument)
{
    (void)argument;
    atomic_store(&queue.closing, true); /* no lock: queue_append() holds it while it starts a worker */
    queue_wake();
}

static void worker_ended(void *argument, const char *why)
{
    (void)argument;
    pthread_mutex_lock(&queue.lock);
    queue.running = false;
    pthread_mutex_unlock(&queue.lock);
    char text[256];
    snprintf(text, sizeof text, "the debugger has ended: %.200s", why ? why : "the kernel is shutting down");
    if (!jk_kernel_enter()) return;
    refuse_all(text);
    jk_kernel_leave();
}

static const jk_worker_task task = {
    .module = "drupe.kernel.debugger",
    .function = "serve",
    .wrap = worker_wrap,
    .stop = worker_stop,
    .ended = worker_ended,
};

/* Whether the request is in the queue; if not, it is still the caller's. */
static bool queue_append(jk_request *request)
{
    waiting *item = malloc(sizeof *item);
    if (!item) return false;
    *item = (waiting){.request = request};
    pthread_mutex_lock(&queue.lock);
    if (queue.wake < 0) queue.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!queue.running && queue.wake >= 0) queue.running = jk_worker_start(&task) == 0;
    bool taken = queue.running;
    if (taken && queue.last) {
        queue.last->next = item;
    } else if (taken) {
        queue.first = item;
    }
    if (taken) queue.last = item;
    pthread_mutex_unlock(&queue.lock);
    if (!taken) free(item);
    return taken;
}

void jk_debug_push(void *self, jk_request *request)
{
    (void)self;
    if (queue_append(request)) {
        queue_wake();
    } else {
        refuse(request, "the debugger cannot be started: the kernel is closing or out of resources");
    }
}

/* --- For Python --------------------------------------------------------------------------------------------
 */

PyObject *jk_debug_next(PyObject *module, PyObject *unused)
{
    (void)unused;
    uint64_t count;
    ssize_t ignored = read(queue.wake, &count, sizeof count); /* before the look at the queue */
    (void)ignored;
    if (atomic_load(&queue.closing)) Py_RETURN_FALSE;
    jk_request *request = queue_take();
    return request ? jk_request_object_new(PyModule_GetState(module), request) : Py_NewRef(Py_None);
}

PyObject *jk_debug_cell_name(PyObject *module, PyObject *code)
{
    (void)module;
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(code, &size);
    if (!text) return NULL;
    jk_server *server = jk_kernel_enter();
    if (!server) {
        PyErr_SetString(PyExc_RuntimeError, "the kernel is closed");
        return NULL;
    }
    char name[JK_CELL_NAME_SIZE];
    jk_server_cell_name(server, (jk_bytes){text, (size_t)size}, name);
    jk_kernel_leave();
    return PyUnicode_DecodeFSDefault(name);
}

PyObject *jk_debug_cell_prefix(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    jk_server *server = jk_kernel_enter();
    PyObject *prefix = PyUnicode_DecodeFSDefault(server ? jk_server_cell_prefix(server) : "");
    if (server) jk_kernel_leave();
    return prefix;
}
