/* The first line of a frame, and the notes under it. */
#include "view_memory.h"
#include <string.h>

#define DEVICES_NAMED 3u
#define FAILURES_MOST 5u
#define QUEUES_NAMED  3u

static void line_busy(const drupe_view *view, const drupe_frame_sums *sums, drupe_text *text)
{
    size_t shown = sums->nbusy < DEVICES_NAMED ? sums->nbusy : DEVICES_NAMED;
    for (size_t i = 0; i < shown; i++) {
        drupe_text_printf(text, "%s", i > 0 ? ", " : "");
        drupe_label_device(text, view, sums->busy[i].device);
        drupe_text_printf(text, " busy ");
        drupe_frame_share_text((double)sums->busy[i].busy_ns, (double)sums->busy[i].maybe_ns,
                               (double)sums->wall_ns, text);
    }
    if (sums->nbusy > shown) drupe_text_printf(text, " and %zu more", sums->nbusy - shown);
    drupe_text_printf(text, " of %s", drupe_unit_time(sums->wall_ns).text);
}

static void line_count(drupe_text *text, uint64_t count, const char *one, const char *many)
{
    if (count > 0)
        drupe_text_printf(text, " \u00b7 %s %s", drupe_unit_count(count).text, count == 1 ? one : many);
}

/* What is not over, by how far it is. */
static void line_open(const uint64_t open[DRUPE_VIEW_STATE_COUNT], drupe_text *text)
{
    static const char *const names[DRUPE_VIEW_STATE_COUNT] = {"", "running", "waiting", "submitted"};
    const char *before = " \u00b7 ";
    for (int state = DRUPE_VIEW_RUNNING; state < DRUPE_VIEW_STATE_COUNT; state++) {
        if (open[state] == 0) continue;
        drupe_text_printf(text, "%s%s %s", before, drupe_unit_count(open[state]).text, names[state]);
        before = ", ";
    }
}

void drupe_frame_work(const drupe_view_cell *cell, bool rate, bool host, drupe_text *text)
{
    line_count(text, cell->count[DRUPE_VIEW_KERNELS], "kernel", "kernels");
    if (cell->count[DRUPE_VIEW_COPIES] > 0) {
        uint64_t bytes = cell->bytes[DRUPE_VIEW_COPIES], ns = cell->class_ns[DRUPE_VIEW_COPIES];
        drupe_text_printf(text, " \u00b7 %s copied", drupe_unit_bytes(bytes).text);
        if (rate && bytes >= DRUPE_FRAME_RATED && ns > 0 && cell->untimed[DRUPE_VIEW_COPIES] == 0)
            drupe_text_printf(text, " at %s", drupe_unit_rate(bytes, ns).text);
    }
    if (host) line_count(text, cell->count[DRUPE_VIEW_HOST], "host function", "host functions");
    line_open(cell->open, text);
    line_count(text, cell->failed, "failed", "failed");
}

/* "GPU busy 61 % of 1.82 s", the number that matters, and how much work that was. */
static void line_past(const drupe_view *view, const drupe_frame_sums *sums, drupe_text *text)
{
    const drupe_view_cell *all = &sums->all;
    if (all->count[0] + all->count[1] + all->count[2] + all->waiting + all->missed == 0) {
        drupe_text_printf(text, "No device work");
        return;
    }
    line_busy(view, sums, text);
    drupe_frame_work(all, true, true, text);
}

void drupe_frame_failures(const drupe_frame *frame, drupe_text *text)
{
    const drupe_view *view = frame->view;
    size_t shown = 0;
    for (size_t i = view->nspans; i > 0 && shown < FAILURES_MOST; i--) {
        const drupe_view_span *span = &view->spans[i - 1];
        if (span->status != DRUPE_TRACE_FAILED) continue;
        drupe_text_printf(text, "failed: ");
        drupe_label_text(text, span->label, 40, false);
        drupe_text_printf(text, " on ");
        drupe_label_text(text, view->lanes[span->lane].device, 32, false);
        drupe_text_printf(text, " queue %u", view->lanes[span->lane].queue);
        if (span->cell != 0) drupe_text_printf(text, ", cell [%u]", span->cell);
        drupe_text_printf(text, "\n");
        shown++;
    }
    if (shown > 0) drupe_text_printf(text, "%%deverrors tells why\n");
}

