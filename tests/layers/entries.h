/* Every entry of the vtable, once: X(result, name, parameters, arguments, subject).
 *
 * `result` is STATUS, VOID, BOOL or TYPE, so that a macro per result can be pasted together. `subject` is the
 * object whose backend is called: DRUPE_LAYER_OBJECT(object), or SLOT for the few entries that have none.
 * A new entry of backend.h gets its line here; fault_layer.c does not compile before it has one. */
#ifndef DRUPE_TEST_ENTRIES_H
#define DRUPE_TEST_ENTRIES_H

#include "backends/backend.h"

#define DRUPE_LAYER_OBJECT(object) (((const drupe_object *)(const void *)(object))->backend)

#define DRUPE_ENTRIES_SLOT(X)                                                                                \
    X(BOOL, likely, (drupe_device_type type), (type))                                                        \
    X(STATUS, load, (void **state), (state))                                                                 \
    X(VOID, unload, (void *state), (state))                                                                  \
    X(STATUS, device_count, (void *state, uint32_t *count), (state, count))

#define DRUPE_ENTRIES_OBJECT(X)                                                                              \
    X(STATUS, device_open, (void *state, uint32_t index, drupe_device *device), (state, index, device),      \
      device)                                                                                                \
    X(VOID, device_close, (drupe_device * device), (device), device)                                         \
    X(TYPE, device_type, (drupe_device * device), (device), device)                                          \
    X(STATUS, device_info, (drupe_device * device, drupe_info key, uint64_t * number, drupe_text * text),    \
      (device, key, number, text), device)                                                                   \
    X(STATUS, device_split,                                                                                  \
      (drupe_device * device, const drupe_partition *partition, drupe_device *const *subs, size_t count),    \
      (device, partition, subs, count), device)                                                              \
    X(STATUS, device_fault, (drupe_device * device, const drupe_fault *fault), (device, fault), device)      \
    X(STATUS, device_parts, (drupe_device * device, drupe_domain domain, size_t * count),                    \
      (device, domain, count), device)                                                                       \
    X(STATUS, device_scrub, (drupe_device * device), (device), device)                                       \
    X(STATUS, context_open, (drupe_context * context), (context), context)                                   \
    X(VOID, context_close, (drupe_context * context), (context), context)                                    \
    X(STATUS, queue_open, (drupe_queue * queue, uint32_t flags), (queue, flags), queue)                      \
    X(VOID, queue_close, (drupe_queue * queue), (queue), queue)                                              \
    X(STATUS, queue_flush, (drupe_queue * queue), (queue), queue)                                            \
    X(STATUS, queue_native, (drupe_queue * queue, void **handle), (queue, handle), queue)                    \
    X(STATUS, queue_times, (drupe_queue * queue, bool *kept), (queue, kept), queue)                          \
    X(STATUS, queue_time, (drupe_queue * queue), (queue), queue)                                             \
    X(STATUS, queue_wait, (drupe_queue * queue, uint64_t timeout_ns), (queue, timeout_ns), queue)            \
    X(STATUS, queue_fault, (drupe_queue * queue), (queue), queue)                                            \
    X(VOID, queue_cancel, (drupe_queue * queue, uint64_t begun), (queue, begun), queue)                      \
    X(VOID, event_close, (drupe_event * event), (event), event)                                              \
    X(STATUS, event_state, (drupe_event * event, drupe_event_state * state), (event, state), event)          \
    X(STATUS, event_wait, (drupe_event * event, uint64_t timeout_ns), (event, timeout_ns), event)            \
    X(STATUS, event_times, (drupe_event * event, drupe_times * times), (event, times), event)                \
    X(STATUS, event_notify, (drupe_event * event), (event), event)                                           \
    X(STATUS, mem_alloc,                                                                                     \
      (drupe_context * context, drupe_device * device, drupe_mem_kind kind, size_t size, size_t align,       \
       void **pointer),                                                                                      \
      (context, device, kind, size, align, pointer), context)                                                \
    X(VOID, mem_free, (drupe_context * context, drupe_device * device, drupe_mem_kind kind, void *pointer),  \
      (context, device, kind, pointer), context)                                                             \
    X(STATUS, mem_pin, (drupe_context * context, size_t size, void **pointer), (context, size, pointer),     \
      context)                                                                                               \
    X(VOID, mem_unpin, (drupe_context * context, void *pointer), (context, pointer), context)                \
    X(STATUS, mem_wipe,                                                                                      \
      (drupe_context * context, drupe_device * device, drupe_mem_kind kind, void *pointer, size_t size),     \
      (context, device, kind, pointer, size), context)                                                       \
    X(STATUS, mem_export,                                                                                    \
      (drupe_context * context, drupe_device * device, drupe_mem_kind kind, void *pointer, size_t size,      \
       unsigned char handle[DRUPE_IPC_BYTES]),                                                               \
      (context, device, kind, pointer, size, handle), context)                                               \
    X(STATUS, mem_import,                                                                                    \
      (drupe_context * context, drupe_device * device, const unsigned char handle[DRUPE_IPC_BYTES],          \
       drupe_mem_kind *kind, void **pointer, size_t *size),                                                  \
      (context, device, handle, kind, pointer, size), context)                                               \
    X(VOID, mem_detach, (drupe_context * context, drupe_device * device, void *pointer, size_t size),        \
      (context, device, pointer, size), context)                                                             \
    X(STATUS, program_open, (drupe_program * program, const drupe_source *source, char **log),               \
      (program, source, log), program)                                                                       \
    X(VOID, program_close, (drupe_program * program), (program), program)                                    \
    X(STATUS, program_names, (drupe_program * program, char **names), (program, names), program)             \
    X(STATUS, program_binary, (drupe_program * program, void **bytes, size_t *size), (program, bytes, size), \
      program)                                                                                               \
    X(TYPE, program_advice, (drupe_device * device, drupe_language language), (device, language), device)    \
    X(STATUS, program_tools, (drupe_device * device, drupe_language language, char **tools),                 \
      (device, language, tools), device)                                                                     \
    X(TYPE, program_traits, (drupe_device * device, const drupe_source *source), (device, source), device)   \
    X(STATUS, kernel_open, (drupe_kernel * kernel, const char *name), (kernel, name), kernel)                \
    X(VOID, kernel_close, (drupe_kernel * kernel), (kernel), kernel)                                         \
    X(STATUS, kernel_number, (drupe_kernel * kernel, drupe_kernel_key key, uint64_t * value),                \
      (kernel, key, value), kernel)                                                                          \
    X(STATUS, kernel_arg, (drupe_kernel * kernel, size_t index, drupe_arg_info * info),                      \
      (kernel, index, info), kernel)                                                                         \
    X(STATUS, submit_kernel,                                                                                 \
      (const drupe_submit *s, drupe_kernel *kernel, const drupe_range *range, const drupe_arg *args,         \
       size_t nargs),                                                                                        \
      (s, kernel, range, args, nargs), s->queue)                                                             \
    X(STATUS, submit_copy, (const drupe_submit *s, void *dst, const void *src, size_t bytes),                \
      (s, dst, src, bytes), s->queue)                                                                        \
    X(STATUS, submit_fill,                                                                                   \
      (const drupe_submit *s, void *dst, const void *pattern, size_t pattern_size, size_t bytes),            \
      (s, dst, pattern, pattern_size, bytes), s->queue)                                                      \
    X(STATUS, submit_barrier, (const drupe_submit *s), (s), s->queue)                                        \
    X(STATUS, submit_host, (const drupe_submit *s, drupe_host_fn fn, void *user), (s, fn, user), s->queue)   \
    X(STATUS, submit_prefetch, (const drupe_submit *s, const void *pointer, size_t bytes),                   \
      (s, pointer, bytes), s->queue)                                                                         \
    X(STATUS, submit_advise, (const drupe_submit *s, const void *pointer, size_t bytes, uint32_t advice),    \
      (s, pointer, bytes, advice), s->queue)

#endif
