/* Two lanes of multiply and rotate over words. Each step is a bijection of the lane for a given word, hence
 * the promise about single words. */
#include "base/file.h"
#include <string.h>

static uint64_t rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static void hash_word(drupe_hash *hash, uint64_t word)
{
    hash->a = rotate((hash->a ^ word) * UINT64_C(0x9e3779b97f4a7c15), 29);
    hash->b = rotate((hash->b + word) * UINT64_C(0xd6e8feb86659fd93), 37) ^ hash->a;
}

void drupe_hash_add(drupe_hash *hash, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint64_t word;
    for (size_t left = size; left >= sizeof word; left -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        hash_word(hash, word);
    }
    word = 0;
    if (size % sizeof word) memcpy(&word, at, size % sizeof word);
    hash_word(hash, word);
    hash_word(hash, size);
    /* Short inputs would leave their last words in a few bits. */
    for (int i = 0; i < 3; i++) hash_word(hash, UINT64_C(0xa0761d6478bd642f));
}
