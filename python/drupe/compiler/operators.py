"""Operators: what Python and NumPy mean by them, as casts, C operators and functions of the library."""
import ast
import dataclasses
import operator

from drupe.compiler import folding, tree, types
from drupe.compiler.messages import KernelError
from drupe.compiler.types import BOOL, FLOAT, INT, Scalar
from drupe.compiler.values import Number, constant, stored

SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
         ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.MatMult: "@",
         ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_FOLD = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
         "%": operator.mod, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_,
         "|": operator.or_, "^": operator.xor, "<": operator.lt, "<=": operator.le, ">": operator.gt,
         ">=": operator.ge, "==": operator.eq, "!=": operator.ne}
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_COMPLEX = {"+": "add", "-": "sub", "*": "mul", "/": "div", "**": "pow", "==": "eq", "!=": "ne"}


# --- Casts -------------------------------------------------------------------------------------------------

def cast(low, number, scalar):
    """The number as a value of another Scalar."""
    name = stored(scalar, low.fp64)
    if name == "float64" and not low.fp64:
        raise KernelError("DK018", "%s has no float64." % low.device_name, "Compute in float32: numpy.float32(x).")
    if number.const is not None and number.scalar.weak:
        return _cast_const(low, number, scalar, name)
    if number.expr.type == name:
        return Number(scalar, number.expr, number.const, number.low)
    return Number(scalar, convert(number.expr, name), None, _kept_bound(number, name))


def _kept_bound(number, name):
    """The least that an integer can be in another integer type, which may have fewer bits."""
    have = number.expr.type
    if name not in types.INTEGERS or (have != "bool" and have not in types.INTEGERS):
        return None
    if have == "bool" or have in types.UNSIGNED and types.SIZES[have] < types.SIZES[name]:
        return max(0, number.low or 0)
    if number.low is None or types.SIZES[name] < types.SIZES[have]:
        return None
    kept = have in types.SIGNED if name in types.SIGNED else number.low >= 0
    return number.low if kept else None


def _cast_const(low, number, scalar, name):
    value = number.const
    if scalar.kind == 1:
        least, most = folding.limits(name)
        value = int(value)
        if not least <= value <= most:
            raise KernelError("DK019", "%d does not fit %s, whose values are %d to %d." % (value, name, least, most),
                              "Cast the other operand to a wider type, such as numpy.int64(x).")
    else:
        value = folding.rounded((bool, int, float, complex)[scalar.kind](value), name)
    return Number(scalar, tree.Const(name, value), value if scalar.weak else None,
                  int(value) if scalar.kind < 2 else None)


def convert(expr, name):
    """The tree of a cast by the names of types; a complex number loses its imaginary part."""
    have = expr.type
    if have == name:
        return expr
    if have in types.COMPLEX:
        if name in types.COMPLEX:
            return tree.Cast(name, expr)
        if name == "bool":
            zero = tree.Const(types.real_of(have), 0.0)
            return tree.Call("bool", "ne", [expr, tree.Call(have, "complex", [zero, zero])])
        return convert(tree.Call(types.real_of(have), "real", [expr]), name)
    if name in types.COMPLEX:
        real = types.real_of(name)
        return tree.Call(name, "complex", [convert(expr, real), tree.Const(real, 0.0)])
    return folding.cast(expr, name)


def truth(low, number):
    """A bool of the tree: whether Python takes the number for true."""
    if number.const is not None:
        return tree.Const("bool", bool(number.const))
    return convert(number.expr, "bool")


# --- Two operands ------------------------------------------------------------------------------------------

def _refuse(sign, a, b):
    raise KernelError("DK012", "%s %s %s is not defined." % (a.type, sign, b.type))


def binary(low, sign, a, b):
    """a sign b of two Numbers."""
    folded = _folded(low, sign, a, b)
    if folded is not None:
        return folded
    if sign in COMPARISONS:
        return _compare(low, sign, a, b)
    if sign == "@":
        _refuse(sign, a, b)
    if sign in "+-*":
        return _ring(low, sign, a, b)
    return {"/": _divide, "//": _floor, "%": _floor, "**": _power, "<<": _shift, ">>": _shift}.get(sign, _bits)(
        low, sign, a, b)


