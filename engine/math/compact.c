/* Masks.
 *
 * Eight elements of a mask are looked at as one word, because most masks have long stretches of one value.
 * Where they differ, elements are moved without a branch, which no processor would foresee, into a buffer
 * that has room for all of them. */
#include "math/compact.h"
#include "base/parallel.h"
#include <inttypes.h>
#include <string.h>

#define STRIP 64u /* elements of a mask between two copies out of the buffer */

typedef struct job {
    const uint8_t *mask;
    size_t n, row;
    const int64_t *counts;
    int64_t *counted;
    const char *from;
    char *to;
    int ndim; /* positions */
    const size_t *shape;
    void (*block)(const struct job *j, size_t begin, size_t end, size_t first, size_t room);
} job;

static void blocks_run(size_t i, void *user)
{
    const job *j = user;
    const size_t begin = i * DRUPE_MASK_BLOCK, rest = j->n - begin;
    const size_t end = begin + (rest < DRUPE_MASK_BLOCK ? rest : DRUPE_MASK_BLOCK);
    const int64_t first = j->counts[i], room = j->counts[i + 1] - first;
    if (room > 0) j->block(j, begin, end, (size_t)first, (size_t)room);
}

/* --- Counting ------------------------------------------------------------------------------------------- */

static uint64_t word_of(const uint8_t *mask)
{
    uint64_t word;
    memcpy(&word, mask, sizeof word);
    return word;
}

/* The true ones among `words` times eight elements, at most 255 times: the bytes of one sum count one each.
 */
static uint32_t count_words(const uint8_t *mask, size_t words)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), even = UINT64_C(0x00ff00ff00ff00ff);
    uint64_t sum = 0, all = 0;
    for (size_t i = 0; i < words; i++) {
        const uint64_t word = word_of(mask + 8 * i);
        all |= word;
        sum += word;
    }
    if (!(all & ~ones))
        return (uint32_t)(((sum & even) + (sum >> 8 & even)) * UINT64_C(0x0001000100010001) >> 48);
    uint32_t count = 0; /* some are true by other bytes than 1 */
    for (size_t i = 0; i < 8 * words; i++) count += mask[i] != 0;
    return count;
}

static void count_run(size_t i, void *user)
{
    const job *j = user;
    const size_t begin = i * DRUPE_MASK_BLOCK, rest = j->n - begin;
    const uint8_t *mask = j->mask + begin;
    const size_t size = rest < DRUPE_MASK_BLOCK ? rest : DRUPE_MASK_BLOCK;
    uint32_t count = 0;
    size_t k = 0;
    while (size - k >= 8) {
        const size_t words = (size - k) / 8 < 255 ? (size - k) / 8 : 255;
        count += count_words(mask + k, words);
        k += 8 * words;
    }
    for (; k < size; k++) count += mask[k] != 0;
    j->counted[i + 1] = (int64_t)count;
}

void drupe_mask_count(const uint8_t *mask, size_t n, int64_t *counts)
{
    job j = {.mask = mask, .n = n, .counted = counts};
    const size_t blocks = drupe_mask_blocks(n);
    counts[0] = 0;
    drupe_parallel(blocks, count_run, &j);
    for (size_t i = 0; i < blocks; i++) counts[i + 1] += counts[i];
}

/* --- Side by side --------------------------------------------------------------------------------------- */

typedef struct bytes16 {
    uint64_t halves[2];
} bytes16;

