"""Tables as text and as HTML. The HTML has inline styles with plain colours alone: sanitizers leave it as it is, and it
reads on light and dark ground."""
import unicodedata

from drupe._html import (FILL, GREY, LIMIT, LINE, PLAIN, Cell, Html, element, escape, markup_of, meter,  # noqa: F401
                         text_of)
from drupe._units import seconds  # noqa: F401
from drupe.magics.base import WIDTH

TABLE = "border-collapse:collapse;font-size:13px;margin:0"


def width_of(text):
    """Columns of a terminal that a text takes."""
    return sum(0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1
               for one in text)


def cut(text, width):
    """The text in at most so many columns."""
    if width_of(text) <= width:
        return text
    while text and width_of(text) > width - 1:
        text = text[:-1]
    return text.rstrip() + "…"


def _pad(text, width, right):
    gap = " " * max(0, width - width_of(text))
    return gap + text if right else text + gap


def table_text(titles, rows, columns=WIDTH, right=(), flexible=None):
    """A table; columns `right` are ranged right, column `flexible` (the widest unless given) is cut to fit."""
    lines = [[text_of(cell) for cell in row] for row in (titles, *rows)]
    widths = [max(width_of(line[i]) for line in lines) for i in range(len(titles))]
    if flexible is None:
        flexible = widths.index(max(widths))
    over = sum(widths) + 2 * (len(widths) - 1) - columns
    if over > 0:
        widths[flexible] = max(8, widths[flexible] - over)
    return "\n".join("  ".join(_pad(cut(cell, width), width, i in right)
                               for i, (cell, width) in enumerate(zip(line, widths))).rstrip() for line in lines)


def table_html(titles, rows, right=(), faint=(), flexible=None):
    """The same as HTML; rows with numbers in `faint` are greyed, column `flexible` may take several lines."""
    def style(i):
        return "text-align:%s;padding:2px 10px%s" % ("right" if i in right else "left",
                                                     "" if i == flexible else ";white-space:nowrap")

    head = "".join(element("th", escape(title), style(i)) for i, title in enumerate(titles))
    lines = [element("tr", head, "border-bottom:%s;%s" % (LINE, PLAIN))]
    for number, row in enumerate(rows):
        colour = ";color:" + GREY if number in faint else ""
        lines.append(element("tr", "".join(element("td", markup_of(cell), style(i) + colour)
                                           for i, cell in enumerate(row)), PLAIN))
    return element("table", "".join(lines), TABLE)


def note_html(text):
    return element("div", escape(text), "color:%s;font-size:12px;padding:4px 10px" % GREY)


def help_html(magic):
    """The help of a magic."""
    first, more = magic.summary
    usage = element("pre", escape("\n".join(magic.usages)), "margin:0;font-weight:bold;white-space:pre-wrap")
    parts = [usage, element("p", escape(first), "margin:6px 0")]
    for paragraph in more.split("\n\n") if more else ():
        fixed = any(line.startswith(" ") for line in paragraph.splitlines())
        parts.append(element("pre" if fixed else "p", escape(paragraph), "margin:6px 0"))
    shown = [*magic.all_options, *([magic.tail] if magic.tail else [])]
    rows = "".join(element("tr", element("td", element("code", escape(option.title), "white-space:nowrap"),
                                         "text-align:left;padding:1px 16px 1px 0;white-space:nowrap")
                           + element("td", escape(option.help), "text-align:left;padding:1px 0"), PLAIN)
                   for option in shown)
    parts.append(element("table", rows, TABLE))
    for typed, meaning in magic.examples:
        parts.append(element("pre", escape(typed), "margin:8px 0 0 0;padding:4px 8px;border-left:3px solid #8886"))
        parts.append(element("div", escape(meaning), "padding:0 11px;color:" + GREY))
    return element("div", "".join(parts), "font-size:13px")


def count(number, noun):
    """1 loop, 2 loops."""
    return "%d %s%s" % (number, noun, "" if number == 1 else "s")
