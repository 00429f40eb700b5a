/* Objects: where they come from; and what a forked child is told. */
#include "core/object/object_room.h"
#include <stdlib.h>
#include <string.h>

_Atomic(bool) drupe_core_forked;
_Atomic(uint64_t) drupe_inflight_last;
_Atomic(unsigned) drupe_check_depth;

drupe_status drupe_core_check(void)
{
    if (!atomic_load_explicit(&drupe_core_forked, memory_order_relaxed)) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_UNAVAILABLE,
                           "This process was forked from one that had devices open; its copy of the engine "
                           "cannot be used. Start worker processes with the 'spawn' method instead.");
}

void *drupe_object_new(_Atomic(size_t) *live, const drupe_backend *backend, size_t size, size_t native)
{
    size_t bytes = (drupe_round16(size) + native + 63) & ~(size_t)63;
    drupe_object *object = aligned_alloc(64, bytes);
    if (!object) {
        drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory for an object of %zu bytes.", size + native);
        return NULL;
    }
    memset(object, 0, bytes);
    atomic_init(&object->references, 1);
    object->backend = backend;
    object->native = (char *)object + drupe_round16(size);
    if (live) atomic_fetch_add_explicit(live, 1, memory_order_relaxed);
    return object;
}

void drupe_object_free(_Atomic(size_t) *live, void *object)
{
    free(object);
    if (live) atomic_fetch_sub_explicit(live, 1, memory_order_release);
}
