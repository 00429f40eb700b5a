"""Soak 6: random programs of array operations against NumPy, on every device and two queues of each: makers, views
that share memory, operations, in place and out=, assignments, reductions, casts, copies between queues. Arrays are
dropped as often as they are made, so that memory goes from one to the next all the time. Every variable has a mirror
in NumPy, and their views are taken alike; a difference ends the run with the last steps."""
import collections
import math
import random
import time

import numpy as np

import drupe
import drupe.array as da

DTYPES = ("bool", "int32", "int64", "float32", "float64")
HELD = 20  # variables of a queue
SMALL, MEDIUM, LARGE = 6, 3000, 200000
LARGEST = 1 << 21  # elements that two variables have together
BOUND = 1e6  # of floats: sums stay exact enough to be compared, and casts in range
LAST = 25  # steps that a failure shows


class Different(Exception):
    """A device's result is not NumPy's."""


class Variable:
    """An array and its mirror. `plain`: no two of its elements are one in memory."""
    __slots__ = ("x", "a", "plain")

    def __init__(self, x, a, plain=True):
        self.x, self.a, self.plain = x, a, plain


FORMULAS = (lambda x, y: x * 2 + y, lambda x, y: (x + 1) * (y - 1), lambda x, y: 1 - (x - y),
            lambda x, y: (x + y) - (y - x), lambda x, y: ((x - 1) * y + x) * 2 - y, lambda x, y: (x * 1)[...] + y,
            lambda x, y: (again := x + 1) * y + again, lambda x, y: [x - 1, y][0] + (y - 1) + [x * 2][0])


def compatible(shape, other):
    return all(m == n or m == 1 or n == 1 for m, n in zip(shape[::-1], other[::-1]))


def outer(shape, other):
    """How many elements the two have together, of shapes that are compatible."""
    return math.prod(np.broadcast_shapes(shape, other))


def compare(x, a, rtol=0.0):
    got = x.asnumpy()
    if got.dtype != a.dtype or got.shape != a.shape:
        raise Different("%s %s instead of %s %s" % (got.dtype, got.shape, a.dtype, a.shape))
    if rtol:
        good = np.isclose(got, a, rtol=rtol, atol=rtol, equal_nan=True)
    else:
        good = got == a
    if not good.all():
        if rtol == 0 and a.dtype.kind == "f" and np.array_equal(got, a, equal_nan=True):
            return got
        where = np.unravel_index(int(np.argmin(good)), a.shape)
        raise Different("element %s of %s is %r and not %r (%d of %d differ)" % (
            tuple(int(i) for i in where), a.shape, got[where], a[where], a.size - np.count_nonzero(good), a.size))
    return got


