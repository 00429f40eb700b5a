/* Transforms of one line.
 *
 * A long line is taken as a matrix of n1 rows and n2 columns, in C order: chunks of neighbouring columns are
 * lanes of transforms of n1 elements, are turned by roots, and lie chunk by chunk in between; then groups of
 * neighbouring rows are lanes of transforms of n2 elements, whose result is a column each of the result as a
 * matrix of n2 rows. So memory is read and written twice, always in whole cache lines, and nothing is
 * transposed for itself. */
#include "math/fft_line.h"
#include "base/base.h"
#include "base/parallel.h"
#include <stdlib.h>
#include <string.h>

void *drupe_fft_blocks(bool wide, size_t rows, size_t count)
{
    /* An element is 128 bytes in both precisions: two vectors of 64. */
    void *blocks = aligned_alloc(64, rows * count * 128);
    if (!blocks) drupe_error_set(DRUPE_E_NO_MEMORY, "No memory to transform lines of %zu elements.", rows);
    (void)wide;
    return blocks;
}

static size_t real_bytes(const fft_plan *plan)
{
    return plan->wide ? sizeof(double) : sizeof(float);
}

/* --- As one lane
 * ------------------------------------------------------------------------------------------------- */

static drupe_status line_by_lanes(const fft_plan *plan, const fft_lines *in, const fft_lines *out, int swap,
                                  double scale)
{
    const fft_loops *loops = drupe_fft_loops(plan->wide);
    char *blocks = drupe_fft_blocks(plan->wide, plan->n, 2);
    if (!blocks) return DRUPE_E_NO_MEMORY;
    loops->load(in, plan->n, swap, blocks);
    loops->store(out, plan->n, swap, scale, loops->passes(plan, blocks, blocks + plan->n * 128));
    free(blocks);
    return DRUPE_OK;
}

/* --- As a matrix
 * ------------------------------------------------------------------------------------------------- */

typedef struct matrix_job {
    const fft_plan *plan;
    const fft_loops *loops;
    const fft_lines *in, *out;
    int swap;
    double scale;
    size_t n1, n2, lanes;
    size_t rows;  /* n1, rounded up to whole groups: rows of a chunk in between */
    char *chunks; /* [chunk][rows] elements of blocks */
    size_t parts;
    atomic_bool failed;
} matrix_job;

/* Columns chunk * lanes and the next ones of the input. */
static void columns_of(const matrix_job *job, size_t chunk, fft_lines *lines)
{
    const size_t first = chunk * job->lanes, valid = job->in->valid[0];
    const size_t count = job->n2 - first < job->lanes ? job->n2 - first : job->lanes;
    *lines = (fft_lines){.data = job->in->data, .count = count, .im = job->in->im};
    lines->step = job->in->step * (ptrdiff_t)job->n2;
    for (size_t v = 0; v < count; v++) {
        lines->lane[v] = job->in->lane[0] + (ptrdiff_t)(first + v) * job->in->step;
        lines->valid[v] = valid > first + v ? (valid - first - v + job->n2 - 1) / job->n2 : 0;
    }
}

static void columns_part(size_t part, void *user)
{
    matrix_job *job = user;
    const size_t chunks = (job->n2 + job->lanes - 1) / job->lanes;
    const size_t end = drupe_parallel_begin(chunks, part + 1, job->parts);
    char *blocks = drupe_fft_blocks(job->plan->wide, job->n1, 2);
    if (!blocks) {
        atomic_store(&job->failed, true);
        return;
    }
    for (size_t c = drupe_parallel_begin(chunks, part, job->parts); c < end; c++) {
        fft_lines lines;
        char *to = job->chunks + c * job->rows * 128;
        columns_of(job, c, &lines);
        job->loops->load(&lines, job->n1, job->swap, blocks);
        const void *result = job->loops->passes(job->plan->rows, blocks, blocks + job->n1 * 128);
        job->loops->rotate(job->plan, c, result, to);
        memset(to + job->n1 * 128, 0, (job->rows - job->n1) * 128);
    }
    free(blocks);
}

static void rows_part(size_t part, void *user)
{
    matrix_job *job = user;
    const size_t groups = job->rows / job->lanes, end = drupe_parallel_begin(groups, part + 1, job->parts);
    char *blocks = drupe_fft_blocks(job->plan->wide, job->n2, 2);
    if (!blocks) {
        atomic_store(&job->failed, true);
        return;
    }
    for (size_t g = drupe_parallel_begin(groups, part, job->parts); g < end; g++) {
        const size_t first = g * job->lanes;
        fft_lines lines = {.data = job->out->data, .im = job->out->im};
        lines.count = job->n1 - first < job->lanes ? job->n1 - first : job->lanes;
        lines.step = job->out->step * (ptrdiff_t)job->n1;
        for (size_t v = 0; v < lines.count; v++)
            lines.lane[v] = job->out->lane[0] + (ptrdiff_t)(first + v) * job->out->step;
        job->loops->regroup(job->chunks, job->rows, first, job->n2, blocks);
        const void *result = job->loops->passes(job->plan->columns, blocks, blocks + job->n2 * 128);
        job->loops->store(&lines, job->n2, job->swap, job->scale, result);
    }
    free(blocks);
}

