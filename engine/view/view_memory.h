/* Memory over time, and sentences about it, for text and HTML. */
#ifndef DRUPE_VIEW_MEMORY_H
#define DRUPE_VIEW_MEMORY_H

#include "frame.h"

#define DRUPE_MEMORY_BINS 200u /* most columns */

typedef struct drupe_memory_bin {
    uint64_t used; /* most bytes in use within its time, over all kinds */
    uint32_t cell; /* that ran when it became so */
} drupe_memory_bin;

extern const char *const drupe_memory_kinds[3]; /* by drupe_mem_kind */

/* What may be in use: the limit, else the device's memory, else 0. */
uint64_t drupe_memory_limit(const drupe_view_device *device);
/* The whole of a bar of use: the limit where it is known, else the most there was; never 0. */
uint64_t drupe_memory_whole(const drupe_view_device *device);
/* Whether so much is in use that the limit is near. */
bool drupe_memory_near(const drupe_view_device *device);
/* The range of the samples; false when there is no line to draw. */
bool drupe_memory_range(const drupe_view_device *device, bool live, uint64_t *from, uint64_t *to);
/* Fill `columns` (at most DRUPE_MEMORY_BINS) bins and return the most that any has. A sample counts until the
 * next one. */
uint64_t drupe_memory_bins(const drupe_view_device *device, uint64_t from, uint64_t to, size_t columns,
                           drupe_memory_bin *bins);
/* Where the axis of a chart ends that shows `most` bytes: a power of two, above which there is room, and no
 * less than a thousandth of the limit, so that little looks like little. */
uint64_t drupe_memory_axis(const drupe_view_device *device, uint64_t most);
/* "1.20 GiB of 15.7 GiB (7.6 %)" */
void drupe_memory_use(const drupe_view_device *device, drupe_text *text);
/* "peak 3.20 GiB · 1.50 GiB reserved · 12 allocations" */
void drupe_memory_pool(const drupe_view_device *device, drupe_text *text);

#endif
