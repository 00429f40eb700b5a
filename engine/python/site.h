/* Places in Python programs by a small number, which travels with a submission. */
#ifndef DRUPE_PYTHON_SITE_H
#define DRUPE_PYTHON_SITE_H

#include "state.h"

/* The frame of Python code that the calling thread runs, or NULL. Needs the GIL. */
static inline struct _PyInterpreterFrame *drupe_py_frame(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_Get()->current_frame;
#else
    return PyThreadState_Get()->cframe->current_frame;
#endif
}
/* The place that the calling thread's Python code is at, this package's own code left out; 0: none. Needs the
 * GIL. */
uint32_t drupe_py_site(void);
/* drupe_py_stack_depth() of the instruction that the calling thread's Python code is at. Needs the GIL. */
int drupe_py_site_depth(void);
/* For core, which asks where a submission without a site comes from: as above, and without the GIL what
 * drupe_py_site_leave() has noted on this thread. */
uint32_t drupe_py_site_ask(void);
/* PyEval_SaveThread() and PyEval_RestoreThread() around a stretch that may submit: the place and the cell are
 * noted before. */
PyThreadState *drupe_py_site_leave(void);
void drupe_py_site_return(PyThreadState *thread);

/* Where a submission came from, of a place and the number of the cell that it was submitted for: "cell [3],
 * line 7", "cell [3], line 10 of tools.py" and so on; what is not known is left out, and the oldest of many
 * places are forgotten. At most `size` bytes with the NUL; returns the length. Any thread, without the GIL,
 * async-signal-safe. */
size_t drupe_py_site_text(uint32_t site, uint32_t cell, char *text, size_t size);
/* The same in parts, of code that is known; false when it is not. As above. */
typedef struct drupe_py_spot {
    int line;
    uint32_t cell; /* whose code it is, 0: no cell's */
    char file[40]; /* the last part of the name, cut to fit */
} drupe_py_spot;
bool drupe_py_site_spot(uint32_t site, drupe_py_spot *place);
/* The number of the latest place. Needs the GIL. */
uint32_t drupe_py_site_latest(void);
/* Its code object (a new reference) and its offset, or NULL without an exception. Needs the GIL. */
PyCodeObject *drupe_py_site_code(uint32_t site, int *offset);

/* The cell of this thread, retained, or NULL: for core, which asks at every submission. */
void *drupe_py_site_cell(void);
/* The kernel that knows the cells; borrowed for good. */
struct drupe_link;
void drupe_py_site_link(const struct drupe_link *link);
/* What the module's own code is; 0, or -1 with an exception. */
int drupe_py_site_init(PyObject *module);
/* Drop all code objects: the interpreter ends. */
void drupe_py_site_clear(void);

#endif
