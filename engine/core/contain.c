/* Faults of threads that do device work: who they are, and what happens after one was parked.
 *
 * The signal handler may do next to nothing. It looks the thread up in a table of atomics, writes a record
 * and posts a semaphore. A thread of core, asleep until then, asks the backends whose it was and spreads the
 * news.
 *
 * A driver's threads are those that were not there before it was called. Thread ids are used again, so a
 * thread is known by its id and the time of its start. */
#include "core/check.h"
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define MOST_THREADS 2048
#define MOST_FAULTS  64 /* a process in which more threads were parked may end */
#define STACK_BYTES  (64u << 10)

enum { FREE = 0, TAKEN = -1 };

typedef struct adopted {
    _Atomic(int) thread; /* its id, FREE or TAKEN */
    uint64_t started;    /* clock ticks after the machine's start; 0: unknown */
    const void *owner;
    uint32_t index;
    const _Atomic(int) *busy; /* NULL: always */
} adopted;

static adopted table[MOST_THREADS];
static drupe_fault faults[MOST_FAULTS];
static _Atomic(int) written[MOST_FAULTS];
static _Atomic(unsigned) nfaults;
static _Atomic(bool) containing;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t watcher;
static bool wanted, watching, stopping;
static unsigned served; /* of `faults`; the watcher's own */
static sem_t news;
static int process;

static int thread_id(void)
{
    return (int)syscall(SYS_gettid);
}

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

static adopted *find(int thread)
{
    for (size_t i = 0; i < MOST_THREADS; i++) {
        if (atomic_load_explicit(&table[i].thread, memory_order_acquire) == thread) return &table[i];
    }
    return NULL;
}

/* What is known of the thread; an earlier one that had its id is forgotten. */
static adopted *find_living(int thread)
{
    for (adopted *one; (one = find(thread)) != NULL;) {
        if (!one->started || one->started == start_of(thread)) return one;
        int expected = thread;
        atomic_compare_exchange_strong(&one->thread, &expected, FREE);
    }
    return NULL;
}

static void enter(int thread, const void *owner, uint32_t index, const _Atomic(int) *busy)
{
    for (size_t i = 0; i < MOST_THREADS; i++) {
        int expected = FREE;
        if (!atomic_compare_exchange_strong(&table[i].thread, &expected, TAKEN)) continue;
        table[i].started = start_of(thread);
        table[i].owner = owner;
        table[i].index = index;
        table[i].busy = busy;
        atomic_store(&table[i].thread, thread);
        return;
    }
}

/* A kernel that has used up its stack leaves none for the handler. */
static void stack_open(void)
{
    stack_t there, fresh = {.ss_size = STACK_BYTES};
    if (sigaltstack(NULL, &there) != 0 || !(there.ss_flags & SS_DISABLE)) return;
    fresh.ss_sp = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh.ss_sp != MAP_FAILED && sigaltstack(&fresh, NULL) != 0) munmap(fresh.ss_sp, STACK_BYTES);
}

static void stack_close(void)
{
    stack_t there, none = {.ss_flags = SS_DISABLE};
    if (sigaltstack(NULL, &there) != 0 || (there.ss_flags & SS_DISABLE) || there.ss_size != STACK_BYTES)
        return;
    if (sigaltstack(&none, NULL) == 0) munmap(there.ss_sp, STACK_BYTES);
}

static void watcher_start(void);

void drupe_core_adopt(const void *owner, uint32_t index, const _Atomic(int) *busy)
{
    adopted *before = find_living(thread_id());
    stack_open();
    if (before) atomic_store(&before->thread, FREE);
    enter(thread_id(), owner, index, busy);
    watcher_start();
}

void drupe_core_disown(void)
{
    adopted *one = find(thread_id());
    if (one) atomic_store(&one->thread, FREE);
    stack_close();
}

/* --- Threads of drivers --------------------------------------------------------------------------------- */

struct drupe_threads {
    struct sigaction division; /* who handles SIGFPE */
    size_t count, capacity;
    int ids[];
};

static drupe_threads *list_threads(void)
{
    size_t capacity = 64;
    drupe_threads *list = malloc(sizeof *list + capacity * sizeof(int));
    DIR *folder = list ? opendir("/proc/self/task") : NULL;
    if (list) *list = (drupe_threads){.capacity = capacity};
    for (struct dirent *entry; folder && list && (entry = readdir(folder)) != NULL;) {
        int id = atoi(entry->d_name);
        if (id <= 0) continue;
        if (list->count == list->capacity) {
            drupe_threads *larger = realloc(list, sizeof *list + 2 * list->capacity * sizeof(int));
            if (!larger) break;
            list = larger;
            list->capacity *= 2;
        }
        list->ids[list->count++] = id;
    }
    if (folder) closedir(folder);
    return list;
}

static struct sigaction host_division, driver_division;

/* Some drivers hide divisions by zero, which their kernels may do, and would hide those of the whole process.
 */
