/* A line in the cell that waits for a compiler, once that takes longer than half a second.
 *
 * Builds are told by core, on the thread that waits. Some drivers compile once more when a kernel is first
 * launched with a work-group size, in a thread of their own: then nobody waits for a build, and the work just
 * does not begin. So the display of a first launch looks at the work by its number, which keeps nothing
 * alive, and closes itself. */
#include "drupe/trace.h"
#include "drupe_link.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/notebook/notebook_room.h"
#include <ctype.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#define PERIOD_NS     UINT64_C(500000000)
#define ARRAY_MARK    "#define KERNEL " /* of the engine's own programs: kernels/dialect.h */
#define NAMES_MOST    3
#define NAME_MOST     40
#define LAUNCHES_MOST 8 /* that are looked at at a time */

typedef struct building {
    uint64_t id; /* of the live display */
    void *cell;  /* retained */
    char display[DRUPE_PY_DISPLAY_ID];
    char names[192], device[64];
    struct timespec began;
    double took;                  /* seconds; 0: it goes on */
    bool launch, shown, told;     /* told: see drupe_py_live_last() */
    bool behind;                  /* at the last look at a launch other work was in its way */
    uint32_t queue;               /* of a launch: its number */
    _Atomic(uint64_t) submission; /* of a launch; 0: the call has not returned */
    atomic_int ending;            /* of the next enum */
    atomic_int references; /* the builder's and the display's, which may be closed while the build goes on */
} building;

enum { GOES_ON, BUILT, FAILED };

static atomic_int launches; /* displays of them that are open */
static _Thread_local bool quiet;

/* --- What it is called --------------------------------------------------------------------------------- */

static bool is_word(char byte)
{
    return isalnum((unsigned char)byte) || byte == '_';
}

/* The next word behind `*at` that stands in no directive; its length, 0 at the end. */
static size_t next_word(const char *text, size_t size, size_t *at)
{
    bool directive = false;
    for (; *at < size && (directive || !is_word(text[*at])); (*at)++)
        directive = text[*at] != '\n' && (directive || text[*at] == '#');
    size_t length = 0;
    while (*at + length < size && is_word(text[*at + length])) length++;
    return length;
}

