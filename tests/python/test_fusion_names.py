"""What people see of pending arrays: eager(), fuse(), x.pending, Queue.flush(), and what fused kernels are called."""
import collections
import re
import threading

import numpy
import pytest

import drupe
import drupe.array as da
from drupe import _engine

MANY = 100_000  # elements: above the size from which results are pending


@pytest.fixture
def x(queue):
    return da.full(MANY, 4.0, queue=queue)


def labels(queue):
    return [one["label"] for one in drupe.trace() if one["queue"] == queue.number and one["operation"] == "kernel"]


@pytest.fixture
def precompiled(queue):
    """A device whose kernels need no compiler: expressions are fused there at once."""
    if not queue.device.is_cpu:
        pytest.skip("the device builds kernels of expressions in the background")
    return queue


# --- x.pending --------------------------------------------------------------------------------------------------

def test_pending_and_not(x):
    assert x.pending is None and da.zeros(3, queue=x.queue).pending is None
    y = 2*x + 1
    assert y.pending and isinstance(y.pending, da.Recipe)
    recipe = y.pending  # looking submits nothing
    assert recipe.device == x.device.filter_string and recipe.kernels == 1 and recipe.inputs == {
        "a": (da.float64, (MANY,))}
    assert [one[:3] for one in recipe.operations] == [("v1", "multiply", (2, "a")), ("v2", "add", ("v1", 1))]
    assert all(one.dtype == "float64" and one.shape == (MANY,) and one.kernel == 1 for one in recipe.operations)
    assert float(y[0]) == 9 and y.pending is None
    assert recipe and len(recipe.operations) == 2  # of the time when it was made


def test_what_the_text_says(x):
    y = da.sqrt(x)
    z = y*x + \
        True
    text = repr(z.pending)
    here = test_what_the_text_says.__code__.co_firstlineno
    lines = text.splitlines()
    assert lines[0] == ("Pending: 3 operations, which would run as 1 kernel on "
                        f"{x.device.filter_string}:")
    assert lines[1] == f"  a  = array float64 ({MANY},)"
    assert lines[2] == (f"  v1 = sqrt(a)          float64 ({MANY},)  line {here + 1} of test_fusion_names.py: "
                        "kept, as a variable has it")
    assert lines[3] == f"  v2 = multiply(v1, a)  float64 ({MANY},)  line {here + 2} of test_fusion_names.py"
    assert lines[4].endswith("of test_fusion_names.py: the array") and "add(v2, True)" in lines[4]
    assert len(lines) == 5 and str(z.pending) == text


def test_casts_numbers_and_three_operands(x):
    y = da.where(x > 1, x.astype("float32"), 0.5)
    text = repr(y.pending)
    assert "= greater(a, 1) " in text and "= astype(a, float32)" in text and "= where(v1, v2, 0.5)" in text
    assert "bool (100000,)" in text and "float32 (100000,)" in text
    assert "multiply(a, (1+2j))" in repr((x*(1 + 2j)).pending)


def test_kernels_of_broadcast_operands(queue):
    rows, column = da.ones((400, 300), queue=queue), da.ones((400, 1), queue=queue)
    with_row = drupe.fuse(lambda: look((column*2 + 1)*rows))

    def look(y):
        recipe = y.pending
        assert recipe.kernels == 2 and [one.kernel for one in recipe.operations] == [1, 1, 2]
        assert recipe.inputs == {"a": (da.float64, (400, 1)), "b": (da.float64, (400, 300))}
        assert re.search(r"v3 = multiply\(v2, b\) +float64 \(400, 300\)  kernel 2  ", repr(recipe))
        return y

    assert float(da.sum(with_row())) == 3*400*300


def test_looking_changes_nothing(x):
    """Neither the results, nor the order, nor what is stored."""
    a, b = x + 1, x*2
    c = a*b
    for _ in range(3):
        assert [one.name for one in c.pending.operations] == ["add", "multiply", "multiply"]
        assert [one.name for one in b.pending.operations] == ["multiply"]
        assert [one.kept for one in c.pending.operations] == [True, True, True]
    del a
    assert [one.kept for one in c.pending.operations] == [False, True, True]
    assert c.asnumpy().tolist() == [40.0]*MANY and b.asnumpy().tolist() == [8.0]*MANY


