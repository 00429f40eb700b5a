/* What C code can do to a process: a library that the tests of crash reports load into a kernel. */
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void fault_null(void);
void fault_null(void)
{
    *(volatile int *)0x10 = 1;
}

int fault_divide(int by);
int fault_divide(int by)
{
    volatile int zero = by, result = 1;
    result = result / zero;
    return result;
}

void fault_assert(int truth);
void fault_assert(int truth)
{
    (void)truth;
    assert(truth && "the bearing holds");
}

void fault_illegal(void);
void fault_illegal(void)
{
#if defined(__x86_64__)
    __asm__ volatile("ud2");
#else
    __asm__ volatile(".inst 0");
#endif
}

long fault_recursion(long depth);
long fault_recursion(long depth)
{
    volatile char room[4096];
    room[depth % 4096] = (char)depth;
    return depth < 0 ? 0 : fault_recursion(depth + 1) + room[(depth + 1) % 4096];
}

/* The allocator notices it with its lock held, and aborts. */
void fault_double_free(void);
void fault_double_free(void)
{
    char *block = malloc(1000000), *volatile again = block, *other = malloc(5000), *volatile twice = other;
    char *guard = malloc(100);
    free(block);
    free(other);
    free(twice);
    free(again);
    free(guard);
}

/* Crash while this thread holds the lock of C's stdout. */
void fault_in_stdio(void);
void fault_in_stdio(void)
{
    printf("half a line");
    flockfile(stdout);
    fault_null();
}

static void *thread_null(void *start)
{
    if (start) pthread_barrier_wait(start);
    fault_null();
    return NULL;
}

/* `count` threads that all fault at once; the caller waits for ever. */
void fault_threads(int count);
void fault_threads(int count)
{
    static pthread_barrier_t start;
    pthread_t thread;
    pthread_barrier_init(&start, NULL, (unsigned)count);
    for (int i = 0; i < count; i++) pthread_create(&thread, NULL, thread_null, &start);
    for (;;) pause();
}

/* One thread that faults; the caller goes on. */
void fault_thread(void);
void fault_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, thread_null, NULL);
}

void fault_signal_thread(int thread, int number);
void fault_signal_thread(int thread, int number)
{
    syscall(SYS_tgkill, getpid(), thread, number);
}

static void on_stop(int number)
{
    (void)number;
    for (;;) pause();
}

/* SIGSYS is among the signals that the kernel's threads leave open. */
void stop_thread(int thread);
void stop_thread(int thread)
{
    signal(SIGSYS, on_stop);
    fault_signal_thread(thread, SIGSYS);
}

/* --- Handlers in front of the kernel's ---------------------------------------------------------------------
 */

static struct sigaction below;
static volatile int seen;

static void on_driver_fault(int number, siginfo_t *info, void *context)
{
    seen++;
    if (below.sa_flags & SA_SIGINFO) {
        below.sa_sigaction(number, info, context);
    } else {
        sigaction(number, &below, NULL);
    }
}

/* As a runtime does that serves faults of its own and passes the others on. */
void driver_install(void);
void driver_install(void)
{
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    ours.sa_sigaction = on_driver_fault;
    sigaction(SIGSEGV, &ours, &below);
}

int driver_in_front(void);
int driver_in_front(void)
{
    struct sigaction now;
    sigaction(SIGSEGV, NULL, &now);
    return now.sa_sigaction == on_driver_fault;
}

/* --- The engine's part
 * ---------------------------------------------------------------------------------------
 */

int worker_id;

static void *worker_run(void *start)
{
    worker_id = (int)syscall(SYS_gettid);
    return thread_null(start);
}

int claim_worker(int signal, void *siginfo, void *ucontext);
int claim_worker(int signal, void *siginfo, void *ucontext)
{
    (void)siginfo;
    (void)ucontext;
    return signal == SIGSEGV && worker_id != 0 && (int)syscall(SYS_gettid) == worker_id;
}

void fault_worker(void);
void fault_worker(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, worker_run, NULL);
}

int claim_crashing(int signal, void *siginfo, void *ucontext);
int claim_crashing(int signal, void *siginfo, void *ucontext)
{
    (void)signal;
    (void)siginfo;
    (void)ucontext;
    fault_null();
    return 1;
}

size_t notes_plain(char *text, size_t size);
size_t notes_plain(char *text, size_t size)
{
    static const char notes[] = "  1. twice on host:cpu:0, 16 items";
    if (size < sizeof notes) return 0;
    memcpy(text, notes, sizeof notes - 1);
    return sizeof notes - 1;
}

size_t notes_crashing(char *text, size_t size);
size_t notes_crashing(char *text, size_t size)
{
    (void)size;
    memcpy(text, "  never told\n", 13);
    fault_null();
    return 13;
}

size_t notes_hanging(char *text, size_t size);
size_t notes_hanging(char *text, size_t size)
{
    (void)text;
    (void)size;
    for (;;) pause();
}

/* Holds whatever lock its caller holds, for ever. */
void fault_spin(void);
void fault_spin(void)
{
    for (volatile int i = 0;; i++) {}
}
