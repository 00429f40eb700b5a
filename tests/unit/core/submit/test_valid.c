/* White-box: the fast path of a launch and the steps agree on what a valid one is.
 *
 * A million launches by chance, each tried twice: as it is, and with something to keep alive, which only the
 * steps take. The backend is `host` with a launch that does nothing, so what is looked at are the checks. */
#include "core/submit/submit_room.h"
#include "drupe/memory.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LAUNCHES 1000000u
#define SHAPES   500u /* launches of one made-up kernel */
#define MOST     26u  /* arguments; more than the fast path takes */

static struct {
    drupe_queue *queue;
    drupe_kernel *kernel; /* whose description changes */
    drupe_memory *ours, *others;
    drupe_context *context; /* of `others` */
    drupe_queue *elsewhere;
    drupe_backend backend;
    unsigned launched;
} all;

static uint64_t seed = 20240601;

static uint64_t random_below(uint64_t limit)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % limit;
}

static bool one_in(unsigned n)
{
    return random_below(n) == 0;
}

static void ok(drupe_status status)
{
    if (status != DRUPE_OK) fail_msg("%s: %s", drupe_status_name(status), drupe_error_last()->text);
}

/* --- The backend ---------------------------------------------------------------------------------------- */

static drupe_status launch(const drupe_submit *submit, drupe_kernel *kernel, const drupe_range *range,
                           const drupe_arg *args, size_t nargs)
{
    (void)kernel, (void)range, (void)args, (void)nargs;
    all.launched++;
    assert_non_null(submit->done);
    *submit->done = true;
    return DRUPE_OK;
}

static int open_all(void **state)
{
    (void)state;
    drupe_device *device;
    drupe_context *context;
    drupe_program *program;
    drupe_source source = {.language = DRUPE_LANG_BUILTIN};
    uint64_t number, sizes[3];
    ok(drupe_device_select("host", &device));
    ok(drupe_device_context(device, &context));
    ok(drupe_queue_open(context, device, 0, &all.queue));
    ok(drupe_context_open(&device, 1, &all.context));
    ok(drupe_queue_open(all.context, device, 0, &all.elsewhere));
    ok(drupe_memory_alloc(all.queue, DRUPE_MEM_SHARED, 256, 0, &all.ours));
    ok(drupe_memory_alloc(all.elsewhere, DRUPE_MEM_SHARED, 256, 0, &all.others));
    ok(drupe_program_open(context, device, &source, NULL, &program));
    ok(drupe_kernel_open(program, "test_add", &all.kernel));
    /* The fast path does not ask for limits. `host` has no local memory, and groups of one work-item alone.
     */
    drupe_info_entry *local = &device->info[DRUPE_INFO_LOCAL_MEM_SIZE],
                     *items = &device->info[DRUPE_INFO_MAX_WORK_ITEM_SIZES];
    ok(drupe_device_info(device, DRUPE_INFO_MAX_WORK_ITEM_SIZES, sizes, sizeof sizes, NULL));
    ok(drupe_device_info(device, DRUPE_INFO_MAX_PARAMETER_SIZE, &number, sizeof number, NULL));
    local->number[0] = 1u << 15;
    atomic_store(&local->state, DRUPE_INFO_KNOWN);
    for (unsigned d = 0; d < 3; d++) items->number[d] = 1024u >> d;
    all.backend = *all.queue->base.slot->backend;
    all.backend.submit_kernel = launch;
    all.queue->base.slot->backend = &all.backend;
    drupe_program_release(program);
    drupe_context_release(context);
    drupe_device_release(device);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    all.queue->base.slot->backend = all.queue->base.slot->base;
    drupe_kernel_release(all.kernel);
    drupe_memory_release(all.ours);
    drupe_memory_release(all.others);
    drupe_queue_release(all.queue);
    drupe_queue_release(all.elsewhere);
    drupe_context_release(all.context);
    return drupe_library_close(1000000000u) == 0 ? 0 : -1;
}

/* --- Launches by chance --------------------------------------------------------------------------------- */

static drupe_arg_info infos[MOST];
static drupe_form forms[MOST];

static void make_up_kernel(void)
{
    static const drupe_scalar_type scalars[] = {DRUPE_SCALAR_I8, DRUPE_SCALAR_F32, DRUPE_SCALAR_U64};
    drupe_kernel *kernel = all.kernel;
    kernel->nargs = one_in(20) ? MOST : (uint32_t)random_below(7);
    kernel->group_size = one_in(2) ? 0 : 1u << random_below(8);
    kernel->local_size = one_in(8) ? UINT64_C(1) << random_below(40) : 0;
    kernel->writes = random_below(256);
    bool told = !one_in(3);
    for (uint32_t i = 0; i < kernel->nargs; i++) {
        drupe_arg_info *info = &infos[i];
        *info = (drupe_arg_info){.kind = one_in(2) ? DRUPE_ARG_POINTER : DRUPE_ARG_VALUE, .lanes = 1};
        if (one_in(20)) info->kind = DRUPE_ARG_LOCAL;
        if (!one_in(5)) info->scalar = scalars[random_below(DRUPE_COUNT_OF(scalars))];
        size_t size = info->kind == DRUPE_ARG_VALUE ? drupe_args_element(info) : 0;
        forms[i] = (drupe_form){(uint32_t)info->kind, (uint32_t)size};
    }
    kernel->args = told && kernel->nargs ? infos : NULL;
    kernel->forms = kernel->args ? forms : NULL;
}

