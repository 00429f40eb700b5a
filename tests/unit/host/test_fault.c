/* Faults of device work on the host device are contained, and the device works on. Under a sanitizer too: its
 * own handler stands behind the one installed here. */
#include "backends/services.h"
#include "base/base.h"
#include "core/fault/fault_room.h"
#include "drupe/check.h"
#include "test_builtins.h"
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define LONG   (30 * SECOND)
#define ITEMS  64

#define OK(expression) check((expression), #expression, __LINE__)

static void check(drupe_status status, const char *what, int line)
{
    if (status != DRUPE_OK) fail_msg("line %d: %s: %s", line, what, drupe_error_last()->text);
}

struct bench {
    drupe_device *device;
    drupe_context *context;
    drupe_queue *queue;
    drupe_program *program;
    drupe_kernel *spin;
};

static void on_fault(int signal, siginfo_t *info, void *context)
{
    int verdict = drupe_fault_claim(signal, info, context);
    if (verdict == DRUPE_FAULT_RETURN) return;
    if (verdict == DRUPE_FAULT_PARK) {
        for (;;) pause();
    }
    _exit(128 + signal);
}

/* cmocka sets handlers of its own before each test and fixture. */
static struct bench *begin(void **state)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    action.sa_sigaction = on_fault;
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < DRUPE_COUNT_OF(signals); i++) sigaction(signals[i], &action, NULL);
    return *state;
}

static int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    drupe_source source = {.language = DRUPE_LANG_BUILTIN};
    drupe_fault_contain();
    OK(drupe_device_select("host", &bench->device));
    OK(drupe_device_context(bench->device, &bench->context));
    OK(drupe_queue_open(bench->context, bench->device, 0, &bench->queue));
    OK(drupe_program_open(bench->context, bench->device, &source, NULL, &bench->program));
    OK(drupe_kernel_open(bench->program, "test_spin", &bench->spin));
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    drupe_failure failure;
    while (drupe_failure_take(&failure)) {}
    drupe_kernel_release(bench->spin);
    drupe_program_release(bench->program);
    drupe_queue_release(bench->queue);
    drupe_context_release(bench->context);
    drupe_device_release(bench->device);
    free(bench);
    return drupe_library_close(LONG) == 0 ? 0 : -1;
}

/* With out == NULL every work-item faults. */
static void submit_spin(struct bench *bench, drupe_queue *queue, uint64_t *out, drupe_event **event)
{
    uint64_t rounds = 1;
    drupe_arg args[] = {{DRUPE_ARG_POINTER, sizeof(void *), &out}, {DRUPE_ARG_VALUE, sizeof rounds, &rounds}};
    drupe_range range = {.dims = 1, .global = {ITEMS}};
    drupe_submission s = {.queue = queue};
    OK(drupe_submit_kernel(&s, bench->spin, &range, args, 2, event));
}

static void host_works(struct bench *bench, drupe_queue *queue)
{
    drupe_memory *memory;
    drupe_event *event;
    OK(drupe_memory_alloc(queue, DRUPE_MEM_SHARED, ITEMS * sizeof(uint64_t), 0, &memory));
    uint64_t *out = drupe_memory_pointer(memory);
    memset(out, 0, ITEMS * sizeof *out);
    submit_spin(bench, queue, out, &event);
    OK(drupe_event_wait(event, LONG));
    for (uint64_t i = 0; i < ITEMS; i++) assert_int_equal(out[i], test_spin_result(i, 1));
    drupe_event_release(event);
    drupe_memory_release(memory);
}

static void expect_fault(drupe_status status, const char *what, const char *how)
{
    const drupe_error *error = drupe_error_last();
    assert_int_equal(status, DRUPE_E_DEVICE_LOST);
    if (!strstr(error->text, what) || !strstr(error->text, how)) fail_msg("%s", error->text);
    assert_string_equal(error->backend, "host");
}

