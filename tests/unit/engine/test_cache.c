/* The disk cache of programs, over a compiler that aborts when it is given a binary that is not its own. */
#include "base/base.h"
#include "base/file.h"
#include "drupe/cache.h"
#include "drupe/program.h"
#include "test_compiler.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static char root[] = "/tmp/drupe-cache-XXXXXX";
static char folder[128];

#define OK(expression) check((expression), #expression, __LINE__)
static void check(drupe_status status, const char *what, int line)
{
    if (status != DRUPE_OK) fail_msg("line %d: %s: %s", line, what, drupe_error_last()->text);
}

/* --- Building ------------------------------------------------------------------------------------------- */

static drupe_status build(const drupe_source *source, char **log, drupe_program **program)
{
    drupe_device *device;
    drupe_context *context;
    OK(drupe_device_select("host", &device));
    OK(drupe_device_context(device, &context));
    drupe_status status = drupe_program_open(context, device, source, log, program);
    drupe_context_release(context);
    drupe_device_release(device);
    return status;
}

static drupe_source text_source(const char *text)
{
    return (drupe_source){.language = DRUPE_LANG_OPENCL_C, .bytes = text, .size = strlen(text)};
}

/* Build and wait until it is stored. True when it came from the cache. */
static bool built_from_cache(const drupe_source *source)
{
    drupe_program *program;
    char *log = NULL;
    int builds = test_compiler.builds;
    OK(build(source, &log, &program));
    assert_string_equal(log, "a warning"); /* also from the cache */
    free(log);
    OK(drupe_cache_flush(20 * SECOND));
    drupe_program_release(program);
    return test_compiler.builds == builds;
}

static bool cached(const char *text)
{
    drupe_source source = text_source(text);
    return built_from_cache(&source);
}

static drupe_cache_info info(void)
{
    drupe_cache_info now;
    drupe_cache_info_get(&now);
    return now;
}

/* As another process would begin. */
static void start_again(void)
{
    assert_int_equal(drupe_library_close(SECOND), 0);
}

static int setup(void **state)
{
    (void)state;
    test_compiler.refuse = false;
    test_compiler.driver = "1.0";
    test_compiler.type = DRUPE_DEVICE_GPU;
    setenv("DRUPE_CACHE_DIR", root, 1);
    unsetenv("DRUPE_CACHE");
    unsetenv("DRUPE_CACHE_SIZE");
    start_again();
    (void)chmod(folder, 0700);
    OK(drupe_cache_clear(NULL));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return (int)drupe_library_close(SECOND);
}

/* The path of the only entry. */
static void entry_path(char *path, size_t size)
{
    DIR *stream = opendir(folder);
    assert_non_null(stream);
    path[0] = '\0';
    for (const struct dirent *one; (one = readdir(stream));)
        if (strstr(one->d_name, ".bin")) snprintf(path, size, "%s/%.80s", folder, one->d_name);
    closedir(stream);
    assert_string_not_equal(path, "");
}

static size_t read_file(const char *path, char *bytes, size_t size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t have = fread(bytes, 1, size, file);
    fclose(file);
    return have;
}

