/* The conformance suite: what every backend must do, seen through the public interface.
 *
 * Each case gets a fresh suite, and after each case the library is closed and must have no object left. */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "base/base.h"
#include "drupe/check.h"
#include "drupe/memory.h"
#include "drupe/program.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SECOND       1000000000u

/* What differs between backends: where kernels come from. */
struct fixture {
    const char *backend;
    const char *filter;
    drupe_language language;
    const char *source; /* NULL: built-in kernels */
};

const struct fixture *fixture_find(const char *backend);

/* One device with everything to use it. */
struct bench {
    const struct fixture *fixture;
    drupe_device *device;
    drupe_context *context;
    drupe_queue *queue;
    drupe_program *program;
    drupe_kernel *add, *mad, *spin, *gid;
};

struct suite {
    const struct fixture *fixture;
    struct bench bench;  /* the device's default context, a queue of its own */
    struct bench other;  /* the same device, another context; opened by use_other() */
    struct bench remote; /* another backend; opened by use_remote() */
};

void bench_open(struct bench *bench, const struct fixture *fixture, drupe_context *context);
void bench_close(struct bench *bench);
struct bench *use_other(struct suite *suite);
/* NULL when there is no other backend: the case is then skipped, if known.def allows it. */
struct bench *use_remote(struct suite *suite);
/* Whether known.def has it for this backend, or for the driver that DRUPE_TEST_DRIVER names; prints why. */
bool known_gap(const struct suite *suite, const char *name);
/* Skip the running case; fails unless known.def has it. */
void skip_known(const struct suite *suite, const char *name);

/* Fails the case with the engine's message. */
void check_ok(drupe_status status, const char *expression, const char *file, int line);
#define OK(expression) check_ok((expression), #expression, __FILE__, __LINE__)
void check_status(drupe_status status, drupe_status expected, const char *part, const char *expression,
                  const char *file, int line);
/* The expression fails with `expected`, and the message contains `part`. */
#define FAILS(expression, expected, part)                                                                    \
    check_status((expression), (expected), (part), #expression, __FILE__, __LINE__)

/* --- Work ----------------------------------------------------------------------------------------------- */

/* Whether the device has memory of this kind; the kind itself or, where it lacks it, device memory. */
bool has_kind(const struct bench *bench, drupe_mem_kind kind);
drupe_mem_kind kind_or_device(const struct bench *bench, drupe_mem_kind kind);
/* Fails the case where the device lacks the kind. */
drupe_memory *new_memory(drupe_queue *queue, drupe_mem_kind kind, size_t bytes);
/* Read and write through the queue and wait. */
void write_memory(drupe_queue *queue, drupe_memory *memory, const void *bytes, size_t size);
void read_memory(drupe_queue *queue, drupe_memory *memory, void *bytes, size_t size);
void fill_u64(drupe_queue *queue, drupe_memory *memory, uint64_t value, size_t n);
/* All n elements have this value. */
void expect_u64(drupe_queue *queue, drupe_memory *memory, uint64_t value, size_t n);

/* out = in * mul + add over n elements, on `queue`; waits and event may be absent. */
drupe_status submit_mad(struct bench *bench, drupe_queue *queue, drupe_memory *out, drupe_memory *in,
                        size_t n, uint64_t mul, uint64_t add, drupe_event *const *waits, size_t nwaits,
                        drupe_event **event);
drupe_status submit_spin(struct bench *bench, drupe_queue *queue, drupe_memory *out, size_t items,
                         uint64_t rounds, drupe_event **event);

/* Two buffers of n elements, 1 and 2, to see what did not run. */
struct pair {
    drupe_memory *a, *b;
};
struct pair new_pair(drupe_queue *queue, size_t n);
void drop_pair(struct pair pair);

/* A host function that waits until the gate is opened. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool open, entered;
    drupe_status result; /* what the host function then answers */
};
void gate_init(struct gate *gate);
void gate_open(struct gate *gate);
void gate_destroy(struct gate *gate);
/* Stops `queue` until the gate is opened. */
drupe_event *submit_gate(drupe_queue *queue, struct gate *gate);
/* A host function that fails with DRUPE_E_INVALID and this text. */
#define PLANNED "planned failure"
drupe_status fail_as_planned(void *user);
drupe_event *submit_failure(drupe_queue *queue, const char *label);

/* --- white_box.c ---------------------------------------------------------------------------------------- */

/* Whether the queue's first deferred entry waits for an event that core has put before it. */
bool white_box_has_marker(drupe_queue *queue);
/* Give a kernel another number of its name in the trace; returns the one that it had. */
uint32_t white_box_trace_name(drupe_kernel *kernel, uint32_t number);
/* drupe_trace_name(). */
uint32_t white_box_name_number(const char *name);
/* drupe_failures_offer(). */
void white_box_offer_failures(void);

/* --- Cases ---------------------------------------------------------------------------------------------- */

typedef struct conformance_case {
    const char *name;
    void (*run)(struct suite *suite);
} conformance_case;
extern const conformance_case cases_order[], cases_failure[], cases_cancel[], cases_failure_log[],
    cases_keep[], cases_copy[], cases_device[], cases_memory[], cases_program[], cases_time[], cases_graph[],
    cases_library[], cases_trace[], cases_check[], cases_unordered[], cases_watch[], cases_inferred[],
    cases_reuse[], cases_contents[], cases_park[];

#endif
