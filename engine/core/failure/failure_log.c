/* The latest failures, for those who come later: lists of errors, panels, reports.
 *
 * A ring of copies under a lock of its own, which is a leaf: readers copy one note at a time, so that nobody
 * who writes down a failure waits for more than that. */
#include "core/failure/failure_room.h"
#include <time.h>

static struct {
    pthread_mutex_t lock;
    drupe_failure_note notes[DRUPE_FAILURE_NOTES];
    uint64_t latest;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t unix_now(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t drupe_failures_note(const drupe_failure *failure)
{
    uint64_t at = drupe_now_ns(), date = unix_now();
    pthread_mutex_lock(&kept.lock);
    uint64_t id = ++kept.latest;
    drupe_failure_note *note = &kept.notes[id % DRUPE_FAILURE_NOTES];
    *note = (drupe_failure_note){.id = id, .at_ns = at, .unix_ns = date, .failure = *failure};
    note->failure.cell = NULL;
    note->failure.shown = false;
    pthread_mutex_unlock(&kept.lock);
    return id;
}

void drupe_failures_note_dependent(uint64_t id)
{
    if (!id) return;
    pthread_mutex_lock(&kept.lock);
    drupe_failure_note *note = &kept.notes[id % DRUPE_FAILURE_NOTES];
    if (note->id == id) note->dependents++;
    pthread_mutex_unlock(&kept.lock);
}

/* The oldest one with an id above `after`. */
static bool copy_next(uint64_t after, drupe_failure_note *copy)
{
    pthread_mutex_lock(&kept.lock);
    uint64_t forgotten = kept.latest > DRUPE_FAILURE_NOTES ? kept.latest - DRUPE_FAILURE_NOTES : 0;
    uint64_t id = (after > forgotten ? after : forgotten) + 1;
    bool found = after < kept.latest;
    if (found) *copy = kept.notes[id % DRUPE_FAILURE_NOTES];
    pthread_mutex_unlock(&kept.lock);
    return found;
}

size_t drupe_failures_read(uint64_t after, drupe_failure_note *copies, size_t capacity)
{
    size_t count = 0;
    if (drupe_core_check() != DRUPE_OK) return 0;
    while (count < capacity && copy_next(after, &copies[count])) after = copies[count++].id;
    return count;
}
