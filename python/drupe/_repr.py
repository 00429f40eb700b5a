"""What notebooks show of the engine's objects. Nothing here asks a driver twice, or raises, or waits for a device for
longer than a display may."""
import functools
import os
import sys
import time

from drupe import _engine
from drupe._html import FILL, GOOD, GREY, LIMIT, Card, Cell, box, chip, code, meter, named, pill, steps
from drupe._units import count, seconds, size
from drupe.array import _text

_STATES = {"queued": GREY, "submitted": GREY, "running": FILL, "complete": GOOD, "failed": LIMIT}
_VALUES_MOST = 1000
_LOG_MOST = 2000


def mimebundle(obj, include=None, exclude=None):
    try:
        return _BUILDERS[type(obj).__name__](obj).bundle()
    except Exception:  # a device that is gone, an interpreter that ends: the object's name is better than a traceback
        return {"text/plain": object.__repr__(obj)}


# --- Devices and queues ----------------------------------------------------------------------------------------------


def _kinds(figures):
    return ", ".join("%s %s" % (size(one["used"]), kind) for kind, one in figures["by_kind"].items() if one["used"])


def _memory_row(figures, total):
    label = "%s of %s" % (size(figures["used"]), size(total))
    return meter(figures["used"], total, label)


def _device(device):
    try:
        return _device_at_work(device)
    except _engine.DeviceLostError:  # its driver is not asked any more
        return Card("Device", device.name.strip(), chip(device.filter_string), pill("lost until a restart", LIMIT))


def _device_at_work(device):
    figures, total = _engine._pool_stats(device), device.global_mem_size or 0
    clock = device.max_clock_frequency
    units = "%d compute units" % device.max_compute_units + (", %.1f GHz" % (clock / 1000) if clock else "")
    return Card("Device", device.name.strip(), chip(device.filter_string), rows=[
        ("backend", "%s, %s" % (device.backend.name, device.platform_name)),
        ("driver", device.driver_version),
        ("units", units),
        ("memory", _memory_row(figures, total)),
        ("by kind", _kinds(figures)),
        ("peak", size(figures["peak"]) if figures["peak"] else None),
        ("work", _depth(_pending_on(device)))])


def _named(devices):
    """What devices are called, in a row of a card."""
    return ", ".join("%s, %s" % (one.filter_string, one.name.strip()) for one in devices)


def _platform(platform):
    try:
        rows = [("version", platform.version), ("vendor", platform.vendor), ("devices", _named(platform.get_devices()))]
    except _engine.DeviceLostError:  # its driver is not asked any more
        return Card("Platform", platform.name.strip(), platform.backend.name, pill("lost until a restart", LIMIT))
    return Card("Platform", platform.name.strip(), platform.backend.name, rows=rows)


def _context(context):
    return Card("Context", _several(context.device_count, "device"), rows=[("devices", _named(context.get_devices()))])


def _depth(number):
    return "nothing waits" if number == 0 else _several(number, "submission") + " not over"


def _several(number, noun):
    return "%s %s%s" % (count(number), noun, "" if number == 1 else "s")


def _pending(queue, patience=None):
    """Work without events is known to be over only when somebody asks, which is done here, for a moment."""
    if queue.pending:
        (_text.Patience(_text.LOOK) if patience is None else patience).idle(queue)
    return queue.pending


def _pending_on(device, patience=None):
    root, number = _root(device), 0
    for queue in _engine._queues():
        # One that is busy is enough to know: the next moment is saved.
        if _root(queue.device) == root:
            number += queue.pending if number else _pending(queue, patience)
    return number


def _root(device):
    while device.parent_device is not None:
        device = device.parent_device
    return device


def _queue(queue):
    return Card("Queue", str(queue.number), chip(queue.device.filter_string), rows=[
        ("order", "in order" if queue.is_in_order else "out of order"),
        ("depth", _depth(_pending(queue))),
        ("flags", ", ".join([*(["profiling"] if queue.has_enable_profiling else []),
                             *([queue.priority + " priority"] if queue.priority != "normal" else [])])),
        ("device", queue.device.name.strip())])


def _pool(pool):
    figures = _engine._pool_stats(pool.device)
    return Card("Memory pool", "", chip(pool.device.filter_string), rows=[
        ("used", Cell("%s in %s" % (size(figures["used"]), _several(figures["count"], "allocation")))),
        ("by kind", _kinds(figures)),
        ("in flight", size(figures["in_flight"])),
        ("reserved", meter(figures["reserved"], figures["limit"],
                           "%s of %s (limit)" % (size(figures["reserved"]), size(figures["limit"])))),
        ("peak", size(figures["peak"]))])


