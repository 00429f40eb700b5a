"""The lowered tree of a kernel: what remains of a Python function when all types are known.

Types are names of NumPy's dtypes ("bool", "int8" ... "float64", "complex128"), and every operand has the type that its
operation computes in: what Python and NumPy mean by an operator has become casts, calls of library functions
(docs/internals/compiler.md lists them) and plain C operators. Nodes are compared and printed by their fields.

A name with a dot is none of the user's: "x.shape0", ".t1", and "f1.y", the y of a function that is lowered in place.

`line` of a statement is the line of the user's source it comes from, counted within the function's file or cell.
"""
import dataclasses
from dataclasses import dataclass, field
from typing import Any, Optional

# Address spaces of buffers.
GLOBAL, LOCAL, PRIVATE = "global", "local", "private"

# What a work-item can ask of its place. `dim` counts in the user's order: the last dimension runs fastest.
QUERIES = ("global_id", "local_id", "group_id", "global_size", "local_size", "group_count",
           "sub_group_id", "sub_group_local_id", "sub_group_size", "sub_group_count")


@dataclass(eq=True)
class Buffer:
    """Elements of one type behind a pointer of a name: an argument, local memory, a private array, or a view.

    A private or local one has `size` elements (an int; an expression for local memory whose shape is an argument);
    of others it is None. `readonly` says that no statement of the kernel writes to it.
    """
    name: str
    type: str
    space: str
    size: Any = None
    readonly: bool = False
    zeroed: bool = False


# --- Expressions -------------------------------------------------------------------------------------------

@dataclass
class Expr:
    type: str


@dataclass
class Const(Expr):
    value: Any


@dataclass
class Var(Expr):
    name: str


@dataclass
class Unary(Expr):
    """op: "-" of floats and of integers that do not overflow, "~" of integers, "!" of bool."""
    op: str
    a: Expr


@dataclass
class Binary(Expr):
    """A C operator; a and b have the same type. Real types only.

    + - * of integers wrap where `wraps`, and otherwise do not overflow; / is of floats; // and % are of integers that
    are both known not to be negative, with b known not to be 0; & | ^ of integers; << >> by counts known to be
    within the type; < <= > >= == != give bool; && || are of bool and compute b only where it counts.
    """
    op: str
    a: Expr
    b: Expr
    wraps: bool = False


@dataclass
class Cast(Expr):
    """To another type; complex to real is not among these. float to float16 rounds to nearest even."""
    a: Expr


@dataclass
class Select(Expr):
    """a if cond else b; only the one that counts is computed."""
    cond: Expr
    a: Expr
    b: Expr


@dataclass
class Call(Expr):
    """A function of the library (clib), found by its name and the type of its first argument, or, where
    `function` is set, a device function of the program. type "void": called for its effect."""
    name: str
    args: list
    function: Optional["Function"] = None


@dataclass
class Load(Expr):
    buffer: Buffer
    index: Expr  # int64, in elements


@dataclass
class Query(Expr):
    """One of QUERIES; type int64."""
    what: str
    dim: int = 0


@dataclass
class Atomic(Expr):
    """op: add sub min max and or xor exchange (args: value), load (none), store (value; type "void"),
    compare_exchange (expected, desired). Gives the old value. order: 0 relaxed, 1 acquire, 3 release, 4 acq_rel,
    5 seq_cst; scope: 2 work-group, 3 device, 4 system."""
    op: str
    buffer: Buffer
    index: Expr
    args: list
    order: int = 0
    scope: int = 3


@dataclass
class SubGroup(Expr):
    """op: broadcast shuffle shuffle_xor shuffle_up shuffle_down reduce_add reduce_min reduce_max scan_exclusive_add
    scan_inclusive_add any all (ballot is not among these); args by op."""
    op: str
    args: list


# --- Statements --------------------------------------------------------------------------------------------

@dataclass
class Stmt:
    line: int


@dataclass
class Assign(Stmt):
    name: str
    value: Expr


