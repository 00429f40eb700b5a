/* What sanitizers of notebooks let pass. The lists hold what the frames use, not all that is allowed: a new
 * property has to be looked up in JupyterLab's own lists before it is added here. */
#include "rules.h"
#include "view/frame.h"
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const lengths[] = {"width",      "height",      "min-width",    "min-height",
                                      "max-width",  "left",        "bottom",       "top",
                                      "margin-top", "margin-left", "margin-right", "padding-left",
                                      "font-size",  "line-height", "border-radius"};
static const struct {
    const char *name, *values;
} words[] = {{"position", "absolute relative"},
             {"display", "flex"},
             {"overflow", "hidden"},
             {"white-space", "nowrap"},
             {"text-overflow", "ellipsis"},
             {"text-align", "right center"},
             {"align-items", "center"},
             {"justify-content", "space-between"},
             {"flex-wrap", "wrap"},
             {"flex-grow", "1"},
             {"font-weight", "600"},
             {"border", "1px solid #80808080"},
             {"border-top", "1px solid #80808040"}};

static bool is_length(const char *value)
{
    char *end = NULL;
    double number = strtod(value, &end);
    if (end == value || number < -10.0 || number > 2000.0) return false;
    return strcmp(end, "px") == 0 || strcmp(end, "%") == 0 || (*end == '\0' && number == 0.0);
}

static bool is_colour(const char *value)
{
    size_t digits = strspn(value + 1, "0123456789abcdef");
    return value[0] == '#' && value[digits + 1] == '\0' && (digits == 6 || digits == 8);
}

static bool is_word(const char *name, const char *value)
{
    for (size_t i = 0; i < DRUPE_COUNT_OF(words); i++)
        if (strcmp(words[i].name, name) == 0) return strstr(words[i].values, value) != NULL && *value != '\0';
    return false;
}

/* Two colours side by side: JupyterLab knows linear gradients, and none that repeats itself. */
static bool is_stripes(const char *value)
{
    unsigned rgb[3] = {0, 0, 0};
    int end = 0;
    int found = sscanf(value,
                       "linear-gradient(135deg,#%6x 2px,#0000 2px 8px,#%6x 8px 10px,#0000 10px 16px,"
                       "#%6x 16px 18px,#0000 18px)%n",
                       &rgb[0], &rgb[1], &rgb[2], &end);
    return found == 3 && end > 0 && value[end] == '\0';
}

static void check_declaration(const char *name, const char *value)
{
    bool good = is_word(name, value);
    for (size_t i = 0; i < DRUPE_COUNT_OF(lengths); i++)
        good |= strcmp(lengths[i], name) == 0 && is_length(value);
    if (strcmp(name, "color") == 0 || strcmp(name, "background-color") == 0) good = is_colour(value);
    if (strcmp(name, "background-image") == 0) good = is_stripes(value);
    if (strcmp(name, "background-size") == 0) good = is_length(value); /* one: two are refused */
    if (strcmp(name, "opacity") == 0) good = atof(value) > 0.5 && atof(value) <= 1.0;
    if (!good) fail_msg("the declaration \"%s:%s\" is not allowed", name, value);
}

static void note_declaration(const char *name, const char *value, rules_bar *bar)
{
    if (strcmp(name, "left") == 0) bar->left = atof(value);
    if (strcmp(name, "width") == 0) bar->width = strchr(value, '%') != NULL ? atof(value) : 0.0;
    if (strcmp(name, "height") == 0) bar->height = strchr(value, '%') != NULL ? atof(value) : 0.0;
    size_t size = strlen(value) + 1;
    if (strcmp(name, "background-color") == 0 && size <= sizeof bar->colour) memcpy(bar->colour, value, size);
}

/* Whether the style is that of a bar. */
static bool check_style(const char *style, size_t size, rules_bar *bar)
{
    char copy[512], *rest = NULL;
    bool absolute = false;
    *bar = (rules_bar){-1.0, 0.0, 0.0, ""};
    assert_true(size < sizeof copy);
    memcpy(copy, style, size);
    copy[size] = '\0';
    for (char *one = strtok_r(copy, ";", &rest); one != NULL; one = strtok_r(NULL, ";", &rest)) {
        char *colon = strchr(one, ':');
        assert_non_null(colon);
        *colon = '\0';
        check_declaration(one, colon + 1);
        note_declaration(one, colon + 1, bar);
        absolute |= strcmp(one, "position") == 0 && strcmp(colon + 1, "absolute") == 0;
    }
    return absolute && bar->left >= 0.0;
}

/* The end of an attribute's value. */
static const char *check_quoted(const char *at)
{
    const char *end = strchr(at, '"');
    assert_non_null(end);
    for (; at < end; at++) assert_true(*at != '<' && *at != '>');
    return end;
}

/* The end of an opening tag; true for a bar. */
static bool check_tag(const char **html, rules_bar *bar)
{
    const char *at = *html, *end = NULL;
    bool is_bar = false;
    assert_memory_equal(at, "<div style=\"", 12);
    end = check_quoted(at + 12);
    is_bar = check_style(at + 12, (size_t)(end - at - 12), bar);
    at = end + 1;
    if (strncmp(at, " title=\"", 8) == 0) at = check_quoted(at + 8) + 1;
    assert_int_equal(*at, '>');
    *html = at + 1;
    return is_bar;
}

static void check_entity(const char *at)
{
    static const char *const entities[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"};
    for (size_t i = 0; i < DRUPE_COUNT_OF(entities); i++)
        if (strncmp(at, entities[i], strlen(entities[i])) == 0) return;
    fail_msg("a bare ampersand: %.20s", at);
}

size_t rules_html(const char *html, rules_bar *bars, size_t capacity)
{
    size_t depth = 0, count = 0;
    rules_bar bar;
    while (*html != '\0') {
        if (strncmp(html, "</div>", 6) == 0) {
            assert_true(depth > 0);
            depth--;
            html += 6;
        } else if (*html == '<') {
            bool is_bar = check_tag(&html, &bar);
            depth++;
            if (!is_bar) continue;
            assert_true(bar.left >= 0.0 && bar.left <= 100.0 && bar.width >= 0.0);
            assert_true(bar.left + bar.width <= 100.02);
            if (bars != NULL && count < capacity) bars[count] = bar;
            count++;
        } else {
            if (*html == '&') check_entity(html);
            assert_true(*html != '>' && (unsigned char)*html >= 0x20);
            html++;
        }
    }
    assert_int_equal(depth, 0);
    return count;
}

void rules_text(const char *text, size_t columns)
{
    char line[4096];
    while (*text != '\0') {
        size_t size = strcspn(text, "\n");
        assert_true(size < sizeof line);
        memcpy(line, text, size);
        line[size] = '\0';
        if (drupe_label_width(line) > columns) fail_msg("%zu columns: %s", drupe_label_width(line), line);
        for (size_t i = 0; i < size; i++) assert_true((unsigned char)line[i] >= 0x20 && line[i] != 0x7f);
        assert_null(strstr(line, "\u202e"));
        text += size + (text[size] == '\n');
    }
}