def _folded(low, sign, a, b):
    if a.const is None or b.const is None or not (a.scalar.weak and b.scalar.weak):
        return None
    try:
        if sign in ("<<", "**") and isinstance(b.const, int) and abs(b.const) > 1024 and isinstance(a.const, int):
            return None  # large numbers, or none
        value = _FOLD[sign](a.const, b.const)
    except (TypeError, ArithmeticError, ValueError):
        return None
    return _known(low, value) if types.of_number(value) else None


def _known(low, value):
    """What was computed now; an int must fit 64 bits."""
    if isinstance(value, int) and not -1 << 63 <= value < 1 << 64:
        raise KernelError("DK019", "%d has more than 64 bits." % value)
    return constant(value, fp64=low.fp64)


def _both(low, a, b, scalar):
    return cast(low, a, scalar), cast(low, b, scalar)


def _arith(low, scalar, sign, a, b, wraps=False, bound=None):
    """A C operator on two operands of one type; float16 is computed in float32."""
    name = stored(scalar, low.fp64)
    if name == "float16":
        x, y = folding.cast(a.expr, "float32"), folding.cast(b.expr, "float32")
        return Number(scalar, folding.cast(folding.binary("float32", sign, x, y), "float16"))
    return Number(scalar, folding.binary(name, sign, a.expr, b.expr, wraps), None, bound)


def _ring(low, sign, a, b):
    scalar = types.common(a.scalar, b.scalar)
    if scalar == BOOL or scalar.kind == 0 and types.are_numbas():
        scalar = INT
    if scalar.name == "bool":
        if sign == "-":
            raise KernelError("DK012", "bool_ - bool_ is not defined.", "Use ^ or `not`.")
        return Number(scalar, folding.logic("||" if sign == "+" else "&&", a.expr, b.expr))
    x, y = _both(low, a, b, scalar)
    if scalar.kind == 3:
        return Number(scalar, tree.Call(x.expr.type, _COMPLEX[sign], [x.expr, y.expr]))
    bound = _bound(sign, x, y) if scalar.kind == 1 and scalar.weak else None
    neutral = _neutral(sign, x, y) if scalar.kind == 1 else None
    return neutral or _arith(low, scalar, sign, x, y, scalar.kind == 1 and not scalar.weak, bound)


def _neutral(sign, x, y):
    """x + 0, x*1 and such, of integers."""
    zero, one = (isinstance(y.expr, tree.Const) and y.expr.value == v for v in (0, 1))
    if (sign in "+-" and zero) or (sign == "*" and one):
        return x
    zero, one = (isinstance(x.expr, tree.Const) and x.expr.value == v for v in (0, 1))
    if (sign == "+" and zero) or (sign == "*" and one):
        return y
    return None


def _bound(sign, a, b):
    """The least value of a sum, difference or product of Python ints."""
    if a.low is None or b.low is None:
        return a.low - b.const if sign == "-" and a.low is not None and b.const is not None else None
    if sign == "+":
        return a.low + b.low
    if sign == "*":
        return a.low * b.low if a.low >= 0 and b.low >= 0 else None
    return a.low - b.const if b.const is not None else None


def _divide(low, sign, a, b):
    scalar = types.divided(a.scalar, b.scalar)
    x, y = _both(low, a, b, scalar)
    if scalar.kind == 3:
        return Number(scalar, tree.Call(x.expr.type, "div", [x.expr, y.expr]))
    return _arith(low, scalar, "/", x, y)


def call(low, scalar, name, *operands):
    """A function of the library on operands of this Scalar, which it gives back; float16 by way of float32."""
    if scalar.name == "float16":
        done = tree.Call("float32", name, [tree.Cast("float32", one.expr) for one in operands])
        return Number(scalar, tree.Cast("float16", done))
    return Number(scalar, tree.Call(stored(scalar, low.fp64), name, [one.expr for one in operands]))


