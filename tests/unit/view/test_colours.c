/* The colours of cells: readable, none is red, and none like another. */
#include "drupe/view.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define WHITE       0xffffffu
#define DARK_GROUND 0x111111u /* of JupyterLab's dark theme */
#define APART       18.0      /* in CIELAB */
#define KEPT        32u       /* cells after which a colour may come again */

/* Red, green and blue as amounts of light. */
static void light(uint32_t colour, double parts[3])
{
    for (int i = 0; i < 3; i++) {
        double part = (double)(colour >> (16 - 8 * i) & 255) / 255.0;
        parts[i] = part <= 0.04045 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4);
    }
}

static double luminance(uint32_t colour)
{
    double parts[3];
    light(colour, parts);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
}

static double bend(double part)
{
    return part > 0.008856 ? cbrt(part) : 7.787 * part + 16.0 / 116.0;
}

/* CIELAB under the light D65. */
static void lab(uint32_t colour, double out[3])
{
    double p[3];
    light(colour, p);
    double x = bend((0.4124564 * p[0] + 0.3575761 * p[1] + 0.1804375 * p[2]) / 0.95047);
    double y = bend(0.2126729 * p[0] + 0.7151522 * p[1] + 0.0721750 * p[2]);
    double z = bend((0.0193339 * p[0] + 0.1191920 * p[1] + 0.9503041 * p[2]) / 1.08883);
    out[0] = 116.0 * y - 16.0;
    out[1] = 500.0 * (x - y);
    out[2] = 200.0 * (y - z);
}

static double distance(uint32_t one, uint32_t other)
{
    double a[3], b[3], sum = 0.0;
    lab(one, a);
    lab(other, b);
    for (int i = 0; i < 3; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum);
}

/* Contrast of at least 3 to white and to the ground of JupyterLab's dark theme; none is red. */
static void colours_can_be_seen(void **state)
{
    (void)state;
    for (uint32_t cell = 1; cell <= 2 * DRUPE_VIEW_COLOURS; cell++) {
        uint32_t colour = drupe_view_colour(cell);
        double own = luminance(colour) + 0.05;
        assert_true((luminance(WHITE) + 0.05) / own >= 3.0);
        assert_true(own / (luminance(DARK_GROUND) + 0.05) >= 3.0);
        int red = (int)(colour >> 16), green = (int)(colour >> 8 & 255), blue = (int)(colour & 255);
        assert_false(red > 2 * green && red > 2 * blue);
    }
    assert_int_equal(drupe_view_colour(0), 0x808080);
}

/* Cells that are seen side by side never share a colour, nor have two that look the same. */
static void colours_are_told_apart(void **state)
{
    (void)state;
    for (uint32_t cell = 1; cell <= DRUPE_VIEW_COLOURS; cell++)
        for (uint32_t other = cell + 1; other <= cell + KEPT; other++)
            if (distance(drupe_view_colour(cell), drupe_view_colour(other)) < APART)
                fail_msg("cells %u and %u look the same", cell, other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colours_can_be_seen),
        cmocka_unit_test(colours_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
