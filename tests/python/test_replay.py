"""Kernels in Python that look at what they do, failures run again in the simulator, and the tiers of `host`."""
import os
import subprocess
import sys

import numpy
import pytest

import drupe
import drupe.array as da
from drupe.compiler import careful, guard
from drupe.simulator import replay


def device(name):
    try:
        return drupe.Device(name)
    except drupe.DeviceNotFoundError:
        return None


@pytest.fixture(params=["host", "opencl:cpu"])
def place(request):
    if device(request.param) is None:
        pytest.skip("there is no " + request.param)
    with drupe.device(request.param):
        yield request.param


@pytest.fixture
def keeping():
    careful.set_replay(True)
    yield
    careful.set_replay(False)


@drupe.kernel
def small(item, x, most):
    i = item.get_id(0)
    assert x[i] < most, "too large"
    x[i] = -x[i]


@drupe.kernel(checked=True)
def window(item, x, out):
    i = item.get_global_id(0)
    for k in range(4):
        out[i] = out[i] + x[i + k]


def failed(kernel, space, *args):
    """The error that a launch raises, and the failure behind it."""
    with pytest.raises(drupe.HostTaskError) as caught:
        drupe.call_kernel(kernel, space, *args)
    assert isinstance(caught.value.__cause__, guard.KernelFailure)
    return caught.value, caught.value.__cause__


def line_of(kernel, text):
    first = kernel.py_func.__code__.co_firstlineno
    with open(__file__) as file:
        return next(n for n, line in enumerate(file, 1) if n >= first and text in line)


def test_an_assert_names_work_item_and_line(place):
    x = da.arange(100.0)
    drupe.call_kernel(small, drupe.Range(100), x, 100)
    assert x[99] == -99
    x = da.arange(100.0)
    error, failure = failed(small, drupe.Range(100), x, 98.5)
    assert failure.work_item == (99,) and failure.line == line_of(small, "assert")
    assert 'work-item 99' in str(error) and 'assert x[i] < most, "too large"' in str(error)
    assert x[99] == 99 and x[98] == -98  # the work-item ended there, the others did not
    drupe.call_kernel(small, drupe.Range(100), da.arange(100.0), 100)  # and the queue goes on


def test_the_error_shows_no_frame_of_ours(place):
    error, failure = failed(small, drupe.Range(4), da.arange(4.0), 3)
    assert failure.__traceback__ is None
    frames, frame = [], error.__traceback__
    while frame:
        frames.append(frame.tb_frame.f_code.co_filename)
        frame = frame.tb_next
    assert set(frames) == {__file__}


def test_checked_kernels_look_at_every_index(place):
    error, failure = failed(window, drupe.NdRange(16, 4), da.arange(16.0), da.zeros(16))
    assert failure.work_item in ((13,), (14,), (15,)) and failure.line == line_of(window, "out[i] + x")
    assert "the index 16 is outside of a dimension of 16 elements" in str(error)
    out = da.zeros(16)
    drupe.call_kernel(window, drupe.NdRange(16, 4), da.arange(20.0), out)
    assert out[1] == 1 + 2 + 3 + 4
    negative = da.zeros(3)

    @drupe.kernel(checked=True)
    def last(item, x):
        x[-3] = x[-1 - item.get_id(0)]

    drupe.call_kernel(last, drupe.Range(1), negative)
    failed(last, drupe.Range(4), negative)


def test_checked_mode_checks_kernels(place):
    @drupe.kernel
    def off(item, x, by):
        x[item.get_id(0)] = x[item.get_id(0) + by]

    x = da.arange(8.0)
    drupe.call_kernel(off, drupe.Range(8), x, 0)
    with drupe.checked():
        failed(off, drupe.Range(8), x, 1)
    variants = len(off.variants)
    drupe.call_kernel(off, drupe.Range(8), x, 0)  # the one without checks is there
    assert len(off.variants) == variants


