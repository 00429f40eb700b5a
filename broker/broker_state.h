/* The broker's state: leases, tickets, clients, and all of it together. See broker_room.h. */
#ifndef DRUPE_BROKER_STATE_H
#define DRUPE_BROKER_STATE_H

#include "broker/broker_room.h"

/* --- Leases: lease.c ------------------------------------------------------------------------------------ */

typedef struct bk_link {
    bk_client *client;
    bk_lease *lease;
    struct bk_link *lnext, **lprev, *cnext, **cprev;
} bk_link;

struct bk_lease {
    char id[24];
    bk_user *user;
    bk_holder *holder;
    bk_lease *next, **prev, *hnext, **hprev, *unext, **uprev;
    bk_want want;
    char *profile, *label, *key; /* may be NULL */
    bk_holding holding;
    bk_parts home;   /* the devices, by index, on which its holder's memory was when it parked */
    uint64_t groups; /* whose sums have it */
    double begin, ends, warn_at, since,
        spent; /* ends 0: never. since: it has its devices; spent: device-seconds before */
    double idle_after, idle_since; /* 0: never; busy */
    double parked_at, asked_at;    /* when `park` was sent */
    uint64_t asked_for;            /* the serial of the ticket */
    bool warned, parked;
    bk_ticket *ticket; /* of resume */
    bk_link *links;
};

/* Publish a lease that has its holding (taken, also on failure); NULL without memory. `id` NULL: a new one.
 */
bk_lease *bk_lease_new(bk_broker *broker, const char *id, bk_user *user, bk_holder *holder,
                       const bk_want *want, const char *profile, const char *label, bk_holding *holding);
/* Why leases end; metrics count them so. */
#define BK_RETURNED "returned"
#define BK_EXITED   "holder exited"
#define BK_TIME     "time is over"
#define BK_AGAIN    "asked again" /* of a ticket: by another connection */
#define BK_ENDS     4
extern const char *const bk_ends[BK_ENDS];
/* Tell and forget; `but` (may be NULL) is not told. */
void bk_lease_end(bk_broker *broker, bk_lease *lease, const char *why, bk_client *but);
/* Its end, and when to warn of it. */
void bk_lease_until(bk_broker *broker, bk_lease *lease, double ends);
void bk_lease_hold(bk_broker *broker, bk_lease *lease, bk_holder *holder);
/* `unused`: its holder could not use these devices, and waits for those that it had before. */
void bk_lease_park(bk_broker *broker, bk_lease *lease, bool unused);
void bk_lease_unpark(bk_broker *broker, bk_lease *lease, bk_holding *holding);
void bk_lease_idle(bk_broker *broker, bk_lease *lease, bool idle);
void bk_lease_due(bk_broker *broker, double when);
/* What time has brought: warnings, ends, requests to park. */
void bk_leases_look(bk_broker *broker);
void bk_park_look(bk_broker *broker);
/* False at the limit of subscriptions. */
bool bk_link_add(bk_broker *broker, bk_client *client, bk_lease *lease);
void bk_link_drop(bk_link *link);

/* --- Those who wait: ticket.c, fair_queue.c ------------------------------------------------------------- */

struct bk_ticket {
    char id[24];
    bk_user *user;
    bk_client *client;
    bk_holder *holder;
    bk_lease *lease; /* to be resumed, or NULL */
    bk_ticket *next, **prev;
    bk_want want;
    char *profile, *label, *key;
    double seconds, idle_after, asked;
    uint64_t serial, rank, failed; /* failed: the pass in which it found no devices */
    double used;                   /* scratch: device-seconds of the last hour */
    bool first, waits;             /* scratch: goes by patience; `waits`: its client was told so */
    bk_lease **granted;            /* where its lease is wanted instead of an event */
};

bk_ticket *bk_ticket_new(bk_broker *broker, bk_client *client, bk_user *user, bk_holder *holder,
                         const bk_want *want, bk_lease *lease);
void bk_ticket_drop(bk_broker *broker, bk_ticket *ticket);
/* And tell its client, who waits for an event. */
void bk_ticket_end(bk_broker *broker, bk_ticket *ticket, const char *why);
/* Give what is free to those who wait. */
void bk_queue_run(bk_broker *broker);
unsigned bk_queue_position(bk_broker *broker, const bk_ticket *ticket);
/* Whether somebody waits for what this lease has. */
bool bk_queue_wants(const bk_broker *broker, const bk_lease *lease);

/* --- Clients: client.c, packets.c ----------------------------------------------------------------------- */

typedef struct bk_packet {
    struct bk_packet *next;
    size_t size;
    bool news; /* "changed" */
    char bytes[];
} bk_packet;

struct bk_client {
    bk_source source;
    int fd; /* -1: a test's */
    pid_t pid;
    uint64_t start; /* of its process, where the system has no pidfds of peers */
    uid_t uid;
    bk_user *user;
    bk_holder *holder; /* itself, once it holds something */
    bk_packet *first, **last;
    size_t waiting; /* bytes of its packets */
    double stalled; /* since when it does not read; 0: it does */
    bool watches, closed, overflown, queued, polled;
    unsigned nlinks, ntickets;
    bk_link *links;
    bk_client *next, **prev, *fnext;
};

