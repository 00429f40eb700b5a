/* core_bench.h over the scripted backends (test_script.h): work ends when the test says so, the bench writes
 * down what the backend is given, and the test may change the table of "host". What another thread does at
 * the worst moment, the test does itself, where a thread is about to yield, to take a lock or to ask the
 * driver. */
#ifndef SCRIPT_BENCH_H
#define SCRIPT_BENCH_H

#include "core/queue/launch.h"
#include "core_bench.h"
#include "drupe/drupe.h"
#include "test_script.h"
#include "walk/wrap.h"

struct script_bench {
    drupe_memory *memory; /* 64 bytes that the host may use */
    /* How the backend takes work. */
    _Atomic(drupe_status) refuses; /* with this; DRUPE_OK: it takes it */
    bool at_once;                  /* it is over as the call returns, where that can be told */
    _Atomic(bool) finishes;        /* its event is complete from the beginning: core puts barriers of its own
                                    * behind silent work and behind failures that were told */
    /* What it was given last, and how many times it was given something. */
    drupe_work_kind kind;
    size_t nwaits;
    drupe_event *waits[4], *predecessor, *event; /* borrowed */
    size_t taken;
};
extern struct script_bench script;

/* For cmocka, with the queue of a CPU: in order; out of order; in order, of a GPU. */
int script_setup(void **state);
int script_setup_unordered(void **state);
int script_setup_gpu(void **state);
/* Of a driver that takes parts of devices only in contexts over them, with the first part of a CPU as the
 * library's device. */
int script_setup_part(void **state);
drupe_status script_strict(drupe_queue *queue, uint32_t flags); /* its queue_open() */
/* All that the backend was given is over, and what it will be given is so at once. */
void script_finish_all(void);
/* The same, also behind what a failed test has left: for who releases queues of its own. */
void script_over(void);
/* The same, and fails as bench_teardown(). */
int script_teardown(void **state);
/* Of a device that is lost: nothing is given back of what a silent driver may still touch, so nothing is
 * counted. */
int script_teardown_lost(void **state);
/* Each in a process of its own, for what is for good in a process; the number of failures. */
int script_run_apart(const struct CMUnitTest *tests, size_t count);

drupe_queue *script_queue(uint32_t flags);
/* A fill of the bench's memory, behind `wait` (NULL: nothing). */
drupe_event *script_fill(drupe_queue *queue, drupe_event *wait);
/* The same without an event. */
void script_silent(drupe_queue *queue);
/* Its work is over, the caller is told, and the event is released. */
void script_end(drupe_event *event);
/* Work that has failed, which nobody has been told yet. */
drupe_event *script_failure(drupe_queue *queue);
/* The test takes all failures that nobody was told of; how many. */
size_t script_take_failures(void);
/* A kernel with so many arguments, which the bench keeps. */
drupe_kernel *script_kernel(uint32_t nargs);
void script_release(drupe_event **events, size_t count);

/* A checked mode that counts what it is told and answers as the test says, "Checked mode says no.". */
struct script_told {
    drupe_status submission_answer, memory_answer;
    size_t submissions, events, queues, closed, skipped, dropped, memory;
    uint64_t number; /* up to which the last queue is over */
};
extern struct script_told script_told;
extern const drupe_checker script_checker;

/* The next time that a thread yields its processor, or is about to take this lock (NULL: any), it does this
 * first. */
void script_at_yield(void (*act)(void));
void script_at_lock(pthread_mutex_t *lock, void (*act)(void));
/* When the driver is asked about this event for the n-th time, and has its answer ready. */
void script_at_look(drupe_event *event, int time, void (*act)(void));
/* As another thread would, without the queue's lock: ask the driver how far it is. */
drupe_phase script_poll(drupe_event *event);

#endif
