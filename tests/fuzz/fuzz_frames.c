/* A multipart message as it comes from a socket: whatever its frames hold, it is refused with a reason or can
 * be read, answered and released. The first byte chooses the signer; the rest is cut into frames. */
#include "fuzz.h"

#include <string.h>

enum { SIGNED = 1, RESIGN = 2, TWICE = 4 };

static struct {
    void *in, *out;
    jk_signer *open, *keyed;
} the;

static void the_open(void)
{
    if (the.in) return;
    fuzz_pair(&the.in, &the.out);
    FUZZ_CHECK(jk_signer_create("hmac-sha256", NULL, 0, &the.open) == 0);
    FUZZ_CHECK(jk_signer_create("hmac-sha256", "key", 3, &the.keyed) == 0);
}

/* Put the right signature into the frame behind the delimiter, so that the fuzzer gets beyond it. */
static jk_bytes frame_resign(const jk_bytes *frames, size_t count, size_t at, char *hex)
{
    bool behind = at > 0 && frames[at - 1].size == 9 && memcmp(frames[at - 1].data, "<IDS|MSG>", 9) == 0;
    if (!behind || count - at <= JK_SIGNED_PARTS) return frames[at];
    int size = jk_signer_sign(the.keyed, &frames[at + 1], hex);
    FUZZ_CHECK(size == 64);
    return (jk_bytes){hex, 64};
}

static void frames_send(jk_bytes rest, unsigned flags)
{
    static jk_bytes frames[JK_FRAMES_MOST + 2];
    size_t count = 0;
    do frames[count++] = fuzz_piece(&rest);
    while (rest.size && count < sizeof frames / sizeof frames[0]);
    for (size_t i = 0; i < count; i++) {
        char hex[JK_SIGNATURE_SIZE];
        jk_bytes frame = flags & RESIGN ? frame_resign(frames, count, i, hex) : frames[i];
        int more = i + 1 < count ? ZMQ_SNDMORE : 0;
        FUZZ_CHECK(zmq_send(the.out, frame.data, frame.size, more | ZMQ_DONTWAIT) >= 0);
    }
}

static void message_use(const jk_message *message, const jk_signer *signer)
{
    FUZZ_CHECK(message->id && message->type);
    jk_bytes parts[] = {message->parts[JK_HEADER], message->parts[JK_PARENT_HEADER],
                        message->parts[JK_METADATA], message->parts[JK_CONTENT]};
    size_t total = 0;
    for (size_t i = 0; i < jk_message_buffer_count(message); i++) total += jk_message_buffer(message, i).size;
    for (int i = 0; i < 4; i++) FUZZ_CHECK(parts[i].size >= 2 && total + parts[i].size >= total);
    jk_message_flag(message, "restart");
    /* An answer goes back through the same identities. */
    jk_parcel parcel;
    jk_envelope envelope = {.to = message, .header = parts[0], .parent = parts[1]};
    FUZZ_CHECK(jk_parcel_pack(&parcel, &envelope, signer) == 0);
    FUZZ_CHECK(jk_parcel_send(&parcel, the.in) == 0);
    jk_frames answer;
    FUZZ_CHECK(jk_frames_receive(the.out, &answer) == 1);
    FUZZ_CHECK(answer.count == message->identities + 6);
    jk_frames_clear(&answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    the_open();
    unsigned flags = data[0];
    jk_replay *replay = flags & TWICE ? jk_replay_create() : NULL;
    const jk_signer *signer = flags & SIGNED ? the.keyed : the.open;
    for (int turn = 0; turn < (flags & TWICE ? 2 : 1); turn++) {
        jk_frames frames;
        frames_send((jk_bytes){data + 1, size - 1}, flags);
        int received = jk_frames_receive(the.in, &frames);
        FUZZ_CHECK(received == 1 || (received == -1 && zmq_errno() == EPROTO));
        if (received != 1) continue;
        const char *problem = NULL;
        jk_message *message = jk_message_parse(&frames, signer, replay, &problem);
        FUZZ_CHECK(frames.count == 0 && (message || problem));
        FUZZ_CHECK(!(message && turn && flags & SIGNED)); /* a replay */
        if (message) message_use(message, signer);
        jk_message_release(message);
    }
    jk_replay_release(replay);
    return 0;
}
