/* Source lines are noted when a cell ends, not when it submits: that is early enough for what fails after the
 * cell, and costs nothing where it counts. drupe/_located.py writes them. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/notebook/notebook_room.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define EXCERPTS_MOST 512u

typedef struct excerpt {
    uint32_t site;
    char text[];
} excerpt;

static struct {
    pthread_mutex_t lock;         /* of `kept` */
    excerpt *kept[EXCERPTS_MOST]; /* by site */
    uint32_t prepared;            /* the latest site that was looked at */
    atomic_bool colour;
} excerpts = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* NULL when there is no source. */
static excerpt *excerpt_make(uint32_t site)
{
    drupe_py_location location;
    int line = 0;
    if (!drupe_py_site_location(site, &location)) return NULL;
    PyObject *text = drupe_py_call("drupe._located", "excerpt", "(NiINO)", drupe_py_site_file(site, &line),
                                   location.line, (unsigned)location.cell, drupe_py_text(location.file),
                                   atomic_load(&excerpts.colour) ? Py_True : Py_False);
    const char *utf8 = text != NULL && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;
    size_t size = !utf8 ? 0 : strlen(utf8) + 1;
    excerpt *made = !utf8 ? NULL : malloc(sizeof *made + size);
    if (made) {
        made->site = site;
        memcpy(made->text, utf8, size);
    }
    Py_XDECREF(text);
    PyErr_Clear();
    return made;
}

/* Replace the excerpt at a slot by `made`, which is taken. */
static void put(size_t at, excerpt *made)
{
    pthread_mutex_lock(&excerpts.lock);
    excerpt *old = excerpts.kept[at];
    excerpts.kept[at] = made;
    pthread_mutex_unlock(&excerpts.lock);
    free(old);
}

void drupe_py_excerpts_prepare(void)
{
    uint32_t latest = drupe_py_site_latest();
    if (excerpts.prepared == latest) return;
    PyObject *coloured = drupe_py_call("drupe._located", "coloured", "()");
    atomic_store(&excerpts.colour, coloured == Py_True);
    Py_XDECREF(coloured);
    PyErr_Clear();
    if (latest > excerpts.prepared + EXCERPTS_MOST) excerpts.prepared = latest - EXCERPTS_MOST;
    /* Python code runs in between, and another thread may come here. */
    while (excerpts.prepared < latest) {
        excerpt *made = excerpt_make(++excerpts.prepared);
        if (made) put(made->site % EXCERPTS_MOST, made);
    }
}

void drupe_py_excerpts_clear(void)
{
    for (size_t i = 0; i < EXCERPTS_MOST; i++) put(i, NULL);
}

bool drupe_py_excerpts_colour(void)
{
    return atomic_load(&excerpts.colour);
}

bool drupe_py_excerpt_add(drupe_py_strbuf *to, uint32_t site)
{
    pthread_mutex_lock(&excerpts.lock);
    const excerpt *noted = excerpts.kept[site % EXCERPTS_MOST];
    bool found = noted && noted->site == site;
    if (found) drupe_py_strbuf_add(to, "%s", noted->text);
    pthread_mutex_unlock(&excerpts.lock);
    return found;
}