static void on_division(int signal, siginfo_t *info, void *context)
{
    const adopted *one = find(thread_id());
    const struct sigaction *who = one && !one->busy ? &driver_division : &host_division;
    if (who->sa_flags & SA_SIGINFO)
        who->sa_sigaction(signal, info, context);
    else if (who->sa_handler == SIG_DFL || who->sa_handler == SIG_IGN)
        sigaction(signal, who, NULL); /* and fault again */
    else
        who->sa_handler(signal);
}

static void confine_division(const struct sigaction *before)
{
    struct sigaction now, ours;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_division;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    if (sigaction(SIGFPE, NULL, &now) != 0 || now.sa_handler == before->sa_handler ||
        now.sa_sigaction == on_division || now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) {
        return;
    }
    pthread_mutex_lock(&lock);
    driver_division = now;
    if (before->sa_sigaction != on_division) host_division = *before;
    sigaction(SIGFPE, &ours, NULL);
    pthread_mutex_unlock(&lock);
}

drupe_threads *drupe_core_adoption_begin(void)
{
    drupe_threads *list = list_threads();
    if (list && sigaction(SIGFPE, NULL, &list->division) != 0)
        memset(&list->division, 0, sizeof list->division);
    return list;
}

void drupe_core_adoption_end(drupe_threads *before, const void *owner)
{
    drupe_threads_hold();
    drupe_threads *after = before ? list_threads() : NULL;
    for (size_t i = 0; after && i < after->count; i++) {
        /* Another thread of the program may have had one of ours started meanwhile. */
        bool known = find_living(after->ids[i]) != NULL || drupe_thread_ours(after->ids[i]);
        for (size_t j = 0; !known && j < before->count; j++) known = before->ids[j] == after->ids[i];
        if (!known) enter(after->ids[i], owner, 0, NULL);
    }
    drupe_threads_go_on();
    if (before) confine_division(&before->division);
    free(before);
    free(after);
    watcher_start();
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

int drupe_fault_claim(int signal, void *siginfo, void *ucontext)
{
    const siginfo_t *info = siginfo;
    if (!atomic_load(&containing) || getpid() != process) return 0;
    if (signal != SIGSEGV && signal != SIGBUS && signal != SIGFPE && signal != SIGILL) return 0;
    if (info->si_code <= 0) return 0; /* sent by somebody */
    int self = thread_id();
    const adopted *one = find(self);
    if (!one || (one->busy && atomic_load(one->busy) == 0)) return 0;
    if (one->started && one->started != start_of(self)) return 0;
    unsigned number = atomic_load(&nfaults);
    do {
        if (number >= MOST_FAULTS) return 0;
    } while (!atomic_compare_exchange_weak(&nfaults, &number, number + 1));
    faults[number] = (drupe_fault){.signal = signal,
                                   .code = info->si_code,
                                   .access = access_of(signal, ucontext),
                                   .address = (uintptr_t)info->si_addr,
                                   .instruction = instruction_of(ucontext),
                                   .owner = one->owner,
                                   .index = one->index};
    atomic_store_explicit(&written[number], 1, memory_order_release);
    sem_post(&news);
    return 1;
}

/* --- Afterwards ----------------------------------------------------------------------------------------- */

static const char *signal_name(int signal)
{
    switch (signal) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    default: return "a signal";
    }
}

drupe_status drupe_core_fault_text(const drupe_fault *fault, char *text, size_t size)
{
    Dl_info place = {0};
    bool memory = fault->signal == SIGSEGV || fault->signal == SIGBUS;
    bool named = dladdr((const void *)fault->instruction, &place) != 0 && place.dli_sname;
    const char *what = fault->signal == SIGFPE && fault->code == FPE_INTDIV ? ", division by zero" : "";
    char where[64];
    /* The processor does not tell an address that is outside of what it can address. */
    if (memory && fault->code == SI_KERNEL)
        snprintf(where, sizeof where, "an address that no memory can have");
    else
        snprintf(where, sizeof where, "%s 0x%llx", memory ? "address" : "instruction",
                 (unsigned long long)(memory ? fault->address : fault->instruction));
    snprintf(text, size, "%s%s at %s%s%s%s", signal_name(fault->signal), what, where,
             named ? " in the function '" : "", named ? place.dli_sname : "", named ? "'" : "");
    size_t length = strlen(text);
    bool bounds = memory && drupe_zone_fault(fault, text + length, size - length);
    return bounds ? DRUPE_E_CHECK : DRUPE_E_DEVICE_LOST;
}

