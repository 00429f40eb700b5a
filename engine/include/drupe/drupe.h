/* The device engine's public interface: everything at once.
 *
 * Reading order: status.h (errors and ownership words), device.h (what there is), queue.h (how work is
 * ordered and fails), submit.h (what can be submitted), failures.h (errors nobody waited for), memory.h
 * (USM), park.h (a device is others' for a while), program.h (kernels), cache.h (built programs on disk),
 * array.h and array_order.h (arrays on top of all that), trace.h (what was done lately). */
#ifndef DRUPE_DRUPE_H
#define DRUPE_DRUPE_H

#include "drupe/array.h"
#include "drupe/array_fft.h"
#include "drupe/array_index.h"
#include "drupe/array_linalg.h"
#include "drupe/array_order.h"
#include "drupe/array_pending.h"
#include "drupe/array_random.h"
#include "drupe/cache.h"
#include "drupe/check.h"
#include "drupe/device.h"
#include "drupe/failures.h"
#include "drupe/fault.h"
#include "drupe/memory.h"
#include "drupe/park.h"
#include "drupe/program.h"
#include "drupe/queue.h"
#include "drupe/status.h"
#include "drupe/submit.h"
#include "drupe/trace.h"

#endif
