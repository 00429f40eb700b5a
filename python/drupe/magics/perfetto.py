"""A view in the Trace Event format, which ui.perfetto.dev and chrome://tracing open: a process per device, a thread per
lane, a complete event per span, counters for memory. Times are microseconds; their fractions are nanoseconds.

Viewers take spans of a thread that overlap for calls inside of each other. So the spans of a lane, which may run at the
same time on a queue without order, are spread over as many threads as that takes.

A slice whose args say "exact": false is an interval: the work ran some time in it. Its name says so, since viewers draw
all slices alike."""
import json
import re

THREADS = {"kernels": "kernels", "copies": "copies", "host": "host functions"}
CATEGORIES = {"kernels": "kernel", "copies": "copy", "host": "host"}
STATES = ("over", "running", "waiting", "submitted")
STATUSES = ("pending", "complete", "passed", "failed", "skipped", "cancelled", "unknown")
OVER, RUNNING = 0, 1


def text(view):
    """`view`: what `data()` of a view says."""
    processes = {device["filter"]: number for number, device in enumerate(view["devices"], 1)}
    # Parts of a device belong to its process.
    pids = [processes.get(re.split(r"[.{ ]", lane["device"])[0], len(processes) + 1) for lane in view["lanes"]]
    events = [_meta("process_name", number, 0, name="%s (%s)" % (device["filter"], device["name"]))
              for number, device in enumerate(view["devices"], 1)]
    for lane in range(len(view["lanes"])):
        events += _thread(view, pids, lane, 0)
    events += _spans(view, pids)
    for number, device in enumerate(view["devices"], 1):
        events += [_event("C", number, 0, name="memory", ts=sample[0] / 1000,
                          args=dict(zip(("device", "shared", "host"), sample[1:4])))
                   for sample in device["samples"]]
    return '{"displayTimeUnit":"ns","traceEvents":[%s]}' % ",\n".join(json.dumps(event) for event in events)


def _event(what, pid, tid, **rest):
    return {"ph": what, "pid": pid, "tid": tid, **rest}


def _meta(kind, pid, tid, **args):
    return _event("M", pid, tid, name=kind, args=args)


def _thread(view, pids, lane, track):
    one = view["lanes"][lane]
    name = "queue %d %s on %s" % (one["queue"], THREADS[one["kind"]], one["device"])
    tid = track * len(pids) + lane + 1
    return [_meta("thread_name", pids[lane], tid, name=name + (" (%d)" % (track + 1) if track else "")),
            _meta("thread_sort_index", pids[lane], tid, sort_index=lane * (len(view["spans"]) + 1) + track + 1)]


def _spans(view, pids):
    ends = [[0] for _ in pids]  # of each lane, by track: when its last span ends
    for span in view["spans"]:
        lane, start, end, busy, state = *span[:4], span[13]
        end = max(start, end or (start + busy if state == RUNNING else view["now"]))
        tracks = ends[lane]
        track = next((number for number, over in enumerate(tracks) if over <= start), len(tracks))
        if track == len(tracks):
            tracks.append(0)
            yield from _thread(view, pids, lane, track)
        tracks[track] = end
        yield _slice(view, span, pids[lane], track * len(pids) + lane + 1, end)


def _slice(view, span, pid, tid, end):
    lane, start, _, _, count, size, items, cell, label, status, exact, number, place, state = span
    ran = bool(exact) and state <= RUNNING
    doubt = "" if ran or state == RUNNING else " (some time in here)" if state == OVER else " (%s)" % STATES[state]
    return _event("X", pid, tid, cat=CATEGORIES[view["lanes"][lane]["kind"]], name=view["labels"][label] + doubt,
                  ts=start / 1000, dur=(end - start) / 1000,
                  args={"id": number, "cell": cell, "submissions": count, "bytes": size, "items": items,
                        "status": STATUSES[status] if state == OVER else STATES[state], "exact": ran,
                        "place": view["places"][place] if place >= 0 else ""})