@dataclass
class Point(Stmt):
    """A view's pointer: target = source + offset, in elements; same type and space."""
    target: Buffer
    source: Buffer
    offset: Expr


@dataclass
class Store(Stmt):
    buffer: Buffer
    index: Expr
    value: Expr


@dataclass
class Do(Stmt):
    value: Expr


@dataclass
class If(Stmt):
    cond: Expr
    then: list
    other: list = field(default_factory=list)


@dataclass
class For(Stmt):
    """for var in range(start, stop, step): the bounds are computed once. `var` keeps its last value behind the loop,
    and what the body assigns to it does not count for the loop, as in Python. step is a Const that is not 0, or an
    expression known to be positive."""
    var: str
    start: Expr
    stop: Expr
    step: Expr
    body: list
    other: list = field(default_factory=list)  # Python's else of a loop: run where no break ended it
    independent: bool = False  # iterations touch no common element


@dataclass
class While(Stmt):
    cond: Expr
    body: list
    other: list = field(default_factory=list)


@dataclass
class Break(Stmt):
    pass


@dataclass
class Continue(Stmt):
    pass


@dataclass
class Return(Stmt):
    value: Optional[Expr] = None


@dataclass
class Barrier(Stmt):
    """All work-items of the group; scope 2: local memory, 3: local and global memory is in order behind it.
    group "sub": those of the sub-group."""
    scope: int = 2
    group: str = "work"


@dataclass
class Fence(Stmt):
    order: int
    scope: int


@dataclass
class Check(Stmt):
    """Where cond does not hold, note `code` with line and work-item in the program's record of failures (once), and end
    the work-item, or clear the variable Function.alive. codes: docs/internals/compiler.md."""
    cond: Expr
    code: int
    values: list = field(default_factory=list)  # up to two int64 that the message shows


@dataclass
class Print(Stmt):
    """Texts and values, in order, then a new line."""
    parts: list


# --- Functions ---------------------------------------------------------------------------------------------

@dataclass
class Param:
    """source says where the argument comes from when the kernel is launched, as a tuple: ("pointer", path),
    ("shape", path, dim), ("stride", path, dim) in elements, ("value", path); ("local", path) for bytes of local
    memory, where buffer is set; ("failures",) for the record of failures. path is a tuple: the number of the
    user's argument, then places in nested tuples. None for a device function's parameters."""
    name: str
    type: str
    buffer: Optional[Buffer] = None  # a pointer's
    source: Optional[tuple] = None


@dataclass
class Function:
    """A kernel, or a device function (`result` is its type, "void" for none). `locals`: the types of
    variables, parameters left out. `buffers`: private arrays, views and local memory of fixed size."""
    name: str
    params: list
    locals: dict = field(default_factory=dict)
    buffers: list = field(default_factory=list)
    body: list = field(default_factory=list)
    result: str = "void"
    functions: list = field(default_factory=list)  # device functions, callees first
    grouped: bool = False  # launched over an NdRange: has groups
    dims: int = 1
    barriers: bool = False
    failures: bool = False  # it has Checks
    watched: list = field(default_factory=list)  # (globals, name, object) that were compiled in
    sources: list = field(default_factory=list)  # source.Source of all functions in it
    alive: Optional[str] = None  # the variable that is cleared where a work-item would end at a Check (masks.py)


def is_cheap(call):
    """Whether it is a few instructions, and no function of mathematics or of the user's."""
    return call.function is None and call.name in (
        "floordiv", "mod", "minimum", "maximum", "wrap_index", "abs", "shl", "shr")


def children(node):
    """The nodes in a node's fields, in order."""
    for one in dataclasses.fields(node):
        value = getattr(node, one.name)
        if isinstance(value, (Expr, Stmt)):
            yield value
        elif isinstance(value, list):
            yield from (item for item in value if isinstance(item, (Expr, Stmt)))


def walk(node):
    """A node and all below it; of a Function, all of its body."""
    if isinstance(node, Function):
        for stmt in node.body:
            yield from walk(stmt)
        return
    yield node
    for child in children(node):
        yield from walk(child)
