/* Discrete Fourier transforms along an axis: which lines go together, and how real ones become complex ones.
 *
 * Lines of moderate length are transformed several at a time, in lanes; others one by one. A real line of
 * even length is taken as a complex one of half the length, whose transform is split into those of its even
 * and odd elements. */
#include "math/fft.h"
#include "base/base.h"
#include "base/parallel.h"
#include "math/fft_line.h"
#include <stdlib.h>
#include <string.h>

/* Elements of lines that go in lanes: two blocks of them stay in a cache of 1 MiB. */
#define LONGEST_LANE 2048

typedef struct fft_job {
    const drupe_fft *fft;
    const fft_loops *loops;
    fft_plan *plan;
    char *in, *out;
    bool paired; /* a real line as a complex one of half the length */
    double sign; /* of the imaginary parts of a real line's spectrum */
    size_t lanes, lines, groups, parts;
    atomic_bool failed;
} fft_job;

size_t drupe_fft_result_length(const drupe_fft *fft)
{
    return fft->kind == DRUPE_FFT_REAL_HALF ? fft->n / 2 + 1 : fft->n;
}

static bool real_in(const drupe_fft *fft)
{
    return fft->kind == DRUPE_FFT_REAL || fft->kind == DRUPE_FFT_REAL_HALF;
}

/* How lines lie in an array of complex numbers, or of reals, or of reals of which two are taken as a number.
 */
static void lines_of(const fft_job *job, void *data, bool real, size_t length, size_t first, size_t count,
                     fft_lines *lines)
{
    const size_t inner = job->fft->inner, parts = real ? 1 : 2;
    const bool paired = real && job->paired;
    *lines = (fft_lines){.data = data, .count = count};
    lines->step = (ptrdiff_t)(inner * (real && !paired ? 1 : 2));
    lines->im = !real ? 1 : paired ? (ptrdiff_t)inner : 0;
    for (size_t v = 0; v < count; v++) {
        const size_t o = (first + v) / inner, i = (first + v) % inner;
        lines->lane[v] = (ptrdiff_t)((o * length * inner + i) * parts);
        lines->valid[v] = paired ? length / 2 : length;
    }
}

static void lines_in(const fft_job *job, size_t first, size_t count, fft_lines *lines)
{
    lines_of(job, job->in, real_in(job->fft), job->fft->length, first, count, lines);
}

static void lines_out(const fft_job *job, size_t first, size_t count, fft_lines *lines)
{
    lines_of(job, job->out, job->fft->kind == DRUPE_FFT_HALF_REAL, drupe_fft_result_length(job->fft), first,
             count, lines);
}

/* --- In lanes
 * ---------------------------------------------------------------------------------------------------- */

static void transform_group(const fft_job *job, size_t first, size_t count, char *block, char *other)
{
    const drupe_fft *fft = job->fft;
    const fft_plan *plan = job->plan;
    const fft_loops *loops = job->loops;
    fft_lines in, out;
    lines_in(job, first, count, &in);
    lines_out(job, first, count, &out);
    const bool half = fft->kind == DRUPE_FFT_HALF_REAL;
    int swap = fft->inverse;
    size_t stored = drupe_fft_result_length(fft);
    if (half) {
        loops->load(&in, fft->n / 2 + 1, 0, block);
        swap = job->paired; /* join() swaps */
        if (job->paired) {
            loops->join(plan->half, plan->n, job->sign, block);
            stored = plan->n;
        } else {
            loops->mirror(fft->n, job->sign, block);
        }
    } else {
        if (job->paired) swap = 0;
        loops->load(&in, plan->n, swap, block);
    }
    char *result = loops->passes(plan, block, other);
    if (job->paired && !half) {
        loops->split(plan->half, plan->n, job->sign, result);
        if (fft->kind == DRUPE_FFT_REAL) loops->mirror(fft->n, 1, result);
    }
    loops->store(&out, stored, swap, fft->scale, result);
}

