/* What tests of queues over scripted backends (test_script.h) share: a device with a queue, a table of the
 * backend that a test may change, and how the backend takes what it is given. One at a time. */
#ifndef SCRIPT_BENCH_H
#define SCRIPT_BENCH_H

#include "core/queue/launch.h"
#include "drupe/drupe.h"
#include "test_script.h"
#include "walk/wrap.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define LONG   (60 * SECOND) /* a wait that is over before, unless something is wrong */

struct script_bench {
    drupe_device *device;
    drupe_context *context;
    drupe_queue *queue;
    drupe_memory *memory; /* 64 bytes that the host may use */
    drupe_backend table;  /* the first backend's */
    const drupe_backend *real;
    /* How the backend takes work. */
    drupe_status refuses;   /* with this; DRUPE_OK: it takes it */
    bool at_once;           /* it is over as the call returns, where that can be told */
    _Atomic(bool) finishes; /* its event is complete from the beginning */
    /* What it was given last, and how many times it was given something. */
    drupe_work_kind kind;
    size_t nwaits;
    drupe_event *waits[4], *predecessor, *event; /* borrowed */
    size_t taken;
};
extern struct script_bench script;

/* For cmocka: an in-order queue; an out-of-order one. */
int script_setup(void **state);
int script_setup_unordered(void **state);
/* Ends what is unfinished. Fails when anything is left, or a failure that the test did not take. */
int script_teardown(void **state);
/* All that the backend was given is over, and what it will be given is so at once. */
void script_finish_all(void);
drupe_queue *script_queue(uint32_t flags);

void script_ok(drupe_status status, const char *what, int line);
#define OK(expression) script_ok((expression), #expression, __LINE__)
void script_fails(drupe_status status, drupe_status expected, const char *part, int line);
/* It fails with `expected`, and the message has `part` in it. */
#define FAILS(expression, expected, part) script_fails((expression), (expected), (part), __LINE__)

/* Work on the queue behind `wait` (NULL: nothing); `event` may be NULL. */
drupe_status script_fill(drupe_queue *queue, drupe_memory *memory, drupe_event *wait, drupe_event **event);
drupe_status script_barrier(drupe_queue *queue, drupe_event *wait, drupe_event **event);
/* The event that the caller ends; not held by the bench. */
drupe_event *script_gate(void);
/* Work that has failed, which nobody has been told yet; and forget all failures that are not told. */
drupe_event *script_failure(drupe_queue *queue);
void script_forget_failures(void);
void script_release(drupe_event **events, size_t count);

#endif
