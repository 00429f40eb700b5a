/* The fatal-signal handler.
 *
 * It is a list of steps, not a function that runs through: a fault inside a step (damaged frames), or a step
 * that outlasts its time (a lock that the crashed thread itself holds), arrives on the same thread as another
 * signal, and that handler goes on with the next step and never returns. So the report is as complete as the
 * damage allows, and the end always comes.
 *
 * Handlers are installed once, at the start. A runtime that installs its own later stands in front of ours
 * and is left there: it serves faults of its own (shared memory of devices) and passes the others on. One
 * that was there before us is called after the report.
 *
 * Under a sanitizer nothing is installed: its own report says more, and it owns the signal stacks. */
#include "jkernel/server/crash.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif
#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) ||     \
    __has_feature(thread_sanitizer)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#define SIGNAL_STACK (256u << 10)

typedef enum step { NOTHING, DESCRIBE, TRACE, TRACED, FRAMES, NOTES, PUBLISH, END } step;

static const int step_ms[] = {
    [DESCRIBE] = 100,         [TRACE] = 300, [TRACED] = 50, [FRAMES] = 200, [NOTES] = 150, [PUBLISH] = 0,
    /* the rest */[END] = 100};

enum { IDLE, ASKED, TAKEN, LEFT, STUCK }; /* publishing */

static const int fatal_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#define FATAL (sizeof fatal_signals / sizeof fatal_signals[0])

static struct {
    _Atomic(jk_server *) server;
    atomic_int process; /* the one that is guarded: a forked child just dies */
    const jk_crash_hooks *hooks;
    struct sigaction before[FATAL];
    bool installed;
    atomic_int owner;    /* the thread that reports; 0: none */
    atomic_int claiming; /* a thread in the claim */
    atomic_int publishing;
    volatile step step;
    int signal;
    siginfo_t info;
    void *context;
    jk_ink detail;
    int64_t deadline;
    int timer;
    bool timer_made;
} crash;

static int thread_id(void)
{
    return (int)syscall(SYS_gettid);
}

/* --- The end ----------------------------------------------------------------------------------------------
 */

static void signals_open(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < FATAL; i++) sigaddset(&set, fatal_signals[i]);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

_Noreturn static void end_by(int number)
{
    struct sigaction plain;
    memset(&plain, 0, sizeof plain);
    plain.sa_handler = SIG_DFL;
    sigaction(number, &plain, NULL);
    signals_open();
    syscall(SYS_tgkill, getpid(), thread_id(), number);
    _exit(128 + number);
}

/* Who handled this signal before us has the last word; usually that is the system. */
static void before_call(void)
{
    for (size_t i = 0; i < FATAL; i++) {
        const struct sigaction *before = &crash.before[i];
        if (fatal_signals[i] != crash.signal) continue;
        if (before->sa_flags & SA_SIGINFO) {
            before->sa_sigaction(crash.signal, &crash.info, crash.context);
        } else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN) {
            before->sa_handler(crash.signal);
        }
    }
}

/* For threads whose fault is somebody else's affair. */
_Noreturn static void park(void)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    for (;;) sigsuspend(&all);
}

/* --- The steps --------------------------------------------------------------------------------------------
 */

static void timer_arm(int64_t delay)
{
    struct itimerspec when = {.it_value = {delay / JK_SECOND, delay % JK_SECOND}};
    if (crash.timer_made) syscall(SYS_timer_settime, crash.timer, 0, &when, NULL);
}

static void on_alarm(int number, siginfo_t *info, void *context);

static void timer_make(int thread)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_alarm;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(SIGALRM, &action, NULL);
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGALRM;
    event.sigev_notify_thread_id = thread;
    crash.timer_made = syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &crash.timer) == 0;
}

static void thread_tell(jk_ink *ink, jk_server *server)
{
    char name[17] = "";
    if (thread_id() == getpid()) {
        jk_ink_text(ink, "the main thread");
        return;
    }
    prctl(PR_GET_NAME, name, 0, 0, 0);
    bool ours = jk_server_own_thread(server);
    jk_ink_text(ink, ours ? "a thread of the kernel's own" : "thread \"");
    if (ours) return;
    jk_ink_text(ink, name);
    jk_ink_text(ink, "\"");
}

