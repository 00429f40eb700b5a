/* Programs and kernels: how a source is built, how a built one is found again, and what a kernel takes.
 *
 * Reading order: program_open.c -> program.c (the objects) -> build.c, background.c (building)
 * -> specialise.c, spirv.c, spirv_args.c (SPIR-V modules) -> key.c, record.c, cache.c, cache_folder.c (the
 * cache on disk) -> args.c, args_pack.c, arg_summary.c (arguments).
 *
 * Owns: programs, kernels, the cache's folder.
 *
 * Locks: kernel->lock (calls with one kernel) is taken after a queue's; those of cache.c and background.c
 * are leaves.
 *
 * Threads: drupe-cache (stores binaries), drupe-build. */
#ifndef DRUPE_CORE_PROGRAM_ROOM_H
#define DRUPE_CORE_PROGRAM_ROOM_H

#include "base/file.h"
#include "core/program/arg_summary.h"
#include "core/trace/trace_room.h"
#include "drupe/cache.h"

/* --- program.c ------------------------------------------------------------------------------------------ */

struct drupe_program {
    drupe_object object;
    drupe_context *context; /* retained */
    drupe_device *device;   /* retained */
    bool opened;
    bool prints; /* its text calls printf() */
    char *names;
    void *args; /* of a binary: see args.c */
    size_t args_size;
};

struct drupe_kernel {
    drupe_object object;
    drupe_program *program; /* retained */
    pthread_mutex_t lock;
    _Atomic(uint32_t) sole; /* drupe_kernel_enter() */
    bool opened;
    bool prints; /* the program's */
    uint32_t nargs;
    uint64_t group_size, local_size; /* most work-items of a group; local memory used by the kernel itself */
    drupe_arg_info *args;            /* nargs of them, or NULL where the backend cannot tell */
    drupe_form *forms;               /* the same in short, for every launch */
    bool worded;                     /* drupe_kernel_words() */
    uint64_t writes;                 /* which arguments are pointers that something may be written through */
    uint32_t trace_name;             /* drupe_trace_name() */
    char *name;
};

/* drupe_kernel_release() as a keep's function. */
void drupe_kernel_drop(void *kernel);

/* args.c: bytes of one element of an argument's type, as declared; 0 if that is unknown. */
size_t drupe_args_element(const drupe_arg_info *info);

/* Whether kernels of this text may print, as far as the text itself shows it. Of a checked source. */
bool drupe_prints_source(const drupe_source *source);

/* --- build.c, specialise.c ------------------------------------------------------------------------------ */

/* Whether the device takes the source at all. */
drupe_status drupe_source_check(drupe_device *device, const drupe_source *source) DRUPE_MUST_CHECK;
/* What its backend says about it: a set of DRUPE_BUILD_*. */
uint32_t drupe_source_traits(drupe_device *device, const drupe_source *source);
/* Fill the native state of a program, from the disk cache or by a build. `*log`: as drupe_program_open(). */
drupe_status drupe_program_build(drupe_program *program, const drupe_source *source,
                                 char **log) DRUPE_MUST_CHECK;
/* The checked SPIR-V module of `source` with its values set, malloc'ed, *taken* by the caller. */
drupe_status drupe_spirv_specialise(const drupe_source *source, void **bytes, size_t *size) DRUPE_MUST_CHECK;

/* This thread begins with, or is done with, a build of background.c, which was told of before it began. */
void drupe_build_enter(bool enter);
/* cache.c: a build begins, or has ended: what runs in the background stays out of the way meanwhile. */
void drupe_activity_begin(void);
void drupe_activity_end(void);

/* --- record.c ------------------------------------------------------------------------------------------- */

#define DRUPE_RECORD_MAGIC "DRUPEREC" /* its first bytes */
enum { DRUPE_RECORD_PROGRAM = 1, DRUPE_RECORD_BYTES };
/* The parts of a record; of BYTES only WHERE, KEY and BODY. KEY: all that decides a build, as text; WHERE:
 * its beginning, which names device and driver, alone; LOG: the compiler's messages; ARGS: see args.c; BODY:
 * the binary. */
