"""Calls: builtins, types, functions of mathematics, and what kernels are written with (drupe.kernel_api)."""
import builtins
import functools
import math
import sys
import types as pytypes

from drupe.compiler import folding, mathematics, operators, places, tree, types
from drupe.compiler.messages import KernelError
from drupe.compiler.items import place_method
from drupe.compiler.types import BOOL, COMPLEX_, FLOAT, INT, Scalar
from drupe.compiler.values import Elements, Items, Known, Method, Number, Place, Reference, constant, integer


def call(low, target, args, named):
    """target(*args, **named)"""
    if isinstance(target, Method):
        return _taking(_method, low, target, args, named)
    if not isinstance(target, Known):
        raise KernelError("DK010", "%s cannot be called." % target.type)
    thing = target.value
    function = _table().get(id(thing)) or getattr(thing, "_lowered_call", None)
    if function is not None:
        return _taking(lambda low, target, args, named: function(low, args, named), low, target, args, named)
    if isinstance(thing, type):
        return _type(low, thing, args, named)
    if _is_numbas(thing) and scalar_of(thing) is not None:
        return _converted(low, thing.name, scalar_of(thing), args, named)
    if hasattr(thing, "_device_function"):
        thing = thing._device_function
    elif _is_numbas(thing):
        thing = getattr(thing, "py_func", thing)
    if isinstance(thing, pytypes.FunctionType):
        return low.call_function(thing, args, named)
    if hasattr(thing, "_launcher"):
        raise KernelError("DK010", "%s is a kernel, and a kernel cannot call another one." % target,
                          "Put @drupe.device_func above a function that kernels call.")
    raise KernelError("DK010", "%s() cannot be called in a kernel." % target,
                      "What can be is listed in docs/kernels.md; a function of your own can, under "
                      "@drupe.device_func.")


def _taking(function, low, target, args, named):
    """What a function of ours gives; where it has taken apart other arguments than it was given, that is said."""
    try:
        return function(low, target, args, named)
    except (IndexError, TypeError, ValueError, KeyError) as error:
        raise KernelError("DK008", "%s() does not take %s." % (
            getattr(target, "name", target), "this argument" if len(args) + len(named) == 1 else
            "these %d arguments" % (len(args) + len(named)))) from error


# --- Types that are called ---------------------------------------------------------------------------------

def _is_numbas(thing):
    """Whether it is an object of Numba's, such as the type numba.float32 or a function under @numba.njit."""
    return type(thing).__module__.startswith(("numba.", "drupe.compat._numbas"))


def scalar_of(thing):
    """The Scalar of a type of Python or NumPy, a dtype, or its name; None for anything else."""
    for kind, scalar in ((bool, BOOL), (int, INT), (float, FLOAT), (complex, COMPLEX_)):
        if thing is kind:
            return scalar
    if _is_numbas(thing):
        name = getattr(thing, "name", "")
        return Scalar(name) if name in types.NAMES else None
    if isinstance(thing, pytypes.ModuleType):
        return None  # NumPy would take what it calls dtype
    import numpy

    try:
        name = numpy.dtype(thing).name
    except TypeError:
        return None
    return Scalar(name) if name in types.NAMES else None


def _type(low, kind, args, named):
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return _named_tuple(kind, args, named)
    scalar = scalar_of(kind) if kind.__module__ in ("builtins", "numpy") else None
    if scalar is None:
        raise KernelError("DK010", "%s cannot be called in a kernel." % kind.__name__)
    if types.are_numbas() and kind in (int, float) and len(args) == 1 and _is_kind(args[0], scalar.kind):
        return args[0]  # Numba leaves a float32 what it is
    return _converted(low, kind.__name__, scalar, args, named)


def _is_kind(value, kind):
    return isinstance(value, Number) and value.scalar.kind == kind


