/* The only file that names the layers. */
#include "backends/layers/layers_room.h"

extern const drupe_layer drupe_layer_check, drupe_layer_fault;

const drupe_layer *const drupe_layers[] = {&drupe_layer_check, &drupe_layer_fault, NULL};
