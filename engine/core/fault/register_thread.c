/* Threads of drivers: those that were not there before the driver was called.
 *
 * They are given stacks that are larger than the system's default, since CPU drivers put a whole work-group's
 * private memory there: only what is touched costs memory. And they get a stack for signals, because a kernel
 * that has used up its stack leaves none for the handler. A thread can only set that itself, so it is sent a
 * signal, whose handler has it set by the return from the signal. */
#include "core/fault/fault_room.h"
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define LARGE_STACK ((size_t)80 << 20)
/* A frame that is larger than stack and guard together begins below both, and its kernel writes to whatever
 * is mapped there. 256 MiB cost address space only: half a MiB of page tables where guards are marked in
 * them. */
#define LARGE_GUARD ((size_t)256 << 20)

struct drupe_threads {
    struct sigaction division; /* who handles SIGFPE */
    sigset_t mask;             /* of the calling thread before */
    size_t count, capacity;
    bool
        whole; /* else threads may be missing, and who is not listed is not known to be new, nor to be gone */
    int ids[];
};

static struct {
    pthread_mutex_t lock;
    struct sigaction host_division, driver_division; /* who handles SIGFPE */
    int stack_signal;                                /* the signal that is sent; 0: there is none */
    unsigned enlarging;                              /* callers between begin and end */
    size_t default_stack, default_guard;             /* before them; 0: nothing was changed */
} adoption = {.lock = PTHREAD_MUTEX_INITIALIZER};

static drupe_threads *list_threads(void)
{
    size_t capacity = 64;
    drupe_threads *list = malloc(sizeof *list + capacity * sizeof(int));
    if (!list) return NULL;
    *list = (drupe_threads){.capacity = capacity};
    DIR *folder = opendir("/proc/self/task");
    if (!folder) return list;
    list->whole = true;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        int id = atoi(entry->d_name);
        if (id <= 0) continue;
        if (list->count == list->capacity) {
            drupe_threads *larger = realloc(list, sizeof *list + 2 * list->capacity * sizeof(int));
            if (!larger) {
                list->whole = false;
                break;
            }
            list = larger;
            list->capacity *= 2;
        }
        list->ids[list->count++] = id;
    }
    closedir(folder);
    return list;
}

static bool lists(const drupe_threads *list, int id)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->ids[i] == id) return true;
    }
    return false;
}

/* --- Divisions by zero ---------------------------------------------------------------------------------- */

/* Some drivers hide divisions by zero, which their kernels may do, and would hide those of the whole process.
 */
static void on_division(int signal, siginfo_t *info, void *context)
{
    const drupe_reg_thread *one = drupe_reg_thread_find(drupe_thread_id());
    drupe_signal_pass_on(one && !one->busy ? &adoption.driver_division : &adoption.host_division, signal,
                         info, context);
}

static void confine_division(const struct sigaction *before)
{
    struct sigaction now, ours;
    memset(&now, 0, sizeof now);
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_division;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    (void)sigaction(SIGFPE, NULL, &now);
    if (now.sa_handler == before->sa_handler || now.sa_sigaction == on_division ||
        now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) {
        return;
    }
    pthread_mutex_lock(&adoption.lock);
    adoption.driver_division = now;
    if (before->sa_sigaction != on_division) adoption.host_division = *before;
    sigaction(SIGFPE, &ours, NULL);
    pthread_mutex_unlock(&adoption.lock);
}

/* --- Stacks for signals --------------------------------------------------------------------------------- */

/* What is set by sigaltstack() inside of a handler is undone when it returns; what its context says is done.
 */
static void on_stack_signal(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    ucontext_t *machine = context;
    if (info->si_code != SI_TKILL || info->si_pid != getpid()) return;
    int kept = errno;
    drupe_reg_thread *one = drupe_reg_thread_find(drupe_thread_id());
    void *stack = one ? atomic_load(&one->stack) : NULL;
    if (stack && machine->uc_stack.ss_flags & SS_DISABLE)
        machine->uc_stack = (stack_t){.ss_sp = stack, .ss_size = DRUPE_SIGNAL_STACK};
    errno = kept;
}

/* One of the system's spare signals that nobody handles; the handler stays, because a thread may hold the
 * signal back for as long as it likes. */
static void stack_signal_open(void)
{
    struct sigaction ours, there;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_stack_signal;
    ours.sa_flags = SA_SIGINFO | SA_RESTART;
    sigfillset(&ours.sa_mask);
    if (adoption.stack_signal && sigaction(adoption.stack_signal, NULL, &there) == 0 &&
        there.sa_sigaction == on_stack_signal)
        return;
    adoption.stack_signal = 0;
    for (int signal = SIGRTMAX - 4; signal > SIGRTMIN + 8 && !adoption.stack_signal; signal--) {
        if (sigaction(signal, NULL, &there) != 0 || there.sa_flags & SA_SIGINFO ||
            there.sa_handler != SIG_DFL)
            continue;
        if (sigaction(signal, &ours, NULL) == 0) adoption.stack_signal = signal;
    }
}

