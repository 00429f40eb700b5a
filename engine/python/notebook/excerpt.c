/* Source lines are noted when a cell ends, not when it submits: that is early enough for what fails after the
 * cell, and costs nothing where it counts. */
#include "engine/python/errors/errors_room.h"
#include "engine/python/notebook/notebook_room.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define AROUND    3   /* lines before and after */
#define LINE_MOST 200 /* bytes */
#define KEPT      512u

typedef struct excerpt {
    uint32_t site; /* 0: free */
    int first, line;
    char heading[64];
    char text[]; /* lines, each with its newline */
} excerpt;

static excerpt *kept[KEPT];
static uint32_t prepared; /* the latest site that was looked at */
static atomic_bool colour;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- Preparing ----------------------------------------------------------------------------------------- */

/* linecache.getlines(file), or NULL without an exception. */
static PyObject *lines_of(PyObject *file)
{
    PyObject *module = PyImport_ImportModule("linecache");
    PyObject *lines = !module ? NULL : PyObject_CallMethod(module, "getlines", "O", file);
    Py_XDECREF(module);
    if (lines && PyList_Check(lines)) return lines;
    Py_XDECREF(lines);
    PyErr_Clear();
    return NULL;
}

static void add_line(drupe_py_strbuf *to, PyObject *object)
{
    const char *line = PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : NULL;
    if (!line) PyErr_Clear();
    if (!line) line = "";
    size_t whole = strcspn(line, "\r\n"), size = drupe_py_utf8_cut(line, LINE_MOST);
    if (size > whole) size = whole;
    drupe_py_strbuf_add(to, "%.*s%s\n", (int)size, line, size < whole ? "..." : "");
}

static void set_heading(excerpt *made, const drupe_py_location *location)
{
    if (location->cell != 0)
        PyOS_snprintf(made->heading, sizeof made->heading, "Cell In[%u], line %d", (unsigned)location->cell,
                      location->line);
    else
        PyOS_snprintf(made->heading, sizeof made->heading, "File %.40s:%d", location->file, location->line);
}

/* NULL when there is no source. */
static excerpt *excerpt_make(uint32_t site)
{
    char text[(2 * AROUND + 1) * (LINE_MOST + 5)];
    drupe_py_strbuf to = {text, sizeof text, 0};
    drupe_py_location location;
    int offset = 0;
    PyCodeObject *code = drupe_py_site_code(site, &offset);
    if (!code) return NULL;
    PyObject *lines = drupe_py_site_location(site, &location) ? lines_of(code->co_filename) : NULL;
    Py_DECREF((PyObject *)code);
    Py_ssize_t count = !lines ? 0 : PyList_GET_SIZE(lines);
    int first = location.line > AROUND ? location.line - AROUND : 1;
    for (int i = first; i <= location.line + AROUND && i <= count; i++)
        add_line(&to, PyList_GET_ITEM(lines, i - 1)); /* borrowed: no Python code runs */
    Py_XDECREF(lines);
    if (location.line < 1 || location.line > count) return NULL;
    excerpt *made = malloc(sizeof *made + to.used + 1);
    if (!made) return NULL;
    *made = (excerpt){.site = site, .first = first, .line = location.line};
    memcpy(made->text, text, to.used + 1);
    set_heading(made, &location);
    return made;
}

/* The setting of IPython's that %colors changes. */
static bool colours_wanted(void)
{
    PyObject *name = PyUnicode_FromString("IPython");
    PyObject *module = !name ? NULL : PyImport_GetModule(name);
    PyObject *shell = !module ? NULL : PyObject_CallMethod(module, "get_ipython", NULL);
    PyObject *colours = !shell ? NULL : PyObject_GetAttrString(shell, "colors");
    const char *word = colours != NULL && PyUnicode_Check(colours) ? PyUnicode_AsUTF8(colours) : NULL;
    bool wanted = word && PyOS_stricmp(word, "nocolor") != 0;
    Py_XDECREF(colours);
    Py_XDECREF(shell);
    Py_XDECREF(module);
    Py_XDECREF(name);
    PyErr_Clear();
    return wanted;
}

void drupe_py_excerpts_prepare(void)
{
    uint32_t latest = drupe_py_site_latest();
    if (prepared == latest) return;
    atomic_store(&colour, colours_wanted());
    if (latest > prepared + KEPT) prepared = latest - KEPT;
    /* Python code runs in between, and another thread may come here. */
    while (prepared < latest) {
        excerpt *made = excerpt_make(++prepared);
        if (!made) continue;
        pthread_mutex_lock(&lock);
        excerpt *old = kept[made->site % KEPT];
        kept[made->site % KEPT] = made;
        pthread_mutex_unlock(&lock);
        free(old);
    }
}

void drupe_py_excerpts_clear(void)
{
    for (size_t i = 0; i < KEPT; i++) {
        pthread_mutex_lock(&lock);
        excerpt *old = kept[i];
        kept[i] = NULL;
        pthread_mutex_unlock(&lock);
        free(old);
    }
}

/* --- Showing ------------------------------------------------------------------------------------------- */

bool drupe_py_excerpts_colour(void)
{
    return atomic_load(&colour);
}

static void add_number(drupe_py_strbuf *to, int number, bool own, bool coloured)
{
    char digits[16];
    int width = snprintf(digits, sizeof digits, "%d", number);
    if (coloured) drupe_py_strbuf_add(to, "\x1b[32m");
    if (own && width < 6)
        drupe_py_strbuf_add(to, "%.*s> %s", 5 - width, "-----", digits);
    else
        drupe_py_strbuf_add(to, "%7s", digits);
    drupe_py_strbuf_add(to, coloured ? "\x1b[39m " : " ");
}

bool drupe_py_excerpt_add(drupe_py_strbuf *to, uint32_t site)
{
    bool coloured = drupe_py_excerpts_colour(), found;
    pthread_mutex_lock(&lock);
    const excerpt *shown = kept[site % KEPT];
    found = site != 0 && shown && shown->site == site;
    if (found) {
        size_t word = strcspn(shown->heading, " ");
        drupe_py_strbuf_add(to, coloured ? "\x1b[36m%.*s\x1b[32m%s\x1b[39m\n" : "%.*s%s\n", (int)word,
                            shown->heading, shown->heading + word);
        int number = shown->first;
        for (const char *line = shown->text; *line != '\0'; number++) {
            size_t size = strcspn(line, "\n") + 1;
            add_number(to, number, number == shown->line, coloured);
            drupe_py_strbuf_add(to, "%.*s", (int)size, line);
            line += size;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}
