/* Local sizes. PoCL compiles a kernel again for every local size it meets (about 40 ms) and, without one, for
 * every small global size; it also asserts on limits that other drivers report. Hence both the checks and the
 * fixed choice. */
#include "opencl.h"

#define MOST_CHOSEN       256u /* work-items of a chosen work-group */
#define MOST_GROUPS       UINT32_MAX
#define MOST_CHOSEN_FIRST 64u /* of them along dimension 0 when there are more dimensions */

/* The size that the kernel was written for. */
static drupe_status check_required(const drupe_cl_kernel *kernel, const drupe_range *range,
                                   const size_t local[3])
{
    for (uint32_t d = 0; d < range->dims; d++) {
        if (local[d] != kernel->required[d]) {
            return drupe_error_set(DRUPE_E_INVALID,
                                   "The kernel was written for local size %zu in dimension %u, not %zu.",
                                   kernel->required[d], d, local[d]);
        }
        if (range->global[d] % local[d]) {
            return drupe_error_set(
                DRUPE_E_INVALID,
                "The global size %zu of dimension %u is no multiple of the local size %zu: round it "
                "up and let the kernel check the bound.",
                range->global[d], d, local[d]);
        }
    }
    return DRUPE_OK;
}

static size_t largest_power(size_t global, size_t most)
{
    size_t power = 1;
    while (power * 2 <= most && global % (power * 2) == 0) power *= 2;
    return power;
}

static size_t group_count(const drupe_range *range, const size_t local[3])
{
    size_t groups = 1;
    for (uint32_t d = 0; d < range->dims; d++) {
        size_t along = range->global[d] / local[d];
        if (along > SIZE_MAX / groups) return SIZE_MAX;
        groups *= along;
    }
    return groups;
}

/* Smaller groups while compute units would stand idle; a GPU's groups stay as large as its lanes. */
static void spread(const drupe_cl_kernel *kernel, const drupe_range *range, size_t local[3])
{
    const drupe_cl_caps *caps = &kernel->device->caps;
    for (uint32_t d = range->dims; d-- > 0;) {
        while (local[d] > 1) {
            size_t items = local[0] * local[1] * local[2];
            bool wide = items > kernel->multiple;
            size_t wanted = wide ? (size_t)4 * caps->units : caps->cpu ? caps->units : 0;
            if (group_count(range, local) >= wanted) return;
            local[d] /= 2;
        }
    }
}

static void choose(const drupe_cl_kernel *kernel, const drupe_range *range, size_t local[3], bool *by_driver)
{
    const drupe_cl_caps *caps = &kernel->device->caps;
    size_t left = kernel->max_group < MOST_CHOSEN ? kernel->max_group : MOST_CHOSEN;
    for (uint32_t d = 0; d < range->dims; d++) {
        size_t most = d == 0 && range->dims > 1 && left > MOST_CHOSEN_FIRST ? MOST_CHOSEN_FIRST : left;
        if (most > caps->max_items[d]) most = caps->max_items[d];
        local[d] = largest_power(range->global[d], most);
        left /= local[d];
    }
    *by_driver = !caps->cpu && local[0] * local[1] * local[2] < kernel->multiple;
    spread(kernel, range, local);
}

/* PoCL counts work-groups in 32 bits and ends the process when that overflows. */
static drupe_status check_groups(const drupe_range *range, const size_t local[3])
{
    if (group_count(range, local) <= MOST_GROUPS) return DRUPE_OK;
    return drupe_error_set(
        DRUPE_E_OUT_OF_RANGE,
        "The global size makes more than %u work-groups: make it smaller, or the local size "
        "larger, and let each work-item do more.",
        MOST_GROUPS);
}

static drupe_status settle(const drupe_cl_kernel *kernel, const drupe_range *range, size_t local[3],
                           bool *by_driver)
{
    *by_driver = false;
    for (int d = 0; d < 3; d++) local[d] = 1;
    if (range->local[0] == 0 && !kernel->required[0]) {
        choose(kernel, range, local, by_driver);
        return check_groups(range, local);
    }
    const size_t *source = range->local[0] ? range->local : kernel->required;
    for (uint32_t d = 0; d < range->dims; d++) local[d] = source[d];
    if (kernel->required[0]) DRUPE_TRY(check_required(kernel, range, local));
    return check_groups(range, local);
}

static bool is_settled(const drupe_range *last, const drupe_range *range)
{
    if (last->dims != range->dims) return false;
    for (uint32_t d = 0; d < range->dims; d++)
        if (last->global[d] != range->global[d] || last->local[d] != range->local[d]) return false;
    return true;
}

/* Most launches have the range of the one before, and the checks divide a lot. */
drupe_status drupe_cl_range_settle(drupe_cl_kernel *kernel, const drupe_range *range)
{
    if (is_settled(&kernel->settled, range)) return DRUPE_OK;
    kernel->settled.dims = 0;
    DRUPE_TRY(settle(kernel, range, kernel->settled_local, &kernel->settled_by_driver));
    kernel->settled = *range;
    return DRUPE_OK;
}
