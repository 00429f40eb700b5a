"""Offload functions: loops that are not parallel, arrays that go in and out, and what stays Python."""
import math
import pathlib
import re
import runpy

import numpy as np
import pytest

import drupe
import drupe.array as da
from drupe import prange
from drupe.compiler.messages import KernelError


@pytest.fixture(autouse=True)
def place(device):
    with drupe.device(device):
        yield device


# --- Serial loops ------------------------------------------------------------------------------------------

def _kinds(function):
    """What became of each loop of an offload function: its first words."""
    return [what.split(",")[0].split(":")[0].split(".")[0] for _line, _text, what in function.inspect().loops]


def test_serial_loops_are_compiled():
    @drupe.offload
    def cumulated(x):
        y, total, most = np.zeros_like(x), 0.0, 0
        for i in range(len(x)):
            total += x[i]
            y[i] = total
            if x[i] > x[most]:
                most = i
        return y, total, most

    x = np.random.default_rng(1).random(1000)
    y, total, most = cumulated(x)
    assert np.array_equal(y, np.cumsum(x)) and total == y[-1] and most == x.argmax() and type(most) is int
    assert _kinds(cumulated) == ["a serial loop"]


def test_while_break_and_else():
    @drupe.offload
    def find(x, wanted):
        i, steps = 0, 0
        while i < len(x):
            steps += 1
            if x[i] == wanted:
                break
            i += 1
        else:
            i = -1
        return i, steps

    x = np.arange(50)*3
    assert find(x, 30) == (10, 11) and find(x, 31) == (-1, 50)
    assert _kinds(find) == ["a serial loop"]


def test_loops_that_cannot_be_compiled_stay_python():
    @drupe.offload
    def steps(x, n):
        seen = []
        for t in range(n):
            x[1:-1] = (x[:-2] + x[2:])/2
            seen.append(float(x[1]))
        for t in range(n):
            x = x + 1
        for t in range(2):
            s = 0.0
            for i in range(len(x)):
                s += x[i]
            seen.append(s)
        return x, seen

    x = np.arange(10.0)**2
    y = x.copy()
    for _ in range(3):
        y[1:-1] = (y[:-2] + y[2:])/2
    found, seen = steps(x, 3)
    assert np.allclose(found, y + 3) and np.allclose(x, y) and len(seen) == 5 and math.isclose(seen[-1], found.sum())
    assert _kinds(steps) == ["stays Python", "a serial loop", "stays Python", "a serial loop"]
    assert "of fewer than 500 rounds it stays Python" in steps.inspect().loops[1][2]


def test_short_loops_of_numbers_are_python():
    @drupe.offload
    def product(n):
        p = 1
        for i in range(1, n):
            p *= i
        return p

    @drupe.offload
    def halves(n):
        s = 0.0
        for i in range(n):
            s += 0.5
        return s

    assert product(30) == math.factorial(29)  # more than 64 bits
    assert halves(1_000_000) == 500_000.0 and type(halves(1_000_000)) is float


def test_numbers_of_more_than_64_bits_stay_python():
    @drupe.offload
    def f(x, n):
        s = n
        for i in range(len(x)):
            s += int(x[i])
        return s

    x = np.arange(5)
    assert f(x, 1) == 11 and f(x, 1 << 70) == (1 << 70) + 10 and f(x, 2) == 12


def test_functions_that_are_made_in_the_function():
    @drupe.offload
    def f(x, by):
        def twice(v):
            return 2*v

        def scaled(v):
            return v*by

        for i in prange(len(x)):
            x[i] = twice(x[i]) + 1
        for i in prange(len(x)):
            x[i] = scaled(x[i])
        return x

    for by in (2.0, 3.0):
        assert f(np.arange(3.0), by).tolist() == [by, 3*by, 5*by]
    first, second = f._whole.loops
    assert len(first.kernels) == 1 and len(second.kernels) == 2


def test_objects_with_attributes_of_other_types():
    class Holder:
        pass

    @drupe.offload
    def f(x, holder):
        s = holder.start
        for i in range(len(x)):
            s += x[i]*holder.by
        return s

    one, x = Holder(), np.arange(4)
    for start, by, expected, kind in ((0, 2, 12, np.int64), (0.5, 2.0, 12.5, np.float64)):
        one.start, one.by = start, by
        assert f(x, one) == expected and type(f(x, one)) is kind


def test_masked_arrays_are_refused():
    @drupe.offload
    def f(x):
        return x

    with pytest.raises(KernelError, match="masked"):
        f(np.ma.masked_equal(np.arange(3), 1))


