/* The broker of devices: what its files share. docs/internals/broker.md describes the protocol.
 *
 * One thread, one loop (event_loop.c): it reads the requests of all clients, changes the state, writes the
 * journal and only then sends the answers. So an answer that somebody has seen is never forgotten by a
 * restart. Nothing here has locks. A bk_broker holds all state; the tests make several. */
#ifndef DRUPE_BROKER_ROOM_H
#define DRUPE_BROKER_ROOM_H

#include "base/base.h"
#include <jansson.h>
#include <stdio.h>
#include <sys/types.h>

#define BK_VERSION      1
#define BK_PACKET_MOST  16384  /* bytes of a request */
#define BK_ANSWER_MOST  131072 /* bytes of an answer or event */
#define BK_OUTBOX_MOST  262144 /* bytes that wait for a client beside what the system keeps for it */
#define BK_DEVICES_MOST 256
#define BK_PARTS_MOST   256      /* of a device */
#define BK_TAKES_MOST   64       /* devices of one lease */
#define BK_GROUPS_MOST  64       /* groups with a quota */
#define BK_NAME_MOST    128      /* bytes of a user's name, a label, a tag */
#define BK_UNIT         1000000u /* a whole device in the sums of quotas and fairness */
#define BK_SLOTS        12       /* of the last hour, five minutes each */
#define BK_SLOT_SECONDS 300.0

typedef struct bk_broker bk_broker;
typedef struct bk_user bk_user;
typedef struct bk_holder bk_holder;
typedef struct bk_lease bk_lease;
typedef struct bk_ticket bk_ticket;
typedef struct bk_client bk_client;

typedef enum bk_kind { BK_ANY, BK_CPU, BK_GPU, BK_ACCELERATOR, BK_KINDS } bk_kind;

/* --- What there is: config.c ---------------------------------------------------------------------------- */

typedef struct bk_parts {
    uint64_t words[BK_PARTS_MOST / 64];
} bk_parts;

typedef struct bk_device {
    char *id, *name;
    bk_kind kind;
    unsigned parts;  /* at least 1 */
    uint64_t memory; /* 0: unknown */
    json_t *env, *part_env, *nodes;
    /* In use in one way at a time: by parts (all of them: whole), or by shares of its memory. */
    bk_parts used;
    unsigned nused, nshares;
    uint64_t memory_used; /* by shares */
    uint64_t reserved;    /* the pass of the queue in which somebody who waited too long reserved it */
} bk_device;

/* What somebody wants: `devices` of a kind; of each `parts` (0: all), or a share of `memory` bytes. With both
 * the parts are taken and the memory is a limit within them. */
typedef struct bk_want {
    bk_kind kind;
    unsigned devices, parts;
    uint64_t memory;
} bk_want;

typedef struct bk_profile {
    char *name, *title;
    bk_want want;
    double seconds, idle; /* 0: no limit */
} bk_profile;

typedef struct bk_quota {
    char *name;       /* of the user or group */
    uint64_t devices; /* in BK_UNIT; UINT64_MAX: no limit */
    double seconds;   /* the longest lease; 0: no limit */
    gid_t gid;        /* of groups */
    bool exists;      /* the group does */
    uint64_t held;    /* of groups: by all members */
} bk_quota;

typedef struct bk_limits {
    unsigned clients, clients_all, leases, tickets, subscriptions; /* per user but for clients_all */
} bk_limits;

typedef struct bk_config {
    bk_device *devices;
    bk_profile *profiles;
    bk_quota *users, *groups, everyone;
    char **admins;
    size_t ndevices, nprofiles, nusers, ngroups, nadmins;
    double warning, idle, patience;
    char *state, *socket, *accounting; /* NULL: the default; no accounting */
    json_t *join;                      /* what stands between the values of a variable */
    bk_limits limits;
} bk_config;

/* Read a configuration. False with one line for each mistake in `problems`; the configuration is empty then.
 */
bool bk_config_read(const char *path, bk_config *config, drupe_text *problems) DRUPE_MUST_CHECK;
bool bk_config_parse(const char *text, size_t size, bk_config *config, drupe_text *problems) DRUPE_MUST_CHECK;
void bk_config_clear(bk_config *config);
const bk_profile *bk_profile_find(const bk_config *config, const char *name);
const char *bk_kind_name(bk_kind kind);
bool bk_kind_read(const char *name, bk_kind *kind);

/* --- Capacities: capacity.c ----------------------------------------------------------------------------- */

typedef struct bk_take {
    bk_device *device;
    bk_parts parts;
    unsigned nparts; /* 0: a share of the memory */
    uint64_t memory; /* 0: unknown */
} bk_take;

