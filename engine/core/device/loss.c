/* Devices that are lost: what is answered from then on. How one is lost: queue/lost.c. */
#include "core/device/device_room.h"

drupe_status drupe_loss_check(const drupe_device *device)
{
    const drupe_loss *loss = drupe_device_loss(device);
    if (!loss) return DRUPE_OK;
    return drupe_error_set_native(DRUPE_E_DEVICE_LOST, loss->error.backend, loss->error.native,
                                  loss->error.native_name, "The device %s is lost: %.900s", device->filter,
                                  loss->error.text);
}
