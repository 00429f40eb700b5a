/* Memory and devices for notebooks. */
#include "html.h"
#include "view_memory.h"

#define HISTORIES_MOST 3u
#define COLUMNS_MOST   120u
#define COLUMNS_LEAST  10u
#define COLUMNS_ALL    200u /* of all devices, for the size of the page */
#define COLUMNS_BESIDE 90u  /* of all devices, where a timeline of their work stands beside it */

/* Kinds are shades of one grey: hues are the cells'. */
static const uint32_t shades[3] = {0x5f7c99, 0x8fa3b8, 0xa0a0a0};

static void device_name(const drupe_view_device *device, drupe_text *html)
{
    drupe_text_printf(html, "<div style=\"width:184px;margin-right:6px;overflow:hidden;white-space:nowrap;"
                            "text-overflow:ellipsis\" title=\"");
    drupe_label_html(html, device->use.name, 100);
    drupe_text_append(html, "\">", 2);
    drupe_label_html(html, device->use.filter, 60);
    drupe_html_close(html);
}

static void use_track(const drupe_view_device *device, drupe_text *html)
{
    double whole = (double)drupe_memory_whole(device), left = 0.0;
    drupe_html_meter(html);
    for (int kind = 0; kind < 3; kind++) {
        double width = 100.0 * (double)device->used[kind] / whole;
        if (device->used[kind] == 0) continue;
        if (left + width > 100.0) width = 100.0 - left;
        drupe_html_bar bar = {left,
                              width,
                              100.0,
                              drupe_memory_near(device) ? DRUPE_HTML_RED : shades[kind],
                              drupe_memory_kinds[kind],
                              DRUPE_HTML_SOLID};
        drupe_html_bar_add(html, &bar);
        left += width;
    }
    double peak = 100.0 * (double)device->peak / whole;
    unsigned at = drupe_html_hundredths(peak);
    if (device->peak > 0 && peak <= 100.0)
        drupe_text_printf(
            html,
            "<div style=\"position:absolute;left:%u.%02u%%;width:2px;margin-left:-2px;top:0;bottom:0;"
            "background-color:#808080\" title=\"peak %s\"></div>",
            DRUPE_HTML_PERCENT(at), drupe_unit_bytes(device->peak).text);
    drupe_html_close(html);
}

static void use_append(const drupe_view_device *device, drupe_text *html)
{
    drupe_text use = {0};
    use_track(device, html);
    drupe_memory_use(device, &use);
    drupe_html_number(html, "width:210px;text-align:right;white-space:nowrap", drupe_text_get(&use), 28);
    drupe_frame_part_end(html, &use);
}

static void kinds_append(const drupe_view_device *device, drupe_text *html)
{
    drupe_text pool = {0};
    drupe_html_open(html, "display:flex;flex-wrap:wrap;height:17px;font-size:11px;margin-left:190px");
    for (int kind = 0; kind < 3; kind++) {
        drupe_text part = {0};
        drupe_text_printf(&part, "%s %s", drupe_memory_kinds[kind],
                          drupe_unit_bytes(device->used[kind]).text);
        drupe_html_key(html, shades[kind], drupe_text_get(&part));
        drupe_frame_part_end(html, &part);
    }
    drupe_memory_pool(device, &pool);
    drupe_html_part(html, "opacity:0.75;white-space:nowrap", &pool);
    drupe_html_close(html);
}

static void timeline_bars(const drupe_memory_bin *bins, size_t columns, uint64_t top, drupe_text *html)
{
    double scale = 100.0 / (double)columns;
    for (size_t first = 0; first < columns;) {
        size_t end = first + 1;
        drupe_text title = {0};
        while (end < columns && bins[end].used == bins[first].used && bins[end].cell == bins[first].cell)
            end++;
        if (bins[first].used > 0) {
            drupe_text_printf(&title, "%s", drupe_unit_bytes(bins[first].used).text);
            if (bins[first].cell != 0) drupe_text_printf(&title, " \u00b7 cell [%u]", bins[first].cell);
            drupe_html_bar bar = {scale * (double)first,
                                  scale * (double)(end - first),
                                  100.0 * (double)bins[first].used / (double)top,
                                  drupe_view_colour(bins[first].cell),
                                  drupe_text_get(&title),
                                  DRUPE_HTML_SOLID};
            drupe_html_bar_add(html, &bar);
        }
        drupe_frame_part_end(html, &title);
        first = end;
    }
}

