/* Multipart messages in and out. A message is prepared whole before its first frame is sent: a failure in the
 * middle would glue the next message onto it. */
#include "jkernel/wire/wire.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int frame_receive(void *socket, zmq_msg_t *frame)
{
    int result;
    zmq_msg_init(frame);
    do result = zmq_msg_recv(frame, socket, ZMQ_DONTWAIT);
    while (result < 0 && errno == EINTR);
    return result < 0 ? -1 : 0;
}

int jk_frames_add(jk_frames *frames, zmq_msg_t *frame)
{
    if (frames->count == JK_FRAMES_MOST) {
        errno = EPROTO;
        return -1;
    }
    if (frames->count == frames->capacity) {
        size_t capacity = frames->capacity ? 2 * frames->capacity : 8;
        zmq_msg_t *items = calloc(capacity, sizeof *items);
        if (!items) return -1;
        for (size_t i = 0; i < frames->count; i++) {
            zmq_msg_init(&items[i]);
            zmq_msg_move(&items[i], &frames->items[i]);
        }
        free(frames->items);
        frames->items = items;
        frames->capacity = capacity;
    }
    zmq_msg_init(&frames->items[frames->count]);
    zmq_msg_move(&frames->items[frames->count++], frame);
    return 0;
}

int jk_frames_receive(void *socket, jk_frames *frames)
{
    int failure = 0;
    bool first = true, more = true;
    memset(frames, 0, sizeof *frames);
    while (more) {
        zmq_msg_t frame;
        if (frame_receive(socket, &frame) != 0) {
            failure = errno;
            zmq_msg_close(&frame);
            jk_frames_clear(frames);
            errno = failure;
            return first && failure == EAGAIN ? 0 : -1;
        }
        first = false;
        more = zmq_msg_more(&frame);
        if (!failure && jk_frames_add(frames, &frame) != 0) failure = errno;
        zmq_msg_close(&frame);
    }
    if (failure) {
        jk_frames_clear(frames);
        errno = failure;
        return -1;
    }
    return 1;
}

void jk_frames_clear(jk_frames *frames)
{
    for (size_t i = 0; i < frames->count; i++) zmq_msg_close(&frames->items[i]);
    free(frames->items);
    memset(frames, 0, sizeof *frames);
}

/* --- Sending ----------------------------------------------------------------------------------------------
 */

static int frame_copy(zmq_msg_t *frame, jk_bytes slice)
{
    if (zmq_msg_init_size(frame, slice.size) != 0) return -1;
    if (slice.size) memcpy(zmq_msg_data(frame), slice.data, slice.size);
    return 0;
}

static jk_bytes object_or_empty(jk_bytes slice)
{
    return slice.size ? slice : (jk_bytes){"{}", 2};
}

int jk_envelope_sign(const jk_envelope *envelope, const jk_signer *signer, jk_bytes parts[JK_SIGNED_PARTS],
                     char *signature)
{
    parts[0] = envelope->header;
    parts[1] = object_or_empty(envelope->parent);
    parts[2] = object_or_empty(envelope->metadata);
    parts[3] = object_or_empty(envelope->content);
    return jk_signer_sign(signer, parts, signature);
}

static int content_frame(zmq_msg_t *frame, const jk_envelope *envelope, jk_bytes content)
{
    if (!envelope->content_free) return frame_copy(frame, content);
    void *data = (void *)(uintptr_t)envelope->content.data;
    if (zmq_msg_init_data(frame, data, envelope->content.size, envelope->content_free, envelope->hint) == 0) {
        return 0;
    }
    return -1;
}

static int frame_add(jk_parcel *parcel, jk_bytes slice)
{
    if (frame_copy(&parcel->frames[parcel->count], slice) != 0) return -1;
    parcel->count++;
    return 0;
}

/* `*taken` tells that the content has a frame, which will release it. */
static int parcel_fill(jk_parcel *parcel, const jk_envelope *envelope, const jk_signer *signer, bool *taken)
{
    jk_bytes parts[JK_SIGNED_PARTS];
    char signature[JK_SIGNATURE_SIZE];
    int signed_size = jk_envelope_sign(envelope, signer, parts, signature);
    if (signed_size < 0) return -1;
    size_t prefix = envelope->to ? envelope->to->identities : 1;
    for (size_t i = 0; i < prefix; i++) {
        if (frame_add(parcel, envelope->to ? jk_message_identity(envelope->to, i) : envelope->topic) != 0)
            return -1;
    }
    jk_bytes fixed[] = {{"<IDS|MSG>", 9}, {signature, (size_t)signed_size}, parts[0], parts[1], parts[2]};
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        if (frame_add(parcel, fixed[i]) != 0) return -1;
    }
    if (content_frame(&parcel->frames[parcel->count], envelope, parts[3]) != 0) return -1;
    parcel->count++;
    *taken = true;
    for (size_t i = 0; i < envelope->nbuffers; i++) {
        if (frame_add(parcel, envelope->buffers[i]) != 0) return -1;
    }
    return 0;
}

static void parcel_clear(jk_parcel *parcel)
{
    for (size_t i = 0; i < parcel->count; i++) zmq_msg_close(&parcel->frames[i]);
    free(parcel->frames);
    parcel->frames = NULL;
    parcel->count = 0;
}

int jk_parcel_pack(jk_parcel *parcel, const jk_envelope *envelope, const jk_signer *signer)
{
    size_t count = (envelope->to ? envelope->to->identities : 1) + 6 + envelope->nbuffers;
    bool taken = false;
    parcel->count = 0;
    parcel->frames = calloc(count, sizeof *parcel->frames);
    if (parcel->frames && parcel_fill(parcel, envelope, signer, &taken) == 0) return 0;
    if (!taken && envelope->content_free) {
        envelope->content_free((void *)(uintptr_t)envelope->content.data, envelope->hint);
    }
    parcel_clear(parcel);
    errno = ENOMEM;
    return -1;
}

int jk_parcel_send(jk_parcel *parcel, void *socket)
{
    int reason = 0;
    for (size_t i = 0; i < parcel->count && !reason; i++) {
        int flags = ZMQ_DONTWAIT | (i + 1 < parcel->count ? ZMQ_SNDMORE : 0), result;
        do result = zmq_msg_send(&parcel->frames[i], socket, flags);
        while (result < 0 && errno == EINTR);
        if (result < 0) reason = errno;
    }
    parcel_clear(parcel);
    errno = reason;
    return reason && reason != EHOSTUNREACH ? -1 : 0;
}

int jk_envelope_send(const jk_envelope *envelope, void *socket, const jk_signer *signer)
{
    jk_parcel parcel;
    if (jk_parcel_pack(&parcel, envelope, signer) != 0) return -1;
    return jk_parcel_send(&parcel, socket);
}
