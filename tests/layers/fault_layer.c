/* Every entry asks the plan before it calls on.
 *
 * Waits call on first: what core drops after a wait that failed must not be in use any more. For the same
 * reason an event fails, and a look at it fails, only when its work is over. */
#include "layers/fault_plan.h"
#include <stddef.h>

#define SLOTS        8 /* backends of one library */
#define EACH_SLOT(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

/* The list has one line for each entry of the vtable. */
#define ONE(...) +1
_Static_assert(offsetof(drupe_backend, likely) +
                       (0 DRUPE_ENTRIES_SLOT(ONE) DRUPE_ENTRIES_OBJECT(ONE)) * sizeof(void (*)(void)) ==
                   sizeof(drupe_backend),
               "an entry of backend.h is missing in tests/layers/entries.h");
#undef ONE

/* The tables of the layered backends. */
static struct layered {
    drupe_backend table; /* first: a table's address is the address of this */
    const drupe_backend *below;
} layered[SLOTS];

static const drupe_backend *below_of(const drupe_backend *top)
{
    return ((const struct layered *)(const void *)top)->below;
}

static drupe_status lost_error(const char *backend)
{
    return drupe_error_set_native(DRUPE_E_DEVICE_LOST, backend, 0, NULL, "The device is lost by plan.");
}

/* --- All entries, alike --------------------------------------------------------------------------------- */

static bool waits(drupe_fault_entry entry)
{
    return entry == DRUPE_FAULT_queue_wait || entry == DRUPE_FAULT_event_wait ||
           entry == DRUPE_FAULT_event_state;
}

/* Polls learn it from the event, see poll_event(). */
static bool tells_loss(drupe_fault_entry entry)
{
    return entry != DRUPE_FAULT_event_state && entry != DRUPE_FAULT_event_wait &&
           entry != DRUPE_FAULT_device_info && entry != DRUPE_FAULT_device_open;
}

static drupe_status before(drupe_fault_entry entry, const drupe_backend *below)
{
    if (waits(entry)) return DRUPE_OK;
    DRUPE_TRY(drupe_fault_count_call(entry, below->name));
    return tells_loss(entry) && drupe_fault_lost(false) ? lost_error(below->name) : DRUPE_OK;
}

static drupe_status after(drupe_fault_entry entry, const drupe_backend *below, drupe_status status)
{
    if (status != DRUPE_OK || !waits(entry)) return status;
    DRUPE_TRY(drupe_fault_count_call(entry, below->name));
    return tells_loss(entry) && drupe_fault_lost(false) ? lost_error(below->name) : DRUPE_OK;
}