static void describe(jk_server *server)
{
    jk_record *record = server->record;
    jk_ink summary = {record->summary, 0, sizeof record->summary};
    jk_ink_text(&summary, jk_signal_name(crash.signal));
    jk_ink_text(&summary, " in ");
    thread_tell(&summary, server);
    jk_ink_text(&summary, ": ");
    jk_crash_describe(&summary, &crash.info, crash.context);
    crash.detail = (jk_ink){record->detail, 0, sizeof record->detail};
    record->detail[0] = '\0';
    atomic_store(&record->signal, crash.signal);
}

static void detail_add(size_t (*source)(char *text, size_t size), const char *title)
{
    char *title_at = crash.detail.text + crash.detail.size;
    size_t before = crash.detail.size;
    if (!source) return;
    jk_ink_text(&crash.detail, title);
    size_t room = crash.detail.room - crash.detail.size - 1;
    size_t size = source(crash.detail.text + crash.detail.size, room);
    if (size > room) size = room;
    if (size == 0) {
        crash.detail.size = before;
        *title_at = '\0';
        return;
    }
    crash.detail.size += size;
    crash.detail.text[crash.detail.size] = '\0';
    if (crash.detail.text[crash.detail.size - 1] != '\n') jk_ink_text(&crash.detail, "\n");
}

/* The io thread, asked to publish, must not wait for what the crashed thread was doing. These locks know
 * their owners: giving up one that is another thread's does nothing. */
static void locks_give_up(jk_server *server)
{
    jk_memory_give_up();
    pthread_mutex_unlock(&server->outbox.lock);
    pthread_mutex_unlock(&server->stdio.lock);
    pthread_mutex_unlock(&server->inbox.lock);
    pthread_mutex_unlock(&server->subshells.lock);
    pthread_mutex_unlock(&server->input.lock);
    pthread_mutex_unlock(&server->replies.lock);
}

static void publish(jk_server *server)
{
    locks_give_up(server);
    if (pthread_equal(pthread_self(), server->io)) {
        atomic_store(&crash.publishing, TAKEN);
        jk_crash_publish(server);
    } else {
        atomic_store(&crash.publishing, ASKED);
        jk_outbox_wake(&server->outbox);
    }
    const struct timespec pause = {.tv_nsec = JK_MILLISECOND};
    while (atomic_load(&crash.publishing) < LEFT && jk_clock() < crash.deadline) nanosleep(&pause, NULL);
}

static void step_perform(jk_server *server, step now)
{
    const jk_crash_hooks *hooks = crash.hooks;
    switch (now) {
    case DESCRIBE: describe(server); break;
    case TRACE:
        if (hooks->trace) hooks->trace(crash.signal);
        break;
    case TRACED: detail_add(hooks->traced, ""); break;
    case FRAMES: jk_crash_frames(&crash.detail, crash.context); break;
    case NOTES: detail_add(hooks->notes, JK_CRASH_NOTES); break;
    case PUBLISH: publish(server); break;
    default: before_call(); break;
    }
}

_Noreturn static void steps_run(step first)
{
    jk_server *server = atomic_load(&crash.server);
    for (int now = (int)first; now <= END; now++) {
        if (!server && now != END) continue;
        crash.step = (step)now;
        int64_t rest = crash.deadline - jk_clock(), most = step_ms[now] * JK_MILLISECOND;
        if (now == PUBLISH) most = rest;
        if (now != END && most > rest) most = rest;
        timer_arm(most > 0 ? most : JK_MILLISECOND);
        step_perform(server, (step)now);
    }
    end_by(crash.signal);
}

/* --- The handlers -----------------------------------------------------------------------------------------
 */

static void on_alarm(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    bool ours = info->si_code == SI_TIMER; /* and not from an alarm() of the program's */
    if (ours && atomic_load(&crash.owner) == thread_id()) steps_run((step)(crash.step + 1));
}

/* A second signal on the thread that reports. The language's own crash handler, run as the step TRACE, passes
 * the signal on when it is done: that one is swallowed. Everything else is a fault of the step. */
