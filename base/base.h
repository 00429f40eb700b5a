/* What every room of both halves may use: text, maps, threads, time, libraries opened by name, the machine's
 * limits. Knows nothing of devices, nor of notebooks. The error detail of status.h is implemented here too.
 *
 * Threads: functions without a word about it are the caller's to serialise per object. */
#ifndef DRUPE_BASE_BASE_H
#define DRUPE_BASE_BASE_H

#include "drupe/status.h"
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#define DRUPE_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* --- text.c: a string that grows ------------------------------------------------------------------------ */

/* Zeroed = empty. An append that finds no memory makes the text `failed`; what was there stays, later appends
 * do nothing, so that a chain of appends needs one check at its end. */
typedef struct drupe_text {
    char *data; /* NUL-ended, or NULL while nothing was appended */
    size_t length, capacity;
    bool failed;
} drupe_text;

void drupe_text_printf(drupe_text *text, const char *format, ...) DRUPE_PRINTF(2, 3);
void drupe_text_append(drupe_text *text, const char *bytes, size_t size);
/* Never NULL; borrowed until the next change. */
const char *drupe_text_get(const drupe_text *text);
/* DRUPE_OK, or DRUPE_E_NO_MEMORY once it failed. */
drupe_status drupe_text_check(const drupe_text *text) DRUPE_MUST_CHECK;
/* The string, *taken* by the caller (free()), or NULL if it is empty or failed; the text is empty then. */
char *drupe_text_take(drupe_text *text);
void drupe_text_clear(drupe_text *text);

/* --- utf8.c --------------------------------------------------------------------------------------------- */

/* The length of the UTF-8 sequence at `text`: 1 to 4, 0 when `size` cuts a so far valid one, -1 when invalid.
 * Nothing is read behind a byte that does not belong to it, so of a NUL-ended string `size` may be 4. */
int drupe_utf8_next(const char *text, size_t size);
bool drupe_utf8_valid(const char *text, size_t size);

/* --- unit.c: numbers for people ------------------------------------------------------------------------- */

#define DRUPE_UNIT_SIZE 24

/* Three digits that count and a unit: "512 MiB", "21.3 GB/s", "1.82 s", "61 %", "12 345". A thing of size
 * zero is "0 B"; a rate or share without a base is "-". */
typedef struct drupe_unit {
    char text[DRUPE_UNIT_SIZE];
} drupe_unit;

drupe_unit drupe_unit_bytes(uint64_t bytes);
drupe_unit drupe_unit_time(uint64_t ns);
drupe_unit drupe_unit_rate(uint64_t bytes, uint64_t ns);
drupe_unit drupe_unit_count(uint64_t count);
drupe_unit drupe_unit_share(double part, double whole);
/* The next round length of time: an axis of such a length keeps its bars in place while time goes on. */
uint64_t drupe_unit_round(uint64_t ns);

/* --- Sizes ---------------------------------------------------------------------------------------------- */

/* The most bytes that anything has: sums of two sizes fit into a size_t and differences into a ptrdiff_t. */
#define DRUPE_SIZE_MOST ((size_t)1 << 62)

/* *product = a * b; false, with *product unchanged, when it exceeds DRUPE_SIZE_MOST. */
static inline bool drupe_size_times(size_t a, size_t b, size_t *product)
{
    size_t result;
    if (__builtin_mul_overflow(a, b, &result) || result > DRUPE_SIZE_MOST) return false;
    *product = result;
    return true;
}

/* The next multiple of 16: what stands behind so many bytes is aligned for any type. */
static inline size_t drupe_round16(size_t size)
{
    return (size + 15) & ~(size_t)15;
}

/* --- map.c: a hash map from byte strings to pointers ---------------------------------------------------- */

/* Zeroed = empty. Keys are copied; values are borrowed and never NULL. */
typedef struct drupe_map {
    struct drupe_map_entry *entries; /* `capacity` of them, a power of two; open addressing */
    size_t count, capacity;
} drupe_map;

/* The value, or NULL. */
void *drupe_map_get(const drupe_map *map, const void *key, size_t size);
/* Set or replace; `*old`, which may be NULL, receives the value replaced or NULL. */
drupe_status drupe_map_put(drupe_map *map, const void *key, size_t size, void *value,
                           void **old) DRUPE_MUST_CHECK;
/* The value removed, or NULL. */
void *drupe_map_remove(drupe_map *map, const void *key, size_t size);
/* Walk in no particular order: start with *cursor = 0; the next value, or NULL at the end. `*key` and
 * `*size`, which may be NULL, receive its key, borrowed. The map must not change meanwhile. */
void *drupe_map_next(const drupe_map *map, size_t *cursor, const void **key, size_t *size);
/* Forget all keys; values are the caller's. */
void drupe_map_clear(drupe_map *map);

/* --- stream.c: memory as processor and system see it -----------------------------------------------------
 */

/* memcpy() that leaves nothing of `dst` in the caches, where the processor can do so: for what a device reads
 * next. */
