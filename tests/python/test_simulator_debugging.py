"""Simulated kernels and debuggers; one group that runs alone; interrupts."""
import io
import pdb
import re
import signal
import subprocess
import sys

import numpy
import pytest
from simulating import double, failure, line_of, no_greenlets_are_left, reverse, running_greenlets  # noqa: F401

import drupe.array as da
from drupe import kernel_api as kapi
from drupe import simulator
from drupe.kernel_api import LocalAccessor, NdRange, Range, call_kernel


def divide(x):
    return 1 // (x - 5)


# --- Debuggers -----------------------------------------------------------------------------------------------

def test_breakpoint_stops_in_the_users_code(monkeypatch):
    seen = []

    def hook():
        frame = sys._getframe(1)
        seen.append((frame.f_code, repr(frame.f_locals["item"]), frame.f_lineno))
    monkeypatch.setattr(sys, "breakpointhook", hook)

    def kernel(item, a):
        kapi.group_barrier(item.get_group())
        if item.get_global_id(0) in (0, 5):
            breakpoint()
    call_kernel(kernel, NdRange(8, 4), numpy.zeros(1))
    line = line_of(kernel, "breakpoint()")
    assert seen == [(kernel.__code__, "<NdItem 0, 0 of group 0>", line),
                    (kernel.__code__, "<NdItem 5, 1 of group 1>", line)]


def session(kernel, space, commands, *args):
    """What pdb says to commands in a kernel that calls debug()."""
    out = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("\n".join(commands) + "\n"), stdout=out, nosigint=True, readrc=False)
    before = sys.gettrace()
    kernel.__globals__["debug"] = lambda: debugger.set_trace(sys._getframe(1))
    try:
        call_kernel(kernel, space, *args)
    finally:
        sys.settrace(before)
        debugger.clear_all_breaks()
    return out.getvalue()


debug = breakpoint  # until a session puts its own there


def debugged(item, a, part):
    i = item.get_local_id(0)
    part[i] = a[i]
    if i == 2:
        debug()
    a[i] = 7
    kapi.group_barrier(item.get_group())
    other = part[3 - i]
    a[i] = other


def test_pdb_steps_over_a_barrier():
    """The others run meanwhile; at the end of this work-item the next one is stepped through."""
    a = numpy.arange(4)
    commands = ["next"] * 3 + ["p 'i', i, part.tolist()"] + ["next"] * 3 + ["p 'i', i", "continue"]
    said = session(debugged, NdRange(4, 4), commands, a, LocalAccessor(4, int))
    assert "('i', 2, [0, 1, 2, 3])" in said and "--Return--" in said and "('i', 3)" in said
    assert "drupe/simulator" not in said and a.tolist() == [3, 2, 1, 0]


def test_pdb_goes_on_to_a_breakpoint_in_all_work_items():
    """Also in those that waited already when it was started."""
    line = line_of(debugged, "other = part")
    commands = ["break %s:%d" % (__file__, line)] + ["continue", "p 'i', i"] * 4 + ["continue"]
    said = session(debugged, NdRange(4, 4), commands, numpy.arange(4), LocalAccessor(4, int))
    assert sorted(re.findall(r"\('i', (\d)\)", said)) == ["0", "1", "2", "3"]


def test_pdb_is_left():
    error, frames, note = failure(lambda item, a: session(debugged, NdRange(4, 4), ["quit"], numpy.arange(4),
                                                          LocalAccessor(4, int)), Range(1), 0)
    assert type(error).__name__ == "BdbQuit" and not note


# --- One group alone -----------------------------------------------------------------------------------------

def test_one_group_runs_alone():
    a = numpy.arange(16)
    assert simulator.run_group(reverse, NdRange(16, 4), 2, [a, LocalAccessor(4, int)]) is False
    assert a.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 11, 10, 9, 8, 12, 13, 14, 15]
    b = numpy.ones((4, 4), int)

    def kernel(item, b):
        b[item.get_global_id(0), item.get_global_id(1)] = item.get_group().get_group_linear_id()
    simulator.run_group(kernel, NdRange((4, 4), (2, 2)), (1, 0), [b])
    simulator.run_group(kernel, NdRange((4, 4), (2, 2)), 3, [b])
    assert b.tolist() == [[1, 1, 1, 1]] * 2 + [[2, 2, 3, 3]] * 2
    c = numpy.arange(4)
    simulator.run_group(double, Range(4), 3, [c])
    assert c.tolist() == [0, 1, 2, 6]


