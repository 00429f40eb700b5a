/* The disk cache of programs: folders, sizes, other processes, upkeep. */
#include "cache_fixture.h"
#include "core/program/program_room.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
    assert_int_equal(drupe_cache_each(NULL, NULL), DRUPE_E_UNAVAILABLE);
    assert_string_equal(drupe_error_last()->text, "The cache is off. DRUPE_CACHE switches it off.");
    unsetenv("DRUPE_CACHE");
    start_again();
    assert_true(info().on);
    assert_string_equal(info().reason, "");
}

static void folders_that_others_may_write_to_are_refused(void **state)
{
    (void)state;
    static const mode_t modes[] = {0770, 0702, 0777};
    assert_false(cached("first"));
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(chmod(cache_folder, modes[i]), 0);
        start_again();
        assert_false(cached("first"));
        assert_false(info().on);
        assert_non_null(strstr(info().reason, "others"));
    }
    assert_int_equal(chmod(cache_folder, 0700), 0);
    start_again();
    assert_true(cached("first"));
    if (geteuid() != 0) return;
    assert_int_equal(chown(cache_folder, 12345, 12345), 0);
    start_again();
    assert_false(cached("first"));
    assert_non_null(strstr(info().reason, "another user"));
    assert_int_equal(chown(cache_folder, 0, 0), 0);
}

static void folders_are_made_and_found(void **state)
{
    (void)state;
    char path[256], old[256];
    snprintf(path, sizeof path, "%s/deep/below", cache_root);
    setenv("DRUPE_CACHE_DIR", path, 1);
    start_again();
    assert_false(cached("first"));
    assert_true(cached("first"));
    OK(drupe_cache_clear(NULL));
    snprintf(path, sizeof path, "%s/xdg", cache_root);
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

static void set_variable(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* What the environment says, and where the folder is then: "" is nowhere, and the cache is off. */
static void the_environment_names_the_folder(void **state)
{
    (void)state;
    static char endless[2000];
    memset(endless, 'x', sizeof endless - 1);
    endless[0] = '/';
    static const struct {
        const char *own, *xdg, *home, *folder, *reason;
    } cases[] = {{"/a/own", "/a/xdg", "/a/home", "/a/own/programs", NULL},
                 {"", "/a/xdg", "/a/home", "/a/xdg/drupe/programs", NULL},
                 {NULL, "/a/xdg", "/a/home", "/a/xdg/drupe/programs", NULL},
                 {NULL, "relative", "/a/home", "/a/home/.cache/drupe/programs", NULL},
                 {NULL, NULL, "/a/home", "/a/home/.cache/drupe/programs", NULL},
                 {NULL, NULL, "relative", "", "HOME"},
                 {NULL, NULL, NULL, "", "HOME"},
                 {endless, NULL, "/a/home", "", "HOME"}};
    static const char *const names[] = {"DRUPE_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
    char *before[3];
    for (size_t k = 0; k < 3; k++) {
        const char *value = getenv(names[k]);
        before[k] = value ? strdup(value) : NULL;
    }
    setenv("DRUPE_CACHE", "off", 1); /* so that none is made */
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        const char *const values[] = {cases[i].own, cases[i].xdg, cases[i].home};
        for (size_t k = 0; k < 3; k++) set_variable(names[k], values[k]);
        start_again();
        assert_string_equal(info().folder, cases[i].folder);
        assert_non_null(strstr(info().reason, "DRUPE_CACHE"));
        if (!cases[i].reason) continue;
        setenv("DRUPE_CACHE", "on", 1);
        start_again();
        assert_false(info().on);
        assert_non_null(strstr(info().reason, cases[i].reason));
        setenv("DRUPE_CACHE", "off", 1);
    }
    for (size_t k = 0; k < 3; k++) {
        set_variable(names[k], before[k]);
        free(before[k]);
    }
}

/* Children, because root may write everywhere, and what else a process writes meanwhile would be cut off. */

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
    struct rlimit before, little;
    signal(SIGXFSZ, SIG_IGN);
    if (getrlimit(RLIMIT_FSIZE, &before) != 0) _exit(4);
    little = before;
    little.rlim_cur = 64;
    if (setrlimit(RLIMIT_FSIZE, &little) != 0) _exit(5);
    uint64_t stored = info().stored;
    child_builds("large");
    if (info().stored != stored || info().entries != 0 || !info().reason[0]) _exit(6);
    (void)setrlimit(RLIMIT_FSIZE, &before);
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
        assert_int_equal(chmod(cache_root, 0755), 0);
        assert_int_equal(chown(cache_folder, 12345, 12345), 0);
        assert_int_equal(chown(path, 12345, 12345), 0);
    }
    assert_int_equal(chmod(cache_folder, 0500), 0);
    in_child(read_only_child);
    assert_int_equal(chown(cache_folder, geteuid(), getegid()), 0);
    assert_int_equal(chmod(cache_folder, 0700), 0);
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

static void *build_many(void *unused)
{
    char text[32];
    (void)unused;
    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "together %d", i % 10);
        drupe_source source = text_source(text);
        drupe_program *program;
        if (build(&source, NULL, &program) != DRUPE_OK) return "failed";
        drupe_program_release(program);
    }
    return NULL;
}

