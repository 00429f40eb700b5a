/* Backends, their devices and what is known of them; how devices are named, divided, chosen and lost.
 *
 * Reading order: slots.c (the backends of this build) -> device.c (the object), info.c, loss.c -> filter.c,
 * split.c, path.c (names of devices and parts) -> settings.c, amount.c, selector.c (the environment) ->
 * backends.c (opening a backend) -> choose.c (listing and selecting).
 *
 * Owns: the slots and their devices; the list of living sub-devices.
 *
 * Locks: slot->lock (loading and unloading one backend) is taken before all others of core;
 * drupe_library_lock() guards default contexts and queues of devices; info_lock, living_lock are leaves. No
 * threads. */
#ifndef DRUPE_CORE_DEVICE_ROOM_H
#define DRUPE_CORE_DEVICE_ROOM_H

#include "core/object/object_room.h"
#include <limits.h>
#include <pthread.h>

typedef struct drupe_slot drupe_slot;

/* --- slots.c, backends.c -------------------------------------------------------------------------------- */

/* One backend and what is known of it. */
struct drupe_slot {
    const drupe_backend *backend; /* `base` with its layers; set when it is loaded */
    const drupe_backend *base;
    pthread_mutex_t lock; /* loading and unloading */
    _Atomic(int) loaded;  /* 1: `state` and `devices` are valid */
    bool failed;          /* load() failed: `error` says why; tried again after drupe_library_close() */
    void *state;
    drupe_device **devices; /* the library's references */
    uint32_t ndevices;
    drupe_error error;
    _Atomic(size_t) live; /* objects of this backend; not root devices, nor memory, which its queue keeps */
};

/* The first call sets the handler of forks, before there is an object. */
size_t drupe_slot_count(void);
drupe_slot *drupe_slot_at(size_t index);
/* Open the vendor library and its devices if that has not been done. The error is remembered. */
drupe_status drupe_slot_load(drupe_slot *slot) DRUPE_MUST_CHECK;
/* Give up the devices of a backend and its vendor library; its lock is held, and nothing uses it. */
void drupe_slot_unload(drupe_slot *slot);
/* Guards default contexts and queues of devices. */
void drupe_library_lock(void);
void drupe_library_unlock(void);

/* --- device.c, info.c ----------------------------------------------------------------------------------- */

enum { DRUPE_INFO_UNASKED, DRUPE_INFO_KNOWN, DRUPE_INFO_MEANINGLESS };

typedef struct drupe_info_entry {
    _Atomic(int) state; /* of the enum above; the rest is fixed once it is not UNASKED */
    uint64_t number[3];
    char *text;
} drupe_info_entry;

/* Bytes of a root device, over all its contexts. */
typedef struct drupe_use {
    _Atomic(uint64_t) used, reserved, peak, count;
    _Atomic(uint64_t) flying; /* of pieces whose handle is gone, and which work in flight uses */
} drupe_use;

/* Why a device is lost; see drupe_core_device_lost(). */
typedef struct drupe_loss {
    drupe_error error;
    bool silent;
    _Atomic(bool) settled; /* what it cost is known: queues have their causes */
} drupe_loss;

/* Whose context a device's parts live in. */
typedef enum drupe_parts { DRUPE_PARTS_UNTRIED, DRUPE_PARTS_SHARE, DRUPE_PARTS_ALONE } drupe_parts;

/* More than 20 members: figures and limits of a root device stand here, so that its sub-devices find them by
 * one pointer. */