static void write_file(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* --- Hits and misses ------------------------------------------------------------------------------------ */

static void found_again(void **state)
{
    (void)state;
    struct stat about;
    assert_false(cached("first"));
    assert_true(cached("first"));
    start_again();
    assert_true(cached("first"));
    assert_false(cached("second"));
    assert_int_equal(info().entries, 2);
    assert_int_equal(stat(folder, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0700);
    char path[256];
    entry_path(path, sizeof path);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
}

static void whatever_decides_a_build_is_in_the_key(void **state)
{
    (void)state;
    drupe_source source = text_source("first");
    assert_false(built_from_cache(&source));
    source.options = "-DN=1";
    assert_false(built_from_cache(&source));
    assert_true(built_from_cache(&source));
    source.options = "-DN=2";
    assert_false(built_from_cache(&source));
    /* The border between options and source does not move. */
    source = text_source("x\nsource 5\nfirst");
    assert_false(built_from_cache(&source));
    start_again();
    test_compiler.driver = "1.1";
    assert_false(cached("first"));
    assert_true(cached("first"));
}

static void constants_are_in_the_key(void **state)
{
    (void)state;
    static const uint32_t module[] = {
#include "tests/spirv/constants.inc"
    };
    int32_t number = 5;
    double wide = 1;
    drupe_spec_value value = {.id = 0, .size = sizeof number, .value = &number};
    drupe_source source = {.language = DRUPE_LANG_SPIRV, .bytes = module, .size = sizeof module};
    assert_false(built_from_cache(&source));
    assert_true(built_from_cache(&source));
    source.values = &value, source.nvalues = 1;
    assert_false(built_from_cache(&source));
    assert_true(built_from_cache(&source));
    number = 6;
    assert_false(built_from_cache(&source));
    number = 41; /* what it is without */
    assert_true(built_from_cache(&source));
    drupe_program *program;
    value.id = 77;
    assert_int_equal(build(&source, NULL, &program), DRUPE_E_NOT_FOUND);
    value = (drupe_spec_value){.id = 0, .size = sizeof wide, .value = &wide};
    assert_int_equal(build(&source, NULL, &program), DRUPE_E_INVALID);
    assert_non_null(strstr(drupe_error_last()->text, "4 byte"));
    drupe_source text = text_source("x");
    text.values = &value, text.nvalues = 1;
    assert_int_equal(build(&text, NULL, &program), DRUPE_E_INVALID);
}

static void programs_that_include_are_never_kept(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "#include \"a.h\"\n", "%:include <a.h>",    "#inc\\\nlude \"a.h\"",     "char *t = __DATE__;",
        "#in\\\r\nclude <a>", "#inc?\?/\nlude <a>", "int t = sizeof __TIME__;", "#include_next <a>"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_false(cached(texts[i]));
        assert_false(cached(texts[i]));
    }
    drupe_source source = text_source("plain");
    source.options = "-include a.h";
    assert_false(built_from_cache(&source));
    assert_false(built_from_cache(&source));
    assert_int_equal(info().entries, 0);
}

static void flags_choose(void **state)
{
    (void)state;
    drupe_source source = text_source("first");
    drupe_program *program;
    source.flags = DRUPE_SOURCE_CACHED;
    assert_int_equal(build(&source, NULL, &program), DRUPE_E_NOT_FOUND);
    source.flags = DRUPE_SOURCE_UNCACHED;
    assert_false(built_from_cache(&source));
    assert_int_equal(info().entries, 0);
    assert_false(cached("first"));
    assert_false(built_from_cache(&source));
    source.flags = DRUPE_SOURCE_CACHED;
    assert_true(built_from_cache(&source));
    source = text_source("#include <a>");
    source.flags = DRUPE_SOURCE_CACHED;
    assert_int_equal(build(&source, NULL, &program), DRUPE_E_NOT_FOUND);
}

static void failures_and_quick_builds_are_not_kept(void **state)
{
    (void)state;
    drupe_source source = text_source("wrong");
    drupe_program *program;
    assert_int_equal(build(&source, NULL, &program), DRUPE_E_BUILD_FAILED);
    test_compiler.build_us = 0;
    assert_false(cached("quick"));
    assert_false(cached("quick"));
    test_compiler.build_us = 2000;
    assert_int_equal(info().entries, 0);
}

static void a_driver_that_refuses_builds_again(void **state)
{
    (void)state;
    assert_false(cached("first"));
    test_compiler.refuse = true;
    assert_false(cached("first"));
    assert_int_equal(info().rejected, 1);
    test_compiler.refuse = false;
    assert_true(cached("first")); /* stored anew */
}

/* --- Damage --------------------------------------------------------------------------------------------- */

static void every_cut_is_a_miss(void **state)
{
    (void)state;
    char path[256], bytes[4096];
    assert_false(cached("first"));
    entry_path(path, sizeof path);
    size_t size = read_file(path, bytes, sizeof bytes);
    assert_in_range(size, 100, sizeof bytes - 1);
    for (size_t cut = 0; cut < size; cut += cut < 128 ? 1 : 7) {
        write_file(path, bytes, cut);
        drupe_source source = text_source("first");
        drupe_program *program;
        source.flags = DRUPE_SOURCE_CACHED;
        assert_int_equal(build(&source, NULL, &program), DRUPE_E_NOT_FOUND);
    }
    bytes[size] = 'x';
    write_file(path, bytes, size + 1);
    assert_false(cached("first"));
    assert_true(cached("first"));
}

static void every_changed_byte_is_a_miss(void **state)
{
    (void)state;
    char path[256], bytes[4096];
    assert_false(cached("first"));
    entry_path(path, sizeof path);
    size_t size = read_file(path, bytes, sizeof bytes);
    for (size_t at = 0; at < size; at++) {
        bytes[at] ^= (char)(1 << at % 8);
        write_file(path, bytes, size);
        drupe_source source = text_source("first");
        drupe_program *program;
        source.flags = DRUPE_SOURCE_CACHED;
        assert_int_equal(build(&source, NULL, &program), DRUPE_E_NOT_FOUND);
        bytes[at] ^= (char)(1 << at % 8);
    }
    write_file(path, bytes, size);
    assert_true(cached("first"));
}

static void a_collision_is_a_miss(void **state)
{
    (void)state;
    char first[256], second[256], bytes[4096];
    assert_false(cached("first"));
    entry_path(first, sizeof first);
    size_t size = read_file(first, bytes, sizeof bytes);
    OK(drupe_cache_clear(NULL));
    assert_false(cached("other"));
    entry_path(second, sizeof second);
    write_file(second, bytes, size); /* whole and well, but another's */
    assert_false(cached("other"));
    assert_true(cached("other"));
}

static void what_is_no_plain_file_is_a_miss(void **state)
{
    (void)state;
    char path[256];
    assert_false(cached("first"));
    entry_path(path, sizeof path);
    assert_int_equal(chmod(path, 0666), 0);
    assert_false(cached("first")); /* and is replaced by one of ours */
    assert_true(cached("first"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(cached("first"));
    (void)unlink(path);
    assert_int_equal(symlink("/dev/zero", path), 0);
    assert_false(cached("first"));
    (void)unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_false(cached("first"));
    assert_string_not_equal(info().reason, ""); /* could not be replaced */
    assert_int_equal(rmdir(path), 0);
}

/* --- Folders -------------------------------------------------------------------------------------------- */

static void off(void **state)
{
    (void)state;
    setenv("DRUPE_CACHE", "0", 1);
    start_again();
    assert_false(cached("first"));
    assert_false(cached("first"));
    assert_false(info().on);
    assert_non_null(strstr(info().reason, "DRUPE_CACHE"));
    assert_int_equal(drupe_cache_clear(NULL), DRUPE_E_UNAVAILABLE);
}

static void folders_that_others_may_write_to_are_refused(void **state)
{
    (void)state;
    static const mode_t modes[] = {0770, 0702, 0777};
    assert_false(cached("first"));
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(chmod(folder, modes[i]), 0);
        start_again();
        assert_false(cached("first"));
        assert_false(info().on);
        assert_non_null(strstr(info().reason, "others"));
    }
    assert_int_equal(chmod(folder, 0700), 0);
    start_again();
    assert_true(cached("first"));
    if (geteuid() != 0) return;
    assert_int_equal(chown(folder, 12345, 12345), 0);
    start_again();
    assert_false(cached("first"));
    assert_non_null(strstr(info().reason, "another user"));
    assert_int_equal(chown(folder, 0, 0), 0);
}

static void folders_are_made_and_found(void **state)
{
    (void)state;
    char path[256], old[256];
    snprintf(path, sizeof path, "%s/deep/below", root);
    setenv("DRUPE_CACHE_DIR", path, 1);
    start_again();
    assert_false(cached("first"));
    assert_true(cached("first"));
    OK(drupe_cache_clear(NULL));
    snprintf(path, sizeof path, "%s/xdg", root);
    unsetenv("DRUPE_CACHE_DIR");
    const char *xdg = getenv("XDG_CACHE_HOME");
    snprintf(old, sizeof old, "%.200s", xdg ? xdg : "");
    setenv("XDG_CACHE_HOME", path, 1);
    start_again();
    assert_false(cached("first"));
    assert_non_null(strstr(info().folder, "/xdg/drupe/programs"));
    OK(drupe_cache_clear(NULL));
    if (*old)
        setenv("XDG_CACHE_HOME", old, 1);
    else
        unsetenv("XDG_CACHE_HOME");
    setenv("DRUPE_CACHE_DIR", "/proc/no/such/place", 1);
    start_again();
    assert_false(cached("first"));
    assert_false(info().on);
}

/* A child, because the limits of a process cannot be taken back, and root may write everywhere. */
static void in_child(void (*run)(void))
{
    start_again();
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        run();
        _exit(0);
    }
    int result = 0;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
}

static void child_builds(const char *text)
{
    drupe_source source = text_source(text);
    drupe_program *program;
    if (build(&source, NULL, &program) != DRUPE_OK) _exit(3);
    if (drupe_cache_flush(20 * SECOND) != DRUPE_OK) _exit(4);
    drupe_program_release(program);
}

static void full_disk_child(void)
{
    struct rlimit none = {64, 64};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &none) != 0) _exit(5);
    uint64_t before = info().stored;
    child_builds("large");
    if (info().stored != before || info().entries != 0 || !info().reason[0]) _exit(6);
}

