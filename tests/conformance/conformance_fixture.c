/* Benches, and the work that cases are made of. */
#include "conformance.h"
#include "test_builtins.h"
#include <stdio.h>

/* The kernels of test_builtins.h, one item per element; the host's have as many items as are asked for. */
static const char opencl_source[] =
    "kernel void test_add(global const float *a, global const float *b, global float *out, ulong n)\n"
    "{ size_t i = get_global_id(0); if (i < n) out[i] = a[i] + b[i]; }\n"
    "kernel void test_mad(global ulong *out, global const ulong *in, ulong n, ulong mul, ulong add)\n"
    "{ for (size_t i = get_global_id(0); i < n; i += get_global_size(0)) out[i] = in[i] * mul + add; }\n"
    "kernel void test_spin(global ulong *out, ulong rounds)\n"
    "{ ulong x = get_global_id(0) + 1;\n"
    "  for (ulong i = 0; i < rounds; i++) x = x * 6364136223846793005ul + 1442695040888963407ul;\n"
    "  out[get_global_id(0)] = x; }\n"
    "kernel void test_gid(global ulong *out) { out[get_global_id(0)] = get_global_id(0); }\n";

static const char c_source[] =
    "kernel void test_add(const float *a, const float *b, float *out, unsigned long n)\n"
    "{ unsigned long i = get_global_id(0); if (i < n) out[i] = a[i] + b[i]; }\n"
    "kernel void test_mad(unsigned long *out, const unsigned long *in, unsigned long n, unsigned long mul,\n"
    "                     unsigned long add)\n"
    "{ for (unsigned long i = get_global_id(0); i < n; i += get_global_size(0)) out[i] = in[i] * mul + add; "
    "}\n"
    "kernel void test_spin(unsigned long *out, unsigned long rounds)\n"
    "{ unsigned long x = get_global_id(0) + 1;\n"
    "  for (unsigned long i = 0; i < rounds; i++) x = x * 6364136223846793005ul + 1442695040888963407ul;\n"
    "  out[get_global_id(0)] = x; }\n"
    "kernel void test_gid(unsigned long *out) { out[get_global_id(0)] = get_global_id(0); }\n";

static const struct fixture fixtures[] = {
    {"host", "host", DRUPE_LANG_BUILTIN, NULL},
    /* Its kernels in C. */
    {"c", "host", DRUPE_LANG_C, c_source},
    {"opencl", "opencl:cpu,opencl", DRUPE_LANG_OPENCL_C, opencl_source},
    /* A GPU whose driver has device memory only. */
    {"coarse", "opencl:gpu", DRUPE_LANG_OPENCL_C, opencl_source},
};

const struct fixture *fixture_find(const char *backend)
{
    for (size_t i = 0; i < COUNT(fixtures); i++) {
        if (strcmp(fixtures[i].backend, backend) == 0) return &fixtures[i];
    }
    return NULL;
}

void check_ok(drupe_status status, const char *expression, const char *file, int line)
{
    if (status == DRUPE_OK) return;
    print_error("%s\n  answered %s: %s\n", expression, drupe_status_name(status), drupe_error_last()->text);
    _fail(file, line);
}

void check_status(drupe_status status, drupe_status expected, const char *part, const char *expression,
                  const char *file, int line)
{
    const drupe_error *error = drupe_error_last();
    bool right = status == expected && error->status == expected && strstr(error->text, part);
    if (right) return;
    print_error("%s\n  answered %s, expected %s with '%s'\n  last error: %s: %s\n", expression,
                drupe_status_name(status), drupe_status_name(expected), part,
                drupe_status_name(error->status), error->text);
    _fail(file, line);
}

/* --- Benches -------------------------------------------------------------------------------------------- */

void bench_open(struct bench *bench, const struct fixture *fixture, drupe_context *context)
{
    memset(bench, 0, sizeof *bench);
    bench->fixture = fixture;
    OK(drupe_device_select(fixture->filter, &bench->device));
    if (context)
        bench->context = context;
    else
        OK(drupe_device_context(bench->device, &bench->context));
    OK(drupe_queue_open(bench->context, bench->device, 0, &bench->queue));
    drupe_source source = {.language = fixture->language, .bytes = fixture->source};
    if (fixture->source) source.size = strlen(fixture->source);
    OK(drupe_program_open(bench->context, bench->device, &source, NULL, &bench->program));
    OK(drupe_kernel_open(bench->program, "test_add", &bench->add));
    OK(drupe_kernel_open(bench->program, "test_mad", &bench->mad));
    OK(drupe_kernel_open(bench->program, "test_spin", &bench->spin));
    OK(drupe_kernel_open(bench->program, "test_gid", &bench->gid));
}

