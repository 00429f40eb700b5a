/* Finding Python without starting one: pyvenv.cfg names the installation behind a virtual environment, and
 * the program's real name ends in its version. */
#include "jkernel/main/python.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define LIB_MULTIARCH "lib/x86_64-linux-gnu"
#elif defined(__aarch64__)
#define LIB_MULTIARCH "lib/aarch64-linux-gnu"
#else
#define LIB_MULTIARCH "lib"
#endif

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

/* Cut the last part of a path. */
static void path_up(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash) *slash = '\0';
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
    path_up(own);
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

/* --- Where the library is usually -------------------------------------------------------------------------
 */

/* The value of a key in pyvenv.cfg, beside the program or one folder up. */
static bool venv_value(const char *program, const char *key, char value[JK_PATH_SIZE])
{
    char folder[JK_PATH_SIZE], path[JK_PATH_SIZE], line[JK_PATH_SIZE];
    FILE *file = NULL;
    snprintf(folder, sizeof folder, "%s", program);
    for (int i = 0; i < 2 && !file; i++) {
        path_up(folder);
        if (path_join(path, folder, "pyvenv.cfg")) file = fopen(path, "re");
    }
    bool found = false;
    size_t length = strlen(key);
    while (file && !found && fgets(line, sizeof line, file)) {
        const char *rest = line + strspn(line, " \t");
        if (strncmp(rest, key, length) != 0) continue;
        rest += length + strspn(rest + length, " \t");
        if (*rest != '=') continue;
        rest += 1 + strspn(rest + 1, " \t");
        snprintf(value, JK_PATH_SIZE, "%.*s", (int)strcspn(rest, "\r\n"), rest);
        found = *value != '\0';
    }
    if (file) fclose(file);
    return found;
}

/* The real program behind a virtual environment's, which may be a copy. */
static bool base_program(const char *program, char base[JK_PATH_SIZE])
{
    char home[JK_PATH_SIZE], first[JK_PATH_SIZE];
    if (venv_value(program, "home", home) && path_join(first, home, "python3") && realpath(first, base)) {
        return true;
    }
    return realpath(program, base) != NULL;
}

/* "/usr/bin/python3.13t" gives "3.13t"; "" when the name tells no version. */
static const char *name_version(const char *base)
{
    const char *name = strrchr(base, '/');
    name = name ? name + 1 : base;
    if (strncmp(name, "python3.", 8) != 0) return "";
    size_t digits = strspn(name + 8, "0123456789");
    return digits && strspn(name + 8 + digits, "td") == strlen(name + 8 + digits) ? name + 6 : "";
}

static bool usual_library(const char *base, char library[JK_PATH_SIZE])
{
    static const char *const folders[] = {"lib", LIB_MULTIARCH, "lib64"};
    const char *version = name_version(base);
    if (!*version) return false;
    char prefix[JK_PATH_SIZE], name[128];
    snprintf(prefix, sizeof prefix, "%s", base);
    path_up(prefix);
    path_up(prefix);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(name, sizeof name, "%s/libpython%.16s.so.1.0", folders[i], version);
        if (path_join(library, prefix, name) && access(library, R_OK) == 0) return true;
    }
    library[0] = '\0';
    return false;
}

/* The names of what a program is linked with are near its start. */
#define LOOK_MOST (1 << 20)

static bool is_binary(const char *program)
{
    char start[4] = "";
    int fd = open(program, O_RDONLY | O_CLOEXEC);
    bool binary =
        fd >= 0 && read(fd, start, sizeof start) == sizeof start && memcmp(start, "\177ELF", 4) == 0;
    if (fd >= 0) close(fd);
    return binary;
}

static bool is_linked_with_library(const char *program)
{
    struct stat about;
    bool linked = false;
    int fd = open(program, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    if (fstat(fd, &about) == 0 && about.st_size > 0) {
        size_t size = about.st_size < LOOK_MOST ? (size_t)about.st_size : LOOK_MOST;
        void *text = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (text != MAP_FAILED) {
            linked = memmem(text, size, "\0libpython3", 11) != NULL;
            munmap(text, size);
        }
    }
    close(fd);
    return linked;
}

/* --- Asking -----------------------------------------------------------------------------------------------
 */

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

/* What the interpreter calls itself, then where it has its library: one a line. */
static void library_ask(jk_python *python, bool rename)
{
    static const char code[] =
        "import os, sys, sysconfig\n"
        "print(sys.executable)\n"
        "get = sysconfig.get_config_var\n"
        "for folder in (get('LIBDIR'), os.path.join(get('LIBDIR') or '', get('MULTIARCH') or '')):\n"
        "    for name in (get('INSTSONAME'), get('LDLIBRARY')):\n"
        "        path = os.path.join(folder or '', name or '')\n"
        "        if '.so' in path and os.path.isfile(path):\n"
        "            print(path)\n"
        "if '.so' in (get('INSTSONAME') or ''):\n"
        "    print(get('INSTSONAME'))\n";
    char answer[4 * JK_PATH_SIZE], *end = answer;
    if (!python_ask(python->program, code, answer, sizeof answer)) return;
    const char *program = strsep(&end, "\n");
    const char *library = strsep(&end, "\n");
    if (rename && program && is_program(program))
        snprintf(python->program, JK_PATH_SIZE, "%.*s", JK_PATH_SIZE - 1, program);
    if (library) snprintf(python->library, JK_PATH_SIZE, "%.*s", JK_PATH_SIZE - 1, library);
}

void jk_python_locate(jk_python *python)
{
    char base[JK_PATH_SIZE];
    bool binary = is_binary(python->program);
    if (binary && base_program(python->program, base) && usual_library(base, python->library)) return;
    /* A program that has all of Python in itself and no library in its place: nothing to ask for. */
    if (!binary || is_linked_with_library(python->program)) library_ask(python, !binary);
}