def _memory(memory):
    behind = memory.reference_obj
    return Card("Memory", size(memory.nbytes), memory.usm_type, chip(memory.device.filter_string), rows=[
        ("bytes", count(memory.nbytes) if memory.nbytes >= 1024 else None),
        ("address", memory._shown or "parked"),
        ("view of", None if behind is None else type(behind).__name__)])


# --- Lists -----------------------------------------------------------------------------------------------------------


class _Table:
    def __init__(self, titles, rows, right, none):
        self.titles, self.rows, self.right, self.none = titles, rows, right, none

    def bundle(self):
        from drupe.magics import render

        if not self.rows:
            return {"text/plain": self.none, "text/html": str(render.note_html(self.none))}
        return {"text/plain": render.table_text(self.titles, self.rows, right=self.right),
                "text/html": str(render.table_html(self.titles, self.rows, right=self.right))}


def _devices(devices):
    rows = [(chip(one.filter_string), count(one.max_compute_units or 0), size(one.global_mem_size or 0),
             one.name.strip(), one.platform_name) for one in devices]
    return _Table(("filter", "units", "memory", "name", "platform"), rows, (1, 2), "no devices")


def _report(report):
    rows = [(size(one.nbytes), count(one.count), one.kind, one.device, one.place) for one in report]
    return _Table(("size", "allocations", "kind", "device", "allocated at"), rows, (0, 1), str(report))


# --- Events ----------------------------------------------------------------------------------------------------------


def _times(event, record):
    """A bar of what is known: of profiling queues the device's own times; else how long it ran, or when it was found to
    be over."""
    queue = event.queue
    if queue is not None and queue.has_enable_profiling and event.status == "complete":
        try:
            times = event.times
        except _engine.DeviceError:
            times = None
        if times is not None:
            return _spent(times)
    if record is None:
        return None
    if record["ended"]:
        return "ran %s" % _seconds(record["ended"] - record["started"])
    if record["seen"] is not None:
        return "finished within %s of its submission" % _seconds(record["seen"] - record["submitted"])
    return "submitted %s ago" % _seconds(time.monotonic_ns() - record["submitted"])


def _spent(times):
    names = ("queued", "submitted", "ran")
    marks = (times.queued, times.submitted, times.started, times.ended)
    return steps([(name, (after - before) / 1e9, colour) for name, before, after, colour
                  in zip(names, marks, marks[1:], ("#9c9c9c", "#c9a227", FILL))])


def _event_times(times):
    return Card("Times", "ran %s" % _seconds(times.duration), rows=[("spent", _spent(times)), *(
        (name, "%s ns" % count(getattr(times, name))) for name in ("queued", "submitted", "started", "ended"))])


def _seconds(ns):
    return seconds(max(0, ns) / 1e9)


def place(record):
    """Where work was submitted, or ""; of what _engine's _trace() and _failures() give."""
    return ", ".join("%s %s" % (what, shown % record[what]) for what, shown in (("cell", "[%d]"), ("line", "%d"))
                     if record is not None and record.get(what))


def _event(event):
    record = _engine._trace_one(event._submission())
    error = event.error
    return _event_card(event, record, event.status, None if error is None else str(error).split("\n")[0],
                       _times(event, record))


def _event_card(event, record, status, error, times):
    queue = event.queue
    return Card("Event", record["label"] if record is not None else "", pill(status, _STATES.get(status, GREY)), rows=[
        ("queue", None if queue is None else Cell("%d on %s" % (queue.number, queue.device.filter_string))),
        ("submitted by", place(record)), ("error", None if error is None else Cell(error)), ("times", times)])


def display_event(event):
    """Show an event that is not over, and once more when it is. What is over is shown as other objects are."""
    shell = _notebook()
    if shell is None or event.done:
        raise NotImplementedError
    from IPython.display import display

    name = os.urandom(16).hex()
    display(mimebundle(event), raw=True, display_id=name, metadata=named(name))
    record = _engine._trace_one(event._submission())
    last = [_event_card(event, record, "complete", None, "\1"), _event_card(event, record, "failed", "\2", "\1")]
    forms = tuple(form for card in last for form in (card.text(), str(card.html())))
    from drupe.magics import live

    if not live.attend(shell, _engine._event_display(event._submission(), name, forms)):
        event.add_done_callback(functools.partial(_update, name))


