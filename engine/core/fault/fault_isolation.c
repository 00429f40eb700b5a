/* Faults of threads that do device work: who they are, and how a fault ends.
 *
 * The signal handler may do next to nothing. It looks the thread up in a table of atomics and writes a record
 * into its place there, so there is always one. What then becomes of the thread, its owner has told before:
 *
 * It goes on. The handler returns, but to other code on a stack that is empty again, where the owner finds
 * the record. That is for code which holds nothing: neither a lock nor memory that others wait for, nor a
 * stack that others look into.
 *
 * It ends, when it may hold something, but nobody else has its stack: by the system call alone, because what
 * the C library does at the end of a thread needs locks that it may hold. A thread of core, asleep until
 * then, asks the backends whose it was and spreads the news; the owner joins the thread, which gives its
 * stack back.
 *
 * It is parked: it sleeps for the rest of the process, and the same thread of core spreads the news. So end
 * the threads of drivers, and those that ran code nobody knows.
 *
 * Thread ids are used again, so a thread is known by its id and the time of its start. */
#include "base/service.h"
#include "core/fault/fault_room.h"
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

typedef void (*spread_fn)(const drupe_fault *fault);

#define MOST_THREADS 2048
#define MOST_PARKED  512u /* a process in which more threads were parked may end */

static drupe_reg_thread table[MOST_THREADS];
static uint64_t serve_faults(void *unused);
static void post(void *unused);
static struct {
    _Atomic(uint64_t) nfaults;
    _Atomic(uint32_t) parked;
    _Atomic(bool) containing;
    _Atomic(spread_fn) spread;  /* NULL until there is a queue: faults wait for it */
    pthread_mutex_t delivering; /* held while a fault is told, before the locks of slots and queues */
    pthread_mutex_t lock;
    drupe_service watcher; /* it sleeps at `news`, which signal handlers may post to */
    sem_t news;
    int process;
    _Atomic(bool) wanted;
    bool early; /* the process is to end early */
} faults = {
    .delivering = PTHREAD_MUTEX_INITIALIZER,
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .watcher = {.name = "drupe-faults", .lock = &faults.lock, .step = serve_faults, .rouse = post},
};

/* --- Threads -------------------------------------------------------------------------------------------- */

/* Field 22 of the thread's stat, 0 if it cannot be read. Async-signal-safe. */
static uint64_t start_of(int thread)
{
    char path[48] = "/proc/self/task/", digits[12], text[512];
    size_t length = strlen(path), n = 0;
    for (unsigned rest = (unsigned)thread; rest || n == 0; rest /= 10) digits[n++] = (char)('0' + rest % 10);
    while (n) path[length++] = digits[--n];
    memcpy(path + length, "/stat", 6);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    if (size <= 0) return 0;
    text[size] = '\0';
    /* The name before may hold anything, also blanks and parentheses. */
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    uint64_t ticks = 0;
    for (at = at ? at + 1 : ""; *at >= '0' && *at <= '9'; at++) ticks = ticks * 10 + (uint64_t)(*at - '0');
    return ticks;
}

drupe_reg_thread *drupe_reg_thread_at(size_t i)
{
    return i < MOST_THREADS ? &table[i] : NULL;
}

/* A thread that has faulted is not looked for any more: whoever has its id now is another one. */
drupe_reg_thread *drupe_reg_thread_find(int thread)
{
    for (size_t i = 0; i < MOST_THREADS; i++) {
        if (atomic_load_explicit(&table[i].thread, memory_order_acquire) == thread &&
            !atomic_load_explicit(&table[i].faulted, memory_order_relaxed))
            return &table[i];
    }
    return NULL;
}

static bool is_living(const drupe_reg_thread *one, int thread)
{
    uint64_t started = one->started ? start_of(thread) : 0;
    return !started || one->started == started; /* no descriptor may be free */
}

