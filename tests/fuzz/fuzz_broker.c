/* Requests of hostile clients, in any order and amid time that passes, connections that close and holders
 * that end. After each the sums hold and nothing is leased twice; what is sent is one JSON object each.
 *
 * Pieces are cut by 0xff. The first byte of a piece says who sends it, or what happens instead. */
#include "broker/broker_state.h"
#include "fuzz.h"

#include <string.h>
#include <unistd.h>

#define CLIENTS 4

static const char machine[] =
    "{\"devices\":[{\"id\":\"c\",\"kind\":\"cpu\",\"parts\":4,\"memory\":4096,\"env\":{\"A\":\"0\"},"
    "\"part_env\":[{\"A\":\"0\"},{\"A\":\"1\"},{\"A\":\"2\"},{\"A\":\"3\"}]},"
    "{\"id\":\"g\",\"kind\":\"gpu\",\"memory\":1000},{\"id\":\"h\",\"kind\":\"gpu\",\"memory\":1000}],"
    "\"profiles\":{\"p\":{\"kind\":\"gpu\",\"seconds\":60,\"idle\":10},\"q\":{\"kind\":\"cpu\",\"parts\":2}},"
    "\"quotas\":{\"user\":{\"*\":{\"devices\":2.5,\"seconds\":100},\"60002\":{\"devices\":1}}},"
    "\"patience\":30,\"warning\":20,\"limits\":{\"leases\":8,\"tickets\":4,\"subscriptions\":4}}";

/* The ids of a run are random; those of an input are not. */
static void ids_known(bk_broker *broker)
{
    snprintf(broker->tag, sizeof broker->tag, "i");
    broker->now = 1e9;
}

static bk_client *client_new(bk_broker *broker, unsigned index)
{
    static const uid_t uids[CLIENTS] = {60001, 60002, 60001, 0};
    return bk_client_new(broker, -1, getpid(), uids[index]);
}

/* Nobody reads: look at the packets and drop them. */
static void packets_check(bk_client *client)
{
    while (client->first) {
        bk_packet *packet = client->first;
        FUZZ_CHECK(packet->size <= BK_ANSWER_MOST);
        json_t *object = json_loadb(packet->bytes, packet->size, 0, NULL);
        FUZZ_CHECK(json_is_object(object));
        json_decref(object);
        client->first = packet->next;
        client->waiting -= packet->size;
        free(packet);
    }
    client->last = &client->first;
    FUZZ_CHECK(client->waiting == 0);
}

static void piece_run(bk_broker *broker, bk_client **clients, const char *bytes, size_t size)
{
    unsigned char what = size ? (unsigned char)bytes[0] : 0;
    unsigned who = what % CLIENTS;
    if (what == 'x' && broker->first_lease) {
        bk_holder *holder = broker->first_lease->holder;
        holder->source.ready(broker, &holder->source, 1);
        for (unsigned i = 0; i < CLIENTS; i++) { /* its connections are closed, too */
            bk_client_close(broker, clients[i]);
            clients[i] = client_new(broker, i);
        }
    } else if (what >= 'a' && what < 'a' + CLIENTS) {
        bk_client_close(broker, clients[what - 'a']);
        clients[what - 'a'] = client_new(broker, what - 'a');
    } else if (what == 't') {
        broker->now += size > 1 ? (unsigned char)bytes[1] : 1;
    } else if (size > 1) {
        bk_request(broker, clients[who], bytes + 1, size - 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bk_broker broker = {0};
    bk_config config;
    bk_client *clients[CLIENTS];
    drupe_text problems = {0};
    FUZZ_CHECK(bk_config_parse(machine, sizeof machine - 1, &config, &problems));
    FUZZ_CHECK(bk_broker_open(&broker, &config) == DRUPE_OK);
    ids_known(&broker);
    for (unsigned i = 0; i < CLIENTS; i++) FUZZ_CHECK((clients[i] = client_new(&broker, i)));
    const char *at = (const char *)data, *end = at + size;
    while (at < end) {
        const char *cut = memchr(at, FUZZ_CUT, (size_t)(end - at)), *stop = cut ? cut : end;
        piece_run(&broker, clients, at, (size_t)(stop - at));
        for (unsigned i = 0; i < CLIENTS; i++) packets_check(clients[i]);
        bk_turn_end(&broker);
        for (unsigned i = 0; i < CLIENTS; i++) packets_check(clients[i]);
        const char *broken = bk_broken(&broker);
        if (broken) fprintf(stderr, "%s\n", broken);
        FUZZ_CHECK(!broken);
        at = cut ? cut + 1 : end;
    }
    bk_broker_close(&broker);
    return 0;
}