def _converted(low, name, scalar, args, named):
    """What a type of numbers makes of its arguments."""
    if scalar.kind == 3 and set(named) <= {"real", "imag"} and named:
        args = [*args, *(named.pop(one, constant(0)) for one in ("real", "imag")[len(args):])]
    _no_names(name, named)
    if not args:
        return operators.cast(low, constant(0), scalar)
    if scalar.kind == 3 and len(args) == 2:
        return _complex(low, scalar, args)
    (x,) = mathematics.numbers(name, args, 1)
    if scalar.kind == 0:
        return Number(scalar, operators.truth(low, x), bool(x.const) if x.const is not None else None)
    if x.scalar.kind == 3 and scalar.kind < 3:
        raise KernelError("DK012", "%s() of a complex number is not defined." % name, "Take its .real.")
    if x.const is not None and x.scalar.weak and scalar.kind == 1 and x.scalar.kind == 2:
        return _whole_part(low, x, scalar)
    return operators.cast(low, x, scalar)


def _whole_part(low, x, scalar):
    """A float that is known now as an integer; one that does not fit is converted as the device does it."""
    least, most = folding.limits(scalar.name)
    if math.isfinite(x.const) and least <= int(x.const) <= most:
        return operators.cast(low, constant(int(x.const)), scalar)
    return Number(scalar, tree.Cast(scalar.name, x.expr))


def _named_tuple(kind, args, named):
    fields = dict(zip(kind._fields, args), **named)
    if len(args) > len(kind._fields) or set(fields) != set(kind._fields):
        raise KernelError("DK008", "%s has the fields %s." % (kind.__name__, ", ".join(kind._fields)))
    return Items([fields[name] for name in kind._fields], kind)


def _complex(low, scalar, args):
    real = Scalar(types.real_of(scalar.name), scalar.weak)
    parts = [operators.cast(low, one, real).expr for one in mathematics.numbers("complex", args, 2)]
    name = {"float32": "complex64"}.get(parts[0].type, "complex128")
    return Number(scalar, tree.Call(name, "complex", parts))


# --- Builtins ----------------------------------------------------------------------------------------------

def _no_names(what, named):
    if named:
        raise KernelError("DK008", "%s() takes no %s= in a kernel." % (what, next(iter(named))))


def _len(low, args, named):
    (one,) = args
    if isinstance(one, Elements) and one.shape:
        return one.shape[0]
    if isinstance(one, Items):
        return constant(len(one.items))
    raise KernelError("DK012", "len() takes an array or a tuple, not %s." % one.type)


def _extreme(sign, name):
    def function(low, args, named):
        _no_names(name, named)
        if len(args) == 1 and isinstance(args[0], Items):
            args = args[0].items
        result, *rest = mathematics.numbers(name, args)
        for one in rest:
            result, one = low.once(result), low.once(one)
            chosen = operators.select(low, operators.binary(low, sign, one, result).expr, one, result)
            if chosen.scalar.kind == 1 and name == "max" and chosen.low is None:
                lows = [operators.cast(low, x, chosen.scalar).low for x in (one, result)]
                lows = [x for x in lows if x is not None]
                chosen.low = max(lows) if lows else None
            result = chosen
        return result
    return function


def _sum(low, args, named):
    if not isinstance(args[0], Items):
        raise KernelError("DK012", "sum() takes a tuple in a kernel.", "Write a loop over the array.")
    args = [*args, *(named.pop(one) for one in ("start",) if one in named)]
    _no_names("sum", named)
    result = args[1] if len(args) > 1 else constant(0)
    for one in args[0].items:
        result = low.operate("+", result, one)
    return result


def _divmod(low, args, named):
    a, b = (low.once(one) for one in mathematics.numbers("divmod", args, 2))
    return Items([operators.binary(low, "//", a, b), operators.binary(low, "%", a, b)])


def _print(low, args, named):
    if named:
        raise KernelError("DK008", "print() takes no keywords in a kernel.")
    parts = []
    for one in args:
        if parts:
            parts.append(" ")
        if isinstance(one, Known) and isinstance(one.value, str):
            parts.append(one.value)
        elif isinstance(one, Number):
            parts.append(one.expr)
        else:
            raise KernelError("DK012", "print() takes texts and numbers in a kernel, not %s." % one.type)
    low.emit(tree.Print(low.line, parts))
    return Known(None)


def _range(low, args, named):
    raise KernelError("DK003", "range() stands in `for ... in range(...)` only.")


def _isinstance(low, args, named):
    raise KernelError("DK010", "isinstance() cannot be called in a kernel.", "Compare dtypes: a.dtype == numpy.float32")