/* Threads that build, while another one lists, empties and waits. */
static void threads_at_once(void **state)
{
    (void)state;
    pthread_t threads[4];
    uint64_t rejected = info().rejected;
    for (int i = 0; i < 4; i++) OK(drupe_thread_start(&threads[i], build_many, NULL, "builds"));
    for (int i = 0; i < 20; i++) {
        (void)info();
        if (i % 5 == 0) OK(drupe_cache_clear(NULL));
        OK(drupe_cache_flush(20 * SECOND));
    }
    for (int i = 0; i < 4; i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_null(result);
    }
    OK(drupe_cache_flush(20 * SECOND));
    assert_int_equal(info().rejected, rejected);
    assert_true(info().entries <= 10);
    assert_true(cached("together 5") || cached("together 5"));
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
    setenv("DRUPE_CACHE_SIZE", "32K", 1);
    start_again();
    uint64_t before = 0, after = info().bytes;
    for (int i = 0; after >= before; i++) {
        assert_true(i < 1000);
        snprintf(text, sizeof text, "a small program with the number %d", i);
        assert_false(cached(text));
        before = after;
        after = info().bytes;
    }
    /* An eighth of the limit and at most one entry more. */
    assert_true(after >= 3 * 32768 / 4);
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

static void file_of_others(char *path, size_t size, const char *name)
{
    snprintf(path, size, "%s/%s", cache_folder, name);
    write_file(path, "precious", 8);
}

static void make_room_for_others(void)
{
    char text[64];
    for (int i = 0; i < 30; i++) {
        snprintf(text, sizeof text, "another program with the number %d", i);
        assert_false(cached(text));
    }
}

static void files_of_others_stay(void **state)
{
    (void)state;
    static const char *const names[] = {"firmware.bin",
                                        "todo.note",
                                        ".new-plan",
                                        ".new-1-2-3",
                                        "0123456789abcdef0123456789abcdeF.bin",
                                        "0123456789abcdef0123456789abcdef.bin.bin",
                                        "0123456789abcdef0123456789abcde.note",
                                        ".new-1-",
                                        ".new-12",
                                        ".new-1-2x",
                                        "0123.bin",
                                        ".new--7"};
    char paths[DRUPE_COUNT_OF(names)][256], large[256], bytes[8192] = {0};
    for (size_t i = 0; i < DRUPE_COUNT_OF(names); i++) file_of_others(paths[i], sizeof paths[i], names[i]);
    snprintf(large, sizeof large, "%s/disk.bin", cache_folder);
    write_file(large, bytes, sizeof bytes);
    setenv("DRUPE_CACHE_SIZE", "4K", 1);
    start_again();
    make_room_for_others();
    assert_true(info().entries >= 3 &&
                info().bytes <= 4096); /* a large file of others takes no room of ours */
    OK(drupe_cache_clear(NULL));
    assert_int_equal(info().entries, 0);
    for (size_t i = 0; i < DRUPE_COUNT_OF(names); i++) {
        assert_int_equal(access(paths[i], F_OK), 0);
        assert_int_equal(unlink(paths[i]), 0);
    }
    assert_int_equal(unlink(large), 0);
}

/* Files with exactly our form of names that are no entries: entries give way to each other beside them. */
static void names_like_ours(void **state)
{
    (void)state;
    char path[256], tag[256];
    snprintf(tag, sizeof tag, "%s/CACHEDIR.TAG", cache_folder);
    assert_int_equal(access(tag, F_OK), 0);
    assert_int_equal(unlink(tag), 0);
    file_of_others(path, sizeof path, "0123456789abcdef0123456789abcdef.bin");
    setenv("DRUPE_CACHE_SIZE", "4K", 1);
    start_again();
    make_room_for_others();
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(access(tag, F_OK), 0);
    assert_true(info().entries >= 3 && info().bytes <= 4096);
    char empty[256];
    snprintf(empty, sizeof empty, "%s/%s", cache_folder, "fedcba9876543210fedcba9876543210.bin");
    write_file(empty, "", 0); /* as a machine that stopped leaves it */
    OK(drupe_cache_clear(NULL));
    assert_int_equal(access(path, F_OK), 0);
    assert_int_not_equal(access(empty, F_OK), 0);
    assert_int_equal(info().entries, 1);
    /* One of others that is larger than the limit leaves ours their room. */
    char large[8192] = "larger than what the cache may take";
    write_file(path, large, sizeof large);
    start_again();
    make_room_for_others();
    assert_true(info().entries >= 3);
    OK(drupe_cache_clear(NULL));
    assert_int_equal(unlink(path), 0);
    write_file(tag, "mine", 4);
    start_again();
    assert_false(cached("another program with the number 0"));
    OK(drupe_cache_clear(NULL));
    struct stat about;
    assert_int_equal(stat(tag, &about), 0);
    assert_int_equal(about.st_size, 4);
    assert_int_equal(unlink(tag), 0);
}

/* By their names only killed processes can have left them, after an hour; when all is cleared at once. */
static void what_killed_processes_left_goes(void **state)
{
    (void)state;
    char old[256], fresh[256];
    const struct timespec long_ago[2] = {{1000, 0}, {1000, 0}};
    uint64_t freed;
    file_of_others(old, sizeof old, ".new-1-2");
    file_of_others(fresh, sizeof fresh, ".new-1-3");
    assert_int_equal(utimensat(AT_FDCWD, old, long_ago, 0), 0);
    assert_int_equal(info().bytes, 16);
    assert_int_equal(info().entries, 0);
    assert_false(cached("first")); /* which makes room */
    assert_int_not_equal(access(old, F_OK), 0);
    assert_int_equal(access(fresh, F_OK), 0);
    const uint64_t all = info().bytes;
    OK(drupe_cache_clear(&freed));
    assert_int_not_equal(access(fresh, F_OK), 0);
    assert_int_equal(freed, all);
}

/* Of entries the first bytes count: one of zeros is what a machine that stopped leaves; a short one is not.
 */
static void beginnings_tell_entries(void **state)
{
    (void)state;
    static const struct {
        const char *name, *bytes;
        size_t size;
        bool goes;
    } cases[] = {{"0000000000000000000000000000000a.bin", "DRUPERE", 7, false},
                 {"0000000000000000000000000000000b.bin", "\0\0\0\0\0\0\0\0\0", 9, true},
                 {"0000000000000000000000000000000c.bin", "\0\0\0\0\0\0\0x", 8, false},
                 {"0000000000000000000000000000000d.bin", DRUPE_RECORD_MAGIC, 8, true}};
    char path[256];
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        snprintf(path, sizeof path, "%s/%s", cache_folder, cases[i].name);
        write_file(path, cases[i].bytes, cases[i].size);
        OK(drupe_cache_clear(NULL));
        assert_int_equal(access(path, F_OK) != 0, cases[i].goes);
        (void)unlink(path);
    }
}

