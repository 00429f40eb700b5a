/* The end that nobody asked for: what is known of a kernel that died, and how it gets told.
 *
 * The record is a small file beside the connection file ("<connection file>.drupe-state", mode 0600), mapped
 * into memory while the kernel runs and removed at a clean end. Writing it costs no system call, and it
 * outlives the process whatever ends it. A kernel that starts with the same connection file finds it, and
 * says in its first output what became of the one before.
 *
 * A fatal signal is reported in steps on the thread that it hit (crash.c): the signal, the language's
 * traceback, the C frames, the device operations, then the io thread publishes an `error` for the running
 * cell (crash_publish.c). Each step has its time; a step that fails or hangs is left for the next one, and
 * JK_CRASH_MOST after the fault the process has ended, by the very signal. */
#ifndef JK_CRASH_H
#define JK_CRASH_H

#include "jkernel/server/server.h"

#include <signal.h>

#define JK_CRASH_MOST    (1900 * JK_MILLISECOND)
#define JK_CRASH_SUMMARY 320
#define JK_CRASH_DETAIL  12000
#define JK_KEPT_SIZE     1024
#define JK_TEXT_SIZE     (16u << 10)

/* Only read by the same build on the same machine: the layout is guarded by `magic` and `size`. */
typedef struct jk_record {
    char magic[8];
    uint32_t size;
    char boot[40];       /* the machine's boot id */
    char group[256];     /* the memory cgroup, "" when there is none */
    uint64_t kills;      /* out-of-memory kills counted at the start; UINT64_MAX: not known */
    uint64_t limit;      /* the memory limit in bytes; 0: none */
    atomic_long cell;    /* execution count of the running cell, or of the last one; 0: none yet */
    atomic_bool running; /* a cell runs */
    atomic_bool ending;  /* the end was asked for: what follows is no news */
    atomic_bool shown;   /* the crash was published */
    atomic_int signal;   /* of the crash; 0: none */
    int status;          /* with which `call` ends the process */
    char call[32];       /* "exit(3)" and the like; "": a signal did */
    /* Notes for the case of a kill; the half that `kept_at` names is whole. */
    atomic_uint kept_at;
    char kept[2][JK_KEPT_SIZE];
    char summary[JK_CRASH_SUMMARY];
    char detail[JK_CRASH_DETAIL]; /* lines */
    /* Text of cells, a ring: what was written and what has been sent of it, in bytes since the start. */
    atomic_ullong text_written, text_sent;
    char text[JK_TEXT_SIZE];
} jk_record;

/* The line in `detail` that the engine's notes stand under, to its end. */
#define JK_CRASH_NOTES "Last device operations:\n"

/* --- record.c: all but the macro-like functions on the main thread ---------------------------------------
 */

/* Find what the kernel before left behind (its story goes to server->notice) and begin a new record. Never
 * fails: without a file the record is plain memory. */
void jk_record_open(jk_server *server);
/* A clean end: remove the file. */
void jk_record_close(jk_server *server);
/* Remove records in the same folder whose connection file is gone. Control thread. */
void jk_record_sweep(const jk_server *server);
/* A cell begins, a cell ends. Any thread; no system call. */
void jk_record_cell(jk_server *server, bool running);
/* The counter is known: a cell that was announced before the language was up gets its number. */
void jk_record_count(jk_server *server, long count);

/* Stream text goes into the queue. Under outbox.lock; no system call. */
void jk_record_text(jk_server *server, const char *text, size_t size);
/* So much of it has been handed to the transport, or given up. Any thread. */
void jk_record_sent(jk_server *server, size_t size);

/* --- crash_text.c: async-signal-safe ---------------------------------------------------------------------
 */

/* Text in a fixed room; what does not fit is left out. Always NUL-ended. */
typedef struct jk_ink {
    char *text;
    size_t size, room;
} jk_ink;

void jk_ink_text(jk_ink *ink, const char *text);
void jk_ink_bytes(jk_ink *ink, const char *text, size_t size);
void jk_ink_number(jk_ink *ink, unsigned long long value, unsigned base);

const char *jk_signal_name(int number); /* "SIGSEGV", ... */
/* What happened and where, in half a line: "address 0x0 is not mapped (reading)". */
void jk_crash_describe(jk_ink *ink, const siginfo_t *info, const void *context);
/* The C frames below the fault, or without a `context` those of the caller, one a line: library, offset and,
 * where the linker knows it, the function. */
void jk_crash_frames(jk_ink *ink, const void *context);
/* Call once before: the unwinder loads its library at its first use. */
void jk_crash_frames_prime(void);

/* --- crash.c ----------------------------------------------------------------------------------------------
 */

/* The server goes down: from here on a fatal signal just ends the process. */
void jk_crash_forget(jk_server *server);
/* io thread, after each poll: publish the report if one waits. */
void jk_crash_look(jk_server *server);
/* The report has left, or cannot. Any thread. */
void jk_crash_published(bool left);

/* --- crash_publish.c ---------------------------------------------------------------------------------------
 */

/* Send everything queued, then the report. io thread, or its fault handler. */
void jk_crash_publish(jk_server *server);
/* Send what is queued, at once and in order, whatever is in flight (iopub.c). */
void jk_iopub_send_all(jk_server *server);

#endif
