/* Requests: one JSON object each. Here are those that are short; asks for devices are in ask.c. */
#include "broker/broker_state.h"
#include <math.h>
#include <string.h>

static json_t *fine(void)
{
    return json_pack("{sb}", "ok", 1);
}

bk_lease *bk_ask_mine(bk_broker *broker, bk_client *client, const json_t *request, json_t **refusal)
{
    const char *id = json_string_value(json_object_get(request, "lease"));
    *refusal = NULL;
    if (!id) {
        *refusal = bk_refuse(broker, "bad", "\"lease\" must be the id of a lease.");
        return NULL;
    }
    bk_lease *lease = drupe_map_get(&broker->leases, id, strlen(id));
    if (lease && (lease->user == client->user || client->user->admin)) return lease;
    /* In a container the holder's user is another one than the lease's: what runs below the holder, as the
     * same user, belongs to it. A spawner that holds a lease runs as another user than those whom it starts.
     */
    bool below = lease && lease->holder->uid == client->uid && bk_holder_above(lease->holder, client->pid);
    if (below) return lease;
    /* Others' leases are as unknown as those that never were. */
    *refusal = bk_refuse(broker, "unknown", "You have no such lease: it was another's, or has ended.");
    return NULL;
}

static json_t *hello(bk_broker *broker, bk_client *client, const json_t *request)
{
    (void)broker;
    (void)request;
    return json_pack("{sbsisIsssb}", "ok", 1, "version", BK_VERSION, "uid", (json_int_t)client->uid, "user",
                     client->user->name, "admin", (int)client->user->admin);
}

static json_t *return_ticket(bk_broker *broker, bk_client *client, const char *id)
{
    bk_ticket *ticket = drupe_map_get(&broker->tickets, id, strlen(id));
    if (!ticket || (ticket->user != client->user && ticket->client != client && !client->user->admin)) {
        return bk_refuse(broker, "unknown",
                         "You have no such ticket: it was granted, given up, or another's.");
    }
    if (ticket->client == client)
        bk_ticket_drop(broker, ticket); /* who gives it up knows */
    else
        bk_ticket_end(broker, ticket, BK_RETURNED);
    return fine();
}

static bool keyed(const char *own, const char *key, const bk_user *user, const bk_client *client)
{
    return own && strcmp(own, key) == 0 && (user == client->user || client->user->admin);
}

/* Whatever came of an ask whose answer was lost: a lease, a place in the queue, nothing. */
static json_t *return_key(bk_broker *broker, bk_client *client, const char *key)
{
    for (bk_ticket *ticket = broker->first_ticket, *next; ticket; ticket = next) {
        next = ticket->next;
        if (keyed(ticket->key, key, ticket->user, client)) bk_ticket_drop(broker, ticket);
    }
    for (bk_lease *lease = broker->first_lease, *next; lease; lease = next) {
        next = lease->next;
        if (keyed(lease->key, key, lease->user, client)) bk_lease_end(broker, lease, BK_RETURNED, client);
    }
    return fine();
}

static json_t *return_lease(bk_broker *broker, bk_client *client, const json_t *request)
{
    const char *ticket = json_string_value(json_object_get(request, "ticket"));
    const char *key = json_string_value(json_object_get(request, "key"));
    if (key) return return_key(broker, client, key);
    if (ticket) return return_ticket(broker, client, ticket);
    json_t *refusal;
    bk_lease *lease = bk_ask_mine(broker, client, request, &refusal);
    if (!lease) return refusal;
    bk_lease_end(broker, lease, BK_RETURNED, client);
    return fine();
}

static json_t *list(bk_broker *broker, bk_client *client, const json_t *request)
{
    json_int_t skip = json_integer_value(json_object_get(request, "skip"));
    return bk_reply_list(broker, client, skip > 0 ? (size_t)skip : 0);
}

static json_t *watch(bk_broker *broker, bk_client *client, const json_t *request)
{
    (void)request;
    if (!client->watches) broker->nwatchers++;
    client->watches = true;
    return fine();
}

static json_t *subscribe(bk_broker *broker, bk_client *client, const json_t *request)
{
    json_t *refusal;
    bk_lease *lease = bk_ask_mine(broker, client, request, &refusal);
    if (!lease) return refusal;
    if (bk_link_add(broker, client, lease)) {
        lease->asked_at = 0; /* whoever heard `park` may be gone: it is said again */
        broker->look_park = true;
        return fine();
    }
    return bk_refuse(broker, "limit", "A connection hears of %u leases at most.",
                     broker->limits.subscriptions);
}

static json_t *idle(bk_broker *broker, bk_client *client, const json_t *request)
{
    json_t *refusal;
    bk_lease *lease = bk_ask_mine(broker, client, request, &refusal);
    if (!lease) return refusal;
    bk_lease_idle(broker, lease, true);
    broker->look_park = true;
    return fine();
}

