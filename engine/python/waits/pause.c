/* Waits that are not for results: for memory, and for work that uses it, before its address is handed out.
 *
 * What a call does that has to wait for memory: as a wait for results does, it gives up the GIL, notices
 * Ctrl-C and lets Python do the work that the device may be waiting for. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"
#include <stdlib.h>

static drupe_py_state *the_state; /* the module's, which lives until the interpreter ends */

void drupe_py_pause_open(drupe_py_state *state)
{
    the_state = state;
}

/* With the GIL. Whether an exception is set now. Work that Python does itself has threads for that. */
static bool interrupted(void)
{
    if (drupe_py_interrupted(the_state)) return true;
    drupe_py_keepalive_drain();
    return PyErr_Occurred() != NULL;
}

drupe_status drupe_py_pause(drupe_queue *queue, uint64_t timeout_ns)
{
    /* A thread that Python does not know serves those who wait. */
    if (!the_state || !PyGILState_GetThisThreadState()) return DRUPE_E_BUSY;
    bool held = PyGILState_Check() != 0;
    /* Whoever is waited for may need the GIL, also while an exception is on its way here. */
    bool raised = held && PyErr_Occurred();
    drupe_park_hold(); /* the call that waits may have addresses in hand, and other code runs now */
    PyThreadState *thread = held ? PyEval_SaveThread() : NULL;
    (void)drupe_queue_idle(queue, timeout_ns);
    PyGILState_STATE other = PyGILState_UNLOCKED;
    if (held)
        PyEval_RestoreThread(thread);
    else
        other = PyGILState_Ensure();
    bool stop = !raised && interrupted();
    drupe_park_let_go();
    if (raised) return DRUPE_E_BUSY;
    if (!held) PyGILState_Release(other);
    return stop ? DRUPE_E_CANCELLED : DRUPE_OK;
}

/* --- Addresses that leave ------------------------------------------------------------------------------- */

#define SLICE_NS   UINT64_C(5000000)
#define QUEUES_FEW 64

typedef drupe_status before_fn(drupe_memory *memory, drupe_event **event);

static bool nothing_uses(drupe_py_state *state, drupe_memory *memory, before_fn *before)
{
    drupe_status status = DRUPE_E_BUSY, paused = DRUPE_OK;
    if (!drupe_py_enter(state)) return false;
    while (paused == DRUPE_OK && status == DRUPE_E_BUSY) {
        drupe_event *event;
        status = before(memory, &event);
        if (status == DRUPE_OK && !event) return true;
        if (status == DRUPE_E_BUSY && drupe_memory_parked(memory)) break; /* nothing that ends by itself */
        if (status == DRUPE_OK) status = DRUPE_E_BUSY;
        if (status == DRUPE_E_BUSY) paused = drupe_py_pause(drupe_memory_queue(memory), SLICE_NS);
        drupe_event_release(event);
    }
    if (status != DRUPE_E_BUSY || drupe_memory_parked(memory))
        drupe_py_raise_on(state, drupe_memory_queue(memory));
    else if (paused != DRUPE_E_CANCELLED)
        drupe_py_raise_text(state, DRUPE_E_BUSY,
                            "work in flight uses this memory, and this thread cannot wait for it");
    return false;
}

bool drupe_py_address_leaves(drupe_py_state *state, drupe_memory *memory)
{
    return nothing_uses(state, memory, drupe_memory_before_use);
}

bool drupe_py_address_lent(drupe_py_state *state, drupe_memory *memory)
{
    return nothing_uses(state, memory, drupe_memory_before_view);
}

bool drupe_py_contents_good(drupe_py_state *state, drupe_memory *memory)
{
    if (drupe_memory_contents(memory) == DRUPE_OK) return true;
    drupe_py_raise_on(state, drupe_memory_queue(memory));
    return false;
}

PyObject *drupe_py_contents_accept(drupe_py_state *state, drupe_memory *memory)
{
    if (!drupe_py_enter(state)) return NULL;
    drupe_queue *queue = drupe_memory_queue(memory);
    /* What failed there stays to be told; a device that is lost is at nothing any more. */
    while (drupe_queue_pending(queue) > 0 && !drupe_queue_idle(queue, 0)) {
        if (drupe_py_pause(queue, SLICE_NS) == DRUPE_E_CANCELLED) return NULL;
    }
    drupe_memory_accept(memory);
    Py_RETURN_NONE;
}

/* All queues, each retained, in a list to be freed; none where there is no memory for it. */
static drupe_queue **all_queues(size_t *count)
{
    for (size_t room = QUEUES_FEW;; room *= 2) {
        drupe_queue **queues = malloc(room * sizeof *queues);
        *count = !queues ? 0 : drupe_queue_list(queues, room);
        if (*count < room) return queues;
        for (size_t i = 0; i < *count; i++) drupe_py_queue_release(queues[i]);
        free(queues);
    }
}

/* Drop what finished work of all queues has kept. One that is at work, retained, or NULL. */
static drupe_queue *collect_all(void)
{
    size_t count;
    drupe_queue **queues = all_queues(&count), *busy = NULL;
    for (size_t i = 0; i < count; i++) {
        drupe_py_collect(queues[i]);
        if (!busy && drupe_queue_pending(queues[i]) > 0) busy = drupe_queue_retain(queues[i]);
        drupe_py_queue_release(queues[i]);
    }
    free(queues);
    return busy;
}

void drupe_py_collect_all(void)
{
    drupe_py_queue_release(collect_all());
}

bool drupe_py_memory_idle(drupe_memory *memory)
{
    drupe_status status = DRUPE_OK;
    drupe_queue *busy = collect_all();
    /* Without a busy queue nothing will end: a lost device keeps what its work used. */
    while (status == DRUPE_OK && busy && drupe_memory_in_use(memory)) {
        status = drupe_py_pause(busy, SLICE_NS);
        drupe_py_queue_release(busy);
        busy = collect_all();
    }
    drupe_py_queue_release(busy);
    if (status == DRUPE_OK) drupe_py_collect_all(); /* what ended between the two looks */
    return status == DRUPE_OK;
}
