/* The end: threads first, then what they work on. */
#include "array/fused_room.h"
#include "array/node.h"
#include "base/parallel.h"

void drupe_array_forget(void)
{
    drupe_idle_stop();
    drupe_parallel_stop();
    drupe_fused_stop();
    drupe_targets_close();
}