def _update(display_id, event):
    from IPython.display import display

    display(mimebundle(event), raw=True, display_id=display_id, update=True, metadata=named(display_id))


def _notebook():
    """IPython's shell in a notebook's kernel, or None."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell if type(shell).__name__ == "ZMQInteractiveShell" else None


# --- Arrays ----------------------------------------------------------------------------------------------------------


def _array(x):
    waiting = waits(x)
    values = None if waiting else _text.at_hand(x)
    state = None
    if values is None and (waiting or x.size):
        state = "work on its device is not over; print(x) waits" if waiting else "print(x) shows them"
    marks = [str(x.dtype), chip(x.device.filter_string)]
    if x.ndim == 0 and values is not None:
        return Card("Scalar", values, *marks)
    marks.append("%s of %s memory" % (size(x.nbytes), x.usm_type))
    return Card("Array", " × ".join(map(count, x.shape)) if x.shape else "scalar", *marks, rows=[
        ("layout", None if x.is_contiguous else "strides %s" % (x.strides,)), ("values", state)],
        block=None if values is None else code(values),
        picture="" if values is not None and x.size <= _VALUES_MOST else box(x.shape))


def waits(x, patience=None):
    """Whether the values of an array would have to be waited for longer than a display waits in all."""
    return bool(_pending_on(x.device, patience or _text.patience() or _text.Patience()))


def brief(x, printer=None):
    """An array inside of a list, in one line unless its values are at hand. The arrays of a list have one printer."""
    try:
        patience = getattr(printer, "drupe_patience", None) or _text.patience() or _text.Patience()
        if printer is not None:
            printer.drupe_patience = patience
        values = None if waits(x, patience) else _text.at_hand(x, "array(")
    except Exception:
        values = None
    if values is None:
        return outline(x)
    return _text.whole(x, values)


def outline(x):
    """An array without its values."""
    return "array(%sshape=%s, dtype=%s, device='%s')" % ("" if x.size else "[], ", x.shape, x.dtype,
                                                         x.device.filter_string)


# --- Programs --------------------------------------------------------------------------------------------------------


def call_signature(kernel):
    """How a kernel is called, as an inspect.Signature."""
    import inspect
    import keyword

    one, named_only = inspect.Parameter, inspect.Parameter.KEYWORD_ONLY
    if kernel.arguments is None:
        given = [one("arguments", one.VAR_POSITIONAL)]
    else:
        names = [name or "" for name, _type, _kind in kernel.arguments]
        fit = [name if name.isidentifier() and not keyword.iskeyword(name) else f"argument{i}"
               for i, name in enumerate(names)]
        given = [one(name, one.POSITIONAL_ONLY) for name in fit]
    optional = {"local_size": None, "queue": None, "wait_for": (), "event": True}
    return inspect.Signature([*given, one("global_size", named_only),
                              *(one(name, named_only, default=value) for name, value in optional.items())])


def _signature(kernel):
    arguments = kernel.arguments
    if arguments is None:
        return "%s(...)" % kernel.name
    return repr(kernel)[len("<drupe.Kernel "):-1]


def _program(program):
    log = program.build_log
    log = log if len(log) <= _LOG_MOST else log[:_LOG_MOST].rstrip() + " ..."
    signatures = [_signature(program.get_kernel(name)) for name in program.kernel_names]
    return Card("Program", "", chip(program.device.filter_string), rows=[
        ("kernels", code("\n".join(signatures))),
        ("options", code(program.options) if program.options else None),
        ("build log", code(log.strip()) if log.strip() else None)])


def _kernel(kernel):
    def told(name, words, form=int):
        value = getattr(kernel, name, None)
        return None if value is None else words % form(value)

    return Card("Kernel", kernel.name, rows=[
        ("signature", code(_signature(kernel))),
        ("work-group", told("work_group_size", "at most %d work-items")),
        ("multiple", told("preferred_work_group_size_multiple", "best a multiple of %d")),
        ("local memory", told("local_mem_size", "%s per work-group", size)),
        ("private memory", told("private_mem_size", "%s per work-item", size)),
        ("sub-group", told("max_sub_group_size", "at most %d work-items"))])


_BUILDERS = {"Device": _device, "Platform": _platform, "Context": _context, "Queue": _queue, "Event": _event,
             "EventTimes": _event_times, "Array": _array, "Program": _program, "Kernel": _kernel, "Pool": _pool,
             "MemoryUSMDevice": _memory, "MemoryUSMShared": _memory, "MemoryUSMHost": _memory, "DeviceList": _devices,
             "Report": _report}
