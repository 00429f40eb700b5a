/* What tests of the suite have to see or to set inside of the engine. No other file of it includes a private
 * header. */
#include "conformance.h"
#include "core/queue/launch.h"

bool white_box_has_marker(drupe_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    bool has = queue->order.deferred && queue->order.deferred->deferral.marker;
    pthread_mutex_unlock(&queue->lock);
    return has;
}

uint32_t white_box_trace_name(drupe_kernel *kernel, uint32_t number)
{
    uint32_t before = kernel->trace_name;
    kernel->trace_name = number;
    return before;
}

uint32_t white_box_name_number(const char *name)
{
    return drupe_trace_name(name);
}

void white_box_offer_failures(void)
{
    drupe_failures_offer();
}
