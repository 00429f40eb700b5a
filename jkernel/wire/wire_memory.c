/* Blocks of powers of two, with a head before each. Small ones are cut from slabs and kept for ever; large
 * ones are mapped each, and some are kept for the next. One lock: it is held for a few instructions. */
#include "jkernel/wire/wire_memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef __has_feature
#define __has_feature(name) 0
#endif
/* Sanitizers watch the C library's heap only. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) ||     \
    __has_feature(thread_sanitizer)
#define OWN_MEMORY 0
#else
#define OWN_MEMORY 1
#endif

#define LEAST     6  /* blocks of 64 bytes */
#define SMALL     14 /* of 16 KiB: the largest that slabs are cut into */
#define KEPT      22 /* of 4 MiB: the largest that are kept when they are free */
#define CLASSES   (KEPT + 1)
#define SLAB      ((size_t)64 << 10)
#define KEPT_MOST ((size_t)16 << 20) /* bytes of free large blocks */

typedef struct block {
    union {
        struct block *next; /* while it is free */
        size_t room;        /* while it is in use */
    };
    unsigned class;
} block;

_Static_assert(sizeof(block) == 16, "what follows a head is aligned for every type");

static struct {
    pthread_mutex_t lock;
    block *free[CLASSES];
    char *slab, *slab_end;
    size_t kept;
} heap = {.lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP};

static atomic_bool frozen;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* A thread that forks holds the lock, so that its child finds all in order; but not as the lock's owner. */
static void fork_prepare(void)
{
    pthread_mutex_lock(&heap.lock);
}

static void fork_parent(void)
{
    pthread_mutex_unlock(&heap.lock);
}

static void fork_child(void)
{
    heap.lock = (pthread_mutex_t)PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
}

static void fork_watch(void)
{
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}

static void *map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static unsigned class_of(size_t size)
{
    unsigned class = LEAST;
    while (class < 8 * sizeof size - 2 && (size_t)1 << class < size) class ++;
    return class;
}

/* A block that nobody had before. Holds the lock for small ones. */
static block *block_make(unsigned class)
{
    size_t size = sizeof(block) + ((size_t)1 << class);
    if (class > SMALL) return map(size);
    if ((size_t)(heap.slab_end - heap.slab) < size) {
        char *slab = map(SLAB);
        if (!slab) return NULL;
        heap.slab = slab;
        heap.slab_end = slab + SLAB;
    }
    block *made = (block *)(void *)heap.slab;
    heap.slab += size;
    return made;
}

static block *block_take(unsigned class)
{
    block *found = NULL;
    pthread_mutex_lock(&heap.lock);
    if (class <= KEPT) found = heap.free[class];
    if (found) {
        heap.free[class] = found->next;
        if (class > SMALL) heap.kept -= (size_t)1 << class;
    } else if (class <= SMALL) {
        found = block_make(class);
    }
    pthread_mutex_unlock(&heap.lock);
    return found ? found : class > SMALL ? block_make(class) : NULL;
}

void *jk_memory_take(size_t size)
{
    if (size > SIZE_MAX / 4) return NULL;
    if (!OWN_MEMORY) {
        block *taken = malloc(sizeof *taken + size);
        if (!taken) return NULL;
        taken->room = size;
        return taken + 1;
    }
    pthread_once(&fork_once, fork_watch);
    unsigned class = class_of(size);
    block *taken = block_take(class);
    if (!taken) return NULL;
    taken->class = class;
    taken->room = (size_t)1 << class;
    return taken + 1;
}

void *jk_memory_clear(size_t size)
{
    void *memory = jk_memory_take(size);
    if (memory) memset(memory, 0, size);
    return memory;
}

char *jk_memory_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = jk_memory_take(size);
    if (copy) memcpy(copy, text, size);
    return copy;
}

size_t jk_memory_room(const void *memory)
{
    return ((const block *)memory)[-1].room;
}

void jk_memory_release(void *memory)
{
    if (!memory || jk_memory_frozen()) return;
    block *given = (block *)memory - 1;
    if (!OWN_MEMORY) {
        free(given);
        return;
    }
    unsigned class = given->class;
    size_t size = (size_t)1 << class;
    pthread_mutex_lock(&heap.lock);
    bool keep = class <= SMALL || (class <= KEPT && heap.kept + size <= KEPT_MOST);
    if (keep) {
        given->next = heap.free[class];
        heap.free[class] = given;
        if (class > SMALL) heap.kept += size;
    }
    pthread_mutex_unlock(&heap.lock);
    if (!keep) munmap(given, sizeof *given + size);
}

void jk_memory_freeze(void)
{
    atomic_store(&frozen, true);
}

bool jk_memory_frozen(void)
{
    return atomic_load_explicit(&frozen, memory_order_relaxed);
}

void jk_memory_give_up(void)
{
    pthread_mutex_unlock(&heap.lock);
}