/* Groups do not reach over a row of the outer axes where rows are as long as a group. */
static size_t group_first(const fft_job *job, size_t group, size_t *count)
{
    const size_t inner = job->fft->inner;
    if (inner < job->lanes) {
        const size_t first = group * job->lanes;
        *count = job->lines - first < job->lanes ? job->lines - first : job->lanes;
        return first;
    }
    const size_t each = (inner + job->lanes - 1) / job->lanes, at = group % each * job->lanes;
    *count = inner - at < job->lanes ? inner - at : job->lanes;
    return group / each * inner + at;
}

static void lanes_part(size_t part, void *user)
{
    fft_job *job = user;
    const size_t rows = job->fft->n + 2, end = drupe_parallel_begin(job->groups, part + 1, job->parts);
    char *blocks = drupe_fft_blocks(job->fft->wide, rows, 2);
    if (!blocks) {
        atomic_store(&job->failed, true);
        return;
    }
    for (size_t g = drupe_parallel_begin(job->groups, part, job->parts); g < end; g++) {
        size_t count;
        const size_t first = group_first(job, g, &count);
        transform_group(job, first, count, blocks, blocks + rows * 128);
    }
    free(blocks);
}

static void run_lanes(fft_job *job)
{
    const size_t inner = job->fft->inner, lanes = job->lanes;
    job->groups =
        inner < lanes ? (job->lines + lanes - 1) / lanes : job->fft->outer * ((inner + lanes - 1) / lanes);
    job->parts = drupe_parallel_parts(job->groups, 1 + 16384 / (job->fft->n * lanes));
    drupe_parallel(job->parts, lanes_part, job);
}

/* --- Line by line
 * ------------------------------------------------------------------------------------------------ */

static drupe_status line_complex(const fft_job *job, const fft_lines *in, const fft_lines *out, bool shared)
{
    const int swap = job->fft->inverse;
    return drupe_fft_line(job->plan, in, out, swap, job->fft->scale, shared);
}

typedef struct fold_job {
    const fft_job *job;
    void *line;
    bool back;
    size_t parts;
} fold_job;

static void fold_part(size_t part, void *user)
{
    const fold_job *fold = user;
    const fft_plan *plan = fold->job->plan;
    const size_t count = plan->n / 2 + 1, from = drupe_parallel_begin(count, part, fold->parts);
    const size_t to = drupe_parallel_begin(count, part + 1, fold->parts);
    fold->job->loops->line_fold(plan->half, plan->n, fold->back, fold->job->sign, from, to, fold->line);
}

static void line_fold(const fft_job *job, bool back, void *line, bool shared)
{
    fold_job fold = {job, line, back, 1};
    if (shared) fold.parts = drupe_parallel_parts(job->plan->n / 2 + 1, 16384);
    if (fold.parts > 1)
        drupe_parallel(fold.parts, fold_part, &fold);
    else
        fold_part(0, &fold);
}

static size_t line_offset(const fft_job *job, const fft_lines *lines)
{
    return (size_t)lines->lane[0] * (job->fft->wide ? sizeof(double) : sizeof(float));
}

/* The line of a real transform passes through `line` as pairs: memory of its own, or that of the result. */
static drupe_status line_real(const fft_job *job, const fft_lines *in, const fft_lines *out, void *line,
                              bool shared)
{
    const drupe_fft *fft = job->fft;
    const fft_plan *plan = job->plan;
    const fft_loops *loops = job->loops;
    const fft_lines pairs = {.data = line, .count = 1, .valid = {fft->n + 1}, .step = 2, .im = 1};
    const double scale = fft->scale;
    if (fft->kind == DRUPE_FFT_HALF_REAL) {
        loops->line_take(in, fft->n / 2 + 1, line);
        if (job->paired)
            line_fold(job, true, line, shared);
        else
            loops->line_mirror(fft->n, job->sign, line);
        return drupe_fft_line(plan, &pairs, out, job->paired, scale, shared);
    }
    DRUPE_TRY(drupe_fft_line(plan, in, &pairs, !job->paired && fft->inverse, scale, shared));
    if (job->paired) {
        line_fold(job, false, line, shared);
        if (fft->kind == DRUPE_FFT_REAL) loops->line_mirror(fft->n, 1, line);
    }
    if (line != (char *)out->data + line_offset(job, out))
        loops->line_put(line, drupe_fft_result_length(fft), out);
    return DRUPE_OK;
}