static void full_disk(void **state)
{
    (void)state;
    in_child(full_disk_child);
    assert_false(cached("large"));
    assert_int_equal(info().entries, 1);
    assert_string_equal(info().reason, "");
}

static void read_only_child(void)
{
    int builds = test_compiler.builds;
    if (geteuid() == 0 && setuid(12345) != 0) _exit(5);
    child_builds("first");
    if (test_compiler.builds != builds) _exit(6); /* what is there serves */
    uint64_t before = info().stored;
    child_builds("second");
    if (info().stored != before || !info().reason[0]) _exit(7);
}

static void read_only_folder(void **state)
{
    (void)state;
    char path[256];
    assert_false(cached("first"));
    entry_path(path, sizeof path);
    if (geteuid() == 0) {
        assert_int_equal(chmod(root, 0755), 0);
        assert_int_equal(chown(folder, 12345, 12345), 0);
        assert_int_equal(chown(path, 12345, 12345), 0);
    }
    assert_int_equal(chmod(folder, 0500), 0);
    in_child(read_only_child);
    assert_int_equal(chown(folder, geteuid(), getegid()), 0);
    assert_int_equal(chmod(folder, 0700), 0);
}

static void many_child(void)
{
    char text[32];
    for (int i = 0; i < 60; i++) {
        snprintf(text, sizeof text, "shared %d", i % 20);
        child_builds(text);
    }
}

