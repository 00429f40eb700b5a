/* Parking: the memory of a device waits in host memory, the device is others' meanwhile, and everything comes
 * back later, perhaps at other addresses.
 *
 * What moves: the bytes of all memory that the engine allocated on the root device, of every kind and
 * context. Free blocks go back to the driver. Handles (drupe_memory, arrays, programs, kernels, queues,
 * events) stay as they are. What stays on the device: the driver's contexts and queues, and programs.
 *
 * Addresses: what drupe_memory_pointer() and drupe_array_pointer() gave before is void. So memory whose
 * address was given away for good (drupe_memory_before_use(), drupe_memory_export()) is not parked, and then
 * nothing is. A caller whose threads park while others submit has these hold addresses; see
 * drupe_park_hold().
 *
 * Coming back: drupe_unpark(), or the first use (an allocation, an address, a submission to one of the
 * device's queues), unless DRUPE_PARK_KEPT was asked for. Where that finds no room, everything stays parked,
 * nothing is lost, and the use fails with what it lacked.
 *
 * Threads: all functions may be called from any thread. Parking waits for no work, and for no other thread
 * but one that parks or unparks. */
#ifndef DRUPE_PARK_H
#define DRUPE_PARK_H

#include "drupe/memory.h"

#define DRUPE_PARK_KEPT 1u /* uses of the device fail with DRUPE_E_BUSY until drupe_unpark() */

/* What stands in the way. */
typedef struct drupe_park_report {
    uint64_t bytes, pieces; /* of what was moved; with a failure: of what would be */
    uint64_t freed;         /* bytes that the driver has back, or had to give, free blocks included */
    uint64_t ns;            /* how long it took */
    /* What stands in the way, each 0 where nothing does: */
    uint64_t unfinished;                    /* submissions that are not known to be over */
    uint64_t given_bytes, given_pieces;     /* memory whose address was given away */
    uint64_t foreign_bytes, foreign_pieces; /* memory that another process shares */
    bool held;                              /* a call of another thread has addresses in hand */
} drupe_park_report;

/* Park the device's root. What is pending is submitted first. DRUPE_E_BUSY with the reasons, and nothing has
 * moved, where `report` has one; DRUPE_E_NO_MEMORY where host memory does not suffice. All or nothing: after
 * a failure everything is as before. A device that is parked stays parked. `report` may be NULL. */
DRUPE_API drupe_status drupe_park(drupe_device *device, uint32_t flags,
                                  drupe_park_report *report) DRUPE_MUST_CHECK;
/* Whether drupe_park() could succeed now, by the same looks; submits nothing and moves nothing. */
DRUPE_API drupe_status drupe_parkable(drupe_device *device, drupe_park_report *report) DRUPE_MUST_CHECK;
/* Have everything come back. After a failure everything is parked as before. */
DRUPE_API drupe_status drupe_unpark(drupe_device *device, drupe_park_report *report) DRUPE_MUST_CHECK;
/* Whether the device's root is parked; and whether this memory has its bytes in host memory. */
DRUPE_API bool drupe_device_parked(const drupe_device *device);
DRUPE_API bool drupe_memory_parked(const drupe_memory *memory);

/* The memory that keeps a root device from being parked, by place in the program, that with most bytes first:
 * at most `capacity`. Returns how many there are. */
DRUPE_API size_t drupe_park_holders(drupe_device *device, drupe_holder *holders, size_t capacity);

/* From here on the calling thread may have addresses of memory that it will still submit, and until it lets
 * go nothing is parked: drupe_park() answers DRUPE_E_BUSY. Calls nest. Waits while something is being parked.
 * Who submits on the one thread that parks needs none of this. */
DRUPE_API void drupe_park_hold(void);
DRUPE_API void drupe_park_let_go(void);

#endif