static void a_kernel(void **state)
{
    struct bench *bench = begin(state);
    drupe_event *bad, *behind;
    for (int round = 0; round < 5; round++) {
        submit_spin(bench, bench->queue, NULL, &bad);
        submit_spin(bench, bench->queue, NULL, &behind);
        expect_fault(drupe_event_wait(bad, LONG), "'test_spin'", "SIGSEGV at address 0x");
        assert_non_null(strstr(drupe_error_last()->text, "work-items"));
        assert_int_equal(drupe_event_wait(behind, LONG), DRUPE_E_DEPENDENCY);
        assert_non_null(strstr(drupe_error_last()->text, "'test_spin'"));
        drupe_event_release(bad);
        drupe_event_release(behind);
        host_works(bench, bench->queue);
    }
}

static void a_kernel_without_an_event(void **state)
{
    struct bench *bench = begin(state);
    submit_spin(bench, bench->queue, NULL, NULL);
    submit_spin(bench, bench->queue, NULL, NULL);
    expect_fault(drupe_queue_wait(bench->queue, LONG), "'test_spin'", "SIGSEGV");
    OK(drupe_queue_wait(bench->queue, LONG));
    host_works(bench, bench->queue);
}

static unsigned count_threads(void)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/task");
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

/* No thread and no place is lost with any of them. */
static void as_often_as_you_like(void **state)
{
    struct bench *bench = begin(state);
    host_works(bench, bench->queue);
    submit_spin(bench, bench->queue, NULL, NULL);
    expect_fault(drupe_queue_wait(bench->queue, LONG), "'test_spin'", "SIGSEGV");
    unsigned before = count_threads();
    for (int round = 0; round < 200; round++) {
        submit_spin(bench, bench->queue, NULL, NULL);
        expect_fault(drupe_queue_wait(bench->queue, LONG), "'test_spin'", "SIGSEGV");
    }
    host_works(bench, bench->queue);
    assert_uint_in_range(count_threads(), 1,
                         before + 1); /* a worker that was not needed before may have begun */
}

#ifdef __has_attribute
#define BLIND __attribute__((no_sanitize("undefined"))) /* the mistake is on purpose */
#else
#define BLIND
#endif

#if defined(__x86_64__)
static volatile int zero;

BLIND static drupe_status divide(void *user)
{
    volatile int *out = user;
    *out = 10 / zero;
    return DRUPE_OK;
}
#endif

BLIND static drupe_status run_wild(void *user)
{
    (void)user;
    *(volatile int *)(uintptr_t)0x1234 = 1;
    return DRUPE_OK;
}

static int deeper(volatile char *above)
{
    volatile char page[4096];
    page[0] = *above;
    return page[0] == 1 ? 0 : deeper(page) + page[0];
}

static drupe_status overflow(void *user)
{
    volatile char top = 0;
    *(int *)user = deeper(&top);
    return DRUPE_OK;
}

static void a_host_function(void **state)
{
    struct bench *bench = begin(state);
    struct {
        drupe_host_fn fn;
        const char *text;
    } cases[] = {
        {run_wild, "SIGSEGV at address 0x1234"},
#if defined(__x86_64__) /* on AArch64 the quotient is 0 */
        {divide, "SIGFPE, division by zero"},
#endif
        {overflow, "SIGSEGV"}
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int out = 0;
        drupe_event *event;
        drupe_submission s = {.queue = bench->queue};
        OK(drupe_submit_host(&s, cases[i].fn, &out, &event));
        expect_fault(drupe_event_wait(event, LONG), "host function", cases[i].text);
        drupe_event_release(event);
        host_works(bench, bench->queue);
    }
}

/* Other queues do not notice. */
static void only_its_own_queue_fails(void **state)
{
    struct bench *bench = begin(state);
    drupe_queue *other;
    OK(drupe_queue_open(bench->context, bench->device, 0, &other));
    drupe_event *bad;
    submit_spin(bench, bench->queue, NULL, &bad);
    host_works(bench, other);
    expect_fault(drupe_event_wait(bad, LONG), "'test_spin'", "SIGSEGV");
    host_works(bench, other);
    drupe_event_release(bad);
    drupe_queue_release(other);
}