def test_a_node_that_many_take_is_listed_once(x):
    y = x
    for _ in range(12):
        y = y*0.5 + y*0.25
    assert len(y.pending.operations) == 36 and repr(y.pending).count("\n") == 37
    assert y.asnumpy()[0] == pytest.approx(4*0.75**12)


# --- eager() ----------------------------------------------------------------------------------------------------

def test_eager(x):
    with da.eager():
        with da.eager():
            assert (x + 1).pending is None
        assert (x + 1).pending is None
    assert (x + 1).pending
    with pytest.raises(ZeroDivisionError), da.eager():
        raise ZeroDivisionError
    assert (x + 1).pending


def test_eager_is_of_its_thread(x):
    seen = []
    with da.eager():
        thread = threading.Thread(target=lambda: seen.append((x + 1).pending))
        thread.start()
        thread.join()
    assert seen[0]


def test_eager_in_a_fused_function(x):
    @drupe.fuse
    def both():
        with da.eager():
            y = x + 1
        return y.pending is None, (y*2).pending is not None

    assert both() == (True, True)


def test_a_pending_operand_is_settled_in_eager(x):
    y = x + 1
    with da.eager():
        z = y*2
    assert y.pending is None and z.pending is None and float(z[0]) == 10


# --- fuse() -----------------------------------------------------------------------------------------------------

def test_a_fused_function(precompiled):
    x, y = da.asarray([1.0, 2.0], queue=precompiled), da.asarray([3.0, 4.0], queue=precompiled)

    @drupe.fuse
    def scaled(x, y):
        """Its text."""
        return (x*y + x)*2 - y

    assert scaled.__name__ == "scaled" and scaled.__doc__ == "Its text."
    result = scaled(x, y=y)
    assert result.pending is None and result.tolist() == [5.0, 16.0]
    assert labels(precompiled)[-1] == "multiply, add, multiply, subtract"
    assert (x + 1).pending is None  # small ones are computed at once again


def test_results_of_one_kernel(precompiled):
    x = da.asarray([1.0, 2.0, 5.0], queue=precompiled)
    before = len(labels(precompiled))
    Pair = collections.namedtuple("Pair", "sum difference")

    @drupe.fuse
    def many(x):
        y = x*2
        return {"pair": Pair(y + 1, y - 1), "list": [y, 3, None, "text"], 1: (x,)}

    result = many(x)
    assert len(labels(precompiled)) == before + 1
    assert result["pair"].sum.tolist() == [3, 5, 11] and result["pair"].difference.tolist() == [1, 3, 9]
    assert result["list"][0].tolist() == [2, 4, 10] and result["list"][1:] == [3, None, "text"]


def test_across_reductions(queue):
    numbers = numpy.random.default_rng(1).random((30, 40))
    x = da.asarray(numbers, queue=queue)

    def standard(x):
        y = x - x.mean(axis=1, keepdims=True)
        return y/da.sqrt((y*y).mean(axis=1, keepdims=True))

    with da.eager():
        expected = standard(x).asnumpy()
    assert numpy.array_equal(drupe.fuse(standard)(x).asnumpy(), expected)


def test_fused_methods_and_recursion(queue):
    class Model:
        def __init__(self, factor):
            self.factor = factor

        @drupe.fuse
        def power(self, x, n):
            return x if n == 0 else self.power(x, n - 1)*self.factor

    assert Model(2).power(da.ones(3, queue=queue), 5).tolist() == [32, 32, 32]


def test_an_error_in_a_fused_function(queue):
    x = da.ones(3, queue=queue)

    @drupe.fuse
    def wrong(x):
        return x + da.ones(4, queue=queue)

    with pytest.raises(ValueError, match="broadcast"):
        wrong(x)
    assert (x + 1).pending is None and (x + 1).tolist() == [2, 2, 2]


def generator():
    yield 1


async def coroutine():
    return 1


async def both():
    yield 1


