/* Parking and coming back.
 *
 * All or nothing: all bytes are in host memory before the driver is given the first piece back, which nothing
 * can keep it from taking; and all pieces have their bytes again before the first copy in host memory goes.
 * So host memory holds everything once, and a CPU device, whose memory is the host's, needs the room twice
 * for as long as that takes. */
#include "base/machine.h"
#include "core/park/park_room.h"
#include <stdlib.h>

/* --- Host memory ---------------------------------------------------------------------------------------- */

/* A system promises memory that it does not have. */
static drupe_status check_room(drupe_device *root, const drupe_park_report *report)
{
    uint64_t left = drupe_machine_memory_free();
    if (report->bytes <= left) return DRUPE_OK;
    return drupe_error_set(
        DRUPE_E_NO_MEMORY,
        "%s cannot be parked: its memory needs %s of host memory, of which %s are free now.", root->filter,
        drupe_unit_bytes(report->bytes).text, drupe_unit_bytes(left).text);
}

static void *take_room(size_t bytes)
{
    const size_t align = bytes >= 4 * DRUPE_PARK_HUGE ? DRUPE_PARK_HUGE : 64;
    void *room = aligned_alloc(align, (bytes + align - 1) & ~(align - 1));
    if (!room) {
        drupe_error_set(DRUPE_E_NO_MEMORY, "No %zu bytes of host memory for what is to be parked.", bytes);
        return NULL;
    }
    drupe_park_untouched(room, bytes);
    return room;
}

/* The bytes of all pieces; of none after a failure. */
static drupe_status save(const park_list *list, void **copies)
{
    park_copier copier = {NULL};
    drupe_status status = DRUPE_OK;
    size_t done = 0;
    for (; status == DRUPE_OK && done < list->count; done++) {
        copies[done] = take_room(list->pieces[done]->room);
        status =
            copies[done] ? drupe_park_save(&copier, list->pieces[done], copies[done]) : DRUPE_E_NO_MEMORY;
    }
    drupe_error kept = *drupe_error_last();
    drupe_park_copier_close(&copier);
    if (status == DRUPE_OK) return DRUPE_OK;
    for (size_t i = 0; i < done; i++) free(copies[i]);
    (void)drupe_error_restore(&kept);
    return status;
}

/* --- Parking -------------------------------------------------------------------------------------------- */

static drupe_status check_device(const drupe_device *device)
{
    DRUPE_TRY(drupe_core_check());
    return device ? DRUPE_OK : drupe_error_set(DRUPE_E_INVALID, "There is no device to park.");
}

/* Nothing is held back for later, and what is over keeps nothing. */
static drupe_status submit_pending(const drupe_device *root)
{
    drupe_status status = DRUPE_OK;
    for (drupe_queue *queue = drupe_queue_walk(NULL); queue; queue = drupe_queue_walk(queue)) {
        if (status != DRUPE_OK || queue->base.device->root != root) continue;
        if (drupe_queue_has_postponed(queue)) status = drupe_postponed_flush(queue);
        drupe_queue_collect(queue);
    }
    const drupe_memory_users *users = drupe_memory_users_get();
    if (users) users->collect(NULL);
    return status;
}

/* The next who gets these bytes of the device does not see them, where that was asked for. What cannot be
 * overwritten the driver has back as it is, as in drupe_memory_retire(). */
static void wipe(drupe_device *root, drupe_memory *memory)
{
    drupe_error kept = *drupe_error_last();
    bool wanted = atomic_load(&root->wipe) & DRUPE_WIPE_FREE;
    if (wanted && drupe_pool_wipe(memory) != DRUPE_OK) drupe_error_restore(&kept);
}

