/* The `host` backend's inside.
 *
 * Two thread pools serve the root device and all its sub-devices. The workers of the first are numbered
 * from 0 and run kernels, copies and fills; a device is a range of them, so that sub-devices of one split
 * share none. The second runs host functions only: they may wait for device work and for each other, so it
 * grows when all of its workers seem to be stuck.
 *
 * A submission is a task. It counts what it waits for: its turn on its queue, and events. Whoever takes the
 * count to zero makes it ready: a worker runs one of the tasks that it has just set free itself and puts the
 * others into its list; everybody else drops them into a worker's inbox. A worker without work looks through
 * the lists of the others, for a while, then sleeps. Small copies, fills and built-in kernels of one
 * work-item run on the submitting thread when the queue is idle and their waits are over, because waking a
 * worker costs more than the work; so do larger copies and fills of up to 1 MiB when nobody is awake. A
 * user's kernel is always a task.
 *
 * A worker whose task faults leaves it and goes on, or is given up and its thread replaced: while a body
 * runs, that holds no lock of ours, and nothing but a share of the task belongs to it.
 *
 * Threads: tasks change hands through atomics alone; locks are held for a few instructions and never two at a
 * time, but for tpool->lock, under which lists may be looked through, and sched->lock, a leaf. */
#ifndef DRUPE_HOST_H
#define DRUPE_HOST_H

#include "backends/host/host_task.h"

/* --- The vtable's entries ----------------------------------------------------------------------------------
 */

/* host_info.c */
drupe_status drupe_host_device_info(drupe_device *device, drupe_info key, uint64_t number[3],
                                    drupe_text *text);
/* host_device.c */
drupe_status drupe_host_device_split(drupe_device *device, const drupe_partition *partition,
                                     drupe_device *const *subs, size_t count);
drupe_status drupe_host_device_parts(drupe_device *device, drupe_domain domain, size_t *count);

/* host_memory.c */
drupe_status drupe_host_mem_alloc(drupe_context *context, drupe_device *device, drupe_mem_kind kind,
                                  size_t size, size_t align, void **pointer);
void drupe_host_mem_free(drupe_context *context, drupe_device *device, drupe_mem_kind kind, void *pointer);
drupe_status drupe_host_mem_wipe(drupe_context *context, drupe_device *device, drupe_mem_kind kind,
                                 void *pointer, size_t size);
drupe_status drupe_host_mem_export(drupe_context *context, drupe_device *device, drupe_mem_kind kind,
                                   void *pointer, size_t size, unsigned char handle[DRUPE_IPC_BYTES]);
drupe_status drupe_host_mem_import(drupe_context *context, drupe_device *device,
                                   const unsigned char handle[DRUPE_IPC_BYTES], drupe_mem_kind *kind,
                                   void **pointer, size_t *size);
void drupe_host_mem_detach(drupe_context *context, drupe_device *device, void *pointer, size_t size);

/* host_event.c */
drupe_status drupe_host_queue_open(drupe_queue *queue, uint32_t flags);
void drupe_host_queue_close(drupe_queue *queue);
drupe_status drupe_host_queue_time(drupe_queue *queue);
drupe_status drupe_host_queue_wait(drupe_queue *queue, uint64_t timeout_ns);
drupe_status drupe_host_queue_fault(drupe_queue *queue);
void drupe_host_queue_cancel(drupe_queue *queue, uint64_t begun);
void drupe_host_event_close(drupe_event *event);
drupe_status drupe_host_event_state(drupe_event *event, drupe_event_state *state);
drupe_status drupe_host_event_wait(drupe_event *event, uint64_t timeout_ns);
drupe_status drupe_host_event_times(drupe_event *event, drupe_times *times);
drupe_status drupe_host_event_notify(drupe_event *event);

/* code.c */
drupe_host_code *drupe_host_code_retain(drupe_host_code *code);
void drupe_host_code_release(drupe_host_code *code); /* NULL-safe */
/* Whether this machine has a C compiler; the environment is read once per process. */
bool drupe_host_code_possible(void);

/* host_program.c */
drupe_status drupe_host_program_open(drupe_program *program, const drupe_source *source, char **log);
void drupe_host_program_close(drupe_program *program);
drupe_status drupe_host_kernel_open(drupe_kernel *kernel, const char *name);
drupe_status drupe_host_program_names(drupe_program *program, char **names);
drupe_status drupe_host_program_binary(drupe_program *program, void **bytes, size_t *size);
const char *drupe_host_program_advice(drupe_device *device, drupe_language language);
drupe_status drupe_host_program_tools(drupe_device *device, drupe_language language, char **tools);
uint32_t drupe_host_program_traits(drupe_device *device, const drupe_source *source);
drupe_status drupe_host_kernel_arg(drupe_kernel *kernel, size_t index, drupe_arg_info *info);
drupe_status drupe_host_kernel_number(drupe_kernel *kernel, drupe_kernel_key key, uint64_t *value);

/* host_submit.c */
drupe_status drupe_host_submit_kernel(const drupe_submit *s, drupe_kernel *kernel, const drupe_range *range,
                                      const drupe_arg *args, size_t nargs);
drupe_status drupe_host_submit_copy(const drupe_submit *s, void *dst, const void *src, size_t bytes);
drupe_status drupe_host_submit_fill(const drupe_submit *s, void *dst, const void *pattern,
                                    size_t pattern_size, size_t bytes);
drupe_status drupe_host_submit_barrier(const drupe_submit *s);
drupe_status drupe_host_submit_host(const drupe_submit *s, drupe_host_fn fn, void *user);

#endif
