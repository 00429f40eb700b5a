/* Devices as this room sees them, and their kernels, each of which is a program of its own.
 *
 * One mutex guards the list and all maps. A program is built without it: two threads that need the same
 * kernel at the same moment may both build it, and the second result is dropped. */
#include "array/array_room.h"
#include <stdlib.h>
#include <string.h>

typedef struct target_entry {
    drupe_target target;
    struct target_entry *next;
} target_entry;

static struct {
    pthread_mutex_t lock;
    target_entry *first;
} targets = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void target_close(drupe_target *t)
{
    size_t at = 0;
    for (drupe_kernel *k; (k = drupe_map_next(&t->kernels, &at, NULL, NULL));) drupe_kernel_release(k);
    drupe_map_clear(&t->kernels);
    if (t->fused_close) t->fused_close(t);
    drupe_device_release(t->device);
    drupe_context_release(t->context);
}

/* DRUPE_FORM=cpu or gpu asks for kernels in OpenCL C, in this form, of every CPU that takes them; it is there
 * for tests. Otherwise the precompiled kernels run wherever they can. Other devices have one form. */
static void choose_kernels(drupe_target *t)
{
    const uint64_t languages = drupe_device_number(t->device, DRUPE_INFO_LANGUAGES, DRUPE_LANG_OPENCL_C);
    const char *form = getenv("DRUPE_FORM");
    const bool gpu = form && strcmp(form, "gpu") == 0, cpu = form && strcmp(form, "cpu") == 0;
    t->builtin = (languages & DRUPE_LANG_BUILTIN) && !((gpu || cpu) && (languages & DRUPE_LANG_OPENCL_C));
    t->gpu_form = !t->builtin && (gpu || !t->cpu);
}

static void target_describe(drupe_target *t)
{
    const uint64_t most = drupe_device_number(t->device, DRUPE_INFO_MAX_WORK_GROUP_SIZE, 256);
    t->cpu = drupe_device_kind(t->device) == DRUPE_DEVICE_CPU;
    choose_kernels(t);
    t->fp64 = drupe_device_number(t->device, DRUPE_INFO_HAS_FP64, 0) != 0;
    t->units = (size_t)drupe_device_number(t->device, DRUPE_INFO_MAX_COMPUTE_UNITS, 1);
    if (t->units == 0) t->units = 1;
    t->most = (size_t)drupe_device_number(t->device, DRUPE_INFO_GLOBAL_MEM_SIZE, 0) / 2;
    /* Without it a driver may divide float32 by an approximation, which differs from NumPy in the last digit.
     */
    const bool rounds = drupe_device_number(t->device, DRUPE_INFO_SINGLE_FP_CONFIG, 0) &
                        DRUPE_FLAG(DRUPE_FP_CORRECTLY_ROUNDED);
    t->options = rounds ? "-w -cl-fp32-correctly-rounded-divide-sqrt" : "-w";
    for (t->group = 256; t->group > most && t->group > 1;) t->group /= 2;
}

drupe_status drupe_target_get(drupe_queue *queue, drupe_target **target)
{
    drupe_context *context = drupe_queue_context(queue);
    drupe_device *device =
        drupe_context_home(context, drupe_queue_device(queue)); /* parts share its programs */
    const bool checked = drupe_check_active();
    pthread_mutex_lock(&targets.lock);
    target_entry *entry = targets.first;
    while (entry && (entry->target.device != device || entry->target.context != context ||
                     entry->target.checked != checked))
        entry = entry->next;
    if (!entry && (entry = calloc(1, sizeof(*entry)))) {
        entry->target.context = drupe_context_retain(context);
        entry->target.device = drupe_device_retain(device);
        entry->target.checked = checked;
        target_describe(&entry->target);
        entry->next = targets.first;
        targets.first = entry;
    }
    pthread_mutex_unlock(&targets.lock);
    *target = entry ? &entry->target : NULL;
    return entry ? DRUPE_OK : drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for the list of devices.");
}