def whole(scalar):
    """Operations of integers on bools count in these."""
    return (INT if scalar.weak or types.are_numbas() else Scalar("int8")) if scalar.name == "bool" else scalar


def _floor(low, sign, a, b):
    scalar = whole(types.common(a.scalar, b.scalar))
    if scalar.kind == 3:
        _refuse(sign, a, b)
    x, y = _both(low, a, b, scalar)
    if scalar.kind == 1 and x.natural and y.positive:
        return Number(scalar, tree.Binary(x.expr.type, sign, x.expr, y.expr), None, 0)
    done = call(low, scalar, "floordiv" if sign == "//" else "mod", x, y)
    done.low = 0 if scalar.kind == 1 and y.positive and (sign == "%" or x.natural) else None
    return done


def _power(low, sign, a, b):
    scalar = whole(types.common(a.scalar, b.scalar))
    if types.are_numbas() and a.scalar.kind == 2 and b.scalar.kind < 2:
        scalar = a.scalar
    if scalar == INT and b.const is not None and b.const < 0:
        scalar = FLOAT
    if b.const in (2, 2.0) and scalar.kind != 3 and (scalar.kind == 2 or scalar.kind == a.scalar.kind):
        x = low.once(cast(low, a, scalar))
        return _arith(low, scalar, "*", x, x, scalar.kind == 1 and not scalar.weak,
                      0 if scalar.kind == 1 and scalar.weak else None)
    if b.const == 0.5 and scalar.kind == 2:
        return call(low, scalar, "sqrt", cast(low, a, scalar))
    done = call(low, scalar, "pow", *_both(low, a, b, scalar))
    done.low = 0 if scalar == INT and a.natural else None
    return done


def _shift(low, sign, a, b):
    scalar = whole(types.common(a.scalar, b.scalar))
    if scalar.kind > 1:
        _refuse(sign, a, b)
    if types.are_numbas():  # which takes the sign from the left one
        scalar = dataclasses.replace(types.wide(a.scalar), weak=scalar.weak)
    x, y = _both(low, a, b, scalar)
    name = stored(scalar)
    bound = 0 if x.natural and (sign == ">>" or scalar.weak) else None
    if isinstance(y.expr, tree.Const) and 0 <= y.expr.value < 8 * types.SIZES[name]:
        return Number(scalar, tree.Binary(name, sign, x.expr, y.expr), None, bound)
    return Number(scalar, tree.Call(name, "shl" if sign == "<<" else "shr", [x.expr, y.expr]), None, bound)


def _bits(low, sign, a, b):
    scalar = types.common(a.scalar, b.scalar)
    if scalar.kind > 1:
        _refuse(sign, a, b)
    x, y = _both(low, a, b, scalar)
    if scalar.kind == 0:
        return Number(scalar, folding.logic({"&": "&&", "|": "||", "^": "!="}[sign], x.expr, y.expr))
    natural = (x.natural or y.natural) if sign == "&" else x.natural and y.natural
    return Number(scalar, folding.binary(x.expr.type, sign, x.expr, y.expr), None, 0 if natural else None)


# --- Comparisons -------------------------------------------------------------------------------------------

def _compare(low, sign, a, b):
    result = BOOL if a.scalar.weak and b.scalar.weak else Scalar("bool")
    scalar = _compared(a, b)
    if scalar is None:
        return Number(result, _mixed(sign, a, b))
    x, y = _both(low, a, b, scalar)
    if scalar.kind == 3:
        if sign not in ("==", "!="):
            _refuse(sign, a, b)
        return Number(result, tree.Call("bool", _COMPLEX[sign], [x.expr, y.expr]))
    done = folding.compare(sign, x.expr, y.expr)
    return Number(result, done, done.value if result.weak and folding.is_known(done) else None)


