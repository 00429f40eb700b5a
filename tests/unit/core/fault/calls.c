#include "calls.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

void (*call_in_mmap)(void);
const char *call_text;

static struct {
    _Atomic(unsigned) made, failing;
} calls[CALL_COUNT];

void call_fail(enum call call, unsigned n)
{
    atomic_store(&calls[call].failing, 0);
    atomic_store(&calls[call].made, 0);
    atomic_store(&calls[call].failing, n);
}

unsigned call_made(enum call call)
{
    return atomic_load(&calls[call].made);
}

static bool fails(enum call call)
{
    if (atomic_fetch_add(&calls[call].made, 1) + 1 != atomic_load(&calls[call].failing)) return false;
    errno = call == CALL_sem_wait ? EINTR : ENOMEM;
    return true;
}

/* A call that gives `bad` when it fails. */
#define WRAP(bad, type, name, parameters, arguments)                                                         \
    type __real_##name parameters;                                                                           \
    type __wrap_##name parameters;                                                                           \
    type __wrap_##name parameters                                                                            \
    {                                                                                                        \
        return fails(CALL_##name) ? (bad) : __real_##name arguments;                                         \
    }
WRAP(-1, int, getrlimit, (int resource, struct rlimit *limit), (resource, limit))
WRAP(-1, int, munmap, (void *address, size_t size), (address, size))
WRAP(NULL, DIR *, opendir, (const char *path), (path))
WRAP(ENOMEM, int, pthread_getattr_default_np, (pthread_attr_t * attributes), (attributes))
WRAP(ENOMEM, int, pthread_setattr_default_np, (const pthread_attr_t *attributes), (attributes))
WRAP(-1, int, sem_init, (sem_t * semaphore, int shared, unsigned value), (semaphore, shared, value))
WRAP(-1, int, sem_wait, (sem_t * semaphore), (semaphore))
WRAP(-1, int, sigaction, (int signal, const struct sigaction *to, struct sigaction *before),
     (signal, to, before))
WRAP(-1, int, sigaltstack, (const stack_t *to, stack_t *before), (to, before))

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return fails(CALL_open) ? -1 : __real_open(path, flags, mode);
}

ssize_t __real_read(int file, void *to, size_t size);
ssize_t __wrap_read(int file, void *to, size_t size);
ssize_t __wrap_read(int file, void *to, size_t size)
{
    if (fails(CALL_read)) return -1;
    if (!call_text) return __real_read(file, to, size);
    const size_t length = strlen(call_text);
    memcpy(to, call_text, length < size ? length : size);
    return (ssize_t)(length < size ? length : size);
}

void *__real_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
    if (fails(CALL_mmap)) return MAP_FAILED;
    void (*act)(void) = call_in_mmap;
    call_in_mmap = NULL;
    if (act) act();
    return __real_mmap(address, size, protection, flags, file, offset);
}
