/* The trace ring: what is remembered of each submission, for timelines, events and the panel.
 *
 * Files: trace.c (writing and reading records), trace_text.c (a record as text), trace_wake.c (waking who
 * follows the trace).
 *
 * Owns: the ring and its tables of names. Writers share nothing but the number of submissions; tables_lock,
 * a leaf, guards the tables of names. No threads. */
#ifndef DRUPE_CORE_TRACE_ROOM_H
#define DRUPE_CORE_TRACE_ROOM_H

#include "core/object/object_room.h"

typedef struct drupe_arg_summary drupe_arg_summary;

/* A small number for a device's filter string, for drupe_trace_queue; 0 when there are too many.
 */
uint32_t drupe_trace_device(const char *filter);
/* What host functions, barriers and copies are called; the trace compares addresses. */
extern const char drupe_label_host[], drupe_label_barrier[], drupe_label_copy[];
/* A small number for the name of a kernel; 0 when there are too many. */
uint32_t drupe_trace_name(const char *name);
/* Which submission this is and where it comes from: what the trace and the record of a failure tell of it. */
typedef struct drupe_subject {
    uint64_t number;
    void *cell;        /* retained by the observer, or NULL */
    const char *label; /* static, the kernel's name, or a copy */
    uint32_t site;
    uint32_t cell_number; /* the observer's, 0 = none */
    drupe_keep *refs;     /* what it keeps alive */
    uint32_t nrefs;
    const drupe_arg_summary *summary; /* what it was called with */
} drupe_subject;

/* The queue of a record, as the trace tells it. */
typedef struct drupe_trace_queue {
    uint32_t number;
    uint32_t device; /* drupe_trace_device() of its device */
    bool unordered;
} drupe_trace_queue;

/* The rest of a new record. */
typedef struct drupe_trace_work {
    drupe_work_kind kind;
    uint32_t name;  /* drupe_trace_name() of the label, where that is a kernel's name; else 0 */
    bool told;      /* who runs it tells when */
    uint64_t ticks; /* when it was submitted; 0: now */
    uint64_t bytes, items;
} drupe_trace_work;
/* The submission is about to be launched or deferred. */
void drupe_trace_begin(const drupe_trace_queue *queue, const drupe_subject *what,
                       const drupe_trace_work *work);
/* The whole record of work that the submitting thread has done since `work->ticks`. */
void drupe_trace_at_once(const drupe_trace_queue *queue, const drupe_subject *what,
                         const drupe_trace_work *work);
/* The whole record of a barrier that was over when it was made; as begin() and end() would, in less time. */
void drupe_trace_barrier(const drupe_trace_queue *queue, uint64_t number, uint32_t site, uint32_t cell);
/* A number that gets no record, so that readers need not wait for one. */
void drupe_trace_skip(uint64_t number);
/* It was found to be over. The first call counts. Any thread. */
void drupe_trace_end(uint64_t number, drupe_trace_status status);
/* The same for several that were found at once, at drupe_ticks(). */
void drupe_trace_end_at(uint64_t number, drupe_trace_status status, uint64_t ticks);
/* Its work was done while it was submitted, and well. */
void drupe_trace_end_at_once(uint64_t number);
/* Its end will be written soon. */
void drupe_trace_prefetch(uint64_t number);
/* The device's times of finished work. */
void drupe_trace_times(uint64_t number, const drupe_times *times);
/* trace_wake.c: the record of this number is written. */
void drupe_trace_made(uint64_t number);
/* One record; false when it is gone, or was never written. Async-signal-safe. */
bool drupe_trace_one(uint64_t number, drupe_trace_record *record);

#endif