def _pow(low, args, named):
    _no_names("pow", named)
    return operators.binary(low, "**", *mathematics.numbers("pow", args, 2))


# --- drupe.kernel_api --------------------------------------------------------------------------------------

def _enumerated(value, what):
    number = getattr(value, "const", None)
    if number is None and isinstance(value, Known):
        number = int(value.value)
    if number is None:
        raise KernelError("DK014", "%s is one of the names of an enumeration." % what)
    return int(number)


def _barrier(low, args, named):
    """group_barrier(group, fence_scope) orders local and global memory; barrier(flags) what its flags say."""
    args = [*args, *named.values()]
    of_group = bool(args) and isinstance(args[0], Place)
    group = "sub" if of_group and args[0].kind == "SubGroup" else "work"
    flags = 3 if of_group or not args else _enumerated(args[0], "The argument of barrier()")
    if not low.unit.grouped:
        raise KernelError("DK015", "A barrier needs work-groups, and this kernel is launched over a Range.",
                          "Launch it over an NdRange(global_size, local_size).")
    low.function.barriers = True
    low.emit(tree.Barrier(low.line, 3 if flags & 2 else 2, group))
    return Known(None)


def _fence(low, args, named):
    order, scope = (_enumerated(one, "An argument of atomic_fence()") for one in (*args, *named.values()))
    low.emit(tree.Fence(low.line, order, scope))
    return Known(None)


def _ask(what):
    def function(low, args, named):
        return low.query(what, args[0] if args else constant(0))
    return function


def _dtype(value):
    thing = value.value if isinstance(value, Known) else None
    scalar = None if thing is None else scalar_of(thing)
    if scalar is None:
        raise KernelError("DK014", "The dtype is a type such as numpy.float32, not %s." % value.type)
    return scalar.name


def _memory(space, what):
    def function(low, args, named):
        given = dict(zip(("shape", "dtype", "fill_zeros"), args), **named)
        if "shape" not in given or "dtype" not in given:
            raise KernelError("DK008", "%s takes a shape and a dtype." % what)
        if space == tree.LOCAL and not low.unit.grouped:
            raise KernelError("DK015", "Local memory belongs to a work-group, and a Range has none.",
                              "Launch it over an NdRange(global_size, local_size).")
        zeroed = given.get("fill_zeros")
        return places.make(low, places.shape_of(given["shape"], what), _dtype(given["dtype"]), space,
                           bool(zeroed is not None and zeroed.const))
    return function


def _numpys_memory(zeroed):
    """numpy.zeros() and numpy.empty(): a private array."""
    def function(low, args, named):
        given = {"dtype": Known(float), **dict(zip(("shape", "dtype"), args), **named)}
        if set(given) != {"shape", "dtype"}:
            raise KernelError("DK008", "In a kernel, an array of its own takes a shape and a dtype.")
        made = places.make(low, places.shape_of(given["shape"], "private array"), _dtype(given["dtype"]), tree.PRIVATE)
        if zeroed:  # here, as it may be made once in each round of a loop
            low.written(made.buffer)
            places.fill(low, made, constant(0))
        return made
    return function


def _local_accessor(low, args, named):
    raise KernelError("DK015", "A LocalAccessor is made outside of the kernel and passed to it.",
                      "call_kernel(kernel, NdRange(...), ..., LocalAccessor(shape, dtype))")


def _atomic_ref(low, args, named):
    given = dict(zip(("ref", "index", "memory_order", "memory_scope", "address_space"), args), **named)
    array, index = given.get("ref"), given.get("index", constant(0))
    if not isinstance(array, Elements):
        raise KernelError("DK012", "AtomicRef takes an array and an index.")
    order = _enumerated(given.get("memory_order", constant(0)), "memory_order")
    if order == 2:
        raise KernelError("DK018", "There is no memory order CONSUME on any device.", "Use MemoryOrder.ACQUIRE.")
    return _reference(low, array, index, order, _enumerated(given.get("memory_scope", constant(3)), "memory_scope"))


def _reference(low, array, index, order=0, scope=3):
    offset, view = places.locate(low, array, index)
    if view is not None:
        raise KernelError("DK013", "An atomic operation works on one element: give an index for each dimension.")
    if array.dtype in ("bool", "float16", *types.COMPLEX) or types.SIZES[array.dtype] < 4:
        raise KernelError("DK012", "Atomic operations take int32, int64, uint32, uint64, float32 and float64, not %s."
                          % array.dtype)
    return Reference(array.buffer, array.dtype, low.once(offset).expr, order, scope)


