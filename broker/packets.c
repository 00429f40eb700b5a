/* What the broker says: lines for the administrator, refusals, packets for clients. A packet is only queued
 * here; client.c sends it at the end of the turn. */
#include "broker/broker_state.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void bk_say(const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    for (char *at = line; *at; at++) {
        if (*at == '\n') *at = ' ';
    }
    fprintf(stderr, "drupe-broker: %s\n", line);
}

void bk_set(json_t *object, const char *name, json_t *value)
{
    json_object_set_new(object, name, value); /* takes the value also when it fails */
}

json_t *bk_refuse(bk_broker *broker, const char *code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(broker->sentence, sizeof broker->sentence, format, arguments);
    va_end(arguments);
    broker->counts.refused++;
    /* Names may have been cut amid a character. */
    if (!drupe_utf8_valid(broker->sentence, strlen(broker->sentence))) {
        snprintf(broker->sentence, sizeof broker->sentence, "The request was refused.");
    }
    return json_pack("{sbssss}", "ok", 0, "code", code, "error", broker->sentence);
}

void bk_client_flush_later(bk_broker *broker, bk_client *client)
{
    if (client->queued) return;
    client->queued = true;
    client->fnext = broker->flush;
    broker->flush = client;
}

/* What is too large to be read is told to be so. */
static json_t *too_large(bk_broker *broker, json_t *object)
{
    json_t *answer = bk_refuse(
        broker, "limit", "The answer would have more than %d bytes: ask for less of it.", BK_ANSWER_MOST);
    json_t *tag = json_object_get(object, "tag");
    if (tag) json_object_set(answer, "tag", tag);
    json_decref(object);
    return answer;
}

static void packet_send(bk_broker *broker, bk_client *client, json_t *object, bool news)
{
    if (client->closed) {
        json_decref(object);
        return;
    }
    char room[4096]; /* most packets fit: to ask for the size first would write them twice */
    size_t size = json_dumpb(object, room, sizeof room, JSON_COMPACT);
    if (size > BK_ANSWER_MOST) {
        object = too_large(broker, object);
        size = json_dumpb(object, room, sizeof room, JSON_COMPACT);
    }
    bk_packet *packet = NULL;
    if (size && client->waiting + size <= BK_OUTBOX_MOST) packet = malloc(sizeof *packet + size);
    if (packet) packet->size = size;
    if (packet && size <= sizeof room)
        memcpy(packet->bytes, room, size);
    else if (packet)
        packet->size = json_dumpb(object, packet->bytes, size, JSON_COMPACT);
    json_decref(object);
    bk_client_flush_later(broker, client);
    if (!packet || packet->size != size) {
        free(packet);
        /* It is closed when it is flushed: whoever sends may be walking over the clients. */
        client->overflown = true;
        return;
    }
    packet->next = NULL;
    packet->news = news;
    *client->last = packet;
    client->last = &packet->next;
    client->waiting += size;
}

void bk_client_send(bk_broker *broker, bk_client *client, json_t *object)
{
    packet_send(broker, client, object, false);
}

void bk_client_news(bk_broker *broker, bk_client *client)
{
    const bk_packet *packet = client->first;
    while (packet && !packet->news) packet = packet->next;
    if (!packet) packet_send(broker, client, json_pack("{ss}", "event", "changed"), true);
}