@pytest.mark.parametrize("what, words", [
    (3, "takes a function, not int: write @drupe.fuse above its def"), (int, "int is a class: fuse its methods"),
    (generator, r"cannot take generator\(\), which is a generator"),
    (coroutine, r"coroutine\(\), which is asynchronous"), (both, r"both\(\), which is an asynchronous generator")])
def test_what_fuse_cannot_take(what, words):
    with pytest.raises(TypeError, match=words):
        drupe.fuse(what)


def test_what_a_fused_function_cannot_take(queue):
    x = da.ones(3, queue=queue)
    identity = drupe.fuse(lambda x, y=1: x)
    with pytest.raises(TypeError, match=r"array of NumPy \(argument 1\).*drupe\.array\.asarray"):
        identity(numpy.ones(3))
    with pytest.raises(TypeError, match=r"array of NumPy \(y\)"):
        identity(x, y=numpy.ones(3))
    for result, words in (({1}, "the result is of type set"), ([(x, x.shape), {"a": iter(())}],
                          r"the result\[1\]\['a'\] is of type tuple_iterator"),
                          ((x.asnumpy(),), r"the result\[0\] is an array of NumPy")):
        with pytest.raises(TypeError, match=words):
            drupe.fuse(lambda result=result: result)()
    assert identity(numpy.float64(2)) == 2


# --- Queue.flush() ----------------------------------------------------------------------------------------------

def test_flush(x):
    queue = x.queue
    y, before = x*2 + 1, len(labels(queue))
    assert queue.flush() is None
    assert y.pending is None and len(labels(queue)) > before
    before = len(labels(queue))
    queue.flush()
    assert len(labels(queue)) == before and float(y[0]) == 9


def test_flush_does_not_wait(x):
    gate = _engine._event_open("gate")
    other, y = drupe.Queue(x.device), x*2 + 1
    z = da.ones(MANY, queue=other)*2 + 1
    x.queue.barrier(wait_for=[gate])
    y = y + 1
    x.queue.flush()
    seen = y.pending is None, bool(z.pending), x.queue.pending > 0
    gate._finish()
    assert seen == (True, True, True) and float(y[0]) == 10


# --- What fused kernels are called --------------------------------------------------------------------------------

def test_labels(precompiled):
    x = da.ones(MANY, queue=precompiled)
    here = test_labels.__code__.co_firstlineno + 2
    y = da.sqrt(x)*x + 1
    y.queue.flush()
    y = da.sqrt(x)
    z = y*x
    y = z + 1
    y.queue.flush()
    y = da.exp(
        x*2)

    y = y + 1
    float(y.sum())
    kernels = [one for one in labels(precompiled) if ", " in one]
    assert kernels == ["sqrt, multiply, add", f"sqrt, multiply, add: lines {here + 3}-{here + 5}",
                       f"multiply, exp, add, sum: lines {here + 7}-{here + 8}, {here + 10}-{here + 11}"]


def test_long_labels(precompiled):
    x = y = da.ones(MANY, queue=precompiled)
    code = "\n".join(["\n"*(i % 2) + "y = y*x" for i in range(30)])
    names = {"x": x, "y": y}
    exec(compile(code, "long.py", "exec"), names)  # pylint: disable=exec-used
    names["y"].queue.flush()
    label = labels(precompiled)[-1]
    assert re.fullmatch(r"multiply x30: some of lines 1-\d\d", label)
    names["y"] = x
    exec(compile(code.replace("*", "*2 +"), "long.py", "exec"), names)  # pylint: disable=exec-used
    names["y"].queue.flush()
    label = labels(precompiled)[-1]
    assert re.fullmatch(r"multiply, add, \.\.\.: lines 37, 39-40, 42-43, 45", label) and len(label) < 56


def test_labels_of_other_files(precompiled):
    x = da.ones(MANY, queue=precompiled)
    names = {}
    exec(compile("\n\ndef twice(x):\n    return x + x", "helper.py", "exec"), names)  # pylint: disable=exec-used
    y = names["twice"](x)*3
    y.queue.flush()
    here = test_labels_of_other_files.__code__.co_firstlineno + 4
    assert labels(precompiled)[-1] == f"add, multiply: line {here} and elsewhere"