_ATOMICS = {"fetch_add": "add", "fetch_sub": "sub", "fetch_min": "min", "fetch_max": "max", "fetch_and": "and",
            "fetch_or": "or", "fetch_xor": "xor", "exchange": "exchange", "load": "load", "store": "store"}


def _operate(low, reference, op, args):
    """An atomic operation; what it gives is kept, as it must happen once."""
    scalar = Scalar(reference.dtype)
    if op in ("and", "or", "xor") and scalar.kind != 1:
        raise KernelError("DK012", "fetch_%s() takes integers, and the elements are %s." % (op, reference.dtype))
    low.written(reference.buffer)
    values = [operators.cast(low, one, scalar).expr for one in mathematics.numbers("atomic " + op, args)]
    result = "void" if op == "store" else reference.dtype
    expr = tree.Atomic(result, op, reference.buffer, reference.index, values, reference.order, reference.scope)
    if op == "store":
        low.emit(tree.Do(low.line, expr))
        return Known(None)
    return low.kept_once(Number(scalar, expr))


def _compare_exchange(low, reference, args):
    expected, desired = args[0], args[1]
    if not isinstance(expected, Elements):
        raise KernelError("DK012", "compare_exchange() takes an array with the expected value, the desired value, and "
                          "the place in that array.")
    at, view = places.locate(low, expected, args[2] if len(args) > 2 else constant(0))
    before = low.once(places.load(low, expected, at))
    old = low.once(_operate(low, reference, "compare_exchange", [before, desired]))
    if reference.dtype in ("float32", "float64"):  # bits are compared: a zero is not -0.0, and a NaN may be the same
        same = Number(BOOL, tree.Call("bool", "same", [old.expr, operators.cast(low, before, old.scalar).expr]))
    else:
        same = operators.binary(low, "==", old, before)
    same = low.kept_once(same)
    low.written(expected.buffer)
    low.emit(tree.If(low.line, tree.Unary("bool", "!", same.expr),
                     [tree.Store(low.line, expected.buffer, at.expr, old.expr)]))
    return same


def _old_atomic(op):
    def function(low, args, named):
        if op == "compare_exchange":
            array, index, old, new = args
            return _operate(low, _reference(low, array, index), op, [old, new])
        array, index, value = args
        return _operate(low, _reference(low, array, index), op, [value])
    return function


def _sub_group(op, default=None):
    """A function of a sub-group: (group, x), or (group, x, number) where there is a default of the number."""
    def function(low, args, named):
        group, x, *rest = [*args, *named.values()]
        _need_sub_group(group)
        (x,) = mathematics.numbers(op, [x])
        if op in ("any", "all"):
            return Number(BOOL, tree.SubGroup("bool", op, [operators.truth(low, x)]))
        if default is not None:
            rest = mathematics.numbers(op, rest or [constant(default)], 1)
        tail = [operators.cast(low, one, INT).expr for one in rest]
        return low.kept_once(Number(x.scalar, tree.SubGroup(x.expr.type, op, [x.expr, *tail])))
    return function


def _need_sub_group(group):
    if not (isinstance(group, Place) and group.kind == "SubGroup"):
        raise KernelError("DK018", "Compiled kernels have this operation for sub-groups, not for whole work-groups.",
                          "Use item.get_sub_group(), or local memory and barriers.")


def _sub_reduce(kind):
    def function(low, args, named):
        group, x, how = [*args, *named.values(), Known("add")][:3]
        name = getattr(how.value, "__name__", how.value) if isinstance(how, Known) else ""
        word = {"plus": "add", "sum": "add", "add": "add", "minimum": "min", "min": "min", "maximum": "max",
                "max": "max"}.get(name)
        if word is None:
            raise KernelError("DK014", "The operation of a sub-group is one of \"add\", \"min\", \"max\".")
        return _sub_group("%s_%s" % (kind, word))(low, [group, x], {})
    return function


