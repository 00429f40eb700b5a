/* The base of both halves: errors, text, maps, time, libraries, processes, threads. */
#include "base/file.h"
#include <dlfcn.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* --- Errors --------------------------------------------------------------------------------------------- */

static void *other_thread(void *unused)
{
    (void)unused;
    drupe_error_set(DRUPE_E_BUSY, "elsewhere");
    return NULL;
}

static void errors(void **state)
{
    (void)state;
    assert_int_equal(drupe_error_set(DRUPE_E_NOT_FOUND, "no %s of %d", "thing", 3), DRUPE_E_NOT_FOUND);
    assert_string_equal(drupe_error_last()->text, "no thing of 3");
    pthread_t thread;
    assert_int_equal(drupe_thread_start(&thread, other_thread, NULL, "other"), DRUPE_OK);
    pthread_join(thread, NULL);
    assert_int_equal(drupe_error_last()->status, DRUPE_E_NOT_FOUND);
    /* The new text may quote the old one. */
    drupe_error_set_native(DRUPE_E_INTERNAL, "opencl", -5, "CL_X", "because: %s", drupe_error_last()->text);
    assert_string_equal(drupe_error_last()->text, "because: no thing of 3");
    assert_string_equal(drupe_error_last()->native_name, "CL_X");
    assert_int_equal(drupe_error_last()->native, -5);
    drupe_error kept = *drupe_error_last();
    drupe_error_set(DRUPE_E_BUSY, "x");
    assert_string_equal(drupe_error_last()->backend, "");
    assert_int_equal(drupe_error_restore(&kept), DRUPE_E_INTERNAL);
    assert_string_equal(drupe_error_last()->text, "because: no thing of 3");
    char lengthy[5000];
    memset(lengthy, 'a', sizeof lengthy - 1);
    lengthy[sizeof lengthy - 1] = '\0';
    drupe_error_set(DRUPE_E_INVALID, "%s", lengthy);
    assert_int_equal(strlen(drupe_error_last()->text), sizeof kept.text - 1);
}

static void status_names(void **state)
{
    (void)state;
    for (int status = 0; status < DRUPE_STATUS_COUNT; status++) {
        assert_string_not_equal(drupe_status_name((drupe_status)status), "UNKNOWN");
    }
    assert_string_equal(drupe_status_name(DRUPE_E_NO_MEMORY), "NO_MEMORY");
    assert_string_equal(drupe_status_name((drupe_status)99), "UNKNOWN");
    assert_string_equal(drupe_status_name((drupe_status)-1), "UNKNOWN");
}

/* --- Text ----------------------------------------------------------------------------------------------- */

static void text(void **state)
{
    (void)state;
    drupe_text text = {0};
    assert_string_equal(drupe_text_get(&text), "");
    assert_null(drupe_text_take(&text));
    size_t length = 0;
    for (int i = 0; i < 1000; i++) {
        drupe_text_printf(&text, "%d,", i);
        drupe_text_append(&text, "ab\0c", 2);
    }
    for (const char *c = drupe_text_get(&text); *c; c++) length++;
    assert_int_equal(length, text.length);
    assert_int_equal(strncmp(drupe_text_get(&text), "0,ab1,ab2,ab", 12), 0);
    assert_int_equal(drupe_text_check(&text), DRUPE_OK);
    char *taken = drupe_text_take(&text);
    assert_int_equal(strlen(taken), length);
    assert_int_equal(text.length, 0);
    free(taken);
    drupe_text_append(&text, "x", SIZE_MAX - 4);
    assert_int_equal(drupe_text_check(&text), DRUPE_E_NO_MEMORY);
    drupe_text_printf(&text, "ignored");
    assert_string_equal(drupe_text_get(&text), "");
    drupe_text_clear(&text);
    assert_int_equal(drupe_text_check(&text), DRUPE_OK);
}

/* --- Map ------------------------------------------------------------------------------------------------ */

