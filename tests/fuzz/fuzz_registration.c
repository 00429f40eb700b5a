/* The handshake with a launcher: what is sent is one signed JSON object, and only what the launcher signed is
 * taken for its answer. Pieces: kernel_id, the kernel's key, then the frames of an answer. */
#include "fuzz.h"

#include <string.h>

static jk_bytes frame(const jk_frames *frames, size_t index)
{
    return (jk_bytes){zmq_msg_data(&frames->items[index]), zmq_msg_size(&frames->items[index])};
}

/* Send, and look at it with the launcher's eyes. */
static void request_check(const jk_config *config, const jk_signer *signer)
{
    void *in, *out;
    jk_frames frames;
    fuzz_pair(&in, &out);
    FUZZ_CHECK(jk_registration_send(config, signer, out) == 0);
    FUZZ_CHECK(jk_frames_receive(in, &frames) == 1 && frames.count == 3);
    fuzz_check_object(frame(&frames, 2));
    jk_bytes parts[JK_SIGNED_PARTS] = {frame(&frames, 2)};
    FUZZ_CHECK(jk_signer_verify(signer, frame(&frames, 1), parts));
    /* An echo is signed, too. */
    FUZZ_CHECK(jk_registration_acknowledged(&frames, signer));
    jk_frames_clear(&frames);
}

static void answer_check(jk_bytes rest, bool keyed, const jk_signer *signer)
{
    jk_frames frames = {0};
    jk_bytes last[3] = {{0}};
    do {
        memmove(last, last + 1, 2 * sizeof *last);
        last[2] = fuzz_piece(&rest);
        fuzz_frame_add(&frames, last[2]);
    } while (rest.size && frames.count < 2 * JK_FRAMES_MOST);
    char hex[JK_SIGNATURE_SIZE];
    jk_bytes parts[JK_SIGNED_PARTS] = {last[2]};
    int size = jk_signer_sign(signer, parts, hex);
    bool expected =
        frames.count >= 3 && last[0].size == 9 && memcmp(last[0].data, "<IDS|MSG>", 9) == 0 &&
        (!keyed || (last[1].size == (size_t)size && memcmp(last[1].data, hex, last[1].size) == 0));
    FUZZ_CHECK(jk_registration_acknowledged(&frames, signer) == expected);
    jk_frames_clear(&frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    jk_bytes rest = {data, size}, id = fuzz_piece(&rest), key = fuzz_piece(&rest);
    char text[201];
    snprintf(text, sizeof text, "%.*s", (int)(id.size < 200 ? id.size : 200),
             id.size ? (const char *)id.data : "");
    jk_config config = {.kernel_id = text, .ports = {1, 65535, 3, 4, 5}};
    jk_signer *signer = NULL;
    FUZZ_CHECK(jk_signer_create("hmac-sha256", key.data, key.size, &signer) == 0);
    request_check(&config, signer);
    answer_check(rest, key.size > 0, signer);
    jk_signer_release(signer);
    return 0;
}