static void give_stack(drupe_reg_thread *one, int thread)
{
    void *stack = mmap(NULL, DRUPE_SIGNAL_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED) return;
    atomic_store(&one->stack, stack);
    if (syscall(SYS_tgkill, getpid(), thread, adoption.stack_signal) == 0) return;
    atomic_store(&one->stack, NULL);
    munmap(stack, DRUPE_SIGNAL_STACK);
}

/* Those of threads that have ended. */
static void take_stacks_back(const drupe_threads *living)
{
    drupe_reg_thread *one;
    for (size_t i = 0; (one = drupe_reg_thread_at(i)) != NULL; i++) {
        int thread = atomic_load(&one->thread);
        void *stack = atomic_load(&one->stack);
        if (thread <= 0 || !stack || lists(living, thread)) continue;
        atomic_store(&one->stack, NULL);
        if (atomic_compare_exchange_strong(&one->thread, &thread, DRUPE_REG_THREAD_FREE))
            munmap(stack, DRUPE_SIGNAL_STACK);
    }
}

/* --- Larger stacks -------------------------------------------------------------------------------------- */

/* Not where the address space is limited. `lock`. */
static void stacks_enlarge(void)
{
    pthread_attr_t attributes;
    struct rlimit space;
    if (adoption.enlarging++) return;
    adoption.default_stack = 0;
    if (getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur != RLIM_INFINITY ||
        pthread_getattr_default_np(&attributes) != 0)
        return;
    size_t size = 0;
    /* Of these only the last can fail. */
    pthread_attr_getstacksize(&attributes, &size);
    if (size < LARGE_STACK) {
        pthread_attr_getguardsize(&attributes, &adoption.default_guard);
        pthread_attr_setstacksize(&attributes, LARGE_STACK);
        pthread_attr_setguardsize(&attributes, LARGE_GUARD);
        if (pthread_setattr_default_np(&attributes) == 0) adoption.default_stack = size;
    }
    pthread_attr_destroy(&attributes);
}

static void stacks_restore(void)
{
    pthread_attr_t attributes;
    if (--adoption.enlarging || !adoption.default_stack || pthread_getattr_default_np(&attributes) != 0)
        return;
    pthread_attr_setstacksize(&attributes, adoption.default_stack);
    pthread_attr_setguardsize(&attributes, adoption.default_guard);
    (void)pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
}

/* --- Adoption ------------------------------------------------------------------------------------------- */

drupe_threads *drupe_core_adoption_begin(void)
{
    drupe_threads *list = list_threads();
    if (!list) return NULL;
    (void)sigaction(SIGFPE, NULL, &list->division);
    sigset_t wanted;
    sigemptyset(&wanted);
    pthread_mutex_lock(&adoption.lock);
    stacks_enlarge();
    if (drupe_isolation_active()) stack_signal_open();
    if (adoption.stack_signal) sigaddset(&wanted, adoption.stack_signal);
    pthread_mutex_unlock(&adoption.lock);
    /* Threads inherit it. */
    pthread_sigmask(SIG_UNBLOCK, &wanted, &list->mask);
    return list;
}

static void register_all(const drupe_threads *before, const drupe_threads *after, const void *owner)
{
    const drupe_reg_thread entry = {.owner = owner};
    for (size_t i = 0; i < after->count; i++) {
        int id = after->ids[i];
        /* Another thread of the program may have had one of ours started meanwhile. */
        if (lists(before, id) || drupe_reg_thread_living(id) || drupe_thread_ours(id)) continue;
        drupe_reg_thread *one = drupe_reg_thread_enter(id, &entry);
        if (one && adoption.stack_signal) give_stack(one, id);
    }
    take_stacks_back(after);
}

void drupe_core_adoption_end(drupe_threads *before, const void *owner)
{
    if (!before) return;
    drupe_threads_hold();
    pthread_mutex_lock(&adoption.lock);
    stacks_restore();
    drupe_threads *after = list_threads();
    if (after && before->whole && after->whole) register_all(before, after, owner);
    pthread_mutex_unlock(&adoption.lock);
    drupe_threads_go_on();
    confine_division(&before->division);
    pthread_sigmask(SIG_SETMASK, &before->mask, NULL);
    free(before);
    free(after);
    drupe_isolation_start();
}