static bool keep_entry(const drupe_cache_entry *entry, void *user)
{
    drupe_text *seen = user;
    drupe_text_printf(seen, "%s %s '%s'; ", entry->name, entry->valid ? "good" : "bad", entry->device);
    return true;
}

/* Damaged ones are listed too; of whole ones each line that is there. */
static void every_entry_is_listed(void **state)
{
    (void)state;
    char path[256];
    drupe_text seen = {0};
    const struct timespec used[2] = {{1000, 0}, {1000, 0}};
    write_entry(path, "0000000000000000000000000000000a.bin", "x\nbackend b\ndevice d\ndriver r\n", "", "");
    write_entry(path, "0000000000000000000000000000000b.bin", "x\ndevice d\ndriver cut", "", "");
    assert_int_equal(utimensat(AT_FDCWD, path, used, 0), 0); /* the last one listed */
    snprintf(path, sizeof path, "%s/%s", cache_folder, "0000000000000000000000000000000c.bin");
    write_file(path, DRUPE_RECORD_MAGIC, 8);
    assert_int_equal(utimensat(AT_FDCWD, path, (const struct timespec[2]){{2000, 0}, {2000, 0}}, 0), 0);
    snprintf(path, sizeof path, "%s/%s", cache_folder, "0000000000000000000000000000000d.bin");
    write_file(path, DRUPE_RECORD_MAGIC, 8);
    assert_int_equal(chmod(path, 0622), 0); /* not to be trusted */
    assert_int_equal(utimensat(AT_FDCWD, path, (const struct timespec[2]){{3000, 0}, {3000, 0}}, 0), 0);
    OK(drupe_cache_each(keep_entry, &seen));
    assert_string_equal(drupe_text_get(&seen), "0000000000000000000000000000000a.bin good 'b d (driver r)'; "
                                               "0000000000000000000000000000000d.bin bad ''; "
                                               "0000000000000000000000000000000c.bin bad ''; "
                                               "0000000000000000000000000000000b.bin good ' d (driver )'; ");
    drupe_text_clear(&seen);
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
        char text[32];
        snprintf(text, sizeof text, "text %d", i);
        assert_false(cached(text));
    }
    char stray[256];
    snprintf(stray, sizeof stray, "%s/not ours", cache_folder);
    write_file(stray, "x", 1);
    OK(drupe_cache_each(count_entry, &count));
    assert_int_equal(count, 2);
    OK(drupe_cache_clear(&freed));
    assert_true(freed > 300);
    assert_int_equal(info().entries, 0);
    assert_int_equal(access(stray, F_OK), 0);
    assert_int_equal(unlink(stray), 0);
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

