/* Time, condition variables with monotonic deadlines, threads that leave signals to the main thread. */
#include "base/base.h"
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000u
#define GUARD    ((size_t)256 << 10) /* of a thread's stack */

uint64_t drupe_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t drupe_deadline(uint64_t timeout_ns)
{
    if (timeout_ns == UINT64_MAX) return UINT64_MAX;
    uint64_t now = drupe_now_ns();
    return timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
}

static _Atomic(drupe_exit_function *) exit_teller;

void drupe_exit_tell(drupe_exit_function *tell)
{
    atomic_store(&exit_teller, tell);
}

#ifdef __GLIBC__
static void leave(int status, void *standing)
{
    if (!atomic_load((_Atomic(uint32_t) *)standing)) return;
    drupe_exit_function *tell = atomic_load(&exit_teller);
    if (tell) tell(status);
    (void)fflush(NULL);
    _exit(status);
}
#endif

void drupe_exit_early(_Atomic(uint32_t) *standing)
{
#ifdef __GLIBC__
    (void)on_exit(leave, standing);
#else
    (void)standing;
#endif
}

drupe_status drupe_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    int error = pthread_condattr_init(&attributes);
    if (!error) {
        error = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        if (!error) error = pthread_cond_init(cond, &attributes);
        pthread_condattr_destroy(&attributes);
    }
    if (!error) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_NO_MEMORY, "Cannot make a condition variable: %s.", strerror(error));
}

bool drupe_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t deadline)
{
    /* Far deadlines would overflow time_t's useful range on some C libraries. */
    if (deadline > INT64_MAX) {
        pthread_cond_wait(cond, mutex);
        return true;
    }
    struct timespec until = {.tv_sec = (time_t)(deadline / NS_PER_S), .tv_nsec = (long)(deadline % NS_PER_S)};
    return pthread_cond_clockwait(cond, mutex, CLOCK_MONOTONIC, &until) != ETIMEDOUT;
}

/* --- Threads -------------------------------------------------------------------------------------------- */

/* A living thread of ours, on its own stack. */
typedef struct member {
    int id;
    struct member *next, **link;
} member;

typedef struct beginning {
    void *(*run)(void *);
    void *user;
    bool entered;
} beginning;

static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER; /* from making a thread until it is listed */
static pthread_mutex_t members_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t entered = PTHREAD_COND_INITIALIZER;
static member *members;

int drupe_thread_id(void)
{
    return (int)syscall(SYS_gettid);
}

/* The lock is held. */
static member *member_of(int id)
{
    member *one = members;
    while (one && one->id != id) one = one->next;
    return one;
}

static void *thread_main(void *user)
{
    beginning *begin = user;
    void *(*run)(void *) = begin->run, *argument = begin->user;
    member self = {.id = drupe_thread_id(), .link = &members};
    pthread_mutex_lock(&members_lock);
    self.next = members;
    if (self.next) self.next->link = &self.next;
    members = &self;
    begin->entered = true;
    pthread_cond_broadcast(&entered);
    pthread_mutex_unlock(&members_lock);
    void *result = run(argument);
    drupe_thread_forget();
    return result;
}

void drupe_thread_forget(void)
{
    pthread_mutex_lock(&members_lock);
    member *one = member_of(drupe_thread_id());
    if (one) *one->link = one->next;
    if (one && one->next) one->next->link = one->link;
    pthread_mutex_unlock(&members_lock);
}

/* 0 once it is listed. */
static int start(pthread_t *thread, beginning *begin)
{
    pthread_attr_t attributes;
    pthread_mutex_lock(&starting);
    int error = pthread_attr_init(&attributes);
    if (!error) {
        /* A wish: more than most frames have, or one that overflows the stack is in the next thread's. */
        (void)pthread_attr_setguardsize(&attributes, GUARD);
        error = pthread_create(thread, &attributes, thread_main, begin);
        pthread_attr_destroy(&attributes);
    }
    pthread_mutex_lock(&members_lock);
    while (!error && !begin->entered) pthread_cond_wait(&entered, &members_lock);
    pthread_mutex_unlock(&members_lock);
    pthread_mutex_unlock(&starting);
    return error;
}

void drupe_threads_hold(void)
{
    pthread_mutex_lock(&starting);
}

void drupe_threads_go_on(void)
{
    pthread_mutex_unlock(&starting);
}

bool drupe_thread_ours(int id)
{
    pthread_mutex_lock(&members_lock);
    bool ours = member_of(id) != NULL;
    pthread_mutex_unlock(&members_lock);
    return ours;
}

/* In a forked child none of them goes on, and a lock may be held by one that is not there. */
static void fork_child(void)
{
    starting = members_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    entered = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    members = NULL;
}

static void fork_watch(void)
{
    (void)pthread_atfork(NULL, NULL, fork_child);
}

void drupe_thread_signals(sigset_t *before)
{
    static const int synchronous[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < DRUPE_COUNT_OF(synchronous); i++) sigdelset(&blocked, synchronous[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, before);
}

drupe_status drupe_thread_start(pthread_t *thread, void *(*run)(void *), void *user, const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    sigset_t before;
    pthread_once(&once, fork_watch);
    /* The new thread inherits the mask, so that no signal finds it unprepared. */
    drupe_thread_signals(&before);
    beginning begin = {.run = run, .user = user};
    int error = start(thread, &begin);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        return drupe_error_set(DRUPE_E_NO_MEMORY, "Cannot start the thread '%s': %s.", name ? name : "",
                               strerror(error));
    }
    if (name) pthread_setname_np(*thread, name);
    return DRUPE_OK;
}
