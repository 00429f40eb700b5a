/* The panel's questions, answered on a thread of the kernel whatever Python does. */
#include "drupe/drupe.h"
#include "drupe/view.h"
#include "engine/python/notebook/notebook_room.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_SIZE 256

static pid_t joined; /* the process that is, 0: none */

/* --- Arguments ------------------------------------------------------------------------------------------ */

/* `*json` as printf() would write it; its length, 0: no memory. */
static size_t say(char **json, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *json = malloc(TEXT_SIZE);
    if (*json) vsnprintf(*json, TEXT_SIZE, format, args);
    va_end(args);
    return !*json ? 0 : strlen(*json);
}

typedef struct wanted {
    const char *name;
    uint64_t most;
    uint64_t *value;
} wanted;

/* Fill in what was given; false with the reason when something is no whole number from 0 to `most`. */
static bool arguments_read(const drupe_link_request *request, const wanted *list, size_t count, char **json)
{
    for (size_t i = 0; i < count; i++) {
        if (!request->has(request->arguments, list[i].name)) continue;
        int64_t value = request->number(request->arguments, list[i].name, -1);
        if (value < 0 || (uint64_t)value > list[i].most) {
            (void)say(json, "the argument '%s' is a whole number from 0 to %llu", list[i].name,
                      (unsigned long long)list[i].most);
            return false;
        }
        *list[i].value = (uint64_t)value;
    }
    return true;
}

static size_t body(drupe_status status, char *text, size_t size, char **json)
{
    if (status == DRUPE_OK)
        *json = text;
    else
        (void)say(json, "%s", drupe_error_last()->text);
    return status == DRUPE_OK ? size : 0;
}

/* --- Commands ------------------------------------------------------------------------------------------- */

static size_t answer_view(const drupe_link_request *request, char **json)
{
    uint64_t after = 0, spans = 0, since = 0, first = 0, last = 0;
    const wanted list[] = {{"after", INT64_MAX, &after},
                           {"spans", DRUPE_VIEW_SPANS, &spans},
                           {"since", INT64_MAX, &since},
                           {"firstCell", UINT32_MAX, &first},
                           {"lastCell", UINT32_MAX, &last}};
    if (!arguments_read(request, list, sizeof list / sizeof *list, json)) return 0;
    drupe_view_wish wish = {.first_cell = (uint32_t)first,
                            .last_cell = (uint32_t)last,
                            .since_ns = since,
                            .after = after,
                            .spans = (size_t)spans};
    drupe_view *view = NULL;
    char *text = NULL;
    size_t size = 0;
    drupe_status status = drupe_view_take(&wish, &view);
    if (status == DRUPE_OK) status = drupe_frame_json(view, &text, &size);
    drupe_view_release(view);
    return body(status, text, size, json);
}

static size_t answer_hello(const drupe_link_request *request, char **json)
{
    (void)request;
    return say(json, "{\"version\":1,\"engine\":\"%s\"}", drupe_version());
}

static size_t answer_errors(const drupe_link_request *request, char **json)
{
    uint64_t after = 0;
    const wanted list[] = {{"after", INT64_MAX, &after}};
    char *text = NULL;
    size_t size = 0;
    if (!arguments_read(request, list, sizeof list / sizeof *list, json)) return 0;
    drupe_status status = drupe_frame_errors(after, &text, &size);
    return body(status, text, size, json);
}

/* A page that was loaded anew. */
static size_t answer_refresh(const drupe_link_request *request, char **json)
{
    (void)request;
    drupe_py_live_wish();
    return say(json, "{\"open\":%zu}", drupe_live_list(NULL, 0));
}

static size_t answer(const char *command, const drupe_link_request *request, char **json)
{
    static const struct {
        const char *command;
        size_t (*answer)(const drupe_link_request *request, char **json);
    } commands[] = {{"drupe/view", answer_view},
                    {"drupe/hello", answer_hello},
                    {"drupe/errors", answer_errors},
                    {"drupe/refresh", answer_refresh}};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(command, commands[i].command) == 0) return commands[i].answer(request, json);
    (void)say(
        json,
        "there is no command '%.64s'; there are drupe/view, drupe/errors, drupe/refresh and drupe/hello",
        command);
    return 0;
}

/* --- Joining -------------------------------------------------------------------------------------------- */

static void cell_watch(void *cell, int began)
{
    uint32_t number = drupe_py_link->cell_number(cell);
    if (number == 0) return;
    if (began)
        drupe_view_cell_began(number);
    else
        drupe_view_cell_ended(number);
}

static void work_watch(bool goes_on)
{
    (void)drupe_py_link->device_work(goes_on);
}

void drupe_py_answer_open(void)
{
    const drupe_link *link = drupe_py_link;
    if (!DRUPE_LINK_HAS(link, set_answer) || !DRUPE_LINK_HAS(link, cell_number)) return;
    if (drupe_view_start() != DRUPE_OK) {
        if (DRUPE_LINK_HAS(link, log)) link->log(drupe_error_last()->text);
        return;
    }
    joined = getpid();
    link->set_cell_watch(cell_watch);
    link->set_answer(answer);
    if (DRUPE_LINK_HAS(link, device_work) && link->device_work(0)) drupe_view_listen_work(work_watch);
    /* The cell that imports drupe runs already. */
    void *cell = link->cell_retain();
    if (cell) cell_watch(cell, 1);
    link->cell_release(cell);
}

void drupe_py_answer_close(void)
{
    /* A forked child is no kernel, and the kernel's lock may be held in its copy. */
    if (joined == getpid()) {
        drupe_py_link->set_cell_watch(NULL);
        drupe_py_link->set_answer(NULL);
        drupe_view_listen_work(NULL);
        joined = 0;
    }
    drupe_view_stop();
}
