/* The columns of a timeline, for text and HTML. */
#ifndef DRUPE_VIEW_BINS_H
#define DRUPE_VIEW_BINS_H

#include "frame.h"

#define DRUPE_BIN_EMPTY UINT32_MAX

typedef struct drupe_bin {
    double busy;    /* 0 to 1: share of its time with work; spans side by side count once each up to 1 */
    double longest; /* the part that `span` has */
    uint32_t span;  /* index of the one with most of it, or DRUPE_BIN_EMPTY */
    uint32_t count; /* spans in it */
    bool failed;
    bool known; /* something is known to have run in it: `span` is that of those */
} drupe_bin;

typedef struct drupe_bins {
    drupe_bin *bins; /* columns for each lane of the view */
    size_t columns;
    uint64_t from_ns, to_ns;
} drupe_bins;

/* What lies outside of the range is left out. Zeroed = empty; give it to drupe_bins_clear(). */
drupe_status drupe_bins_make(const drupe_view *view, uint64_t from_ns, uint64_t to_ns, size_t columns,
                             drupe_bins *bins) DRUPE_MUST_CHECK;
void drupe_bins_clear(drupe_bins *bins);

#endif
