/* The backends of this build: a slot for each; and what fork() does to them. */
#include "core/device/device_room.h"
#include <assert.h>

#define MAX_SLOTS 8 /* more than there are drupe_backends */

static struct {
    drupe_slot slots[MAX_SLOTS];
    size_t nslots;
    pthread_once_t once;
    pthread_mutex_t lock; /* drupe_library_lock() */
} library = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static void on_fork_child(void)
{
    for (size_t i = 0; i < library.nslots; i++) {
        /* A backend that another thread was opening stays half open here. */
        bool opening = pthread_mutex_trylock(&library.slots[i].lock) != 0;
        if (opening || atomic_load(&library.slots[i].loaded)) atomic_store(&drupe_core_forked, true);
        if (!opening) pthread_mutex_unlock(&library.slots[i].lock);
    }
}

static void start_once(void)
{
    while (drupe_backends[library.nslots]) {
        assert(library.nslots < MAX_SLOTS);
        library.slots[library.nslots].base = library.slots[library.nslots].backend =
            drupe_backends[library.nslots];
        pthread_mutex_init(&library.slots[library.nslots].lock, NULL);
        library.nslots++;
    }
    pthread_atfork(NULL, NULL, on_fork_child);
}

void drupe_library_lock(void)
{
    pthread_mutex_lock(&library.lock);
}

void drupe_library_unlock(void)
{
    pthread_mutex_unlock(&library.lock);
}

size_t drupe_slot_count(void)
{
    pthread_once(&library.once, start_once);
    return library.nslots;
}

drupe_slot *drupe_slot_at(size_t index)
{
    return &library.slots[index];
}

const char *drupe_version(void)
{
    return DRUPE_VERSION_TEXT;
}
