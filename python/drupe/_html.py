"""The pieces of what is shown: HTML with inline styles and plain colours alone, which sanitizers leave as it is and
which reads on light and dark ground, and the same facts as text."""
import html

from drupe._units import count, seconds

GREY = "#8a8a8a"
LINE = "1px solid #8886"
PLAIN = "background-color:#00000000"  # of a table's row: front-ends stripe them otherwise
FILL = "#4c78a8"
LIMIT = "#d62728"  # red: limits and errors, nothing else
GOOD = "#2e8b57"
_TEXT_BAR = 20


class Html(str):
    """Text that is HTML already."""


class Cell:
    """Something that looks different as text and as HTML."""

    def __init__(self, text, markup=None):
        self.text = str(text)
        self.markup = escape(text) if markup is None else markup


def named(display):
    """The metadata of a display that is updated: notebooks keep it, as they do not keep the display's name."""
    return {"drupe": {"display": display}}


def escape(text):
    return text if isinstance(text, Html) else Html(html.escape(str(text)))


def text_of(cell):
    return cell.text if isinstance(cell, Cell) else str(cell)


def markup_of(cell):
    return cell.markup if isinstance(cell, Cell) else escape(cell)


def element(name, content="", style="", **attributes):
    """An element; `content` is HTML."""
    given = {**attributes, **({"style": style} if style else {})}
    inside = "".join(' %s="%s"' % (key, html.escape(str(value))) for key, value in given.items())
    return Html("<%s%s>%s</%s>" % (name, inside, content, name))


def meter(part, whole, label, width=10):
    """How much of something is used: a bar and its label."""
    share = min(1.0, part / whole) if whole else 0.0
    full = round(share * width)
    bar = element("div", element("div", "", "width:%.1f%%;height:8px;border-radius:2px;background-color:%s"
                                 % (100 * share, LIMIT if share >= 0.9 else FILL)),
                  "display:inline-block;width:80px;height:8px;border-radius:2px;border:1px solid #8888;"
                  "margin-right:6px;vertical-align:middle", title="%.0f %%" % (100 * share))
    return Cell("%s %s" % ("#" * full + "-" * (width - full), label), Html(bar + escape(label)))


def pill(word, colour=GREY):
    """A word with a colour that means something."""
    return Cell(word, element("span", escape(word), "display:inline-block;padding:0 7px;border-radius:8px;"
                              "color:#ffffff;background-color:" + colour))


def chip(word):
    """A name, such as a device's filter."""
    style = "display:inline-block;padding:0 6px;border:%s;border-radius:8px" % LINE
    return Cell(word, element("span", escape(word), style))


def steps(parts):
    """A bar of (name, seconds, colour) one after another, and their figures."""
    parts = [part for part in parts if part[1] >= 0]
    whole = sum(part[1] for part in parts) or 1.0
    figures = "  ".join("%s %s" % (name, seconds(span)) for name, span, _ in parts)
    signs = "-=#"
    drawn = "".join(signs[i % 3] * max(1, round(_TEXT_BAR * span / whole)) for i, (_, span, _) in enumerate(parts))
    bars = "".join(element("div", "", "width:%.2f%%;background-color:%s;height:10px" % (100 * span / whole, colour),
                           title="%s %s" % (name, seconds(span))) for name, span, colour in parts)
    legend = "".join(element("span", element("span", "", "display:inline-block;width:8px;height:8px;margin-right:4px;"
                                             "background-color:" + colour) + escape("%s %s" % (name, seconds(span))),
                             "margin-right:12px") for name, span, colour in parts)
    return Cell("%s  %s" % (drawn, figures),
                element("div", Html(bars), "display:flex;width:260px;border-radius:2px;background-color:#8883;"
                        "margin:3px 0") + element("div", Html(legend), "font-size:12px"))


def code(text):
    """Text with its line ends."""
    # JupyterLab breaks lines of a <pre> within words, and so within numbers, else.
    shown = element("pre", escape(text), "margin:0;font-size:12px;white-space:pre-wrap;word-break:normal;"
                    "word-wrap:break-word")
    return Cell(text, shown)


class Card:
    """Facts about one object: what it is, pills and chips beside that, named rows, and a block without a name.
    `picture`, HTML alone, says nothing that the rest does not say."""

    def __init__(self, kind, name, *marks, rows=(), block=None, picture=""):
        self.kind, self.name, self.marks, self.block, self.picture = kind, name, marks, block, picture
        self.rows = [(title, value) for title, value in rows if value is not None and text_of(value) != ""]

    def text(self):
        head = " ".join([self.kind, *([text_of(self.name)] if self.name else [])])
        marks = ", ".join(text_of(mark) for mark in self.marks)
        lines = [head + (": " + marks if marks else "")]
        width = max((len(title) for title, _ in self.rows), default=0)
        for title, value in self.rows:
            first, *rest = text_of(value).split("\n")
            lines.append("  %s  %s" % (title.ljust(width), first))
            lines += ["  %s  %s" % (" " * width, line) for line in rest]
        lines += ["  " + line for line in text_of(self.block).split("\n")] if self.block is not None else []
        return "\n".join(line.rstrip() for line in lines)

    def html(self):
        head = element("span", escape(self.kind), "color:%s;margin-right:6px" % GREY)
        head += element("b", markup_of(self.name), "margin-right:8px")
        head += "".join(element("span", markup_of(mark), "margin-right:6px") for mark in self.marks)
        rows = "".join(element("tr", element("td", escape(title), "color:%s;text-align:left;vertical-align:top;"
                                             "padding:1px 12px 1px 0;white-space:nowrap" % GREY)
                               + element("td", markup_of(value), "text-align:left;padding:1px 0"), PLAIN)
                       for title, value in self.rows)
        body = element("table", Html(rows), "border-collapse:collapse;font-size:13px;margin:4px 0 0 0") if rows else ""
        if self.block is not None:
            body += element("div", markup_of(self.block), "margin-top:4px")
        if self.picture:
            body = element("div", element("div", Html(self.picture), "margin-right:16px")
                           + element("div", Html(body)), "display:flex;align-items:center;margin-top:4px")
        return element("div", element("div", Html(head)) + body,
                       "display:inline-block;border:%s;border-radius:4px;padding:6px 12px;font-size:13px" % LINE)

    def bundle(self):
        return {"text/plain": self.text(), "text/html": str(self.html())}


def box(shape, most=90):
    """A drawing of an array's shape."""
    if not shape:
        return ""
    rows, columns = (1, shape[-1]) if len(shape) == 1 else shape[-2:]
    longest = max(rows, columns, 1)
    tall, wide = (max(8, round(most * (n / longest) ** 0.5)) for n in (rows, columns))
    tall = 10 if len(shape) == 1 else tall
    area = element("div", "", "width:%dpx;height:%dpx;border:1px solid %s;background-color:#4c78a833"
                   % (wide, tall, FILL))
    width = element("div", escape(count(columns)), "width:%dpx;text-align:center;font-size:11px" % wide)
    height = element("div", escape(count(rows) if len(shape) > 1 else ""), "font-size:11px;padding-left:4px")
    depth = "" if len(shape) < 3 else element("div", escape("× " + " × ".join(map(count, shape[:-2]))),
                                              "font-size:11px;color:" + GREY)
    return element("div", width + element("div", area + height, "display:flex;align-items:center") + depth)
