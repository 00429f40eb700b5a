/* The marks of handles: one each, set and taken under one lock. What they say is queue/mark.c's. */
#include "core/memory/memory_room.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
_Atomic(unsigned) drupe_marks_version;

bool drupe_mark_is_of(const drupe_mark *mark, const drupe_memory *memory)
{
    return mark && (mark->born == DRUPE_MARK_ANY || mark->born == memory->born);
}

void drupe_mark_put(drupe_memory *memory, drupe_mark *fresh, uint64_t born)
{
    pthread_mutex_lock(&lock);
    drupe_mark *old = atomic_load(&memory->mark);
    bool stays = drupe_mark_is_of(old, memory) && (!old->passing || fresh->passing);
    bool keep = stays || memory->born != born;
    if (!keep) {
        atomic_store_explicit(&memory->mark, fresh, memory_order_release);
        atomic_fetch_add(&drupe_marks_version, 1);
    }
    pthread_mutex_unlock(&lock);
    drupe_mark *unused = keep ? fresh : old;
    if (unused) unused->free(unused);
}

drupe_mark *drupe_mark_take(drupe_memory *memory)
{
    if (!atomic_load_explicit(&memory->mark, memory_order_relaxed)) return NULL;
    pthread_mutex_lock(&lock);
    drupe_mark *mark = atomic_exchange(&memory->mark, NULL);
    pthread_mutex_unlock(&lock);
    return mark;
}

bool drupe_mark_look(drupe_memory *memory, void (*read)(const drupe_mark *mark, void *user), void *user)
{
    pthread_mutex_lock(&lock);
    const drupe_mark *mark = atomic_load(&memory->mark);
    bool found = drupe_mark_is_of(mark, memory);
    if (found) read(mark, user);
    pthread_mutex_unlock(&lock);
    return found;
}

void drupe_mark_pass(drupe_memory *memory)
{
    pthread_mutex_lock(&lock);
    drupe_mark *mark = atomic_load(&memory->mark);
    if (mark && mark->passing)
        atomic_store(&memory->mark, NULL);
    else
        mark = NULL;
    pthread_mutex_unlock(&lock);
    if (mark) mark->free(mark);
}

void drupe_mark_free(drupe_memory *memory)
{
    drupe_mark *mark = drupe_mark_take(memory);
    if (mark) mark->free(mark);
}
