/* The CPython executor (executor.h) and the Python types of the module `_jkernel`.
 *
 * The division of labour: C holds what must not depend on Python's mood (the server's life, signals, the
 * stream fast path, the link to the engine); the package drupe.jupyter does what IPython does.
 *
 * There is one kernel per process, so its state (pyexec_kernel.c, at the bottom of the room) is process-wide;
 * the Python types live in the module state. Unless said otherwise a function needs the GIL, and returns -1
 * or NULL with an exception set.
 *
 * Locks: workers.lock (pyexec_worker.c); the two of pyexec_link.c, of which answer_mutex is held while the
 * engine answers. Threads: workers (pyexec_worker.c). */
#ifndef JK_PYEXEC_H
#define JK_PYEXEC_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "jkernel/executor.h"

#include <pthread.h>
#include <signal.h>

/* --- The one kernel of the process (pyexec_kernel.c): no GIL needed ------------------------------------ */

/* Open the server on `connection_file`, with the calling thread as the one that interrupts aim at. Returns 0,
 * or -1 with one line of what to do in `problem`. */
int jk_kernel_open(const char *connection_file, const jk_executor *executor, char *problem,
                   size_t problem_size);
bool jk_kernel_is_open(void);

/* Refuse new users, wait for those inside (1 s at most), close the server. Does nothing when it is not open.
 */
void jk_kernel_close(void);

/* The open server, or NULL. Every non-NULL answer is paired with jk_kernel_leave(), which keeps
 * jk_kernel_close() from freeing the server under a thread that is inside one of its functions. */
jk_server *jk_kernel_enter(void);
void jk_kernel_leave(void);

/* The thread that interrupts aim at. */
pthread_t jk_kernel_main_thread(void);

/* The kernel must end. */
void jk_kernel_note_shutdown(bool restart);
/* 0: go on; 1: the kernel must end; 2: the same, for a restart. */
int jk_kernel_shutdown_state(void);

/* --- The executor (pyexec_executor.c): no GIL needed --------------------------------------------------- */

/* Open the kernel with Python as executor. `info` is the language's part of kernel_info_reply
 * (executor_table.h), which is copied; the features that it names are switched on. Returns as
 * jk_kernel_open(). */
int jk_executor_open(const char *connection_file, const char *info, char *problem, size_t problem_size);
/* That `info`. Lives as long as the process. */
const char *jk_executor_info(void);

typedef struct jk_state jk_state;

/* --- Workers (pyexec_worker.c): C threads that serve a subshell in Python; no GIL needed ---------------- */

/* executor.subshell_open and executor.debugger_open: a thread for drupe.jupyter.subshells.serve(),
 * drupe.jupyter.debugger.serve(). All signals but those of a fault are blocked in it. The function is called
 * once jk_workers_open() was. */
int jk_workers_subshell_open(void *self, jk_subshell *subshell);
int jk_workers_debugger_open(void *self, jk_subshell *subshell);
/* Python: the shell stands, workers may run. */
PyObject *jk_workers_open(PyObject *module, PyObject *unused);
/* Python: refuse new ones, end their subshells, wait for them so many ms. Whether all have ended; if not, the
 * process must end without finalizing Python. */
PyObject *jk_workers_close(PyObject *module, PyObject *timeout_ms);

/* --- Signals (pyexec_signals.c) ------------------------------------------------------------------------ */

/* Ignore SIGINT: from the binding of the sockets until Python's handler stands. */
void jk_sigint_ignore(void);
/* executor.interrupt. The server signals the child processes itself. */
void jk_sigint_send(void *self);
/* Python: put our handler in front of Python's, which is installed now. Main thread. */
PyObject *jk_sigint_adopt(PyObject *module, PyObject *unused);
#define JK_SIGINT_CAME  1 /* a signal */
#define JK_SIGINT_AGAIN 2 /* jk_sigint_again() */
/* Python: the Python-level handler runs, no more nudges. Why, JK_SIGINT_ values. Main thread. */
PyObject *jk_sigint_seen(PyObject *module, PyObject *unused);
/* Python: have it run once more in a millisecond. False when there is no timer. Main thread. */
PyObject *jk_sigint_again(PyObject *module, PyObject *unused);
/* Python: put ours back when something else has taken SIGINT or blocked it on this thread; whether it had. */
PyObject *jk_sigint_reassert(PyObject *module, PyObject *unused);

/* --- Interrupts that a cell survives (holding.c) ------------------------------------------------------- */

/* Prepare for jk_holding(). Main thread, at the start. */
void jk_holding_install(void);
/* executor.holding. */
size_t jk_holding(void *self, char *text, size_t size);
/* SIGINT's handler: whether this one only asks what the thread is doing. It is noted then. Async-signal-safe.
 */
int jk_holding_asked(const siginfo_t *info, const void *ucontext);

