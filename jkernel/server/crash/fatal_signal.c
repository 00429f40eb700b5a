/* The fatal-signal handler.
 *
 * It is a list of steps, not a function that runs through: a fault inside a step (damaged frames), or a step
 * that outlasts its time (a lock that the crashed thread itself holds), arrives on the same thread as another
 * signal, and that handler goes on with the next step and never returns. So the report is as complete as the
 * damage allows, and the end always comes.
 *
 * An end that the program itself brings about, by exit() or what stands for _exit() in its language, goes
 * through the same steps, outside of a signal handler. Behind those exit() goes on: the handlers that were
 * registered earlier, what stdio holds and the destructors of libraries have their time, too.
 *
 * Handlers are installed once, at the start. A runtime that installs its own later stands in front of ours
 * and is left there: it serves faults of its own (shared memory of devices) and passes the others on. One
 * that was there before us is called after the report.
 *
 * Under a sanitizer nothing is installed: its own report says more, and it owns the signal stacks. */
#include "jkernel/server/crash/crash_room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define EXIT_MOST     JK_SECOND
#define EXITS_AT_ONCE 16

typedef enum step { NOTHING, DESCRIBE, TRACE, TRACED, FRAMES, NOTES, PUBLISH, END } step;

static const int step_ms[] = {
    [DESCRIBE] = 100,         [TRACE] = 300, [TRACED] = 50, [FRAMES] = 200, [NOTES] = 150, [PUBLISH] = 0,
    /* the rest */[END] = 100};

enum { IDLE, ASKED, TAKEN, LEFT, STUCK }; /* publishing */

/* The faults first, then what ends a process that does not handle it. Behind the first five ours only where
 * nobody else does: a sandbox lives on SIGSYS. */
static const int fatal_signals[] = {SIGSEGV, SIGBUS,  SIGFPE,    SIGILL,  SIGABRT, SIGTRAP, SIGSYS,
                                    SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGQUIT, SIGALRM};
#define FATAL         (sizeof fatal_signals / sizeof fatal_signals[0])
#define FAULTS        7
#define TRACED_FAULTS 5 /* which a language's crash handlers know */

/* Over 20 members: a process crashes once, and all that its handlers know must be there before it does. */
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
    char call[32]; /* by which the program ends the process; "": a signal does */
    int status;
    bool exits; /* the call is exit(): more is to come behind the steps */
    siginfo_t info;
    void *context;
    jk_fixed_text detail;
    int64_t deadline;
    int timer;
    bool timer_made;
} crash;

/* --- The end ----------------------------------------------------------------------------------------------
 */

static bool is_fault(int number)
{
    size_t i = 0;
    while (i < FAULTS && fatal_signals[i] != number) i++;
    return i < FAULTS;
}

/* A signal for whose handler the language notes a traceback. */
static int traced_signal(void)
{
    size_t i = 0;
    while (i < TRACED_FAULTS && fatal_signals[i] != crash.signal) i++;
    return i < TRACED_FAULTS ? crash.signal : SIGABRT;
}