def _compared(a, b):
    """What two numbers are compared in; None for signed with uint64, of which no integer type holds both."""
    scalar = types.common(a.scalar, b.scalar)
    if a.scalar.kind == 1 == b.scalar.kind:
        names = {a.scalar.name, b.scalar.name}
        if "uint64" in names:
            other = a if b.scalar.name == "uint64" else b
            return Scalar("uint64") if other.natural or other.scalar.name in types.UNSIGNED else None
        if a.scalar.weak != b.scalar.weak:
            return Scalar("int64")
    if scalar.kind == 0:
        return Scalar("int32")
    return scalar


def _mixed(sign, a, b):
    """A signed integer and a uint64: one below zero is less, and others compare as uint64."""
    flipped = a.scalar.name == "uint64"
    signed, other = (b, a) if flipped else (a, b)
    zero = tree.Const(signed.expr.type, 0)
    negative = folding.compare("<", signed.expr, zero)
    x, y = folding.cast(signed.expr, "uint64"), other.expr
    plain = folding.compare(sign, y, x) if flipped else folding.compare(sign, x, y)
    below = sign in ("!=", *((">", ">=") if flipped else ("<", "<=")))
    if folding.is_known(negative):
        return tree.Const("bool", below) if negative.value else plain
    return tree.Select("bool", negative, tree.Const("bool", below), plain)


# --- One operand -------------------------------------------------------------------------------------------

def unary(low, op, a):
    """-a, +a, ~a; `not` is truth()'s affair."""
    if a.const is not None and a.scalar.weak and not (isinstance(op, ast.Invert) and a.scalar.kind > 1):
        value = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}[type(op)](a.const)
        return _known(low, value)
    if types.are_numbas() and a.scalar.kind < 2:
        return _numbas_unary(low, op, a)
    scalar = INT if a.scalar == BOOL else a.scalar
    a = cast(low, a, scalar)
    if isinstance(op, ast.UAdd):
        return a
    if isinstance(op, ast.Invert):
        if scalar.kind > 1:
            raise KernelError("DK012", "~%s is not defined." % a.type)
        return Number(scalar, folding.negated(a.expr) if scalar.kind == 0 else tree.Unary(a.expr.type, "~", a.expr))
    if scalar.kind == 0:
        raise KernelError("DK012", "-bool_ is not defined.", "Use `not`, or ~.")
    if scalar.kind == 3 or (scalar.kind == 1 and not scalar.weak):
        return Number(scalar, tree.Call(a.expr.type, "neg", [a.expr]))
    return Number(scalar, folding.negative(a.expr))


def _numbas_unary(low, op, a):
    """The same of integers and bools by Numba's rules: ~ of a bool is `not`, and unsigned integers keep their size
    for the operation, and become 64 bits wide behind it."""
    if a.scalar.kind == 0 and isinstance(op, ast.Invert):
        return Number(a.scalar, folding.negated(a.expr))
    scalar = types.wide(a.scalar)
    a = cast(low, a, a.scalar if a.scalar.name in types.UNSIGNED else scalar)
    if isinstance(op, ast.UAdd):
        return cast(low, a, scalar)
    if isinstance(op, ast.Invert):
        return cast(low, Number(a.scalar, tree.Unary(a.expr.type, "~", a.expr)), scalar)
    if scalar.weak:
        return Number(scalar, folding.negative(a.expr))
    return cast(low, Number(a.scalar, tree.Call(a.expr.type, "neg", [a.expr])), scalar)


def select(low, cond, a, b):
    """One of two Numbers by a bool of the tree."""
    scalar = types.union(a.scalar, b.scalar)  # which is common() but by Numba's rules
    x, y = _both(low, a, b, scalar)
    if isinstance(cond, tree.Const):
        return x if cond.value else y
    if isinstance(x.expr, tree.Const) and repr(x.expr) == repr(y.expr):  # by the text: 0.0 is not -0.0
        return x
    bound = None if x.low is None or y.low is None else min(x.low, y.low)
    return Number(scalar, tree.Select(x.expr.type, cond, x.expr, y.expr), None, bound)