static size_t some_size(void)
{
    static const size_t sizes[] = {1, 2, 3, 4, 8, 64, 1000, 1024, 1u << 20, (size_t)1 << 33};
    return one_in(12) ? 0 : sizes[random_below(DRUPE_COUNT_OF(sizes))];
}

static void make_up_range(drupe_range *range)
{
    *range = (drupe_range){.dims = one_in(30) ? (uint32_t)random_below(6) : 1 + (uint32_t)random_below(3)};
    bool grouped = one_in(2);
    for (unsigned d = 0; d < 3; d++) {
        range->global[d] = some_size();
        if (grouped) range->local[d] = one_in(3) ? some_size() : (size_t)1 << random_below(4);
    }
}

static void make_up_arg(size_t index, drupe_arg *arg, void **pointer)
{
    static const size_t sizes[] = {1, 4, 8, 16, 2000, SIZE_MAX};
    static char bytes[2048], stranger;
    *arg =
        (drupe_arg){.kind = (drupe_arg_kind)random_below(2), .size = sizes[random_below(3)], .value = bytes};
    if (all.kernel->forms && index < all.kernel->nargs && !one_in(10)) {
        arg->kind = (drupe_arg_kind)forms[index].kind;
        if (forms[index].size) arg->size = forms[index].size;
    }
    if (one_in(60)) arg->kind = (drupe_arg_kind)random_below(4);
    if (one_in(40)) arg->size = one_in(3) ? 0 : sizes[random_below(DRUPE_COUNT_OF(sizes))];
    if (arg->kind == DRUPE_ARG_VALUE && arg->size == SIZE_MAX) arg->size = sizeof bytes;
    if (arg->kind == DRUPE_ARG_POINTER) {
        *pointer = drupe_memory_pointer(one_in(50) ? all.others : all.ours);
        if (one_in(20)) *pointer = NULL;
        if (one_in(60)) *pointer = &stranger;
        arg->value = pointer;
    }
    if (one_in(80)) arg->value = NULL;
}

static void let_go(void *object)
{
    (void)object;
}

/* What the fast path leaves to the steps although nothing is wrong with it. */
static bool unusual(const drupe_range *range, const drupe_arg *args, size_t nargs)
{
    bool is = nargs > DRUPE_ARG_SUMMARY_MOST;
    for (size_t i = 0; i < nargs; i++) is |= args[i].kind == DRUPE_ARG_LOCAL;
    for (uint32_t d = 0; range->dims <= 3 && d < range->dims; d++) is |= range->global[d] == 0;
    return is;
}

static void both_say_the_same(void **state)
{
    (void)state;
    drupe_arg_info *args_before = all.kernel->args;
    drupe_form *forms_before = all.kernel->forms;
    drupe_arg args[MOST + 1];
    void *pointers[MOST + 1];
    drupe_range range;
    drupe_effects effects;
    unsigned accepted = 0, refused = 0;
    for (unsigned i = 0; i < LAUNCHES; i++) {
        if (i % SHAPES == 0) make_up_kernel();
        size_t nargs = one_in(50) ? random_below(MOST) : all.kernel->nargs;
        for (size_t k = 0; k < nargs; k++) make_up_arg(k, &args[k], &pointers[k]);
        make_up_range(&range);
        effects = (drupe_effects){random_below(256), random_below(256), random_below(256)};
        drupe_submission s = {.queue = all.queue, .effects = one_in(2) ? &effects : NULL};
        const drupe_range *given = one_in(500) ? NULL : &range;
        drupe_status fast = DRUPE_E_INTERNAL;
        all.launched = 0;
        bool taken = drupe_fast_launch(&s, all.kernel, given, args, nargs, NULL, &fast);
        assert_int_equal(all.launched, taken);
        if (taken) ok(fast);
        const drupe_keep keep = {&all, let_go};
        s.keeps = &keep;
        s.nkeeps = 1;
        drupe_status steps = drupe_submit_kernel(&s, all.kernel, given, args, nargs, NULL);
        bool expected = steps == DRUPE_OK && given && !unusual(given, args, nargs);
        if (taken != expected)
            fail_msg("launch %u: the fast path says %d, the steps say %s: %s", i, taken,
                     drupe_status_name(steps), steps ? drupe_error_last()->text : "");
        accepted += taken;
        refused += steps != DRUPE_OK;
    }
    all.kernel->args = args_before;
    all.kernel->forms = forms_before;
    /* Neither answer is rare. */
    assert_in_range(accepted, LAUNCHES / 20, LAUNCHES);
    assert_in_range(refused, LAUNCHES / 20, LAUNCHES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_say_the_same)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
