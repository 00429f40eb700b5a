/* A stand-in for the engine's core: just enough objects to call the backend's table directly, with none of
 * core's checks. Every make_* fails the running test when the backend refuses; the try_* give its status. */
#ifndef OPENCL_STAND_IN_H
#define OPENCL_STAND_IN_H

#include "backends/services.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

extern const drupe_backend drupe_backend_opencl;

struct drupe_device {
    drupe_object object;
    drupe_device *parent;
};
struct drupe_context {
    drupe_object object;
    drupe_device *devices[8];
    size_t count;
};
struct drupe_queue {
    drupe_object object;
    drupe_context *context;
    drupe_device *device;
};
struct drupe_event {
    drupe_object object;
    drupe_queue *queue;
};
struct drupe_program {
    drupe_object object;
    drupe_context *context;
    drupe_device *device;
    char *names;
};
struct drupe_kernel {
    drupe_object object;
    drupe_program *program;
    char name[48];
};

/* One device with a context, a queue and what the test adds. Zeroed = empty. */
typedef struct fixture {
    void *state;
    drupe_device *device;
    drupe_context *context;
    drupe_queue *queue;
} fixture;

/* What the shim makes of the real driver; "" = the real driver itself. Several words may be combined:
 * coarse, nosvm, far, gpu, old, intel, noshared, align, fault, silent, strict, noplatform, nodevice, fills;
 * plain: nothing.
 */
void fixture_open(fixture *b, const char *shim);
/* The same with a profiling queue. */
void fixture_open_profiling(fixture *b, const char *shim);
void fixture_close(fixture *b);
/* Load the library under these shim words; skips the test when the machine has no OpenCL device. */
void *load_backend(const char *shim);
/* Skips the test when the machine's first OpenCL device has no unified shared memory to lend to the shim. */
void need_memory(void);
drupe_status try_load(const char *library, const char *shim, void **state);

drupe_device *make_device(void *state, uint32_t index);
void close_device(drupe_device *device);
drupe_status try_split(drupe_device *device, const drupe_partition *partition, drupe_device **subs,
                       size_t count);
drupe_context *make_context(drupe_device *const *devices, size_t count);
void close_context(drupe_context *context);
drupe_status try_queue(drupe_context *context, drupe_device *device, uint32_t flags, drupe_queue **queue);
void close_queue(drupe_queue *queue);
drupe_event *make_event(drupe_queue *queue);
void close_event(drupe_event *event);
drupe_status try_source(drupe_context *context, drupe_device *device, const drupe_source *source, char **log,
                        drupe_program **program);
drupe_status try_program(drupe_context *context, drupe_device *device, const char *text, const char *options,
                         char **log, drupe_program **program);
void close_program(drupe_program *program);
drupe_status try_kernel(drupe_program *program, const char *name, drupe_kernel **kernel);
void close_kernel(drupe_kernel *kernel);

uint64_t info_number(drupe_device *device, drupe_info key);
/* Wait until the queue is idle; fails the test otherwise. */
void wait_idle(drupe_queue *queue);
/* Fail unless the last error has this status and its text contains `part`. */
void assert_error(drupe_status got, drupe_status status, const char *part);

extern _Atomic(unsigned) stand_in_notified; /* calls of drupe_core_notify() */

/* The tests, by file; each array ends with a test without a name. */
extern const struct CMUnitTest signal_tests[], limit_tests[], memory_tests[], queue_tests[], program_tests[],
    scrub_tests[], table_tests[], builtin_tests[];

#endif