/* Queue a packet, *taken*; at the end of the turn it is sent. A client that has too many is closed. */
void bk_client_send(bk_broker *broker, bk_client *client, json_t *packet);
/* Send what waits at the end of the turn, when the journal is written. */
void bk_client_flush_later(bk_broker *broker, bk_client *client);
/* "changed", unless one waits for it already. An answer that waits may be older than the change. */
void bk_client_news(bk_broker *broker, bk_client *client);
void bk_client_close(bk_broker *broker, bk_client *client);
/* For tests and for connections alike; NULL at a limit. */
bk_client *bk_client_new(bk_broker *broker, int fd, pid_t pid, uid_t uid);
drupe_status bk_listen(bk_broker *broker) DRUPE_MUST_CHECK;
void bk_clients_flush(bk_broker *broker);
void bk_clients_bury(bk_broker *broker);

/* --- Requests: request.c, ask.c, grant.c, listing.c, metrics.c ------------------------------------------ */

/* Answer one packet of a client. */
void bk_request(bk_broker *broker, bk_client *client, const char *bytes, size_t size);
/* {"ok": false, ...} with the code, a word, and a sentence. */
json_t *bk_refuse(bk_broker *broker, const char *code, const char *format, ...) DRUPE_PRINTF(3, 4);
/* Make a ticket's holding (taken, also on failure) a lease; the ticket is gone then. */
bool bk_grant(bk_broker *broker, bk_ticket *ticket, bk_holding *holding);
json_t *bk_ask_lease(bk_broker *broker, bk_client *client, const json_t *request);
json_t *bk_ask_adopt(bk_broker *broker, bk_client *client, const json_t *request);
json_t *bk_ask_resume(bk_broker *broker, bk_client *client, const json_t *request);
/* The client's lease of this request, or NULL with the refusal. */
bk_lease *bk_ask_mine(bk_broker *broker, bk_client *client, const json_t *request, json_t **refusal);
/* What a lease has, into an answer or event. */
void bk_reply_lease(const bk_broker *broker, json_t *object, const bk_lease *lease);
json_t *bk_reply_list(bk_broker *broker, bk_client *client, size_t skip);
json_t *bk_reply_metrics(bk_broker *broker, bool names);
/* `object` receives `value`, taken, under `name`; nothing happens without memory. */
void bk_set(json_t *object, const char *name, json_t *value);

/* --- Files: journal.c, recover.c ------------------------------------------------------------------------ */

typedef struct bk_journal {
    int folder, fd, lock;
    drupe_text pending;
    size_t written, compact_at;
    bool failed;
    double retry;
    int accounting;
    drupe_text accounts;
} bk_journal;

/* Open the folder and take over the leases that still have their holder. */
/* What a journal says. For tests. */
void bk_replay_text(bk_broker *broker, const char *text, size_t size, unsigned *damaged);
drupe_status bk_journal_open(bk_broker *broker, const char *path) DRUPE_MUST_CHECK;
void bk_journal_put(bk_broker *broker, const bk_lease *lease);
void bk_journal_end(bk_broker *broker, const bk_lease *lease);
void bk_journal_account(bk_broker *broker, const bk_lease *lease, const char *why);
/* Write what is pending; once in a while, all anew. */
void bk_journal_flush(bk_broker *broker);
void bk_journal_reopen(bk_broker *broker);
bool bk_journal_compact(bk_broker *broker);
/* Append a line, *taken*. */
void bk_journal_line(drupe_text *text, json_t *line);
void bk_journal_close(bk_broker *broker);

/* --- All of it: event_loop.c ---------------------------------------------------------------------------- */

typedef struct bk_counts {
    uint64_t requests, granted, refused, parked, resumed, overflows, ended[BK_ENDS], waited;
    double waited_seconds, longest_wait;
} bk_counts;

struct bk_broker {
    bk_config config;
    bk_limits limits;
    double now;    /* seconds since 1970, of a clock that nobody sets back */
    double offset; /* of that clock to CLOCK_BOOTTIME */
    char boot[40]; /* the boot id */
    char tag[12];  /* begins the ids of this run */
    uint64_t serial, pass, look, turn;
    drupe_map users, uids, leases, tickets, holders;
    bk_lease *first_lease;
    bk_ticket *first_ticket, **last_ticket;
    bk_client *first_client, *flush;
    bk_client *dead;
    bk_holder *dead_holders;
    unsigned nclients, nwatchers, nidle, nasked;
    double due, queue_due, changed_at, stall_due, sweep_due; /* when to look again; INFINITY: never */
    bool changed, look_queue, look_park, stopping;
    int epoll, listener, signals, spare;
    bool peer_pidfds; /* the system tells the pidfd of a peer */
    char *socket;
    const char *subuids; /* the file of ranges of user ids: /etc/subuid */
    bk_source listening, signalling;
    bk_journal journal;
    bk_counts counts;
    char sentence[512]; /* scratch of refusals */
};

/* Zeroed broker and a configuration, *taken*. Without sockets and files, as tests use it. */
drupe_status bk_broker_open(bk_broker *broker, bk_config *config) DRUPE_MUST_CHECK;
void bk_broker_close(bk_broker *broker);
/* What a turn of the loop does after its requests. */
void bk_turn_end(bk_broker *broker);
drupe_status bk_run(bk_broker *broker) DRUPE_MUST_CHECK;
drupe_status bk_signals(bk_broker *broker) DRUPE_MUST_CHECK;
void bk_clock(bk_broker *broker);
/* Seconds of a clock that runs within a turn, too. */
double bk_seconds(void);
/* One line for the administrator. */
void bk_say(const char *format, ...) DRUPE_PRINTF(1, 2);
/* NULL, or what does not hold, though it always must. For tests. */
const char *bk_broken(const bk_broker *broker);

#endif