static void matrix_half(matrix_job *job, size_t pieces, void (*run)(size_t, void *), bool shared)
{
    const size_t bytes = job->plan->n * 2 * real_bytes(job->plan);
    job->parts = shared && bytes > 65536 ? drupe_parallel_parts(pieces, 2) : 1;
    if (job->parts > 1)
        drupe_parallel(job->parts, run, job);
    else
        run(0, job);
}

static drupe_status line_by_matrix(const fft_plan *plan, const fft_lines *in, const fft_lines *out, int swap,
                                   double scale, bool shared)
{
    matrix_job job = {.plan = plan,
                      .loops = drupe_fft_loops(plan->wide),
                      .in = in,
                      .out = out,
                      .swap = swap,
                      .scale = scale,
                      .n1 = plan->rows->n,
                      .n2 = plan->columns->n,
                      .lanes = fft_lanes(plan->wide)};
    const size_t chunks = (job.n2 + job.lanes - 1) / job.lanes, groups = (job.n1 + job.lanes - 1) / job.lanes;
    job.rows = groups * job.lanes;
    job.chunks = drupe_fft_blocks(plan->wide, job.rows, chunks);
    if (!job.chunks) return DRUPE_E_NO_MEMORY;
    atomic_init(&job.failed, false);
    matrix_half(&job, chunks, columns_part, shared);
    if (!atomic_load(&job.failed)) matrix_half(&job, groups, rows_part, shared);
    free(job.chunks);
    if (!atomic_load(&job.failed)) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory to transform a line of %zu elements.", plan->n);
}

/* --- As a convolution
 * -------------------------------------------------------------------------------------------- */

static fft_lines pairs_of(void *data, size_t n)
{
    return (fft_lines){.data = data, .count = 1, .valid = {n}, .step = 2, .im = 1};
}

static drupe_status line_by_chirp(const fft_plan *plan, const fft_lines *in, const fft_lines *out, int swap,
                                  double scale, bool shared)
{
    const fft_loops *loops = drupe_fft_loops(plan->wide);
    const size_t length = plan->rows->n;
    void *line = drupe_fft_blocks(plan->wide, (length * 2 * real_bytes(plan) + 127) / 128, 1);
    if (!line) return DRUPE_E_NO_MEMORY;
    const fft_lines lines = pairs_of(line, length);
    fft_lines result = *out;
    result.valid[0] = plan->n;
    loops->chirp_in(plan, in, swap, line);
    drupe_status status = drupe_fft_line(plan->rows, &lines, &lines, 0, 1, shared);
    if (status == DRUPE_OK) {
        loops->chirp_filter(plan, line);
        status = drupe_fft_line(plan->rows, &lines, &lines, 0, 1, shared);
    }
    if (status == DRUPE_OK) loops->chirp_out(plan, &result, swap, scale, line);
    free(line);
    return status;
}

drupe_status drupe_fft_filter_make(fft_plan *plan)
{
    const size_t n = plan->n, length = plan->rows->n;
    memset(plan->filter, 0, length * 2 * real_bytes(plan));
    for (size_t j = 0; j < n; j++) {
        const size_t places[] = {j, (length - j) % length};
        for (int side = 0; side < 2; side++)
            if (plan->wide) {
                ((double *)plan->filter)[2 * places[side]] = ((const double *)plan->chirp)[2 * j];
                ((double *)plan->filter)[2 * places[side] + 1] = -((const double *)plan->chirp)[2 * j + 1];
            } else {
                ((float *)plan->filter)[2 * places[side]] = ((const float *)plan->chirp)[2 * j];
                ((float *)plan->filter)[2 * places[side] + 1] = -((const float *)plan->chirp)[2 * j + 1];
            }
    }
    const fft_lines lines = pairs_of(plan->filter, length);
    return drupe_fft_line(plan->rows, &lines, &lines, 0, 1.0 / (double)length, false);
}

drupe_status drupe_fft_line(const fft_plan *plan, const fft_lines *in, const fft_lines *out, int swap,
                            double scale, bool shared)
{
    if (plan->form == FFT_LANES) return line_by_lanes(plan, in, out, swap, scale);
    if (plan->form == FFT_MATRIX) return line_by_matrix(plan, in, out, swap, scale, shared);
    return line_by_chirp(plan, in, out, swap, scale, shared);
}
