/* Where submissions come from, at the price of a look into a table.
 *
 * A place is a code object and an offset; the line is worked out only when somebody wants to see it. Places
 * are numbered as they come, and the table holds the latest, with a reference to each code object. A hash of
 * four slots a bucket finds the number of a location that was seen before; a stale slot is recognised by its
 * number, so nothing has to be removed from it.
 *
 * The table changes under the GIL. Lines are also asked for by threads without it and in signal handlers:
 * `lock` keeps a code object from going away meanwhile, and is only ever tried there. */
#include "drupe_link.h"
#include "engine/python/errors/errors_room.h"
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#if PY_VERSION_HEX < 0x030C0000
/* Before 3.12 there is no other way to the running frame but to have an object made of it. */
#define Py_BUILD_CORE 1
#include "internal/pycore_frame.h"
#undef Py_BUILD_CORE
#endif

#define SITES_MOST 2048u /* powers of two */
#define HASH_SIZE  4096u
#define BUCKET     4u
#define LOCK_TRIES 1000
#define NOT_ASKED  INT_MIN

typedef struct site {
    uint32_t number; /* 0: free */
    int offset;
    PyCodeObject *code;
    bool own;                                           /* in this package: the caller is meant */
    uint32_t cell;                                      /* whose code it is, 0: no cell's */
    int depth;                                          /* see drupe_py_site_depth(); NOT_ASKED */
    int line;                                           /* NOT_ASKED */
    char file[sizeof((drupe_py_location *)NULL)->file]; /* the last part of the name */
} site;

static struct {
    pthread_mutex_t lock;
    site sites[SITES_MOST];   /* by number */
    uint32_t hash[HASH_SIZE]; /* numbers */
    uint32_t last_number;
    uint32_t latest;      /* in `sites`: what was found last, since most loops submit from one line */
    PyObject *own_folder; /* str */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER}; /* else zero, so that the program file does not hold it */
const drupe_link *drupe_py_link;
/* Of a stretch without the GIL. */
static _Thread_local struct {
    uint32_t site;
    void *cell; /* retained, or NULL */
} left;

static site *site_of(uint32_t number)
{
    site *found = &table.sites[number % SITES_MOST];
    return number != 0 && found->number == number ? found : NULL;
}

/* --- Interning ----------------------------------------------------------------------------------------- */

static uint32_t *bucket_of(const PyCodeObject *code, int offset)
{
    uint64_t key = (uint64_t)(uintptr_t)code ^ (uint64_t)(uint32_t)offset << 40;
    return &table.hash[(size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 52) & (HASH_SIZE - BUCKET)];
}

static bool is_own(const PyCodeObject *code)
{
    if (!table.own_folder) return false;
    return PyUnicode_Tailmatch(code->co_filename, table.own_folder, 0, PY_SSIZE_T_MAX, -1) == 1;
}

static void file_note(site *fresh)
{
    Py_ssize_t size = 0;
    const char *name = PyUnicode_AsUTF8AndSize(fresh->code->co_filename, &size);
    if (!name) {
        PyErr_Clear();
        return;
    }
    if (DRUPE_LINK_HAS(drupe_py_link, file_cell)) fresh->cell = drupe_py_link->file_cell(name, (size_t)size);
    const char *slash = strrchr(name, '/');
    PyOS_snprintf(fresh->file, sizeof fresh->file, "%s", !slash ? name : slash + 1);
}

static site *site_add(PyCodeObject *code, int offset, uint32_t *bucket)
{
    uint32_t number = ++table.last_number;
    if (number == 0) number = ++table.last_number;
    site *location = &table.sites[number % SITES_MOST];
    site fresh = {
        .number = number, .offset = offset, .own = is_own(code), .depth = NOT_ASKED, .line = NOT_ASKED};
    fresh.code = (PyCodeObject *)Py_NewRef((PyObject *)code);
    file_note(&fresh);
    pthread_mutex_lock(&table.lock);
    PyCodeObject *old = location->code;
    *location = fresh;
    pthread_mutex_unlock(&table.lock);
    unsigned slot = number % BUCKET;
    for (unsigned i = BUCKET; i-- > 0;)
        if (!site_of(bucket[i])) slot = i;
    bucket[slot] = number;
    Py_XDECREF(old);
    return location;
}

