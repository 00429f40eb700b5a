/* See wrap.h. */
#include "wrap.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static _Atomic(int) planned;
static _Atomic(unsigned long) countdown;
static _Atomic(uint64_t) made;

void wrap_plan(wrap_kind kind, unsigned long n)
{
    atomic_store(&planned, WRAP_NOTHING);
    atomic_store(&countdown, n);
    atomic_store(&made, 0);
    atomic_store(&planned, (int)kind);
}

uint64_t wrap_made(void)
{
    return atomic_load(&made);
}

static bool fails(wrap_kind kind)
{
    if (atomic_load(&planned) != (int)kind) return false;
    unsigned long left = atomic_load(&countdown);
    while (left && !atomic_compare_exchange_weak(&countdown, &left, left - 1)) {}
    if (left != 1) return false;
    atomic_fetch_add(&made, 1);
    return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
char *__real_strdup(const char *text);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *user);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t size);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *user);

void *__wrap_malloc(size_t size)
{
    return fails(WRAP_MALLOC) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails(WRAP_MALLOC) ? NULL : __real_calloc(count, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
    return fails(WRAP_MALLOC) ? NULL : __real_aligned_alloc(align, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails(WRAP_MALLOC) ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
    return fails(WRAP_MALLOC) ? NULL : __real_strdup(text);
}

/* By hand: not every test that is linked with this file has its calls sent here. */
char *__wrap_strndup(const char *text, size_t size)
{
    const size_t length = strnlen(text, size);
    char *copy = fails(WRAP_MALLOC) ? NULL : __real_malloc(length + 1);
    if (!copy) return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *user)
{
    return fails(WRAP_THREAD) ? EAGAIN : __real_pthread_create(thread, attributes, run, user);
}