def test_a_variable_that_may_have_no_value():
    @drupe.offload
    def last(x):
        for i in range(len(x)):
            t = x[i]
        return t

    assert last(np.arange(5.0)) == 4.0
    with pytest.raises(UnboundLocalError):
        last(np.zeros(0))


def test_loops_call_functions_but_no_offload_functions():
    @drupe.offload
    def inner(x):
        for i in prange(len(x)):
            x[i] += 1

    @drupe.offload
    def outer(x):
        for _ in range(3):
            inner(x)
        return x

    assert outer(np.zeros(4)).tolist() == [3.0]*4
    assert "calls inner()" in outer.inspect().loops[0][2]


# --- Arrays -----------------------------------------------------------------------------------------------

def test_expressions_are_computed_on_the_device(place):
    seen = []

    @drupe.offload
    def f(x, n):
        seen.append(type(x))
        y = np.sqrt(x)*np.arange(n) + np.pi
        seen.append(y.device)
        z = np.where(y > 4, y, np.zeros(n))
        return z, np.sum(z), np.float32(2), math.sqrt(4), np.sqrt(4.0)

    x = np.random.default_rng(1).random(50)
    y = np.sqrt(x)*np.arange(50) + np.pi
    z = np.where(y > 4, y, 0)
    found = f(x, 50)
    assert np.allclose(found[0], z) and math.isclose(found[1], z.sum()) and found[2:] == (2, 2.0, 2.0)
    assert seen == [da.Array, place] and [type(one) for one in found] == [np.ndarray, np.float64, np.float32, float,
                                                                         np.float64]


def test_computation_follows_arrays(place):
    @drupe.offload
    def f(x, y):
        for i in prange(len(x)):
            x[i] += y[i]
        return x, np.zeros(2)

    x = da.zeros(5, device=place)
    with drupe.device("host"):
        found, zeros = f(x, np.arange(5.0))
    assert found is x and zeros.device == place and x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_the_device_option():
    @drupe.offload(device="host")
    def f(x):
        return (x + 1).device.filter_string, x

    assert f(np.zeros(3))[0] == "host:cpu:0"


def test_arrays_are_written_in_place():
    @drupe.offload
    def f(a, b, c, d, e):
        a += 1
        row = b[1]
        for i in prange(len(row)):
            row[i] = 7
        c.sort()
        np.negative(d, out=d)
        return e

    a, b, c, d, e = np.zeros(3), np.zeros((2, 3)), np.array([3, 1, 2]), np.ones(2), np.zeros(4)
    assert f(a, b, c, d, e) is e
    assert a.tolist() == [1.0]*3 and b.tolist() == [[0.0]*3, [7.0]*3]
    assert c.tolist() == [1, 2, 3] and d.tolist() == [-1.0]*2


def test_views_and_strides():
    @drupe.offload
    def f(x, y):
        for i in prange(x.shape[0]):
            for j in range(x.shape[1]):
                y[i, j] = 10*x[i, j]

    whole = np.arange(24.0).reshape(4, 6)
    for x in (whole.T, whole[:, ::2], whole[::-1], whole[1:3, 1:4], np.asfortranarray(whole)):
        y = np.zeros_like(x)
        f(x, y)
        assert np.array_equal(y, 10*x)
    out = np.zeros((12, 8))
    f(whole.T, out[::2, ::2])
    assert np.array_equal(out[::2, ::2], 10*whole.T) and out[1::2].sum() == 0


def test_overlapping_arguments(place):
    @drupe.offload
    def f(x, y):
        for i in prange(len(x)):
            y[i] = x[i] + 1

    x = np.zeros(10)
    if place.backend.name == "host":
        f(x[:5], x[5:])
        f(x[5:], x[:5])
        assert x.tolist() == [2.0]*5 + [1.0]*5
    f(x, x)
    whole = np.zeros(10)
    if place.backend.name != "host":
        with pytest.raises(KernelError, match="views of the same elements"):
            f(whole[:6], whole[4:])


def test_methods_defaults_and_keywords():
    class Model:
        def __init__(self, by):
            self.by = by

        @drupe.offload
        def scaled(self, x, *, more=1, **rest):
            y = np.empty_like(x)
            for i in prange(len(x)):
                y[i] = self.by*x[i] + more
            return y + rest.get("shift", 0)

    x = np.arange(4.0)
    assert Model(3).scaled(x).tolist() == [1.0, 4.0, 7.0, 10.0]
    assert Model(3).scaled(x, more=2, shift=x).tolist() == [2.0, 6.0, 10.0, 14.0]