void bench_close(struct bench *bench)
{
    drupe_kernel_release(bench->add);
    drupe_kernel_release(bench->mad);
    drupe_kernel_release(bench->spin);
    drupe_kernel_release(bench->gid);
    drupe_program_release(bench->program);
    drupe_queue_release(bench->queue);
    drupe_context_release(bench->context);
    drupe_device_release(bench->device);
    memset(bench, 0, sizeof *bench);
}

struct bench *use_other(struct suite *suite)
{
    drupe_context *context;
    OK(drupe_context_open(&suite->bench.device, 1, &context));
    bench_open(&suite->other, suite->fixture, context);
    return &suite->other;
}

struct bench *use_remote(struct suite *suite)
{
    const struct fixture *fixture = fixture_find(strcmp(suite->fixture->filter, "host") ? "host" : "opencl");
    drupe_device *device;
    if (drupe_device_select(fixture->filter, &device) != DRUPE_OK) {
        skip_known(suite, "other_backend");
        return NULL;
    }
    drupe_device_release(device);
    bench_open(&suite->remote, fixture, NULL);
    return &suite->remote;
}

bool known_gap(const struct suite *suite, const char *name)
{
    const char *driver = getenv("DRUPE_TEST_DRIVER");
    static const char *const known[][3] = {
#define KNOWN(backend, name, reason) {backend, name, reason},
#include "known.def"
#undef KNOWN
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        bool ours =
            strcmp(known[i][0], suite->fixture->backend) == 0 || (driver && strcmp(known[i][0], driver) == 0);
        if (!ours || strcmp(known[i][1], name) != 0) continue;
        print_message("skipped: %s\n", known[i][2]);
        return true;
    }
    return false;
}

void skip_known(const struct suite *suite, const char *name)
{
    if (known_gap(suite, name)) skip();
    fail_msg("'%s' may not be skipped on %s: it is not in known.def", name, suite->fixture->backend);
}

/* --- Memory --------------------------------------------------------------------------------------------- */

bool has_kind(const struct bench *bench, drupe_mem_kind kind)
{
    static const drupe_info keys[] = {DRUPE_INFO_USM_DEVICE, DRUPE_INFO_USM_SHARED, DRUPE_INFO_USM_HOST};
    return drupe_device_number(bench->device, keys[kind], DRUPE_USM_NONE) != DRUPE_USM_NONE;
}

drupe_mem_kind kind_or_device(const struct bench *bench, drupe_mem_kind kind)
{
    return has_kind(bench, kind) ? kind : DRUPE_MEM_DEVICE;
}

drupe_memory *new_memory(drupe_queue *queue, drupe_mem_kind kind, size_t bytes)
{
    drupe_memory *memory;
    OK(drupe_memory_alloc(queue, kind, bytes, 0, &memory));
    return memory;
}

void write_memory(drupe_queue *queue, drupe_memory *memory, const void *bytes, size_t size)
{
    drupe_submission s = {.queue = queue};
    OK(drupe_submit_copy(&s, drupe_memory_pointer(memory), bytes, size, NULL));
    OK(drupe_queue_wait(queue, DRUPE_FOREVER));
}

/* What is there, whatever it stands for: what becomes of results is the concern of contents.c alone. */
void read_memory(drupe_queue *queue, drupe_memory *memory, void *bytes, size_t size)
{
    drupe_memory_accept(memory);
    drupe_submission s = {.queue = queue};
    OK(drupe_submit_copy(&s, bytes, drupe_memory_pointer(memory), size, NULL));
    OK(drupe_queue_wait(queue, DRUPE_FOREVER));
}

void fill_u64(drupe_queue *queue, drupe_memory *memory, uint64_t value, size_t n)
{
    drupe_submission s = {.queue = queue};
    OK(drupe_submit_fill(&s, drupe_memory_pointer(memory), &value, sizeof value, n * sizeof value, NULL));
}

void expect_u64(drupe_queue *queue, drupe_memory *memory, uint64_t value, size_t n)
{
    uint64_t *bytes = malloc(n * sizeof *bytes);
    assert_non_null(bytes);
    read_memory(queue, memory, bytes, n * sizeof *bytes);
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != value)
            fail_msg("element %zu is %llu, not %llu", i, (unsigned long long)bytes[i],
                     (unsigned long long)value);
    }
    free(bytes);
}

/* --- Kernels -------------------------------------------------------------------------------------------- */

