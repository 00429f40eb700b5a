/* What begins with the first backend that is loaded: checked mode, and the layer of a test. */
#include "backends/backend.h"
#include "drupe/check.h"
#include <stdlib.h>
#include <string.h>

drupe_layer_fn *drupe_test_layer;

drupe_status drupe_layer_apply(const drupe_backend *base, size_t slot, const drupe_backend **backend)
{
    static _Atomic(bool) checked;
    const char *layers = getenv("DRUPE_LAYERS");
    if (layers && strcmp(layers, "check") == 0 && !atomic_exchange(&checked, true)) drupe_check_begin();
    *backend = base;
    return drupe_test_layer ? drupe_test_layer(base, slot, backend) : DRUPE_OK;
}
