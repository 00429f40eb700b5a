/* Pieces of HTML that sanitizers of notebooks leave as they are. */
#include "html.h"
#include <stdint.h>
#include <string.h>

#define LABEL_LONGEST 400u

void drupe_html_open(drupe_text *html, const char *style)
{
    drupe_text_printf(html, "<div style=\"%s\">", style);
}

void drupe_html_close(drupe_text *html)
{
    drupe_text_append(html, "</div>", 6);
}

void drupe_html_text(drupe_text *html, const char *style, const char *text)
{
    drupe_html_open(html, style);
    drupe_label_html(html, text, LABEL_LONGEST);
    drupe_html_close(html);
}

void drupe_html_part(drupe_text *html, const char *style, drupe_text *part)
{
    drupe_html_text(html, style, drupe_text_get(part));
    drupe_frame_part_end(html, part);
}

void drupe_html_more(drupe_text *html, size_t more, const char *what)
{
    drupe_html_open(html, "opacity:0.75");
    drupe_label_more(html, more, what);
    drupe_html_close(html);
}

void drupe_html_number(drupe_text *html, const char *style, const char *text, size_t width)
{
    drupe_text padded = {0};
    drupe_label_right(&padded, text, width, DRUPE_HTML_SPACE);
    drupe_html_part(html, style, &padded);
}

void drupe_html_track(drupe_text *html, unsigned height)
{
    drupe_text_printf(html,
                      "<div style=\"position:relative;flex-grow:1;min-width:0;height:%upx;overflow:hidden;"
                      "border-radius:2px;background-color:" DRUPE_HTML_TRACK "\">",
                      height);
}

void drupe_html_meter(drupe_text *html)
{
    drupe_html_open(html,
                    "position:relative;flex-grow:1;min-width:0;height:10px;overflow:hidden;border-radius:2px;"
                    "border:1px solid #80808080");
}

unsigned drupe_html_hundredths(double percent)
{
    if (percent >= 100.0) return 10000u;
    return percent > 0.0 ? (unsigned)(percent * 100.0 + 0.5) : 0;
}

/* Slanted stripes of 2 px, 8 px apart. Sanitizers know no gradient that repeats itself, and one length for a
 * size: so the gradient is as long as the highest bar needs, and a tile is as wide as a stripe is apart. */
static void ground(drupe_text *html, uint32_t colour, drupe_html_look look)
{
    unsigned rgb = (unsigned)colour;
    drupe_text_printf(html, "background-color:#%06x%s", rgb, look == DRUPE_HTML_SOLID ? "" : "48");
    if (look != DRUPE_HTML_HATCHED) return;
    drupe_text_printf(html,
                      ";background-image:linear-gradient(135deg,#%06x 2px,#0000 2px 8px,#%06x 8px 10px,"
                      "#0000 10px 16px,#%06x 16px 18px,#0000 18px);background-size:11.31px",
                      rgb, rgb, rgb);
}

void drupe_html_bar_add(drupe_text *html, const drupe_html_bar *bar)
{
    unsigned left = drupe_html_hundredths(bar->left), width = drupe_html_hundredths(bar->width);
    drupe_text_printf(html,
                      "<div style=\"position:absolute;left:%u.%02u%%;width:%u.%02u%%;min-width:2px;bottom:0;"
                      "height:%.0f%%;",
                      DRUPE_HTML_PERCENT(left), DRUPE_HTML_PERCENT(width), bar->height);
    ground(html, bar->colour, bar->look);
    drupe_text_append(html, "\"", 1);
    if (bar->title != NULL) drupe_text_printf(html, " title=\"%s\"", bar->title);
    drupe_text_append(html, "></div>", 7);
}

void drupe_html_key(drupe_text *html, uint32_t colour, const char *text)
{
    drupe_text_printf(
        html,
        "<div style=\"display:flex;align-items:center;margin-right:12px\"><div style=\"width:10px;"
        "height:10px;margin-right:4px;border-radius:2px;background-color:#%06x\"></div>",
        (unsigned)colour);
    drupe_html_text(html, "white-space:nowrap", text);
    drupe_html_close(html);
}
