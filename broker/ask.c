/* Asks for devices: lease, adopt, resume. Every ask becomes a ticket and goes through the queue, so an ask
 * that could be served does not pass those who come first. */
#include "broker/broker_state.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct ask {
    bk_broker *broker;
    bk_client *client;
    const json_t *request;
    json_t *refusal;
    bk_user *user;
    bk_want want;
    const bk_profile *profile;
    const char *label, *key;
    double seconds;
} ask;

/* --- Reading -------------------------------------------------------------------------------------------- */

static bool refuse(ask *a, const char *code, const char *sentence)
{
    a->refusal = bk_refuse(a->broker, code, "%s", sentence);
    return false;
}

/* A whole number from 0 to `most`; false when it is something else. */
static bool whole(const json_t *object, const char *key, uint64_t most, uint64_t *number)
{
    const json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value)) return true;
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > most) {
        return false;
    }
    *number = (uint64_t)json_integer_value(value);
    return true;
}

/* A text that may be shown in a line: NULL if missing; false if it is something else. */
static bool plain(const json_t *object, const char *key, const char **text)
{
    const json_t *value = json_object_get(object, key);
    *text = NULL;
    if (!value || json_is_null(value)) return true;
    if (!json_is_string(value) || json_string_length(value) > BK_NAME_MOST ||
        json_string_length(value) == 0) {
        return false;
    }
    *text = json_string_value(value);
    for (const unsigned char *at = (const unsigned char *)*text; *at; at++) {
        /* U+0080 to U+009F are controls, too: one of them begins what moves an administrator's terminal. */
        if (*at < ' ' || *at == 127 || (*at == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f)) return false;
    }
    return true;
}

static bool read_want(ask *a)
{
    const json_t *want = json_object_get(a->request, "want");
    const char *profile, *kind;
    uint64_t devices = 1, parts = 0, memory = 0;
    if (!json_is_object(want)) {
        return refuse(a, "bad", "\"want\" must be an object: a profile, or kind, devices, parts, memory.");
    }
    if (!plain(want, "profile", &profile)) return refuse(a, "bad", "\"profile\" must be a profile's name.");
    if (profile) {
        a->profile = bk_profile_find(&a->broker->config, profile);
        if (!a->profile) return refuse(a, "unknown", "There is no profile of this name.");
        a->want = a->profile->want;
        return true;
    }
    if (!plain(want, "kind", &kind) || (kind && !bk_kind_read(kind, &a->want.kind))) {
        return refuse(a, "bad", "\"kind\" must be cpu, gpu, accelerator or any.");
    }
    if (!whole(want, "devices", BK_TAKES_MOST, &devices) || devices == 0) {
        return refuse(a, "bad", "\"devices\" must be a whole number from 1 to 64.");
    }
    if (!whole(want, "parts", BK_PARTS_MOST, &parts)) {
        return refuse(a, "bad", "\"parts\" must be a whole number from 0 (all of them) to 256.");
    }
    if (!whole(want, "memory", (uint64_t)1 << 53, &memory)) {
        return refuse(a, "bad", "\"memory\" must be a number of bytes.");
    }
    a->want.devices = (unsigned)devices;
    a->want.parts = (unsigned)parts;
    a->want.memory = memory;
    return true;
}

static bool read_user(ask *a)
{
    const char *name;
    a->user = a->client->user;
    if (!plain(a->request, "user", &name)) return refuse(a, "bad", "\"user\" must be a user's name.");
    if (!name || strcmp(name, a->user->name) == 0) return true;
    if (!a->user->admin) return refuse(a, "forbidden", "Only administrators may ask for another user.");
    a->user = bk_user_named(a->broker, name);
    return a->user || refuse(a, "internal", "The broker has no memory left.");
}

