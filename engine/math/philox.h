/* Philox4x64-10, a generator of random numbers whose n-th block can be computed by itself.
 *
 * Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011. The order in
 * which words are taken from blocks is that of NumPy's numpy.random.Philox: the counter is advanced before a
 * block is made, a block gives four words, and a word gives two numbers of 32 bits, the lower one first. */
#ifndef DRUPE_MATH_PHILOX_H
#define DRUPE_MATH_PHILOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The whole state, as 13 words: so an array can hold it. */
typedef struct drupe_philox {
    uint64_t key[2];
    uint64_t counter[4]; /* of the block that `block` holds; the first word is the lowest */
    uint64_t block[4];
    uint64_t taken;  /* words of the block that were given out, 0 to 4 */
    uint64_t has32;  /* 1: `word32` waits to be given out */
    uint64_t word32; /* below 2^32 */
} drupe_philox;

/* The block of a counter. */
void drupe_philox_block(const uint64_t key[2], const uint64_t counter[4], uint64_t block[4]);
/* counter += n, through all four words. */
void drupe_philox_advance(uint64_t counter[4], uint64_t n);
/* The four words of the `count` blocks behind `counter`, which stays. */
void drupe_philox_blocks(const uint64_t key[2], const uint64_t counter[4], size_t count, uint64_t *words);

uint64_t drupe_philox_next_block(drupe_philox *state); /* makes the next block and gives its first word */

static inline uint64_t drupe_philox_next64(drupe_philox *state)
{
    return state->taken < 4 ? state->block[state->taken++] : drupe_philox_next_block(state);
}

static inline uint32_t drupe_philox_next32(drupe_philox *state)
{
    if (state->has32) {
        state->has32 = 0;
        return (uint32_t)state->word32;
    }
    const uint64_t word = drupe_philox_next64(state);
    state->has32 = 1;
    state->word32 = word >> 32;
    return (uint32_t)word;
}

/* Between 0 and 1, without 1: 53 bits. */
static inline double drupe_philox_double(uint64_t word)
{
    return (double)(word >> 11) * (1.0 / 9007199254740992.0);
}

/* An integer of 0 ... range, by Lemire's method ("Fast random integer generation in an interval", 2019) in 32
 * bits where the range allows it. */
uint64_t drupe_philox_below(drupe_philox *state, uint64_t range);

/* The next n words of the state, computed by several threads: take(user, first, words, count) gets words
 * first ... first + count - 1, in no order, possibly at the same time. */
void drupe_philox_words(drupe_philox *state, size_t n,
                        void (*take)(void *user, size_t first, const uint64_t *words, size_t count),
                        void *user);

#endif
