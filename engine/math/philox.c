/* Philox4x64-10, one block at a time and many on several threads. */
#include "math/philox.h"
#include "base/parallel.h"
#include <string.h>

__extension__ typedef unsigned __int128 wide_product;

void drupe_philox_block(const uint64_t key[2], const uint64_t counter[4], uint64_t block[4])
{
    uint64_t k0 = key[0], k1 = key[1], c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < 10; round++) {
        const wide_product a = (wide_product)UINT64_C(0xD2E7470EE14C6C93) * c0;
        const wide_product b = (wide_product)UINT64_C(0xCA5A826395121157) * c2;
        c0 = (uint64_t)(b >> 64) ^ c1 ^ k0;
        c1 = (uint64_t)b;
        c2 = (uint64_t)(a >> 64) ^ c3 ^ k1;
        c3 = (uint64_t)a;
        k0 += UINT64_C(0x9E3779B97F4A7C15);
        k1 += UINT64_C(0xBB67AE8584CAA73B);
    }
    block[0] = c0;
    block[1] = c1;
    block[2] = c2;
    block[3] = c3;
}

void drupe_philox_advance(uint64_t counter[4], uint64_t n)
{
    counter[0] += n;
    for (int i = 1; i < 4 && counter[i - 1] < n; i++) {
        counter[i]++;
        n = 1;
    }
}

void drupe_philox_blocks(const uint64_t key[2], const uint64_t counter[4], size_t count, uint64_t *words)
{
    uint64_t at[4];
    memcpy(at, counter, sizeof at);
    for (size_t i = 0; i < count; i++) {
        drupe_philox_advance(at, 1);
        drupe_philox_block(key, at, words + 4 * i);
    }
}

uint64_t drupe_philox_next_block(drupe_philox *state)
{
    drupe_philox_advance(state->counter, 1);
    drupe_philox_block(state->key, state->counter, state->block);
    state->taken = 1;
    return state->block[0];
}

/* --- Integers
 * ---------------------------------------------------------------------------------------------------- */

static uint32_t below32(drupe_philox *state, uint32_t range)
{
    const uint32_t count = range + 1;
    uint64_t product = (uint64_t)drupe_philox_next32(state) * count;
    if ((uint32_t)product < count) {
        const uint32_t least = (UINT32_MAX - range) % count;
        while ((uint32_t)product < least) product = (uint64_t)drupe_philox_next32(state) * count;
    }
    return (uint32_t)(product >> 32);
}

static uint64_t below64(drupe_philox *state, uint64_t range)
{
    const uint64_t count = range + 1;
    wide_product product = (wide_product)drupe_philox_next64(state) * count;
    if ((uint64_t)product < count) {
        const uint64_t least = (UINT64_MAX - range) % count;
        while ((uint64_t)product < least) product = (wide_product)drupe_philox_next64(state) * count;
    }
    return (uint64_t)(product >> 64);
}

uint64_t drupe_philox_below(drupe_philox *state, uint64_t range)
{
    if (range == 0) return 0;
    if (range < UINT32_MAX) return below32(state, (uint32_t)range);
    if (range == UINT32_MAX) return drupe_philox_next32(state);
    return range == UINT64_MAX ? drupe_philox_next64(state) : below64(state, range);
}

/* --- Many words
 * -------------------------------------------------------------------------------------------------- */

#define CHUNK 256 /* blocks that a thread makes before it hands them on: 8 KiB */

typedef struct word_job {
    const drupe_philox *state; /* as it was; its block is used up */
    size_t first;              /* the number of the first word to be made */
    size_t blocks, parts;
    void (*take)(void *user, size_t first, const uint64_t *words, size_t count);
    void *user;
} word_job;

static void words_part(size_t part, void *user)
{
    const word_job *job = user;
    const size_t end = drupe_parallel_begin(job->blocks, part + 1, job->parts);
    uint64_t words[4 * CHUNK], counter[4];
    for (size_t b = drupe_parallel_begin(job->blocks, part, job->parts); b < end;) {
        const size_t count = end - b < CHUNK ? end - b : CHUNK;
        memcpy(counter, job->state->counter, sizeof counter);
        drupe_philox_advance(counter, b);
        drupe_philox_blocks(job->state->key, counter, count, words);
        job->take(job->user, job->first + 4 * b, words, 4 * count);
        b += count;
    }
}

void drupe_philox_words(drupe_philox *state, size_t n,
                        void (*take)(void *user, size_t first, const uint64_t *words, size_t count),
                        void *user)
{
    const size_t left = 4 - state->taken, begin = n < left ? n : left;
    if (begin) take(user, 0, state->block + state->taken, begin);
    state->taken += begin;
    word_job job = {state, begin, (n - begin) / 4, 0, take, user};
    job.parts = drupe_parallel_parts(job.blocks, 4 * CHUNK);
    drupe_parallel(job.parts, words_part, &job);
    drupe_philox_advance(state->counter, job.blocks);
    const size_t done = begin + 4 * job.blocks;
    if (job.blocks) { /* the state holds the last block that was given out, as if word had followed word */
        drupe_philox_block(state->key, state->counter, state->block);
        state->taken = 4;
    }
    if (done == n) return;
    drupe_philox_next_block(state);
    take(user, done, state->block, n - done);
    state->taken = n - done;
}
