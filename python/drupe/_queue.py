"""What drupe.Queue() is given, and the texts of queues and events."""
from drupe import _engine
from drupe._members import HIGH, LOW, OUT_OF_ORDER, PROFILING

_PROPERTIES = {  # what each sets and clears
    "default": (0, 0), "in_order": (0, OUT_OF_ORDER), "out_of_order": (OUT_OF_ORDER, 0),
    "enable_profiling": (PROFILING, 0), "priority_low": (LOW, HIGH), "priority_high": (HIGH, LOW)}
_PRIORITIES = {None: 0, "normal": 0, "low": LOW, "high": HIGH}


def flags(profiling, property, in_order, priority):
    """What Queue() was given, as the engine's flags."""
    bits = (PROFILING if profiling else 0) | (0 if in_order is None or in_order else OUT_OF_ORDER)
    for word in () if property is None else (property,) if isinstance(property, str) else tuple(property):
        if not isinstance(word, str) or word not in _PROPERTIES:
            raise ValueError('property may be "in_order", "out_of_order", "enable_profiling", "priority_low", '
                             f'"priority_high" or a tuple of them, not {word!r}')
        bits = (bits | _PROPERTIES[word][0]) & ~_PROPERTIES[word][1]
    if not isinstance(priority, (str, type(None))) or priority not in _PRIORITIES:
        raise ValueError(f'priority is "low", "normal" or "high", not {priority!r}')
    return bits | _PRIORITIES[priority]


def text(queue):
    bits = queue._flags
    traits = ((OUT_OF_ORDER, "out of order"), (PROFILING, "profiling"), (LOW, "low priority"), (HIGH, "high priority"))
    words = "".join(", " + words for bit, words in traits if bits & bit)
    return f"<drupe.Queue {queue.number} on {queue.device.filter_string}{words} at {queue.addressof_ref():#x}>"


def event_text(event):
    if event.queue is None:
        return f"<drupe.Event: {event.status}>"
    record = _engine._trace_one(event._submission())
    label = f"'{record['label']}'" if record is not None and record["label"] else ""
    return f"<drupe.Event {label} on {event.queue.device.filter_string}: {event.status}>"
