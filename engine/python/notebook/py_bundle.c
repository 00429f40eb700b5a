/* Display messages, made without Python. */
#include "drupe_link.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/notebook/notebook_room.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TRACE_TYPE "application/vnd.drupe.trace+json"

/* One process has one kernel. */
static const drupe_link *kernel_link;

void drupe_py_bundle_link(const struct drupe_link *link)
{
    kernel_link = link;
}

void drupe_py_bundle_clear(drupe_py_bundle *bundle)
{
    free(bundle->text);
    free(bundle->html);
    free(bundle->trace);
    *bundle = (drupe_py_bundle){.text = NULL};
}

void drupe_py_display_id(char id[DRUPE_PY_DISPLAY_ID])
{
    static atomic_uint latest;
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    PyOS_snprintf(id, DRUPE_PY_DISPLAY_ID, "drupe-%lx-%lx-%x", (unsigned long)now.tv_sec,
                  (unsigned long)getpid(), atomic_fetch_add(&latest, 1u) + 1u);
}

static size_t length_of(const char *text)
{
    return !text ? 0 : strlen(text);
}

static void add_text(drupe_py_paper *paper, const char *type, const char *text, bool *first)
{
    if (!text) return;
    drupe_py_paper_add(paper, "%s\"%s\":\"", *first ? "" : ",", type);
    drupe_py_paper_add_json(paper, text);
    drupe_py_paper_add(paper, "\"");
    *first = false;
}

int drupe_py_bundle_publish(void *cell, const char *id, bool update, const drupe_py_bundle *bundle)
{
    /* A byte becomes six at most, as \u001b does. */
    size_t size = 6 * (length_of(bundle->text) + length_of(bundle->html)) + length_of(bundle->trace) + 512;
    drupe_py_paper paper = {malloc(size), size, 0};
    bool first = true;
    if (!kernel_link || !paper.text) {
        free(paper.text);
        return -1;
    }
    drupe_py_paper_add(&paper, "{\"data\":{");
    add_text(&paper, "text/plain", bundle->text, &first);
    add_text(&paper, "text/html", bundle->html, &first);
    if (bundle->trace) drupe_py_paper_add(&paper, "%s\"" TRACE_TYPE "\":%s", first ? "" : ",", bundle->trace);
    drupe_py_paper_add(&paper, "},\"metadata\":{");
    bool told = bundle->trace && bundle->kind;
    if (told)
        drupe_py_paper_add(&paper, "\"" TRACE_TYPE "\":{\"kind\":\"%s\"%s}", bundle->kind,
                           bundle->live ? ",\"live\":true" : "");
    /* The name of the display is not saved with a notebook, metadata is: see attach.js. */
    if (id) drupe_py_paper_add(&paper, "%s\"drupe\":{\"display\":\"%s\"}", told ? "," : "", id);
    drupe_py_paper_add(&paper, "},\"transient\":{");
    if (id) drupe_py_paper_add(&paper, "\"display_id\":\"%s\"", id);
    drupe_py_paper_add(&paper, "}}");
    int result =
        kernel_link->publish(cell, update ? "update_display_data" : "display_data", paper.text, paper.used);
    free(paper.text);
    return result;
}
