"""Types of values in a kernel, and NumPy's rules for what an operation of two types gives.

A Python number is *weak*: with an array's element it takes the element's type, and alone it is an int64, a float64 or
a complex128 (NumPy 2, NEP 50). What comes from an array, or from a NumPy scalar, is strong.

Kernels that were written for Numba compute by its rules, which `numbas()` switches on: Python's numbers are as strong
as others, and integers compute in 64 bits.
"""
import contextlib
import dataclasses
import threading
from dataclasses import dataclass

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
NAMES = ("bool",) + INTEGERS + FLOATS + COMPLEX

SIZES = {"bool": 1, "complex64": 8, "complex128": 16,
         **{name: int(name.lstrip("uintfloat")) // 8 for name in INTEGERS + FLOATS}}
_KINDS = {"bool": 0, **dict.fromkeys(INTEGERS, 1), **dict.fromkeys(FLOATS, 2), **dict.fromkeys(COMPLEX, 3)}


@dataclass(frozen=True)
class Scalar:
    name: str
    weak: bool = False

    def __str__(self):
        return {"bool": "bool", "int64": "int", "float64": "float", "complex128": "complex"}.get(
            self.name, self.name) if self.weak else "bool_" if self.name == "bool" else self.name

    @property
    def kind(self):
        """0 bool, 1 integer, 2 real, 3 complex."""
        return _KINDS[self.name]


@dataclass(frozen=True)
class Array:
    """layout "C": elements lie side by side in C order; "A": with strides."""
    dtype: str
    ndim: int
    layout: str = "C"
    space: str = "global"

    def __str__(self):
        where = "" if self.space == "global" else self.space + " "
        return "%sarray(%s, %dd%s)" % (where, self.dtype, self.ndim, "" if self.layout == "C" else ", strided")


@dataclass(frozen=True)
class Tuple:
    items: tuple
    cls: type = tuple  # a named tuple's class

    def __str__(self):
        names = getattr(self.cls, "_fields", ("",) * len(self.items))
        return "(%s)" % ", ".join("%s: %s" % (n, t) if n else str(t) for n, t in zip(names, self.items))


@dataclass(frozen=True)
class Place:
    """What a kernel is told where it is: "Item", "NdItem" or "Group"."""
    kind: str
    dims: int

    def __str__(self):
        return "%s of %d dimension%s" % (self.kind, self.dims, "" if self.dims == 1 else "s")


BOOL, INT, FLOAT = Scalar("bool", True), Scalar("int64", True), Scalar("float64", True)
COMPLEX_ = Scalar("complex128", True)
_WEAKS = (BOOL, INT, FLOAT, COMPLEX_)


def of_number(value):
    """The type of a number of Python or NumPy; None for anything else."""
    for kind, scalar in ((bool, BOOL), (int, INT), (float, FLOAT), (complex, COMPLEX_)):
        if type(value) is kind:
            return scalar
    name = getattr(getattr(value, "dtype", None), "name", None)
    if name in NAMES and getattr(value, "shape", None) == ():
        return Scalar(name)
    return None


def _integer(bits, signed):
    return ("int%d" if signed else "uint%d") % bits


def _promote(a, b):
    """NumPy's common type of two strong types, by name."""
    if a == b:
        return a
    if _KINDS[a] > _KINDS[b]:
        a, b = b, a
    low, high = _KINDS[a], _KINDS[b]
    size_a, size_b = SIZES[a], SIZES[b]
    if low == 0:
        return b
    if low == high == 1:
        if (a in SIGNED) == (b in SIGNED):
            return a if size_a > size_b else b
        signed, unsigned = (size_a, size_b) if a in SIGNED else (size_b, size_a)
        return _integer(8 * signed, True) if signed > unsigned else \
            "float64" if unsigned == 8 else _integer(16 * unsigned, True)
    if low == high:
        return a if size_a > size_b else b
    if low == 1:  # with a float or a complex: one that holds the integer
        need = {1: 2, 2: 4}.get(size_a, 8)
        have = size_b if high == 2 else size_b // 2
        size = max(need, have)
    else:
        size = max(size_a, size_b // 2)
    if high == 3:
        return "complex128" if size == 8 else "complex64"
    return "float%d" % (8 * size)


class _Rules(threading.local):
    numba = False


_rules = _Rules()


@contextlib.contextmanager
def numbas(on=True):
    """Numba's rules for what is computed within."""
    before, _rules.numba = _rules.numba, on
    try:
        yield
    finally:
        _rules.numba = before


def are_numbas():
    """Whether Numba's rules hold."""
    return _rules.numba


def wide(scalar):
    """What Numba computes an integer in: 64 bits."""
    return Scalar("uint64" if scalar.name in UNSIGNED else "int64", scalar.weak) if scalar.kind < 2 else scalar


def _numbas_common(a, b):
    weak = a.weak and b.weak
    if a.kind < 2 and b.kind < 2 and a.kind + b.kind:
        unsigned = a.name in UNSIGNED and b.name in UNSIGNED
        return Scalar("uint64" if unsigned else "int64", weak)
    return Scalar(_numbas_promote(a.name, b.name), weak)


def _numbas_promote(a, b):
    """What NumPy promotes two types to, but that Numba holds a uint16 to be too large for a float32."""
    if "uint16" in (a, b) and {"float32", "complex64"} & {a, b}:
        return _promote(_promote(a, b), "float64")
    return _promote(a, b)


def common(a, b):
    """The Scalar in which an operation of two Scalars computes."""
    if _rules.numba:
        return _numbas_common(a, b)
    if a.weak and b.weak:
        return a if a.kind >= b.kind else b
    if not a.weak and not b.weak:
        return Scalar(_promote(a.name, b.name))
    strong, weak = (b, a) if a.weak else (a, b)
    if weak.kind <= strong.kind:
        return strong
    if weak.kind == 1:  # an int with a bool_
        return Scalar("int64")
    if weak.kind == 2:
        return Scalar("float64")
    size = {"float16": 4, "float32": 4}.get(strong.name, 8)
    return Scalar("complex64" if size == 4 else "complex128")


def as_float(scalar):
    """What true division and functions such as sqrt compute in."""
    if scalar.kind >= 2:
        return scalar
    if scalar.weak:
        return FLOAT
    if _rules.numba and scalar.name in ("bool", "int8", "uint8"):
        return Scalar("float32")  # Numba has no functions of float16 for these
    return Scalar({"bool": "float16", "int8": "float16", "uint8": "float16", "int16": "float32",
                   "uint16": "float32"}.get(scalar.name, "float64"))


def divided(a, b):
    """The type of a / b: integers of every size divide as float64."""
    both = common(a, b)
    if both.kind >= 2:
        return both
    return FLOAT if both.weak else Scalar("float64")


def real_of(name):
    """The type of a complex number's parts."""
    return {"complex64": "float32", "complex128": "float64"}.get(name, name)


def union(a, b):
    """The type of a variable that is assigned both; None where there is none."""
    if a == b:
        return a
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        return Scalar(_promote(a.name, b.name), a.weak and b.weak) if _rules.numba else common(a, b)
    if isinstance(a, Array) and isinstance(b, Array):
        if (a.dtype, a.ndim, a.space) == (b.dtype, b.ndim, b.space):
            return dataclasses.replace(a, layout="A")
    if isinstance(a, Tuple) and isinstance(b, Tuple) and len(a.items) == len(b.items) and a.cls is b.cls:
        items = tuple(union(x, y) for x, y in zip(a.items, b.items))
        return None if None in items else Tuple(items, a.cls)
    return None