static void lose(drupe_device *device, const drupe_fault *fault)
{
    char what[512];
    Dl_info place = {0};
    drupe_text work = {0};
    bool bounds = drupe_core_fault_text(fault, what, sizeof what) == DRUPE_E_CHECK;
    bool known = dladdr((const void *)fault->instruction, &place) != 0 && place.dli_sname;
    const char *function = known ? place.dli_sname : "";
    drupe_loss_suspects(device, function, &work);
    drupe_error_set_native(
        DRUPE_E_DEVICE_LOST, device->slot->backend->name, fault->signal, signal_name(fault->signal),
        "%s%.250s faulted on %s: %s. The driver cannot recover from that, so the device is lost for this "
        "process: nothing more runs on it. Python, its variables and other devices live on; arrays of a lost "
        "CPU device can still be copied to NumPy. Work on the device 'host', or restart the process (the "
        "kernel) to get this device back.",
        bounds ? "Out of bounds: " : "", work.length ? drupe_text_get(&work) : "A thread of the driver",
        device->filter, what);
    drupe_error error = *drupe_error_last();
    drupe_text_clear(&work);
    drupe_device_lose(device, function, &error, true);
}

static void spread(const drupe_fault *fault)
{
    if (drupe_worker_fault(fault)) return;
    for (size_t i = 0; i < drupe_slot_count(); i++) {
        drupe_slot *slot = drupe_slot_at(i);
        /* Not its lock: whoever holds that may be waiting for the thread that has faulted. A backend that has
         * work is not unloaded. */
        if (!atomic_load_explicit(&slot->loaded, memory_order_acquire)) continue;
        for (uint32_t d = 0; slot->backend->device_fault && d < slot->ndevices; d++) {
            drupe_status status = slot->backend->device_fault(slot->devices[d], fault);
            if (status == DRUPE_E_DEVICE_LOST) lose(slot->devices[d], fault);
            if (status == DRUPE_OK) return;
        }
    }
}

static void *watcher_main(void *unused)
{
    (void)unused;
    for (;;) {
        while (sem_wait(&news) != 0) {}
        pthread_mutex_lock(&lock);
        bool stop = stopping;
        pthread_mutex_unlock(&lock);
        if (stop) return NULL;
        for (; served < MOST_FAULTS && atomic_load_explicit(&written[served], memory_order_acquire); served++)
            spread(&faults[served]);
    }
}

/* Only once there are threads to look after. */
static void watcher_start(void)
{
    pthread_mutex_lock(&lock);
    if (wanted && !watching && sem_init(&news, 0, 0) == 0) {
        process = getpid();
        stopping = false;
        watching = drupe_thread_start(&watcher, watcher_main, NULL, "drupe-faults") == DRUPE_OK;
        atomic_store(&containing, watching);
    }
    pthread_mutex_unlock(&lock);
}

void drupe_contain_stop(void)
{
    pthread_mutex_lock(&lock);
    bool running = watching;
    watching = false;
    stopping = true;
    atomic_store(&containing, false);
    pthread_mutex_unlock(&lock);
    if (!running) return;
    sem_post(&news);
    pthread_join(watcher, NULL);
    sem_destroy(&news);
}

static bool any_adopted(void)
{
    for (size_t i = 0; i < MOST_THREADS; i++) {
        if (atomic_load(&table[i].thread) != FREE) return true;
    }
    return false;
}

bool drupe_contain_active(void)
{
    pthread_mutex_lock(&lock);
    bool active = wanted;
    pthread_mutex_unlock(&lock);
    return active;
}

void drupe_fault_contain(void)
{
    pthread_mutex_lock(&lock);
    wanted = true;
    pthread_mutex_unlock(&lock);
    if (any_adopted()) watcher_start();
}

/* --- Handlers for programs without any ------------------------------------------------------------------ */

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
static struct sigaction before[DRUPE_COUNT_OF(signals)];
static int (*claim)(int signal, void *siginfo, void *ucontext);

_Noreturn static void park(void)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    for (;;) sigsuspend(&all);
}

/* Who was there before has the last word; the default is reached by faulting again. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
    for (size_t i = 0; i < DRUPE_COUNT_OF(signals); i++) {
        if (signals[i] != signal) continue;
        if (before[i].sa_flags & SA_SIGINFO) {
            before[i].sa_sigaction(signal, info, context);
        } else if (before[i].sa_handler == SIG_DFL || before[i].sa_handler == SIG_IGN) {
            sigaction(signal, &before[i], NULL);
            if (info->si_code <= 0) syscall(SYS_tgkill, getpid(), thread_id(), signal);
        } else {
            before[i].sa_handler(signal);
        }
    }
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    if (claim(signal, info, context)) park();
    pass_on(signal, info, context);
}

drupe_status drupe_fault_install(int (*decide)(int signal, void *siginfo, void *ucontext))
{
    drupe_status status = DRUPE_OK;
    struct sigaction ours;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    pthread_mutex_lock(&lock);
    bool installed = claim != NULL;
    if (!installed) claim = decide ? decide : drupe_fault_claim;
    for (size_t i = 0; !installed && i < DRUPE_COUNT_OF(signals); i++) {
        if (sigaction(signals[i], NULL, &before[i]) != 0 || sigaction(signals[i], &ours, NULL) != 0)
            status = drupe_error_set(DRUPE_E_INTERNAL, "The handler of signal %d cannot be set.", signals[i]);
    }
    pthread_mutex_unlock(&lock);
    drupe_fault_contain();
    return status;
}