static site *site_search(PyCodeObject *code, int offset, uint32_t *bucket)
{
    for (unsigned i = 0; i < BUCKET; i++) {
        site *seen = site_of(bucket[i]);
        if (seen && seen->code == code && seen->offset == offset) return seen;
    }
    return site_add(code, offset, bucket);
}

static inline site *site_intern(PyCodeObject *code, int offset)
{
    site *found = &table.sites[table.latest];
    if (found->code == code && found->offset == offset) return found;
    found = site_search(code, offset, bucket_of(code, offset));
    table.latest = (uint32_t)(found - table.sites);
    return found;
}

/* The nearest caller outside of this package, through frame objects: slow, and rare. */
static uint32_t site_of_caller(void)
{
    uint32_t number = 0;
    PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
    while (frame && number == 0) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        int offset = PyFrame_GetLasti(frame);
        const site *found = offset < 0 ? NULL : site_intern(code, offset);
        if (found && !found->own) number = found->number;
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(code);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return number;
}

#if PY_VERSION_HEX >= 0x030C0000
static PyObject *running(int *offset)
{
    struct _PyInterpreterFrame *frame = drupe_py_frame();
    if (!frame) return NULL;
    *offset = PyUnstable_InterpreterFrame_GetLasti(frame);
    return PyUnstable_InterpreterFrame_GetCode(frame);
}
#else
static PyObject *running(int *offset)
{
    const _PyInterpreterFrame *frame = drupe_py_frame();
    if (!frame) return NULL;
    *offset = _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);
    return Py_NewRef((PyObject *)frame->f_code);
}
#endif

uint32_t drupe_py_site(void)
{
    int offset = -1;
    PyObject *code = running(&offset);
    if (!code) return 0;
    uint32_t number = 0;
    if (PyCode_Check(code) && offset >= 0) {
        const site *found = site_intern((PyCodeObject *)code, offset);
        number = found->own ? site_of_caller() : found->number;
    }
    Py_DECREF(code);
    return number;
}

int drupe_py_site_depth(void)
{
    int offset = -1, depth = -1;
    PyObject *code = running(&offset);
    if (code && PyCode_Check(code) && offset >= 0) {
        site *found = site_intern((PyCodeObject *)code, offset);
        depth = found->depth;
        if (depth == NOT_ASKED) {
            depth = drupe_py_stack_depth(found->code, offset);
            pthread_mutex_lock(&table.lock); /* the whole place is copied elsewhere */
            found->depth = depth;
            pthread_mutex_unlock(&table.lock);
        }
    }
    Py_XDECREF(code);
    return depth;
}

uint32_t drupe_py_site_ask(void)
{
    return PyGILState_Check() ? drupe_py_site() : left.site;
}

PyThreadState *drupe_py_site_leave(void)
{
    left.site = drupe_py_site();
    left.cell = !drupe_py_link ? NULL : drupe_py_link->cell_retain();
    drupe_park_hold(); /* while other threads run Python, which may park */
    return PyEval_SaveThread();
}

void drupe_py_site_return(PyThreadState *thread)
{
    PyEval_RestoreThread(thread);
    drupe_park_let_go();
    left.site = 0;
    if (left.cell) drupe_py_link->cell_release(left.cell);
    left.cell = NULL;
}

void *drupe_py_site_cell(void)
{
    if (!drupe_py_link) return NULL;
    if (left.cell && DRUPE_LINK_HAS(drupe_py_link, cell_share)) return drupe_py_link->cell_share(left.cell);
    return drupe_py_link->cell_retain();
}

/* --- Looking ------------------------------------------------------------------------------------------- */

/* A copy of the location without its code, and its line; 0 when it is not known. */
static int site_look(uint32_t number, site *copy)
{
    int tries = 0, line = 0;
    *copy = (site){.number = 0};
    while (pthread_mutex_trylock(&table.lock) != 0) {
        if (++tries > LOCK_TRIES) return 0;
        (void)sched_yield();
    }
    site *found = site_of(number);
    if (found) {
        if (found->line == NOT_ASKED) found->line = PyCode_Addr2Line(found->code, found->offset);
        line = found->line;
        *copy = *found;
        copy->code = NULL;
    }
    pthread_mutex_unlock(&table.lock);
    return line > 0 ? line : 0;
}

