/* core_bench.h over the scripted backends (test_script.h): work ends when the test says so, and the test may
 * change the table of "host". What another thread does at the worst moment, the test does itself, where a
 * thread of its own is about to wait or to take a lock. */
#ifndef SCRIPTED_H
#define SCRIPTED_H

#include "core/queue/launch.h"
#include "core_bench.h"
#include "test_script.h"
#include "walk/wrap.h"

extern drupe_backend scripted_table;
extern const drupe_backend *scripted_real;

/* For cmocka, with the queue of a CPU: in order; out of order; in order, of a GPU. */
int scripted_setup(void **state);
int scripted_setup_unordered(void **state);
int scripted_setup_gpu(void **state);
/* Of a driver that takes parts of devices only in contexts over them, with the first part of a CPU as the
 * library's device. */
int scripted_setup_part(void **state);
drupe_status scripted_strict(drupe_queue *queue, uint32_t flags); /* its queue_open() */
/* From now on all work is over, also what a failed test has left: for who releases queues of its own. */
void scripted_over(void);
/* The same, and fails as bench_teardown(). */
int scripted_teardown(void **state);

/* A fill of 64 bytes of memory of the bench's own, behind `wait` (NULL: nothing). */
drupe_event *scripted_fill(drupe_queue *queue, drupe_event *wait);
/* The same without an event. */
void scripted_silent(drupe_queue *queue);
/* Its work is over, the caller is told, and the event is released. */
void scripted_end(drupe_event *event);
/* Whether what the backend is given from now on is over at once, if it has an event: core puts barriers of
 * its own behind silent work and behind failures that were told. */
void scripted_at_once(bool now);
/* Whether the backend refuses barriers, with "No barriers.". */
void scripted_refuse_barriers(bool now);
/* A kernel with so many arguments, which the bench keeps. */
drupe_kernel *scripted_kernel(uint32_t nargs);
/* The test takes all failures that nobody was told of; how many. */
size_t scripted_take_failures(void);

/* The next time that a thread yields its processor, or is about to take this lock (NULL: any), it does this
 * first. */
void scripted_at_yield(void (*act)(void));
void scripted_at_lock(pthread_mutex_t *lock, void (*act)(void));

/* Each in a process of its own, for what is for good in a process; the number of failures. */
int scripted_run_apart(const struct CMUnitTest *tests, size_t count);

/* When the driver is asked about this event for the n-th time, and has its answer ready. */
void scripted_at_look(drupe_event *event, int time, void (*act)(void));
/* As another thread would, without the queue's lock: ask the driver how far it is. */
drupe_phase scripted_poll(drupe_event *event);

#endif