struct drupe_device {
    drupe_object object;
    drupe_slot *slot;
    drupe_device *parent; /* retained; NULL for a root */
    drupe_device *root;   /* itself for a root */
    drupe_device_type type;
    bool opened;               /* the backend has seen it: device_close() is due */
    bool listed;               /* of a part: the library has it, in slot->devices or above one of those */
    uint32_t due;              /* references that are the library's own: the list's, and those of parts */
    const char *filter;        /* malloc'ed; "" until it has a name */
    drupe_partition_kind made; /* how a sub-device was made, and along which domain */
    drupe_domain made_along;
    drupe_device *sub_prev, *sub_next; /* all living sub-devices; device.c's lock */
    pthread_mutex_t info_lock;
    drupe_info_entry info[DRUPE_INFO_COUNT];
    /* The default one: retained by a listed device, borrowed by a part that needs its own; library lock. */
    drupe_context *context;
    int parts;          /* of a root: drupe_parts; library lock */
    drupe_queue *queue; /* the default one, retained by a listed device, else borrowed; library lock */
    /* Of a root. */
    drupe_use use, kinds[3];                 /* `use` over all kinds, its count not kept */
    _Atomic(uint64_t) limit;                 /* most bytes that may be reserved; 0: not looked up yet */
    _Atomic(uint64_t) free_then, free_asked; /* bytes that were free, and when */
    _Atomic(uint64_t) stuck;    /* bytes in flight when waiting for some did not help; see throttle.c */
    _Atomic(uint32_t) wipe;     /* bits of drupe_wipe */
    _Atomic(drupe_loss *) loss; /* of a root, once it is lost */
    _Atomic(int) parked;        /* drupe_parking, memory/gate.c's; changed with its lock */
    drupe_memory *asleep;       /* its pieces that are in host memory, by `next`; that lock */
};

/* The numbers of a property that was asked for before and is fixed, or NULL; for hot paths. */
static inline const uint64_t *drupe_info_ready(const drupe_device *device, drupe_info key)
{
    const drupe_info_entry *entry = &device->info[key];
    bool known =
        atomic_load_explicit(&((drupe_info_entry *)entry)->state, memory_order_acquire) == DRUPE_INFO_KNOWN;
    return known ? entry->number : NULL;
}

/* A device whose native state is still to be filled. `parent` NULL: a root. */
drupe_status drupe_device_new(drupe_slot *slot, drupe_device *parent, drupe_device **device) DRUPE_MUST_CHECK;
void drupe_info_clear(drupe_device *device);
/* Give it another name, *taken* and malloc'ed; NULL is DRUPE_E_NO_MEMORY. Before others see the device. */
drupe_status drupe_device_rename(drupe_device *device, char *filter) DRUPE_MUST_CHECK;
/* A list without repetitions; zeroed = empty. */
typedef struct drupe_device_set {
    drupe_device **devices; /* retained */
    size_t count, capacity;
} drupe_device_set;
/* Takes `device`, also when there is no memory. */
drupe_status drupe_device_set_add(drupe_device_set *set, drupe_device *device) DRUPE_MUST_CHECK;
void drupe_device_set_clear(drupe_device_set *set);
/* A sub-device is complete: filters may find it. And the end of that. */
void drupe_device_announce(drupe_device *device);
void drupe_device_conceal(drupe_device *device);
/* The living sub-device of that filter, retained, or NULL. */
drupe_device *drupe_device_living(const char *filter);
/* The division that a filter's step means when it says nothing else. `how->units` points to `unit`. False: it
 * is indivisible. */
bool drupe_split_plain(drupe_device *device, drupe_partition *how, uint32_t *unit);
/* The filter of part `index` of a division, appended. */
void drupe_split_name(drupe_device *device, const drupe_partition *partition, size_t index, drupe_text *text);
/* --- loss.c: devices that are lost ---------------------------------------------------------------------- */

/* NULL while the device lives. */
static inline const drupe_loss *drupe_device_loss(const drupe_device *device)
{
    return atomic_load_explicit(&device->root->loss, memory_order_acquire);
}
/* Whether its driver must not be called any more. */
static inline bool drupe_device_silent(const drupe_device *device)
{
    const drupe_loss *loss = drupe_device_loss(device);
    return loss && loss->silent;
}
/* DRUPE_OK, or the error of a lost device. */
drupe_status drupe_loss_check(const drupe_device *device) DRUPE_MUST_CHECK;

/* --- filter.c, path.c ----------------------------------------------------------------------------------- */

