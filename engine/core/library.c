/* The process's one library: which backends are loaded, how many objects live, what happens after fork().
 *
 * Closing is best effort on purpose: a backend that still has objects stays loaded, so that what the caller
 * holds keeps working and its release finds everything it needs. */
#include "core/cache.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SLOTS 8

_Atomic(bool) drupe_core_forked;

static drupe_slot slots[MAX_SLOTS];
static size_t nslots;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(const drupe_observer *) observer;

static void on_fork_child(void)
{
    for (size_t i = 0; i < nslots; i++) {
        /* A backend that another thread was opening stays half open here. */
        bool opening = pthread_mutex_trylock(&slots[i].lock) != 0;
        if (opening || atomic_load(&slots[i].loaded)) atomic_store(&drupe_core_forked, true);
        if (!opening) pthread_mutex_unlock(&slots[i].lock);
    }
}

static void start_once(void)
{
    while (nslots < MAX_SLOTS && drupe_backends[nslots]) {
        slots[nslots].base = slots[nslots].backend = drupe_backends[nslots];
        pthread_mutex_init(&slots[nslots].lock, NULL);
        nslots++;
    }
    pthread_atfork(NULL, NULL, on_fork_child);
}

void drupe_library_start(void)
{
    pthread_once(&once, start_once);
}

void drupe_library_lock(void)
{
    pthread_mutex_lock(&library_lock);
}

void drupe_library_unlock(void)
{
    pthread_mutex_unlock(&library_lock);
}

drupe_status drupe_core_check(void)
{
    if (!atomic_load_explicit(&drupe_core_forked, memory_order_relaxed)) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_UNAVAILABLE,
                           "This process was forked from one that had devices open; its copy of the engine "
                           "cannot be used. Start worker processes with the 'spawn' method instead.");
}

size_t drupe_slot_count(void)
{
    drupe_library_start();
    return nslots;
}

drupe_slot *drupe_slot_at(size_t index)
{
    return &slots[index];
}

/* --- Backends ------------------------------------------------------------------------------------------- */

/* Devices that stand in the list are numbered by type. */
static drupe_status slot_name_devices(drupe_slot *slot)
{
    unsigned numbers[DRUPE_DEVICE_CUSTOM + 1] = {0};
    for (uint32_t i = 0; i < slot->ndevices; i++) {
        drupe_device *device = slot->devices[i];
        drupe_text name = {0};
        drupe_text_printf(&name, "%s:%s:%u", slot->backend->name, drupe_device_type_name(device->type),
                          numbers[device->type]++);
        DRUPE_TRY(drupe_device_rename(device, drupe_text_take(&name)));
    }
    return DRUPE_OK;
}

/* What only serves as the parent of devices in the list says so. */
static drupe_status slot_name_hidden(drupe_slot *slot)
{
    for (uint32_t i = 0; i < slot->ndevices; i++) {
        for (drupe_device *above = slot->devices[i]->parent; above; above = above->parent) {
            bool hidden = true;
            for (uint32_t k = 0; k < slot->ndevices; k++) hidden &= slot->devices[k] != above;
            if (hidden && !strchr(above->filter, '(')) {
                drupe_text name = {0};
                drupe_text_printf(&name, "%s (hidden by %s)", above->filter, drupe_device_selector(NULL));
                DRUPE_TRY(drupe_device_rename(above, drupe_text_take(&name)));
            }
        }
    }
    return DRUPE_OK;
}

/* What another attempt may not meet again: it is made at the next use. */
static bool is_transient(drupe_status status)
{
    return status == DRUPE_E_NO_MEMORY || status == DRUPE_E_BUSY;
}

/* A device that cannot be opened is left out; the others serve. */
static drupe_status slot_open_devices(drupe_slot *slot)
{
    uint32_t count = 0;
    DRUPE_TRY(slot->backend->device_count(slot->state, &count));
    slot->devices = calloc(count ? count : 1, sizeof *slot->devices);
    if (!slot->devices)
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a list of %u devices.", count);
    slot->ndevices = 0;
    for (uint32_t i = 0; i < count; i++) {
        drupe_device *device;
        DRUPE_TRY(drupe_device_new(slot, NULL, &device));
        device->opened = true;
        drupe_status status = slot->backend->device_open(slot->state, i, device);
        if (status != DRUPE_OK) {
            drupe_error kept = *drupe_error_last();
            drupe_device_release(device);
            if (is_transient(status)) return drupe_error_restore(&kept);
            continue;
        }
        device->type = slot->backend->device_type(device);
        if ((unsigned)device->type > DRUPE_DEVICE_CUSTOM) device->type = DRUPE_DEVICE_CUSTOM;
        slot->devices[slot->ndevices++] = device;
    }
    DRUPE_TRY(slot_name_devices(slot)); /* parts are named by what they are parts of */
    if (!drupe_device_selector(NULL)) return DRUPE_OK;
    DRUPE_TRY(drupe_selector_apply(slot));
    DRUPE_TRY(slot_name_hidden(slot));
    return slot_name_devices(slot);
}

