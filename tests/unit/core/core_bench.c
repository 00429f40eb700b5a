#include "core_bench.h"
#include "core/device/device_room.h"

struct bench bench;
drupe_backend bench_table;
const drupe_backend *bench_real;
_Thread_local void (*bench_meanwhile)(void);
static drupe_event *gates[16]; /* each with a reference: a test that fails leaves them closed */

void bench_ok(drupe_status status, const char *what, const char *file, int line)
{
    if (status == DRUPE_OK) return;
    print_error("%s: %s: %s\n", what, drupe_status_name(status), drupe_error_last()->text);
    _fail(file, line);
}

void bench_fails(drupe_status status, drupe_status expected, const char *part, const char *file, int line)
{
    if (status == expected && strstr(drupe_error_last()->text, part)) return;
    print_error("%s instead of %s, '%s' without '%s'\n", drupe_status_name(status),
                drupe_status_name(expected), drupe_error_last()->text, part);
    _fail(file, line);
}

int bench_open(const char *filter, uint32_t flags)
{
    bench = (struct bench){0};
    if (drupe_device_select(filter, &bench.device) == DRUPE_OK &&
        drupe_device_context(bench.device, &bench.context) == DRUPE_OK &&
        drupe_queue_open(bench.context, bench.device, flags, &bench.queue) == DRUPE_OK)
        return 0;
    print_error("%s\n", drupe_error_last()->text);
    return -1;
}

static int open_bench(uint32_t flags)
{
    const drupe_source source = {.language = DRUPE_LANG_BUILTIN};
    if (bench_open("host", flags) != 0) return -1;
    if (drupe_program_open(bench.context, bench.device, &source, NULL, &bench.program) == DRUPE_OK &&
        drupe_kernel_open(bench.program, "test_add", &bench.add) == DRUPE_OK &&
        drupe_kernel_open(bench.program, "test_mad", &bench.mad) == DRUPE_OK &&
        drupe_kernel_open(bench.program, "test_gid", &bench.gid) == DRUPE_OK)
        return 0;
    print_error("%s\n", drupe_error_last()->text);
    return -1;
}

int bench_setup(void **state)
{
    (void)state;
    return open_bench(DRUPE_QUEUE_DEFAULT);
}

static drupe_slot *host_slot(void)
{
    size_t i = 0;
    while (strcmp(drupe_slot_at(i)->base->name, "host") != 0) assert_true(++i < drupe_slot_count());
    return drupe_slot_at(i);
}

void bench_take_table(void)
{
    assert_true(drupe_slot_count() > 0);
    bench_real = host_slot()->base;
    bench_table = *bench_real;
    host_slot()->base = &bench_table;
}

int bench_setup_table(void **state)
{
    bench_take_table();
    return bench_setup(state);
}

/* As drivers are that know neither host functions nor cancelling. */
int bench_setup_poor(void **state)
{
    bench_take_table();
    bench_table.submit_host = NULL;
    bench_table.queue_cancel = NULL;
    return bench_setup(state);
}

int bench_setup_unordered(void **state)
{
    (void)state;
    return open_bench(DRUPE_QUEUE_OUT_OF_ORDER);
}

int bench_teardown(void **state)
{
    (void)state;
    drupe_failure failure;
    bool even = true;
    for (size_t i = 0; i < DRUPE_COUNT_OF(gates); i++) {
        if (gates[i]) (void)!drupe_event_finish(gates[i], NULL);
        drupe_event_release(gates[i]);
        gates[i] = NULL;
    }
    while (drupe_failure_take(&failure)) {
        print_error("nobody took: '%s': %s\n", failure.label, failure.error.text);
        even = false;
    }
    drupe_kernel_release(bench.add);
    drupe_kernel_release(bench.mad);
    drupe_kernel_release(bench.gid);
    drupe_program_release(bench.program);
    drupe_queue_release(bench.queue);
    drupe_context_release(bench.context);
    drupe_device_release(bench.device);
    const size_t left = drupe_library_close(LONG);
    if (bench_real) host_slot()->base = bench_real;
    bench_real = NULL;
    if (left) print_error("%zu objects are left\n", left);
    return even && left == 0 ? 0 : -1;
}