static drupe_status park_pieces(drupe_device *root, const park_list *list, drupe_park_report *report)
{
    void **copies = calloc(list->count + 1, sizeof *copies);
    if (!copies)
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory to park %zu allocations.", list->count);
    drupe_status status = check_room(root, report);
    if (status == DRUPE_OK) status = save(list, copies);
    for (size_t i = 0; status == DRUPE_OK && i < list->count; i++) {
        wipe(root, list->pieces[i]);
        drupe_pool_drain(list->pieces[i]);
        drupe_gate_park(list->pieces[i], copies[i]);
    }
    free(copies);
    return status;
}

/* With the gate's lock. */
static drupe_status park_all(drupe_device *root, drupe_parking how, park_list *list,
                             drupe_park_report *report)
{
    bool held = drupe_gate_close();
    drupe_status status = drupe_park_look(root, held, list, report);
    if (status == DRUPE_OK) status = park_pieces(root, list, report);
    if (status == DRUPE_OK) {
        (void)drupe_pool_trim(root);
        drupe_context_rings_close(root);
        const uint64_t left = atomic_load(&root->use.reserved);
        report->freed = report->freed > left ? report->freed - left : 0;
        atomic_store(&root->parked, how);
    }
    drupe_gate_open();
    return status;
}

static drupe_status wake(drupe_device *root);

drupe_status drupe_park(drupe_device *device, uint32_t flags, drupe_park_report *report)
{
    drupe_park_report own;
    park_list list = {NULL, 0, NULL, 0};
    if (!report) report = &own;
    *report = (drupe_park_report){.bytes = 0};
    DRUPE_TRY(check_device(device));
    if (flags & ~DRUPE_PARK_KEPT)
        return drupe_error_set(DRUPE_E_INVALID, "Unknown flags 0x%x for parking.", flags);
    drupe_device *root = device->root;
    DRUPE_TRY(drupe_loss_check(root));
    DRUPE_TRY(submit_pending(root));
    const drupe_parking how = flags & DRUPE_PARK_KEPT ? DRUPE_PARKED_KEPT : DRUPE_PARKED;
    const uint64_t start = drupe_now_ns();
    drupe_status status = DRUPE_OK;
    atomic_store(&drupe_gate_wakes, wake);
    drupe_gate_lock();
    if (drupe_gate_closed(root))
        atomic_store(&root->parked, how);
    else
        status = park_all(root, how, &list, report);
    drupe_gate_unlock();
    drupe_error kept = *drupe_error_last();
    drupe_park_list_clear(&list);
    report->ns = drupe_now_ns() - start;
    if (status != DRUPE_OK) return drupe_error_restore(&kept);
    drupe_core_note("parked: %s, %llu bytes in %llu allocations", root->filter,
                    (unsigned long long)report->bytes, (unsigned long long)report->pieces);
    return DRUPE_OK;
}

drupe_status drupe_parkable(drupe_device *device, drupe_park_report *report)
{
    drupe_park_report own;
    park_list list = {NULL, 0, NULL, 0};
    if (!report) report = &own;
    *report = (drupe_park_report){.bytes = 0};
    DRUPE_TRY(check_device(device));
    DRUPE_TRY(drupe_loss_check(device));
    const drupe_memory_users *users = drupe_memory_users_get();
    if (users) users->collect(NULL);
    drupe_gate_lock();
    const bool held = drupe_gate_close();
    drupe_gate_open();
    drupe_status status = drupe_park_look(device->root, held, &list, report);
    drupe_gate_unlock();
    drupe_error kept = *drupe_error_last();
    drupe_park_list_clear(&list);
    return status == DRUPE_OK ? DRUPE_OK : drupe_error_restore(&kept);
}

bool drupe_device_parked(const drupe_device *device)
{
    return drupe_gate_closed(device->root);
}

/* --- Coming back ---------------------------------------------------------------------------------------- */

