/* The disk cache at its ends: no host memory, files that others take away, no descriptors, a forked child. */
#include "cache_fixture.h"
#include "core/program/program_room.h"
#include "walk/wrap.h"
#include <dirent.h>
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

static const uint32_t module[] = {
#include "tests/spirv/constants.inc"
};
/* Its kernel's argument is told by the module only. */
static const drupe_source spirv = {.language = DRUPE_LANG_SPIRV, .bytes = module, .size = sizeof module};

static int setup(void **state)
{
    const int result = cache_setup(state);
    test_compiler.names = "constants";
    return result;
}

/* --- Without memory ------------------------------------------------------------------------------------- */

/* Build while the n-th allocation fails. What comes of it is whole: a program with all that is known of its
 * kernel, or the error; an entry that serves, or none. */
static bool build_without(unsigned long n, const drupe_source *source)
{
    drupe_program *program;
    drupe_kernel *kernel;
    char *log = NULL;
    drupe_device *device;
    drupe_context *context;
    OK(drupe_device_select("host", &device));
    OK(drupe_device_context(device, &context));
    wrap_plan(WRAP_MALLOC, n);
    const drupe_status status = drupe_program_open(context, device, source, &log, &program);
    (void)!drupe_cache_flush(20 * SECOND);
    const bool made = wrap_made() > 0;
    wrap_plan(WRAP_NOTHING, 0);
    drupe_context_release(context);
    drupe_device_release(device);
    if (status != DRUPE_OK) {
        assert_int_equal(status, DRUPE_E_NO_MEMORY);
        assert_true(made && strlen(drupe_error_last()->text) >= 10);
    } else if (drupe_kernel_open(program, "constants", &kernel) == DRUPE_OK) {
        assert_int_equal(kernel->args != NULL, source == &spirv);
        drupe_kernel_release(kernel);
    }
    free(log);
    drupe_program_release(program);
    return made;
}

static void without_memory_nothing_half_is_stored(void **state)
{
    (void)state;
    const drupe_source text = text_source("text"), *const sources[] = {&text, &spirv};
    for (size_t i = 0; i < DRUPE_COUNT_OF(sources); i++) {
        unsigned long n = 1;
        for (bool made = true; made; n++) {
            start_again();
            OK(drupe_cache_clear(NULL));
            const uint64_t stored = info().stored;
            made = build_without(n, sources[i]);
            assert_int_equal(info().entries, info().stored - stored);
            if (!made) assert_int_equal(info().entries, 1);
            if (info().entries) assert_true(built_from_cache(sources[i]));
        }
        assert_true(n > 10);
    }
}

static void without_memory_entries_still_serve(void **state)
{
    (void)state;
    const drupe_source text = text_source("text"), *const sources[] = {&text, &spirv};
    for (size_t i = 0; i < DRUPE_COUNT_OF(sources); i++) {
        unsigned long n = 1;
        (void)built_from_cache(sources[i]);
        for (bool made = true; made; n++) {
            start_again();
            made = build_without(n, sources[i]);
            (void)built_from_cache(sources[i]);
            assert_true(built_from_cache(sources[i]));
        }
        assert_true(n > 10);
    }
}

static void what_a_text_brings_in_is_not_known_without_memory(void **state)
{
    (void)state;
    const drupe_source source = text_source("plain");
    wrap_plan(WRAP_MALLOC, 1);
    assert_false(drupe_key_complete(&source));
    assert_int_equal(wrap_made(), 1);
    wrap_plan(WRAP_NOTHING, 0);
    assert_true(drupe_key_complete(&source));
}

/* --- Files that change meanwhile ------------------------------------------------------------------------ */

static char taken_away[256];       /* a file that another process removes once it was listed */
static bool unlisted, unremovable; /* folders cannot be listed; files cannot be removed */

drupe_status __real_drupe_folder_list(int folder, drupe_file_entry **entries, size_t *count);
drupe_status __wrap_drupe_folder_list(int folder, drupe_file_entry **entries, size_t *count);
drupe_status __wrap_drupe_folder_list(int folder, drupe_file_entry **entries, size_t *count)
{
    if (unlisted) {
        *entries = NULL;
        *count = 0;
        return drupe_error_set(DRUPE_E_UNAVAILABLE, "The folder cannot be listed.");
    }
    const drupe_status status = __real_drupe_folder_list(folder, entries, count);
    if (*taken_away) assert_int_equal(unlink(taken_away), 0);
    return status;
}

int __real_unlinkat(int folder, const char *name, int flags);
int __wrap_unlinkat(int folder, const char *name, int flags);
int __wrap_unlinkat(int folder, const char *name, int flags)
{
    if (!unremovable) return __real_unlinkat(folder, name, flags);
    errno = EPERM;
    return -1;
}

static void entries_may_be_taken_away_meanwhile(void **state)
{
    (void)state;
    char path[256];
    uint64_t freed;
    assert_false(cached("first"));
    entry_path(taken_away, sizeof taken_away);
    assert_false(drupe_cache_clear(&freed) != DRUPE_OK);
    taken_away[0] = '\0';
    assert_int_equal(freed, 0); /* not by us */
    assert_int_equal(info().entries, 0);
    assert_false(cached("first"));
    snprintf(path, sizeof path, "%s/.new-1-2", cache_folder);
    write_file(path, "x", 1);
    unremovable = true;
    OK(drupe_cache_clear(&freed));
    unremovable = false;
    assert_int_equal(freed, 0);
    assert_int_equal(info().entries, 1);
    OK(drupe_cache_clear(&freed));
    assert_true(freed > 100);
}

