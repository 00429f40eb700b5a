/* See search.h. */
#include "math/search.h"
#include "base/parallel.h"
#include "math/clones.h"
#include "math/sort_pairs.h"

#define SEARCH_BATCH 16
#define SEARCH_GRAIN 2048 /* values that are worth another thread */

static inline bool half_less(uint16_t a, uint16_t b)
{
    const float x = drupe_half_float(a), y = drupe_half_float(b);
    return x < y || (y != y && x == x);
}

static inline bool half_equal(uint16_t a, uint16_t b)
{
    return drupe_half_float(a) == drupe_half_float(b);
}

static inline bool c64_less(drupe_pair32 a, drupe_pair32 b)
{
    return drupe_pair_less((drupe_pair64){a.re, a.im}, (drupe_pair64){b.re, b.im});
}

#define PAIR_EQUAL(a, b) ((a).re == (b).re && (a).im == (b).im)

#define T       uint8_t
#define NAME(x) u8_##x
#include "math/search_loop.inc"
#define T       int8_t
#define NAME(x) i8_##x
#include "math/search_loop.inc"
#define T       uint16_t
#define NAME(x) u16_##x
#include "math/search_loop.inc"
#define T       int16_t
#define NAME(x) i16_##x
#include "math/search_loop.inc"
#define T       uint32_t
#define NAME(x) u32_##x
#include "math/search_loop.inc"
#define T       int32_t
#define NAME(x) i32_##x
#include "math/search_loop.inc"
#define T       uint64_t
#define NAME(x) u64_##x
#include "math/search_loop.inc"
#define T       int64_t
#define NAME(x) i64_##x
#include "math/search_loop.inc"
#define T       uint16_t
#define LESS    half_less
#define EQUAL   half_equal
#define NAME(x) f16_##x
#include "math/search_loop.inc"
#define T       float
#define NAME(x) f32_##x
#include "math/search_loop.inc"
#define T       double
#define NAME(x) f64_##x
#include "math/search_loop.inc"
#define T       drupe_pair32
#define LESS    c64_less
#define EQUAL   PAIR_EQUAL
#define NAME(x) c64_##x
#include "math/search_loop.inc"
#define T       drupe_pair64
#define LESS    drupe_pair_less
#define EQUAL   PAIR_EQUAL
#define NAME(x) c128_##x
#include "math/search_loop.inc"

typedef void search_function(const drupe_search *, size_t begin, size_t end);
static search_function *const functions[DRUPE_ELEMENT_COUNT] = {
    u8_search,  i8_search,  u8_search,  i16_search, u16_search, i32_search, u32_search,
    i64_search, u64_search, f16_search, f32_search, f64_search, c64_search, c128_search,
};

typedef struct search_parts {
    const drupe_search *search;
    size_t parts;
} search_parts;

static void search_part(size_t i, void *user)
{
    const search_parts *p = user;
    functions[p->search->type](p->search, drupe_parallel_begin(p->search->m, i, p->parts),
                               drupe_parallel_begin(p->search->m, i + 1, p->parts));
}

void drupe_search_run(const drupe_search *search)
{
    if (search->n == 0) {
        if (search->places) memset(search->places, 0, search->m * sizeof *search->places);
        if (search->found) memset(search->found, search->absent, search->m);
        return;
    }
    search_parts p = {search, drupe_parallel_parts(search->m, SEARCH_GRAIN)};
    drupe_parallel(p.parts, search_part, &p);
}
