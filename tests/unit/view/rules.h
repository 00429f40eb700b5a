/* What sanitizers of notebooks let pass, and what a terminal shows aligned. */
#ifndef TESTS_UNIT_VIEW_RULES_H
#define TESTS_UNIT_VIEW_RULES_H

#include <stddef.h>

/* A bar of a track: percent from the left, in percent; how high, in percent. */
typedef struct rules_bar {
    double left, width, height;
    char colour[8];
} rules_bar;

/* Fails the test unless the HTML is made of nested divs whose attributes are `style` and `title`, with
 * declarations that JupyterLab leaves to notebooks that are not trusted, and with bars inside of their
 * tracks. Returns how many bars there are; the first `capacity` are written to `bars`, which may be NULL. */
size_t rules_html(const char *html, rules_bar *bars, size_t capacity);
/* Fails the test when a line is wider than `columns`, or something in the text would steer a terminal. */
void rules_text(const char *text, size_t columns);

#endif
