/* The link between the Jupyter kernel and the device engine: the only thing they share.
 *
 * The kernel (jkernel/pyexec) publishes one drupe_link in the capsule DRUPE_LINK_CAPSULE; the engine's
 * extension (engine/python) looks for it when it is imported and works without it when there is no kernel.
 * Frozen: fields are only ever added at the end; `size` tells how many there are. Every function may be
 * called from any thread and without the GIL unless said otherwise, and none of them blocks on Python. */
#ifndef DRUPE_LINK_H
#define DRUPE_LINK_H

#include <stddef.h>
#include <stdint.h>

#define DRUPE_LINK_CAPSULE "drupe._jkernel.link"
#define DRUPE_LINK_VERSION 1u

/* Whether a kernel's table (which may be NULL) has this function: an older one ends earlier. */
#define DRUPE_LINK_HAS(link, field)                                                                          \
    ((link) != NULL && (link)->size >= offsetof(drupe_link, field) + sizeof(link)->field &&                  \
     (link)->field != NULL)

/* The arguments of a debug_request. */
typedef struct drupe_link_request {
    const void *arguments; /* the kernel's */
    /* Whether there is one of that name, of any type. */
    int (*has)(const void *arguments, const char *name);
    int64_t (*number)(const void *arguments, const char *name, int64_t otherwise);
    const char *(*word)(const void *arguments, const char *name, const char *otherwise);
} drupe_link_request;

typedef struct drupe_link {
    uint32_t size;    /* sizeof(drupe_link) of the kernel that made it */
    uint32_t version; /* DRUPE_LINK_VERSION; a change of meaning raises it, an added field does not */

    /* The cell the calling thread works for, as a new reference; NULL outside of a cell. */
    void *(*cell_retain)(void);
    /* Drop a reference. NULL is allowed. */
    void (*cell_release)(void *cell);

    /* Publish a message of `msg_type` with a JSON object as content to the front-end, as an output of `cell`
     * (borrowed), also after that cell has ended. Returns 0, or -1 when the kernel is going down. */
    int (*publish)(void *cell, const char *msg_type, const char *content, size_t size);

    /* Register `check`, called on the thread that runs the cell, with the GIL held, after the code of each
     * cell and before its reply. Returning -1 with a Python exception set fails the cell with that exception.
     * If the exception has `_shown_in`, the cell of that number shows it in full and this one shows one line.
     * One check may be registered; NULL removes it. */
    void (*set_cell_check)(int (*check)(void *user), void *user);

    /* Register `claim`, called from the kernel's fatal-signal handler on the faulting thread: return 1 to
     * take the fault over and have the thread parked, 2 to have the handler return, to where `ucontext` says
     * by then, 0 to leave it to the crash report. Must be async-signal-safe, and may run on several threads
     * at once. One claim may be registered; NULL removes it. `signal` is SIGSEGV, SIGBUS, SIGFPE, SIGILL or
     * SIGABRT. The kernel's handlers are installed once, before anything else: a driver that installs its own
     * later is left in front of them and must pass on what is not its own, and one that was there before is
     * called after the report. The field itself is NULL in a kernel that installs no fatal-signal handler; a
     * build with a sanitizer never calls the claim. */
    void (*set_fault_claim)(int (*claim)(int signal, void *siginfo, void *ucontext));

    /* Register `notes`, called while a crash is reported, on the faulting thread: write at most `size` bytes
     * of UTF-8 text about the last device operations into `text` and return how many. Must be
     * async-signal-safe. One may be registered; NULL removes it. */
    void (*set_crash_notes)(size_t (*notes)(char *text, size_t size));

    /* Register `usage`, called for a usage_request on a thread of the kernel, without the GIL: write a JSON
     * array with one object per opened device ("name", "backend", "memory_used", "memory_total", in bytes)
     * into `json`, at most `size` bytes and not NUL-ended, and return how many; 0 when it does not fit or
     * nothing is open. Must not block. One may be registered; NULL removes it. */
    void (*set_usage)(size_t (*usage)(char *json, size_t size));

    /* The number by which its user knows a cell (borrowed), In[number]; 0 when it has none. Never blocks. */
    uint32_t (*cell_number)(void *cell);
    /* Another reference to a cell (borrowed). */
    void *(*cell_share)(void *cell);
    /* The number of the cell whose code was compiled under this file name, the latest if there are several; 0
     * when it is no cell's, or one of long ago. Needs the GIL. */
    uint32_t (*file_cell)(const char *name, size_t size);
    /* Whether the cell (borrowed) still runs: its reply has not been made. */
    int (*cell_running)(void *cell);
    /* Append a line to the kernel's log (DRUPE_LOG); without a log nothing happens. */
    void (*log)(const char *line);

    /* Register `watch`, called on the thread that runs a cell when its code is about to run (began != 0) and
     * after it has ended, before its reply. Holds no lock, may hold the GIL; must not block. One may be
     * registered; NULL removes it. */
    void (*set_cell_watch)(void (*watch)(void *cell, int began));
    /* Register `answer`, called for each debug_request whose command begins with "drupe/", on the kernel's
     * control thread, whatever Python does. `number` and `word` look up the request's arguments: `otherwise`
     * when there is none of that name and type; words live until `answer` returns. Writes the reply's body, a
     * JSON object, to `*json` (allocated with malloc, *taken* by the kernel) and returns its size, or 0 with
     * `*json` an error text of the same ownership, or NULL. One may be registered; NULL removes it. */
    void (*set_answer)(size_t (*answer)(const char *command, const drupe_link_request *request, char **json));
    /* Text that arrives on descriptor 1 of the process from now on belongs to `cell` (borrowed; NULL: to the
     * cell that runs, as at first). What has arrived so far goes to whom it belonged. */
    void (*text_cell)(void *cell);
    /* Keep these lines of UTF-8 (a thousand bytes at most, the rest is cut) in place of the last ones: if the
     * process is killed, the kernel that comes after it tells them as its last device operations. One thread
     * at a time; no system call. */
    void (*keep_notes)(const char *text, size_t size);
    /* exit() was called, and one of its handlers is about to end the process ahead of the kernel's own: the
     * cell is told as that would. What is left of exit() has a second from here on. */
    void (*exiting)(int status);
    /* Work of devices goes on, or is over; whether a cell runs does not matter. A kernel that is ended when it is
     * idle says `busy` meanwhile. Returns whether this one wants to know, which does not change. */
    int (*device_work)(int goes_on);
} drupe_link;

#endif