static void nobody_waits(void **state)
{
    struct bench *bench = begin(state);
    drupe_event *bad;
    drupe_failure failure = {.label = ""};
    submit_spin(bench, bench->queue, NULL, &bad);
    uint64_t deadline = drupe_deadline(LONG);
    bool taken = false;
    while (!taken && drupe_now_ns() < deadline) taken = drupe_failure_take(&failure);
    assert_true(taken);
    assert_int_equal(failure.error.status, DRUPE_E_DEVICE_LOST);
    assert_string_equal(failure.label, "test_spin");
    drupe_event_release(bad);
    host_works(bench, bench->queue);
}

/* --- Checked mode: the ends of memory fault ---------------------------------------------------------------
 */

struct stray {
    volatile char *base;
    ptrdiff_t offset;
    bool writes;
};

BLIND static drupe_status run_stray(void *user)
{
    const struct stray *stray = user;
    if (stray->writes)
        stray->base[stray->offset] = 1;
    else
        return stray->base[stray->offset] == 77 ? DRUPE_E_INTERNAL : DRUPE_OK;
    return DRUPE_OK;
}

static void expect_stray(struct bench *bench, size_t bytes, ptrdiff_t offset, bool writes, const char *where)
{
    drupe_memory *memory;
    drupe_event *event;
    uint64_t before = drupe_check_findings();
    OK(drupe_memory_alloc(bench->queue, DRUPE_MEM_SHARED, bytes, 0, &memory));
    struct stray stray = {drupe_memory_pointer(memory), offset, writes};
    drupe_submission s = {.queue = bench->queue};
    OK(drupe_submit_host(&s, run_stray, &stray, &event));
    assert_int_equal(drupe_event_wait(event, LONG), DRUPE_E_CHECK);
    const char *text = drupe_error_last()->text;
    char size[64];
    snprintf(size, sizeof size, "%s the %zu bytes of shared memory", where, bytes);
    bool told = strstr(text, "Out of bounds: the host function") && strstr(text, size);
#if defined(__x86_64__)
    told = told && strstr(text, writes ? ": it wrote " : ": it read ");
#endif
    if (!told) fail_msg("%s", text);
    assert_int_equal(drupe_check_findings(), before + 1);
    drupe_event_release(event);
    drupe_memory_release(memory);
    host_works(bench, bench->queue);
}

static void reads_behind_the_end(void **state)
{
    struct bench *bench = begin(state);
    const size_t page = drupe_page_size();
    char far[64];
    drupe_check_begin();
    expect_stray(bench, 64, 64, false, " 0 bytes behind the end of");
    expect_stray(bench, 64, 64 + 65000, true, " 65000 bytes behind the end of");
    expect_stray(bench, page, (ptrdiff_t)page, false, " 0 bytes behind the end of");
    expect_stray(bench, page, -1, true, " 1 bytes before the start of");
    /* 40 bytes are no multiple of 16: the 8 between them and the pages behind hold a pattern. */
    expect_stray(bench, 40, 48, false, " 8 bytes behind the end of");
    snprintf(far, sizeof far, " %zu bytes before the start of", page + 4096);
    expect_stray(bench, 100, -(ptrdiff_t)page - 4096, true, far);
    drupe_check_end();
}

static void the_gap_before_the_fence(void **state)
{
    struct bench *bench = begin(state);
    drupe_memory *memory;
    drupe_check_begin();
    OK(drupe_memory_alloc(bench->queue, DRUPE_MEM_HOST, 40, 0, &memory));
    char *base = drupe_memory_pointer(memory);
    assert_int_equal((uintptr_t)base % 16, 0);
    base[44] = 1;
    assert_int_equal(drupe_queue_wait(bench->queue, LONG), DRUPE_E_CHECK);
    if (!strstr(drupe_error_last()->text, "4 bytes behind")) fail_msg("%s", drupe_error_last()->text);
    drupe_memory_release(memory);
    OK(drupe_memory_alloc(bench->queue, DRUPE_MEM_HOST, 40, 4096, &memory));
    assert_int_equal((uintptr_t)drupe_memory_pointer(memory) % 4096, 0);
    memset(drupe_memory_pointer(memory), 0, 40);
    drupe_memory_release(memory);
    drupe_check_end();
    OK(drupe_queue_wait(bench->queue, LONG));
}

