/* The room of crashes: the end that nobody asked for.
 *
 * A fatal signal is reported in steps on the thread that it hit (fatal_signal.c): the signal, the language's
 * traceback, the C frames, the device operations, then the io thread publishes an `error` for the running
 * cell (crash_publish.c). Each step has its time; a step that fails or hangs is left for the next one, and
 * JK_CRASH_MOST after the fault the process has ended, by the very signal.
 *
 * Owns: the handlers of fatal signals, and record.crash. Locks: none; it gives up those of the crashed
 * thread. Threads: any may crash; what runs there is async-signal-safe. */
#ifndef JK_CRASH_ROOM_H
#define JK_CRASH_ROOM_H

#include "jkernel/server/iopub/iopub_room.h"

#include <signal.h>

#define JK_CRASH_MOST (1900 * JK_MILLISECOND)

/* --- crash_text.c: async-signal-safe ------------------------------------------------------------------- */

/* What happened and where, in half a line: "address 0x0 is not mapped (reading)". */
void jk_crash_describe(jk_fixed_text *out, const siginfo_t *info, const void *context);
/* The C frames below the fault, or without a `context` those of the caller, one a line: library, offset and,
 * where the linker knows it, the function. */
void jk_crash_frames(jk_fixed_text *out, const void *context);
/* Call once before: the unwinder loads its library at its first use. */
void jk_crash_frames_prime(void);

/* --- fatal_signal.c ------------------------------------------------------------------------------------ */

/* The server goes down: from here on a fatal signal just ends the process. */
void jk_crash_forget(jk_server *server);
/* io thread, after each poll: publish the report if one waits. */
void jk_crash_look(jk_server *server);
/* The report has left, or cannot. Any thread. */
void jk_crash_published(bool left);

/* --- crash_publish.c ----------------------------------------------------------------------------------- */

/* Send everything queued, then the report. io thread, or its fault handler. */
void jk_crash_publish(jk_server *server);

#endif
