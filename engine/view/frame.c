/* A view as text and as HTML: sums first, then one of the two renderings. */
#include "frame.h"
#include <string.h>

#define COLUMNS_USUAL 80u
#define COLUMNS_LEAST 60u
#define COLUMNS_MOST  240u

static const drupe_frame_style style_usual;

static bool device_choose(const drupe_view *view, const char *filter, drupe_view_device *one)
{
    for (size_t i = 0; filter != NULL && filter[0] != '\0' && i < view->ndevices; i++)
        if (strcmp(view->devices[i].use.filter, filter) == 0) {
            *one = view->devices[i];
            return true;
        }
    return false;
}

static drupe_status frame_make(const drupe_view *view, drupe_frame_kind kind, const drupe_frame_style *style,
                               void (*render)(const drupe_frame *, drupe_frame_kind, drupe_text *),
                               char **result, size_t *size)
{
    drupe_frame frame = {.view = view, .style = style != NULL ? style : &style_usual};
    drupe_text text = {0};
    *result = NULL;
    *size = 0;
    frame.columns = frame.style->columns == 0              ? COLUMNS_USUAL
                    : frame.style->columns < COLUMNS_LEAST ? COLUMNS_LEAST
                    : frame.style->columns > COLUMNS_MOST  ? COLUMNS_MOST
                                                           : frame.style->columns;
    drupe_view chosen = *view;
    drupe_view_device one;
    if (device_choose(view, frame.style->device, &one)) {
        chosen.devices = &one;
        chosen.ndevices = 1;
        frame.view = &chosen;
    }
    drupe_status status = drupe_frame_sums_make(view, kind, frame.style->live, &frame.sums);
    if (status != DRUPE_OK) return status;
    render(&frame, kind, &text);
    drupe_frame_sums_clear(&frame.sums);
    return drupe_view_give(&text, result, size);
}

drupe_status drupe_frame_text(const drupe_view *view, drupe_frame_kind kind, const drupe_frame_style *style,
                              char **text, size_t *size)
{
    return frame_make(view, kind, style, drupe_frame_render_text, text, size);
}

drupe_status drupe_frame_html(const drupe_view *view, drupe_frame_kind kind, const drupe_frame_style *style,
                              char **html, size_t *size)
{
    return frame_make(view, kind, style, drupe_frame_render_html, html, size);
}
