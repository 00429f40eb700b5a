/* Lines.
 *
 * An index is read once, so that nobody can change it between the check and its use. Parts of a scatter go
 * through all indices and note their own ones first: a branch would be foreseen wrongly half of the time. */
#include "math/gather_line.h"

#define STRIP 512u /* indices */

typedef struct bytes16 {
    uint64_t halves[2];
} bytes16;

static inline int64_t place_of(int64_t index, int64_t length)
{
    return index + (index < 0 ? length : 0);
}

bool drupe_line_check(const int64_t *index, size_t count, int64_t length, int64_t *stray)
{
    for (size_t i = 0; i < count; i++) {
        if ((uint64_t)place_of(index[i], length) < (uint64_t)length) continue;
        *stray = index[i];
        return false;
    }
    return true;
}

/* The places within [low, high), and which of the indices they are of. */
static size_t line_own(const int64_t *index, size_t count, int64_t length, int64_t low, int64_t high,
                       int64_t *places, uint32_t *numbers)
{
    const uint64_t reach = (uint64_t)high - (uint64_t)low;
    size_t own = 0;
    for (size_t i = 0; i < count; i++) {
        const int64_t place = place_of(index[i], length);
        places[own] = place;
        numbers[own] = (uint32_t)i;
        own += (uint64_t)place - (uint64_t)low < reach;
    }
    return own;
}

#define LINES(name, type)                                                                                    \
    static inline bool gather_##name(const type *from, ptrdiff_t step, const int64_t *index, size_t count,   \
                                     int64_t length, type *to, ptrdiff_t other, int64_t *stray)              \
    {                                                                                                        \
        for (size_t i = 0; i < count; i++) {                                                                 \
            const int64_t given = index[i], place = place_of(given, length);                                 \
            if ((uint64_t)place >= (uint64_t)length) {                                                       \
                *stray = given;                                                                              \
                return false;                                                                                \
            }                                                                                                \
            to[(ptrdiff_t)i * other] = from[place * step];                                                   \
        }                                                                                                    \
        return true;                                                                                         \
    }                                                                                                        \
    static bool gather_line_##name(const drupe_line *line, const void *from, const int64_t *index,           \
                                   size_t count, void *to, int64_t *stray)                                   \
    {                                                                                                        \
        if (line->step == 1 && line->other == 1)                                                             \
            return gather_##name(from, 1, index, count, line->length, to, 1, stray);                         \
        return gather_##name(from, line->step, index, count, line->length, to, line->other, stray);          \
    }                                                                                                        \
    static void scatter_line_##name(const drupe_line *line, void *to, const int64_t *index, size_t count,    \
                                    const void *from, int64_t low, int64_t high)                             \
    {                                                                                                        \
        type *target = to;                                                                                   \
        const type *source = from;                                                                           \
        if (low == 0 && high == line->length) {                                                              \
            for (size_t i = 0; i < count; i++) {                                                             \
                const int64_t place = place_of(index[i], line->length);                                      \
                if ((uint64_t)place < (uint64_t)high)                                                        \
                    target[place * line->step] = source[(ptrdiff_t)i * line->other];                         \
            }                                                                                                \
            return;                                                                                          \
        }                                                                                                    \
        int64_t places[STRIP];                                                                               \
        uint32_t numbers[STRIP];                                                                             \
        for (size_t begin = 0; begin < count; begin += STRIP) {                                              \
            const size_t strip = count - begin < STRIP ? count - begin : STRIP;                              \
            const size_t own = line_own(index + begin, strip, line->length, low, high, places, numbers);     \
            for (size_t k = 0; k < own; k++)                                                                 \
                target[places[k] * line->step] = source[(ptrdiff_t)numbers[k] * line->other];                \
            source += (ptrdiff_t)strip * line->other;                                                        \
        }                                                                                                    \
    }

LINES(1, uint8_t)
LINES(2, uint16_t)
LINES(4, uint32_t)
LINES(8, uint64_t)
LINES(16, bytes16)

#define OF_SIZE(function, element, ...)                                                                      \
    ((element) == 1   ? function##_1(__VA_ARGS__)                                                            \
     : (element) == 2 ? function##_2(__VA_ARGS__)                                                            \
     : (element) == 4 ? function##_4(__VA_ARGS__)                                                            \
     : (element) == 8 ? function##_8(__VA_ARGS__)                                                            \
                      : function##_16(__VA_ARGS__))

bool drupe_line_gather(const drupe_line *line, const void *from, const int64_t *index, size_t count, void *to,
                       int64_t *stray)
{
    return OF_SIZE(gather_line, line->element, line, from, index, count, to, stray);
}

void drupe_line_scatter(const drupe_line *line, void *to, const int64_t *index, size_t count,
                        const void *from, int64_t low, int64_t high)
{
    OF_SIZE(scatter_line, line->element, line, to, index, count, from, low, high);
}
