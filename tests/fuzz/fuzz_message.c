/* What is inside a message: header, parent, metadata, content of a signed one, and what is made of its texts.
 * Pieces: header, parent header, metadata, content. */
#include "base/base.h"
#include "fuzz.h"

#include "jkernel/server/server_room.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static jk_message *message_make(const jk_bytes parts[JK_SIGNED_PARTS])
{
    static jk_signer *signer;
    if (!signer) FUZZ_CHECK(jk_signer_create("hmac-sha256", "key", 3, &signer) == 0);
    char hex[JK_SIGNATURE_SIZE];
    jk_frames frames = {0};
    FUZZ_CHECK(jk_signer_sign(signer, parts, hex) == 64);
    fuzz_frame_add(&frames, (jk_bytes){"client", 6});
    fuzz_frame_add(&frames, (jk_bytes){"<IDS|MSG>", 9});
    fuzz_frame_add(&frames, (jk_bytes){hex, 64});
    for (int i = 0; i < JK_SIGNED_PARTS; i++) fuzz_frame_add(&frames, parts[i]);
    const char *problem = NULL;
    return jk_message_parse(&frames, signer, NULL, &problem);
}

/* A header of our own for a type that a client made up. */
static void header_check(const char *type)
{
    static jk_session session;
    if (!session.id[0]) FUZZ_CHECK(jk_session_open(&session) == 0);
    jk_buffer header = {0};
    jk_session_header(&session, type, (struct timespec){.tv_sec = 1}, &header);
    FUZZ_CHECK(!header.failed);
    fuzz_check_object((jk_bytes){header.data, header.size});
    jk_buffer_clear(&header);
}

/* Any bytes as a JSON text: valid, and unchanged when they are UTF-8. */
static void text_check(jk_bytes text)
{
    jk_buffer quoted = {0};
    jk_buffer_append_json(&quoted, text.data, text.size);
    FUZZ_CHECK(!quoted.failed && quoted.size >= 2);
    json_error_t error;
    json_t *value = json_loadb(quoted.data, quoted.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    FUZZ_CHECK(json_is_string(value));
    if (drupe_utf8_valid(text.data, text.size)) {
        FUZZ_CHECK(json_string_length(value) == text.size);
        FUZZ_CHECK(text.size == 0 || memcmp(json_string_value(value), text.data, text.size) == 0);
    }
    json_decref(value);
    jk_buffer_clear(&quoted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    jk_bytes rest = {data, size}, parts[JK_SIGNED_PARTS];
    for (int i = 0; i < JK_SIGNED_PARTS; i++) {
        parts[i] = fuzz_piece(&rest);
        text_check(parts[i]);
    }
    jk_message *message = message_make(parts);
    if (!message) return 0;
    char type[128], small[9];
    jk_reply_type(message->type, type, sizeof type);
    jk_reply_type(message->type, small, sizeof small);
    header_check(type);
    header_check(message->type);
    jk_message_flag(message, "restart");
    free(jk_message_parent_id(message));
    static jk_requests requests; /* only counts what its requests hold */
    static jk_server server = {.requests = &requests};
    jk_request *request = jk_request_create(&server, message, JK_SHELL, NULL);
    FUZZ_CHECK(request && jk_request_part(request, JK_CONTENT).size >= 2);
    FUZZ_CHECK(jk_parent_header(jk_request_parent(request)).size == parts[0].size);
    FUZZ_CHECK(atomic_load(&requests.held.bytes) > parts[0].size);
    jk_request_release(request);
    FUZZ_CHECK(atomic_load(&requests.held.bytes) == 0);
    return 0;
}