static void two_processes_at_once(void **state)
{
    (void)state;
    start_again();
    pid_t children[3];
    uint64_t rejected = info().rejected;
    (void)fflush(NULL);
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            many_child();
            _exit(info().rejected != rejected);
        }
    }
    for (int i = 0; i < 3; i++) {
        int result = 0;
        assert_int_equal(waitpid(children[i], &result, 0), children[i]);
        assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
    }
    assert_int_equal(info().entries, 20);
    assert_true(cached("shared 7"));
}

/* --- Size and upkeep ------------------------------------------------------------------------------------ */

static void the_oldest_give_way(void **state)
{
    (void)state;
    char text[64];
    setenv("DRUPE_CACHE_SIZE", "4K", 1);
    start_again();
    assert_int_equal(info().limit, 4096);
    for (int i = 0; i < 30; i++) {
        snprintf(text, sizeof text, "a program with the number %d", i);
        assert_false(cached(text));
        assert_true(info().bytes <= 4096);
    }
    assert_true(info().entries >= 3);
    assert_true(cached(text));
    assert_false(cached("a program with the number 0"));
    setenv("DRUPE_CACHE_SIZE", "100", 1);
    start_again();
    assert_false(cached("larger than all there is"));
    assert_non_null(strstr(info().reason, "limit"));
}

static void sizes_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t limit;
    } cases[] = {{"1000", 1000},     {"2k", 2048},
                 {"3M", 3 << 20},    {"1G", 1 << 30},
                 {"", 256u << 20},   {"lots", 256u << 20},
                 {"-5", 256u << 20}, {"5X", 256u << 20},
                 {"0", 0},           {"99999999999999999999G", 256u << 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("DRUPE_CACHE_SIZE", cases[i].text, 1);
        start_again();
        assert_int_equal(info().limit, cases[i].limit);
    }
}

static bool count_entry(const drupe_cache_entry *entry, void *user)
{
    assert_true(entry->valid);
    assert_string_equal(entry->device, "host test compiler (driver 1.0)");
    ++*(int *)user;
    return *(int *)user < 2;
}

static void entries_are_listed_and_cleared(void **state)
{
    (void)state;
    int count = 0;
    uint64_t freed = 0;
    for (int i = 0; i < 3; i++) {
        char text[16];
        snprintf(text, sizeof text, "text %d", i);
        assert_false(cached(text));
    }
    char stray[256];
    snprintf(stray, sizeof stray, "%s/not ours", folder);
    write_file(stray, "x", 1);
    OK(drupe_cache_each(count_entry, &count));
    assert_int_equal(count, 2);
    OK(drupe_cache_clear(&freed));
    assert_true(freed > 300);
    assert_int_equal(info().entries, 0);
    assert_int_equal(access(stray, F_OK), 0);
    assert_int_equal(unlink(stray), 0);
}