struct pair new_pair(drupe_queue *queue, size_t n)
{
    struct pair pair = {new_memory(queue, DRUPE_MEM_DEVICE, n * 8),
                        new_memory(queue, DRUPE_MEM_DEVICE, n * 8)};
    fill_u64(queue, pair.a, 1, n);
    fill_u64(queue, pair.b, 2, n);
    OK(drupe_queue_wait(queue, DRUPE_FOREVER));
    return pair;
}

void drop_pair(struct pair pair)
{
    drupe_memory_release(pair.a);
    drupe_memory_release(pair.b);
}

drupe_status submit_mad(struct bench *bench, drupe_queue *queue, drupe_memory *out, drupe_memory *in,
                        size_t n, uint64_t mul, uint64_t add, drupe_event *const *waits, size_t nwaits,
                        drupe_event **event)
{
    void *to = drupe_memory_pointer(out), *from = drupe_memory_pointer(in);
    uint64_t count = n;
    drupe_memory_accept(out);
    drupe_memory_accept(in);
    drupe_arg args[] = {
        {DRUPE_ARG_POINTER, 0, &to},         {DRUPE_ARG_POINTER, 0, &from},
        {DRUPE_ARG_VALUE, 8, &count},        {DRUPE_ARG_VALUE, sizeof mul, &mul},
        {DRUPE_ARG_VALUE, sizeof add, &add},
    };
    drupe_range range = {.dims = 1, .global = {n < 64 ? 1 : 8}};
    const drupe_access accesses[] = {{to, n * 8, true}, {from, n * 8, false}};
    drupe_submission s = {
        .queue = queue, .waits = waits, .nwaits = nwaits, .accesses = accesses, .naccesses = COUNT(accesses)};
    /* Both ways of giving arguments, with and without the memory at hand. */
    static _Atomic(unsigned) turns;
    unsigned turn = turns++;
    drupe_memory *const memories[] = {out, in, NULL, NULL, NULL};
    if (turn % 4 < 2) s.memories = memories;
    if (turn % 2 || !drupe_kernel_words(bench->mad))
        return drupe_submit_kernel(&s, bench->mad, &range, args, COUNT(args), event);
    const uint64_t words[] = {(uintptr_t)to, (uintptr_t)from, count, mul, add};
    return drupe_submit_words(&s, bench->mad, &range, words, event);
}

drupe_status submit_spin(struct bench *bench, drupe_queue *queue, drupe_memory *out, size_t items,
                         uint64_t rounds, drupe_event **event)
{
    void *to = drupe_memory_pointer(out);
    drupe_arg args[] = {{DRUPE_ARG_POINTER, 0, &to}, {DRUPE_ARG_VALUE, sizeof rounds, &rounds}};
    drupe_range range = {.dims = 1, .global = {items}};
    drupe_submission s = {.queue = queue};
    return drupe_submit_kernel(&s, bench->spin, &range, args, COUNT(args), event);
}

/* --- Host functions ------------------------------------------------------------------------------------- */

void gate_init(struct gate *gate)
{
    memset(gate, 0, sizeof *gate);
    pthread_mutex_init(&gate->lock, NULL);
    OK(drupe_cond_init(&gate->cond));
}

void gate_open(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->open = true;
    pthread_cond_broadcast(&gate->cond);
    pthread_mutex_unlock(&gate->lock);
}

void gate_destroy(struct gate *gate)
{
    pthread_cond_destroy(&gate->cond);
    pthread_mutex_destroy(&gate->lock);
}

static drupe_status pass_gate(void *user)
{
    struct gate *gate = user;
    pthread_mutex_lock(&gate->lock);
    gate->entered = true;
    while (!gate->open) drupe_cond_wait_until(&gate->cond, &gate->lock, UINT64_MAX);
    drupe_status result = gate->result;
    pthread_mutex_unlock(&gate->lock);
    return result == DRUPE_OK ? DRUPE_OK : drupe_error_set(result, PLANNED);
}

drupe_event *submit_gate(drupe_queue *queue, struct gate *gate)
{
    drupe_event *event;
    drupe_submission s = {.queue = queue, .label = "gate"};
    OK(drupe_submit_host(&s, pass_gate, gate, &event));
    return event;
}

drupe_status fail_as_planned(void *user)
{
    (void)user;
    return drupe_error_set(DRUPE_E_INVALID, PLANNED);
}

drupe_event *submit_failure(drupe_queue *queue, const char *label)
{
    drupe_event *event;
    drupe_submission s = {.queue = queue, .label = label};
    OK(drupe_submit_host(&s, fail_as_planned, NULL, &event));
    return event;
}
