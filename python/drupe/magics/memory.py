"""%memory: what is in use on the devices, and who keeps it."""
from drupe._units import size
from drupe.magics import render, views
from drupe.magics.base import WIDTH, Magic, Option, Result, UsageError
from drupe.magics.device import SELECTOR, choose

TOP = 10
_SETTLE = 0.05  # seconds

_snapshots = {}  # name: {(device, kind, place): (bytes, count)}


class Memory(Magic):
    """Memory of the devices: in use by kind, peak and limit, over time, and who allocated it.

    Without an option, the pictures and the places in the program that hold most. Memory is counted once where several
    variables share it."""

    name = "memory"
    options = (SELECTOR,
               Option("--cells", action="store_true", help="one line per cell: before, after, peak, still held"),
               Option("--by", choices=("variable", "place"), metavar="variable|place",
                      help="which variables hold how much, or which lines of code allocated it"),
               Option("--leaks", action="store_true",
                      help="what no variable holds any more: results such as Out[3], the last traceback, other "
                           "objects"),
               Option("--free-traceback", action="store_true",
                      help="forget the last exception, whose traceback keeps the variables of its functions"),
               Option("--timeline", action="store_true", help="the pictures alone"),
               Option("--live", action="store_true", help="move while this cell and its work run"),
               Option("--snapshot", metavar="NAME", help="remember who holds what under a name"),
               Option("--diff", metavar="NAME", help="what changed since that snapshot"),
               Option("--top", type=int, default=TOP, metavar="N", help="at most so many lines (%d)" % TOP))
    examples = (("%memory --by variable", "which variables hold device memory"),
                ("%memory --leaks --free-traceback", "who else keeps memory, and give back what an error holds"))

    def line(self, options):
        if options.top < 1:
            self.parser.error("--top is at least 1")
        chosen = [name for name in ("cells", "by", "leaks", "timeline", "live", "snapshot", "diff")
                  if getattr(options, name)]
        if len(chosen) > 1:
            self.parser.error("--%s and --%s exclude each other" % (chosen[0], chosen[1]))
        if options.live and options.device is not None:
            self.parser.error("--live shows all devices: leave %s out" % options.device)
        device = None if options.device is None else choose(options.device)
        freed = self._free() if options.free_traceback else None
        result = self._result(chosen[0] if chosen else "", device, options)
        if freed and not chosen:
            return Table("", (), [], [freed], {"freed": freed})
        if freed and isinstance(result, Table):
            result.notes.insert(0, freed)
        elif freed and not (options.quiet or options.json):
            print(freed)
        return result

    def _free(self):
        from drupe import _engine
        from drupe.magics import owners

        before = _in_use()
        name = owners.free_traceback(self.shell)
        for one in _engine._queues():  # work that is over keeps memory until somebody looks
            one._idle(_SETTLE)
        if name is None:
            return "There is no traceback to forget."
        return "The traceback of %s is forgotten: %s given back." % (name, size(max(0, before - _in_use())))

    def _result(self, what, device, options):
        if what == "live":
            return self._live(options)
        if what == "timeline":
            return views.View("memory", device=_filter(device))
        if what in ("snapshot", "diff"):
            return getattr(self, "_" + what)(device, options)
        table = {"cells": _cells, "leaks": _leaks, "by": _variables}.get(what)
        if table is not None and options.by != "place":
            return table(self.shell, device, options.top)
        places = _places(self.shell, device, options.top)
        return places if what else Both(views.View("memory", device=_filter(device)), places)

    def _live(self, options):
        from drupe.magics import live

        current = views.current()
        silent = options.quiet or options.json
        handle = None if silent else live.open_view(self.shell, "memory", first=current, last=current)
        if handle is None:
            return views.View("memory")
        if options.output:
            self.shell.user_ns[options.output] = handle
        return None

    def _snapshot(self, device, options):
        _snapshots[options.snapshot] = _holders(device)
        return Table("%s in use, remembered as %s" % (size(_in_use(device)), options.snapshot), (), [], [],
                     {"snapshot": options.snapshot, "bytes": _in_use(device)})

    def _diff(self, device, options):
        before = _snapshots.get(options.diff)
        if before is None:
            known = ", ".join(sorted(_snapshots)) or "none yet; make one with %memory --snapshot NAME"
            raise UsageError("there is no snapshot %s (there is: %s)" % (options.diff, known))
        return _difference(options.diff, before, _holders(device), options.top)


class Table(Result):
    """A headline, rows, and notes."""

    def __init__(self, headline, titles, rows, notes, data, right=()):
        self.headline, self.titles, self.rows, self.notes = headline, titles, rows, list(notes)
        self._data, self._right = data, right

    def text(self, columns=WIDTH):
        lines = [self.headline] if self.headline else []
        if self.rows:
            lines.append(render.table_text(self.titles, self.rows, columns, right=self._right,
                                           flexible=len(self.titles) - 1))
        return "\n".join(lines + self.notes)

    def html(self):
        parts = [render.element("div", render.escape(self.headline), "font-weight:600;font-size:12px")] \
            if self.headline else []
        if self.rows:
            parts.append(render.table_html(self.titles, self.rows, right=self._right))
        parts += [render.note_html(note) for note in self.notes]
        return render.element("div", "".join(parts))

    def data(self):
        return self._data