class World:
    """The variables of one queue."""

    def __init__(self, queue, numbers, others):
        self.queue, self.numbers, self.others = queue, numbers, others
        self.variables, self.did = [], ""
        # Each combination of types is a program to build, so a run has three types where programs are built.
        self.dtypes = DTYPES if queue.device.backend == "host" else tuple(numbers.sample(DTYPES, 3))
        self.source = np.random.default_rng(numbers.randrange(1 << 32))
        self.steps = [step for step, weight in self.table().items() for _ in range(weight)]

    def table(self):
        return {self.make: 8, self.binary: 16, self.formula: 8, self.unary: 6, self.compared: 6, self.view: 12,
                self.in_place: 14, self.into: 6, self.assign: 10, self.reduce: 8, self.cast: 6, self.copied: 4,
                self.across: 3, self.matmul: 2, self.joined: 2, self.drop: 14, self.check: 10}

    # --- choosing

    def any(self):
        while not self.variables:
            self.make()
        return self.numbers.choice(self.variables)

    def shape(self):
        n = self.numbers
        kind = n.random()
        if kind < 0.9:
            return tuple([n.randrange(SMALL + 1) for _ in range(n.randrange(4))])
        return (n.randrange(1, LARGE if kind > 0.998 else MEDIUM),)

    def values(self, shape, dtype):
        if dtype == "bool":
            return np.asarray(self.source.random(shape) < 0.5)
        low, high = ((-2**31, 2**31) if self.numbers.random() < 0.1 and dtype[0] == "i" else (-50, 50))
        return np.asarray(self.source.integers(low, high, shape)).astype(dtype)

    def scalar(self, dtype):
        n = self.numbers
        if dtype == bool:
            return n.random() < 0.5
        return n.choice((-3, -1, 0, 1, 2, 7)) if dtype.kind == "i" or n.random() < 0.5 else n.choice((-1.5, 0.5, 2.0))

    def fitting(self, shape):
        """A variable that broadcasts with `shape`, or None."""
        for _ in range(4):
            other = self.any()
            if compatible(shape, other.a.shape) and outer(shape, other.a.shape) <= LARGEST:
                return other
        return None

    def keep(self, x, a, plain=True, rtol=0.0):
        if a.size > LARGEST:
            return  # or products of products need all memory
        if a.dtype.kind == "f" and a.size and not np.abs(a).max() < BOUND:
            return  # also for what is no number
        if a.dtype.name not in self.dtypes:
            if self.numbers.random() < 0.2:
                compare(x, a, rtol)
            return
        if rtol:
            a = np.array(compare(x, a, rtol))
        self.variables.append(Variable(x, a, plain))
        if len(self.variables) > HELD:
            self.drop()

    def tame(self, variable):
        """Floats in place may have grown too large."""
        a = variable.a
        if a.dtype.kind == "f" and a.size and not np.abs(a).max() < BOUND:
            variable.x[...] = 1
            a[...] = 1

    # --- steps

    def make(self):
        n = self.numbers
        shape, dtype, way = self.shape(), n.choice(self.dtypes), n.randrange(5)
        self.did = "make %s %s %d" % (shape, dtype, way)
        if way < 2:
            a = self.values(shape, dtype)
            return self.keep(da.asarray(a, queue=self.queue), a)
        if way == 2:
            value = self.scalar(np.dtype(dtype))
            return self.keep(da.full(shape, value, dtype=dtype, queue=self.queue), np.full(shape, value, dtype))
        if way == 3:
            count = n.randrange(MEDIUM if n.random() < 0.05 else 40)
            if dtype == "bool":
                return None
            a = np.arange(-3, count, 2, dtype=dtype)
            return self.keep(da.arange(-3, count, 2, dtype=dtype, queue=self.queue), a)
        x = da.empty(shape, dtype=dtype, queue=self.queue)
        x[...] = 1
        return self.keep(x, np.ones(shape, dtype))

    def operands(self):
        first = self.any()
        second = self.fitting(first.a.shape) if self.numbers.random() < 0.7 else None
        if second is None:
            value = self.scalar(first.a.dtype)
            return first, value, value
        return first, second.x, second.a

    def function(self, a, b):
        """The name of an operation that takes these; what NumPy gives decides over the type."""
        n, bools = self.numbers, a.dtype == bool and getattr(b, "dtype", type(b)) in (bool, np.dtype(bool))
        if bools:
            return n.choice(("logical_and", "logical_or", "maximum", "minimum", "add", "multiply"))
        whole = a.dtype.kind in "bi" and (b.dtype.kind if isinstance(b, np.ndarray) else "f" if isinstance(b, float)
                                          else "i") in "bi"
        return n.choice(("add", "subtract", "multiply", "maximum", "minimum")
                        + (("floor_divide", "remainder") if whole else ("divide",)))

    def binary(self):
        first, y, b = self.operands()
        name = self.function(first.a, b)
        self.did = "%s %s %s" % (name, first.a.shape, getattr(b, "shape", b))
        if self.numbers.random() < 0.2 and not isinstance(y, da.Array):
            x, a = getattr(da, name)(y, first.x), getattr(np, name)(b, first.a)
        else:
            x, a = getattr(da, name)(first.x, y), getattr(np, name)(first.a, b)
        self.keep(x, np.asarray(a), rtol=1e-6 if name == "divide" else 0)

    def formula(self):
        """Operators on what operators gave, which is gone afterwards: its memory may be the result's."""
        one = self.any()
        other = self.fitting(one.a.shape)
        if other is None or bool in (one.a.dtype, other.a.dtype):
            return
        which = self.numbers.randrange(len(FORMULAS))
        self.did = "formula %d of %s %s" % (which, one.a.shape, other.a.shape)
        self.keep(FORMULAS[which](one.x, other.x), np.asarray(FORMULAS[which](one.a, other.a)))

    def unary(self):
        one = self.any()
        names = ("logical_not", "abs") if one.a.dtype == bool else ("negative", "positive", "abs", "square")
        name = self.numbers.choice(names)
        self.did = "%s %s" % (name, one.a.shape)
        self.keep(getattr(da, name)(one.x), np.asarray(getattr(np, name)(one.a)))

    def compared(self):
        first, y, b = self.operands()
        name = self.numbers.choice(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"))
        self.did = "%s %s %s" % (name, first.a.shape, getattr(b, "shape", b))
        self.keep(getattr(da, name)(first.x, y), np.asarray(getattr(np, name)(first.a, b)))

    def index(self, shape):
        n, key = self.numbers, []
        for length in shape:
            way = n.randrange(4)
            if way == 0 and length:
                key.append(n.randrange(-length, length))
            elif way == 1:
                key.append(slice(None, None, n.choice((-2, -1, 2, 3))))
            elif way == 2:
                key.append(slice(n.randrange(-2, length + 2), n.randrange(-2, length + 2)))
            else:
                key.append(slice(None))
        if n.random() < 0.2:
            key.insert(n.randrange(len(key) + 1), None)
        return (*key, ...) if n.random() < 0.5 or not key else tuple(key)

    def view(self):
        n, one = self.numbers, self.any()
        x, a, way, plain = one.x, one.a, n.randrange(6), one.plain
        if way == 0:
            x, a = x.T, a.T
        elif way == 1 and a.ndim:
            axes = n.sample(range(a.ndim), a.ndim)
            x, a = da.permute_dims(x, axes), a.transpose(axes)
        elif way == 2:
            shape = (n.randrange(4),) + a.shape
            x, a, plain = da.broadcast_to(x, shape), np.broadcast_to(a, shape), False
        elif way == 3 and x.is_contiguous and plain:  # else it is a copy here or there
            x, a = x.reshape(-1), a.reshape(-1)
            if not np.shares_memory(a, one.a):
                return
        else:
            key = self.index(a.shape)
            x, a = x[key], a[key + (() if ... in key else (...,))]
        self.did = "view %d of %s: %s" % (way, one.a.shape, a.shape)
        self.keep(x, a, plain)

    def writable(self):
        for _ in range(4):
            one = self.any()
            if one.plain:
                return one
        return None

    def second(self, shape):
        """What broadcasts to `shape`: (array or number, mirror)."""
        other = self.fitting(shape) if self.numbers.random() < 0.7 else None
        if other is None or np.broadcast_shapes(shape, other.a.shape) != shape:
            return None
        return other

    def in_place(self):
        one = self.writable()
        if one is None:
            return
        other = self.second(one.a.shape)
        b = self.scalar(one.a.dtype) if other is None else other.a
        name = self.function(one.a, b)
        result = np.result_type(one.a, b)
        if name == "divide" or not np.can_cast(result, one.a.dtype, "same_kind"):
            return
        self.did = "%s in place %s %s" % (name, one.a.shape, getattr(b, "shape", b))
        getattr(da, name)(one.x, b if other is None else other.x, out=one.x)
        getattr(np, name)(one.a, b, out=one.a, casting="same_kind")
        self.tame(one)

    def into(self):
        """out= is another variable, which may share memory with the operands."""
        out = self.writable()
        first = None if out is None else self.second(out.a.shape)
        other = None if first is None else self.second(out.a.shape)
        if other is None or np.broadcast_shapes(first.a.shape, other.a.shape) != out.a.shape:
            return
        name = self.function(first.a, other.a)
        if name == "divide" or not np.can_cast(np.result_type(first.a, other.a), out.a.dtype, "same_kind"):
            return
        self.did = "%s into %s of %s %s" % (name, out.a.shape, first.a.shape, other.a.shape)
        getattr(da, name)(first.x, other.x, out=out.x)
        getattr(np, name)(first.a, other.a, out=out.a, casting="same_kind")
        self.tame(out)

    def assign(self):
        one = self.writable()
        if one is None:
            return
        key = self.index(one.a.shape)
        part = one.a[key + (() if ... in key else (...,))]
        other = self.second(part.shape)
        if other is not None and other.a.dtype.kind == "i" and part.dtype.kind == "f" and other.a.size \
                and np.abs(other.a.astype("float64")).max() >= BOUND:
            return
        self.did = "assign %s of %s from %s" % (part.shape, one.a.shape, None if other is None else other.a.shape)
        value = self.scalar(part.dtype)
        one.x[key] = value if other is None else other.x
        one.a[key] = value if other is None else other.a

    def reduce(self):
        n, one = self.numbers, self.any()
        name = n.choice(("sum", "prod", "max", "min", "any", "all") if one.a.dtype.kind != "f" else
                        ("sum", "max", "min", "any", "all"))
        axes = tuple(n.sample(range(one.a.ndim), n.randrange(one.a.ndim + 1))) if n.random() < 0.7 else None
        if name in ("max", "min") and 0 in (one.a.shape if axes is None else [one.a.shape[i] for i in axes]):
            return
        keep = n.random() < 0.3
        self.did = "%s of %s over %s" % (name, one.a.shape, axes)
        x = getattr(da, name)(one.x, axis=axes, keepdims=keep)
        a = np.asarray(getattr(np, name)(one.a, axis=axes, keepdims=keep))
        inexact = one.a.dtype.kind == "f" and name == "sum"
        self.keep(x, a, rtol=1e-3 * (1 + float(np.abs(one.a).max(initial=0))) if inexact else 0)

    def cast(self):
        one, dtype = self.any(), self.numbers.choice(self.dtypes)
        self.did = "%s %s as %s" % (one.a.dtype, one.a.shape, dtype)
        self.keep(one.x.astype(dtype), one.a.astype(dtype))

    def copied(self):
        one = self.any()
        self.did = "copy of %s" % (one.a.shape,)
        self.keep(one.x.copy(), one.a.copy())

    def across(self):
        """To another queue, by to_device() or by an assignment there."""
        other, one = self.numbers.choice(self.others), self.any()
        self.did = "%s to %s" % (one.a.shape, other.queue)
        target = other.writable()
        if target is not None and target.a.dtype == one.a.dtype and target.a.shape == one.a.shape:
            target.x[...] = one.x
            target.a[...] = one.a
        else:
            other.keep(one.x.to_device(other.queue) if other is not self else one.x.copy(), one.a.copy())

    def matmul(self):
        one = self.any()
        if one.a.ndim != 2 or one.a.dtype.kind == "f" or one.a.shape[0] ** 2 > LARGEST:
            return
        self.did = "matmul of %s" % (one.a.shape,)
        self.keep(da.matmul(one.x, one.x.T), one.a @ one.a.T)

    def joined(self):
        one = self.any()
        if one.a.ndim:
            self.did = "concat of %s" % (one.a.shape,)
            self.keep(da.concat([one.x, one.x[::-1]]), np.concatenate([one.a, one.a[::-1]]))

    def drop(self):
        if self.variables:
            self.variables.pop(self.numbers.randrange(len(self.variables)))

    def check(self):
        one = self.any()
        self.did = "check %s" % (one.a.shape,)
        compare(one.x, one.a)

    def check_all(self):
        self.did = "check all"
        for one in self.variables:
            compare(one.x, one.a)


def _worlds(numbers):
    worlds = []
    for name in ("host", "opencl:cpu", "opencl:gpu"):
        try:
            device = drupe.Device(name)
        except drupe.DeviceNotFoundError:
            continue
        worlds += [World(da.empty(1, device=device).queue, numbers, worlds),
                   World(drupe.Queue(device), numbers, worlds)]
    return worlds


def run(count, seed):
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        np._set_promotion_state("weak")  # the rules of NumPy 2
    numbers = random.Random(seed)
    worlds, last = _worlds(numbers), collections.deque(maxlen=LAST)
    started, world, number = time.perf_counter(), None, 0
    try:
        with np.errstate(all="ignore"):
            for number in range(count):
                world = numbers.choice(worlds)
                world.did = ""
                numbers.choice(world.steps)()
                last.append("%d, queue %d: %s" % (number, worlds.index(world), world.did))
                if number % 5000 == 4999:
                    for world in worlds:
                        world.check_all()
            for world in worlds:
                world.check_all()
    except (Different, drupe.DeviceError, ValueError, TypeError, IndexError, MemoryError) as error:
        return ["step %d, queue %d: %s: %s: %s\n    after %s" % (
            number, worlds.index(world), world.did, type(error).__name__, error, "\n    after ".join(reversed(last)))]
    seconds = time.perf_counter() - started
    print("  %d steps on %d queues in %.1f s: %.0f steps a second" % (count, len(worlds), seconds, count / seconds))
    return []
