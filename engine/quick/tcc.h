/* The quick compiler: libtcc, in a shared library that needs no file of the machine.
 *
 * libtcc's licence is the LGPL. So it is kept apart from the engine, which opens this library where it is and
 * works without it. Nothing of tcc's own run-time library is in here: what its code calls is in
 * tcc_functions.c.
 *
 * Locks: one, around all of libtcc, which has global state. Threads: none. */
#ifndef DRUPE_QUICK_TCC_H
#define DRUPE_QUICK_TCC_H

#include "drupe/quick.h"
#include <stdbool.h>

/* tcc_functions.c: what compiled code may call. */
typedef struct drupe_tcc_function {
    const char *name;
    void (*address)(void);
} drupe_tcc_function;
extern const drupe_tcc_function drupe_tcc_functions[]; /* ended by one without a name */

/* tcc_memory.c: where compiled code is. */
typedef struct drupe_tcc_memory {
    char *start;
    size_t size; /* whole pages; 0: there is none */
    int fd;      /* what it is a view of while it is written to, or -1 */
} drupe_tcc_memory;
bool drupe_tcc_memory_open(drupe_tcc_memory *memory, size_t size);
/* The bytes before `data`, a page's beginning, are instructions from now on. */
bool drupe_tcc_memory_seal(drupe_tcc_memory *memory, const char *data);
void drupe_tcc_memory_close(drupe_tcc_memory *memory);

#endif