/* --- Names of cells (pyexec_cells.c) ------------------------------------------------------------------- */

/* Code was compiled under this file name for In[number], or for no cell that has a number: 0. The last 64 are
 * known. Needs the GIL. */
void jk_cells_note(const char *name, size_t size, uint32_t number);
/* The number noted last for a file name, or 0. Needs the GIL; a crash report and jk_holding() read without.
 */
uint32_t jk_cells_number(const char *name, size_t size);

/* --- Crashes (pyexec_crash.c) -------------------------------------------------------------------------- */

/* Have crashes reported (jk_server_report_crashes()), with the Python traceback of the thread. Does what can
 * be done and never fails. Main thread. */
void jk_crash_install(jk_server *server);
/* Of what faulthandler has written about a thread: the innermost frame and, where that is not of a cell, the
 * innermost one of a cell, as half a line of at most `size` bytes. Returns how many, 0 when no code of a cell
 * is running. No GIL. */
size_t jk_crash_innermost(const char *raw, size_t raw_size, char *text, size_t size);

/* --- The link (pyexec_link.c) -------------------------------------------------------------------------- */

/* A new capsule DRUPE_LINK_CAPSULE; `cell_var` holds the Parent (of `parent_type`) that a Python thread works
 * for. Both are retained until jk_link_clear(). */
PyObject *jk_link_capsule(PyObject *cell_var, PyTypeObject *parent_type);
/* Forget the variable and the check: the module goes away. */
void jk_link_clear(void);
/* The claim and the notes that the engine has registered: for the crash report. Async-signal-safe. */
int jk_link_claim(int signal, void *siginfo, void *ucontext);
size_t jk_link_notes(char *text, size_t size);
/* executor.answer and executor.devices, by the functions that the engine has registered. */
size_t jk_link_answer(void *self, const char *command, const jk_arguments *arguments, char **json);
size_t jk_link_usage(void *self, char *json, size_t size);
/* note_cell(name, number): the file name that the code of In[number], which is about to run, was compiled
 * under. The calling thread's cell has that number from now on, unless it has one already. */
PyObject *jk_link_note_cell(PyObject *module, PyObject *arguments);
/* note_lease(text): the answer to "drupe/lease", a JSON object; None: there is no lease. */
PyObject *jk_link_note_lease(PyObject *module, PyObject *text);
/* Python: the code of the calling thread's cell has ended. Run the registered cell check, if any, on the
 * thread that runs the cell. */
PyObject *jk_link_run_check(PyObject *module, PyObject *unused);

/* --- Module state and types ---------------------------------------------------------------------------- */

struct jk_state {
    PyTypeObject *request_type;
    PyTypeObject *parent_type;
    PyTypeObject *subshell_type;
    PyObject *cell_var; /* ContextVar: the Parent whose cell this thread or task works for */
};

/* Module slots, called by jkernel/main/jkernel_module.c. */
int jk_state_exec(PyObject *module);
int jk_state_traverse(PyObject *module, visitproc visit, void *arg);
int jk_state_clear(PyObject *module);
void jk_state_free(void *module);

/* A function in a slot table: CPython keeps both kinds of pointer in one `void *`, which ISO C does not know.
 */
#define JK_SLOT(function) (__extension__(void *)(function))

/* A Parent: the cell (or other request) that outputs belong to. */
typedef struct jk_parent_object {
    PyObject ob_base;
    jk_parent *parent; /* retained, may be NULL: no parent */
    PyObject *message; /* whatever Python keeps with it; None at first */
    PyObject *cell;    /* the cell.Cell that runs for it; None when none does */
} jk_parent_object;

/* A new Parent around `parent` (borrowed; retained by the object). */
PyObject *jk_parent_object_new(jk_state *state, jk_parent *parent);
/* The Parent of the calling thread or task as a new reference, or NULL *without* an exception. Anything else
 * that was put into the variable is ignored. (pyexec_link.c) */
jk_parent_object *jk_parent_object_current(void);

/* A new Subshell. */
PyObject *jk_subshell_object_new(jk_state *state, jk_subshell *subshell);

/* A new Request that owns `request` (*taken*, also on failure). */
PyObject *jk_request_object_new(jk_state *state, jk_request *request);
/* The request inside, borrowed, or NULL with ValueError when it was replied to already. */
jk_request *jk_request_object_get(PyObject *object);

/* Type specifications, made into types by jk_state_exec(). */
extern PyType_Spec jk_server_spec;
extern PyType_Spec jk_request_spec;
extern PyType_Spec jk_parent_spec;
extern PyType_Spec jk_stream_spec;
extern PyType_Spec jk_subshell_spec;

/* From this many bytes on, text is handed over without the GIL. Below, releasing it would cost a writer a
 * whole switch interval whenever another thread computes. */
#define JK_GIL_RELEASE_SIZE (64 * 1024)

#endif
