/* Parked memory, as those who use memory see it: its bytes wait in host memory, and come back at its first
 * use elsewhere on the device. core/park does both; here stands who may do what meanwhile. */
#ifndef DRUPE_CORE_GATE_H
#define DRUPE_CORE_GATE_H

#include "core/device/device_room.h"
#include "drupe/park.h"

/* Whether a root device is parked, and what its next use does. */
typedef enum drupe_parking { DRUPE_AWAKE, DRUPE_PARKED, DRUPE_PARKED_KEPT } drupe_parking;

/* Has everything come back that is parked of a device. core/park registers it before anything is parked. */
extern _Atomic(drupe_status (*)(drupe_device *root)) drupe_gate_wakes;

/* The lock of parking: held while pieces move, and by whoever changes what is parked. */
void drupe_gate_lock(void);
void drupe_gate_unlock(void);
/* Whether somebody is between drupe_park_hold() and drupe_park_let_go(); from this call on who wants to begin
 * waits for the lock. And the end of that. Both need the lock. */
bool drupe_gate_close(void);
void drupe_gate_open(void);

/* The bytes of a piece are in `copy` (taken) from now on, and `*memory` has none on the device; or it has.
 * The lock is needed. */
void drupe_gate_park(drupe_memory *memory, void *copy);
void drupe_gate_unpark(drupe_memory *memory);
/* A piece that nobody has any more: true when it was parked, and it is gone now. */
bool drupe_gate_drop(drupe_memory *memory);

/* Of a piece. */
bool drupe_gate_parked(const drupe_memory *memory);
/* Have it come back because somebody wants its address. False, with the thread's error, when it cannot: the
 * thread's next submission is refused, since it has no address. */
bool drupe_gate_serve(const drupe_memory *memory);

/* Before a submission to the device. */
static inline bool drupe_gate_closed(const drupe_device *root)
{
    return atomic_load_explicit(&((drupe_device *)(uintptr_t)root)->parked, memory_order_acquire) !=
           DRUPE_AWAKE;
}
/* The error of a device that is to stay parked. */
drupe_status drupe_gate_kept(const drupe_device *root) DRUPE_MUST_CHECK;
drupe_status drupe_gate_enter(drupe_device *root) DRUPE_MUST_CHECK;
drupe_status drupe_gate_wake_slow(drupe_device *root) DRUPE_MUST_CHECK;
/* Have everything come back that is parked of the device. DRUPE_E_BUSY where it is to stay parked. */
static inline drupe_status drupe_gate_wake(drupe_device *root)
{
    return drupe_gate_closed(root) ? drupe_gate_wake_slow(root) : DRUPE_OK;
}

#endif
