/* Devices: what a machine has, how to choose, how to divide.
 *
 * The library is one per process and opens itself on first use. A backend's vendor library is opened when one
 * of its devices is first asked for; the built-in `host` device is always there and needs none.
 *
 * Threads: all functions may be called from any thread. */
#ifndef DRUPE_DEVICE_H
#define DRUPE_DEVICE_H

#include "drupe/device_words.h"
#include "drupe/status.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct drupe_device drupe_device;
typedef struct drupe_context drupe_context;

typedef enum drupe_device_type {
    DRUPE_DEVICE_CPU,
    DRUPE_DEVICE_GPU,
    DRUPE_DEVICE_ACCELERATOR,
    DRUPE_DEVICE_CUSTOM
} drupe_device_type;

typedef enum drupe_usm_support {
    DRUPE_USM_NONE,  /* allocation answers DRUPE_E_UNSUPPORTED */
    DRUPE_USM_NATIVE /* the driver's own */
} drupe_usm_support;

typedef enum drupe_info {
#define DRUPE_INFO(key, type, enumeration, name, doc) DRUPE_INFO_##key,
#include "drupe/device_info.def"
#undef DRUPE_INFO
    DRUPE_INFO_COUNT
} drupe_info;

/* The bit of a word in a FLAGS property. */
#define DRUPE_FLAG(word) (UINT64_C(1) << (word))

/* As device_info.def explains them. */
typedef enum drupe_info_type {
    DRUPE_INFO_STRING,
    DRUPE_INFO_U64,
    DRUPE_INFO_U64X3,
    DRUPE_INFO_LIST,
    DRUPE_INFO_BOOL,
    DRUPE_INFO_ENUM,
    DRUPE_INFO_FLAGS
} drupe_info_type;

/* How to divide a device; `kind` is not SPLIT_NONE. */
typedef struct drupe_partition {
    drupe_partition_kind kind;
    size_t count; /* EQUALLY: 1, with units[0] compute units per sub-device. COUNTS: length of units */
    const uint32_t *units; /* borrowed; not used by AFFINITY */
    drupe_domain domain;   /* AFFINITY: what the units of a sub-device share; NEXT: the first that divides */
} drupe_partition;

/* --- Finding ------------------------------------------------------------------------------------------- */

/* All devices that match `filter` (NULL or "" = all), best backend first, each retained. At most `capacity`
 * are written; `*count` is the number there are.
 *
 * A filter is a comma-separated list of alternatives `backend:type:number`, each part optional and at least
 * one present: "opencl:cpu:0", "cpu", "host", "opencl", "gpu,cpu", "1". The number counts among the devices
 * that match the other parts. Upper and lower case are the same. A word that is neither a known backend nor a
 * known type is DRUPE_E_INVALID; a well-formed filter without a match gives *count 0.
 *
 * Behind the number a path leads into the device: "opencl:cpu:0.1" is part 1 of device 0, "0.1.0" part 0 of
 * that. A step divides into single compute units, or along the next affinity domain where units cannot be
 * chosen; "0{2}.1" divides into equal parts of 2 units, "0{2+1}.0" by counts, "0{numa}.0" along a domain. A
 * sub-device that lives already is given again. Listing with a path gives that one part.
 *
 * Which devices there are may be limited by the environment: see drupe_device_selector(). */
DRUPE_API drupe_status drupe_device_list(const char *filter, drupe_device **devices, size_t capacity,
                                         size_t *count) DRUPE_MUST_CHECK;

/* The devices of the backends that are open, best first, each retained; at most `capacity`. Opens nothing,
 * asks no driver and waits for no lock: a backend that is being opened or closed at this moment is left out.
 * Returns how many were written. */
DRUPE_API size_t drupe_device_known(drupe_device **devices, size_t capacity);

/* The best device for `filter`: its first alternative that matches; among several matches the one with the
 * highest drupe_device_score(), among equals the first of the list. NULL = the default device (the best GPU,
 * else `host`). Retained; the same root device is always the same object. DRUPE_E_NOT_FOUND names what there
 * is. */
DRUPE_API drupe_status drupe_device_select(const char *filter, drupe_device **device) DRUPE_MUST_CHECK;