static bool never(const drupe_cache_entry *entry, void *user)
{
    (void)user;
    fail_msg("%s is visited", entry->name);
    return true;
}

static void folders_may_not_be_listed(void **state)
{
    (void)state;
    assert_false(cached("first"));
    unlisted = true;
    assert_int_equal(info().entries, 0);
    assert_true(info().on);
    assert_int_equal(drupe_cache_clear(NULL), DRUPE_E_UNAVAILABLE);
    assert_string_equal(drupe_error_last()->text, "The folder cannot be listed.");
    assert_int_equal(drupe_cache_each(never, NULL), DRUPE_E_UNAVAILABLE);
    assert_false(cached("second")); /* stored, with the room that there is */
    assert_true(cached("second"));
    unlisted = false;
    assert_int_equal(info().entries, 2);
}

/* --- Entries that do not serve -------------------------------------------------------------------------- */

/* A whole entry without a binary is none. */
static void an_entry_without_a_binary_is_replaced(void **state)
{
    (void)state;
    const drupe_source source = text_source("first");
    drupe_text where = {0}, key = {0};
    drupe_device *device;
    char path[256];
    assert_false(cached("first"));
    OK(drupe_device_select("host", &device));
    drupe_key_where(&where, device);
    drupe_key_source(&key, device, &source);
    drupe_device_release(device);
    entry_path(path, sizeof path);
    const uint64_t rejected = info().rejected, loads = (uint64_t)test_compiler.loads;
    char again[256];
    write_entry(again, strrchr(path, '/') + 1, drupe_text_get(&where), drupe_text_get(&key), "");
    assert_string_equal(again, path);
    assert_false(cached("first"));
    assert_int_equal(info().rejected, rejected + 1);
    assert_int_equal(test_compiler.loads, loads); /* the driver did not see it */
    assert_true(cached("first"));
    drupe_text_clear(&where);
    drupe_text_clear(&key);
}

static struct rlimit files;

static void use_up_files(void)
{
    struct rlimit none = files;
    none.rlim_cur = 0;
    (void)setrlimit(RLIMIT_NOFILE, &none);
}

/* Neither can the entry be removed that the driver refuses, nor another one be stored. */
static void without_files_programs_are_built_all_the_same(void **state)
{
    (void)state;
    assert_false(cached("first"));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    test_compiler.refuse = true;
    test_compiler.refused = use_up_files;
    const uint64_t rejected = info().rejected, stored = info().stored;
    assert_false(cached("first"));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_int_equal(info().rejected, rejected);
    assert_int_equal(info().stored, stored);
    assert_int_equal(info().entries, 1);
    test_compiler.refuse = false;
    assert_true(cached("first"));
}

static size_t open_files(void)
{
    size_t count = 0;
    DIR *stream = opendir("/proc/self/fd");
    assert_non_null(stream);
    while (readdir(stream)) count++;
    closedir(stream);
    return count;
}

static bool go_on(const drupe_cache_entry *entry, void *user)
{
    (void)entry, (void)user;
    return true;
}

static void no_file_stays_open(void **state)
{
    (void)state;
    (void)info(); /* the folder itself stays open */
    const size_t before = open_files();
    assert_false(cached("first"));
    assert_true(cached("first"));
    test_compiler.refuse = true;
    assert_false(cached("first"));
    assert_int_equal(info().entries, 1);
    OK(drupe_cache_each(go_on, NULL));
    OK(drupe_cache_clear(NULL));
    assert_int_equal(open_files(), before);
    start_again();
    assert_int_equal(open_files(), before - 1);
}

/* --- A forked child ------------------------------------------------------------------------------------- */

#define MUST(condition)                                                                                      \
    do {                                                                                                     \
        if (!(condition)) _Exit(__LINE__ % 200 + 1);                                                         \
    } while (0)
#define FORKED(call) MUST((call) == DRUPE_E_UNAVAILABLE && strstr(drupe_error_last()->text, "fork"))

static void forked(void)
{
    drupe_text where = {0}, key = {0};
    drupe_record record;
    void *bytes = &where;
    drupe_text_printf(&where, "x");
    drupe_text_printf(&key, "x");
    MUST(!drupe_cache_find(&where, &key, &bytes, &record) && !bytes);
    drupe_text_clear(&where);
    drupe_text_clear(&key);
    FORKED(drupe_cache_flush(SECOND));
    FORKED(drupe_cache_clear(NULL));
    FORKED(drupe_cache_each(never, NULL));
    const drupe_cache_info now = info();
    MUST(!now.on && now.entries == 0 && strstr(now.reason, "fork"));
}

static void a_forked_child_is_told_so(void **state)
{
    (void)state;
    assert_false(cached("first"));
    in_fork(forked);
    assert_true(cached("first"));
}

int main(void)
{
    if (!cache_make()) return 1;
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, cache_teardown)
    const struct CMUnitTest tests[] = {
        TEST(without_memory_nothing_half_is_stored),
        TEST(without_memory_entries_still_serve),
        TEST(what_a_text_brings_in_is_not_known_without_memory),
        TEST(entries_may_be_taken_away_meanwhile),
        TEST(folders_may_not_be_listed),
        TEST(an_entry_without_a_binary_is_replaced),
        TEST(without_files_programs_are_built_all_the_same),
        TEST(no_file_stays_open),
        TEST(a_forked_child_is_told_so),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return cache_remove() ? failed : 1;
}
