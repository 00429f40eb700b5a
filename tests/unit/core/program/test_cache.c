/* The disk cache of programs: what is found, and what is not. */
#include "cache_fixture.h"
#include "core/program/program_room.h"
#include <sys/stat.h>
#include <unistd.h>

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
    assert_int_equal(stat(cache_folder, &about), 0);
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

/* Of the language that they are for; and without them nothing is looked up or kept. */
static void compilers_of_the_machine_are_in_the_key(void **state)
{
    (void)state;
    drupe_source c = text_source("first"), other = c;
    c.language = DRUPE_LANG_C;
    assert_false(built_from_cache(&other));
    test_compiler.tools = "cc 12.1";
    assert_false(built_from_cache(&c));
    assert_true(built_from_cache(&c));
    test_compiler.tools = "cc 12.2";
    assert_false(built_from_cache(&c));
    assert_true(built_from_cache(&c));
    assert_true(built_from_cache(&other));
    assert_int_equal(info().entries, 3);
    test_compiler.hide = true;
    assert_false(built_from_cache(&c));
    c.bytes = "other";
    assert_false(built_from_cache(&c));
    test_compiler.hide = false;
    assert_false(built_from_cache(&c));
    assert_int_equal(info().entries, 4);
    /* Files that are linked are not looked at. */
    static const char *const linked[] = {"x.o", "libx.a -lm", "-L. -lx"};
    for (size_t i = 0; i < sizeof linked / sizeof *linked; i++) {
        c.options = linked[i];
        assert_false(built_from_cache(&c));
        assert_false(built_from_cache(&c));
    }
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

/* What may bring in a file: of either language, of C alone; and what does not. */
static const char *const both[] = {"#import \"a.h\"",
                                   "# embed <a.bin>",
                                   "#if __has_embed(<a>)",
                                   "asm(\".incbin \\\"a\\\"\");",
                                   "__asm__ (X);",
                                   "#in\\ \t\nclude \"a.h\"",
                                   "as\\\nm(\"x\");",
                                   "char *t = __FILE__;",
                                   "__TIMESTAMP__",
                                   "char *t = __BASE_FILE__;",
                                   "/* */ %: import <a>",
                                   "_Pragma(\"GCC pch_preprocess\")",
                                   "x\r#pragma y\n",
                                   "#pragma GCC dependency \"a\"",
                                   "#if __has_include(<a.h>)",
                                   "?\?=include <a.h>",
                                   "#in\\\v\nclude \"a.h\"",
                                   "#in\\\f\nclude \"a.h\"",
                                   "the end\r"};
static const char *const c_only[] = {"#inc\\\nlude \"a.h\"\n",
                                     "#include <../a.h>\n",
                                     "#include </tmp/a.h>\n",
                                     "#include HEADER\n",
                                     "#include/**/\"a.h\"\n",
                                     "#define J(a, b) a##b\n",
                                     "a%:%:b",
                                     "#include <a\n>",
                                     "#include <a.h>\n#include \"b\"",
                                     "#\\u0069nclude <a>",
                                     "#include_next <a.h>",
                                     "#include",
                                     "#include \t",
                                     "#include <a.h"};
static const char *const kept[] = {"#include <math.h>\n#  include\t<stdlib.h>\n",
                                   "plain",
                                   "/* important, embedded, asmodeus */",
                                   "a \\\n b",
                                   "line\r\nline\r\n",
                                   "asmZ Zasm 9asm asm_",
                                   "the end\\",
                                   "the end\\ "};

static void what_may_bring_in_a_file(void **state)
{
    (void)state;
    for (size_t i = 0; i < DRUPE_COUNT_OF(both); i++) {
        drupe_source source = text_source(both[i]);
        if (drupe_key_complete(&source)) fail_msg("kept: %s", both[i]);
        source.language = DRUPE_LANG_C;
        if (drupe_key_complete(&source)) fail_msg("kept as C: %s", both[i]);
    }
    for (size_t i = 0; i < DRUPE_COUNT_OF(c_only); i++) {
        drupe_source source = text_source(c_only[i]);
        source.language = DRUPE_LANG_C;
        if (drupe_key_complete(&source)) fail_msg("kept: %s", c_only[i]);
    }
    for (size_t i = 0; i < DRUPE_COUNT_OF(kept); i++) {
        drupe_source source = text_source(kept[i]);
        source.language = DRUPE_LANG_C;
        if (!drupe_key_complete(&source)) fail_msg("not kept: %s", kept[i]);
        source.options = "-DX=asm";
        assert_false(drupe_key_complete(&source));
        source.options = "-O2 -DN=5";
        assert_true(drupe_key_complete(&source));
    }
    drupe_source pasting = text_source("#define J(a, b) a##b\n");
    assert_true(drupe_key_complete(&pasting));
}

/* Compilers of the machine look into more folders where these are set; those of drivers do not. */
static void variables_of_compilers_bring_in_files(void **state)
{
    (void)state;
    static const char *const names[] = {"CPATH", "C_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX"};
    drupe_source c = text_source("plain");
    const drupe_source opencl = c;
    c.language = DRUPE_LANG_C;
    for (size_t i = 0; i < DRUPE_COUNT_OF(names); i++) {
        assert_null(getenv(names[i]));
        assert_true(drupe_key_complete(&c));
        setenv(names[i], "/tmp", 1);
        assert_false(drupe_key_complete(&c));
        assert_true(drupe_key_complete(&opencl));
        unsetenv(names[i]);
    }
}

/* Nobody calls for a look: it leaves the last error as it was, with a folder and without. */
static void looking_leaves_the_last_error(void **state)
{
    (void)state;
    const drupe_text text = {.data = (char[]){"x"}, .length = 1};
    for (int i = 0; i < 2; i++) {
        drupe_record record;
        void *bytes;
        start_again();
        drupe_error_set(DRUPE_E_INVALID, "The user's own.");
        assert_false(drupe_cache_find(&text, &text, &bytes, &record));
        assert_string_equal(drupe_error_last()->text, "The user's own.");
        assert_int_equal(info().on, i == 0);
        setenv("DRUPE_CACHE_DIR", "/proc/no/such/place", 1);
    }
}

/* --- Bytes of callers ----------------------------------------------------------------------------------- */

static bool holds(const char *key, const char *expected)
{
    void *bytes;
    size_t size;
    if (!drupe_cache_bytes_find(key, strlen(key), &bytes, &size)) return false;
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(bytes, expected, size);
    free(bytes);
    return true;
}

static void add(const char *key, const char *bytes)
{
    drupe_cache_bytes_add(key, strlen(key), bytes, strlen(bytes));
    OK(drupe_cache_flush(10 * SECOND));
}

static void bytes_are_found_again(void **state)
{
    (void)state;
    const drupe_cache_info before = info();
    assert_false(holds("key", ""));
    add("key", "what was made");
    add("other", "");
    start_again();
    assert_true(holds("key", "what was made"));
    assert_true(holds("other", ""));
    assert_false(holds("ke", ""));
    add("key", "anew");
    assert_true(holds("key", "anew"));
    assert_int_equal(info().entries, 2);
    assert_int_equal(info().stored, before.stored); /* that is of programs */
    assert_int_equal(info().hits + info().misses, before.hits + before.misses);
}

static void they_do_not_wait_for_a_compiler(void **state)
{
    (void)state;
    drupe_program *program;
    drupe_source source = text_source("first");
    test_compiler.type = DRUPE_DEVICE_CPU;
    start_again();
    OK(build(&source, NULL, &program)); /* its binary is asked for once the device rests */
    drupe_cache_bytes_add("key", 3, "bytes", 5);
    drupe_program_release(program);
    start_again(); /* as a process ends */
    assert_true(holds("key", "bytes"));
    assert_int_equal(info().entries, 1);
}

static void damaged_bytes_are_a_miss(void **state)
{
    (void)state;
    char path[256], whole[512];
    add("key", "what was made");
    entry_path(path, sizeof path);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(whole, 1, sizeof whole, file);
    fclose(file);
    for (size_t at = 0; at < size; at++) {
        whole[at] ^= 1;
        write_file(path, whole, size);
        whole[at] ^= 1;
        assert_false(holds("key", ""));
        write_file(path, whole, at);
        assert_false(holds("key", ""));
    }
    write_file(path, whole, size);
    assert_true(holds("key", "what was made"));
}

static void nothing_is_kept_while_it_is_off(void **state)
{
    (void)state;
    setenv("DRUPE_CACHE", "0", 1);
    start_again();
    add("key", "bytes");
    assert_false(holds("key", ""));
    assert_false(drupe_cache_is_on());
    unsetenv("DRUPE_CACHE");
    start_again();
    assert_true(drupe_cache_is_on());
    assert_false(holds("key", ""));
}

static void flags_choose(void **state)
{
    (void)state;
    drupe_source source = text_source("first");
    source.flags = DRUPE_SOURCE_UNCACHED;
    assert_false(built_from_cache(&source));
    assert_int_equal(info().entries, 0);
    assert_false(cached("first"));
    assert_false(built_from_cache(&source));
    assert_true(cached("first"));
}

static void failures_are_not_kept(void **state)
{
    (void)state;
    drupe_source source = text_source("wrong");
    drupe_program *program;
    assert_int_equal(build(&source, NULL, &program), DRUPE_E_BUILD_FAILED);
    OK(drupe_cache_flush(20 * SECOND));
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

static size_t read_file(const char *path, char *bytes, size_t size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t have = fread(bytes, 1, size, file);
    fclose(file);
    return have;
}

static void every_cut_is_a_miss(void **state)
{
    (void)state;
    char path[256], bytes[4096];
    assert_false(cached("first"));
    entry_path(path, sizeof path);
    size_t size = read_file(path, bytes, sizeof bytes);
    assert_uint_in_range(size, 100, sizeof bytes - 1);
    for (size_t cut = 0; cut < size; cut += cut < 128 ? 1 : 7) {
        write_file(path, bytes, cut);
        assert_false(in_folder("first", DRUPE_LANG_OPENCL_C));
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
        assert_false(in_folder("first", DRUPE_LANG_OPENCL_C));
        bytes[at] ^= (char)(1 << at % 8);
    }
    write_file(path, bytes, size);
    assert_true(cached("first"));
}

/* Whole and well, but another's: of a text of that length, or not; of another driver. */
static void a_collision_is_a_miss(void **state)
{
    (void)state;
    static const struct {
        const char *text, *driver;
    } cases[] = {{"first", "1.0"}, {"longer", "1.0"}, {"other", "1.1"}, {"other", "10.0"}};
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        char first[256], second[256], bytes[4096];
        test_compiler.driver = cases[i].driver;
        start_again();
        assert_false(cached(cases[i].text));
        entry_path(first, sizeof first);
        const size_t size = read_file(first, bytes, sizeof bytes);
        OK(drupe_cache_clear(NULL));
        test_compiler.driver = "1.0";
        start_again();
        assert_false(cached("other"));
        entry_path(second, sizeof second);
        write_file(second, bytes, size);
        const uint64_t rejected = info().rejected;
        assert_false(cached("other"));
        assert_int_equal(info().rejected, rejected + 1);
        assert_true(cached("other"));
        OK(drupe_cache_clear(NULL));
    }
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
    if (!cache_make()) return 1;
    const struct CMUnitTest tests[] = {
        CASE(found_again),
        CASE(whatever_decides_a_build_is_in_the_key),
        CASE(compilers_of_the_machine_are_in_the_key),
        CASE(constants_are_in_the_key),
        CASE(programs_that_include_are_never_kept),
        CASE(what_may_bring_in_a_file),
        CASE(variables_of_compilers_bring_in_files),
        CASE(looking_leaves_the_last_error),
        CASE(bytes_are_found_again),
        CASE(they_do_not_wait_for_a_compiler),
        CASE(damaged_bytes_are_a_miss),
        CASE(nothing_is_kept_while_it_is_off),
        CASE(flags_choose),
        CASE(failures_are_not_kept),
        CASE(a_driver_that_refuses_builds_again),
        CASE(every_cut_is_a_miss),
        CASE(every_changed_byte_is_a_miss),
        CASE(a_collision_is_a_miss),
        CASE(what_is_no_plain_file_is_a_miss),
        CASE(binaries),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return cache_remove() ? failed : 1;
}
