/* Memory between pages that fault, for what device work writes to.
 *
 * A kernel that runs past the end of its memory shall fault there, instead of damaging what the C library's
 * allocator keeps beside it: that ends a process much later, and without a way out. So memory of device work
 * lies apart. Pieces of DRUPE_GUARDED_SINGLE bytes and more have guards of their own; smaller ones lie
 * together, by size, where one that runs over its end meets other device memory first.
 *
 * Any thread. Under AddressSanitizer, which finds more, there is no such memory. */
#ifndef DRUPE_GUARDED_H
#define DRUPE_GUARDED_H

#include "base/base.h"

#define DRUPE_GUARDED_SINGLE ((size_t)64 << 10)
/* Bytes that fault behind and before it; address space costs nothing. Larger than what C libraries ever keep
 * for later when it is freed, so that they ask the system for each such block. */
#define DRUPE_GUARD_BEHIND ((size_t)32 << 20)
#define DRUPE_GUARD_BEFORE ((size_t)1 << 20)

#define DRUPE_GUARDED_CLASSES 11 /* 64 bytes to 64 KiB */

typedef struct drupe_guarded_block drupe_guarded_block;

/* Where the memory comes from. Zeroed but for the first three = empty. */
typedef struct drupe_guarded {
    void *(*take)(void *user, size_t size); /* NULL: there is none. Ordinary memory of the process */
    void (*give)(void *user, void *memory, size_t size);
    void *user;
    pthread_mutex_t lock; /* initialised by the caller */
    drupe_map blocks;     /* by where they start */
    drupe_guarded_block *open[DRUPE_GUARDED_CLASSES];
} drupe_guarded;

/* `align`: a power of two. NULL when the system gives no such memory: take other. */
void *drupe_guarded_alloc(drupe_guarded *guarded, size_t size, size_t align);
/* False: it is none of these. */
bool drupe_guarded_free(drupe_guarded *guarded, void *pointer);
/* Give all of it back; nothing of it is used any more. */
void drupe_guarded_clear(drupe_guarded *guarded);

#endif
