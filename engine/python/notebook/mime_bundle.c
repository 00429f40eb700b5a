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

void drupe_py_mime_bundle_clear(drupe_py_mime_bundle *mime)
{
    free(mime->text);
    free(mime->html);
    free(mime->trace);
    *mime = (drupe_py_mime_bundle){.text = NULL};
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

static void add_text(drupe_py_strbuf *buffer, const char *type, const char *text, bool *first)
{
    if (!text) return;
    drupe_py_strbuf_add(buffer, "%s\"%s\":\"", *first ? "" : ",", type);
    drupe_py_strbuf_add_json(buffer, text);
    drupe_py_strbuf_add(buffer, "\"");
    *first = false;
}

int drupe_py_mime_bundle_publish(void *cell, const char *id, bool update, const drupe_py_mime_bundle *mime)
{
    /* A byte becomes six at most, as \u001b does. */
    size_t size = 6 * (length_of(mime->text) + length_of(mime->html)) + length_of(mime->trace) + 512;
    drupe_py_strbuf buffer = {malloc(size), size, 0};
    bool first = true;
    if (!drupe_py_link || !buffer.text) {
        free(buffer.text);
        return -1;
    }
    drupe_py_strbuf_add(&buffer, "{\"data\":{");
    add_text(&buffer, "text/plain", mime->text, &first);
    add_text(&buffer, "text/html", mime->html, &first);
    if (mime->trace) drupe_py_strbuf_add(&buffer, "%s\"" TRACE_TYPE "\":%s", first ? "" : ",", mime->trace);
    drupe_py_strbuf_add(&buffer, "},\"metadata\":{");
    bool told = mime->trace && mime->kind;
    if (told)
        drupe_py_strbuf_add(&buffer, "\"" TRACE_TYPE "\":{\"kind\":\"%s\"%s}", mime->kind,
                            mime->live ? ",\"live\":true" : "");
    /* The name of the display is not saved with a notebook, metadata is: see attach.js. */
    if (id) drupe_py_strbuf_add(&buffer, "%s\"drupe\":{\"display\":\"%s\"}", told ? "," : "", id);
    drupe_py_strbuf_add(&buffer, "},\"transient\":{");
    if (id) drupe_py_strbuf_add(&buffer, "\"display_id\":\"%s\"", id);
    drupe_py_strbuf_add(&buffer, "}}");
    int result = drupe_py_link->publish(cell, update ? "update_display_data" : "display_data", buffer.text,
                                        buffer.used);
    free(buffer.text);
    return result;
}
