/* The OpenCL backend's own types: the function table, native state behind each engine object, and what its
 * files offer each other.
 *
 * Memory comes in tiers, chosen per context by what all its devices can do: Intel's USM extension, fine-grain
 * SVM (serves all three kinds), coarse-grain SVM (serves the device kind only; the host never maps it), none.
 *
 * Owns: what waiters for a driver's callbacks sleep on (cl_watch.c), and queues that were closed before they
 * were finished (retire.c).
 *
 * Locks: one for each context, around its maps and its own queue; one for each area of a CPU's context
 * (driver/guarded.h); those of cl_watch.c and retire.c are leaves.
 *
 * Threads: as backend.h says, core serialises calls on one queue and one kernel. A driver calls back on
 * threads of its own; drupe-retire finishes closed queues. */
#ifndef DRUPE_OPENCL_OPENCL_H
#define DRUPE_OPENCL_OPENCL_H

#include "backends/opencl/cl_state.h"

/* --- error.c -------------------------------------------------------------------------------------------- */

/* "CL_OUT_OF_RESOURCES"; "CL_ERROR" for a code without a name. */
const char *drupe_cl_error_name(cl_int code);
/* Record "<format> failed: NAME (code). hint" under the status that errors.def gives the code. */
drupe_status drupe_cl_fail(cl_int code, const char *format, ...) DRUPE_PRINTF(2, 3) DRUPE_MUST_CHECK;
/* The same under a status of the caller's choice, and with its own sentence instead of the hint. */
drupe_status drupe_cl_fail_as(drupe_status status, cl_int code, const char *format, ...)
    DRUPE_PRINTF(3, 4) DRUPE_MUST_CHECK;
/* Record the failure that a negative execution status of an event stands for. */
drupe_status drupe_cl_fail_event(cl_int status) DRUPE_MUST_CHECK;

/* --- cl_library.c ------------------------------------------------------------------------------------------
 */

bool drupe_cl_likely(drupe_device_type type);
drupe_status drupe_cl_load(void **state);
void drupe_cl_unload(void *state);
drupe_status drupe_cl_device_count(void *state, uint32_t *count);
/* 10 * major + minor of the device's OpenCL version, or 0. */
unsigned drupe_cl_version_of(const drupe_cl_api *api, cl_device_id id);

/* --- cl_device.c -------------------------------------------------------------------------------------------
 */

drupe_status drupe_cl_device_open(void *state, uint32_t index, drupe_device *device);
void drupe_cl_device_close(drupe_device *device);
drupe_status drupe_cl_device_fault(drupe_device *device, const drupe_fault *fault);
drupe_device_type drupe_cl_device_type(drupe_device *device);
drupe_status drupe_cl_device_split(drupe_device *device, const drupe_partition *partition,
                                   drupe_device *const *subs, size_t count);
drupe_status drupe_cl_device_parts(drupe_device *device, drupe_domain domain, size_t *count);
/* A device's string property, malloc'ed, or NULL. */
char *drupe_cl_device_string(const drupe_cl_device *device, cl_device_info key);
/* Whether a list of words separated by blanks, which may be NULL, has this one. */
bool drupe_cl_has_word(const char *list, const char *word);

/* --- cl_info.c ---------------------------------------------------------------------------------------------
 */

drupe_status drupe_cl_device_info(drupe_device *device, drupe_info key, uint64_t number[3], drupe_text *text);

/* --- cl_context.c, usm.c -----------------------------------------------------------------------------------
 */

drupe_status drupe_cl_context_open(drupe_context *context);
void drupe_cl_context_close(drupe_context *context);
drupe_status drupe_cl_mem_alloc(drupe_context *context, drupe_device *device, drupe_mem_kind kind,
                                size_t size, size_t align, void **pointer);
void drupe_cl_mem_free(drupe_context *context, drupe_device *device, drupe_mem_kind kind, void *pointer);
drupe_status drupe_cl_mem_pin(drupe_context *context, size_t size, void **pointer);
void drupe_cl_mem_unpin(drupe_context *context, void *pointer);
/* How many blocks were given back so far. */
uint64_t drupe_cl_mem_freed(void);
drupe_status drupe_cl_mem_wipe(drupe_context *context, drupe_device *device, drupe_mem_kind kind,
                               void *pointer, size_t size);
