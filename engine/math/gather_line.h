/* The commonest gathers and scatters: along one axis, by one index array, with nothing beside it.
 *
 * Indices and elements are as in math/gather.h; so is what happens to an index outside. Threads: from any. */
#ifndef DRUPE_MATH_GATHER_LINE_H
#define DRUPE_MATH_GATHER_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct drupe_line {
    size_t element;  /* bytes: 1, 2, 4, 8 or 16 */
    int64_t length;  /* of the axis */
    ptrdiff_t step;  /* along it, in elements */
    ptrdiff_t other; /* from one element gathered, or to be scattered, to the next one */
} drupe_line;

/* Whether `count` indices are inside. If not, `*stray` is the first that is not. */
bool drupe_line_check(const int64_t *index, size_t count, int64_t length, int64_t *stray);
/* to[i * other] = from[index[i] * step]; false at the first stray index. */
bool drupe_line_gather(const drupe_line *line, const void *from, const int64_t *index, size_t count, void *to,
                       int64_t *stray);
/* to[index[i] * step] = from[i * other] for the indices, counted from the axis' begin, in [low, high). */
void drupe_line_scatter(const drupe_line *line, void *to, const int64_t *index, size_t count,
                        const void *from, int64_t low, int64_t high);

#endif