/* One block. A strip of the mask that is not all of one value goes through `buffer`. */
#define COMPACT(name, type)                                                                                  \
    static size_t strip_##name(const uint8_t *mask, const type *from, size_t count, type *buffer)            \
    {                                                                                                        \
        size_t k = 0, i = 0;                                                                                 \
        for (; i + 8 <= count; i += 8) {                                                                     \
            const uint64_t word = word_of(mask + i);                                                         \
            if (!word) continue;                                                                             \
            for (size_t e = i; e < i + 8; e++) {                                                             \
                buffer[k] = from[e];                                                                         \
                k += mask[e] != 0;                                                                           \
            }                                                                                                \
        }                                                                                                    \
        for (; i < count; i++) {                                                                             \
            buffer[k] = from[i];                                                                             \
            k += mask[i] != 0;                                                                               \
        }                                                                                                    \
        return k;                                                                                            \
    }                                                                                                        \
    static void compact_##name(const job *j, size_t begin, size_t end, size_t first, size_t room)            \
    {                                                                                                        \
        const type *from = (const type *)(const void *)j->from;                                              \
        type *to = (type *)(void *)j->to + first, buffer[STRIP + 1];                                         \
        for (size_t i = begin; i < end && room; i += STRIP) {                                                \
            const size_t count = end - i < STRIP ? end - i : STRIP;                                          \
            size_t k = strip_##name(j->mask + i, from + i, count, buffer);                                   \
            if (k > room) k = room;                                                                          \
            if (!k) continue;                                                                                \
            memcpy(to, buffer, k * sizeof(type));                                                            \
            to += k;                                                                                         \
            room -= k;                                                                                       \
        }                                                                                                    \
    }

COMPACT(1, uint8_t)
COMPACT(2, uint16_t)
COMPACT(4, uint32_t)
COMPACT(8, uint64_t)
COMPACT(16, bytes16)

static void compact_rows(const job *j, size_t begin, size_t end, size_t first, size_t room)
{
    char *to = j->to + first * j->row;
    for (size_t i = begin; i < end && room; i++) {
        if (!j->mask[i]) continue;
        memcpy(to, j->from + i * j->row, j->row);
        to += j->row;
        room--;
    }
}

void drupe_mask_compact(const uint8_t *mask, size_t n, const int64_t *counts, size_t row, const void *from,
                        void *to)
{
    job j = {.mask = mask, .n = n, .row = row, .counts = counts, .from = from, .to = to};
    j.block = row == 1    ? compact_1
              : row == 2  ? compact_2
              : row == 4  ? compact_4
              : row == 8  ? compact_8
              : row == 16 ? compact_16
                          : compact_rows;
    drupe_parallel(drupe_mask_blocks(n), blocks_run, &j);
}

/* --- Spread again --------------------------------------------------------------------------------------- */

/* All elements of a word that is not all false are written, those that are false with what they hold; near
 * the end of what there is to take, only those that are true. */
#define EXPAND(name, type)                                                                                   \
    static void expand_##name(const job *j, size_t begin, size_t end, size_t first, size_t room)             \
    {                                                                                                        \
        const type *from = (const type *)(const void *)j->from + first;                                      \
        const type *const stop = from + room;                                                                \
        type *to = (type *)(void *)j->to;                                                                    \
        size_t i = begin;                                                                                    \
        for (; i + 8 <= end && stop - from > 8; i += 8) {                                                    \
            if (!word_of(j->mask + i)) continue;                                                             \
            for (size_t e = i; e < i + 8; e++) {                                                             \
                const bool take = j->mask[e] != 0;                                                           \
                to[e] = take ? *from : to[e];                                                                \
                from += take;                                                                                \
            }                                                                                                \
        }                                                                                                    \
        for (; i < end && from < stop; i++)                                                                  \
            if (j->mask[i]) to[i] = *from++;                                                                 \
    }

EXPAND(1, uint8_t)
EXPAND(2, uint16_t)
EXPAND(4, uint32_t)
EXPAND(8, uint64_t)

static void expand_rows(const job *j, size_t begin, size_t end, size_t first, size_t room)
{
    const char *from = j->from + first * j->row;
    for (size_t i = begin; i < end && room; i++) {
        if (!j->mask[i]) continue;
        memcpy(j->to + i * j->row, from, j->row);
        from += j->row;
        room--;
    }
}