class Both(Result):
    """The pictures, and who holds what."""

    def __init__(self, view, table):
        self.view, self.table = view, table

    def text(self, columns=WIDTH):
        return self.view.text(columns) + ("\n" + self.table.text(columns) if self.table.rows else "")

    def html(self):
        holders = render.element("div", self.table.html(), "margin-top:8px") if self.table.rows else ""
        return self.view.html() + holders

    def data(self):
        return {"devices": self.view.data()["devices"], "holders": self.table.data()}


def _filter(device):
    return "" if device is None else device.filter_string


def _reports(device, each=False):
    import drupe
    from drupe import memory

    drupe.trace(limit=0)  # what finished work has kept is given back
    return memory.report(device, each)


def _in_use(device=None):
    return sum(one.nbytes for one in _reports(device))


def _holders(device):
    held = {}
    for one in _reports(device):
        key = (one.device, one.kind, one.place)
        nbytes, count = held.get(key, (0, 0))
        held[key] = (nbytes + one.nbytes, count + one.count)
    return held


def _rest(rows, top):
    return ["and %d more" % (len(rows) - top)] if len(rows) > top else []


def _places(shell, device, top):
    found = sorted(_holders(device).items(), key=lambda one: (-one[1][0], one[0]))
    rows = [(size(nbytes), count, kind, where, place) for (where, kind, place), (nbytes, count) in found]
    data = [{"bytes": nbytes, "count": count, "kind": kind, "device": where, "place": place}
            for (where, kind, place), (nbytes, count) in found]
    return Table("" if rows else "no memory is in use", ("held", "allocations", "kind", "device", "allocated at"),
                 rows[:top], _rest(rows, top), data, right=(0, 1))


def _variables(shell, device, top):
    from drupe.magics import owners

    found, complete = owners.by_variable(shell)
    return _owners("variable", found, complete, device, top,
                   "no variable holds device memory")


def _leaks(shell, device, top):
    from drupe.magics import owners

    found, complete = owners.leaks(shell)
    table = _owners("held by", found, complete, device, top, "no device memory beside that of your variables")
    if any(one.name.startswith("traceback") for one in found):
        table.notes.append("%memory --free-traceback gives back what the last error holds.")
    if any(one.name.startswith(("Out", "_")) for one in found):
        table.notes.append("%reset -f out, or del Out[n], gives back results.")
    return table


def _owners(title, found, complete, device, top, none):
    once = {}
    for one in found:
        once.update(one.found)
    total, used = sum(once.values()), _in_use()
    rows = [(size(one.nbytes), len(one.found), one.name, "shared with " + ", ".join(one.shared)
             if one.shared else "") for one in found]
    notes = _rest(rows, top)
    if not complete:
        notes.append("There was too much to look through: this is not all.")
    headline = none if not found else "%s of %s in use" % (size(total), size(used))
    return Table(headline, ("held", "allocations", title, ""), rows[:top], notes,
                 [{"bytes": one.nbytes, "count": len(one.found), "name": one.name, "shared": one.shared}
                  for one in found], right=(0, 1))


def _cells(shell, device, top):
    held = {}
    for one in _reports(device):
        held[one.cell or 0] = held.get(one.cell or 0, 0) + one.nbytes
    cells = {one["number"]: one["memory"] for one in views.take(spans=1).data()["cells"]}
    numbers = sorted(number for number in {*held, *cells} if held.get(number) or len(set(cells.get(number, "-"))) > 1)
    rows, data = [], []
    for number in numbers:
        before, after, peak = cells.get(number, (None, None, None))
        rows.append(["[%d]" % number if number else "-", *(size(one) if one is not None else "-"
                                                           for one in (before, after, peak)),
                     size(held.get(number, 0))])
        data.append({"cell": number, "before": before, "after": after, "peak": peak, "held": held.get(number, 0)})
    return Table("%s in use" % size(_in_use(device)), ("cell", "before", "after", "peak", "still held"),
                 rows[-top:], _rest(rows, top), data, right=(0, 1, 2, 3, 4))


def _difference(name, before, after, top):
    rows, data = [], []
    for key in {*before, *after}:
        nbytes = after.get(key, (0, 0))[0] - before.get(key, (0, 0))[0]
        count = after.get(key, (0, 0))[1] - before.get(key, (0, 0))[1]
        if nbytes or count:
            rows.append((nbytes, count, *key))
            data.append({"bytes": nbytes, "count": count, "device": key[0], "kind": key[1], "place": key[2]})
    rows.sort(key=lambda row: (-abs(row[0]), row[2:]))
    total = sum(row[0] for row in rows)
    shown = [(_signed(nbytes), "%+d" % count, kind, device, place)
             for nbytes, count, device, kind, place in rows]
    return Table("%s since %s" % (_signed(total), name), ("change", "allocations", "kind", "device", "allocated at"),
                 shown[:top], _rest(shown, top), {"since": name, "bytes": total, "changes": data}, right=(0, 1))


def _signed(nbytes):
    return ("+" if nbytes > 0 else "-" if nbytes < 0 else "\u00b1") + size(abs(nbytes))