/* `share`: how many columns it may have. */
static void timeline_append(const drupe_frame *frame, const drupe_view_device *device, const char *name,
                            size_t share, drupe_text *html)
{
    drupe_memory_bin bins[COLUMNS_MOST];
    uint64_t from = 0, to = 0;
    size_t columns = share > COLUMNS_MOST ? COLUMNS_MOST : share < COLUMNS_LEAST ? COLUMNS_LEAST : share;
    if (!drupe_memory_range(device, frame->style->live, &from, &to)) return;
    uint64_t most = drupe_memory_bins(device, from, to, columns, bins), top = drupe_memory_axis(device, most);
    drupe_html_open(html, "display:flex;height:52px;align-items:center");
    drupe_html_text(
        html,
        "width:184px;margin-right:6px;overflow:hidden;white-space:nowrap;text-overflow:ellipsis;opacity:0.75",
        name);
    drupe_html_track(html, 48);
    timeline_bars(bins, columns, top, html);
    drupe_html_close(html);
    drupe_html_open(html, "width:210px;text-align:right;opacity:0.75;font-size:11px");
    drupe_text_printf(html, "most %s in %s, top %s", drupe_unit_bytes(most).text,
                      drupe_unit_time(to - from).text, drupe_unit_bytes(top).text);
    drupe_html_close(html);
    drupe_html_close(html);
}

void drupe_frame_html_memory(const drupe_frame *frame, drupe_text *html)
{
    for (size_t i = 0; i < frame->view->ndevices; i++) {
        const drupe_view_device *device = &frame->view->devices[i];
        drupe_html_open(html, "display:flex;align-items:center;height:20px;margin-top:4px");
        device_name(device, html);
        use_append(device, html);
        drupe_html_close(html);
        kinds_append(device, html);
        timeline_append(frame, device, "over time", COLUMNS_ALL / frame->view->ndevices, html);
    }
}

void drupe_frame_html_history(const drupe_frame *frame, drupe_text *html)
{
    size_t count = frame->view->ndevices < HISTORIES_MOST ? frame->view->ndevices : HISTORIES_MOST;
    for (size_t i = 0; i < count; i++) {
        const drupe_view_device *device = &frame->view->devices[i];
        drupe_text name = {0};
        drupe_text_printf(&name, "%s memory", device->use.filter);
        timeline_append(frame, device, drupe_text_get(&name), COLUMNS_BESIDE / count, html);
        drupe_frame_part_end(html, &name);
    }
}

static void busy_track(const drupe_frame *frame, const drupe_view_device *device, drupe_text *html)
{
    drupe_text text = {0};
    double maybe = 0.0, share = drupe_frame_share(frame, device, &maybe);
    drupe_html_bar bar = {.width = 100.0 * share, .height = 100.0, .colour = DRUPE_HTML_USE};
    drupe_html_bar most = {.left = 100.0 * share,
                           .width = 100.0 * maybe,
                           .height = 100.0,
                           .colour = DRUPE_HTML_USE,
                           .title = "work that may have run in this time: its times are not known",
                           .look = DRUPE_HTML_HATCHED};
    drupe_html_meter(html);
    if (share > 0.0) drupe_html_bar_add(html, &bar);
    if (maybe > 0.0) drupe_html_bar_add(html, &most);
    drupe_html_close(html);
    drupe_label_right(&text, drupe_frame_most_share(share, maybe).text, 6, DRUPE_HTML_SPACE);
    drupe_text_printf(&text, " busy");
    drupe_html_part(html, "width:84px;text-align:right;white-space:nowrap;margin-right:16px", &text);
}

void drupe_frame_html_devices(const drupe_frame *frame, drupe_text *html)
{
    for (size_t i = 0; i < frame->view->ndevices; i++) {
        const drupe_view_device *device = &frame->view->devices[i];
        drupe_html_open(html, "display:flex;align-items:center;height:20px");
        device_name(device, html);
        if (device->lost)
            drupe_text_printf(html,
                              "<div style=\"color:#%06x\">lost: its driver no longer runs work on it</div>",
                              (unsigned)DRUPE_HTML_RED);
        else {
            busy_track(frame, device, html);
            use_append(device, html);
        }
        drupe_html_close(html);
    }
}