void drupe_mask_expand(const uint8_t *mask, size_t n, const int64_t *counts, size_t row, const void *from,
                       void *to)
{
    job j = {.mask = mask, .n = n, .row = row, .counts = counts, .from = from, .to = to};
    j.block = row == 1   ? expand_1
              : row == 2 ? expand_2
              : row == 4 ? expand_4
              : row == 8 ? expand_8
                         : expand_rows;
    drupe_parallel(drupe_mask_blocks(n), blocks_run, &j);
}

/* --- Positions ------------------------------------------------------------------------------------------ */

/* The true elements of `count` neighbours; numbers from `start` on. `to` has room for `room`. */
static size_t positions_of(const uint8_t *mask, size_t count, int64_t start, int64_t *to, size_t room)
{
    int64_t buffer[STRIP + 1];
    size_t done = 0;
    for (size_t i = 0; i < count && done < room; i += STRIP) {
        const size_t strip = count - i < STRIP ? count - i : STRIP;
        size_t k = 0;
        for (size_t e = i; e < i + strip;) {
            const size_t stop = i + strip - e < 8 ? i + strip : e + 8;
            if (stop - e == 8 && !word_of(mask + e)) {
                e = stop;
                continue;
            }
            for (; e < stop; e++) {
                buffer[k] = start + (int64_t)e;
                k += mask[e] != 0;
            }
        }
        if (k > room - done) k = room - done;
        memcpy(to + done, buffer, k * sizeof *to);
        done += k;
    }
    return done;
}

static void positions_block(const job *j, size_t begin, size_t end, size_t first, size_t room)
{
    const size_t total = (size_t)j->counts[drupe_mask_blocks(j->n)], width = j->shape[j->ndim - 1];
    int64_t *to = (int64_t *)(void *)j->to + first;
    for (size_t i = begin; i < end && room;) {
        /* What is left of one row of the last axis. */
        const size_t place = i % width;
        const size_t count = width - place < end - i ? width - place : end - i;
        const size_t found =
            positions_of(j->mask + i, count, (int64_t)place, to + (size_t)(j->ndim - 1) * total, room);
        size_t rest = found ? i / width : 0;
        for (int d = j->ndim - 2; found && d >= 0; d--) {
            const int64_t number = (int64_t)(rest % j->shape[d]);
            rest /= j->shape[d];
            for (size_t k = 0; k < found; k++) to[(size_t)d * total + k] = number;
        }
        to += found;
        room -= found;
        i += count;
    }
}

void drupe_mask_positions(const uint8_t *mask, int ndim, const size_t *shape, const int64_t *counts,
                          int64_t *to)
{
    size_t n = 1;
    for (int d = 0; d < ndim; d++) n *= shape[d];
    job j = {.mask = mask, .n = n, .counts = counts, .to = (char *)to, .ndim = ndim, .shape = shape};
    j.block = positions_block;
    drupe_parallel(drupe_mask_blocks(n), blocks_run, &j);
}

/* --- Repeats -------------------------------------------------------------------------------------------- */

drupe_status drupe_repeat_count(const int64_t *repeats, size_t n, int64_t *total)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (repeats[i] < 0)
            return drupe_error_set(DRUPE_E_INVALID,
                                   "repeat: the number of repeats must not be negative, and %" PRId64 " is",
                                   repeats[i]);
        if (__builtin_add_overflow(sum, repeats[i], &sum))
            return drupe_error_set(DRUPE_E_INVALID, "repeat: the result would have more than 2**63 elements");
    }
    *total = sum;
    return DRUPE_OK;
}

void drupe_repeat_positions(const int64_t *repeats, size_t n, size_t count, int64_t *to)
{
    size_t done = 0;
    for (size_t i = 0; i < n && done < count; i++)
        for (int64_t k = 0; k < repeats[i] && done < count; k++) to[done++] = (int64_t)i;
    while (done < count) to[done++] = 0; /* the array was changed since it was counted */
}
