/* The room of tools: what the server's threads need of the system, in the form in which they need it. It
 * knows neither the protocol nor the server.
 *
 * Owns: the signal stack of each thread, which is freed when the thread ends.
 * Locks: none of its own; it makes those of the other rooms.
 * Threads: it starts those of the other rooms, with every signal blocked that is not raised by a fault. */
#ifndef JK_TOOLS_ROOM_H
#define JK_TOOLS_ROOM_H

#include "base/base.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#define JK_MILLISECOND 1000000LL /* times are in nanoseconds of CLOCK_MONOTONIC */
#define JK_SECOND      1000000000LL

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) ||     \
    __has_feature(thread_sanitizer)
#define JK_SANITIZED 1 /* the sanitizer owns the signal stacks and reports faults */
#else
#define JK_SANITIZED 0
#endif

/* --- waiting.c ----------------------------------------------------------------------------------------- */

/* drupe_now_ns() with a sign, since times are subtracted here. */
static inline int64_t jk_clock(void)
{
    return (int64_t)drupe_now_ns();
}
/* A lock that knows its owner: a crashed thread gives up what it holds, and nothing else. */
void jk_mutex_open(pthread_mutex_t *lock);
void jk_event_raise(int eventfd); /* async-signal-safe */
void jk_event_clear(int eventfd);

#endif
