/* Whose work a fault ends. */
#include "core/queue/launch.h"
#include <dlfcn.h>

static void lose(drupe_device *device, const drupe_fault *fault)
{
    char what[512];
    Dl_info symbol = {0};
    drupe_text work = {0};
    bool bounds = drupe_core_fault_text(fault, what, sizeof what) == DRUPE_E_CHECK;
    bool known = dladdr((const void *)fault->instruction, &symbol) != 0 && symbol.dli_sname;
    const char *function = known ? symbol.dli_sname : "";
    drupe_loss_suspects(device, function, &work);
    drupe_error_set_native(
        DRUPE_E_DEVICE_LOST, device->slot->backend->name, fault->signal, drupe_fault_signal(fault->signal),
        "%s%.250s faulted on %s: %s. The driver cannot recover from that, so the device is lost for this "
        "process: nothing more runs on it. Python, its variables and other devices still work; arrays of a "
        "lost CPU device can still be copied to NumPy. Work on the device 'host', or restart the process "
        "(the kernel) to get this device back.",
        bounds ? "Out of bounds: " : "", work.length ? drupe_text_get(&work) : "A thread of the driver",
        device->filter, what);
    drupe_error error = *drupe_error_last();
    drupe_text_clear(&work);
    drupe_device_lose(device, function, &error, true);
}

void drupe_fault_deliver(const drupe_fault *fault)
{
    if (drupe_worker_fault(fault) || drupe_loop_fault(fault)) return;
    for (size_t i = 0; i < drupe_slot_count(); i++) {
        drupe_slot *slot = drupe_slot_at(i);
        /* Not its lock: whoever holds that may be waiting for the thread that has faulted. A backend that has
         * work is not unloaded. */
        if (!atomic_load_explicit(&slot->loaded, memory_order_acquire)) continue;
        for (uint32_t d = 0; slot->backend->device_fault && d < slot->ndevices; d++) {
            drupe_status status = slot->backend->device_fault(slot->devices[d], fault);
            if (status == DRUPE_E_DEVICE_LOST) lose(slot->devices[d], fault);
            if (status == DRUPE_OK) return;
        }
    }
}