static void notes_are_kept(void **state)
{
    (void)state;
    void *bytes;
    size_t size;
    assert_int_equal(drupe_cache_note_read("a", &bytes, &size), DRUPE_E_NOT_FOUND);
    OK(drupe_cache_note_write("a", "hello", 5));
    OK(drupe_cache_note_read("a", &bytes, &size));
    assert_int_equal(size, 5);
    assert_memory_equal(bytes, "hello", 5);
    free(bytes);
    OK(drupe_cache_note_write("a", "bye", 3));
    OK(drupe_cache_note_read("a", &bytes, &size));
    assert_int_equal(size, 3);
    free(bytes);
    assert_int_equal(drupe_cache_note_read("b", &bytes, &size), DRUPE_E_NOT_FOUND);
}

static void drivers_that_compile_wait_for_rest(void **state)
{
    (void)state;
    test_compiler.type = DRUPE_DEVICE_CPU;
    start_again();
    int binaries = test_compiler.binaries;
    drupe_source source = text_source("first");
    drupe_program *program;
    OK(build(&source, NULL, &program));
    drupe_program_release(program);
    start_again(); /* the end comes before any rest: given up, not waited for */
    assert_int_equal(test_compiler.binaries, binaries);
    OK(build(&source, NULL, &program));
    drupe_program_release(program);
    uint64_t deadline = drupe_deadline(30 * SECOND), stored = info().stored;
    while (info().stored == stored && drupe_now_ns() < deadline) usleep(10000);
    assert_int_equal(test_compiler.binaries, binaries + 1);
    assert_true(cached("first"));
}

/* --- Binaries in the user's hands ----------------------------------------------------------------------- */

static void binaries(void **state)
{
    (void)state;
    drupe_source source = text_source("mine");
    drupe_program *program;
    void *bytes;
    size_t size;
    OK(build(&source, NULL, &program));
    OK(drupe_program_binary(program, &bytes, &size));
    drupe_program_release(program);
    drupe_source binary = {.language = DRUPE_LANG_BINARY, .bytes = bytes, .size = size};
    OK(build(&binary, NULL, &program));
    drupe_program_release(program);
    int loads = test_compiler.loads;
    for (size_t cut = 1; cut < size; cut += 3) {
        binary.size = cut;
        assert_int_equal(build(&binary, NULL, &program), DRUPE_E_INVALID);
    }
    binary.size = size;
    for (size_t at = 0; at < size; at++) {
        ((char *)bytes)[at] ^= 0x10;
        assert_int_equal(build(&binary, NULL, &program), DRUPE_E_INVALID);
        ((char *)bytes)[at] ^= 0x10;
    }
    assert_non_null(strstr(drupe_error_last()->text, "damaged"));
    start_again();
    test_compiler.driver = "2.0";
    assert_int_equal(build(&binary, NULL, &program), DRUPE_E_INVALID);
    assert_non_null(strstr(drupe_error_last()->text, "another device"));
    assert_int_equal(test_compiler.loads, loads); /* no driver saw any of it */
    free(bytes);
}

int main(void)
{
    if (!mkdtemp(root)) return 1;
    snprintf(folder, sizeof folder, "%s/programs", root);
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(found_again),
        CASE(whatever_decides_a_build_is_in_the_key),
        CASE(constants_are_in_the_key),
        CASE(programs_that_include_are_never_kept),
        CASE(flags_choose),
        CASE(failures_and_quick_builds_are_not_kept),
        CASE(a_driver_that_refuses_builds_again),
        CASE(every_cut_is_a_miss),
        CASE(every_changed_byte_is_a_miss),
        CASE(a_collision_is_a_miss),
        CASE(what_is_no_plain_file_is_a_miss),
        CASE(off),
        CASE(folders_that_others_may_write_to_are_refused),
        CASE(folders_are_made_and_found),
        CASE(full_disk),
        CASE(read_only_folder),
        CASE(two_processes_at_once),
        CASE(the_oldest_give_way),
        CASE(sizes_are_read),
        CASE(entries_are_listed_and_cleared),
        CASE(notes_are_kept),
        CASE(drivers_that_compile_wait_for_rest),
        CASE(binaries),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command) == 0 ? failed : 1;
}