/* How a device serves a kind, judged alone. */
drupe_usm_support drupe_cl_usm_support(const drupe_cl_caps *caps, drupe_mem_kind kind);

/* --- cl_watch.c --------------------------------------------------------------------------------------------
 */

/* Ask the driver for the execution status: 3 queued ... 0 complete, negative = failed. A query that fails
 * itself counts as a failure with the query's code. */
cl_int drupe_cl_mark_status(drupe_cl_mark *mark);
/* Push the work up to the mark to the device, where that was not done since. */
void drupe_cl_mark_flush(const drupe_cl_mark *mark);
/* Until complete or failed; DRUPE_E_TIMEOUT. */
drupe_status drupe_cl_mark_wait(drupe_cl_mark *mark, uint64_t timeout_ns);
/* Have drupe_core_notify(event) called when the driver says that it is over. */
drupe_status drupe_cl_mark_notify(drupe_cl_mark *mark, drupe_event *event);
/* Release the event; the mark is empty then. No notification starts after it returns. */
void drupe_cl_mark_clear(drupe_cl_mark *mark);

/* usm.c: have memory lie between pages that fault, where the processor that computes is this machine's. */
void drupe_cl_mem_watch(drupe_cl_context *context, const drupe_cl_device *only);
void drupe_cl_mem_unwatch(drupe_cl_context *context);

/* --- retire.c ------------------------------------------------------------------------------------------- */

/* Finish `id`, which was opened for this queue, and release it, later, on another thread. *Taken*. */
void drupe_cl_retire(const drupe_cl_queue *queue, cl_command_queue id);
/* Until all of them are released, at most so long: a driver may never finish. False: some are not. */
bool drupe_cl_retire_wait(uint64_t timeout_ns);

/* --- cl_queue.c, cl_event.c
 * ----------------------------------------------------------------------------------- */

drupe_status drupe_cl_queue_open(drupe_queue *queue, uint32_t flags);
void drupe_cl_queue_close(drupe_queue *queue);
drupe_status drupe_cl_queue_times(drupe_queue *queue, bool *kept);
drupe_status drupe_cl_queue_time(drupe_queue *queue);
drupe_status drupe_cl_queue_flush(drupe_queue *queue);
drupe_status drupe_cl_queue_native(drupe_queue *queue, void **handle);
drupe_status drupe_cl_queue_wait(drupe_queue *queue, uint64_t timeout_ns);
/* A command was enqueued, with the native event `own` (taken), or that of `event`, or none. */
void drupe_cl_queue_note(drupe_queue *queue, cl_event own, drupe_cl_event *event);
/* Whether one look tells that all which was enqueued on an in-order queue is over; the queue's lock. */
bool drupe_cl_queue_idle(drupe_cl_queue *queue);
/* Make `marker` the queue's own where it is lent; the queue's lock. */
void drupe_cl_queue_own(drupe_cl_queue *queue);
/* The event closes: what it lent goes over to its queue. Any thread. */
void drupe_cl_queue_inherit(drupe_cl_event *event);
void drupe_cl_event_close(drupe_event *event);
drupe_status drupe_cl_event_state(drupe_event *event, drupe_event_state *state);
drupe_status drupe_cl_event_wait(drupe_event *event, uint64_t timeout_ns);
drupe_status drupe_cl_event_times(drupe_event *event, drupe_times *times);
drupe_status drupe_cl_event_notify(drupe_event *event);

/* --- cl_scrub.c ----------------------------------------------------------------------------------------- */

drupe_status drupe_cl_device_scrub(drupe_device *device);

/* --- cl_program.c, translate.c, kernel.c -------------------------------------------------------------------
 */

drupe_status drupe_cl_program_open(drupe_program *program, const drupe_source *source, char **log);
void drupe_cl_program_close(drupe_program *program);
drupe_status drupe_cl_program_names(drupe_program *program, char **names);
drupe_status drupe_cl_program_binary(drupe_program *program, void **bytes, size_t *size);
const char *drupe_cl_program_advice(drupe_device *device, drupe_language language);
/* The LLVM version that a platform's driver is made with, when its devices take bitcode instead of SPIR-V; or
 * 0. */
