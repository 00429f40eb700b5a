/* Memory and devices for terminals. */
#include "view_memory.h"
#include <string.h>

#define FILTER_WIDTH   16u
#define USE_WIDTH      29u /* "1023 MiB of 15.0 GiB (<0.1 %)" */
#define COLUMNS_WIDE   76u
#define HISTORIES_MOST 3u

/* A bar in eighths of a column. */
static void bar_append(double share, size_t columns, drupe_text *text)
{
    static const char parts[8][4] = {"",       "\u258f", "\u258e", "\u258d",
                                     "\u258c", "\u258b", "\u258a", "\u2589"};
    if (!(share > 0.0)) share = 0.0;
    size_t eighths = (size_t)((share > 1.0 ? 1.0 : share) * (double)columns * 8.0 + 0.5), used = 0;
    if (eighths == 0 && share > 0.0) eighths = 1;
    drupe_text_append(text, "\u2595", 3);
    for (; used < eighths / 8; used++) drupe_text_append(text, "\u2588", 3);
    if (eighths % 8 != 0) {
        drupe_text_append(text, parts[eighths % 8], 3);
        used++;
    }
    for (; used < columns; used++) drupe_text_append(text, " ", 1);
    drupe_text_append(text, "\u258f", 3);
}

static void timeline_append(const drupe_view_device *device, uint64_t from, uint64_t to, size_t columns,
                            drupe_text *text)
{
    drupe_memory_bin bins[DRUPE_MEMORY_BINS];
    uint64_t most = drupe_memory_bins(device, from, to, columns, bins);
    double top = (double)drupe_memory_axis(device, most);
    drupe_text_append(text, "\u2595", 3);
    for (size_t i = 0; i < columns; i++) {
        if (bins[i].used == 0)
            drupe_text_append(text, " ", 1);
        else
            drupe_label_block(text, (double)bins[i].used / top);
    }
    drupe_text_append(text, "\u258f", 3);
    drupe_text_printf(text, " most %s in %s\n", drupe_unit_bytes(most).text, drupe_unit_time(to - from).text);
}

/* `columns`: of the bar; 0: none. */
static void use_append(const drupe_view_device *device, size_t columns, drupe_text *text)
{
    double share = (double)device->use.used / (double)drupe_memory_whole(device);
    if (columns > 0) bar_append(share, columns, text);
    drupe_text_append(text, " ", 1);
    drupe_memory_use(device, text);
    drupe_text_append(text, "\n", 1);
}

static void kinds_append(const drupe_view_device *device, drupe_text *text)
{
    for (int kind = 0; kind < 3; kind++)
        drupe_text_printf(text, "%s%s %s", kind > 0 ? " \u00b7 " : "", drupe_memory_kinds[kind],
                          drupe_unit_bytes(device->used[kind]).text);
}

void drupe_frame_text_memory(const drupe_frame *frame, drupe_text *text)
{
    size_t columns = frame->columns - FILTER_WIDTH - USE_WIDTH - 3;
    size_t indent = frame->columns < COLUMNS_WIDE ? 2 : FILTER_WIDTH + 1;
    if (columns > DRUPE_MEMORY_BINS) columns = DRUPE_MEMORY_BINS;
    for (size_t i = 0; i < frame->view->ndevices; i++) {
        const drupe_view_device *device = &frame->view->devices[i];
        uint64_t from = 0, to = 0;
        drupe_label_text(text, device->use.filter, FILTER_WIDTH, true);
        use_append(device, columns, text);
        drupe_label_text(text, "", indent, true);
        kinds_append(device, text);
        drupe_text_append(text, "\n", 1);
        drupe_label_text(text, "", indent, true);
        drupe_memory_pool(device, text);
        drupe_text_append(text, "\n", 1);
        if (!drupe_memory_range(device, frame->style->live, &from, &to)) continue;
        drupe_label_text(text, "", FILTER_WIDTH, true);
        timeline_append(device, from, to, columns, text);
    }
}

void drupe_frame_text_history(const drupe_frame *frame, drupe_text *text)
{
    size_t columns = frame->columns - FILTER_WIDTH - USE_WIDTH - 3;
    if (columns > DRUPE_MEMORY_BINS) columns = DRUPE_MEMORY_BINS;
    for (size_t i = 0; i < frame->view->ndevices && i < HISTORIES_MOST; i++) {
        const drupe_view_device *device = &frame->view->devices[i];
        uint64_t from = 0, to = 0;
        if (!drupe_memory_range(device, frame->style->live, &from, &to)) continue;
        drupe_label_text(text, device->use.filter, FILTER_WIDTH, true);
        timeline_append(device, from, to, columns, text);
    }
}

/* Busy and memory side by side; without bars where these would be too short to tell anything. */
void drupe_frame_text_devices(const drupe_frame *frame, drupe_text *text)
{
    bool wide = frame->columns >= COLUMNS_WIDE;
    size_t columns = wide ? (frame->columns - FILTER_WIDTH - USE_WIDTH - 17) / 2 : 0;
    for (size_t i = 0; i < frame->view->ndevices; i++) {
        const drupe_view_device *device = &frame->view->devices[i];
        drupe_label_text(text, device->use.filter, FILTER_WIDTH, true);
        if (device->lost) {
            drupe_text_printf(text, " lost: its driver no longer runs work on it\n");
            continue;
        }
        double maybe = 0.0, share = drupe_frame_share(frame, device, &maybe);
        if (wide) bar_append(share, columns, text);
        drupe_label_right(text, drupe_frame_most_share(share, maybe).text, 6, " ");
        drupe_text_append(text, " busy ", 6);
        use_append(device, columns, text);
    }
}