def _method(low, target, args, named):
    owner, name = target.owner, target.name
    if isinstance(owner, Place):
        return place_method(low, owner, name, [*args, *named.values()])
    if isinstance(owner, Reference):
        if name == "compare_exchange":
            return _compare_exchange(low, owner, [*args, *named.values()])
        if name not in _ATOMICS:
            raise KernelError("DK011", "An AtomicRef has no method %s()." % name,
                              "It has %s and compare_exchange." % ", ".join(_ATOMICS))
        return _operate(low, owner, _ATOMICS[name], [*args, *named.values()])
    if name == "astype":
        return operators.cast(low, owner, Scalar(_dtype(args[0])))
    if name in ("conj", "conjugate"):
        if owner.scalar.name == "bool" and not owner.scalar.weak:
            return owner  # the function gives an int8
        return mathematics.conjugate(low, name, [owner], False)
    if name == "is_integer":
        whole = mathematics.FUNCTIONS["rint"](low, name, [owner], False)
        return operators.binary(low, "==", whole, owner)
    return owner


# --- The table ---------------------------------------------------------------------------------------------

_BUILTINS = {"len": _len, "min": _extreme("<", "min"), "max": _extreme(">", "max"), "sum": _sum, "divmod": _divmod,
             "print": _print, "range": _range, "isinstance": _isinstance, "pow": _pow}
_API = {"group_barrier": _barrier, "barrier": _barrier, "atomic_fence": _fence, "AtomicRef": _atomic_ref,
        "PrivateArray": _memory(tree.PRIVATE, "PrivateArray"), "LocalAccessor": _local_accessor,
        "local.array": _memory(tree.LOCAL, "local array"), "private.array": _memory(tree.PRIVATE, "private array"),
        "get_global_id": _ask("global_id"), "get_local_id": _ask("local_id"), "get_group_id": _ask("group_id"),
        "get_global_size": _ask("global_size"), "get_local_size": _ask("local_size"),
        "get_num_groups": _ask("group_count"),
        "atomic.add": _old_atomic("add"), "atomic.sub": _old_atomic("sub"), "atomic.min": _old_atomic("min"),
        "atomic.max": _old_atomic("max"), "atomic.cas": _old_atomic("compare_exchange"),
        "atomic.exch": _old_atomic("exchange"),
        "group_broadcast": _sub_group("broadcast", 0), "select_from_group": _sub_group("shuffle", 0),
        "permute_group_by_xor": _sub_group("shuffle_xor", 1), "shift_group_left": _sub_group("shuffle_down", 1),
        "shift_group_right": _sub_group("shuffle_up", 1), "reduce_over_group": _sub_reduce("reduce"),
        "exclusive_scan_over_group": _sub_reduce("scan_exclusive"),
        "inclusive_scan_over_group": _sub_reduce("scan_inclusive"), "any_of_group": _sub_group("any"),
        "all_of_group": _sub_group("all")}


def _mathematical(name, weak):
    function = mathematics.FUNCTIONS[name]
    if weak:
        return lambda low, args, named: function(low, name, [*args, *named.values()], True)
    return lambda low, args, named: function(low, name, mathematics.strong(low, [*args, *named.values()]), False)


@functools.lru_cache(maxsize=None)
def _fixed():
    """id of a function → what lowers it. The functions live as long as their modules."""
    from drupe import kernel_api

    table = {id(getattr(builtins, name)): function for name, function in _BUILTINS.items()}
    table[id(abs)], table[id(round)] = _mathematical("abs", True), _mathematical("round", True)
    for name, function in _API.items():
        thing = functools.reduce(lambda owner, part: getattr(owner, part, None), name.split("."), kernel_api)
        if thing is not None:
            table[id(thing)] = function
    return table


def _table():
    """The fixed functions, and those of modules that the user has imported meanwhile: none is imported for this."""
    table = _fixed()
    for module in ("math", "cmath", "numpy", "drupe.array", "scipy.special"):
        there = sys.modules.get(module)
        if there is not None and module not in table:
            table[module] = True
            for name in mathematics.FUNCTIONS:
                thing = getattr(there, name, None)
                if callable(thing):
                    table.setdefault(id(thing), _mathematical(name, module in ("math", "cmath")))
            if module == "numpy":
                table[id(there.zeros)], table[id(there.empty)] = _numpys_memory(True), _numpys_memory(False)
    return table
