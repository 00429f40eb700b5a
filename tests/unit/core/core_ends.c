#include "core_ends.h"
#include "fault/leave.h"
#include "walk/wrap.h"
#include <sys/wait.h>

int ends_setup(void **state)
{
    const int result = bench_setup(state);
    assert_int_equal(result, 0);
    return result;
}

bool ends_good(drupe_status status)
{
    const char *text = drupe_error_last()->text;
    if (status == DRUPE_OK) return true;
    if (strlen(text) < 10) fail_msg("'%s' is no sentence", text);
    return false;
}

void ends_settle(drupe_queue *queue)
{
    drupe_failure failure;
    for (int i = 0; i < 100 && !drupe_queue_idle(queue, LONG / 100); i++) continue;
    (void)!drupe_queue_wait(queue, LONG);
    while (drupe_failure_take(&failure)) continue;
    drupe_queue_collect(queue);
}

static bool run(void (*scene)(void), wrap_kind kind, unsigned long n)
{
    void *state = NULL;
    ends_setup(&state);
    wrap_plan(kind, n);
    scene();
    const bool made = wrap_made() > 0;
    wrap_plan(WRAP_NOTHING, 0);
    if (bench_teardown(&state) != 0) fail_msg("allocation or thread %lu", n);
    return made;
}

void ends_walk(void (*scene)(void))
{
    unsigned long n = 1, threads = 1;
    assert_false(run(scene, WRAP_NOTHING, 0));
    while (run(scene, WRAP_MALLOC, n)) n++;
    while (run(scene, WRAP_THREAD, threads)) threads++;
    assert_true(n > 1);
}

void ends_until(drupe_status (*call)(void), const char *part)
{
    unsigned long n = 1;
    for (int tries = 0; tries < 100; tries++) {
        wrap_plan(WRAP_MALLOC, n);
        const drupe_status status = call();
        n = wrap_made() ? n + 1 : 1; /* once more from the beginning: what was made first is there by now */
        wrap_plan(WRAP_NOTHING, 0);
        if (!ends_good(status) && strstr(drupe_error_last()->text, part)) return;
    }
    fail_msg("no allocation is for '%s'", part);
}

void ends_fail(const char *what, int line)
{
    fprintf(stderr, "line %d: %s: %s\n", line, what, drupe_error_last()->text);
    leave(1);
}

drupe_status ends_fault(void *unused)
{
    static volatile int *volatile nowhere = (volatile int *)(uintptr_t)16; /* the compiler must not know */
    (void)unused;
    *nowhere = 1;
    return DRUPE_OK;
}

void ends_in_child(void (*body)(void))
{
    ends_apart(NULL, body);
}

void ends_apart(void (*begin)(void), void (*body)(void))
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        if (begin) begin();
        body();
        leave(0);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
}
