/* Memory for what crosses threads on its way out. It is apart from the C library's heap: when a thread
 * damages that, or crashes inside malloc() with its lock, a message can still be made, sent and released. Any
 * thread; not in a signal handler, but for the functions that say so. */
#ifndef JK_MEMORY_H
#define JK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed when it is from jk_memory_clear(). NULL: no memory. Released with jk_memory_release() only. */
void *jk_memory_take(size_t size);
void *jk_memory_clear(size_t size);
char *jk_memory_text(const char *text); /* a copy */
/* How many bytes there are really. */
size_t jk_memory_room(const void *memory);
/* NULL-safe. Does nothing once frozen. */
void jk_memory_release(void *memory);

/* From here on nothing is given back, nor to the C library's heap by whoever asks jk_memory_frozen(): a
 * thread has crashed, perhaps inside an allocator. For the last second of a process. Async-signal-safe. */
void jk_memory_freeze(void);
bool jk_memory_frozen(void);
/* The calling thread has crashed: give up the lock if it is its own. Async-signal-safe. */
void jk_memory_give_up(void);

#endif
