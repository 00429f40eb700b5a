/* A line in the cell that waits for a compiler, once that takes longer than half a second. */
#include "building.h"
#include "drupe_link.h"
#include "live.h"
#include "paper.h"
#include "site.h"
#include <ctype.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#define PERIOD_NS  UINT64_C(500000000)
#define NAMES_MOST 3

typedef struct building {
    uint64_t id; /* of the live display */
    void *cell;  /* retained */
    char display[DRUPE_PY_DISPLAY_ID];
    char names[96], device[64];
    struct timespec began;
    bool shown;
    atomic_int ending;     /* of the next enum */
    atomic_int references; /* the builder's and the display's, which may be closed while the build goes on */
} building;

enum { GOES_ON, BUILT, FAILED };

static const drupe_link *kernel_link;

/* --- What it is called --------------------------------------------------------------------------------- */

static bool is_word(char byte)
{
    return isalnum((unsigned char)byte) || byte == '_';
}

/* The next word behind `*at`; its length, 0 at the end. */
static size_t next_word(const char *text, size_t size, size_t *at)
{
    while (*at < size && !is_word(text[*at])) (*at)++;
    size_t length = 0;
    while (*at + length < size && is_word(text[*at + length])) length++;
    return length;
}

static bool word_is(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

/* "add, scale": what follows "kernel void" in OpenCL C. Comments may deceive it. */
static void find_names(const drupe_source *source, char *names, size_t size)
{
    const char *text = source->bytes;
    drupe_py_paper to = {names, size, 0};
    int state = 0, found = 0;
    names[0] = '\0';
    if ((source->language != DRUPE_LANG_OPENCL_C && source->language != DRUPE_LANG_C) || text == NULL) return;
    for (size_t at = 0, length; (length = next_word(text, source->size, &at)) > 0; at += length) {
        const char *word = text + at;
        if (word_is(word, length, "kernel") || word_is(word, length, "__kernel")) {
            state = 1;
        } else if (state == 1) {
            state = word_is(word, length, "void") ? 2 : 1;
        } else if (state == 2) {
            state = 0;
            if (found++ < NAMES_MOST)
                drupe_py_paper_add(&to, "%s%.*s", found > 1 ? ", " : "", length < 24 ? (int)length : 24,
                                   word);
        }
    }
    if (found > NAMES_MOST) drupe_py_paper_add(&to, " and %d more", found - NAMES_MOST);
}

/* --- Showing ------------------------------------------------------------------------------------------- */

static double seconds_since(const struct timespec *then)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - then->tv_sec) + (double)(now.tv_nsec - then->tv_nsec) / 1e9;
}

static char *line_text(building *one, bool html)
{
    static const char *const formats[2][3] = {
        {"building %s for %s ... %.1f s", "built %s for %s in %.1f s",
         "building %s for %s failed after %.1f s"},
        {"<div style=\"font-size:13px;color:#8a8a8a\">building <b>%s</b> for %s &#8230; %.1f s</div>",
         "<div style=\"font-size:13px;color:#8a8a8a\">built <b>%s</b> for %s in %.1f s</div>",
         "<div style=\"font-size:13px;color:#d62728\">building <b>%s</b> for %s failed after %.1f s</div>"}};
    char *text = malloc(512);
    /* Names of functions and filters hold nothing that HTML could take for its own. */
    if (text != NULL)
        PyOS_snprintf(text, 512, formats[html][atomic_load(&one->ending)],
                      one->names[0] == '\0' ? "a program" : one->names, one->device,
                      seconds_since(&one->began));
    return text;
}

static drupe_live_answer show(void *user, drupe_live_reason reason)
{
    building *one = user;
    /* What is over at once, or what somebody only looks at, stays unmentioned. */
    if (!one->shown && reason != DRUPE_LIVE_TIME) return DRUPE_LIVE_SAME;
    drupe_py_bundle bundle = {.text = line_text(one, false), .html = line_text(one, true)};
    int sent = bundle.text == NULL || bundle.html == NULL
                   ? -1
                   : drupe_py_bundle_publish(one->cell, one->display, one->shown, &bundle);
    drupe_py_bundle_clear(&bundle);
    if (sent == 0) one->shown = true;
    return sent == 0 ? DRUPE_LIVE_SHOWN : DRUPE_LIVE_SAME;
}

static void release(void *user)
{
    building *one = user;
    if (atomic_fetch_sub(&one->references, 1) != 1) return;
    kernel_link->cell_release(one->cell);
    free(one);
}

void *drupe_py_building(const drupe_source *source, const char *device)
{
    void *cell = drupe_py_site_cell();
    building *one = cell == NULL ? NULL : calloc(1, sizeof *one);
    if (one == NULL) {
        if (cell != NULL) kernel_link->cell_release(cell);
        return NULL;
    }
    one->cell = cell;
    find_names(source, one->names, sizeof one->names);
    PyOS_snprintf(one->device, sizeof one->device, "%s", device);
    drupe_py_display_id(one->display);
    clock_gettime(CLOCK_MONOTONIC, &one->began);
    atomic_init(&one->references, 2);
    drupe_live_source live = {show, release, one};
    if (drupe_live_open(&live, PERIOD_NS, &one->id) == DRUPE_OK) return one;
    release(one);
    return NULL;
}

void drupe_py_built(void *shown, bool good)
{
    building *one = shown;
    atomic_store(&one->ending, good ? BUILT : FAILED);
    drupe_live_close(one->id);
    release(one);
}

void drupe_py_building_join(const struct drupe_link *link)
{
    kernel_link = link;
}
