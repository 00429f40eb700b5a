/* What tests of core's rooms share: the `host` device with a queue of its own and the kernels of
 * test_builtins.h. A room has a file of its own for each of its tests, and one bench at a time. */
#ifndef CORE_BENCH_H
#define CORE_BENCH_H

#include "backends/services.h"
#include "base/base.h"
#include "drupe/check.h"
#include "drupe/memory.h"
#include "drupe/program.h"
#include "drupe/trace.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define LONG   (60 * SECOND) /* a wait that is over before, unless something is wrong */

struct bench {
    drupe_device *device;
    drupe_context *context;
    drupe_queue *queue;
    drupe_program *program;
    drupe_kernel *add, *mad, *gid;
};
extern struct bench bench;

/* For cmocka: an in-order queue; an out-of-order one; */
int bench_setup(void **state);
int bench_setup_unordered(void **state);
/* An in-order queue of a backend that leaves host functions and cancelling to core. */
int bench_setup_poor(void **state);
/* An in-order queue of a backend whose table the test changes. */
int bench_setup_table(void **state);
/* The table of `host`, which a test may change from here on, before it has a device or later. */
void bench_take_table(void);
extern drupe_backend bench_table;
extern const drupe_backend *bench_real; /* the table as it was */
/* Fails when anything is left, or a failure that the test did not take; puts back the table. */
int bench_teardown(void **state);
/* A queue of this device, without kernels. */
int bench_open(const char *filter, uint32_t flags);
/* Another context of the same device, with a queue. */
drupe_queue *bench_elsewhere(void);

void bench_ok(drupe_status status, const char *what, const char *file, int line);
#define OK(expression) bench_ok((expression), #expression, __FILE__, __LINE__)
void bench_fails(drupe_status status, drupe_status expected, const char *part, const char *file, int line);
/* It fails with `expected`, and the message has `part` in it. */
#define FAILS(expression, expected, part) bench_fails((expression), (expected), (part), __FILE__, __LINE__)

drupe_memory *bench_memory(drupe_queue *queue, drupe_mem_kind kind, size_t bytes);
/* On the bench's queue. */
drupe_memory *bench_shared(size_t bytes);
/* All bytes of host-accessible memory have this value. */
void bench_expect_bytes(const drupe_memory *memory, unsigned char value, size_t bytes);

/* What another thread does while the next submission of this one is on its way: with this observer, core asks
 * for the cell before it takes the lock. NULL when it is done. */
extern _Thread_local void (*bench_meanwhile)(void);
extern const drupe_observer bench_observer;

/* An event that the test ends: what waits for it is held. */
drupe_event *bench_gate(void);
void bench_open_gate(drupe_event *gate); /* and release it */
/* A host function that is good. */
drupe_status bench_nothing(void *unused);
/* A host function that fails, on this queue, with this text. */
#define PLANNED "planned failure"
drupe_event *bench_failure(drupe_queue *queue, const char *label, drupe_event *wait);
/* A kernel out[i] = in[i] * mul + add over n numbers, behind `wait` (NULL: nothing). */
drupe_status bench_mad(drupe_queue *queue, drupe_memory *out, drupe_memory *in, uint64_t n, uint64_t mul,
                       uint64_t add, drupe_event *wait, drupe_event **event);
drupe_status bench_fill(drupe_queue *queue, drupe_memory *memory, unsigned char value, drupe_event *wait,
                        drupe_event **event);
drupe_status bench_barrier(drupe_queue *queue, drupe_event *wait, drupe_event **event);

#endif
