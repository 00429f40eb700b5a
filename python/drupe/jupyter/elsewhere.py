"""An error that another cell shows. In the cell that it fails, which may be right in itself, it is one line that leads
to the other cell. Front-ends that do not know cells by name get the line as an `error`, since programs that run
notebooks look for outputs of this type.
"""
from . import cell as cells
from . import display, jsontext

_MOST = 300  # characters of the message's first line
_STYLE = "border-left:3px solid #d62728;padding:2px 10px;font-size:13px"


def show(server, cell, error):
    """Show it in one line; False when no other cell shows it."""
    number = None if cell is None else _take_number(error)
    if not number:
        return False
    head, content = "Work of ", jsontext.error_content(error, [])
    kind, message = content["ename"], content["evalue"].partition("\n")[0]
    if len(message) > _MOST:
        message = message[:_MOST] + " ..."
    others = len(getattr(error, "__notes__", ()))
    if others:
        message += " (and %d more)" % others
    text = "%scell [%d] failed after its end: %s: %s" % (head, number, kind, message)
    if cell.id is None:
        display.publish(server, "error", {**content, "traceback": [text]})
        return True
    import html

    name, known = "cell [%d]" % number, cells.id_of(number)
    if known is not None:
        name = '<a href="#cell-id=%s">%s</a>' % (html.escape(known), name)
    markup = '<div style="%s">%s%s failed after its end: <b>%s</b>: %s</div>' % (
        _STYLE, head, name, html.escape(kind), html.escape(message))
    data = {"text/plain": text, "text/html": markup}
    display.publish(server, "display_data", {"data": data, "metadata": {}, "transient": {}})
    return True


def _take_number(error):
    """Once: who raises it again wants to see it."""
    try:
        return error.__dict__.pop("_shown_in", None)
    except Exception:  # an exception of the user's, which may refuse anything
        return None