static void put_number(drupe_py_strbuf *to, unsigned number)
{
    char digits[12];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    drupe_py_strbuf_put(to, digits + at);
}

static void put_cell(drupe_py_strbuf *to, uint32_t cell)
{
    drupe_py_strbuf_put(to, "cell [");
    put_number(to, cell);
    drupe_py_strbuf_put(to, "]");
}

size_t drupe_py_site_text(uint32_t number, uint32_t cell, char *text, size_t size)
{
    site location;
    drupe_py_strbuf to = {text, size, 0};
    if (size == 0) return 0;
    text[0] = '\0';
    int at = site_look(number, &location);
    if (cell == 0) cell = location.cell;
    if (cell != 0) put_cell(&to, cell);
    if (at == 0) return to.used;
    drupe_py_strbuf_put(&to, to.used > 0 ? ", line " : "line ");
    put_number(&to, (unsigned)at);
    if (cell != 0 && location.cell == cell) return to.used;
    drupe_py_strbuf_put(&to, " of ");
    if (location.cell != 0)
        put_cell(&to, location.cell);
    else
        drupe_py_strbuf_put(&to, location.file);
    return to.used;
}

bool drupe_py_site_location(uint32_t number, drupe_py_location *location)
{
    site found;
    *location = (drupe_py_location){.line = site_look(number, &found)};
    if (location->line == 0) return false;
    location->cell = found.cell;
    memcpy(location->file, found.file, sizeof location->file);
    return true;
}

uint32_t drupe_py_site_latest(void)
{
    return table.last_number;
}

static PyObject *file_cell(PyObject *module, PyObject *file)
{
    (void)module;
    Py_ssize_t size = 0;
    const char *name = PyUnicode_AsUTF8AndSize(file, &size);
    if (!name) return NULL;
    bool known = DRUPE_LINK_HAS(drupe_py_link, file_cell);
    return PyLong_FromUnsignedLong(known ? drupe_py_link->file_cell(name, (size_t)size) : 0);
}

PyMethodDef drupe_py_site_functions[] = {
    {"_file_cell", file_cell, METH_O,
     PyDoc_STR(
         "_file_cell(name)\n--\n\nThe number of the cell that was compiled under this file name, or 0.")},
    {NULL, NULL, 0, NULL},
};

PyCodeObject *drupe_py_site_code(uint32_t number, int *offset)
{
    const site *found = site_of(number);
    if (!found) return NULL;
    *offset = found->offset;
    return (PyCodeObject *)Py_NewRef((PyObject *)found->code);
}

PyObject *drupe_py_site_file(uint32_t number, int *line)
{
    int offset = 0;
    PyCodeObject *code = drupe_py_site_code(number, &offset);
    *line = !code ? 0 : PyCode_Addr2Line(code, offset);
    if (*line < 0) *line = 0;
    PyObject *file = Py_NewRef(!code ? Py_None : code->co_filename);
    Py_XDECREF((PyObject *)code);
    return file;
}

/* --- Life ---------------------------------------------------------------------------------------------- */

int drupe_py_site_init(PyObject *module)
{
    PyObject *file = PyModule_GetFilenameObject(module);
    if (!file) return -1;
    Py_ssize_t slash = PyUnicode_FindChar(file, '/', 0, PyUnicode_GET_LENGTH(file), -1);
    PyObject *folder = slash < 0 ? NULL : PyUnicode_Substring(file, 0, slash + 1);
    Py_DECREF(file);
    if (slash >= 0 && !folder) return -1;
    Py_XSETREF(table.own_folder, folder);
    return 0;
}

void drupe_py_site_clear(void)
{
    for (size_t i = 0; i < SITES_MOST; i++) {
        pthread_mutex_lock(&table.lock);
        PyCodeObject *code = table.sites[i].code;
        table.sites[i] = (site){.number = 0};
        pthread_mutex_unlock(&table.lock);
        Py_XDECREF(code);
    }
    Py_CLEAR(table.own_folder);
}