static void signals_open(int number)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < FAULTS; i++) sigaddset(&set, fatal_signals[i]);
    sigaddset(&set, SIGALRM);
    sigaddset(&set, number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

_Noreturn static void end_by(int number)
{
    struct sigaction plain;
    memset(&plain, 0, sizeof plain);
    plain.sa_handler = SIG_DFL;
    sigaction(number, &plain, NULL);
    signals_open(number);
    syscall(SYS_tgkill, getpid(), drupe_thread_id(), number);
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

static void thread_tell(jk_fixed_text *out, jk_server *server)
{
    char name[17] = "";
    if (drupe_thread_id() == getpid()) {
        jk_fixed_text_add(out, "the main thread");
        return;
    }
    prctl(PR_GET_NAME, name, 0, 0, 0);
    bool ours = jk_server_own_thread(server);
    jk_fixed_text_add(out, ours ? "a thread of the kernel's own" : "thread \"");
    if (ours) return;
    jk_fixed_text_add(out, name);
    jk_fixed_text_add(out, "\"");
}

static void describe(jk_server *server)
{
    jk_crash_report *record = &jk_record_of(server)->crash;
    jk_fixed_text summary = {record->summary, 0, sizeof record->summary},
                  call = {record->call, 0, sizeof record->call};
    jk_fixed_text_add(&call, crash.call);
    jk_fixed_text_add(&summary, crash.call[0] ? crash.call : jk_signal_name(crash.signal));
    jk_fixed_text_add(&summary, crash.call[0] ? " was called in " : " in ");
    thread_tell(&summary, server);
    if (!crash.call[0]) {
        jk_fixed_text_add(&summary, ": ");
        jk_crash_describe(&summary, &crash.info, crash.context);
    }
    record->status = crash.status;
    crash.detail = (jk_fixed_text){record->detail, 0, sizeof record->detail};
    record->detail[0] = '\0';
    atomic_store(&record->signal, crash.signal);
}

static void detail_add(size_t (*source)(char *text, size_t size), const char *title)
{
    char *title_at = crash.detail.text + crash.detail.size;
    size_t before = crash.detail.size;
    if (!source) return;
    jk_fixed_text_add(&crash.detail, title);
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
    if (crash.detail.text[crash.detail.size - 1] != '\n') jk_fixed_text_add(&crash.detail, "\n");
}

/* The io thread, asked to publish, must not wait for what the crashed thread was doing. These locks know
 * their owners: giving up one that is another thread's does nothing. */
static void locks_give_up(jk_server *server)
{
    jk_memory_give_up();
    jk_locks_give_up(server);
}

static void publish(jk_server *server)
{
    locks_give_up(server);
    if (jk_own_thread_is(server, JK_THREAD_IO)) {
        atomic_store(&crash.publishing, TAKEN);
        jk_crash_publish(server);
    } else {
        atomic_store(&crash.publishing, ASKED);
        jk_outbox_wake(&server->output->outbox);
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
        if (hooks->trace) hooks->trace(traced_signal());
        break;
    case TRACED: detail_add(hooks->traced, ""); break;
    case FRAMES: jk_crash_frames(&crash.detail, crash.context); break;
    case NOTES: detail_add(hooks->notes, JK_CRASH_NOTES); break;
    case PUBLISH: publish(server); break;
    default:
        if (!crash.call[0]) before_call();
        break;
    }
}

static void steps_perform(step first)
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
}

/* What exit() still does has this time, and a fault in it is the end: on_alarm() and on_second_fault() go on
 * behind END. */
static void exit_bound(void)
{
    crash.step = END;
    timer_arm(EXIT_MOST);
}

_Noreturn static void steps_run(step first)
{
    steps_perform(first);
    if (crash.exits && first <= END) { /* above a step that was left: there is no way back to exit() */
        exit_bound();
        (void)fflush(NULL);
    }
    if (crash.call[0]) _exit(crash.status);
    end_by(crash.signal);
}

/* --- The handlers -----------------------------------------------------------------------------------------
 */

static void on_alarm(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    bool ours = info->si_code == SI_TIMER; /* and not from an alarm() of the program's */
    if (ours && atomic_load(&crash.owner) == drupe_thread_id()) steps_run((step)(crash.step + 1));
}

/* A second signal on the thread that reports. The language's own crash handler, run as the step TRACE, passes
 * the signal on when it is done: that one is swallowed. Everything else is a fault of the step. */
static void on_second_fault(int number, const siginfo_t *info)
{
    if (!is_fault(number)) return;
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

/* One thread reports, and ends the process; the others wait for that. */
static void own(int self)
{
    int none = 0;
    if (atomic_compare_exchange_strong(&crash.owner, &none, self)) return;
    jk_server *server = atomic_load(&crash.server);
    if (server) locks_give_up(server);
    park();
}

static void report_begin(int self)
{
    jk_memory_freeze();
    crash.deadline = jk_clock() + JK_CRASH_MOST;
    timer_make(self);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    int self = drupe_thread_id();
    if (getpid() != atomic_load(&crash.process)) end_by(number);
    if (atomic_load(&crash.owner) == self) {
        on_second_fault(number, info);
        return;
    }
    signals_open(number);
    int taken = is_fault(number) ? claimed(number, info, context, self) : JK_CLAIM_NONE;
    if (taken == JK_CLAIM_RETURN) return;
    if (taken != JK_CLAIM_NONE) park();
    own(self);
    crash.signal = number;
    crash.info = *info;
    crash.context = context;
    report_begin(self);
    steps_run(DESCRIBE);
}

/* Whether that is news; the calling thread reports it then. */
static bool leaving_begin(const char *call, int status)
{
    jk_server *server = atomic_load(&crash.server);
    int self = drupe_thread_id();
    if (!crash.installed || getpid() != atomic_load(&crash.process) || !server) return false;
    bool running;
    if (jk_life_shutting_down(server) || atomic_load(&crash.owner) == self ||
        !jk_cells_latest(server, &running))
        return false;
    own(self);
    crash.signal = SIGABRT;
    jk_fixed_text_add(&(jk_fixed_text){crash.call, 0, sizeof crash.call}, call);
    crash.status = status & 0xff;
    signals_open(SIGABRT);
    report_begin(self);
    return true;
}

void jk_server_leaving(const char *call, int status)
{
    if (leaving_begin(call, status)) steps_run(DESCRIBE);
}

void jk_server_exiting(int status)
{
    char call[sizeof crash.call];
    jk_fixed_text out = {call, 0, sizeof call};
    jk_fixed_text_add(&out, "exit(");
    jk_fixed_text_number(&out, (unsigned)status & 0xff, 10);
    jk_fixed_text_add(&out, ")");
    if (!leaving_begin(call, status)) return;
    crash.exits = true;
    steps_perform(DESCRIBE);
    exit_bound();
}

#ifdef __GLIBC__
static void on_leaving(int status, void *unused)
{
    (void)unused;
    jk_server_exiting(status);
}
#endif

void jk_crash_look(jk_server *server)
{
    int asked = ASKED;
    if (atomic_load_explicit(&crash.owner, memory_order_relaxed) == 0) return;
    if (atomic_compare_exchange_strong(&crash.publishing, &asked, TAKEN)) jk_crash_publish(server);
}

void jk_crash_published(bool left)
{
    jk_server *server = atomic_load(&crash.server);
    if (server) atomic_store(&jk_record_of(server)->crash.shown, left);
    atomic_store(&crash.publishing, left ? LEFT : STUCK);
}

/* --- Installation -----------------------------------------------------------------------------------------
 */

int jk_server_report_crashes(jk_server *server, const jk_crash_hooks *hooks)
{
    if (JK_SANITIZED) return 1;
    struct sigaction ours, there;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    crash.hooks = hooks;
    atomic_store(&crash.process, (int)getpid());
    atomic_store(&crash.server, server);
    jk_thread_signal_stack();
    jk_crash_frames_prime();
    for (size_t i = 0; i < FATAL; i++) {
        int number = fatal_signals[i];
        if (sigaction(number, NULL, &there) != 0) return -1;
        if (i >= TRACED_FAULTS && (there.sa_flags & SA_SIGINFO || there.sa_handler != SIG_DFL)) continue;
        if (sigaction(number, &ours, NULL) != 0) return -1;
        if (!crash.installed) crash.before[i] = there;
    }
#ifdef __GLIBC__
    /* A handler is off the list when it runs: one for each thread that calls exit() meanwhile, to wait in. */
    for (int i = 0; i < EXITS_AT_ONCE && !crash.installed; i++) on_exit(on_leaving, NULL);
#endif
    crash.installed = true;
    return 0;
}

void jk_crash_forget(jk_server *server)
{
    jk_server *expected = server;
    atomic_compare_exchange_strong(&crash.server, &expected, NULL);
}
