/* Signatures and replay.
 *
 * The keyed context is made once and duplicated for every message: starting a context anew with its old key
 * is broken in the first releases of OpenSSL 3.0, and a duplicate lets threads share the signer. */
#include "jkernel/wire/wire.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <pthread.h>
#include <search.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct jk_signer {
    EVP_MAC_CTX *keyed; /* NULL: messages are not signed */
};

static EVP_MAC_CTX *keyed_create(const char *digest, const void *key, size_t key_size)
{
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    if (!mac) return NULL;
    EVP_MAC_CTX *context = EVP_MAC_CTX_new(mac);
    EVP_MAC_free(mac);
    if (!context) return NULL;
    /* OSSL_PARAM takes a non-const pointer but only reads through it. */
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)(uintptr_t)digest, 0),
        OSSL_PARAM_construct_end(),
    };
    if (!EVP_MAC_init(context, key, key_size, parameters) ||
        EVP_MAC_CTX_get_mac_size(context) * 2 >= JK_SIGNATURE_SIZE) {
        EVP_MAC_CTX_free(context);
        return NULL;
    }
    return context;
}

int jk_signer_create(const char *scheme, const void *key, size_t key_size, jk_signer **signer)
{
    *signer = NULL;
    if (strncmp(scheme, "hmac-", 5) != 0) return -1;
    jk_signer *made = calloc(1, sizeof *made);
    if (!made) return -1;
    if (key_size > 0) {
        made->keyed = keyed_create(scheme + 5, key, key_size);
        if (!made->keyed) {
            free(made);
            return -1;
        }
    }
    *signer = made;
    return 0;
}

void jk_signer_release(jk_signer *signer)
{
    if (!signer) return;
    EVP_MAC_CTX_free(signer->keyed);
    free(signer);
}

int jk_signer_sign(const jk_signer *signer, const jk_bytes parts[JK_SIGNED_PARTS], char *hex)
{
    static const char digits[] = "0123456789abcdef";
    hex[0] = '\0';
    if (!signer->keyed) return 0;

    unsigned char raw[JK_SIGNATURE_SIZE / 2];
    size_t size = 0;
    EVP_MAC_CTX *context = EVP_MAC_CTX_dup(signer->keyed);
    bool good = context != NULL;
    for (int i = 0; good && i < JK_SIGNED_PARTS; i++) {
        good = EVP_MAC_update(context, parts[i].data, parts[i].size) == 1;
    }
    good = good && EVP_MAC_final(context, raw, &size, sizeof raw) == 1;
    EVP_MAC_CTX_free(context);
    if (!good) return -1;

    for (size_t i = 0; i < size; i++) {
        hex[2 * i] = digits[raw[i] >> 4];
        hex[2 * i + 1] = digits[raw[i] & 15];
    }
    hex[2 * size] = '\0';
    return (int)(2 * size);
}

bool jk_signer_verify(const jk_signer *signer, jk_bytes signature, const jk_bytes parts[JK_SIGNED_PARTS])
{
    if (!signer->keyed) return true;
    if (signature.size != EVP_MAC_CTX_get_mac_size(signer->keyed) * 2) return false;
    char expected[JK_SIGNATURE_SIZE];
    int size = jk_signer_sign(signer, parts, expected);
    return size >= 0 && (size_t)size == signature.size &&
           CRYPTO_memcmp(expected, signature.data, signature.size) == 0;
}

/* --- Replay: a ring of digests, and a tree that finds them ------------------------------------------------
 */

#define STORE 65536u
#define KEPT  32u /* hexadecimal digits: 128 bits tell signatures apart */

struct jk_replay {
    pthread_mutex_t lock;
    size_t count; /* ever */
    void *tree;   /* of tsearch() */
    char digests[STORE][KEPT];
};

jk_replay *jk_replay_create(void)
{
    jk_replay *replay = calloc(1, sizeof *replay);
    if (replay) replay->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    return replay;
}

/* What the tree points to lies in the ring. */
static void node_free(void *digest)
{
    (void)digest;
}

void jk_replay_release(jk_replay *replay)
{
    if (!replay) return;
    tdestroy(replay->tree, node_free);
    pthread_mutex_destroy(&replay->lock);
    free(replay);
}

static int digest_compare(const void *one, const void *other)
{
    return memcmp(one, other, KEPT);
}

bool jk_replay_record(jk_replay *replay, jk_bytes signature)
{
    if (signature.size < KEPT) return true;
    pthread_mutex_lock(&replay->lock);
    bool fresh = !tfind(signature.data, &replay->tree, digest_compare);
    if (fresh) {
        char *digest = replay->digests[replay->count % STORE];
        if (replay->count++ >= STORE) tdelete(digest, &replay->tree, digest_compare);
        memcpy(digest, signature.data, KEPT);
        if (!tsearch(digest, &replay->tree, digest_compare))
            fresh = false; /* no memory: better none than twice */
    }
    pthread_mutex_unlock(&replay->lock);
    return fresh;
}
