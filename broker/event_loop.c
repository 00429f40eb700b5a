/* The loop. A turn takes what clients sent and what has happened, looks at the clock and at the queue, writes
 * the journal, and sends the answers last. */
#include "base/machine.h"
#include "broker/broker_state.h"
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_A_TURN   256
#define CHANGED_SECONDS 0.1 /* between two "changed" */
#define SWEEP_SECONDS   60.0

static double clock_now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

double bk_seconds(void)
{
    return clock_now(CLOCK_MONOTONIC);
}

void bk_clock(bk_broker *broker)
{
    broker->now = broker->offset + clock_now(CLOCK_BOOTTIME);
}

/* --- A turn --------------------------------------------------------------------------------------------- */

static void changed_tell(bk_broker *broker)
{
    if (!broker->changed || broker->nwatchers == 0 || broker->now < broker->changed_at + CHANGED_SECONDS)
        return;
    broker->changed = false;
    broker->changed_at = broker->now;
    for (bk_client *client = broker->first_client, *next; client; client = next) {
        next = client->next;
        if (client->watches) bk_client_news(broker, client);
    }
}

void bk_turn_end(bk_broker *broker)
{
    bk_leases_look(broker);
    if (broker->look_queue || broker->now >= broker->queue_due) bk_queue_run(broker);
    if (broker->look_park) {
        broker->look_park = false;
        bk_park_look(broker);
    }
    changed_tell(broker);
    bk_journal_flush(broker);
    bk_clients_flush(broker);
    bk_clients_bury(broker);
    broker->turn++;
    if (broker->now < broker->sweep_due) return;
    broker->sweep_due = broker->now + SWEEP_SECONDS;
    bk_users_sweep(broker, false);
}

/* Milliseconds until there is something to do. */
static int wait_of(const bk_broker *broker)
{
    double next = fmin(fmin(broker->due, broker->queue_due), fmin(broker->stall_due, broker->sweep_due));
    if (broker->changed && broker->nwatchers) next = fmin(next, broker->changed_at + CHANGED_SECONDS);
    if (broker->journal.failed) next = fmin(next, broker->journal.retry);
    /* What a flush has freed by closing a client. */
    if (broker->look_queue || broker->look_park || broker->flush) return 0;
    if (next <= broker->now) return 0;
    return (int)fmin(ceil((next - broker->now) * 1e3), 60e3);
}

drupe_status bk_run(bk_broker *broker)
{
    struct epoll_event events[EVENTS_A_TURN];
    while (!broker->stopping) {
        int count = epoll_wait(broker->epoll, events, EVENTS_A_TURN, wait_of(broker));
        if (count < 0 && errno != EINTR) {
            return drupe_error_set(DRUPE_E_UNAVAILABLE, "Cannot wait for events: %s.", strerror(errno));
        }
        bk_clock(broker);
        for (int i = 0; i < count; i++) {
            bk_source *source = events[i].data.ptr;
            if (source->ready) source->ready(broker, source, events[i].events);
        }
        bk_turn_end(broker);
    }
    return DRUPE_OK;
}

static void signalled(bk_broker *broker, bk_source *source, uint32_t events)
{
    struct signalfd_siginfo info;
    (void)source;
    (void)events;
    while (read(broker->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGHUP)
            bk_journal_reopen(broker);
        else
            broker->stopping = true;
    }
}

drupe_status bk_signals(bk_broker *broker)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    broker->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    broker->signalling.ready = signalled;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &broker->signalling};
    if (broker->signals >= 0 && epoll_ctl(broker->epoll, EPOLL_CTL_ADD, broker->signals, &event) == 0)
        return DRUPE_OK;
    return drupe_error_set(DRUPE_E_UNAVAILABLE, "Cannot watch for signals: %s.", strerror(errno));
}

/* --- Begin and end -------------------------------------------------------------------------------------- */

drupe_status bk_broker_open(bk_broker *broker, bk_config *config)
{
    uint32_t tag = 0;
    broker->config = *config;
    *config = (bk_config){0};
    broker->limits = broker->config.limits;
    broker->listener = broker->signals = broker->spare = -1;
    broker->journal.folder = broker->journal.fd = broker->journal.lock = broker->journal.accounting = -1;
    broker->last_ticket = &broker->first_ticket;
    broker->subuids = "/etc/subuid";
    broker->due = broker->queue_due = broker->stall_due = INFINITY;
    broker->offset = clock_now(CLOCK_REALTIME) - clock_now(CLOCK_BOOTTIME);
    bk_clock(broker);
    broker->sweep_due = broker->now + SWEEP_SECONDS;
    broker->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (broker->epoll < 0)
        return drupe_error_set(DRUPE_E_UNAVAILABLE, "Cannot make an epoll: %s.", strerror(errno));
    /* Ids of two runs never meet: a lease's id in an environment may be older than this run. */
    if (getrandom(&tag, sizeof tag, 0) != sizeof tag) tag = (uint32_t)(broker->now * 1000);
    snprintf(broker->tag, sizeof broker->tag, "%08x", tag);
    if (!drupe_read_line("/proc/sys/kernel/random/boot_id", broker->boot, sizeof broker->boot))
        broker->boot[0] = '\0';
    return DRUPE_OK;
}

static void leases_forget(bk_broker *broker)
{
    while (broker->first_client) bk_client_close(broker, broker->first_client);
    while (broker->first_ticket) bk_ticket_drop(broker, broker->first_ticket);
    /* The journal is closed: to end them here tells nobody. */
    while (broker->first_lease) bk_lease_end(broker, broker->first_lease, BK_RETURNED, NULL);
    broker->flush = NULL;
    bk_clients_bury(broker);
}

void bk_broker_close(bk_broker *broker)
{
    bk_journal_close(broker);
    if (broker->listener >= 0) unlink(broker->socket);
    leases_forget(broker);
    bk_users_sweep(broker, true);
    drupe_map_clear(&broker->users);
    drupe_map_clear(&broker->uids);
    drupe_map_clear(&broker->leases);
    drupe_map_clear(&broker->tickets);
    drupe_map_clear(&broker->holders);
    int fds[] = {broker->listener, broker->signals, broker->spare, broker->epoll};
    for (size_t i = 0; i < DRUPE_COUNT_OF(fds); i++) {
        if (fds[i] >= 0) close(fds[i]);
    }
    free(broker->socket);
    bk_config_clear(&broker->config);
    *broker = (bk_broker){.epoll = -1, .listener = -1, .signals = -1};
}