/* The environment variable that limits the devices ("DRUPE_DEVICES", "ONEAPI_DEVICE_SELECTOR") and its text,
 * or NULL. Both have the syntax `backend:devices;...`: a backend is a name or `*`; devices are `*`, types,
 * numbers of devices in their backend, UUIDs, or parts of one such as `0.1` (`0.*` = all its parts),
 * separated by commas; a term that begins with `!` takes devices away, and stands last. What is chosen is
 * numbered anew. DRUPE_DEVICES has the last word; ONEAPI_DEVICE_SELECTOR knows nothing of `host` and leaves
 * it in place. Read when a backend is opened; a text that cannot be understood makes every listing
 * DRUPE_E_INVALID, with the part that is wrong. `*text`, which may be NULL, is borrowed from the environment.
 */
DRUPE_API const char *drupe_device_selector(const char **text);

DRUPE_API drupe_device *drupe_device_retain(drupe_device *device); /* NULL-safe */
DRUPE_API void drupe_device_release(drupe_device *device);         /* NULL-safe */

/* --- Asking -------------------------------------------------------------------------------------------- */

DRUPE_API const char *drupe_device_backend(const drupe_device *device); /* "host", "opencl"; static */
DRUPE_API drupe_device_type drupe_device_kind(const drupe_device *device);
DRUPE_API const char *drupe_device_type_name(drupe_device_type type); /* "cpu", ...; static */

/* The filter that selects this device again, such as "opencl:cpu:0" or "host:cpu:0.1". Borrowed. */
DRUPE_API const char *drupe_device_filter(const drupe_device *device);

/* Higher is better: GPU 1000, accelerator 800, CPU 500, custom 100; +50 for `host`, which starts at once. */
DRUPE_API int drupe_device_score(const drupe_device *device);

DRUPE_API drupe_info_type drupe_info_type_of(drupe_info key);
DRUPE_API const char *drupe_info_name(drupe_info key); /* the Python name; static */
/* Of an ENUM or FLAGS property: the name of its enumeration, such as "fp_config", and its words by number,
 * NULL behind the last one. NULL for other properties; static. */
DRUPE_API const char *drupe_info_enumeration(drupe_info key);
DRUPE_API const char *drupe_info_word(drupe_info key, unsigned number);
/* The number of a word of the property's enumeration, or -1. */
DRUPE_API int drupe_info_find_word(drupe_info key, const char *word);

/* One property. `value` receives at most `size` bytes (a string is cut and always NUL-ended); `*needed`,
 * which may be NULL, the full size. Answers are cached, so that no driver is asked twice, but for the two
 * that may change: FREE_MEMORY and AVAILABLE. */
DRUPE_API drupe_status drupe_device_info(drupe_device *device, drupe_info key, void *value, size_t size,
                                         size_t *needed) DRUPE_MUST_CHECK;

/* A property of one number, or `fallback` where it means nothing. */
DRUPE_API uint64_t drupe_device_number(drupe_device *device, drupe_info key, uint64_t fallback);

/* --- Dividing ------------------------------------------------------------------------------------------ */

/* Divide a device into sub-devices, each retained. With capacity 0 they are only counted. DRUPE_E_UNSUPPORTED
 * when it cannot be divided so, DRUPE_E_OUT_OF_RANGE when the units asked for are not there; the text says
 * what there is. */
DRUPE_API drupe_status drupe_device_split(drupe_device *device, const drupe_partition *partition,
                                          drupe_device **subs, size_t capacity,
                                          size_t *count) DRUPE_MUST_CHECK;
DRUPE_API drupe_device *drupe_device_parent(const drupe_device *device); /* borrowed; NULL for a root */
DRUPE_API drupe_device *drupe_device_root(drupe_device *device);         /* borrowed; itself for a root */

/* --- Contexts ------------------------------------------------------------------------------------------ */

/* A context owns memory and programs for its devices, which must be of one platform. Retained. */
DRUPE_API drupe_status drupe_context_open(drupe_device *const *devices, size_t count,
                                          drupe_context **context) DRUPE_MUST_CHECK;
/* The context that is made once per root device and serves its sub-devices too, where the driver allows that;
 * else one per sub-device, while somebody uses it. Retained. */
