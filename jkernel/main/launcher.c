/* drupe-kernel: the kernel as a program of its own, for kernelspecs that name one.
 *
 * It is the same kernel as `python -m drupe`: this program only chooses the interpreter, opens its libpython
 * and lets it run the module. Which Python that is stands open until then, so nothing is linked. The
 * library's names must be global, for extension modules look for them there. Where the interpreter has no
 * libpython, or none that can be opened, the interpreter itself takes this process over: the kernel is the
 * same, only the process bears Python's name. */
#include "jkernel/main/python.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_USAGE 2

static const char usage[] =
    "usage: drupe-kernel [--python PATH] -f CONNECTION_FILE [OPTIONS OF IPYTHON AND IPYKERNEL]\n"
    "       drupe-kernel [--python PATH] install [--user | --sys-prefix | --prefix PATH] [--name NAME]\n"
    "       drupe-kernel --version\n"
    "\n"
    "The Jupyter kernel Drupe as a program; `python -m drupe` is the same kernel. It runs in the Python "
    "that\n"
    "--python names (an interpreter or the folder of an environment), else in that of $VIRTUAL_ENV or\n"
    "$CONDA_PREFIX, else in the python3 beside drupe-kernel, else in the first python3 on PATH. Drupe must "
    "be\n"
    "installed there. `install --executable` writes a kernelspec that names this program.\n";

static int fail(const char *text)
{
    fprintf(stderr, "drupe-kernel: %s\n", text);
    return EXIT_USAGE;
}

/* Take --python out of the arguments. Returns false when its value is missing. */
static bool python_option(int *count, char **arguments, const char **wanted)
{
    *wanted = NULL;
    if (*count < 2) return true;
    int taken = 0;
    if (strncmp(arguments[1], "--python=", 9) == 0) {
        *wanted = arguments[1] + 9;
        taken = 1;
    } else if (strcmp(arguments[1], "--python") == 0) {
        *wanted = *count > 2 ? arguments[2] : "";
        taken = 2;
    }
    if (taken && !**wanted) return false;
    *count -= taken;
    memmove(&arguments[1], &arguments[1 + taken], (size_t)*count * sizeof *arguments);
    return true;
}

typedef int (*bytes_main)(int count, char **arguments);

/* Returns NULL when there is no such library, or it is not Python's. */
static bytes_main library_open(const char *path)
{
    union {
        void *object;
        bytes_main function;
    } found = {NULL};
    void *library = *path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (library) found.object = dlsym(library, "Py_BytesMain");
    return found.function;
}

static int python_run(jk_python *python, int count, char **arguments)
{
    static char minus_m[] = "-m", module[] = "drupe";
    char **all = calloc((size_t)count + 3, sizeof *all);
    if (!all) return fail("no memory");
    all[0] = python->program;
    all[1] = minus_m;
    all[2] = module;
    memcpy(&all[3], &arguments[1], (size_t)count * sizeof *arguments); /* with the NULL at the end */
    jk_python_locate(python);
    bytes_main run = library_open(python->library);
    if (run) return run(count + 2, all);
    execv(python->program, all);
    char text[JK_PATH_SIZE + 200];
    snprintf(text, sizeof text, "cannot run %s: %s; name another interpreter with --python PATH",
             python->program, strerror(errno));
    free(all);
    return fail(text);
}

int main(int count, char **arguments)
{
    const char *wanted;
    if (!python_option(&count, arguments, &wanted)) {
        return fail("--python needs the path of an interpreter or of an environment");
    }
    if (count < 2 || strcmp(arguments[1], "--help") == 0 || strcmp(arguments[1], "-h") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (strcmp(arguments[1], "--version") == 0) {
        puts("drupe-kernel " DRUPE_VERSION);
        return 0;
    }
    char problem[JK_PATH_SIZE + 200];
    jk_python python;
    if (jk_python_choose(wanted, &python, problem, sizeof problem) != 0) return fail(problem);
    return python_run(&python, count, arguments);
}