static void on_second_fault(const siginfo_t *info)
{
    bool passed_on = crash.step == TRACE && info->si_code <= 0 && info->si_pid == getpid();
    if (!passed_on) steps_run((step)(crash.step + 1));
}

static int claimed(int number, siginfo_t *info, void *context, int self)
{
    jk_server *server = atomic_load(&crash.server);
    int (*claim)(int, void *, void *) = server ? crash.hooks->claim : NULL;
    if (!claim || atomic_load(&crash.claiming) == self) return JK_CLAIM_NONE;
    atomic_store(&crash.claiming, self);
    int taken = claim(number, info, context);
    atomic_store(&crash.claiming, 0);
    return taken;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    int self = thread_id(), none = 0;
    if (getpid() != atomic_load(&crash.process)) end_by(number);
    if (atomic_load(&crash.owner) == self) {
        on_second_fault(info);
        return;
    }
    signals_open();
    int taken = claimed(number, info, context, self);
    if (taken == JK_CLAIM_RETURN) return;
    if (taken != JK_CLAIM_NONE) park();
    if (!atomic_compare_exchange_strong(&crash.owner, &none, self)) {
        jk_server *server = atomic_load(&crash.server);
        if (server) locks_give_up(server);
        park(); /* another thread reports, and ends the process */
    }
    jk_memory_freeze();
    crash.signal = number;
    crash.info = *info;
    crash.context = context;
    crash.deadline = jk_clock() + JK_CRASH_MOST;
    timer_make(self);
    steps_run(DESCRIBE);
}

void jk_crash_look(jk_server *server)
{
    int asked = ASKED;
    if (atomic_load_explicit(&crash.owner, memory_order_relaxed) == 0) return;
    if (atomic_compare_exchange_strong(&crash.publishing, &asked, TAKEN)) jk_crash_publish(server);
}

void jk_crash_published(bool left)
{
    jk_server *server = atomic_load(&crash.server);
    if (server) atomic_store(&server->record->shown, left);
    atomic_store(&crash.publishing, left ? LEFT : STUCK);
}

/* --- Installation -----------------------------------------------------------------------------------------
 */

static pthread_key_t stack_key;
static pthread_once_t stack_once = PTHREAD_ONCE_INIT;
static bool stack_key_made;

/* One page of the system before the stack, which faults. */
static size_t guard_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void stack_release(void *memory)
{
    stack_t now, none = {.ss_flags = SS_DISABLE};
    if (sigaltstack(NULL, &now) == 0 && now.ss_sp == (char *)memory + guard_size()) sigaltstack(&none, NULL);
    munmap(memory, guard_size() + SIGNAL_STACK);
}

static void stack_key_make(void)
{
    stack_key_made = pthread_key_create(&stack_key, stack_release) == 0;
}

void jk_thread_guard(void)
{
    if (SANITIZED) return;
    pthread_once(&stack_once, stack_key_make);
    if (!stack_key_made || pthread_getspecific(stack_key)) return;
    size_t guard = guard_size();
    char *memory = mmap(NULL, guard + SIGNAL_STACK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    mprotect(memory, guard, PROT_NONE);
    stack_t stack = {.ss_sp = memory + guard, .ss_size = SIGNAL_STACK};
    if (pthread_setspecific(stack_key, memory) != 0 || sigaltstack(&stack, NULL) != 0) {
        pthread_setspecific(stack_key, NULL);
        munmap(memory, guard + SIGNAL_STACK);
    }
}

int jk_server_guard(jk_server *server, const jk_crash_hooks *hooks)
{
    if (SANITIZED) return 1;
    struct sigaction ours, there;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    crash.hooks = hooks;
    atomic_store(&crash.process, (int)getpid());
    atomic_store(&crash.server, server);
    jk_thread_guard();
    jk_crash_frames_prime();
    for (size_t i = 0; i < FATAL; i++) {
        if (sigaction(fatal_signals[i], &ours, &there) != 0) return -1;
        if (!crash.installed) crash.before[i] = there;
    }
    crash.installed = true;
    return 0;
}

void jk_crash_forget(jk_server *server)
{
    jk_server *expected = server;
    atomic_compare_exchange_strong(&crash.server, &expected, NULL);
}
