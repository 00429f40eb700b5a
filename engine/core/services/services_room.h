/* What goes on beside submissions: failures that happen while nobody looks (failure_poller.c), whose text a
 * kernel prints (prints.c), and who follows the trace (trace_look.c).
 *
 * Owns: the threads drupe-failures and drupe-prints, and the list of work that prints.
 *
 * Locks: prints.c: `lock` is held while the observer is told, so the kernel's stdio.lock and outbox.lock
 * follow it; `life` is held while a watch is opened. failure_poller.c's is a leaf. */
#ifndef DRUPE_CORE_SERVICES_ROOM_H
#define DRUPE_CORE_SERVICES_ROOM_H

#include "core/queue/launch.h"

/* End failure_poller.c's thread. */
void drupe_failure_poller_stop(void);

/* --- prints.c ------------------------------------------------------------------------------------------- */

/* An event that such work has to wait for, so that the text of what is before it on its queue goes to another
 * cell; retained, or NULL. */
drupe_event *drupe_prints_predecessor(const drupe_queue *queue);
/* Work of such a program was submitted by this thread; borrowed. */
void drupe_prints_begin(drupe_event *event);
/* End the thread; the work is over, or nobody waits for it any more. */
void drupe_prints_stop(void);

#endif
