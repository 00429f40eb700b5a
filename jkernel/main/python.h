/* Which Python, and where its library is: what the launcher must know before there is a Python. */
#ifndef JK_MAIN_PYTHON_H
#define JK_MAIN_PYTHON_H

#include <stddef.h>

#define JK_PATH_SIZE 4096

typedef struct jk_python {
    char program[JK_PATH_SIZE]; /* what becomes sys.executable: a virtual environment is found from it */
    char library[JK_PATH_SIZE]; /* its libpython; empty: it has none, or none is installed */
} jk_python;

/* Choose the interpreter: `wanted` when not NULL (a program, or the folder of an environment), else that of
 * $VIRTUAL_ENV, of $CONDA_PREFIX, the python3 beside this program, the first python3 on $PATH. Returns 0, or
 * -1 with one line of what to do in `problem`. */
int jk_python_choose(const char *wanted, jk_python *python, char *problem, size_t problem_size);

/* Fill python->library by asking the interpreter. What it calls itself replaces python->program when that is
 * a script. */
void jk_python_locate(jk_python *python);

#endif