/* What hatched bars are, on which queues: which, so that nobody takes profiling to be off everywhere. */
static void note_inexact(const drupe_view *view, drupe_text *text)
{
    uint32_t last = 0;
    size_t named = 0;
    drupe_text_printf(
        text, "Hatched (\u2591): it ran at some time in between; the driver does not report when, on ");
    for (size_t i = 0; i < view->nspans; i++) {
        const drupe_view_span *span = &view->spans[i];
        uint32_t queue = view->lanes[span->lane].queue;
        if (span->exact || queue == last) continue;
        last = queue;
        if (named++ < QUEUES_NAMED) drupe_text_printf(text, "%s %u", named > 1 ? "," : "queue", queue);
    }
    if (named > QUEUES_NAMED) drupe_text_printf(text, " and more");
    drupe_text_printf(text, "; %%config Drupe.profile = True records exact times\n");
}

void drupe_frame_notes(const drupe_frame *frame, drupe_text *text)
{
    const drupe_frame_sums *sums = &frame->sums;
    uint64_t skipped = sums->all.skipped, cancelled = sums->all.cancelled, missed = sums->all.missed;
    if (skipped + cancelled > 0) {
        drupe_text_printf(text, "%s did not run: ", drupe_unit_count(skipped + cancelled).text);
        if (skipped > 0)
            drupe_text_printf(text, "%s after a failure%s", drupe_unit_count(skipped).text,
                              cancelled > 0 ? ", " : "");
        if (cancelled > 0) drupe_text_printf(text, "%s cancelled", drupe_unit_count(cancelled).text);
        drupe_text_printf(text, "\n");
    }
    if (sums->merged_into > 0)
        drupe_text_printf(text, "%s submissions are drawn as %s bar%s, under the label of the longest\n",
                          drupe_unit_count(sums->merged).text, drupe_unit_count(sums->merged_into).text,
                          sums->merged_into == 1 ? "" : "s");
    if (sums->inexact > 0) note_inexact(frame->view, text);
    if (missed > 0)
        drupe_text_printf(text, "%s submissions came too fast to be recorded: they are only counted\n",
                          drupe_unit_count(missed).text);
}

static void line_memory(const drupe_view *view, drupe_text *text)
{
    for (size_t i = 0; i < view->ndevices && i < DEVICES_NAMED; i++) {
        if (i > 0) drupe_text_printf(text, " \u00b7 ");
        drupe_label_device(text, view, view->devices[i].use.filter);
        drupe_text_printf(text, " ");
        drupe_memory_use(&view->devices[i], text);
    }
    if (view->ndevices == 0) drupe_text_printf(text, "No device has been used");
    if (view->ndevices > DEVICES_NAMED)
        drupe_text_printf(text, " and %zu more", view->ndevices - DEVICES_NAMED);
}

/* What is going on now. */
static void line_now(const drupe_frame *frame, drupe_text *text)
{
    const drupe_view *view = frame->view;
    for (size_t i = 0; i < view->ndevices && i < DEVICES_NAMED; i++) {
        if (i > 0) drupe_text_printf(text, ", ");
        drupe_label_device(text, view, view->devices[i].use.filter);
        drupe_text_printf(text, " busy ");
        drupe_frame_share_text(view->devices[i].busy, view->devices[i].maybe, 1.0, text);
    }
    drupe_text_printf(text, " now");
    drupe_frame_work(&frame->sums.all, false, false, text);
}

void drupe_frame_line(const drupe_frame *frame, drupe_frame_kind kind, drupe_text *text)
{
    bool now = kind == DRUPE_FRAME_DASHBOARD && frame->style->live && frame->view->ndevices > 0;
    if (kind == DRUPE_FRAME_FOOTER)
        drupe_frame_footer(frame, text);
    else if (kind == DRUPE_FRAME_MEMORY)
        line_memory(frame->view, text);
    else if (now)
        line_now(frame, text);
    else
        line_past(frame->view, &frame->sums, text);
}