static bool word_is(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

static void add_name(drupe_py_strbuf *to, const char *before, const char *name, size_t length)
{
    bool fits = length <= NAME_MOST;
    drupe_py_strbuf_add(to, "%s%.*s%s", before, fits ? (int)length : NAME_MOST - 1, name,
                        fits ? "" : "\u2026");
}

/* "add, scale": what follows "kernel void" in OpenCL C. Comments may deceive it. */
static void find_names(const drupe_source *source, char *names, size_t size)
{
    const char *text = source->bytes;
    drupe_py_strbuf to = {names, size, 0};
    int state = 0, found = 0;
    names[0] = '\0';
    if ((source->language != DRUPE_LANG_OPENCL_C && source->language != DRUPE_LANG_C) || !text) return;
    if (memmem(text, source->size, ARRAY_MARK, strlen(ARRAY_MARK))) {
        drupe_py_strbuf_add(&to, "an array operation");
        return;
    }
    for (size_t at = 0, length; (length = next_word(text, source->size, &at)) > 0; at += length) {
        const char *word = text + at;
        if (word_is(word, length, "kernel") || word_is(word, length, "__kernel")) {
            state = 1;
        } else if (state == 1) {
            state = word_is(word, length, "void") ? 2 : 1;
        } else if (state == 2) {
            state = 0;
            if (found++ < NAMES_MOST) add_name(&to, found > 1 ? ", " : "", word, length);
        }
    }
    if (found > NAMES_MOST) drupe_py_strbuf_add(&to, " and %d more", found - NAMES_MOST);
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
    static const char *const words[2][3][3] = {{{"building ", " for ", " ... "},
                                                {"built ", " for ", " in "},
                                                {"building ", " for ", " failed after "}},
                                               {{"preparing the first launch of ", " on ", " ... "},
                                                {"prepared the first launch of ", " on ", " in "},
                                                {"the first launch of ", " on ", " failed after "}}};
    int ending = atomic_load(&one->ending);
    const char *const *word = words[one->launch][ending];
    const char *names = one->names[0] == '\0' ? "a program" : one->names;
    double seconds = one->took > 0 ? one->took : seconds_since(&one->began);
    char *text = malloc(512);
    /* Names of functions and filters hold nothing that HTML could take for its own. */
    if (text && html)
        PyOS_snprintf(text, 512, "<div style=\"font-size:13px;color:%s\">%s<b>%s</b>%s%s%s%.1f s</div>",
                      ending == FAILED ? "#d62728" : "#8a8a8a", word[0], names, word[1], one->device, word[2],
                      seconds);
    else if (text)
        PyOS_snprintf(text, 512, "%s%s%s%s%s%.1f s", word[0], names, word[1], one->device, word[2], seconds);
    return text;
}

static bool publish(building *one, void *cell)
{
    drupe_py_mime_bundle mime = {.text = line_text(one, false), .html = line_text(one, true)};
    int sent =
        !mime.text || !mime.html ? -1 : drupe_py_mime_bundle_publish(cell, one->display, one->shown, &mime);
    drupe_py_mime_bundle_clear(&mime);
    if (sent == 0) one->shown = true;
    return sent == 0;
}

static drupe_live_answer show(void *user, drupe_live_reason reason)
{
    building *one = user;
    /* What is over at once, or what somebody only looks at, stays unmentioned. */
    if (!one->shown && reason != DRUPE_LIVE_TIME) return DRUPE_LIVE_SAME;
    return publish(one, one->cell) ? DRUPE_LIVE_SHOWN : DRUPE_LIVE_SAME;
}

static void publish_last(void *user, void *cell)
{
    (void)publish(user, cell);
}

static drupe_live_answer show_begun(building *one)
{
    if (!one->shown) return DRUPE_LIVE_OVER;
    if (!one->told) {
        one->took = seconds_since(&one->began);
        if (atomic_load(&one->ending) == GOES_ON) atomic_store(&one->ending, BUILT);
    }
    return drupe_py_live_last(&one->told, one->cell, publish_last, one);
}

static drupe_live_answer show_launch(void *user, drupe_live_reason reason)
{
    building *one = user;
    uint64_t submission = atomic_load(&one->submission);
    if (reason != DRUPE_LIVE_TIME && !one->shown) return DRUPE_LIVE_SAME;
    if (atomic_load(&one->ending) != GOES_ON) return show_begun(one);
    /* Before the call has returned, it is the call that takes so long. */
    drupe_trace_start start =
        submission == 0 ? DRUPE_TRACE_PREPARING : drupe_trace_start_of(one->queue, submission);
    if (start == DRUPE_TRACE_BEGUN) return show_begun(one);
    bool was_behind = one->behind;
    one->behind = start == DRUPE_TRACE_BEHIND;
    if (one->behind) return DRUPE_LIVE_SAME;
    if (was_behind && !one->shown) { /* its time begins now */
        clock_gettime(CLOCK_MONOTONIC, &one->began);
        return DRUPE_LIVE_SAME;
    }
    return publish(one, one->cell) ? DRUPE_LIVE_SHOWN : DRUPE_LIVE_SAME;
}

static void release(void *user)
{
    building *one = user;
    if (atomic_fetch_sub(&one->references, 1) != 1) return;
    if (one->launch) atomic_fetch_sub(&launches, 1);
    drupe_py_link->cell_release(one->cell);
    free(one);
}

/* With two references, one of which is the display's; NULL: nobody is there to see it, or wants to. */
static building *make(const char *device)
{
    void *cell = quiet ? NULL : drupe_py_site_cell();
    building *one = !cell ? NULL : calloc(1, sizeof *one);
    if (!one) {
        if (cell) drupe_py_link->cell_release(cell);
        return NULL;
    }
    one->cell = cell;
    PyOS_snprintf(one->device, sizeof one->device, "%s", device);
    drupe_py_display_id(one->display);
    clock_gettime(CLOCK_MONOTONIC, &one->began);
    atomic_init(&one->references, 2);
    return one;
}

static building *open_display(building *one, drupe_live_answer (*shower)(void *, drupe_live_reason))
{
    drupe_live_source live = {shower, release, one};
    if (drupe_live_open(&live, PERIOD_NS, &one->id) == DRUPE_OK) return one;
    release(one);
    return NULL;
}

void *drupe_py_building(const drupe_source *source, const char *device)
{
    building *one = make(device);
    if (!one) return NULL;
    find_names(source, one->names, sizeof one->names);
    return open_display(one, show);
}

void drupe_py_built(void *shown, bool good)
{
    building *one = shown;
    atomic_store(&one->ending, good ? BUILT : FAILED);
    drupe_live_close(one->id);
    release(one);
}

void *drupe_py_launching(const char *name, const drupe_queue *queue)
{
    if (!drupe_py_link || atomic_load(&launches) >= LAUNCHES_MOST) return NULL;
    building *one = make(drupe_device_filter(drupe_queue_device(queue)));
    if (!one) return NULL;
    drupe_py_strbuf names = {one->names, sizeof one->names, 0};
    one->launch = true;
    one->queue = drupe_queue_number(queue);
    add_name(&names, "", name, strlen(name));
    atomic_fetch_add(&launches, 1);
    return open_display(one, show_launch);
}

void drupe_py_launches_tell(void *cell)
{
    if (atomic_load(&launches) > 0) drupe_py_live_show(cell);
}

void drupe_py_launched(void *shown, const drupe_event *event)
{
    building *one = shown;
    if (event)
        atomic_store(&one->submission, drupe_event_submission(event));
    else
        atomic_store(&one->ending, FAILED);
    release(one);
}

bool drupe_py_building_quiet(bool on)
{
    bool before = quiet;
    quiet = on;
    return before;
}
