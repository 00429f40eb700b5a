/* The colours of cells.
 *
 * Chosen by a search, not by eye: each has a contrast of at least 3 to white and to the grounds of dark
 * themes, none is near the red of failures, and neighbours and next neighbours differ for people who see red,
 * green or blue badly. tests/unit/view/test_frames.c checks the contrasts. */
#include "drupe/view.h"

static const uint32_t colours[DRUPE_VIEW_COLOURS] = {
    0x3663db, 0xc18154, 0x4299dc, 0x3b6987, 0x756208, 0x018d87,
    0x9e9621, 0x137738, 0x8a81ef, 0x7c5f9d, 0x38a017, 0xa685ad,
};

#define NO_CELL 0x808080u

uint32_t drupe_view_colour(uint32_t cell)
{
    return cell == 0 ? NO_CELL : colours[(cell - 1) % DRUPE_VIEW_COLOURS];
}