static json_t *busy(bk_broker *broker, bk_client *client, const json_t *request)
{
    json_t *refusal;
    bk_lease *lease = bk_ask_mine(broker, client, request, &refusal);
    if (!lease) return refusal;
    bk_lease_idle(broker, lease, false);
    return fine();
}

static json_t *parked(bk_broker *broker, bk_client *client, const json_t *request)
{
    json_t *refusal;
    bk_lease *lease = bk_ask_mine(broker, client, request, &refusal);
    if (!lease) return refusal;
    bool unused = json_is_true(json_object_get(request, "unused"));
    if (!lease->parked) bk_lease_park(broker, lease, unused);
    return fine();
}

static json_t *extend(bk_broker *broker, bk_client *client, const json_t *request)
{
    json_t *refusal;
    bk_lease *lease = bk_ask_mine(broker, client, request, &refusal);
    if (!lease) return refusal;
    double seconds = json_number_value(json_object_get(request, "seconds"));
    if (!(seconds > 0 && seconds <= 1e9)) {
        return bk_refuse(broker, "bad",
                         "\"seconds\" must be a number above 0: how long the lease shall last from now.");
    }
    if (bk_queue_wants(broker, lease)) {
        return bk_refuse(broker, "busy", "Others wait for what this lease has: it cannot be extended now.");
    }
    double most = bk_user_seconds(broker, lease->user);
    if (most > 0 && seconds > most) seconds = most;
    if (lease->ends > 0 && broker->now + seconds > lease->ends) {
        bk_lease_until(broker, lease, broker->now + seconds);
        broker->changed = true;
        bk_journal_put(broker, lease);
    }
    json_t *answer = fine();
    bk_set(answer, "ends", lease->ends > 0 ? json_real(lease->ends) : json_null());
    return answer;
}

static json_t *profiles(bk_broker *broker, bk_client *client, const json_t *request)
{
    (void)client;
    (void)request;
    json_t *answer = fine(), *map = json_object();
    for (size_t i = 0; i < broker->config.nprofiles; i++) {
        const bk_profile *profile = &broker->config.profiles[i];
        const bk_want *want = &profile->want;
        bk_set(map, profile->name,
               json_pack("{sssssisisIsfsf}", "title", profile->title ? profile->title : profile->name, "kind",
                         bk_kind_name(want->kind), "devices", (int)want->devices, "parts", (int)want->parts,
                         "memory", (json_int_t)want->memory, "seconds", profile->seconds, "idle",
                         profile->idle));
    }
    bk_set(answer, "profiles", map);
    return answer;
}

static json_t *metrics(bk_broker *broker, bk_client *client, const json_t *request)
{
    (void)request;
    return bk_reply_metrics(broker, client->user->admin);
}

typedef json_t *operation(bk_broker *broker, bk_client *client, const json_t *request);

static const struct {
    const char *name;
    operation *run;
} operations[] = {{"lease", bk_ask_lease}, {"return", return_lease},  {"idle", idle},
                  {"busy", busy},          {"hello", hello},          {"adopt", bk_ask_adopt},
                  {"list", list},          {"watch", watch},          {"subscribe", subscribe},
                  {"parked", parked},      {"resume", bk_ask_resume}, {"extend", extend},
                  {"profiles", profiles},  {"metrics", metrics}};

static json_t *answer_of(bk_broker *broker, bk_client *client, const json_t *request)
{
    const char *name = json_string_value(json_object_get(request, "op"));
    if (!name) return bk_refuse(broker, "bad", "\"op\" must be the name of an operation.");
    for (size_t i = 0; i < DRUPE_COUNT_OF(operations); i++) {
        if (strcmp(operations[i].name, name) == 0) return operations[i].run(broker, client, request);
    }
    return bk_refuse(broker, "unknown", "There is no operation \"%.64s\".", name);
}

static bool tag_good(const json_t *tag)
{
    return !tag || json_is_integer(tag) || (json_is_string(tag) && json_string_length(tag) <= BK_NAME_MOST);
}

void bk_request(bk_broker *broker, bk_client *client, const char *bytes, size_t size)
{
    json_error_t error;
    broker->counts.requests++;
    if (size > BK_PACKET_MOST) {
        bk_client_send(broker, client,
                       bk_refuse(broker, "bad", "A request has %d bytes at most.", BK_PACKET_MOST));
        return;
    }
    json_t *request = json_loadb(bytes, size, 0, &error), *tag = json_object_get(request, "tag");
    json_t *answer;
    if (!json_is_object(request)) {
        answer = bk_refuse(broker, "bad", "A request is one packet with one JSON object: %.120s.",
                           request ? "this is another value" : error.text);
    } else if (!tag_good(tag)) {
        answer = bk_refuse(broker, "bad", "\"tag\" must be an integer or a text of %d bytes at most.",
                           BK_NAME_MOST);
        tag = NULL;
    } else {
        answer = answer_of(broker, client, request);
    }
    if (tag) json_object_set(answer, "tag", tag);
    bk_client_send(broker, client, answer);
    json_decref(request);
}