static drupe_status transform_line(const fft_job *job, size_t i, bool shared)
{
    fft_lines in, out;
    lines_in(job, i, 1, &in);
    lines_out(job, i, 1, &out);
    const drupe_fft_kind kind = job->fft->kind;
    if (kind == DRUPE_FFT_COMPLEX || (kind == DRUPE_FFT_REAL && !job->paired))
        return line_complex(job, &in, &out, shared);
    if (job->paired && kind != DRUPE_FFT_HALF_REAL && job->fft->inner == 1)
        return line_real(job, &in, &out, job->out + line_offset(job, &out), shared);
    char *line = drupe_fft_blocks(job->fft->wide, (job->fft->n + 2) / 4 + 1, 1);
    if (!line) return DRUPE_E_NO_MEMORY;
    drupe_status status = line_real(job, &in, &out, line, shared);
    free(line);
    return status;
}

static void lines_part(size_t part, void *user)
{
    fft_job *job = user;
    const size_t end = drupe_parallel_begin(job->lines, part + 1, job->parts);
    for (size_t i = drupe_parallel_begin(job->lines, part, job->parts); i < end; i++)
        if (transform_line(job, i, job->parts == 1) != DRUPE_OK) atomic_store(&job->failed, true);
}

static void run_lines(fft_job *job)
{
    /* Each line is shared among the threads where there are too few lines to keep them busy. */
    job->parts = job->lines >= 2 * drupe_parallel_width() ? drupe_parallel_parts(job->lines, 1) : 1;
    if (job->parts > 1)
        drupe_parallel(job->parts, lines_part, job);
    else
        lines_part(0, job);
}

/* -----------------------------------------------------------------------------------------------------------------
 */

/* Of the imaginary parts of a real line's spectrum: its conjugate belongs to the other sign of the exponent.
 * A whole spectrum goes back to a real line by a forward transform, so there the conjugate is that of the
 * inverse one. */
static double sign_of(const fft_job *job)
{
    const bool conjugate =
        job->fft->kind == DRUPE_FFT_HALF_REAL && job->paired ? !job->fft->inverse : job->fft->inverse;
    return conjugate ? -1 : 1;
}

drupe_status drupe_fft_run(const drupe_fft *fft, const void *in, void *out)
{
    fft_job job = {.fft = fft, .loops = drupe_fft_loops(fft->wide), .in = (char *)(uintptr_t)in, .out = out};
    job.lanes = fft_lanes(fft->wide);
    job.lines = fft->outer * fft->inner;
    atomic_init(&job.failed, false);
    if (job.lines == 0) return DRUPE_OK;
    const bool odd_end = real_in(fft) && fft->length < fft->n && fft->length % 2 == 1;
    job.paired = fft->kind != DRUPE_FFT_COMPLEX && fft->n % 2 == 0 && !odd_end;
    job.sign = sign_of(&job);
    const size_t length = job.paired ? fft->n / 2 : fft->n;
    const bool lanes = length <= LONGEST_LANE && (job.lines * 2 >= job.lanes || length < 128);
    DRUPE_TRY(drupe_fft_plan_get(length, fft->wide, lanes ? FFT_LANES : FFT_MATRIX, job.paired, &job.plan));
    if (job.plan->form == FFT_LANES && (lanes || length <= LONGEST_LANE))
        run_lanes(&job);
    else
        run_lines(&job);
    drupe_fft_plan_release(job.plan);
    if (!atomic_load(&job.failed)) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for Fourier transforms of %zu elements.", fft->n);
}