static void a_kernel_that_reads_too_far(void **state)
{
    struct bench *bench = begin(state);
    drupe_kernel *add;
    drupe_memory *in, *out;
    drupe_check_begin();
    OK(drupe_kernel_open(bench->program, "test_add", &add));
    OK(drupe_memory_alloc(bench->queue, DRUPE_MEM_DEVICE, 1024, 0, &in));
    OK(drupe_memory_alloc(bench->queue, DRUPE_MEM_DEVICE, 4096, 0, &out));
    uint64_t n = 300; /* floats, of 256 */
    void *from = drupe_memory_pointer(in), *to = drupe_memory_pointer(out);
    memset(from, 0, 1024);
    drupe_arg args[] = {{DRUPE_ARG_POINTER, 0, &from},
                        {DRUPE_ARG_POINTER, 0, &from},
                        {DRUPE_ARG_POINTER, 0, &to},
                        {DRUPE_ARG_VALUE, 8, &n}};
    drupe_range range = {.dims = 1, .global = {4}};
    drupe_submission s = {.queue = bench->queue};
    OK(drupe_submit_kernel(&s, add, &range, args, 4, NULL));
    assert_int_equal(drupe_queue_wait(bench->queue, LONG), DRUPE_E_CHECK);
    const char *text = drupe_error_last()->text;
    if (!strstr(text, "'test_add'") || !strstr(text, "work-items") ||
        !strstr(text, "the 1024 bytes of device"))
        fail_msg("%s", text);
    drupe_memory_release(in);
    drupe_memory_release(out);
    drupe_kernel_release(add);
    drupe_check_end();
    host_works(bench, bench->queue);
}

