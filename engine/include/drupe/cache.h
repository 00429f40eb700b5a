/* The disk cache of built programs.
 *
 * Where: DRUPE_CACHE_DIR, else $XDG_CACHE_HOME/drupe, else ~/.cache/drupe. DRUPE_CACHE=0 switches it off. It
 * holds at most DRUPE_CACHE_SIZE bytes (a number, or one with K, M or G; 256M), of which the ones used
 * longest ago give way (each of several processes that write may overlook a sixty-fourth of that). Only a
 * folder of this user that nobody else may write to is used. Kernels and scripts share it.
 *
 * An entry is found by the whole of what decides a build (source, options, constants, device, driver,
 * versions), which is recorded in it and compared, and it carries a checksum: damage or a collision is a
 * miss. What the text of a program includes is not looked at, so a program with an #include is never cached.
 * Entries are written by a thread of the engine, once the device has nothing to do if its driver compiles for
 * it; an entry that cannot be written (full disk, read-only folder) is no error of the build.
 *
 * Threads: all functions may be called from any thread. */
#ifndef DRUPE_CACHE_H
#define DRUPE_CACHE_H

#include "drupe/status.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct drupe_cache_info {
    bool on;
    char folder[512]; /* of the entries; "" if none can be named */
    char reason[256]; /* why it is off, or why the last entry was not written; "" if all is well */
    uint64_t entries, bytes, limit;
    /* Of this process, and of programs only: */
    uint64_t hits, misses, stored, rejected; /* rejected: entries that were damaged, foreign or refused */
} drupe_cache_info;
DRUPE_API void drupe_cache_info_get(drupe_cache_info *info);
/* `on` alone, which costs nothing to tell. */
DRUPE_API bool drupe_cache_is_on(void);

/* One entry, as told to the visitor; the texts are valid during its call. */
typedef struct drupe_cache_entry {
    const char *name;   /* of its file */
    const char *device; /* filter-like description: backend, device, driver; "" of bytes of a caller's */
    uint64_t bytes;
    int64_t used; /* seconds since 1970 */
    bool valid;
} drupe_cache_entry;
/* Call `visit` for each entry until it returns false. */
DRUPE_API drupe_status drupe_cache_each(bool (*visit)(const drupe_cache_entry *entry, void *user),
                                        void *user) DRUPE_MUST_CHECK;
/* Remove all entries; `*bytes`, which may be NULL, receives what that freed. */
DRUPE_API drupe_status drupe_cache_clear(uint64_t *bytes) DRUPE_MUST_CHECK;

/* --- Bytes that a caller has made, and would have to make again --------------------------------------------
 *
 * `key` holds all that decides them, but the version of the engine, which is added. */

/* True when there is an entry: `*bytes` is malloc'ed, *taken* by the caller. All else is a miss. */
DRUPE_API bool drupe_cache_bytes_find(const void *key, size_t key_size, void **bytes, size_t *size);
/* Have copies of both written, in the place of an entry of this key. */
DRUPE_API void drupe_cache_bytes_add(const void *key, size_t key_size, const void *bytes, size_t size);

/* Write now what waits to be written. DRUPE_E_TIMEOUT. */
DRUPE_API drupe_status drupe_cache_flush(uint64_t timeout_ns) DRUPE_MUST_CHECK;

#endif
