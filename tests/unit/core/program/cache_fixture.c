/* Builds through the disk cache, over a compiler that aborts when it is given a binary that is not its own.
 */
#include "cache_fixture.h"
#include "core/program/program_room.h"
#include "fault/leave.h"
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

char cache_root[] = "/tmp/drupe-cache-XXXXXX";
char cache_folder[128];

void check_ok(drupe_status status, const char *what, int line)
{
    if (status != DRUPE_OK) fail_msg("line %d: %s: %s", line, what, drupe_error_last()->text);
}

bool cache_make(void)
{
    if (!mkdtemp(cache_root)) return false;
    snprintf(cache_folder, sizeof cache_folder, "%s/programs", cache_root);
    return true;
}

bool cache_remove(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", cache_root);
    return system(command) == 0;
}

drupe_status build(const drupe_source *source, char **log, drupe_program **program)
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

drupe_source text_source(const char *text)
{
    return (drupe_source){.language = DRUPE_LANG_OPENCL_C, .bytes = text, .size = strlen(text)};
}

bool built_from_cache(const drupe_source *source)
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

bool in_folder(const char *text, drupe_language language)
{
    drupe_source source = text_source(text);
    drupe_device *device;
    drupe_text where = {0}, key = {0};
    drupe_record record;
    void *bytes;
    source.language = language;
    OK(drupe_device_select("host", &device));
    drupe_key_where(&where, device);
    drupe_key_source(&key, device, &source);
    bool found = drupe_cache_find(&where, &key, &bytes, &record);
    free(bytes);
    drupe_text_clear(&key);
    drupe_text_clear(&where);
    drupe_device_release(device);
    return found;
}

bool cached(const char *text)
{
    drupe_source source = text_source(text);
    return built_from_cache(&source);
}

drupe_cache_info info(void)
{
    drupe_cache_info now;
    drupe_cache_info_get(&now);
    return now;
}

void start_again(void)
{
    assert_int_equal(drupe_library_close(SECOND), 0);
}

int cache_setup(void **state)
{
    (void)state;
    test_compiler.refuse = test_compiler.hide = test_compiler.quiet = false;
    test_compiler.tools = test_compiler.names = NULL;
    test_compiler.kernel = test_compiler.binary = DRUPE_OK;
    test_compiler.asked = test_compiler.refused = test_compiler.closed = NULL;
    test_compiler.driver = "1.0";
    test_compiler.type = DRUPE_DEVICE_GPU;
    setenv("DRUPE_CACHE_DIR", cache_root, 1);
    unsetenv("DRUPE_CACHE");
    unsetenv("DRUPE_CACHE_SIZE");
    start_again();
    (void)chmod(cache_folder, 0700);
    OK(drupe_cache_clear(NULL));
    return 0;
}

int cache_teardown(void **state)
{
    (void)state;
    return (int)drupe_library_close(SECOND);
}

void entry_path(char *path, size_t size)
{
    DIR *stream = opendir(cache_folder);
    assert_non_null(stream);
    path[0] = '\0';
    for (const struct dirent *one; (one = readdir(stream));)
        if (strstr(one->d_name, ".bin")) snprintf(path, size, "%s/%.80s", cache_folder, one->d_name);
    closedir(stream);
    assert_string_not_equal(path, "");
}

void write_file(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void write_entry(char path[256], const char *name, const char *where, const char *key, const char *body)
{
    const drupe_record record = {.kind = DRUPE_RECORD_PROGRAM,
                                 .parts = {[DRUPE_PART_WHERE] = {where, strlen(where)},
                                           [DRUPE_PART_KEY] = {key, strlen(key)},
                                           [DRUPE_PART_BODY] = {body, strlen(body)}}};
    void *bytes;
    size_t size;
    OK(drupe_record_pack(&record, &bytes, &size));
    snprintf(path, 256, "%s/%s", cache_folder, name);
    write_file(path, bytes, size);
    assert_int_equal(chmod(path, 0600), 0);
    free(bytes);
}

void in_fork(void (*run)(void))
{
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        run();
        leave(0);
    }
    int result = 0;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
}

void in_child(void (*run)(void))
{
    start_again();
    in_fork(run);
}
