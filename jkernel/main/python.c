/* Finding Python: the interpreter is chosen from names alone, and then asked where its library is, which
 * takes it 10 ms. */
#include "jkernel/main/python.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool path_join(char path[JK_PATH_SIZE], const char *folder, const char *name)
{
    size_t before = strlen(folder), after = strlen(name);
    if (before + after + 2 > JK_PATH_SIZE) return false;
    char *end = stpcpy(path, folder);
    *end = '/';
    memcpy(end + 1, name, after + 1);
    return true;
}

static bool is_program(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode) && access(path, X_OK) == 0;
}

/* --- Choosing ---------------------------------------------------------------------------------------------
 */

static bool environment_program(const char *folder, char program[JK_PATH_SIZE])
{
    static const char *const names[] = {"bin/python", "bin/python3"};
    for (size_t i = 0; folder && *folder && i < sizeof names / sizeof names[0]; i++) {
        if (path_join(program, folder, names[i]) && is_program(program)) return true;
    }
    return false;
}

static bool sibling_program(char program[JK_PATH_SIZE])
{
    char own[JK_PATH_SIZE];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length <= 0) return false;
    own[length] = '\0';
    char *slash = strrchr(own, '/');
    if (slash) *slash = '\0';
    return path_join(program, own, "python3") && is_program(program);
}

static bool path_program(char program[JK_PATH_SIZE])
{
    const char *paths = getenv("PATH");
    while (paths && *paths) {
        char folder[JK_PATH_SIZE];
        size_t length = strcspn(paths, ":");
        snprintf(folder, sizeof folder, "%.*s", (int)(length < JK_PATH_SIZE ? length : 0), paths);
        /* Only folders that are given whole: an interpreter from the notebook's folder is nobody's wish. */
        if (folder[0] == '/' && path_join(program, folder, "python3") && is_program(program)) return true;
        paths += length + (paths[length] == ':');
    }
    return false;
}

static int wanted_program(const char *wanted, char program[JK_PATH_SIZE], char *problem, size_t problem_size)
{
    char absolute[JK_PATH_SIZE] = "", here[JK_PATH_SIZE];
    if (wanted[0] == '/') {
        snprintf(absolute, sizeof absolute, "%s", wanted);
    } else if (getcwd(here, sizeof here)) {
        path_join(absolute, here, wanted);
    }
    if (environment_program(absolute, program)) return 0;
    memcpy(program, absolute, sizeof absolute);
    if (is_program(program)) return 0;
    snprintf(problem, problem_size,
             "--python %s is neither a Python interpreter nor an environment with bin/python; give the path "
             "of one",
             wanted);
    return -1;
}

int jk_python_choose(const char *wanted, jk_python *python, char *problem, size_t problem_size)
{
    memset(python, 0, sizeof *python);
    if (wanted) return wanted_program(wanted, python->program, problem, problem_size);
    if (environment_program(getenv("VIRTUAL_ENV"), python->program) ||
        environment_program(getenv("CONDA_PREFIX"), python->program) || sibling_program(python->program) ||
        path_program(python->program)) {
        return 0;
    }
    snprintf(
        problem, problem_size,
        "no Python found: no environment is active, and there is no python3 beside drupe-kernel or on PATH; "
        "name one with --python PATH");
    return -1;
}

/* --- Asking for its library -------------------------------------------------------------------------------
 */

static bool is_binary(const char *program)
{
    char start[4] = "";
    int fd = open(program, O_RDONLY | O_CLOEXEC);
    bool binary =
        fd >= 0 && read(fd, start, sizeof start) == sizeof start && memcmp(start, "\177ELF", 4) == 0;
    if (fd >= 0) close(fd);
    return binary;
}

/* Run the interpreter with `code` and read what it prints. */
static bool python_ask(const char *program, const char *code, char *answer, size_t size)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(ends[1], 1);
        dup2(null, 2);
        execl(program, program, "-I", "-S", "-c", code, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    size_t used = 0;
    ssize_t got;
    while (child > 0 && used + 1 < size && (got = read(ends[0], answer + used, size - 1 - used)) > 0)
        used += (size_t)got;
    answer[used] = '\0';
    close(ends[0]);
    int status = -1;
    if (child > 0) waitpid(child, &status, 0);
    return status == 0;
}

void jk_python_locate(jk_python *python)
{
    /* What the interpreter calls itself, then where it has its library: one a line. */
    static const char code[] =
        "import os, sys, sysconfig\n"
        "print(sys.executable)\n"
        "get = sysconfig.get_config_var\n"
        "for folder in (os.path.join(sys.base_prefix, sys.platlibdir), get('LIBDIR'),\n"
        "               os.path.join(get('LIBDIR') or '', get('MULTIARCH') or '')):\n"
        "    for name in (get('INSTSONAME'), get('LDLIBRARY'), 'libpython%s.so.1.0' % get('LDVERSION')):\n"
        "        path = os.path.join(folder or '', name or '')\n"
        "        if '.so' in path and os.path.isfile(path):\n"
        "            print(path)\n"
        "if '.so' in (get('INSTSONAME') or ''):\n"
        "    print(get('INSTSONAME'))\n";
    char answer[4 * JK_PATH_SIZE], *end = answer;
    if (!python_ask(python->program, code, answer, sizeof answer)) return;
    const char *program = strsep(&end, "\n");
    const char *library = strsep(&end, "\n");
    if (!is_binary(python->program) && program && is_program(program))
        snprintf(python->program, JK_PATH_SIZE, "%.*s", JK_PATH_SIZE - 1, program);
    if (library) snprintf(python->library, JK_PATH_SIZE, "%.*s", JK_PATH_SIZE - 1, library);
}