def test_closures_see_changes():
    factor = 2.0

    @drupe.offload
    def f(x):
        return x*factor

    assert f(np.ones(2)).tolist() == [2.0, 2.0]
    factor = 5.0
    assert f(np.ones(2)).tolist() == [5.0, 5.0]


def _made(n):
    return np.ones(n)*2


def _summed(x):
    y = _made(len(x))
    for i in range(len(x)):
        y[i] += x[i]
    return y


@drupe.offload
def _nothing_but_numbers(n):
    return np.zeros(n)


def test_functions_of_the_same_module_go_along():
    @drupe.offload
    def f(x):
        return _summed(x) + _nothing_but_numbers(len(x))

    assert f(np.arange(3.0)).tolist() == [2.0, 3.0, 4.0]
    assert type(_summed(np.zeros(3))) is np.ndarray and type(_nothing_but_numbers(3)) is np.ndarray


def test_names_of_numpy(place):
    @drupe.offload
    def f(x):
        y = np.ndarray((len(x), 2), dtype=np.float32)
        y[:] = 1
        return isinstance(x, np.ndarray), np.add.outer(x, x), y, y.device, np.linalg.norm(x), np.random.rand(3)

    is_array, outer, y, where, norm, drawn = f(np.arange(3.0))
    assert is_array and np.array_equal(outer, np.add.outer(np.arange(3.0), np.arange(3.0))) and where == place
    assert y.dtype == "float32" and y.shape == (3, 2) and math.isclose(norm, math.sqrt(5)) and drawn.shape == (3,)


def test_imports_within_the_function(place):
    @drupe.offload
    def f(n):
        import numpy as other
        from numpy import zeros
        x = zeros(n)
        for i in prange(n):
            x[i] = other.sqrt(i*1.0)
        return x.device, x + other.ones(n)

    where, found = f(9)
    assert where == place and np.allclose(found, np.sqrt(np.arange(9)) + 1)


def test_functions_that_are_not_there():
    @drupe.offload
    def f(x):
        return np.polyfit(x, x, 1)

    with pytest.raises(TypeError, match="polyfit"):
        f(np.zeros((3, 3)))


def test_without_prange_as_range():
    @drupe.offload(parallel=False)
    def f(x):
        last = 0.0
        for i in prange(len(x)):
            last = x[i] + last/2
        return last

    assert math.isclose(f(np.ones(5)), 1.9375)


def test_called_from_kernels_and_offload_functions():
    @drupe.offload
    def square(x):
        return x*x

    @drupe.offload
    def f(x):
        for i in prange(len(x)):
            x[i] = square(x[i]) + 1
        return square(x)

    assert f(np.arange(3.0)).tolist() == [1.0, 4.0, 25.0]


def test_inspect():
    @drupe.offload
    def f(x):
        s = 0.0
        for i in prange(len(x)):
            s += x[i]
        for t in range(3):
            x[:] = x + 1
        return s

    shown = f.inspect()
    assert "not compiled yet; reductions: s (+)" in repr(shown)
    assert "stays Python: it works on whole slices" in repr(shown)
    f(np.zeros(3))
    shown = f.inspect()
    line = f.py_func.__code__.co_firstlineno + 3
    assert shown.loops[0][:2] == (line, "for i in prange(len(x)):")
    assert "s, = f_line_%d(range(len(x)), x, s)" % line in shown.text.replace("(s,)", "s,")
    assert "compiled for 1 set of types" in shown.loops[0][2]
    assert set(shown._repr_mimebundle_()) == {"text/plain", "text/html"}


# --- Documents ---------------------------------------------------------------------------------------------

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def _blocks(text):
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


def test_examples_of_the_manual_run(tmp_path, fresh):
    whole = tmp_path / "examples.py"
    whole.write_text("\n".join(_blocks((DOCS / "offload.md").read_text(encoding="utf-8"))), encoding="utf-8")
    done = fresh(f"import runpy\nrunpy.run_path({str(whole)!r})")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("code", ["DK022", "DK023"])
def test_examples_of_errors(tmp_path, code):
    text = (DOCS / "kernel-errors.md").read_text(encoding="utf-8")
    (example,) = _blocks(text.split(f"## {code}\n")[1].split("\n## ")[0])
    path = tmp_path / f"{code}.py"
    path.write_text("import drupe, numpy\n" + example, encoding="utf-8")
    with pytest.raises(KernelError) as caught:
        runpy.run_path(str(path))
    assert caught.value.code == code
