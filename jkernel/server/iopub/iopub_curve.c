/* libzmq counts messages, not bytes, and a full XPUB cannot be waited for (it always polls writable). So its
 * own limit is off, and the bytes it holds are counted here: content is handed over without a copy, and the
 * release callback tells when the last subscriber has it. */
#include "base/base.h"
#include "jkernel/server/iopub/iopub_room.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STALL_LOOK 500 /* ms */

typedef struct cargo {
    jk_server *server;
    size_t size;
} cargo;

/* On a thread of the transport. */
static void cargo_landed(void *data, void *hint)
{
    cargo *landed = hint;
    jk_server *server = landed->server;
    jk_unread_landed(server, landed->size);
    jk_memory_release(data);
    jk_memory_release(landed);
    jk_unread_tell(server);
}

/* A new subscriber is to be welcomed before it gets anything else, so the look at the subscriptions is the
 * last thing before the send: signing a large message takes long enough for one to arrive. One that libzmq
 * takes during the send itself gets that message first, and its welcome before any other. (ZMQ_XPUB_MANUAL
 * would leave no gap, but up to libzmq 4.3.4 a subscriber that has gone by then is used after it is freed.)
 */
static int parcel_publish(jk_server *server, const jk_envelope *envelope)
{
    jk_parcel parcel;
    if (jk_parcel_pack(&parcel, envelope, server->signer) != 0) return -1;
    jk_xpub_receive(server);
    return jk_parcel_send(&parcel, server->ports->sockets[JK_IOPUB]);
}

int jk_xpub_send(jk_server *server, jk_envelope *envelope, jk_buffer *content)
{
    cargo *handed = content->size < JK_COPIED_BELOW ? NULL : jk_memory_take(sizeof *handed);
    if (handed) {
        *handed = (cargo){server, content->size};
        jk_unread_add(server, content->size);
        envelope->content_free = cargo_landed;
        envelope->hint = handed;
        memset(content, 0, sizeof *content);
    }
    return parcel_publish(server, envelope);
}

/* Without any progress for the writers' patience text gives way, so that one dead subscriber does not silence
 * the others. */
int jk_xpub_stall(jk_server *server, jk_entry *head)
{
    jk_output *output = server->output;
    jk_stall *stall = &server->iopub->stall;
    const jk_unread *unread = &output->unread;
    if (atomic_load(&unread->bytes) <= JK_IN_FLIGHT_LIMIT) {
        stall->since = 0;
        return 0;
    }
    jk_unread_watch(server);
    if (atomic_load(&unread->bytes) <= JK_IN_FLIGHT_LIMIT) return 0;
    int64_t now = jk_clock();
    unsigned landed = atomic_load(&unread->progress);
    if (stall->since == 0 || landed != stall->progress) {
        stall->since = now;
        stall->progress = landed;
    }
    int64_t rest = stall->since + JK_WRITER_WAIT - now;
    if (rest > STALL_LOOK * JK_MILLISECOND) return STALL_LOOK;
    if (rest > 0) return (int)(rest / JK_MILLISECOND) + 1;
    /* The others still see what is small, as they see statuses. */
    if (head->content.size >= JK_COPIED_BELOW) jk_entry_give_way(&output->outbox, head);
    return 0;
}

/* --- Subscribers -------------------------------------------------------------------------------------------
 */

void jk_xpub_receive(jk_server *server)
{
    void *socket = server->ports->sockets[JK_IOPUB];
    jk_frames frames;
    int result;
    bool welcomed = false, present = false; /* who comes before `starting` is said hears that */
    while ((result = jk_frames_receive(socket, &frames)) != 0) {
        if (result < 0 && zmq_errno() != EPROTO) break;
        if (result > 0 && frames.count == 1 && zmq_msg_size(&frames.items[0]) > 0) {
            const char *data = zmq_msg_data(&frames.items[0]);
            size_t size = zmq_msg_size(&frames.items[0]) - 1;
            if (data[0] == 1 && drupe_utf8_valid(data + 1, size)) {
                welcomed = true;
                present |= atomic_load(&server->output->cells.started);
                jk_iopub_welcome(server, 0, (jk_bytes){data + 1, size});
            }
        }
        jk_frames_clear(&frames);
    }
    if (welcomed) jk_status_again(server, present, 0, false);
}