#define WRAP_STATUS(name, parameters, arguments, subject)                                                    \
    static drupe_status fault_##name parameters                                                              \
    {                                                                                                        \
        const drupe_backend *below = below_of(DRUPE_LAYER_OBJECT(subject));                                  \
        DRUPE_TRY(before(DRUPE_FAULT_##name, below));                                                        \
        return after(DRUPE_FAULT_##name, below, below->name arguments);                                      \
    }
#define WRAP_VOID(name, parameters, arguments, subject)
#define WRAP_TYPE(name, parameters, arguments, subject)
#define WRAP(result, name, parameters, arguments, subject) WRAP_##result(name, parameters, arguments, subject)
DRUPE_ENTRIES_OBJECT(WRAP)

/* --- Entries without an object: one function per backend ------------------------------------------------ */

#define WRAP_SLOT(slot)                                                                                      \
    static drupe_status fault_load_##slot(void **state)                                                      \
    {                                                                                                        \
        const drupe_backend *below = layered[slot].below;                                                    \
        DRUPE_TRY(before(DRUPE_FAULT_load, below));                                                          \
        return below->load(state);                                                                           \
    }                                                                                                        \
    static drupe_status fault_device_count_##slot(void *state, uint32_t *count)                              \
    {                                                                                                        \
        const drupe_backend *below = layered[slot].below;                                                    \
        DRUPE_TRY(before(DRUPE_FAULT_device_count, below));                                                  \
        return below->device_count(state, count);                                                            \
    }
EACH_SLOT(WRAP_SLOT)

#define NAME_LOAD(slot)         fault_load_##slot,
#define NAME_DEVICE_COUNT(slot) fault_device_count_##slot,
static drupe_status (*const loads[])(void **state) = {EACH_SLOT(NAME_LOAD)};
static drupe_status (*const device_counts[])(void *state, uint32_t *count) = {EACH_SLOT(NAME_DEVICE_COUNT)};

/* --- Events that fail late, devices that are lost ------------------------------------------------------- */

/* Behind the event's state of the table below. */
#define BEHIND(size) (((size) + 15) & ~(size_t)15)

typedef struct event_fate {
    drupe_status status;
} event_fate;

static event_fate *fate_of(const drupe_event *event)
{
    size_t below = below_of(DRUPE_LAYER_OBJECT(event))->size.event;
    return (event_fate *)(void *)((char *)drupe_native(event) + BEHIND(below));
}

static drupe_status begin_submission(const drupe_submit *s)
{
    if (drupe_fault_lost(true)) return lost_error(below_of(DRUPE_LAYER_OBJECT(s->queue))->name);
    if (s->event) fate_of(s->event)->status = drupe_fault_event_fate();
    return DRUPE_OK;
}

#define SUBMIT(name, parameters, arguments)                                                                  \
    static drupe_status planned_##name parameters                                                            \
    {                                                                                                        \
        DRUPE_TRY(begin_submission(s));                                                                      \
        drupe_status status = fault_##name arguments;                                                        \
        if (s->done) *s->done = false; /* how it ends is asked of its event */                               \
        return status;                                                                                       \
    }
SUBMIT(submit_kernel,
       (const drupe_submit *s, drupe_kernel *kernel, const drupe_range *range, const drupe_arg *args,
        size_t nargs),
       (s, kernel, range, args, nargs))
SUBMIT(submit_copy, (const drupe_submit *s, void *dst, const void *src, size_t bytes), (s, dst, src, bytes))
SUBMIT(submit_fill,
       (const drupe_submit *s, void *dst, const void *pattern, size_t pattern_size, size_t bytes),
       (s, dst, pattern, pattern_size, bytes))
SUBMIT(submit_barrier, (const drupe_submit *s), (s))
SUBMIT(submit_host, (const drupe_submit *s, drupe_host_fn fn, void *user), (s, fn, user))

static drupe_status poll_event(drupe_event *event, drupe_event_state *state)
{
    const drupe_backend *below = below_of(DRUPE_LAYER_OBJECT(event));
    const char *backend = below->name;
    DRUPE_TRY(below->event_state(event, state));
    drupe_status fate = fate_of(event)->status;
    if (*state != DRUPE_EVENT_COMPLETE) return DRUPE_OK;
    DRUPE_TRY(after(DRUPE_FAULT_event_state, below, DRUPE_OK));
    if (fate != DRUPE_OK) {
        drupe_error_set_native(fate, backend, 0, NULL, "Planned late failure.");
        *state = DRUPE_EVENT_FAILED;
    } else if (drupe_fault_lost(false)) {
        lost_error(backend);
        *state = DRUPE_EVENT_FAILED;
    }
    return DRUPE_OK;
}

static void replace_entries(drupe_backend *table, const drupe_backend *below, size_t slot)
{
#define SET_STATUS(name) table->name = below->name ? fault_##name : NULL;
#define SET_VOID(name)
#define SET_TYPE(name)
#define SET(result, name, parameters, arguments, subject) SET_##result(name)
    DRUPE_ENTRIES_OBJECT(SET)
#define PLANNED(name) table->name = below->name ? planned_##name : NULL;
    PLANNED(submit_kernel)
    PLANNED(submit_copy)
    PLANNED(submit_fill)
    PLANNED(submit_barrier)
    PLANNED(submit_host)
    table->event_state = poll_event;
    table->load = loads[slot];
    table->device_count = device_counts[slot];
    table->size.event = BEHIND(below->size.event) + sizeof(event_fate);
}

/* A table is filled once: objects of a backend that was loaded before may still use it. */
static drupe_status apply(const drupe_backend *base, size_t slot, const drupe_backend **backend)
{
    if (slot >= SLOTS) return drupe_error_set(DRUPE_E_INTERNAL, "The layer knows %d backends only.", SLOTS);
    DRUPE_TRY(drupe_fault_start());
    struct layered *one = &layered[slot];
    if (!one->below) {
        one->table = *base;
        replace_entries(&one->table, base, slot);
        one->below = base;
    }
    *backend = &one->table;
    return DRUPE_OK;
}

void drupe_fault_layer(bool on)
{
    drupe_test_layer = on ? apply : NULL;
}
