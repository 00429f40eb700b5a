/* In an extension module: the layer is there from the start. */
#include "layers/fault_layer.h"

__attribute__((constructor)) static void begin(void)
{
    drupe_fault_layer(true);
}
