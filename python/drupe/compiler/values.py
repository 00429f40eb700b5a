"""What an expression of a kernel is while it is lowered: a number with its tree, or something known now."""
from dataclasses import dataclass
from typing import Any, Optional

from drupe.compiler import tree, types


@dataclass
class Number:
    """`expr` computes it, in the type that `scalar` is stored in. `const`: its value, where it is known now;
    `low`: the least an integer can be, where that is known."""
    scalar: types.Scalar
    expr: tree.Expr
    const: Any = None
    low: Optional[int] = None

    @property
    def type(self):
        return self.scalar

    @property
    def positive(self):
        return self.low is not None and self.low > 0

    @property
    def natural(self):
        return self.low is not None and self.low >= 0


@dataclass
class Elements:
    """An array, or a view of one: `offset` elements behind the buffer's pointer. `shape` are Numbers, `strides` are
    Numbers in elements. `name` is what the user calls it."""
    dtype: str
    buffer: tree.Buffer
    shape: list
    strides: list
    offset: Optional[Number] = None
    packed: bool = True  # elements lie side by side in C order
    name: str = "the array"

    @property
    def type(self):
        return types.Array(self.dtype, len(self.shape), "C" if self.packed else "A", self.buffer.space)


@dataclass
class Items:
    """A tuple. `cls`: the class of a named one."""
    items: list
    cls: Any = tuple

    @property
    def type(self):
        return types.Tuple(tuple(one.type for one in self.items), self.cls)


@dataclass
class Known:
    """An object of Python: a module, a function, a dtype, a text, None."""
    value: Any

    @property
    def type(self):
        return self

    def __str__(self):
        return getattr(self.value, "__name__", None) or repr(self.value)


@dataclass
class Place:
    """An Item, NdItem, Group or SubGroup."""
    kind: str
    dims: int

    @property
    def type(self):
        return types.Place(self.kind, self.dims)


@dataclass
class Reference:
    """An AtomicRef: one element, and how it is ordered."""
    buffer: tree.Buffer
    dtype: str
    index: tree.Expr
    order: int = 0
    scope: int = 3

    @property
    def type(self):
        return self

    def __str__(self):
        return "AtomicRef of %s" % self.dtype


@dataclass
class Method:
    """What a dot gave, to be called: `owner` is one of the above."""
    owner: Any
    name: str

    @property
    def type(self):
        return self

    def __str__(self):
        return "the method %s()" % self.name


def stored(scalar, fp64=True):
    """The name of the type that a value of this Scalar has in the tree."""
    if scalar.weak and not fp64:
        return {"float64": "float32", "complex128": "complex64"}.get(scalar.name, scalar.name)
    return scalar.name


def constant(value, scalar=None, fp64=True):
    """A Number for a Python number, weak unless `scalar` says otherwise."""
    scalar = scalar or types.of_number(value)
    low = int(value) if scalar.kind < 2 else None
    return Number(scalar, tree.Const(stored(scalar, fp64), value), value, low)


def integer(expr, low=None):
    """A Python int that is computed by `expr`, an int64."""
    const = expr.value if isinstance(expr, tree.Const) else None
    return Number(types.INT, expr, const, low if const is None else const)


def is_simple(expr):
    """Whether it costs nothing to compute it twice."""
    return isinstance(expr, (tree.Const, tree.Var, tree.Query))
