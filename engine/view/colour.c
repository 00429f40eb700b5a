/* The colours of cells.
 *
 * Chosen by a search, not by eye: each has a contrast of at least 3 to white and to the grounds of dark
 * themes, none is near the red of failures, any two are at least 18 apart in CIELAB, and neighbours and next
 * neighbours differ for people who see red, green or blue badly. tests/unit/view/test_view_frames.c checks
 * contrasts and distances. */
#include "drupe/view.h"

static const uint32_t colours[DRUPE_VIEW_COLOURS] = {
    0x3663db, 0xc18154, 0x4299dc, 0x3b6987, 0x756208, 0x018d87, 0x9e9621, 0x137738, 0x8a81ef,
    0x7c5f9d, 0x38a017, 0xa685ad, 0xbf3275, 0xbc8c30, 0x0daa56, 0xd96fb8, 0x8a645c, 0xaf32b3,
    0x20a77d, 0x7f92b1, 0x426bb4, 0xd07e00, 0x9f567d, 0x62712d, 0xd6687e, 0x6f9d51, 0x0190fa,
    0xe947bb, 0x547b05, 0x8a9970, 0x8955dd, 0x517361, 0xa963c4, 0xf82e95, 0x836a3f, 0x199fbe,
};

#define NO_CELL 0x808080u

uint32_t drupe_view_colour(uint32_t cell)
{
    return cell == 0 ? NO_CELL : colours[(cell - 1) % DRUPE_VIEW_COLOURS];
}