def test_a_checked_launch_can_be_run_again(place):
    x, out = da.arange(16.0), da.ones(16)
    error, failure = failed(window, drupe.NdRange(16, 4), x, out)
    launch, found = replay.of_error(error)
    assert found is failure and replay.told(launch) is None
    with pytest.raises(IndexError, match=r"x\[i \+ k\] is x\[16\], which is out of bounds") as caught:
        replay.run(launch, failure)
    assert "work-item" in caught.value.__notes__[0] if hasattr(caught.value, "__notes__") else True
    seen = []
    with pytest.raises(IndexError):  # goes on behind the stop
        replay.run(launch, failure, stop=True, hook=lambda frame: seen.append((frame.f_lineno, frame.f_locals["i"],
                                                                              frame.f_locals["out"].tolist()[15])))
    assert seen == [(failure.line, failure.work_item[0], 1.0)]  # the inputs are those that the kernel had
    before = out.asnumpy().copy()
    with pytest.raises(IndexError):
        replay.run(launch, failure)
    assert (out.asnumpy() == before).all()  # a replay writes to copies


def test_without_copies_the_replay_says_what_may_differ(place):
    error, failure = failed(small, drupe.Range(8), da.arange(8.0), 6)
    launch, _failure = replay.of_error(error)
    assert replay.told(launch).startswith("x may differ from what the kernel had")
    assert failure.launch is launch


def test_replay_keeps_copies(place, keeping):
    x = da.arange(8.0)
    error, failure = failed(small, drupe.Range(8), x, 6)
    launch, _failure = replay.of_error(error)
    assert replay.told(launch) is None and launch.args[0] is not x
    with pytest.raises(AssertionError, match="too large"):
        replay.run(launch, failure)


def test_a_kernel_without_checks_is_kept_as_well(place, keeping):
    @drupe.kernel
    def twice(item, x):
        x[item.get_id(0)] *= 2

    x = da.ones(8)
    for _ in range(2):
        drupe.call_kernel(twice, drupe.Range(8), x)
    assert guard.recent["twice"].args[0].tolist() == [2.0] * 8 and x.tolist() == [4.0] * 8
    error = drupe.DeviceError("the kernel 'twice' has failed")
    assert replay.of_error(error) == (guard.recent["twice"], None)
    assert replay.run(guard.recent["twice"]) is False


def test_what_is_no_kernels_failure_is_not_replayed():
    assert replay.of_error(None) is None
    assert replay.of_error(ValueError("x")) is None


# --- The tiers of host ---------------------------------------------------------------------------------------

SCRIPT = """
import warnings, time
import drupe, drupe.array as da
@drupe.kernel
def twice(item, x):
    i = item.get_id(0)
    x[i] = x[i]*2 + 0.1
with drupe.device("host"), warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    x = da.arange(6.0)
    drupe.call_kernel(twice, drupe.Range(6), x)
    drupe.call_kernel(twice, drupe.Range(6), x)
    variant = list(twice.variants.values())[0]
    while WAIT and variant.tier == "quick" and variant.problem is None:
        time.sleep(0.01)
    drupe.call_kernel(twice, drupe.Range(6), x)
print(variant.tier, x.tolist(), [str(one.message) for one in told])
"""


def run_script(tmp_path, wait=False, **environment):
    script = tmp_path / "twice.py"
    script.write_text(SCRIPT.replace("WAIT", str(wait)))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=120,
                          env={**os.environ, **environment})
    tier, values = done.stdout.split(" ", 1)
    return tier, values


def test_tiers_give_the_same(tmp_path):
    cc = run_script(tmp_path, True)
    quick = run_script(tmp_path, DRUPE_CC="/nonexistent")
    simulated = run_script(tmp_path, DRUPE_CC="/nonexistent", DRUPE_QUICK="0")
    assert cc[0] == "best" and quick[0] in ("quick", "simulator") and simulated[0] == "simulator"
    assert cc[1].split("] [")[0] == quick[1].split("] [")[0] == simulated[1].split("] [")[0]
    assert simulated[1].count("runs in the simulator, which is slow. Install one") == 1
    assert cc[1].endswith("[]\n")


def test_integers_of_derived_classes_are_arguments(place):
    import enum

    class Number(enum.IntEnum):
        SEVEN = 7

    @drupe.kernel
    def fill(item, x, value, other):
        x[item.get_id(0)] = value + other

    x = da.zeros(3, dtype="int64")
    drupe.call_kernel(fill, drupe.Range(3), x, Number.SEVEN, numpy.longlong(3))
    assert x.tolist() == [10, 10, 10]