@pytest.mark.parametrize("who, stop_at", [(4, 4), (6, (6,))])
def test_it_stops_at_a_line_of_a_work_item(who, stop_at):
    seen, line = [], line_of(reverse, "a[item.get_global_id(0)] = part")

    def hook(frame):
        seen.append((frame.f_code, frame.f_lineno, repr(frame.f_locals["item"]), frame.f_locals["part"].tolist()))
    a = numpy.arange(8)
    args = [a, LocalAccessor(4, int)]
    assert simulator.run_group(reverse, NdRange(8, 4), 1, args, stop_at=stop_at, line=line, hook=hook)
    assert seen == [(reverse.__code__, line, "<NdItem %d, %d of group 1>" % (who, who - 4), [4, 5, 6, 7])]
    assert a.tolist() == [0, 1, 2, 3, 7, 6, 5, 4] and sys.gettrace() is None or "coverage" in sys.modules


def test_it_stops_in_the_first_line_and_in_functions():
    seen = []

    def kernel(item, a):
        a[item.get_id(0)] = divide(item.get_id(0))

    def hook(frame):
        seen.append((frame.f_code.co_name, frame.f_lineno, frame.f_locals.get("x")))
    assert simulator.run_group(kernel, Range(4), 2, [numpy.zeros(4)], stop_at=2, hook=hook)
    line = line_of(divide, "1 //")
    assert simulator.run_group(kernel, Range(4), 2, [numpy.zeros(4)], stop_at=2, line=line, hook=hook)
    assert not simulator.run_group(kernel, Range(4), 2, [numpy.zeros(4)], stop_at=2, line=1, hook=hook)
    assert not simulator.run_group(kernel, Range(4), 2, [numpy.zeros(4)], stop_at=1, hook=hook)
    assert seen == [("kernel", line_of(kernel, "a[item"), None), ("divide", line_of(divide, "1 //"), 2)]


def test_places_that_are_not_there():
    for group, stop, message in ((4, None, r"group_id=4 is not a place in the range \(4,\)"),
                                 ((0, 0), None, "group_id"), (-1, None, "group_id"), (0, 16, "stop_at=16")):
        with pytest.raises(ValueError, match=message):
            simulator.run_group(reverse, NdRange(16, 4), group, [numpy.zeros(16), LocalAccessor(4, int)], stop_at=stop)


def test_a_debugger_is_started_where_it_stops(tmp_path):
    """pdb, as it is in a terminal; at the line itself, not behind it."""
    path = tmp_path / "replay.py"
    path.write_text("""import numpy
from drupe import kernel_api as kapi, simulator
def kernel(item, a):
    kapi.group_barrier(item.get_group())
    x = a[item.get_global_id(0)] * 10
    a[0] = x
print(simulator.run_group(kernel, kapi.NdRange(8, 4), 1, [numpy.arange(8)], stop_at=6, line=5))
""")
    done = subprocess.run([sys.executable, str(path)], input="p item\np 'x' in locals()\nnext\np x\ncontinue\n",
                          capture_output=True, text=True, check=False, timeout=120)
    assert "-> x = a[" in done.stdout and "<NdItem 6, 2 of group 1>" in done.stdout and "False" in done.stdout
    assert "-> a[0] = x" in done.stdout and "60" in done.stdout and done.stdout.endswith("True\n"), done.stdout


# --- Interrupts ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("space", [Range(8), NdRange(8, 4)])
@pytest.mark.parametrize("who", [0, 2])
def test_an_interrupt_ends_all_and_keeps_what_was_written(space, who, device):
    def kernel(item, out):
        i = kapi.get_global_id(0)
        out[i] = 1
        if isinstance(space, NdRange):
            kapi.group_barrier(item.get_group())
        if i == who:
            signal.raise_signal(signal.SIGINT)
        out[i] = 2
    out = da.zeros(8, dtype="int32", device=device)
    error, frames, note = failure(kernel, space, out)
    assert type(error) is KeyboardInterrupt and frames == ["kernel"] and "in work-item %d" % who in note
    assert set(out.tolist()) == {0, 1, 2} - ({2} if who == 0 else set()) and running_greenlets() == 0
    with pytest.raises(RuntimeError, match="inside a kernel"):
        kapi.get_global_id(0)