drupe_reg_thread *drupe_reg_thread_living(int thread)
{
    for (drupe_reg_thread *one; (one = drupe_reg_thread_find(thread)) != NULL;) {
        if (is_living(one, thread)) return one;
        int expected = thread;
        atomic_compare_exchange_strong(&one->thread, &expected, DRUPE_REG_THREAD_FREE);
    }
    return NULL;
}

drupe_reg_thread *drupe_reg_thread_enter(int thread, const drupe_reg_thread *entry)
{
    for (size_t i = 0; i < MOST_THREADS; i++) {
        drupe_reg_thread *one = &table[i];
        int expected = DRUPE_REG_THREAD_FREE;
        if (!atomic_compare_exchange_strong(&one->thread, &expected, DRUPE_REG_THREAD_TAKEN)) continue;
        one->started = start_of(thread);
        one->owner = entry->owner;
        one->index = entry->index;
        one->busy = entry->busy;
        one->recovery = entry->recovery;
        atomic_store(&one->stack, NULL);
        atomic_store(&one->faulted, 0);
        atomic_store(&one->thread, thread);
        return one;
    }
    return NULL;
}

/* A kernel that has used up its stack leaves none for the handler. */
static void stack_open(void)
{
    stack_t there, fresh = {.ss_size = DRUPE_SIGNAL_STACK};
    if (sigaltstack(NULL, &there) != 0 || !(there.ss_flags & SS_DISABLE)) return;
    fresh.ss_sp = mmap(NULL, fresh.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh.ss_sp != MAP_FAILED && sigaltstack(&fresh, NULL) != 0) munmap(fresh.ss_sp, fresh.ss_size);
}

static void stack_close(void)
{
    stack_t there, none = {.ss_flags = SS_DISABLE};
    if (sigaltstack(NULL, &there) != 0 || (there.ss_flags & SS_DISABLE) ||
        there.ss_size != DRUPE_SIGNAL_STACK)
        return;
    if (sigaltstack(&none, NULL) == 0) munmap(there.ss_sp, DRUPE_SIGNAL_STACK);
}

void drupe_core_register_thread(const void *owner, uint32_t index, const _Atomic(int) *busy,
                                drupe_recovery *recovery)
{
    drupe_reg_thread *before = drupe_reg_thread_living(drupe_thread_id());
    stack_open();
    if (before) atomic_store(&before->thread, DRUPE_REG_THREAD_FREE);
    drupe_reg_thread entry = {.owner = owner, .index = index, .busy = busy, .recovery = recovery};
    (void)drupe_reg_thread_enter(drupe_thread_id(), &entry);
    drupe_isolation_start();
}

void drupe_core_disown(void)
{
    drupe_reg_thread *one = drupe_reg_thread_find(drupe_thread_id());
    if (one) atomic_store(&one->thread, DRUPE_REG_THREAD_FREE);
    stack_close();
}

/* --- In the signal handler ------------------------------------------------------------------------------ */

static uintptr_t instruction_of(const void *context)
{
    const ucontext_t *machine = context;
    if (!machine) return 0;
#if defined(__x86_64__)
    return (uintptr_t)machine->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)machine->uc_mcontext.pc;
#else
    return 0;
#endif
}

/* The processor's own word for a page fault: a read (1), a write (2), or 0. */
static int access_of(int signal, const void *context)
{
#if defined(__x86_64__)
    const ucontext_t *machine = context;
    if (!machine || signal != SIGSEGV || machine->uc_mcontext.gregs[REG_TRAPNO] != 14) return 0;
    return machine->uc_mcontext.gregs[REG_ERR] & 2 ? 2 : 1;
#else
    (void)signal, (void)context;
    return 0;
#endif
}