static void slot_unload(drupe_slot *slot)
{
    for (uint32_t i = 0; i < slot->ndevices; i++) drupe_device_release(slot->devices[i]);
    free(slot->devices);
    slot->devices = NULL;
    slot->ndevices = 0;
    slot->backend->unload(slot->state);
    slot->state = NULL;
}

static drupe_status slot_load_locked(drupe_slot *slot)
{
    if (slot->backend->abi != DRUPE_BACKEND_ABI) {
        return drupe_error_set(DRUPE_E_UNAVAILABLE, "Backend '%s' has interface version %u, %u is needed.",
                               slot->backend->name, slot->backend->abi, DRUPE_BACKEND_ABI);
    }
    const drupe_backend *backend;
    DRUPE_TRY(drupe_layers_apply(slot->base, (size_t)(slot - slots), &backend));
    if (slot->backend != backend) slot->backend = backend;
    DRUPE_TRY(backend->load(&slot->state));
    drupe_status status = slot_open_devices(slot);
    if (status != DRUPE_OK) {
        drupe_error kept = *drupe_error_last();
        slot_unload(slot);
        return drupe_error_restore(&kept);
    }
    return DRUPE_OK;
}

drupe_status drupe_slot_load(drupe_slot *slot)
{
    DRUPE_TRY(drupe_core_check());
    if (atomic_load_explicit(&slot->loaded, memory_order_acquire)) return DRUPE_OK;
    drupe_status status = DRUPE_OK;
    pthread_mutex_lock(&slot->lock);
    if (slot->failed) {
        status = drupe_error_restore(&slot->error);
    } else if (!atomic_load(&slot->loaded)) {
        status = slot_load_locked(slot);
        slot->failed = status != DRUPE_OK && !is_transient(status);
        drupe_core_note("backend %s: %s", slot->backend->name,
                        status != DRUPE_OK ? drupe_error_last()->text : "opened");
        if (slot->failed) slot->error = *drupe_error_last();
        if (status == DRUPE_OK) atomic_store_explicit(&slot->loaded, 1, memory_order_release);
    }
    pthread_mutex_unlock(&slot->lock);
    return status;
}

/* --- Objects -------------------------------------------------------------------------------------------- */

static void object_begin(drupe_object *object, drupe_slot *slot, const drupe_backend *backend, uint32_t kind,
                         size_t size)
{
    atomic_init(&object->references, 1);
    object->kind = kind;
    object->backend = backend;
    object->native = (char *)object + drupe_round16(size);
    if (slot) atomic_fetch_add_explicit(&slot->live, 1, memory_order_relaxed);
}

void *drupe_object_new(drupe_slot *slot, const drupe_backend *backend, uint32_t kind, size_t size,
                       size_t native)
{
    size_t bytes = (drupe_round16(size) + native + 63) & ~(size_t)63;
    drupe_object *object = aligned_alloc(64, bytes);
    if (object) {
        memset(object, 0, bytes);
        object_begin(object, slot, backend, kind, size);
    } else {
        drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for an object of %zu bytes.", size + native);
    }
    return object;
}

void drupe_object_free(drupe_slot *slot, void *object)
{
    free(object);
    if (slot) atomic_fetch_sub_explicit(&slot->live, 1, memory_order_release);
}

/* --- The embedding program ------------------------------------------------------------------------------ */

void drupe_library_observe(const drupe_observer *fresh)
{
    atomic_store(&observer, fresh);
    drupe_exit_tell(fresh ? fresh->exiting : NULL);
}

void *drupe_core_cell(void)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    return seen && seen->cell_retain ? seen->cell_retain() : NULL;
}

void drupe_core_cell_release(void *cell)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    if (cell && seen && seen->cell_release) seen->cell_release(cell);
}

void *drupe_core_cell_share(void *cell)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    return cell && seen && seen->failed && seen->cell_share ? seen->cell_share(cell) : NULL;
}

bool drupe_core_failed(const drupe_failure *failure)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    return seen && seen->failed && seen->failed(failure);
}

