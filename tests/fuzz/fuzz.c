/* Cutting inputs into pieces, frames, a pair of sockets. */
#include "fuzz.h"
#include "base/base.h"

#include <jansson.h>
#include <string.h>

jk_bytes fuzz_piece(jk_bytes *rest)
{
    jk_bytes piece = *rest;
    const char *cut = rest->size ? memchr(rest->data, FUZZ_CUT, rest->size) : NULL;
    if (!cut) {
        rest->size = 0;
        return piece;
    }
    piece.size = (size_t)(cut - (const char *)piece.data);
    *rest = (jk_bytes){cut + 1, rest->size - piece.size - 1};
    return piece;
}

void fuzz_frame_add(jk_frames *frames, jk_bytes bytes)
{
    if (frames->count == frames->capacity) {
        size_t capacity = frames->capacity ? 2 * frames->capacity : 8;
        zmq_msg_t *items = calloc(capacity, sizeof *items);
        FUZZ_CHECK(items);
        for (size_t i = 0; i < frames->count; i++) {
            zmq_msg_init(&items[i]);
            zmq_msg_move(&items[i], &frames->items[i]);
        }
        free(frames->items);
        frames->items = items;
        frames->capacity = capacity;
    }
    FUZZ_CHECK(zmq_msg_init_size(&frames->items[frames->count], bytes.size) == 0);
    if (bytes.size) memcpy(zmq_msg_data(&frames->items[frames->count]), bytes.data, bytes.size);
    frames->count++;
}

void fuzz_pair(void **in, void **out)
{
    static void *context, *first, *second;
    int none = 0;
    if (!context) {
        context = zmq_ctx_new();
        first = zmq_socket(context, ZMQ_PAIR);
        second = zmq_socket(context, ZMQ_PAIR);
        FUZZ_CHECK(first && second);
        zmq_setsockopt(first, ZMQ_RCVHWM, &none, sizeof none);
        zmq_setsockopt(second, ZMQ_SNDHWM, &none, sizeof none);
        FUZZ_CHECK(zmq_bind(first, "inproc://fuzz") == 0 && zmq_connect(second, "inproc://fuzz") == 0);
    }
    *in = first;
    *out = second;
}

void fuzz_check_object(jk_bytes text)
{
    json_error_t error;
    json_t *object = json_loadb(text.data, text.size, 0, &error);
    FUZZ_CHECK(json_is_object(object));
    FUZZ_CHECK(drupe_utf8_valid(text.data, text.size));
    json_decref(object);
}