/* Have the handler return into run(argument) on the stack below `stack`; false where that is not known. */
static bool lead_to(void *context, void (*run)(void *), void *argument, uintptr_t stack)
{
    ucontext_t *machine = context;
    if (!machine || !stack) return false;
    stack &= ~(uintptr_t)15;
#if defined(__x86_64__)
    greg_t *registers = machine->uc_mcontext.gregs;
    stack -= sizeof(void *);
    *(uintptr_t *)stack = 0; /* it returns to nobody */
    registers[REG_RSP] = (greg_t)stack;
    registers[REG_RIP] = (greg_t)(uintptr_t)run;
    registers[REG_RDI] = (greg_t)(uintptr_t)argument;
    registers[REG_EFL] &= ~(greg_t)0x40500; /* the flags AC, DF and TF */
    return true;
#elif defined(__aarch64__)
    machine->uc_mcontext.sp = stack;
    machine->uc_mcontext.pc = (uintptr_t)run;
    machine->uc_mcontext.regs[0] = (uintptr_t)argument;
    machine->uc_mcontext.regs[29] = machine->uc_mcontext.regs[30] = 0;
    machine->uc_mcontext.pstate &= ~UINT64_C(0xc00); /* the type of the branch before */
    return true;
#else
    (void)run, (void)argument;
    return false;
#endif
}

static void report(drupe_reg_thread *one)
{
    atomic_store_explicit(&one->faulted, atomic_fetch_add(&faults.nfaults, 1) + 1, memory_order_release);
    sem_post(&faults.news);
}

/* On the thread, outside of the handler. Nothing of the C library is asked. */
static void end_here(void *user)
{
    drupe_reg_thread *one = user;
    stack_close();
    drupe_thread_forget();
    report(one);
    for (;;) syscall(SYS_exit, 0);
}

static bool may_go_on(const drupe_recovery *recovery, uintptr_t instruction)
{
    return recovery->way == DRUPE_WAY_ON ||
           (recovery->way == DRUPE_WAY_ON_INSIDE && instruction - recovery->code < recovery->code_size);
}

static bool may_end(const drupe_recovery *recovery)
{
    return recovery->way == DRUPE_WAY_ON_INSIDE || recovery->way == DRUPE_WAY_END;
}

static drupe_fault_verdict decide(drupe_reg_thread *one, const drupe_fault *fault, void *context)
{
    drupe_recovery *recovery = one->recovery;
    if (recovery && may_go_on(recovery, fault->instruction) &&
        lead_to(context, recovery->resume, recovery, recovery->stack)) {
        recovery->fault = *fault;
        return DRUPE_FAULT_RETURN;
    }
    one->fault = *fault;
    if (recovery && may_end(recovery) && lead_to(context, end_here, one, recovery->stack)) {
        one->fault.ended = true;
        return DRUPE_FAULT_RETURN;
    }
    if (atomic_fetch_add(&faults.parked, 1) >= MOST_PARKED) return DRUPE_FAULT_NOT_OURS;
    report(one);
    return DRUPE_FAULT_PARK;
}

int drupe_fault_claim(int signal, void *siginfo, void *ucontext)
{
    const siginfo_t *info = siginfo;
    if (!atomic_load(&faults.containing) || getpid() != faults.process) return DRUPE_FAULT_NOT_OURS;
    if (signal != SIGSEGV && signal != SIGBUS && signal != SIGFPE && signal != SIGILL)
        return DRUPE_FAULT_NOT_OURS;
    if (info->si_code <= 0) return DRUPE_FAULT_NOT_OURS; /* sent by somebody */
    int self = drupe_thread_id();
    drupe_reg_thread *one = drupe_reg_thread_find(self);
    if (!one || (one->busy && atomic_load(one->busy) == 0)) return DRUPE_FAULT_NOT_OURS;
    if (!is_living(one, self)) return DRUPE_FAULT_NOT_OURS;
    const drupe_fault fault = {.signal = signal,
                               .code = info->si_code,
                               .access = access_of(signal, ucontext),
                               .address = (uintptr_t)info->si_addr,
                               .instruction = instruction_of(ucontext),
                               .owner = one->owner,
                               .index = one->index};
    return decide(one, &fault, ucontext);
}

/* --- Faults of others ----------------------------------------------------------------------------------- */

bool drupe_isolation_contains(void)
{
    if (!atomic_load_explicit(&faults.containing, memory_order_relaxed) || getpid() != faults.process)
        return false;
    const drupe_reg_thread *one = drupe_reg_thread_find(drupe_thread_id());
    return one && (!one->busy || atomic_load(one->busy));
}