unsigned drupe_cl_bitcode_version(const drupe_cl_api *api, cl_platform_id platform, const char *extensions);
/* The program that turns SPIR-V into bitcode of that version, malloc'ed, or NULL. DRUPE_LLVM_SPIRV names one.
 */
char *drupe_cl_translator(unsigned llvm);
/* Translate the SPIR-V of `source` for the device. */
drupe_status drupe_cl_translate(const drupe_cl_device *device, const drupe_source *source,
                                drupe_text *bitcode) DRUPE_MUST_CHECK;
drupe_status drupe_cl_kernel_open(drupe_kernel *kernel, const char *name);
void drupe_cl_kernel_close(drupe_kernel *kernel);
drupe_status drupe_cl_kernel_number(drupe_kernel *kernel, drupe_kernel_key key, uint64_t *value);
drupe_status drupe_cl_kernel_arg(drupe_kernel *kernel, size_t index, drupe_arg_info *info);
/* With coarse-grain SVM on NVIDIA an argument that was once set to an SVM pointer cannot become NULL again:
 * one way of setting it keeps the old pointer silently, the other makes the launch fail. So there the native
 * kernel is opened anew for arguments that become NULL. */
drupe_status drupe_cl_kernel_renew(drupe_kernel *kernel, const drupe_arg *args, size_t nargs);
/* Read a type as the compiler writes it ("float4*", "uint") into scalar and lanes. */
void drupe_cl_parse_type(const char *text, drupe_scalar_type *scalar, uint32_t *lanes);

/* --- cl_builtin.c: the engine's precompiled kernels, where the driver calls functions ----------------------
 */

#define DRUPE_CL_CALL_ARGS  18
#define DRUPE_CL_CALL_BYTES 1024

/* One call of such a kernel: it has no address of its own parts, so that drivers can copy it. */
typedef struct drupe_cl_call {
    drupe_builtin_fn run;
    size_t items, threads;
    size_t size; /* bytes that are used of all this */
    uint32_t nargs, offsets[DRUPE_CL_CALL_ARGS];
    _Alignas(16) unsigned char values[DRUPE_CL_CALL_BYTES];
} drupe_cl_call;
/* Fill in what a kernel needs that has no `id`; DRUPE_E_NOT_FOUND. */
drupe_status drupe_cl_builtin_open(drupe_cl_kernel *kernel, const char *name);
/* Copy a launch into `call`; DRUPE_E_UNSUPPORTED, DRUPE_E_INVALID. */
drupe_status drupe_cl_builtin_pack(const drupe_cl_kernel *kernel, const drupe_range *range,
                                   const drupe_arg *args, size_t nargs, drupe_cl_call *call);
/* Run it, a drupe_cl_call, on this thread and others. */
void CL_CALLBACK drupe_cl_builtin_run(void *call);

/* --- range.c -------------------------------------------------------------------------------------------- */

/* Settle a range's local size, which the kernel remembers; core has checked one that is given, but for what
 * the kernel was written for.
 *
 * With local[0] == 0 the local size is chosen from powers of two that divide the global size, so that a
 * just-in-time compiler sees few different sizes: at most 256 work-items, halved until every compute unit has
 * work. `settled_by_driver` is set where a GPU's driver should choose, because no useful power of two
 * divides. On a CPU such a range runs with local size 1: round the global size up and check the bound in the
 * kernel. */
drupe_status drupe_cl_range_settle(drupe_cl_kernel *kernel, const drupe_range *range);
/* --- cl_submit.c -------------------------------------------------------------------------------------------
 */

drupe_status drupe_cl_submit_kernel(const drupe_submit *s, drupe_kernel *kernel, const drupe_range *range,
                                    const drupe_arg *args, size_t nargs);
drupe_status drupe_cl_submit_copy(const drupe_submit *s, void *dst, const void *src, size_t bytes);
drupe_status drupe_cl_submit_fill(const drupe_submit *s, void *dst, const void *pattern, size_t pattern_size,
                                  size_t bytes);
drupe_status drupe_cl_submit_barrier(const drupe_submit *s);
drupe_status drupe_cl_submit_prefetch(const drupe_submit *s, const void *pointer, size_t bytes);
drupe_status drupe_cl_submit_advise(const drupe_submit *s, const void *pointer, size_t bytes,
                                    uint32_t advice);

#endif