/* Against a plain table, through random puts and removals: the probing must survive them. */
static void map_against_table(void **state)
{
    (void)state;
    enum { KEYS = 500 };
    static int values[KEYS];
    bool present[KEYS] = {false};
    drupe_map map = {0};
    uint64_t random = 1;
    size_t count = 0;
    for (int step = 0; step < 50000; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        int key = (int)((random >> 33) % KEYS);
        if (random >> 63) {
            void *old;
            assert_int_equal(drupe_map_put(&map, &key, sizeof key, &values[key], &old), DRUPE_OK);
            assert_ptr_equal(old, present[key] ? &values[key] : NULL);
            count += !present[key];
            present[key] = true;
        } else {
            assert_ptr_equal(drupe_map_remove(&map, &key, sizeof key), present[key] ? &values[key] : NULL);
            count -= present[key];
            present[key] = false;
        }
        assert_int_equal(map.count, count);
    }
    for (int key = 0; key < KEYS; key++) {
        assert_ptr_equal(drupe_map_get(&map, &key, sizeof key), present[key] ? &values[key] : NULL);
    }
    size_t cursor = 0, seen = 0, size;
    const void *key;
    for (void *value; (value = drupe_map_next(&map, &cursor, &key, &size)); seen++) {
        assert_int_equal(size, sizeof(int));
        assert_ptr_equal(value, &values[*(const int *)key]);
    }
    assert_int_equal(seen, count);
    drupe_map_clear(&map);
    assert_int_equal(map.count, 0);
}

static void map_keys(void **state)
{
    (void)state;
    drupe_map map = {0};
    int a, b, c;
    assert_null(drupe_map_get(&map, "x", 1));
    assert_null(drupe_map_remove(&map, "x", 1));
    assert_int_equal(drupe_map_put(&map, "", 0, &a, NULL), DRUPE_OK);
    assert_int_equal(drupe_map_put(&map, "a\0b", 3, &b, NULL), DRUPE_OK);
    assert_int_equal(drupe_map_put(&map, "a\0c", 3, &c, NULL), DRUPE_OK);
    assert_ptr_equal(drupe_map_get(&map, "", 0), &a);
    assert_ptr_equal(drupe_map_get(&map, "a\0b", 3), &b);
    assert_ptr_equal(drupe_map_get(&map, "a\0c", 3), &c);
    assert_null(drupe_map_get(&map, "a", 1));
    drupe_map_clear(&map);
}

/* --- Time and threads ----------------------------------------------------------------------------------- */

static void deadlines(void **state)
{
    (void)state;
    assert_true(drupe_deadline(UINT64_MAX) == UINT64_MAX);
    assert_true(drupe_deadline(UINT64_MAX - 1) == UINT64_MAX);
    uint64_t before = drupe_now_ns(), deadline = drupe_deadline(5000000);
    assert_true(deadline >= before + 5000000);
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond;
    assert_int_equal(drupe_cond_init(&cond), DRUPE_OK);
    pthread_mutex_lock(&lock);
    while (drupe_cond_wait_until(&cond, &lock, deadline)) {}
    pthread_mutex_unlock(&lock);
    assert_true(drupe_now_ns() >= deadline);
    pthread_cond_destroy(&cond);
}

static void *look_at_mask(void *user)
{
    pthread_sigmask(SIG_SETMASK, NULL, user);
    return NULL;
}

static void threads_leave_signals_alone(void **state)
{
    (void)state;
    pthread_t thread;
    sigset_t theirs, ours, after;
    pthread_sigmask(SIG_SETMASK, NULL, &ours);
    assert_int_equal(drupe_thread_start(&thread, look_at_mask, &theirs, "mask"), DRUPE_OK);
    pthread_join(thread, NULL);
    static const int blocked[] = {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD, SIGHUP, SIGPIPE};
    static const int open[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
    for (size_t i = 0; i < DRUPE_COUNT_OF(blocked); i++) assert_true(sigismember(&theirs, blocked[i]));
    for (size_t i = 0; i < DRUPE_COUNT_OF(open); i++) assert_false(sigismember(&theirs, open[i]));
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&ours, SIGINT), sigismember(&after, SIGINT));
}

/* --- Vendor libraries ----------------------------------------------------------------------------------- */

struct math_table {
    double (*cos)(double);
    double (*no_such_function)(double);
};