void drupe_copy_past_caches(void *dst, const void *src, size_t bytes);
/* memcpy() that is not slower for a large copy than for a small one, byte by byte. */
void drupe_copy_bytes(void *dst, const void *src, size_t bytes);
/* Bytes of a page of the system: 4096 on x86-64, up to 65536 on AArch64. */
size_t drupe_page_size(void);

/* --- thread.c: time, locks, threads ----------------------------------------------------------------------
 */

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t drupe_now_ns(void);
/* Something that counts up evenly, at half the price of the time: the processor's counter where it can be
 * relied on, else the time itself. drupe_ticks_start() comes first; drupe_ticks_ns_by() says what time it
 * was. All are async-signal-safe once started. */
void drupe_ticks_start(void);
uint64_t drupe_ticks(void);
typedef struct drupe_ticks_scale {
    uint64_t ticks, ns; /* the same instant */
    double rate;        /* ns per tick */
} drupe_ticks_scale;
drupe_ticks_scale drupe_ticks_scale_now(void);
static inline uint64_t drupe_ticks_ns_by(const drupe_ticks_scale *scale, uint64_t ticks)
{
    /* Time itself needs no scale, and would lose digits. Another processor's counter may have been a hair
     * behind at the start. */
    if (scale->ticks == 0) return ticks;
    return scale->ns + (uint64_t)(int64_t)((double)(int64_t)(ticks - scale->ticks) * scale->rate);
}
/* The time `timeout_ns` from now; UINT64_MAX stays UINT64_MAX and means never. */
uint64_t drupe_deadline(uint64_t timeout_ns);

/* A condition variable that measures CLOCK_MONOTONIC. */
drupe_status drupe_cond_init(pthread_cond_t *cond) DRUPE_MUST_CHECK;
/* Wait for a signal until `deadline`, also with PTHREAD_COND_INITIALIZER; false when the deadline has passed.
 * May wake for no reason. */
bool drupe_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t deadline);

/* Have exit() end the process, streams flushed, ahead of what libraries have registered until now, unless
 * `*standing` (static) is 0 then: their ends may wait for threads that stand, or do their work. glibc only.
 */
void drupe_exit_early(_Atomic(uint32_t) *standing);
/* Have `tell` called with the status before it does so; NULL: nobody, as at first. */
typedef void drupe_exit_function(int status);
void drupe_exit_tell(drupe_exit_function *tell);

/* Start a joinable thread that blocks all signals but those its own mistakes raise (SIGSEGV, SIGBUS, SIGILL,
 * SIGFPE, SIGABRT, SIGTRAP, SIGSYS). `name`: at most 15 characters; NULL: that of the calling thread. */
drupe_status drupe_thread_start(pthread_t *thread, void *(*run)(void *), void *user,
                                const char *name) DRUPE_MUST_CHECK;
/* The id of the calling thread for the system. Async-signal-safe. */
int drupe_thread_id(void);
/* Give the calling thread the mask of such a thread, for threads that a library starts. */
void drupe_thread_signals(sigset_t *before);
/* Whether the thread of this id was started so. Between the other two none is: whoever lists all threads then
 * can tell those that are not ours. */
bool drupe_thread_ours(int id);
void drupe_threads_hold(void);
void drupe_threads_go_on(void);
/* The calling thread ends without returning from what it runs: its stack is not looked at from here on. */
void drupe_thread_forget(void);
/* Have the cache line at `address` come, for writing, while something else is done. NULL is allowed. */
static inline void drupe_prefetch_write(const void *address)
{
#if defined(__x86_64__)
    /* The builtin would ask for a copy to read unless the compiler is told of a newer processor. */
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)address));
#else
    __builtin_prefetch(address, 1);
#endif
}
/* What comes after it is read after what others have read before it, whose code we do not see. */
static inline void drupe_read_barrier(void)
{
#if defined(__aarch64__)
    __asm__ volatile("dmb ishld" : : : "memory");
#else
    __asm__ volatile("" : : : "memory");
#endif
}
/* Tell the processor that this is a waiting loop. */
static inline void drupe_cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* --- dl.c: libraries that are opened at run time -----------------------------------------------------------
 */

typedef struct drupe_dl_symbol {
    const char *name;
    size_t offset; /* of the function pointer in the caller's table: offsetof(table, member) */
    bool optional; /* absent: the pointer stays NULL, which is no error */
} drupe_dl_symbol;

/* Open the first of `names` (NULL-ended) that can be opened and fill `table`. DRUPE_E_UNAVAILABLE names the
 * library, the linker's reason or the missing symbol, and `advice`: what to install ("install the package
 * ocl-icd-libopencl1"). `*handle` is NULL on failure. Thread-safe. */
drupe_status drupe_dl_open(const char *const *names, const char *advice, const drupe_dl_symbol *symbols,
                           size_t count, void *table, void **handle) DRUPE_MUST_CHECK;
/* Open the library in a file, which may have no name, and may be closed then. NULL: dlerror() tells why. The
 * linker takes a library that is open under a path for the one that is asked for, and numbers of descriptors
 * come again: so each call opens another path to the descriptor. Thread-safe. */
void *drupe_dl_descriptor(int fd) DRUPE_MUST_CHECK;

#endif
