/* Signatures: what was signed is accepted, anything else is refused, nothing is accepted twice.
 * Pieces: scheme, key, a signature, then up to four parts. */
#include "fuzz.h"

#include <string.h>

static void replay_check(jk_bytes signature)
{
    static jk_replay *replay; /* kept: a new one clears megabytes */
    static unsigned uses;
    if (!replay || ++uses % 1000 == 0) {
        jk_replay_release(replay);
        replay = jk_replay_create();
        FUZZ_CHECK(replay);
    }
    jk_replay_record(replay, signature);
    if (signature.size >= 32) FUZZ_CHECK(!jk_replay_record(replay, signature));
}

static void signer_check(const jk_signer *signer, jk_bytes given, const jk_bytes parts[JK_SIGNED_PARTS])
{
    char hex[JK_SIGNATURE_SIZE];
    int size = jk_signer_sign(signer, parts, hex);
    FUZZ_CHECK(size >= 0 && size < JK_SIGNATURE_SIZE && hex[size] == '\0');
    FUZZ_CHECK(strspn(hex, "0123456789abcdef") == (size_t)size);
    FUZZ_CHECK(jk_signer_verify(signer, (jk_bytes){hex, (size_t)size}, parts));
    bool same = size == 0 || (given.size == (size_t)size && memcmp(given.data, hex, given.size) == 0);
    FUZZ_CHECK(jk_signer_verify(signer, given, parts) == same);
    for (int i = 0; i < size; i += 7) {
        char wrong[JK_SIGNATURE_SIZE];
        memcpy(wrong, hex, sizeof wrong);
        wrong[i] ^= 1;
        FUZZ_CHECK(!jk_signer_verify(signer, (jk_bytes){wrong, (size_t)size}, parts));
    }
    if (size) FUZZ_CHECK(!jk_signer_verify(signer, (jk_bytes){hex, (size_t)size - 1}, parts));
    /* Only what was verified is ever remembered. */
    replay_check((jk_bytes){hex, (size_t)size});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    jk_bytes rest = {data, size}, scheme = fuzz_piece(&rest), key = fuzz_piece(&rest);
    jk_bytes given = fuzz_piece(&rest), parts[JK_SIGNED_PARTS];
    for (int i = 0; i < JK_SIGNED_PARTS; i++) parts[i] = fuzz_piece(&rest);
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(scheme.size < 63 ? scheme.size : 63),
             scheme.size ? (const char *)scheme.data : "");
    jk_signer *signer = NULL;
    int made = jk_signer_create(name, key.data, key.size, &signer);
    FUZZ_CHECK((made == 0) == (signer != NULL));
    if (signer) signer_check(signer, given, parts);
    jk_signer_release(signer);
    return 0;
}