/* What is parked and somebody still has. */
static drupe_status list_asleep(drupe_device *root, park_list *list, drupe_park_report *report)
{
    size_t count = 0;
    for (const drupe_memory *memory = root->asleep; memory; memory = memory->next) count++;
    list->all = calloc(count + 1, sizeof *list->all);
    if (!list->all)
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No host memory to list what of %s is parked.",
                               root->filter);
    for (drupe_memory *memory = root->asleep; memory; memory = memory->next) {
        if (!drupe_object_try_retain(memory)) continue; /* on another thread its last handle goes now */
        list->all[list->nall++] = memory;
        report->pieces++;
        report->bytes += memory->room;
    }
    return DRUPE_OK;
}

/* All have room on the device and their bytes in it; or none. */
static drupe_status restore(const park_list *list)
{
    park_copier copier = {NULL};
    drupe_status status = DRUPE_OK;
    size_t given = 0, filled = 0;
    for (; given < list->nall; given++)
        if ((status = drupe_pool_refill(list->all[given])) != DRUPE_OK) break;
    for (; status == DRUPE_OK && filled < list->nall; filled++)
        status = drupe_park_restore(&copier, list->all[filled], atomic_load(&list->all[filled]->parked));
    drupe_error kept = *drupe_error_last();
    drupe_park_copier_close(&copier);
    for (size_t i = 0; status != DRUPE_OK && i < given; i++) {
        if (i < filled) wipe(list->all[i]->pool->root, list->all[i]);
        drupe_pool_drain(list->all[i]);
    }
    return status == DRUPE_OK ? DRUPE_OK : drupe_error_restore(&kept);
}

static drupe_status stays_parked(const drupe_device *root, const drupe_park_report *report)
{
    const drupe_error why = *drupe_error_last();
    return drupe_error_set_native(why.status, why.backend, why.native, why.native_name,
                                  "What is parked of %s (%s in %llu allocation%s) could not come back, and "
                                  "waits in host memory as before: %.700s",
                                  root->filter, drupe_unit_bytes(report->bytes).text,
                                  (unsigned long long)report->pieces, report->pieces == 1 ? "" : "s",
                                  why.text);
}

/* With the gate's lock. */
static drupe_status unpark_all(drupe_device *root, park_list *list, drupe_park_report *report)
{
    DRUPE_TRY(list_asleep(root, list, report));
    if (restore(list) != DRUPE_OK) return stays_parked(root, report);
    for (size_t i = 0; i < list->nall; i++) drupe_gate_unpark(list->all[i]);
    atomic_store(&root->parked, DRUPE_AWAKE);
    return DRUPE_OK;
}

/* `asked`: it may be kept parked. */
static drupe_status unpark(drupe_device *root, bool asked, drupe_park_report *report)
{
    park_list list = {NULL, 0, NULL, 0};
    const uint64_t start = drupe_now_ns();
    drupe_status status = DRUPE_OK;
    drupe_gate_lock();
    const int how = atomic_load(&root->parked);
    if (how == DRUPE_PARKED_KEPT && !asked)
        status = drupe_gate_kept(root);
    else if (how != DRUPE_AWAKE)
        status = unpark_all(root, &list, report);
    drupe_gate_unlock();
    drupe_error kept = *drupe_error_last();
    drupe_park_list_clear(&list);
    report->ns = drupe_now_ns() - start;
    if (status != DRUPE_OK) return drupe_error_restore(&kept);
    if (how != DRUPE_AWAKE)
        drupe_core_note("unparked: %s, %llu bytes in %llu allocations", root->filter,
                        (unsigned long long)report->bytes, (unsigned long long)report->pieces);
    return DRUPE_OK;
}

static drupe_status wake(drupe_device *root)
{
    drupe_park_report report = {.bytes = 0};
    const drupe_error before = *drupe_error_last(); /* whoever only wanted an address keeps it */
    drupe_status status = unpark(root, false, &report);
    if (status == DRUPE_OK) drupe_error_restore(&before);
    return status;
}

drupe_status drupe_unpark(drupe_device *device, drupe_park_report *report)
{
    drupe_park_report own;
    if (!report) report = &own;
    *report = (drupe_park_report){.bytes = 0};
    DRUPE_TRY(check_device(device));
    return unpark(device->root, true, report);
}