enum {
    DRUPE_PART_WHERE,
    DRUPE_PART_KEY,
    DRUPE_PART_LOG,
    DRUPE_PART_ARGS,
    DRUPE_PART_BODY,
    DRUPE_RECORD_PARTS
};

typedef struct drupe_record {
    uint32_t kind;
    drupe_span parts[DRUPE_RECORD_PARTS]; /* borrowed */
} drupe_record;

drupe_status drupe_record_pack(const drupe_record *record, void **bytes, size_t *size) DRUPE_MUST_CHECK;
/* False when the bytes are no whole record of this kind; else its parts point into them. */
bool drupe_record_open(const void *bytes, size_t size, uint32_t kind, drupe_record *record);

/* --- args.c --------------------------------------------------------------------------------------------- */

/* Append the arguments of all kernels of a program. */
drupe_status drupe_args_pack(drupe_program *program, drupe_text *text) DRUPE_MUST_CHECK;
/* Append those of one kernel. */
void drupe_args_add(drupe_text *text, const char *name, const drupe_arg_info *args, uint32_t nargs);
/* The `nargs` arguments of a kernel; false when they are not known. */
bool drupe_args_find(drupe_span packed, const char *name, uint32_t nargs, drupe_arg_info *args);

/* spirv_args.c: append those of the kernels of a module, as far as it tells them; for lack of memory `text`
 * fails. */
void drupe_spirv_args(const void *bytes, size_t size, drupe_text *text);

/* --- key.c ---------------------------------------------------------------------------------------------- */

/* Append what a binary is tied to: engine, backend, platform, device, driver. */
void drupe_key_where(drupe_text *text, drupe_device *device);
/* Append what else decides a build on this device; `text` has failed where that cannot be told. */
void drupe_key_source(drupe_text *text, drupe_device *device, const drupe_source *source);
/* Whether the source alone decides what is built: it includes nothing and does not ask for the time. */
bool drupe_key_complete(const drupe_source *source);

/* --- cache_folder.c ------------------------------------------------------------------------------------- */

#define DRUPE_CACHE_ENTRY ".bin"

/* The name of an entry: a hash of the parts, and one of these endings. */
void drupe_cache_name(char name[48], const drupe_span *parts, size_t nparts, const char *ending);
/* Whether a name is of exactly the form of an entry, or of any file that the cache makes but its mark. */
bool drupe_cache_is_entry(const char *name);
bool drupe_cache_is_ours(const char *name);
/* Have backup programs leave the folder out. */
void drupe_cache_mark(int folder);
/* Remove what was used longest ago until an eighth of the limit is free (0: all), and what killed processes
 * left; files of others stay. The bytes of that, and of the entries that remain, or NULL. */
drupe_status drupe_cache_make_room(int folder, uint64_t limit, uint64_t *freed,
                                   uint64_t *left) DRUPE_MUST_CHECK;

/* --- cache.c -------------------------------------------------------------------------------------------- */

/* Look for a program's entry. True: `record` points into `*bytes`, malloc'ed and *taken* by the caller.
 * Errors are misses. */
bool drupe_cache_find(const drupe_text *where, const drupe_text *key, void **bytes, drupe_record *record);
/* A driver refused the entry. */
void drupe_cache_reject(const drupe_text *where, const drupe_text *key);
/* Have the program, built from text of that language, stored by a thread of the background. `key` and `log`
 * (may be NULL) are copied. */
void drupe_cache_add(drupe_program *program, drupe_language language, const drupe_text *where,
                     const drupe_text *key, const char *log);
/* Give up what waits to be written, but for what costs nothing, and end the thread that writes. The
 * environment is read again afterwards. */
void drupe_cache_stop(void);

#endif
