/* The recorder, views and frames. */
#include "drupe/live.h"
#include "drupe/view.h"
#include "walk.h"

static drupe_status follow(struct walker *w)
{
    drupe_device_figures figures[8];
    char place[96];
    bool gone;
    uint64_t used;
    GO(walk_open_memory(w));
    drupe_submission s = {.queue = w->queue, .label = "followed"};
    GO(drupe_submit_fill(&s, drupe_memory_pointer(w->memory[0]), "x", 1, 4096, &w->events[0]));
    GO(drupe_event_wait(w->events[0], LONG));
    uint64_t latest = drupe_trace_latest(), began = 0, over = 0;
    if (drupe_trace_ran(latest, &began, &over) && over && over < began) return DRUPE_E_INTERNAL;
    drupe_trace_look();
    bool right = drupe_trace_oldest(drupe_queue_number(w->queue)) == UINT64_MAX;
    right = right && !drupe_trace_over(latest + 1, &gone) && gone;
    right = right && drupe_trace_start_of(drupe_queue_number(w->queue), latest) == DRUPE_TRACE_BEGUN;
    drupe_trace_await(latest, DRUPE_FOREVER);
    drupe_trace_wake();
    drupe_trace_await(UINT64_MAX, DRUPE_FOREVER);
    drupe_trace_place(0, 0, place, sizeof place);
    uint64_t allocations = 0;
    size_t count = drupe_device_figures_of(figures, COUNT(figures));
    for (size_t i = 0; i < count; i++) allocations += figures[i].used ? figures[i].allocations : 0;
    right = right && allocations == 2;
    right = right && drupe_memory_high(false, &used) >= used && used > 0;
    return right ? DRUPE_OK : DRUPE_E_INTERNAL;
}

static drupe_status take(struct walker *w, drupe_view **view)
{
    const drupe_view_wish wish = {.spans = 2};
    GO(walk_open_memory(w));
    GO(drupe_view_start());
    drupe_view_listen(NULL);
    drupe_view_listen_work(NULL);
    (void)drupe_view_works();
    drupe_view_cell_began(3);
    drupe_submission s = {.queue = w->queue, .label = "seen"};
    for (size_t i = 0; i < 4; i++)
        GO(drupe_submit_fill(&s, drupe_memory_pointer(w->memory[0]), "x", 1, 4096, NULL));
    GO(drupe_queue_wait(w->queue, LONG));
    drupe_view_cell_ended(3);
    GO(drupe_view_take(&wish, view));
    /* The ring holds work of scenes before this one, on other devices too. */
    return (*view)->nspans > 0 && (*view)->ndevices >= 1 ? DRUPE_OK : DRUPE_E_INTERNAL;
}

/* Takes `text`. */
static drupe_status whole(char *text, size_t size)
{
    bool right = size > 0 && strlen(text) == size;
    free(text);
    return right ? DRUPE_OK : DRUPE_E_INTERNAL;
}

static drupe_status draw(const drupe_view *view)
{
    char *text;
    size_t size;
    GO(drupe_frame_json(view, &text, &size));
    GO(whole(text, size));
    GO(drupe_frame_errors(0, &text, &size));
    GO(whole(text, size));
    for (drupe_frame_kind kind = DRUPE_FRAME_EVENTS; kind <= DRUPE_FRAME_FOOTER; kind++) {
        const drupe_frame_style style = {.cell = 3};
        GO(drupe_frame_text(view, kind, &style, &text, &size));
        GO(whole(text, size));
        GO(drupe_frame_html(view, kind, &style, &text, &size));
        GO(whole(text, size));
    }
    return drupe_view_colour(1) != drupe_view_colour(2) ? DRUPE_OK : DRUPE_E_INTERNAL;
}

static drupe_status record(struct walker *w)
{
    drupe_view *view = NULL;
    drupe_status status = take(w, &view);
    if (status == DRUPE_OK) status = draw(view);
    drupe_view_release(view);
    drupe_view_stop();
    if (status == DRUPE_OK) REFUSED(drupe_view_take(NULL, &view), DRUPE_E_UNSUPPORTED);
    return status;
}

typedef struct screen {
    int shown, released;
} screen;

static drupe_live_answer screen_show(void *user, drupe_live_reason reason)
{
    if (reason != DRUPE_LIVE_TIME) ((screen *)user)->shown++;
    return DRUPE_LIVE_SHOWN;
}

static void screen_release(void *user)
{
    ((screen *)user)->released++;
}

static drupe_status display(struct walker *w)
{
    (void)w;
    screen seen = {0, 0};
    const drupe_live_source source = {screen_show, screen_release, &seen};
    uint64_t id = 0, other = 0, open[2];
    drupe_status status = drupe_live_open(&source, DRUPE_FOREVER / 2, &id);
    if (status == DRUPE_OK) {
        drupe_live_show(id);
        drupe_live_close(id);
        status = drupe_live_open(&source, DRUPE_FOREVER / 2, &other);
    }
    bool right = status != DRUPE_OK || (drupe_live_list(open, 2) == 1 && open[0] == other && seen.shown == 2);
    drupe_live_stop();
    GO(status);
    return right && seen.shown == 3 && seen.released == 2 ? DRUPE_OK : DRUPE_E_INTERNAL;
}

const walk_scene walk_view_scenes[] = {
    {"follow", follow, false}, {"record", record, false}, {"display", display, false}, {NULL, NULL, false}};
