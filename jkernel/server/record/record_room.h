/* The room of the record: what is known of a kernel that died, for the next one to tell.
 *
 * The record is a small file beside the connection file ("<connection file>.drupe-state", mode 0600), mapped
 * into memory while the kernel runs and removed at a clean end. Writing it costs no system call, and it
 * outlives the process whatever ends it. A kernel that starts with the same connection file finds it, and
 * says in its first output what became of the one before.
 *
 * Owns: the record, and the story of the kernel before. Locks: none; what several threads write is atomic.
 * Threads: any; opening, closing and sweeping say whose. */
#ifndef JK_RECORD_ROOM_H
#define JK_RECORD_ROOM_H

#include "jkernel/server/life/life_room.h"

#define JK_CRASH_SUMMARY 320
#define JK_CRASH_DETAIL  12000
#define JK_KEPT_SIZE     1024
#define JK_TEXT_SIZE     (16u << 10)

/* The room of crashes writes it. */
typedef struct jk_crash_report {
    atomic_bool shown; /* the crash was published */
    atomic_int signal; /* of the crash; 0: none */
    int status;        /* with which `call` ends the process */
    char call[32];     /* "exit(3)" and the like; "": a signal did */
    char summary[JK_CRASH_SUMMARY];
    char detail[JK_CRASH_DETAIL]; /* lines */
} jk_crash_report;

/* Only read by the same build on the same machine: the layout is guarded by `magic` and `size`. life_record.c
 * writes it, but for `crash`. */
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
    /* Notes for the case of a kill; the half that `kept_at` names is whole. */
    atomic_uint kept_at;
    char kept[2][JK_KEPT_SIZE];
    jk_crash_report crash;
    /* Text of cells, a ring: what was written and what has been sent of it, in bytes since the start. */
    atomic_ullong text_written, text_sent;
    char text[JK_TEXT_SIZE];
} jk_record;

typedef struct jk_record_keeper {
    _Atomic(jk_record *) mapped; /* NULL: there is no file */
    jk_record spare;             /* the record then */
    atomic_long count;           /* executions so far */
    _Atomic(char *) notice;      /* what to say in the first output, owned; NULL: nothing */
} jk_record_keeper;

static inline jk_record *jk_record_of(const jk_server *server)
{
    jk_record *mapped = atomic_load_explicit(&server->keeper->mapped, memory_order_relaxed);
    return mapped ? mapped : &server->keeper->spare;
}

/* The line in `detail` that the engine's notes stand under, to its end. */
#define JK_CRASH_NOTES "Last device operations:\n"

/* --- life_record.c ------------------------------------------------------------------------------------- */

/* Find what the kernel before left behind and begin a new record, before other threads run. Never fails:
 * without a file the record is plain memory. Main thread, as the next one. */
void jk_record_open(jk_server *server);
/* A clean end: remove the file. */
void jk_record_close(jk_server *server);
/* Remove records in the same folder whose connection file is gone. Control thread. */
void jk_record_sweep(const jk_server *server);
/* A cell begins, a cell ends. No system call. */
void jk_record_cell(jk_server *server, bool running);
/* The counter is known: a cell that was announced before the language was up gets its number. */
void jk_record_count(jk_server *server, long count);
/* The end was asked for. */
void jk_record_ending(jk_server *server);
/* Stream text goes into the queue. Under outbox.lock; no system call. */
void jk_record_text(jk_server *server, const char *text, size_t size);
/* So much of it has been handed to the transport, or given up. */
void jk_record_sent(jk_server *server, size_t size);
/* Whether there is something to say of the kernel before; take it, for free(). NULL: nothing. */
bool jk_record_has_notice(const jk_server *server);
char *jk_record_take_notice(jk_server *server);

/* --- record_story.c ------------------------------------------------------------------------------------ */

/* What to tell about the kernel that left `old`, for free(), or NULL. */
char *jk_record_story(const jk_record *old, const jk_record *now);

/* --- fixed_text.c: async-signal-safe -------------------------------------------------------------------- */

/* Text in a fixed room; what does not fit is left out. Always NUL-ended. */
typedef struct jk_fixed_text {
    char *text;
    size_t size, room;
} jk_fixed_text;

void jk_fixed_text_add(jk_fixed_text *out, const char *text);
void jk_fixed_text_number(jk_fixed_text *out, unsigned long long value, unsigned base);

const char *jk_signal_name(int number); /* "SIGSEGV", ... */

#endif