void drupe_targets_close(void)
{
    pthread_mutex_lock(&targets.lock);
    target_entry *entry = targets.first;
    targets.first = NULL;
    pthread_mutex_unlock(&targets.lock);
    while (entry) {
        target_entry *next = entry->next;
        target_close(&entry->target);
        free(entry);
        entry = next;
    }
}

static drupe_status program_build(drupe_target *t, const kernel_recipe *recipe, drupe_program **program)
{
    /* What is being checked had better fault on a worker. */
    drupe_source source = {.language = DRUPE_LANG_BUILTIN, .options = t->checked ? NULL : "inline"};
    drupe_text text = {0};
    drupe_status status = DRUPE_OK;
    if (!t->builtin) {
        status = drupe_render_program(t, recipe, &text);
        source = (drupe_source){.language = DRUPE_LANG_OPENCL_C,
                                .bytes = drupe_text_get(&text),
                                .size = text.length,
                                .options = t->options};
    }
    if (status == DRUPE_OK) status = drupe_program_open(t->context, t->device, &source, NULL, program);
    drupe_text_clear(&text);
    return status;
}

static drupe_status kernel_make(drupe_target *t, const kernel_recipe *recipe, drupe_kernel **kernel)
{
    drupe_program *program = NULL;
    char name[64];
    DRUPE_TRY(program_build(t, recipe, &program));
    drupe_render_name(t, recipe, name, sizeof(name));
    drupe_kernel *made = NULL;
    drupe_status status = drupe_kernel_open(program, name, &made);
    drupe_program_release(program);
    if (status != DRUPE_OK) return status;
    pthread_mutex_lock(&targets.lock);
    *kernel = drupe_map_get(&t->kernels, recipe->bytes, recipe->size);
    if (!*kernel) {
        status = drupe_map_put(&t->kernels, recipe->bytes, recipe->size, made, NULL);
        if (status == DRUPE_OK) {
            *kernel = made;
            made = NULL;
        }
    }
    pthread_mutex_unlock(&targets.lock);
    drupe_kernel_release(made);
    return status;
}

drupe_status drupe_target_kernel(drupe_target *target, const kernel_recipe *recipe, drupe_kernel **kernel)
{
    pthread_mutex_lock(&targets.lock);
    *kernel = drupe_map_get(&target->kernels, recipe->bytes, recipe->size);
    pthread_mutex_unlock(&targets.lock);
    return *kernel ? DRUPE_OK : kernel_make(target, recipe, kernel);
}

_Static_assert(sizeof(drupe_kernel_bounds) == sizeof(drupe_bounds) &&
                   offsetof(drupe_kernel_bounds, operand) == offsetof(drupe_bounds, operand) &&
                   DRUPE_KERNEL_INPUTS + 1 == DRUPE_BOUNDS_OPERANDS,
               "kernels and core share this struct");

drupe_status drupe_target_submit(drupe_target *target, const kernel_recipe *recipe, const drupe_submission *s,
                                 const drupe_range *range, const drupe_arg *args, size_t nargs,
                                 const size_t *elements)
{
    drupe_kernel *kernel;
    DRUPE_TRY(drupe_target_kernel(target, recipe, &kernel));
    if (target->checked) return drupe_check_submit(s, kernel, range, args, nargs, elements);
    return drupe_submit_kernel(s, kernel, range, args, nargs, NULL);
}

static size_t at_least_one(size_t n)
{
    return n ? n : 1;
}

void drupe_target_range(const drupe_target *t, size_t n, size_t grain, drupe_range *range)
{
    size_t items;
    *range = (drupe_range){.dims = 1, .local = {1}};
    if (t->gpu_form) {
        const size_t groups = (at_least_one(n / at_least_one(grain)) + t->group - 1) / t->group;
        const size_t most = t->units * 32;
        range->local[0] = t->group;
        range->global[0] = (groups < most ? groups : most) * t->group;
        return;
    }
    items = at_least_one(n / at_least_one(grain));
    range->global[0] = items < t->units * 4 ? items : t->units * 4;
}