/* A thread that is not the engine's: the process ends as it would without us. */
static void other_threads_are_not_saved(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        static const int signals[] = {SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
        for (size_t i = 0; i < DRUPE_COUNT_OF(signals); i++) signal(signals[i], SIG_DFL);
        alarm(20);
        if (drupe_fault_install(NULL) == DRUPE_OK) *(volatile int *)(uintptr_t)0x4320 = 1;
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_false(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
}

/* --- Large copies ----------------------------------------------------------------------------------------
 */

/* Core's threads make them, out of memory that the caller named; those of a CPU device too. */
static void a_copy_from_nowhere(void **state)
{
    struct bench *bench = begin(state);
    enum { BYTES = 17 << 20, HOLE = 9 << 20 };
    drupe_device *device;
    drupe_queue *queue;
    drupe_memory *memory;
    drupe_event *event, *behind;
    (void)bench;
    if (drupe_device_select("opencl:cpu", &device) != DRUPE_OK) skip();
    OK(drupe_device_queue(device, &queue));
    OK(drupe_memory_alloc(queue, DRUPE_MEM_DEVICE, BYTES, 0, &memory));
    char *source = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(source != MAP_FAILED);
    memset(source, 7, BYTES);
    assert_int_equal(mprotect(source + HOLE, drupe_page_size(), PROT_NONE), 0);
    drupe_submission s = {.queue = queue};
    OK(drupe_submit_copy(&s, drupe_memory_pointer(memory), source, BYTES, &event));
    OK(drupe_submit_barrier(&s, &behind));
    assert_int_equal(drupe_event_wait(event, LONG), DRUPE_E_DEVICE_LOST);
    const char *text = drupe_error_last()->text;
    if (!strstr(text, "The copy faulted: SIGSEGV")) fail_msg("%s", text);
    assert_int_equal(drupe_event_wait(behind, LONG), DRUPE_E_DEPENDENCY);
    /* The device is not lost: it had no part in it. */
    assert_int_equal(mprotect(source + HOLE, drupe_page_size(), PROT_READ | PROT_WRITE), 0);
    OK(drupe_submit_copy(&s, drupe_memory_pointer(memory), source, BYTES, NULL));
    OK(drupe_queue_wait(queue, LONG));
    memset(source, 0, BYTES);
    OK(drupe_submit_copy(&s, source, drupe_memory_pointer(memory), BYTES, NULL));
    OK(drupe_queue_wait(queue, LONG));
    assert_true(source[HOLE] == 7 && source[BYTES - 1] == 7);
    munmap(source, BYTES);
    drupe_event_release(event);
    drupe_event_release(behind);
    drupe_memory_release(memory);
    drupe_queue_release(queue);
    drupe_device_release(device);
}

/* --- Threads that appear while a driver is called ------------------------------------------------------- */

struct claimant {
    _Atomic(int) go;
    int claimed;
};

static void *claim_main(void *user)
{
    struct claimant *self = user;
    siginfo_t info = {.si_signo = SIGSEGV, .si_code = SEGV_MAPERR};
    while (!atomic_load(&self->go)) usleep(100);
    self->claimed = drupe_fault_claim(SIGSEGV, &info, NULL);
    return NULL;
}

static void threads_of_ours_are_no_drivers(void **state)
{
    struct bench *bench = begin(state);
    static const char driver = 'd';
    struct claimant ours = {0}, other = {0};
    pthread_t threads[2];
    host_works(bench, bench->queue); /* there is a thread to look after */
    drupe_threads *before = drupe_core_adoption_begin();
    OK(drupe_thread_start(&threads[0], claim_main, &ours, "ours"));
    assert_int_equal(pthread_create(&threads[1], NULL, claim_main, &other), 0);
    drupe_core_adoption_end(before, &driver);
    atomic_store(&ours.go, 1);
    atomic_store(&other.go, 1);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    assert_int_equal(ours.claimed, 0);
    assert_int_equal(other.claimed, 1);
    /* Faults are dealt with one after the other: that one is done with when this one is. */
    drupe_event *event;
    submit_spin(bench, bench->queue, NULL, &event);
    assert_int_equal(drupe_event_wait(event, LONG), DRUPE_E_DEVICE_LOST);
    drupe_event_release(event);
}

static const char early_owner = 'e';
static _Atomic(bool) early_told;

static void hear(const drupe_fault *fault)
{
    if (fault->owner == &early_owner) atomic_store(&early_told, true);
}

/* It is kept until there is somebody to tell. */
static void before_the_first_queue(void **state)
{
    struct claimant self = {0};
    pthread_t thread;
    (void)state;
    drupe_fault_contain();
    drupe_threads *before = drupe_core_adoption_begin();
    assert_int_equal(pthread_create(&thread, NULL, claim_main, &self), 0);
    drupe_core_adoption_end(before, &early_owner);
    atomic_store(&self.go, 1);
    pthread_join(thread, NULL);
    assert_int_equal(self.claimed, DRUPE_FAULT_PARK);
    usleep(20000); /* who serves faults has looked, most likely */
    assert_false(atomic_load(&early_told));
    drupe_isolation_tell(hear);
    for (uint64_t end = drupe_deadline(LONG); !atomic_load(&early_told) && drupe_now_ns() < end;) usleep(100);
    assert_true(atomic_load(&early_told));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_the_first_queue),
        cmocka_unit_test_setup_teardown(a_kernel, setup, teardown),
        cmocka_unit_test_setup_teardown(a_kernel_without_an_event, setup, teardown),
        cmocka_unit_test_setup_teardown(as_often_as_you_like, setup, teardown),
        cmocka_unit_test_setup_teardown(a_host_function, setup, teardown),
        cmocka_unit_test_setup_teardown(only_its_own_queue_fails, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(reads_behind_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(the_gap_before_the_fence, setup, teardown),
        cmocka_unit_test_setup_teardown(a_kernel_that_reads_too_far, setup, teardown),
        cmocka_unit_test_setup_teardown(a_copy_from_nowhere, setup, teardown),
        cmocka_unit_test_setup_teardown(threads_of_ours_are_no_drivers, setup, teardown),
        cmocka_unit_test(other_threads_are_not_saved),
    };
    setenv("DRUPE_HOST_THREADS", "2", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