static void libraries(void **state)
{
    (void)state;
    static const char *const good[] = {"libno-such-library.so.1", "libm.so.6", NULL};
    static const char *const bad[] = {"libno-such-library.so.1", "libnor-this.so", NULL};
    drupe_dl_symbol symbols[] = {{"cos", offsetof(struct math_table, cos), false},
                                 {"no_such_function", offsetof(struct math_table, no_such_function), true}};
    struct math_table table = {0};
    void *handle;
    assert_int_equal(drupe_dl_open(good, "install libc6", symbols, 2, &table, &handle), DRUPE_OK);
    assert_non_null(handle);
    assert_true(table.cos(0.0) == 1.0);
    assert_null(table.no_such_function);
    dlclose(handle);
    symbols[1].optional = false;
    assert_int_equal(drupe_dl_open(good, "install libc6", symbols, 2, &table, &handle), DRUPE_E_UNAVAILABLE);
    assert_null(handle);
    assert_non_null(strstr(drupe_error_last()->text, "no_such_function"));
    assert_non_null(strstr(drupe_error_last()->text, "libm.so.6"));
    assert_int_equal(drupe_dl_open(bad, "install it", symbols, 2, &table, &handle), DRUPE_E_UNAVAILABLE);
    assert_non_null(strstr(drupe_error_last()->text, "libno-such-library.so.1"));
    assert_non_null(strstr(drupe_error_last()->text, "install it"));
}

/* --- Processes ------------------------------------------------------------------------------------------ */

static void processes(void **state)
{
    (void)state;
    const char *const echo[] = {"/bin/sh", "-c", "cat; echo said >&2", NULL};
    const char *const fail[] = {"/bin/sh", "-c", "echo why >&2; exit 3", NULL};
    drupe_text output = {0};
    drupe_span input = {"what it reads", 13};
    assert_int_equal(drupe_process_run(echo, input, 20000000000u, &output), DRUPE_OK);
    assert_string_equal(drupe_text_get(&output), "what it reads");
    drupe_text_clear(&output);
    assert_int_equal(drupe_process_run(fail, input, 20000000000u, &output), DRUPE_E_INVALID);
    assert_non_null(strstr(drupe_error_last()->text, "why"));
    drupe_text_clear(&output);
}

/* One after the other, each limit, and one that is wider than what the process has. */
static void processes_have_limits(void **state)
{
    (void)state;
    const char *const spin[] = {"/bin/sh", "-c", "(while :; do :; done); exit $?", NULL};
    const char *const eat[] = {"/bin/sh", "-c", "ulimit -v; echo cannot allocate memory >&2; exit 2", NULL};
    const char *const fill[] = {"/bin/sh", "-c", "head -c 100000 /dev/zero", NULL};
    const char *const tell[] = {"/bin/sh", "-c", "ulimit -t; ulimit -v; ulimit -f; ulimit -c", NULL};
    const drupe_span nothing = {NULL, 0};
    drupe_process_limits limits = {.timeout_ns = 60000000000u, .seconds = 1};
    drupe_text output = {0};
    /* The one that has the time is a child of the program. */
    assert_int_equal(drupe_process_run_within(spin, nothing, &limits, &output), DRUPE_E_TIMEOUT);
    assert_non_null(strstr(drupe_error_last()->text, "more than 1 s of processor time"));
    drupe_text_clear(&output);
    limits = (drupe_process_limits){.timeout_ns = UINT64_MAX, .memory = (uint64_t)512 << 20};
    assert_int_equal(drupe_process_run_within(eat, nothing, &limits, &output), DRUPE_E_NO_MEMORY);
    assert_non_null(strstr(drupe_error_last()->text, "512 MiB"));
    drupe_text_clear(&output);
    limits = (drupe_process_limits){.timeout_ns = UINT64_MAX, .file = 65536};
    assert_int_not_equal(drupe_process_run_within(fill, nothing, &limits, &output), DRUPE_OK);
    drupe_text_clear(&output);
    limits = (drupe_process_limits){UINT64_MAX, 77, (uint64_t)300 << 20, 1 << 20};
    assert_int_equal(drupe_process_run_within(tell, nothing, &limits, &output), DRUPE_OK);
    assert_string_equal(drupe_text_get(&output), "77\n307200\n2048\n0\n");
    drupe_text_clear(&output);
}