#define DRUPE_FILTER_ABSENT INT_MAX /* a backend that is known, but not built in */

/* One alternative of a filter. */
typedef struct drupe_filter {
    int backend;      /* slot index, DRUPE_FILTER_ABSENT, or -1 */
    int type;         /* drupe_device_type, or -1 */
    long number;      /* or -1: of the devices that match */
    const char *path; /* the steps into the device: ".1", "{2}.0.1"; borrowed from the text */
    size_t path_size; /* 0 = none */
} drupe_filter;
/* Parse the alternative that begins at `*text` and move `*text` behind it and its comma. */
drupe_status drupe_filter_next(const char **text, drupe_filter *filter) DRUPE_MUST_CHECK;
/* Whether this device matches, its number and path apart. */
bool drupe_filter_match(const drupe_filter *filter, const drupe_device *device);
/* Whether this backend, loaded or not, could have a device that matches. */
bool drupe_filter_possible(const drupe_filter *filter, size_t slot);
/* Cut blanks off both ends of a word. Whether it is that name, in any case of letters. */
void drupe_filter_trim(const char **word, size_t *length);
bool drupe_filter_is(const char *word, size_t length, const char *name);
/* A number of at most 6 digits that is the whole word. */
bool drupe_filter_number(const char *word, size_t length, long *number);
/* The slot of a backend's name, DRUPE_FILTER_ABSENT, or -1; a type's number, or -1. */
int drupe_filter_backend(const char *word, size_t length);
int drupe_filter_type(const char *word, size_t length);

/* Whether a path is well-formed. */
bool drupe_path_valid(const char *path, size_t size);
/* The sub-device that the path leads to, retained; the device itself for an empty path. */
drupe_status drupe_path_walk(drupe_device *device, const char *path, size_t size,
                             drupe_device **found) DRUPE_MUST_CHECK;

/* --- selector.c: what the environment leaves of the devices ----------------------------------------------
 */

/* DRUPE_OK, or what is wrong in the variable that is set. */
drupe_status drupe_selector_check(void) DRUPE_MUST_CHECK;
/* Whether any device of this backend can be left: else its library need not be opened. */
bool drupe_selector_possible(size_t slot);
/* Replace slot->devices by what is left of them and their parts, each with a reference. */
drupe_status drupe_selector_apply(drupe_slot *slot) DRUPE_MUST_CHECK;

/* --- settings.c, amount.c: the environment ---------------------------------------------------------------
 */

/* DRUPE_OK, or what is wrong in a variable of the environment. All but the selector and amounts
 * of memory are looked at once, until drupe_settings_forget(). */
drupe_status drupe_settings_check(void) DRUPE_MUST_CHECK;
void drupe_settings_forget(void);
/* False with DRUPE_PINNED=0: every copy of host memory is left to the driver. */
bool drupe_settings_pinned(void);
/* DRUPE_HOST_SHUFFLE asks for random schedules: nothing is done earlier than it could be. */
bool drupe_settings_shuffled(void);
/* "4G", "512MiB", plain bytes, or with `total` "50%" of it; false when it is none of these. What no 64 bits
 * hold is UINT64_MAX with `total`, and no amount without. */
bool drupe_amount_parse(const char *text, const uint64_t *total, uint64_t *bytes);
/* "alloc,free": DRUPE_WIPE_ bits; false when it is no list of these words. */
bool drupe_settings_wipe(const char *value, uint32_t *when);
/* What DRUPE_MEMORY_WIPE says, else both on a machine of many people and never on others. */
uint32_t drupe_settings_wipe_now(void);
/* DRUPE_OK, or what is wrong in a variable about memory: a limit that is not understood is not none. */
drupe_status drupe_limit_check(void) DRUPE_MUST_CHECK;
/* What a variable such as DRUPE_MEMORY_LIMIT says for a root device with `total` bytes, else `fallback`. */
uint64_t drupe_amount_of(const char *variable, const drupe_device *root, uint64_t total, uint64_t fallback);

#endif