void drupe_isolation_share(const drupe_fault *fault)
{
    drupe_reg_thread *one = drupe_reg_thread_find(drupe_thread_id());
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    if (one) {
        one->fault = *fault;
        one->fault.owner = one->owner;
        one->fault.index = one->index;
        atomic_fetch_add(&faults.parked, 1);
        report(one);
    }
    for (;;) sigsuspend(&all);
}

/* --- Afterwards ----------------------------------------------------------------------------------------- */

/* The one that has waited longest. */
static drupe_reg_thread *next_fault(void)
{
    drupe_reg_thread *first = NULL;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < MOST_THREADS; i++) {
        uint64_t order = atomic_load_explicit(&table[i].faulted, memory_order_acquire);
        if (!order || order >= least) continue;
        least = order;
        first = &table[i];
    }
    return first;
}

void drupe_isolation_settle(void)
{
    spread_fn told = atomic_load(&faults.spread);
    pthread_mutex_lock(&faults.delivering);
    for (drupe_reg_thread *one; told && (one = next_fault()) != NULL;) {
        drupe_fault fault = one->fault;
        /* Its place is nobody's, and then another's: whoever has its id by now must not find it in between. A
         * parked thread's stack for signals stays: it is on it. */
        atomic_store(&one->thread, DRUPE_REG_THREAD_TAKEN);
        atomic_store(&one->faulted, 0);
        atomic_store(&one->thread, DRUPE_REG_THREAD_FREE);
        told(&fault);
    }
    pthread_mutex_unlock(&faults.delivering);
}

static uint64_t serve_faults(void *unused)
{
    (void)unused;
    pthread_mutex_unlock(&faults.lock);
    while (sem_wait(&faults.news) != 0) {}
    /* At the end of a process a driver may wait for its queues, and run the rest of the kernel there. */
    if (!faults.early && atomic_load(&faults.parked)) {
        faults.early = true;
        drupe_exit_early(&faults.parked);
    }
    pthread_mutex_lock(&faults.lock);
    if (faults.watcher.stopping) return 0;
    pthread_mutex_unlock(&faults.lock);
    drupe_isolation_settle();
    pthread_mutex_lock(&faults.lock);
    return 0;
}

static void post(void *unused)
{
    (void)unused;
    sem_post(&faults.news);
}

void drupe_isolation_tell(void (*fn)(const drupe_fault *fault))
{
    if (atomic_exchange(&faults.spread, fn) == fn) return;
    drupe_loop_faults_open();
    pthread_mutex_lock(&faults.lock);
    drupe_service_wake(&faults.watcher); /* faults may have waited for it */
    pthread_mutex_unlock(&faults.lock);
}

/* Only once there are threads to look after. */
void drupe_isolation_start(void)
{
    pthread_mutex_lock(&faults.lock);
    if (atomic_load(&faults.wanted) && !drupe_service_runs(&faults.watcher) &&
        sem_init(&faults.news, 0, 0) == 0) {
        faults.process = getpid();
        atomic_store(&faults.containing, drupe_service_start(&faults.watcher) == DRUPE_OK);
    }
    pthread_mutex_unlock(&faults.lock);
}

void drupe_isolation_stop(void)
{
    pthread_mutex_lock(&faults.lock);
    bool running = drupe_service_runs(&faults.watcher);
    atomic_store(&faults.containing, false);
    drupe_service_stop(&faults.watcher);
    if (running) sem_destroy(&faults.news);
    pthread_mutex_unlock(&faults.lock);
}

static bool any_registered(void)
{
    for (size_t i = 0; i < MOST_THREADS; i++) {
        if (atomic_load(&table[i].thread) != DRUPE_REG_THREAD_FREE) return true;
    }
    return false;
}

bool drupe_isolation_active(void)
{
    return atomic_load(&faults.wanted);
}

void drupe_fault_contain(void)
{
    atomic_store(&faults.wanted, true);
    if (any_registered()) drupe_isolation_start();
}