drupe_queue *bench_elsewhere(void)
{
    drupe_context *context;
    drupe_queue *queue;
    OK(drupe_context_open(&bench.device, 1, &context));
    OK(drupe_queue_open(context, bench.device, 0, &queue));
    drupe_context_release(context);
    return queue;
}

static void *cell_retain(void)
{
    void (*act)(void) = bench_meanwhile;
    bench_meanwhile = NULL;
    if (act) act();
    return NULL;
}

const drupe_observer bench_observer = {.cell_retain = cell_retain};

drupe_memory *bench_memory(drupe_queue *queue, drupe_mem_kind kind, size_t bytes)
{
    drupe_memory *memory;
    OK(drupe_memory_alloc(queue, kind, bytes, 0, &memory));
    return memory;
}

drupe_memory *bench_shared(size_t bytes)
{
    return bench_memory(bench.queue, DRUPE_MEM_SHARED, bytes);
}

void bench_expect_bytes(const drupe_memory *memory, unsigned char value, size_t bytes)
{
    const unsigned char *at = drupe_memory_pointer(memory);
    for (size_t i = 0; i < bytes; i++) {
        if (at[i] != value) fail_msg("byte %zu is %u, not %u", i, at[i], value);
    }
}

drupe_event *bench_gate(void)
{
    drupe_event *gate;
    size_t free = 0;
    while (gates[free]) assert_true(++free < DRUPE_COUNT_OF(gates));
    OK(drupe_event_open("gate", 0, &gate));
    gates[free] = drupe_event_retain(gate);
    return gate;
}

void bench_open_gate(drupe_event *gate)
{
    for (size_t i = 0; i < DRUPE_COUNT_OF(gates); i++) {
        if (gates[i] != gate) continue;
        drupe_event_release(gates[i]);
        gates[i] = NULL;
    }
    OK(drupe_event_finish(gate, NULL));
    drupe_event_release(gate);
}

static drupe_submission on(drupe_queue *queue, drupe_event *const *wait)
{
    return (drupe_submission){.queue = queue, .waits = wait, .nwaits = *wait != NULL};
}

drupe_status bench_nothing(void *unused)
{
    (void)unused;
    return DRUPE_OK;
}

static drupe_status fail_as_planned(void *user)
{
    (void)user;
    return drupe_error_set(DRUPE_E_INVALID, PLANNED);
}

drupe_event *bench_failure(drupe_queue *queue, const char *label, drupe_event *wait)
{
    drupe_submission s = on(queue, &wait);
    drupe_event *event;
    s.label = label;
    OK(drupe_submit_host(&s, fail_as_planned, NULL, &event));
    return event;
}

drupe_status bench_mad(drupe_queue *queue, drupe_memory *out, drupe_memory *in, uint64_t n, uint64_t mul,
                       uint64_t add, drupe_event *wait, drupe_event **event)
{
    const drupe_submission s = on(queue, &wait);
    const drupe_range range = {.dims = 1, .global = {4}};
    void *to = drupe_memory_pointer(out), *from = drupe_memory_pointer(in);
    const drupe_arg args[] = {{DRUPE_ARG_POINTER, sizeof to, &to},
                              {DRUPE_ARG_POINTER, sizeof from, &from},
                              {DRUPE_ARG_VALUE, sizeof n, &n},
                              {DRUPE_ARG_VALUE, sizeof mul, &mul},
                              {DRUPE_ARG_VALUE, sizeof add, &add}};
    return drupe_submit_kernel(&s, bench.mad, &range, args, 5, event);
}

drupe_status bench_fill(drupe_queue *queue, drupe_memory *memory, unsigned char value, drupe_event *wait,
                        drupe_event **event)
{
    const drupe_submission s = on(queue, &wait);
    return drupe_submit_fill(&s, drupe_memory_pointer(memory), &value, 1, drupe_memory_size(memory), event);
}

drupe_status bench_barrier(drupe_queue *queue, drupe_event *wait, drupe_event **event)
{
    const drupe_submission s = on(queue, &wait);
    return drupe_submit_barrier(&s, event);
}