static bool read_seconds(ask *a)
{
    const json_t *value = json_object_get(a->request, "seconds");
    double asked = json_number_value(value), most = bk_user_seconds(a->broker, a->user);
    double own = a->profile ? a->profile->seconds : 0;
    if (own > 0 && (most == 0 || own < most)) most = own;
    a->seconds = most;
    if (!value || json_is_null(value)) return true;
    if (!(asked > 0 && asked <= 1e9)) return refuse(a, "bad", "\"seconds\" must be a number above 0.");
    if (most > 0 && asked > most) {
        a->refusal = bk_refuse(a->broker, "quota", "This lease may last %.10g seconds at most.", most);
        return false;
    }
    a->seconds = asked;
    return true;
}

/* What can never be granted is refused at once. `wait`: others of a group may give something back. */
static bool check_possible(ask *a, bool wait)
{
    bool ever;
    const char *why = bk_want_never(a->broker, &a->want);
    if (why) return refuse(a, "never", why);
    why = bk_user_over(a->broker, a->user, bk_want_amount(a->broker, &a->want), !wait, &ever);
    return !why || refuse(a, "quota", why);
}

static bool check_limits(ask *a)
{
    const bk_limits *limits = &a->broker->limits;
    if (a->user->nleases + a->user->ntickets >= limits->leases) {
        a->refusal = bk_refuse(a->broker, "limit", "A user has %u leases at most.", limits->leases);
        return false;
    }
    if (a->user->ntickets < limits->tickets) return true;
    a->refusal = bk_refuse(a->broker, "limit", "A user waits for %u leases at most.", limits->tickets);
    return false;
}

/* --- Holders -------------------------------------------------------------------------------------------- */

/* The process at the other end; with a use for the caller. */
static bk_holder *holder_peer(ask *a)
{
    bk_client *client = a->client;
    const char *why = NULL;
    if (client->holder && client->holder->fd < 0) why = "The process that connected has ended.";
    if (!client->holder) {
        int pidfd = client->pid > 0 ? bk_peer_pidfd(client->fd, client->pid) : -1;
        if (pidfd >= 0)
            client->holder = bk_holder_get(a->broker, client->pid, client->start, pidfd, &why);
        else
            why = "The broker does not see the process that connected: it has ended, or is in another pid "
                  "namespace.";
    }
    if (why) refuse(a, "gone", why);
    if (why || !client->holder) return NULL;
    client->holder->uses++;
    return client->holder;
}

/* The process that the request names, or the one that asks. NULL with the refusal. */
static bk_holder *holder_read(ask *a)
{
    const json_t *named = json_object_get(a->request, "holder");
    const char *why;
    uint64_t pid = 0;
    if (!named || json_is_null(named)) return holder_peer(a);
    if (!json_is_object(named) || !whole(named, "pid", INT32_MAX, &pid) || pid == 0) {
        refuse(a, "bad", "\"holder\" must be an object with the pid of a process.");
        return NULL;
    }
    bk_holder *holder = bk_holder_get(a->broker, (pid_t)pid, 0, -1, &why);
    if (!holder) {
        refuse(a, "gone", why);
        return NULL;
    }
    if (holder->uid == a->client->uid || a->client->user->admin) return holder;
    bk_holder_release(a->broker, holder);
    refuse(a, "forbidden", "A holder must be a process of your own.");
    return NULL;
}

/* --- Answers -------------------------------------------------------------------------------------------- */

static json_t *waiting(bk_broker *broker, const bk_ticket *ticket)
{
    return json_pack("{sbsIss}", "ok", 1, "waiting", (json_int_t)bk_queue_position(broker, ticket), "ticket",
                     ticket->id);
}

/* The ticket's answer: granted, waiting, or refused. */
static json_t *answer(bk_broker *broker, bk_ticket *ticket, bool wait)
{
    bk_lease *lease = NULL;
    ticket->granted = &lease;
    bk_queue_run(broker);
    if (lease) {
        json_t *object = json_pack("{sb}", "ok", 1);
        bk_reply_lease(broker, object, lease);
        return object;
    }
    ticket->granted = NULL;
    if (wait) {
        ticket->waits = true;
        broker->changed = broker->look_park = true;
        broker->queue_due = fmin(broker->queue_due, broker->now + broker->config.patience);
        return waiting(broker, ticket);
    }
    bk_ticket_drop(broker, ticket);
    return bk_refuse(broker, "busy", "What would serve this is in use or kept for others, of whom %zu wait.",
                     broker->tickets.count);
}

