/* See scan.h. Rows that lie side by side are scanned together; one long row is cut into parts, whose sums are
 * taken first, in several chains at the speed of memory. */
#include "math/scan.h"
#include "base/parallel.h"

#define SCAN_COLUMNS 256 /* columns that are scanned together: their states stay in the first cache */
#define SCAN_PARTS   64
#define SCAN_GRAIN   32768 /* elements that are worth another thread */

/* Where part `i` begins of a row in `parts` parts: the first is half as long as the others, since it is
 * scanned while those are only added up. */
static inline size_t scan_begin(size_t n, size_t i, size_t parts)
{
    if (i == 0) return 0;
    return i == parts ? n : n / (2 * parts - 1) * (2 * i - 1);
}

#define PAIR_FINITE(s) ((s).re - (s).re == 0 && (s).im - (s).im == 0)

#define INTEGER(name, type) static const type name##_zero = 0, name##_one = 1;

INTEGER(u8, uint8_t)
INTEGER(u16, uint16_t)
INTEGER(u32, uint32_t)
INTEGER(u64, uint64_t)
static const float f16_zero = 0, f16_one = 1, f32_zero = 0, f32_one = 1;
static const double f64_zero = 0, f64_one = 1;
static const drupe_pair32 c64_zero = {0, 0}, c64_one = {1, 0};
static const drupe_pair64 c128_zero = {0, 0}, c128_one = {1, 0};

static inline drupe_pair32 c64_add(drupe_pair32 a, drupe_pair32 b)
{
    return (drupe_pair32){a.re + b.re, a.im + b.im};
}

static inline drupe_pair32 c64_times(drupe_pair32 a, drupe_pair32 b)
{
    return (drupe_pair32){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static inline drupe_pair64 c128_add(drupe_pair64 a, drupe_pair64 b)
{
    return (drupe_pair64){a.re + b.re, a.im + b.im};
}

static inline drupe_pair64 c128_times(drupe_pair64 a, drupe_pair64 b)
{
    return (drupe_pair64){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* Signed integers are added as unsigned ones, which wrap. Small ones are cut after each step. */
#define T           uint8_t
#define STATE       uint8_t
#define ADD(a, b)   (uint8_t)((a) + (b))
#define TIMES(a, b) (uint8_t)((a) * (b))
#define EXACT       1
#define NAME(x)     u8_##x
#include "math/scan_loop.inc"
#define T           uint16_t
#define STATE       uint16_t
#define ADD(a, b)   (uint16_t)((a) + (b))
#define TIMES(a, b) (uint16_t)((unsigned)(a) * (b))
#define EXACT       1
#define NAME(x)     u16_##x
#include "math/scan_loop.inc"
#define T       uint32_t
#define STATE   uint32_t
#define EXACT   1
#define NAME(x) u32_##x
#include "math/scan_loop.inc"
#define T       uint64_t
#define STATE   uint64_t
#define EXACT   1
#define NAME(x) u64_##x
#include "math/scan_loop.inc"
#define T       uint16_t
#define STATE   float
#define LOAD    drupe_half_float
#define STORE   drupe_float_half
#define NAME(x) f16_##x
#include "math/scan_loop.inc"
#define T       float
#define STATE   float
#define NAME(x) f32_##x
#include "math/scan_loop.inc"
#define T       double
#define STATE   double
#define NAME(x) f64_##x
#include "math/scan_loop.inc"
#define T       drupe_pair32
#define STATE   drupe_pair32
#define ADD     c64_add
#define TIMES   c64_times
#define FINITE  PAIR_FINITE
#define NAME(x) c64_##x
#include "math/scan_loop.inc"
#define T       drupe_pair64
#define STATE   drupe_pair64
#define ADD     c128_add
#define TIMES   c128_times
#define FINITE  PAIR_FINITE
#define NAME(x) c128_##x
#include "math/scan_loop.inc"

typedef struct scan_functions {
    void (*columns)(const drupe_scan *, size_t block, size_t begin, size_t end);
    void (*one_row)(const drupe_scan *, size_t row);
    void (*long_row)(const drupe_scan *, size_t row, size_t parts);
} scan_functions;

#define FUNCTIONS(x)                                                                                         \
    {                                                                                                        \
        x##_columns, x##_one_row, x##_long_row                                                               \
    }
static const scan_functions functions[DRUPE_ELEMENT_COUNT] = {
    FUNCTIONS(u8),  FUNCTIONS(u8),  FUNCTIONS(u8),  FUNCTIONS(u16),  FUNCTIONS(u16),
    FUNCTIONS(u32), FUNCTIONS(u32), FUNCTIONS(u64), FUNCTIONS(u64),  FUNCTIONS(f16),
    FUNCTIONS(f32), FUNCTIONS(f64), FUNCTIONS(c64), FUNCTIONS(c128),
};

typedef struct scan_work {
    const drupe_scan *scan;
    const scan_functions *f;
    size_t parts, bands; /* bands of columns in a block */
} scan_work;

static void rows_part(size_t i, void *user)
{
    const scan_work *w = user;
    const size_t end = drupe_parallel_begin(w->scan->outer, i + 1, w->parts);
    for (size_t row = drupe_parallel_begin(w->scan->outer, i, w->parts); row < end; row++)
        w->f->one_row(w->scan, row);
}

static void bands_part(size_t i, void *user)
{
    const scan_work *w = user;
    const size_t inner = w->scan->inner, band = i % w->bands;
    w->f->columns(w->scan, i / w->bands, drupe_parallel_begin(inner, band, w->bands),
                  drupe_parallel_begin(inner, band + 1, w->bands));
}

void drupe_scan_run(const drupe_scan *scan)
{
    scan_work w = {.scan = scan, .f = &functions[scan->type]};
    const size_t total = scan->outer * scan->n * scan->inner;
    if (scan->inner > 1) {
        const size_t parts = drupe_parallel_parts(total, SCAN_GRAIN);
        w.bands = (scan->inner + SCAN_COLUMNS - 1) / SCAN_COLUMNS;
        if (w.bands * scan->outer < parts && scan->inner >= 16)
            w.bands = (parts + scan->outer - 1) / scan->outer;
        if (w.bands > scan->inner) w.bands = scan->inner;
        drupe_parallel(scan->outer * w.bands, bands_part, &w);
        return;
    }
    size_t parts = drupe_parallel_parts(scan->n, SCAN_GRAIN);
    if (parts > SCAN_PARTS) parts = SCAN_PARTS;
    if (parts > 1 && scan->outer < parts) {
        for (size_t row = 0; row < scan->outer; row++) w.f->long_row(scan, row, parts);
        return;
    }
    w.parts = drupe_parallel_parts(total, SCAN_GRAIN);
    if (w.parts > scan->outer) w.parts = scan->outer ? scan->outer : 1;
    drupe_parallel(w.parts, rows_part, &w);
}
