/* Pieces of HTML that sanitizers of notebooks leave as they are.
 *
 * JupyterLab drops svg, style and whatever uses var() from notebooks that are not trusted, so everything here
 * is a div or a span with `style` and `title` only; colours are hex numbers that read on light and dark
 * ground, greys are translucent, and text has the page's own colour. */
#ifndef DRUPE_VIEW_HTML_H
#define DRUPE_VIEW_HTML_H

#include "frame.h"

#define DRUPE_HTML_RED   0xdb2c2bu /* failures and limits only */
#define DRUPE_HTML_TRACK "#8080802a"
#define DRUPE_HTML_USE   0x5f7c99u /* use that belongs to no cell */
#define DRUPE_HTML_SPACE "\u2007"  /* as wide as a digit */

/* Borrowed strings; `style` are declarations. */
void drupe_html_open(drupe_text *html, const char *style);
void drupe_html_close(drupe_text *html);
/* An element around escaped text. */
void drupe_html_text(drupe_text *html, const char *style, const char *text);
/* The same of a text, which is cleared. */
void drupe_html_part(drupe_text *html, const char *style, drupe_text *part);
/* A line that says how many were left out. */
void drupe_html_more(drupe_text *html, size_t more, const char *what);
/* The same, right-aligned: digits keep their place. */
void drupe_html_number(drupe_text *html, const char *style, const char *text, size_t width);

/* What a bar says: work ran then; or it ran some time then; or it waits. */
typedef enum drupe_html_look { DRUPE_HTML_SOLID, DRUPE_HTML_HATCHED, DRUPE_HTML_PALE } drupe_html_look;

/* A part of a track, in percent from the left; heights from the ground up. */
typedef struct drupe_html_bar {
    double left, width, height;
    uint32_t colour;
    const char *title; /* escaped already, or NULL */
    drupe_html_look look;
} drupe_html_bar;

/* For "%u.%02u%%": CSS has a point, also where the program's locale writes a comma. */
#define DRUPE_HTML_PERCENT(hundredths) (hundredths) / 100u, (hundredths) % 100u
unsigned drupe_html_hundredths(double percent);
/* The ground of bars, `height` pixels high; close it with drupe_html_close(). */
void drupe_html_track(drupe_text *html, unsigned height);
/* The same for how much of something is used: an outline, which looks empty on any ground while it is. */
void drupe_html_meter(drupe_text *html);
void drupe_html_bar_add(drupe_text *html, const drupe_html_bar *bar);
/* A coloured square and what it means. */
void drupe_html_key(drupe_text *html, uint32_t colour, const char *text);

#endif