DRUPE_API drupe_status drupe_device_context(drupe_device *device, drupe_context **context) DRUPE_MUST_CHECK;
DRUPE_API drupe_context *drupe_context_retain(drupe_context *context); /* NULL-safe */
DRUPE_API void drupe_context_release(drupe_context *context);          /* NULL-safe */
DRUPE_API size_t drupe_context_device_count(const drupe_context *context);
DRUPE_API drupe_device *drupe_context_device(const drupe_context *context, size_t index); /* borrowed */
/* The one of its devices that `device` is, or is a part of; NULL: there is none. Borrowed. */
DRUPE_API drupe_device *drupe_context_home(const drupe_context *context, const drupe_device *device);

/* --- The library --------------------------------------------------------------------------------------- */

/* What the embedding program tells the engine; see python/include/drupe_link.h for the kernel's. Borrowed
 * until replaced; NULL functions are skipped. Called on the thread that calls the engine, unless a member
 * says otherwise. */
struct drupe_failure;
struct drupe_source;
struct drupe_queue;
typedef struct drupe_observer {
    void *(*cell_retain)(void);          /* the cell the calling thread works for, retained, or NULL */
    void (*cell_release)(void *cell);    /* NULL-safe */
    uint32_t (*cell_number)(void *cell); /* what the user calls the cell (borrowed), or 0 */
    /* The observer's number for the place in its program that the calling thread is at; 0: unknown. Asked
     * for every allocation, see drupe_memory_holders(), and every submission without a site. */
    uint32_t (*site)(void);
    /* "cell [3], line 7" for a place of the program and the number of a cell, either of which may be 0: at
     * most `size` bytes with the NUL; returns the length. Any thread, and in signal handlers. */
    size_t (*site_text)(uint32_t site, uint32_t cell, char *text, size_t size);
    /* A failure that nobody has been told of, on a thread of the engine, between drupe_failures_watch() and
     * the end of what is unfinished; `failure->cell` is borrowed. True: it was shown in its cell. Comes again
     * after false, as long as the failure is unreported. Needs cell_share(), which gives another reference to
     * a cell; both references may be released on any thread then. */
    bool (*failed)(const struct drupe_failure *failure);
    void *(*cell_share)(void *cell);
    /* Work that may print was submitted for this cell (borrowed; NULL: none is left) and is not over: what a
     * driver writes to descriptor 1 from now on is its. Any thread; a lock is held. Needs cell_share(). */
    void (*printing)(void *cell);
    /* The driver's compiler begins with a program for a device, on the thread that waits for it, and is at
     * its end: built() gets what building() gave unless that was NULL. */
    void *(*building)(const struct drupe_source *source, const char *device);
    void (*built)(void *shown, bool good);
    /* A call waits until work of `queue` (borrowed) has given memory back, or is over: wait for the queue at
     * most so long, in the way that the program's own waits do, and serve what they serve. DRUPE_E_BUSY:
     * this thread must not wait now. DRUPE_E_CANCELLED: the program is interrupted, and so is the call. */
    drupe_status (*pause)(struct drupe_queue *queue, uint64_t timeout_ns);
    /* A line about what the engine does (libraries opened, failures), for a log. Any thread; locks are held.
     */
    void (*log)(const char *line);
    /* exit() was called, and the engine ends the process ahead of the handlers that were registered before
     * the driver's, because threads of a driver stand. On the thread that called exit(). */
    void (*exiting)(int status);
} drupe_observer;
DRUPE_API void drupe_library_observe(const drupe_observer *observer);

/* Wait for all queues, at most so long; failures are there to be taken afterwards. */
DRUPE_API void drupe_library_settle(uint64_t timeout_ns);
/* Before a process ends on a machine of many people: on each device that was used, is no CPU and has
 * DRUPE_WIPE_FREE (memory.h), overwrite what is still allocated, and local memory. Objects keep their memory,
 * which holds zeros then. Best effort: what fails goes to the log. After drupe_library_settle(). */
DRUPE_API void drupe_library_scrub(void);
/* Wait for all queues (at most `timeout_ns`), free pools, close the backends. Objects still held by the
 * caller keep the parts they need alive. Returns the number of objects still referenced (memory counts with
 * its queue): a leak count for tests. The next call of any function opens the library again. */
DRUPE_API size_t drupe_library_close(uint64_t timeout_ns);

/* The engine's version, "0.1.0". */
DRUPE_API const char *drupe_version(void);

#endif
