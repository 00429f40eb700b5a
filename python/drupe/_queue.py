"""Methods and properties of drupe.Queue and drupe.Event that need no C."""
import operator

from drupe import _engine

_PROFILING, _OUT_OF_ORDER, _LOW, _HIGH = 1, 2, 4, 8  # drupe_queue_flags of drupe/queue.h
_PROPERTIES = {  # what each sets and clears
    "default": (0, 0), "in_order": (0, _OUT_OF_ORDER), "out_of_order": (_OUT_OF_ORDER, 0),
    "enable_profiling": (_PROFILING, 0), "priority_low": (_LOW, _HIGH), "priority_high": (_HIGH, _LOW)}
_PRIORITIES = {None: 0, "normal": 0, "low": _LOW, "high": _HIGH}
_EXECUTION = {"queued": "submitted", "failed": "complete"}


def flags(profiling, property, in_order, priority):
    """What Queue() was given, as the engine's flags."""
    bits = (_PROFILING if profiling else 0) | (0 if in_order is None or in_order else _OUT_OF_ORDER)
    for word in () if property is None else (property,) if isinstance(property, str) else tuple(property):
        if not isinstance(word, str) or word not in _PROPERTIES:
            raise ValueError('property may be "in_order", "out_of_order", "enable_profiling", "priority_low", '
                             f'"priority_high" or a tuple of them, not {word!r}')
        bits = (bits | _PROPERTIES[word][0]) & ~_PROPERTIES[word][1]
    if not isinstance(priority, (str, type(None))) or priority not in _PRIORITIES:
        raise ValueError(f'priority is "low", "normal" or "high", not {priority!r}')
    return bits | _PRIORITIES[priority]


def memcpy(queue, dest, src, count=None):
    queue.memcpy_async(dest, src, count).wait()


def memset(queue, mem, val, count=0):
    memset_async(queue, mem, val, count).wait()


def memset_async(queue, mem, val, count=0, dEvents=None):
    return queue.fill(mem, operator.index(val), count or None, dEvents)


def get_sycl_device(queue):
    return queue.device


def get_sycl_context(queue):
    return queue.context


def print_device_info(queue):
    queue.device.print_device_info()


def event_backend(event):
    return None if event.queue is None else event.queue.backend


def execution_status(event):
    from drupe import enums

    return enums.event_status_type[_EXECUTION.get(event.status, event.status)]


def event_text(event):
    if event.queue is None:
        return f"<drupe.Event: {event.status}>"
    record = _engine._trace_one(event._submission())
    label = f"'{record['label']}'" if record is not None and record["label"] else ""
    return f"<drupe.Event {label} on {event.queue.device.filter_string}: {event.status}>"
