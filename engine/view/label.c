/* Text of others: labels of kernels are cut anywhere, may hold anything, and end up in terminals and HTML. */
#include "frame.h"
#include <stdio.h>
#include <string.h>

#define REPLACEMENT 0xFFFDu

/* The next character of a NUL-ended string and how many bytes it takes; U+FFFD for what is none. */
static uint32_t utf8_next(const char *bytes, size_t *size)
{
    const unsigned char *at = (const unsigned char *)bytes;
    int length = drupe_utf8_next(bytes, 4);
    *size = length > 0 ? (size_t)length : 1;
    if (length <= 0) return REPLACEMENT;
    uint32_t code = length == 1 ? at[0] : at[0] & (0x7Fu >> length);
    for (int i = 1; i < length; i++) code = code << 6 | (at[i] & 0x3F);
    return code;
}

/* Controls, marks of direction and line ends: they change what stands around them. */
static bool code_steers(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x200B && code <= 0x200F) ||
           (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF ||
           (code >= 0xFFF0 && code < 0xFFFD) || (code & 0xFFFE) == 0xFFFE;
}

static size_t code_width(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } wide[] = {{0x1100, 0x115F}, {0x2E80, 0xA4CF}, {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},  {0xFE30, 0xFE6F},
                {0xFF00, 0xFF60}, {0xFFE0, 0xFFE6}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};
    if (code < 0x300) return 1;
    if (code < 0x370 || (code >= 0x1AB0 && code < 0x1B00) || (code >= 0x20D0 && code < 0x2100) ||
        (code >= 0xFE00 && code < 0xFE10))
        return 0;
    for (size_t i = 0; i < DRUPE_COUNT_OF(wide); i++)
        if (code >= wide[i].first && code <= wide[i].last) return 2;
    return 1;
}

size_t drupe_label_width(const char *utf8)
{
    size_t width = 0, size = 0;
    for (; *utf8 != '\0'; utf8 += size) width += code_width(utf8_next(utf8, &size));
    return width;
}

/* What stays when the label is cut: ": lines 3-4" at the end of those of kernels of several operations; else
 * "". */
static const char *label_tail(const char *label, size_t width)
{
    const char *tail = strstr(label, ": line");
    return tail && drupe_label_width(tail) + 4 <= width ? tail : "";
}

/* Returns the columns that it takes. */
static size_t label_append(drupe_text *text, const char *label, size_t width)
{
    size_t used = 0, size = 0, whole = 0;
    const char *tail = "";
    /* Whether it fits is known before the first character: an ellipsis takes a column. */
    for (const char *at = label; *at != '\0' && whole <= width; at += size)
        whole += code_width(utf8_next(at, &size));
    size_t room = width;
    if (whole > width && width > 0) {
        tail = label_tail(label, width);
        room = width - 1 - drupe_label_width(tail);
    }
    for (; *label != '\0'; label += size) {
        uint32_t code = utf8_next(label, &size);
        size_t more = code_width(code);
        if (used + more > room) break;
        if (code == REPLACEMENT || code_steers(code))
            drupe_text_append(text, "\uFFFD", 3);
        else
            drupe_text_append(text, label, size);
        used += more;
    }
    if (*label != '\0' && width > 0) {
        drupe_text_append(text, "\u2026", 3);
        used++;
        if (*tail != '\0') used += label_append(text, tail, width);
    }
    return used;
}

void drupe_label_text(drupe_text *text, const char *label, size_t width, bool pad)
{
    size_t used = label_append(text, label, width);
    for (; pad && used < width; used++) drupe_text_append(text, " ", 1);
}

void drupe_label_html(drupe_text *text, const char *label, size_t width)
{
    drupe_text plain = {0};
    (void)label_append(&plain, label, width);
    for (const char *at = drupe_text_get(&plain); *at != '\0';) {
        size_t size = strcspn(at, "<>&\"'");
        drupe_text_append(text, at, size);
        at += size;
        switch (*at) {
        case '<': drupe_text_printf(text, "&lt;"); break;
        case '>': drupe_text_printf(text, "&gt;"); break;
        case '&': drupe_text_printf(text, "&amp;"); break;
        case '"': drupe_text_printf(text, "&quot;"); break;
        case '\'': drupe_text_printf(text, "&#39;"); break;
        default: break;
        }
        at += *at != '\0';
    }
    drupe_frame_part_end(text, &plain);
}

void drupe_label_right(drupe_text *text, const char *utf8, size_t width, const char *space)
{
    for (size_t used = drupe_label_width(utf8); used < width; used++)
        drupe_text_append(text, space, strlen(space));
    drupe_text_append(text, utf8, strlen(utf8));
}

drupe_unit drupe_label_cells(uint32_t first, uint32_t last)
{
    drupe_unit unit = {"-"};
    if (last == 0) return unit;
    if (first == last)
        snprintf(unit.text, sizeof unit.text, "[%u]", last);
    else
        snprintf(unit.text, sizeof unit.text, "[%u-%u]", first, last);
    return unit;
}

/* The second part of a filter, "gpu" of "opencl:gpu:0", and its length. */
static const char *filter_type(const char *filter, size_t *size)
{
    const char *type = strchr(filter, ':');
    type = type == NULL ? filter : type + 1;
    *size = strcspn(type, ":");
    return type;
}

void drupe_label_device(drupe_text *text, const drupe_view *view, const char *filter)
{
    size_t size = 0, other = 0, same = 0;
    const char *type = filter_type(filter, &size), *last = "";
    for (size_t i = 0; i < view->nlanes; i++) {
        const char *theirs = filter_type(view->lanes[i].device, &other);
        if (other != size || memcmp(theirs, type, size) != 0 || strcmp(view->lanes[i].device, last) == 0)
            continue;
        last = view->lanes[i].device;
        same++;
    }
    bool brief = same <= 1 && (strncmp(type, "gpu", size) == 0 || strncmp(type, "cpu", size) == 0);
    if (brief && size == 3)
        drupe_text_append(text, type[0] == 'g' ? "GPU" : "CPU", 3);
    else
        drupe_label_text(text, filter, 40, false);
}

void drupe_label_lane(drupe_text *text, const drupe_view *view, size_t lane)
{
    static const char *const kinds[] = {"kernels", "copies", "host"};
    const drupe_view_lane *one = &view->lanes[lane];
    drupe_label_device(text, view, one->device);
    drupe_text_printf(text, " queue %u %s", one->queue, kinds[one->kind]);
}

void drupe_label_block(drupe_text *text, double share)
{
    static const char blocks[8][4] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                      "\u2585", "\u2586", "\u2587", "\u2588"};
    int level = (int)(share * 8.0);
    drupe_text_append(text, blocks[level > 7 ? 7 : level], 3);
}

void drupe_label_more(drupe_text *text, size_t more, const char *what)
{
    drupe_text_printf(text, "and %zu more %s%s", more, what, more == 1 ? "" : "s");
}