json_t *bk_ask_lease(bk_broker *broker, bk_client *client, const json_t *request)
{
    ask a = {.broker = broker, .client = client, .request = request};
    bool wait = json_is_true(json_object_get(request, "wait"));
    if (!read_user(&a) || !read_want(&a) || !read_seconds(&a)) return a.refusal;
    if (!plain(request, "label", &a.label)) {
        return bk_refuse(broker, "bad", "\"label\" must be a line of 1 to %d bytes.", BK_NAME_MOST);
    }
    if (!plain(request, "key", &a.key)) {
        return bk_refuse(broker, "bad", "\"key\" must be a line of 1 to %d bytes.", BK_NAME_MOST);
    }
    if (!check_possible(&a, wait) || !check_limits(&a)) return a.refusal;
    bk_holder *holder = holder_read(&a);
    if (!holder) return a.refusal;
    bk_ticket *ticket = bk_ticket_new(broker, client, a.user, holder, &a.want, NULL);
    bk_holder_release(broker, holder);
    if (!ticket) return bk_refuse(broker, "internal", "The broker has no memory left.");
    ticket->seconds = a.seconds;
    ticket->idle_after = a.profile ? a.profile->idle : broker->config.idle;
    if (a.profile) ticket->profile = strdup(a.profile->name);
    if (a.label) ticket->label = strdup(a.label);
    if (a.key) ticket->key = strdup(a.key);
    return answer(broker, ticket, wait);
}

json_t *bk_ask_adopt(bk_broker *broker, bk_client *client, const json_t *request)
{
    ask a = {.broker = broker, .client = client, .request = request};
    bk_lease *lease = bk_ask_mine(broker, client, request, &a.refusal);
    bk_holder *holder = lease ? holder_read(&a) : NULL;
    if (!holder) return a.refusal;
    /* To find the holder may have shown that the one before has ended, and its leases with it. */
    const char *id = json_string_value(json_object_get(request, "lease"));
    if (drupe_map_get(&broker->leases, id, strlen(id)) == lease) {
        bk_lease_hold(broker, lease, holder);
        a.refusal = json_pack("{sb}", "ok", 1);
    } else {
        a.refusal = bk_refuse(broker, "unknown", "The lease has ended with the process that held it.");
    }
    bk_holder_release(broker, holder);
    return a.refusal;
}

json_t *bk_ask_resume(bk_broker *broker, bk_client *client, const json_t *request)
{
    ask a = {.broker = broker, .client = client, .request = request};
    const json_t *value = json_object_get(request, "wait");
    bk_lease *lease = bk_ask_mine(broker, client, request, &a.refusal);
    if (!lease) return a.refusal;
    if (!lease->parked) {
        json_t *object = json_pack("{sb}", "ok", 1);
        bk_reply_lease(broker, object, lease);
        return object;
    }
    if (lease->ticket && lease->ticket->client == client) return waiting(broker, lease->ticket);
    if (lease->ticket) bk_ticket_end(broker, lease->ticket, BK_AGAIN); /* whoever asks last has the place */
    a.user = lease->user;
    a.want = lease->want;
    if (!check_possible(&a, true) &&
        strcmp(json_string_value(json_object_get(a.refusal, "code")), "never") == 0) {
        return a.refusal;
    }
    json_decref(a.refusal);
    bk_ticket *ticket = bk_ticket_new(broker, client, lease->user, lease->holder, &lease->want, lease);
    if (!ticket) return bk_refuse(broker, "internal", "The broker has no memory left.");
    return answer(broker, ticket, !value || json_is_true(value));
}
