/* The embedding program, which observes: the cells and places of submissions, failures, builds. */
#include "core/object/object_room.h"
#include <stdarg.h>
#include <stdio.h>

static _Atomic(const drupe_observer *) observer;
static _Thread_local const drupe_origin *acting_for; /* NULL: for what the observer says */

void drupe_library_observe(const drupe_observer *fresh)
{
    atomic_store(&observer, fresh);
    drupe_exit_tell(fresh ? fresh->exiting : NULL);
}

void *drupe_core_cell(void)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    if (acting_for) return drupe_core_cell_share(acting_for->cell);
    return seen && seen->cell_retain ? seen->cell_retain() : NULL;
}

void drupe_core_cell_release(void *cell)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    if (cell && seen && seen->cell_release) seen->cell_release(cell);
}

void *drupe_core_cell_share(void *cell)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    return cell && seen && seen->failed && seen->cell_share ? seen->cell_share(cell) : NULL;
}

bool drupe_core_failed(const drupe_failure *failure)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    return seen && seen->failed && seen->failed(failure);
}

void drupe_core_note(const char *format, ...)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    if (!seen || !seen->log) return;
    char line[1400];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    seen->log(line);
}

bool drupe_core_prints(void)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    return seen && seen->printing && seen->cell_share;
}

void drupe_core_printing(void *cell)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    if (seen && seen->printing) seen->printing(cell);
}

void *drupe_core_building(const drupe_source *source, const char *device)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    bool told = seen && seen->building && seen->built;
    return told ? seen->building(source, device) : NULL;
}

bool drupe_core_pause(drupe_queue *queue, uint64_t timeout_ns, drupe_status *status)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    if (!seen || !seen->pause) return false;
    *status = seen->pause(queue, timeout_ns);
    return true;
}

void drupe_core_built(void *shown, bool good)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    if (shown && seen && seen->built) seen->built(shown, good);
}

uint32_t drupe_core_cell_number(void *cell)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    return cell && seen && seen->cell_number ? seen->cell_number(cell) : 0;
}

uint32_t drupe_core_cell_here(void)
{
    void *cell = drupe_core_cell();
    uint32_t number = drupe_core_cell_number(cell);
    drupe_core_cell_release(cell);
    return number;
}

uint32_t drupe_core_site(void)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    if (acting_for) return acting_for->site;
    return seen && seen->site ? seen->site() : 0;
}

void drupe_origin_here(drupe_origin *origin)
{
    void *cell = drupe_core_cell();
    *origin = (drupe_origin){drupe_core_site(), drupe_core_cell_share(cell)};
    drupe_core_cell_release(cell);
}

void drupe_origin_release(drupe_origin *origin)
{
    drupe_core_cell_release(origin->cell);
    origin->cell = NULL;
}

const drupe_origin *drupe_origin_enter(const drupe_origin *origin)
{
    const drupe_origin *before = acting_for;
    acting_for = origin;
    return before;
}

void drupe_trace_place(uint32_t site, uint32_t cell, char *text, size_t size)
{
    const drupe_observer *seen = atomic_load_explicit(&observer, memory_order_acquire);
    text[0] = '\0';
    if (seen && seen->site_text) (void)seen->site_text(site, cell, text, size);
}

void drupe_origin_text(const drupe_origin *origin, char *text, size_t size)
{
    drupe_trace_place(origin->site, drupe_core_cell_number(origin->cell), text, size);
}
