/* Files that outlive the process: a private folder, whole reads, writes that are there or not there. And what
 * runs beside it: child processes.
 *
 * Failures are DRUPE_E_UNAVAILABLE with the system's reason unless said otherwise. */
#ifndef DRUPE_BASE_FILE_H
#define DRUPE_BASE_FILE_H

#include "base/base.h"
#include <sys/types.h>

/* Bytes somewhere, borrowed. */
typedef struct drupe_span {
    const void *bytes;
    size_t size;
} drupe_span;

/* --- hash.c --------------------------------------------------------------------------------------------- */

/* 128 bits over `bytes`, on top of what `hash` holds ({0, 0} to begin with). Any change of a single word
 * changes them; made against accidents, not against people. */
typedef struct drupe_hash {
    uint64_t a, b;
} drupe_hash;
void drupe_hash_add(drupe_hash *hash, const void *bytes, size_t size);

/* --- file.c --------------------------------------------------------------------------------------------- */

/* Make a folder and those above it, as far as they are missing (0700). */
drupe_status drupe_folders_make(const char *path);

/* Open a folder that belongs to this user and that nobody else may write to; `make` creates it (0700), and
 * those above it. Who else may read it may no more (0700), where that can be changed. DRUPE_E_NOT_FOUND when
 * it is missing, DRUPE_E_INVALID when it is another's or open to others. */
drupe_status drupe_folder_open(const char *path, bool make, int *folder) DRUPE_MUST_CHECK;

/* The whole of a regular file of this user, malloc'ed, *taken* by the caller; at most `limit` bytes. `used`
 * notes the time of use in the file. DRUPE_E_NOT_FOUND, DRUPE_E_INVALID for what is no such file. */
drupe_status drupe_file_read(int folder, const char *name, size_t limit, bool used, void **bytes,
                             size_t *size) DRUPE_MUST_CHECK;

/* Put a file of these parts in the place of what had its name: other processes see the old one or the new
 * one, whole. Nothing is left behind on failure. */
drupe_status drupe_file_replace(int folder, const char *name, const drupe_span *parts,
                                size_t nparts) DRUPE_MUST_CHECK;

/* Bytes of `fd` until its end, at most `most`, however often that takes; how many, or -1 with the reason in
 * errno. */
long drupe_read_most(int fd, void *bytes, size_t most);
/* All of it, however often that takes; false with the reason in errno. */
bool drupe_write_all(int fd, const void *bytes, size_t size);

typedef struct drupe_file_entry {
    char *name;
    uint64_t bytes;
    int64_t used; /* nanoseconds since 1970 */
} drupe_file_entry;
/* The regular files of a folder, those used longest ago first; malloc'ed, freed by drupe_folder_list_free().
 */
drupe_status drupe_folder_list(int folder, drupe_file_entry **entries, size_t *count) DRUPE_MUST_CHECK;
void drupe_folder_list_free(drupe_file_entry *entries, size_t count);

/* --- process.c ------------------------------------------------------------------------------------------ */

/* The program's path, malloc'ed, *taken* by the caller: `name` itself when it has a slash, else from PATH.
 * NULL when nothing can be run there. */
char *drupe_process_find(const char *name);

/* Run a program with `input` on its standard input and wait. `output` receives what it wrote to its standard
 * output. DRUPE_E_TIMEOUT when it was ended after `timeout_ns`, with all that it had started, DRUPE_E_INVALID
 * when it failed: both with its first messages, and all of them in `output`. It runs in a process group of
 * its own, so a Ctrl-C spares it.
 */
drupe_status drupe_process_run(const char *const *argv, drupe_span input, uint64_t timeout_ns,
                               drupe_text *output) DRUPE_MUST_CHECK;

/* What such a process, and each that it starts, may take at most. 0: no limit but those of this process. */
typedef struct drupe_process_limits {
    uint64_t timeout_ns; /* until it is ended; UINT64_MAX: never */
    uint64_t seconds;    /* of processor time */
    uint64_t memory;     /* bytes of address space */
    uint64_t file;       /* bytes of each file that it writes */
} drupe_process_limits;
/* The same within limits: DRUPE_E_TIMEOUT also for too much processor time, DRUPE_E_NO_MEMORY when it failed
 * and its messages tell of memory. */
drupe_status drupe_process_run_within(const char *const *argv, drupe_span input,
                                      const drupe_process_limits *limits,
                                      drupe_text *output) DRUPE_MUST_CHECK;

/* From now on a process that the calling thread runs is ended, as after its time, once `*stop` (borrowed;
 * NULL: no more) is true: then that is DRUPE_E_CANCELLED. */
void drupe_process_stop_when(const _Atomic(bool) *stop);

/* --- spawn.c -------------------------------------------------------------------------------------------- */

/* Start a program in a process group of its own, with these descriptors as its standard streams, no signal
 * blocked or handled, and all limits but that of time. 0, or a number of errno. */
int drupe_process_start(const char *const *argv, const int fd[3], const drupe_process_limits *limits,
                        pid_t *process);

#endif
