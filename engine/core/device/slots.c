/* The backends of this build: a slot for each; and what fork() does to them. */
#include "core/device/device_room.h"

#define MAX_SLOTS 8

static drupe_slot slots[MAX_SLOTS];
static size_t nslots;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;

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

size_t drupe_slot_count(void)
{
    drupe_library_start();
    return nslots;
}

drupe_slot *drupe_slot_at(size_t index)
{
    return &slots[index];
}

const char *drupe_version(void)
{
    return DRUPE_VERSION_TEXT;
}