void drupe_core_note(const char *format, ...)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    if (!seen || !seen->log) return;
    char line[1400];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    seen->log(line);
}

bool drupe_core_prints(void)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    return seen && seen->printing && seen->cell_share;
}

void drupe_core_printing(void *cell)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    if (seen && seen->printing) seen->printing(cell);
}

void *drupe_core_building(const drupe_source *source, const drupe_device *device)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    bool told = seen && seen->building && seen->built;
    return told ? seen->building(source, device->filter) : NULL;
}

drupe_status drupe_core_pause(drupe_queue *queue, uint64_t timeout_ns)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    if (seen && seen->pause) return seen->pause(queue, timeout_ns);
    (void)drupe_queue_idle(queue, timeout_ns);
    return DRUPE_OK;
}

void drupe_core_built(void *shown, bool good)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    if (shown && seen && seen->built) seen->built(shown, good);
}

uint32_t drupe_core_cell_number(void *cell)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    return cell && seen && seen->cell_number ? seen->cell_number(cell) : 0;
}

uint32_t drupe_core_site(void)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    return seen && seen->site ? seen->site() : 0;
}

void drupe_core_site_text(uint32_t site, uint32_t cell, char *text, size_t size)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    text[0] = '\0';
    if (seen && seen->site_text) (void)seen->site_text(site, cell, text, size);
}

/* --- Closing -------------------------------------------------------------------------------------------- */

static void finish_queues(uint64_t deadline)
{
    for (drupe_queue *queue = drupe_queue_walk(NULL); queue; queue = drupe_queue_walk(queue)) {
        drupe_queue_finish(queue, deadline);
    }
}

static bool lies_in(const drupe_device *device, const drupe_device *above)
{
    for (; device != above; device = device->parent)
        if (!device->parent) return false;
    return true;
}

/* How many references to a device of the library are the library's own: the list's, and one of each part. */
static uint32_t references_due(const drupe_slot *slot, const drupe_device *device)
{
    uint32_t due = 0;
    for (uint32_t i = 0; i < slot->ndevices; i++) {
        const drupe_device *part = slot->devices[i];
        due += part == device;
        while (part->parent && part->parent != device) part = part->parent;
        bool counted = !part->parent;
        for (uint32_t k = 0; k < i; k++) counted |= lies_in(slot->devices[k], part);
        due += !counted;
    }
    return due;
}

/* What keeps this backend loaded; closes it if nothing does. */
static size_t slot_close(drupe_slot *slot)
{
    pthread_mutex_lock(&slot->lock);
    slot->failed = false;
    size_t leaks = 0;
    if (atomic_load(&slot->loaded)) {
        leaks = atomic_load(&slot->live);
        for (uint32_t i = 0; i < slot->ndevices; i++) {
            const drupe_device *device = slot->devices[i];
            do {
                leaks += atomic_load(&device->object.references) > references_due(slot, device);
                device = device->parent;
            } while (device);
        }
        bool silent = false; /* then the driver may not be closed, nor a new start be made with it */
        for (uint32_t i = 0; i < slot->ndevices; i++)
            silent = silent || drupe_device_silent(slot->devices[i]);
        if (leaks == 0 && !silent) {
            atomic_store(&slot->loaded, 0);
            slot_unload(slot);
        }
    }
    pthread_mutex_unlock(&slot->lock);
    return leaks;
}

void drupe_library_settle(uint64_t timeout_ns)
{
    if (!atomic_load(&drupe_core_forked)) finish_queues(drupe_deadline(timeout_ns));
}

size_t drupe_library_close(uint64_t timeout_ns)
{
    if (atomic_load(&drupe_core_forked)) return 0;
    drupe_library_start();
    uint64_t deadline = drupe_deadline(timeout_ns);
    finish_queues(deadline);
    drupe_cache_stop();
    drupe_settings_forget();
    for (size_t i = 0; i < nslots; i++) {
        for (uint32_t d = 0; atomic_load(&slots[i].loaded) && d < slots[i].ndevices; d++) {
            for (drupe_device *device = slots[i].devices[d]; device; device = device->parent)
                drupe_device_forget(device);
        }
    }
    drupe_late_stop();
    drupe_prints_stop();
    drupe_hold_stop(deadline);
    drupe_failures_clear();
    size_t leaks = 0;
    for (size_t i = 0; i < nslots; i++) leaks += slot_close(&slots[i]);
    if (leaks == 0) drupe_contain_stop();
    if (leaks == 0) drupe_registry_clear();
    return leaks;
}

const char *drupe_version(void)
{
    return DRUPE_VERSION_TEXT;
}