/* What costs nothing to store is stored at once, also at the end. */
static void libraries_do_not_wait(void **state)
{
    (void)state;
    test_compiler.type = DRUPE_DEVICE_CPU;
    start_again();
    drupe_source source = text_source("first");
    drupe_program *program;
    source.language = DRUPE_LANG_C;
    OK(build(&source, NULL, &program));
    drupe_program_release(program);
    start_again();
    assert_true(in_folder("first", DRUPE_LANG_C));
}

int main(void)
{
    if (!cache_make()) return 1;
    const struct CMUnitTest tests[] = {
        CASE(off),
        CASE(folders_that_others_may_write_to_are_refused),
        CASE(folders_are_made_and_found),
        CASE(the_environment_names_the_folder),
        CASE(full_disk),
        CASE(read_only_folder),
        CASE(two_processes_at_once),
        CASE(threads_at_once),
        CASE(the_oldest_give_way),
        CASE(sizes_are_read),
        CASE(files_of_others_stay),
        CASE(names_like_ours),
        CASE(what_killed_processes_left_goes),
        CASE(beginnings_tell_entries),
        CASE(every_entry_is_listed),
        CASE(entries_are_listed_and_cleared),
        CASE(drivers_that_compile_wait_for_rest),
        CASE(libraries_do_not_wait),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return cache_remove() ? failed : 1;
}
