/* The Python traceback of a crashed thread, by faulthandler: it alone can walk the frames without the GIL and
 * inside a signal handler.
 *
 * Its handler writes to a descriptor, restores the handler that was there before and raises the signal again.
 * So ours is installed first, then faulthandler is enabled on a memory file, its handler is remembered, and
 * ours is put in front. In a crash ours calls faulthandler's as if it were a function, and swallows the
 * signal that it raises at its end. When a cell calls faulthandler.enable(file) itself, the traceback goes to
 * that file and not into the report; after faulthandler.disable() the report has no traceback. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "jkernel/pyexec/pyexec.h"

#define RAW_ROOM    (96u << 10)
#define FRAMES_MOST 100

static const char frame_start[] = "  File \"";

static struct {
    int fd;
    void (*handlers[NSIG])(int signal); /* faulthandler's */
} tracer = {.fd = -1};

static void trace(int signal)
{
    if (tracer.handlers[signal]) tracer.handlers[signal](signal);
}

/* --- Making it readable: most recent call last, without the kernel's own frames ----------------------------
 */

typedef struct lines {
    struct {
        const char *text;
        size_t size;
    } items[FRAMES_MOST];
    int count;
    bool cut; /* frames are missing at the outer end */
} lines;

static bool has(const char *text, size_t size, const char *what)
{
    return text &&
           memmem(text, size, what, strlen(what)) != NULL; /* gcc asks for the first under sanitizers */
}

/* Where the cell's code was started: from here outwards the frames are IPython's and ours. */
static bool is_start(const char *text, size_t size)
{
    return has(text, size, "/IPython/core/interactiveshell.py\"") && has(text, size, " in run_code");
}

static void lines_split(const char *text, size_t size, lines *found)
{
    const char *end = text + size;
    for (const char *line = text; line < end && found->count < FRAMES_MOST;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop) break;
        size_t length = (size_t)(stop - line);
        bool frame = length > sizeof frame_start && memcmp(line, frame_start, sizeof frame_start - 1) == 0;
        if (frame && is_start(line, length)) return;
        if (frame) {
            found->items[found->count].text = line;
            found->items[found->count++].size = length;
        } else if (length == 5 && memcmp(line, "  ...", 5) == 0) {
            found->cut = true;
        } else if (found->count > 0) {
            return; /* what follows the stack is no part of it */
        }
        line = stop + 1;
    }
}

typedef struct output {
    char *text;
    size_t size, room;
} output;

static void put(output *to, const char *text, size_t size)
{
    if (size > to->room - to->size) size = to->room - to->size;
    memcpy(to->text + to->size, text, size);
    to->size += size;
}

static void put_text(output *to, const char *text)
{
    put(to, text, strlen(text));
}

/* `  File "/tmp/x/123.py", line 2 in f` becomes `  Cell In[3], line 2, in f`. */
static void put_frame(output *to, const char *text, size_t size)
{
    const char *name = text + sizeof frame_start - 1, *end = text + size;
    const char *line = memmem(name, (size_t)(end - name), "\", line ", 8);
    const char *where = line ? memmem(line, (size_t)(end - line), " in ", 4) : NULL;
    if (!where) {
        put(to, text, size);
        put_text(to, "\n");
        return;
    }
    char label[40];
    unsigned number = jk_cells_number(name, (size_t)(line - name));
    if (number > 0) {
        snprintf(label, sizeof label, "  Cell In[%u]", number);
        put_text(to, label);
        line++;
    } else {
        put(to, text, (size_t)(line - text));
    }
    put(to, line, (size_t)(where - line));
    put_text(to, ",");
    put(to, where, (size_t)(end - where));
    put_text(to, "\n");
}

/* Without the indent and the end of the line. */
static void put_frame_inline(output *to, const char *text, size_t size)
{
    char line[256];
    output one = {line, 0, sizeof line};
    put_frame(&one, text, size);
    size_t length = one.size - (one.text[one.size - 1] == '\n');
    if (length > 2) put(to, line + 2, length - 2);
}

static bool frame_is_cell(const char *text, size_t size)
{
    const char *name = text + sizeof frame_start - 1;
    const char *line = memmem(name, size - (sizeof frame_start - 1), "\", line ", 8);
    return line && jk_cells_number(name, (size_t)(line - name)) > 0;
}

size_t jk_crash_innermost(const char *raw, size_t raw_size, char *text, size_t size)
{
    output to = {text, 0, size};
    lines found = {0};
    lines_split(raw, raw_size, &found);
    int cell = 0;
    while (cell < found.count && !frame_is_cell(found.items[cell].text, found.items[cell].size)) cell++;
    if (cell == found.count) return 0;
    if (cell > 0) {
        put_frame_inline(&to, found.items[0].text, found.items[0].size);
        put_text(&to, ", called from ");
    }
    put_frame_inline(&to, found.items[cell].text, found.items[cell].size);
    return to.size;
}

static size_t traced(char *text, size_t size)
{
    static char raw[RAW_ROOM];
    static lines found;
    output to = {text, 0, size};
    ssize_t got = tracer.fd < 0 ? -1 : pread(tracer.fd, raw, sizeof raw - 1, 0);
    if (got <= 0) return 0;
    lines_split(raw, (size_t)got, &found);
    if (found.count == 0) return 0;
    put_text(&to, "Traceback (most recent call last):\n");
    if (found.cut) put_text(&to, "  ...\n");
    /* The innermost frames matter most: what does not fit is left out at the outer end. */
    size_t need = 0;
    int first = 0;
    while (first < found.count && need + found.items[first].size + 2 < size / 2) {
        need += found.items[first++].size + 2;
    }
    if (first < found.count) put_text(&to, "  ...\n");
    while (first > 0) {
        first--;
        put_frame(&to, found.items[first].text, found.items[first].size);
    }
    return to.size;
}

static const jk_crash_hooks hooks = {
    .claim = jk_link_claim,
    .trace = trace,
    .traced = traced,
    .notes = jk_link_notes,
};

/* --- Installation -----------------------------------------------------------------------------------------
 */

static int faulthandler_enable(PyObject *module)
{
#if PY_VERSION_HEX >= 0x030E0000
    /* file, all_threads, c_stack */
    PyObject *done = PyObject_CallMethod(module, "enable", "iOO", tracer.fd, Py_False, Py_False);
#else
    PyObject *done = PyObject_CallMethod(module, "enable", "iO", tracer.fd, Py_False);
#endif
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Enable faulthandler on our file and remember its handlers. */
static int faulthandler_take(PyObject *module)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    if (faulthandler_enable(module) < 0) return -1;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction now;
        if (sigaction(signals[i], NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO)) {
            tracer.handlers[signals[i]] = now.sa_handler;
        }
    }
    return 0;
}

void jk_crash_install(jk_server *server)
{
    if (jk_server_report_crashes(server, &hooks) != 0) return;
    PyObject *module = PyImport_ImportModule("faulthandler");
    /* One that was enabled from outside has other handlers than ours behind it. */
    PyObject *disabled = module ? PyObject_CallMethod(module, "disable", NULL) : NULL;
    int failed = !disabled;
    Py_XDECREF(disabled);
    jk_server_report_crashes(server, &hooks);
    tracer.fd = memfd_create("drupe-traceback", MFD_CLOEXEC);
    if (!failed && tracer.fd >= 0) failed = faulthandler_take(module) < 0;
    Py_XDECREF(module);
    jk_server_report_crashes(server, &hooks);
    if (failed) PyErr_Clear(); /* a report without a traceback */
}
