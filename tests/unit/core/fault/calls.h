/* System calls that fail as planned: the linker sends the room's calls here (--wrap, see CMakeLists.txt). */
#ifndef FAULT_CALLS_H
#define FAULT_CALLS_H

#include <stdatomic.h>
#include <stdbool.h>

#define CALLS(X)                                                                                             \
    X(getrlimit)                                                                                             \
    X(mmap)                                                                                                  \
    X(munmap)                                                                                                \
    X(open)                                                                                                  \
    X(opendir)                                                                                               \
    X(pthread_getattr_default_np)                                                                            \
    X(pthread_setattr_default_np)                                                                            \
    X(read)                                                                                                  \
    X(sem_init)                                                                                              \
    X(sem_wait)                                                                                              \
    X(sigaction)                                                                                             \
    X(sigaltstack)
#define CALL_NAME(name) CALL_##name,
enum call { CALLS(CALL_NAME) CALL_COUNT };

/* Have the n-th call from now on fail (1: the next; 0: none), and all before it pass. */
void call_fail(enum call call, unsigned n);
/* Calls since then. */
unsigned call_made(enum call call);

/* What the next mmap() of a stack for signals does before it returns, once. */
extern void (*call_in_mmap)(void);
/* What read() gives instead of a file's text, until it is NULL again. */
extern const char *call_text;

#endif