static void processes_that_cannot_start(void **state)
{
    (void)state;
    const char *const none[] = {"/no/such/program", NULL};
    drupe_text output = {0};
    assert_int_equal(drupe_process_run(none, (drupe_span){NULL, 0}, UINT64_MAX, &output),
                     DRUPE_E_UNAVAILABLE);
    assert_non_null(strstr(drupe_error_last()->text, "/no/such/program: No such file or directory"));
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* none is left behind */
    drupe_text_clear(&output);
}

/* Everybody in the family of the process that runs out of time holds the pipe open. */
static void processes_end_with_their_children(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const char *const slow[] = {"/bin/sh", "-c", "sleep 300 & sleep 300", NULL};
    drupe_text output = {0};
    assert_int_equal(drupe_process_run(slow, (drupe_span){NULL, 0}, 500000000u, &output), DRUPE_E_TIMEOUT);
    drupe_text_clear(&output);
    close(ends[1]);
    struct pollfd end = {.fd = ends[0], .events = POLLIN};
    assert_int_equal(poll(&end, 1, 20000), 1);
    close(ends[0]);
}

/* From and to every place in a line, of every length around one, and nothing beside it. */
/* A process that nobody waits for. */
static void processes_are_stopped(void **state)
{
    (void)state;
    static const _Atomic(bool) stop = true;
    const char *const slow[] = {"/bin/sh", "-c", "sleep 1000", NULL};
    drupe_text output = {0};
    drupe_process_stop_when(&stop);
    assert_int_equal(drupe_process_run(slow, (drupe_span){NULL, 0}, UINT64_MAX, &output), DRUPE_E_CANCELLED);
    drupe_process_stop_when(NULL);
    const char *const good[] = {"/bin/sh", "-c", "true", NULL};
    assert_int_equal(drupe_process_run(good, (drupe_span){NULL, 0}, UINT64_MAX, &output), DRUPE_OK);
    drupe_text_clear(&output);
}

static void copies_past_caches(void **state)
{
    (void)state;
    enum { room = 512 };
    unsigned char from[room], to[room];
    for (size_t i = 0; i < room; i++) from[i] = (unsigned char)(i * 7 + 1);
    for (size_t start = 0; start < 130; start += 3) {
        for (size_t bytes = 0; bytes < 300; bytes++) {
            memset(to, 0, sizeof to);
            drupe_copy_past_caches(to + start, from + start / 2, bytes);
            assert_memory_equal(to + start, from + start / 2, bytes);
            assert_true((start == 0 || to[start - 1] == 0) && to[start + bytes] == 0);
        }
    }
}

/* Around the ends of pieces, from and to odd places, and nothing beside it. */
static void copies_in_pieces(void **state)
{
    (void)state;
    enum { piece = 256 << 10, room = 3 * piece };
    static unsigned char from[room], to[room];
    const size_t sizes[] = {
        0, 1, 4095, 4096, piece - 1, piece, piece + 1, 2 * piece - 1, 2 * piece, 2 * piece + 1, room - 8};
    for (size_t i = 0; i < room; i++) from[i] = (unsigned char)(i * 7 + i / 251);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(to, 0xEE, sizeof to);
        drupe_copy_bytes(to + 3, from + 5, sizes[i]);
        assert_memory_equal(to + 3, from + 5, sizes[i]);
        assert_true(to[2] == 0xEE && to[3 + sizes[i]] == 0xEE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors),
        cmocka_unit_test(status_names),
        cmocka_unit_test(text),
        cmocka_unit_test(map_against_table),
        cmocka_unit_test(map_keys),
        cmocka_unit_test(deadlines),
        cmocka_unit_test(libraries),
        cmocka_unit_test(threads_leave_signals_alone),
        cmocka_unit_test(processes),
        cmocka_unit_test(processes_end_with_their_children),
        cmocka_unit_test(processes_have_limits),
        cmocka_unit_test(processes_that_cannot_start),
        cmocka_unit_test(processes_are_stopped),
        cmocka_unit_test(copies_past_caches),
        cmocka_unit_test(copies_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
