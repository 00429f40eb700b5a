/* Views that were made up, from a seed or by hand. */
#ifndef TESTS_UNIT_VIEW_MADE_H
#define TESTS_UNIT_VIEW_MADE_H

#include "drupe/view.h"

/* A view and the room of its parts. */
typedef struct made_view {
    drupe_view view;
    drupe_view_device devices[4];
    drupe_view_sample samples[4][DRUPE_VIEW_SAMPLES];
    drupe_view_lane lanes[64];
    drupe_view_cell cells[DRUPE_VIEW_CELLS];
    drupe_view_span *spans;
} made_view;

/* One GPU: copies in, kernels of three cells, copies out, memory. Give it to made_free(). */
made_view *made_plain(void);
/* `count` spans, or fewer, of `lanes` lanes with anything in them. */
made_view *made_random(uint32_t seed, size_t lanes, size_t count);
void made_free(made_view *made);

#endif
