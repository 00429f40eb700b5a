/* The bytes of a connection: read in one piece and in many they give the same, and no more than was sent. The
 * first byte is the size of the pieces; a second one that is odd puts a good greeting first. */
#include "fuzz.h"

#include "jkernel/wire/zmtp.h"

#include <string.h>

#define FRAME_MOST 4096

/* A sum of all that reading gives. */
static uint64_t read_all(const jk_buffer *bytes, size_t step)
{
    jk_zmtp reader = {.frame_most = FRAME_MOST};
    uint64_t sum = 0;
    bool broken = false;
    for (size_t at = 0; at < bytes->size && !broken; at += step) {
        jk_bytes rest = {bytes->data + at, bytes->size - at < step ? bytes->size - at : step}, body = {0};
        for (;;) {
            jk_zmtp_event event = jk_zmtp_read(&reader, &rest, &body);
            if (event == JK_ZMTP_WANTS) break;
            broken = event == JK_ZMTP_BROKEN;
            sum = sum * 31 + (uint64_t)event;
            if (broken) break;
            FUZZ_CHECK(strlen(reader.kind) < sizeof reader.kind && reader.kind[0]);
            if (event == JK_ZMTP_READY) continue;
            FUZZ_CHECK(body.size <= FRAME_MOST);
            for (size_t i = 0; i < body.size; i++) sum = sum * 31 + ((const unsigned char *)body.data)[i];
            sum = sum * 31 + reader.more;
        }
        FUZZ_CHECK(broken || rest.size == 0);
    }
    FUZZ_CHECK(reader.frame.size <= FRAME_MOST);
    jk_zmtp_clear(&reader);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    jk_buffer bytes = {0};
    if (data[1] & 1) jk_zmtp_greet(&bytes, "SUB");
    jk_buffer_append(&bytes, data + 2, size - 2);
    FUZZ_CHECK(!bytes.failed);
    FUZZ_CHECK(read_all(&bytes, (size_t)data[0] + 1) == read_all(&bytes, bytes.size + 1));
    jk_buffer_clear(&bytes);
    return 0;
}
