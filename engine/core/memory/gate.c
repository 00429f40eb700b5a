/* Parked memory as those see it who use it, and who may have addresses while memory is parked.
 *
 * An address is good from the moment it is asked for until the submission that uses it has returned, and from
 * then on as the use of a piece. Nobody sees the time between. So whoever is interrupted there counts as one
 * who holds addresses (drupe_park_hold()), and while there are some nothing is parked. Who wants to begin
 * while pieces move waits for that. Memory comes back without a look at who holds: of what is parked there
 * are no addresses. */
#include "core/memory/memory_room.h"
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(uint32_t) holders;
static _Atomic(bool) closed;
static _Thread_local bool unserved; /* this thread was refused an address: see drupe_gate_enter() */
_Atomic(drupe_status (*)(drupe_device *root)) drupe_gate_wakes;

void drupe_gate_lock(void)
{
    pthread_mutex_lock(&lock);
}

void drupe_gate_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* --- Addresses in hand ---------------------------------------------------------------------------------- */

void drupe_park_hold(void)
{
    for (;;) {
        atomic_fetch_add(&holders, 1);
        if (!atomic_load(&closed)) return;
        atomic_fetch_sub(&holders, 1);
        drupe_gate_lock();
        drupe_gate_unlock();
    }
}

void drupe_park_let_go(void)
{
    atomic_fetch_sub(&holders, 1);
}

bool drupe_gate_close(void)
{
    atomic_store(&closed, true);
    return atomic_load(&holders) != 0;
}

void drupe_gate_open(void)
{
    atomic_store(&closed, false);
}

/* --- Pieces --------------------------------------------------------------------------------------------- */

bool drupe_gate_parked(const drupe_memory *memory)
{
    return atomic_load_explicit(&((drupe_memory *)(uintptr_t)memory)->parked, memory_order_acquire) != NULL;
}

void drupe_gate_park(drupe_memory *memory, void *copy)
{
    drupe_device *root = memory->pool->root;
    memory->next = root->asleep;
    root->asleep = memory;
    atomic_store_explicit(&memory->parked, copy, memory_order_release);
}

static void unlink_asleep(drupe_memory *memory)
{
    drupe_memory **link = &memory->pool->root->asleep;
    while (*link != memory) link = &(*link)->next;
    *link = memory->next;
    memory->next = NULL;
}

void drupe_gate_unpark(drupe_memory *memory)
{
    unlink_asleep(memory);
    free(atomic_load(&memory->parked));
    atomic_store_explicit(&memory->parked, NULL, memory_order_release);
}

bool drupe_gate_drop(drupe_memory *memory)
{
    if (!drupe_gate_parked(memory)) return false;
    drupe_gate_lock();
    drupe_gate_unpark(memory);
    drupe_gate_unlock();
    drupe_mark_drop(memory);
    free(memory);
    return true;
}

/* --- Coming back ---------------------------------------------------------------------------------------- */

drupe_status drupe_gate_kept(const drupe_device *root)
{
    return drupe_error_set(DRUPE_E_BUSY,
                           "%s is parked, and stays so until it is asked back: its memory waits in host "
                           "memory. Call drupe.hosted.unpark().",
                           root->filter);
}

drupe_status drupe_gate_wake_slow(drupe_device *root)
{
    return atomic_load(&drupe_gate_wakes)(root);
}

bool drupe_gate_serve(const drupe_memory *memory)
{
    if (drupe_gate_wake_slow(memory->pool->root) == DRUPE_OK) return true;
    unserved = true;
    return false;
}

/* A caller that was given no address may not have noticed: what it submits does not go on, even if there is
 * room by now. */
drupe_status drupe_gate_enter(drupe_device *root)
{
    bool refused = unserved;
    unserved = false;
    DRUPE_TRY(drupe_gate_wake(root));
    if (!refused) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_BUSY,
                           "%s was parked, and its memory had no room to come back to when this "
                           "was to be submitted. Try again.",
                           root->filter);
}
