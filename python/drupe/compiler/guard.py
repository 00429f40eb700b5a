"""Kernels that look at what they do: `assert`, and every index where `checked=True`.

Such a kernel has one more argument, a record of what failed first. A host function behind it on the queue reads the
record and raises: so the failure comes as any other of a device does, in the cell that launched the kernel. It
names the work-item and the line, and holds what a replay of that work-group needs.
"""
from drupe.compiler import careful

ASSERT, BOUNDS = 1, 2
_FIELDS = 5  # code, line, linear global id, two values
recent = {}  # by the names of kernels, the last launches without checks that can be run again
_LIMIT = 1 << 28  # bytes of arguments that are copied for a replay


class Launch:
    """One launch of a kernel, as it can be run again: `changed` are the places of arguments that it may write,
    `copied` those of them whose `args` are copies that were made before."""

    def __init__(self, kernel, variant, space, args):
        self.kernel, self.variant, self.space = kernel, variant, space
        held = len(kernel.dialect.arrays) if kernel.dialect is not None else 0  # what the function reads from outside
        self.args, self.copied = tuple(args[:len(args) - held]), set()
        self.changed = {path[0] for path, _name in variant.written}

    def keep(self, limit=_LIMIT):
        """Copy what the kernel may write, as long as it is not more than `limit` bytes."""
        args, room = list(self.args), limit
        for at in sorted(self.changed):
            array = args[at]
            if not hasattr(array, "nbytes") or array.nbytes > room:
                continue
            room -= array.nbytes
            args[at] = array.copy()
            self.copied.add(at)
        self.args = tuple(args)


class KernelFailure(AssertionError):
    """What a work-item found wrong. `line` is that of the user's source, `work_item` its global id, `launch` what
    simulator/replay.py runs again."""

    frameless = True  # it was raised on a thread of ours, in functions of ours: they say nothing

    def __init__(self, text, line, work_item, launch):
        super().__init__(text)
        self.line, self.work_item, self.launch = line, work_item, launch


def launch(kernel, variant, space, wait_for, args):
    """Launch a kernel that has checks; the event of the look behind it."""
    import numpy

    import drupe.array as da

    queue = _queue_of(args)
    done = Launch(kernel, variant, space, args)
    if careful.replay() or careful.is_checked() or kernel.checked:
        if wait_for:
            queue.barrier(wait_for)  # the copies are of what the kernel finds
        done.keep()
    if not variant.failures:
        return _launch_kept(done, wait_for, args)
    record, host = da.zeros(_FIELDS, dtype="int64", sycl_queue=queue), numpy.zeros(_FIELDS, dtype="int64")
    given = (*args, record)
    plan = tuple(("pointer", (len(args),)) if step[0] == "failures" else step for step in variant.text.params)
    kernel._launcher.add(given, space, variant.kernel, plan, variant.form, variant.watched,
                         local=variant.local if variant.form == "range" else None, grain=variant.grain,
                         room=variant.text.room, item_bytes=variant.text.item_bytes)
    event = kernel._launcher(space, wait_for, given)
    copied = queue.copy(host, record.usm_data, wait_for=[event])

    def look(record):
        _look(done, record)

    look.__name__ = look.__qualname__ = kernel.__name__
    return queue.host_task(look, (host,), wait_for=[copied])


def _launch_kept(done, wait_for, args):
    """Launch a kernel without checks, and remember it: a fault of it is an error of the device."""
    from drupe.compiler import launch as launching

    launching._add(done.kernel, done.variant, done.space, args)
    event = done.kernel._launcher(done.space, wait_for, args)
    done.kernel._launcher.clear()  # the next launch comes here, too
    recent[done.kernel.__name__] = done
    return event


def _queue_of(args):
    for one in args:
        if isinstance(one, tuple):
            found = _queue_of(one)
            if found is not None:
                return found
        elif hasattr(one, "queue"):
            return one.queue
    return None


def _look(done, record):
    """Raise what the record says."""
    code, line, place, first, second = record.tolist()
    if not code:
        return
    item = work_item_of(done.space, place)
    shown = item[::-1] if done.kernel.dialect is not None and done.kernel.dialect.cuda else item  # x comes first there
    source = done.variant.source_line(line)
    if code & 0xffffffff == BOUNDS:
        what = "the index %d is outside of a dimension of %d elements" % (first, second)
    else:
        what = "an assertion does not hold"
    raise KernelFailure("%s, in work-item %s, line %d of %s(): %s" % (
        what, shown if len(item) > 1 else item[0], line, done.kernel.__name__, source.strip()), line, item, done)


def work_item_of(space, place):
    """The global id of a linear one: a tuple in the user's order."""
    whole = getattr(space, "global_range", space)
    found = []
    for extent in reversed(whole):
        found.append(place % extent)
        place //= extent
    return tuple(reversed(found))
