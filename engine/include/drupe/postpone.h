/* Work that the program has asked for and that is not submitted yet.
 *
 * Who builds on submissions may hold some back, to make one of several. Nobody else notices: core has them
 * submitted before anything that could tell the difference, which is every other submission to their queue, a
 * wait for that, and whatever uses memory that they read.
 *
 * Threads: all functions may be called from any thread. */
#ifndef DRUPE_POSTPONE_H
#define DRUPE_POSTPONE_H

#include "drupe/memory.h"

/* Who holds work back. Called on the thread that needs it submitted, without locks. A status other than
 * DRUPE_OK refuses what that thread was about to do. Submissions that these functions make themselves call
 * them, too: they have to notice. */
typedef struct drupe_postponer {
    drupe_status (*of_queue)(drupe_queue *queue);    /* submit what is held back for this queue */
    drupe_status (*of_memory)(drupe_memory *memory); /* and what reads this memory, of every queue */
} drupe_postponer;
/* Borrowed, for ever. There is one at most. */
DRUPE_API void drupe_postpone_by(const drupe_postponer *postponer);
/* Whether work is held back for this queue. */
DRUPE_API void drupe_queue_postpone(drupe_queue *queue, bool some);
/* Submit what is held back, and let the driver begin with what was submitted; waits for none of it. */
DRUPE_API drupe_status drupe_postponed_flush(drupe_queue *queue) DRUPE_MUST_CHECK;
/* So many pieces of work more, or fewer, that are held back read this memory. */
DRUPE_API void drupe_memory_postpone(drupe_memory *memory, int32_t by);

/* Whether addresses in the memory were given away, past the engine, or have come from there: then what is
 * read and written there is not known, and work on it is not to be held back. */
DRUPE_API bool drupe_memory_exposed(const drupe_memory *memory);

/* Whether the references to the memory are `count`, those of the caller, and what is in flight uses it on
 * `queue` alone, which is in order: then work that is submitted there may overwrite it. */
DRUPE_API bool drupe_memory_only(const drupe_memory *memory, uint32_t count, const drupe_queue *queue);

/* Where a program asked for something: the observer's numbers. */
typedef struct drupe_origin {
    uint32_t site;
    void *cell; /* retained, or NULL */
} drupe_origin;
/* The place that the calling thread is at. To be released, on any thread. */
DRUPE_API void drupe_origin_here(drupe_origin *origin);
DRUPE_API void drupe_origin_release(drupe_origin *origin);
/* The observer's words for it, such as "cell [3], line 7"; "" when there is nothing to say. Any thread. */
DRUPE_API void drupe_origin_text(const drupe_origin *origin, char *text, size_t size);
/* What the calling thread allocates and submits from now on is that of this place (borrowed); NULL: its own
 * again. Returns what was set before. */
DRUPE_API const drupe_origin *drupe_origin_enter(const drupe_origin *origin);

/* Let work of the queue go on for at most so long, as a call that needs memory waits: see pause() of
 * drupe_observer. DRUPE_E_CANCELLED: the program was interrupted. */
DRUPE_API drupe_status drupe_queue_pause(drupe_queue *queue, uint64_t timeout_ns) DRUPE_MUST_CHECK;

#endif