/* What a lease has, and what that counts for quotas and fairness: for each kind, and for all at [BK_ANY]. */
typedef struct bk_holding {
    bk_take *takes;
    unsigned ntakes;
    uint64_t amount[BK_KINDS];
    bool limited; /* its memory has a limit that the environment tells */
    uint64_t limit;
} bk_holding;

/* NULL, or why this can never be had from these devices: a sentence, borrowed until the next call. */
const char *bk_want_never(const bk_broker *broker, const bk_want *want);
/* The least that it would count. */
uint64_t bk_want_amount(const bk_broker *broker, const bk_want *want);
/* Choose devices and take them, those of `home` first (by index; NULL: none); false when they are not free,
 * or reserved in `pass` (0: ignore reservations). */
bool bk_claim(bk_broker *broker, const bk_want *want, const bk_parts *home, uint64_t pass,
              bk_holding *holding);
/* Take exactly this, as a journal tells it; false when it is not there or not free. */
bool bk_claim_again(bk_broker *broker, bk_holding *holding);
void bk_give(bk_broker *broker, bk_holding *holding);
/* Reserve for this pass the devices on which the want will be served first. */
void bk_reserve(bk_broker *broker, const bk_want *want, uint64_t pass);
bool bk_anything_free(const bk_broker *broker);
bool bk_has_part(const bk_parts *parts, unsigned index);
void bk_set_part(bk_parts *parts, unsigned index, bool on);
/* A new object of strings. */
json_t *bk_environment(const bk_broker *broker, const bk_holding *holding, const char *lease);

/* --- Who: user.c ---------------------------------------------------------------------------------------- */

/* A user is a name: a hub's users need no account. A user id without a name is that of whose range of ids it
 * is in (/etc/subuid), or known by its digits. */
struct bk_user {
    char *name;
    bool admin;
    uint64_t groups; /* bits of config.groups, looked up at `looked` */
    double looked;
    char group[64]; /* the primary one, "" if none */
    unsigned nclients, nleases, ntickets;
    bk_lease *leases; /* by unext */
    uint64_t held[BK_KINDS];
    double history[BK_KINDS][BK_SLOTS], total[BK_KINDS], accounted;
    int64_t slot;
    uint64_t turn; /* of the loop, and how long its requests took in it */
    double spent;
    double jumped_at; /* when one of its tickets was served by patience */
    /* Scratch of fair_queue.c, of the look with this number: one of its tickets goes by patience; its oldest
     * one's serial; what it used in the last hour. */
    uint64_t look, oldest;
    bool jumped;
    double used[BK_KINDS];
};

bk_user *bk_user_of(bk_broker *broker, uid_t uid);
/* By name; NULL without memory. */
bk_user *bk_user_named(bk_broker *broker, const char *name);
/* The groups with quotas, looked up anew after a minute. */
void bk_user_look(bk_broker *broker, bk_user *user);
void bk_user_hold(bk_broker *broker, bk_user *user, const bk_holding *holding, uint64_t groups, bool take);
/* Device-seconds of the last hour. */
double bk_user_history(bk_broker *broker, bk_user *user, bk_kind kind);
void bk_user_account(bk_broker *broker, bk_user *user);
/* How long a lease of this user may last; 0: for ever. */
double bk_user_seconds(bk_broker *broker, bk_user *user);
/* NULL, or the sentence why so much more is over a quota. `ever`: it always is, whatever is held. */
const char *bk_user_over(bk_broker *broker, bk_user *user, uint64_t amount, bool groups, bool *ever);
void bk_users_sweep(bk_broker *broker, bool all);

/* --- Processes: holder.c -------------------------------------------------------------------------------- */

/* What epoll reports: the loop calls `ready`. */
typedef struct bk_source {
    void (*ready)(bk_broker *broker, struct bk_source *source, uint32_t events);
} bk_source;

struct bk_holder {
    bk_source source;
    pid_t pid;
    uint64_t start; /* of /proc/PID/stat: which process of this number it is */
    uid_t uid;
    int fd; /* a pidfd */
    unsigned uses;
    bk_lease *leases; /* by hnext */
    bk_holder *dead;
};

/* The process of this number, watched; with a use for the caller. NULL: it is not there, or `*why` is set to
 * a sentence. `start`: 0, or what it must have. `pidfd`: -1, or one, which is taken. */
bk_holder *bk_holder_get(bk_broker *broker, pid_t pid, uint64_t start, int pidfd, const char **why);
void bk_holder_release(bk_broker *broker, bk_holder *holder);
/* The start time and real user of a process; false when there is none. */
bool bk_process_read(pid_t pid, uint64_t *start, uid_t *uid);
int bk_peer_pidfd(int fd, pid_t pid);
/* Whether `pid` is the holder or runs below it. */
bool bk_holder_above(const bk_holder *holder, pid_t pid);

#endif
