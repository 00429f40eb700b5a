"""Operations of the tree whose operands are known now: what they give, as devices compute it.

Nothing is left to a C compiler here, because the quick one computes constants in more digits than the type has, and has
its troubles with conditions that are always true.
"""
import math
import operator
import struct

from drupe.compiler import tree, types

_PLAIN = {"+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_,
          "^": operator.xor}
_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
            "!=": operator.ne}


def limits(name):
    """The least and greatest value of an integer type."""
    bits = 8 * types.SIZES[name]
    return (0, (1 << bits) - 1) if name in types.UNSIGNED else (-(1 << bits - 1), (1 << bits - 1) - 1)


def rounded(value, name):
    """A number of Python as a float of fewer digits holds it."""
    if name == "complex64":
        return complex(rounded(value.real, "float32"), rounded(value.imag, "float32"))
    form = {"float16": "e", "float32": "f"}.get(name)
    if form is None:
        return value
    try:
        return struct.unpack(form, struct.pack(form, value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def wrapped(value, name):
    """An int as an integer type holds it, which has fewer bits."""
    least, most = limits(name)
    return (value - least) % (most - least + 1) + least


def is_known(*exprs):
    return all(isinstance(one, tree.Const) for one in exprs)


def cast(expr, name):
    """A cast of one real type to another."""
    if is_known(expr):
        value = expr.value
        if name == "bool":
            return tree.Const(name, bool(value))
        if name in types.FLOATS:
            return tree.Const(name, rounded(float(value), name))
        if expr.type in types.FLOATS:
            least, most = limits(name)
            if math.isfinite(value) and least <= int(value) <= most:
                return tree.Const(name, int(value))
        else:
            return tree.Const(name, wrapped(int(value), name))
    if name == "bool":
        return tree.Binary("bool", "!=", expr, tree.Const(expr.type, 0 if expr.type in types.INTEGERS else 0.0))
    return tree.Cast(name, expr)


def binary(name, sign, a, b, wraps=False):
    """A C operator on two operands of one type that gives this type; not of float16."""
    if is_known(a, b) and name in types.INTEGERS + types.FLOATS:
        if sign in _PLAIN:
            value = _PLAIN[sign](a.value, b.value)
            return tree.Const(name, wrapped(value, name) if name in types.INTEGERS else rounded(value, name))
        if sign == "/" and b.value:
            return tree.Const(name, rounded(a.value / b.value, name))
    return tree.Binary(name, sign, a, b, wraps)


def compare(sign, a, b):
    """A comparison of two real operands of one type."""
    if is_known(a, b):
        return tree.Const("bool", _COMPARE[sign](a.value, b.value))
    if a.type == "float16":
        a, b = tree.Cast("float32", a), tree.Cast("float32", b)
    return tree.Binary("bool", sign, a, b)


def logic(op, a, b):
    """a && b, a || b, a != b of two bools; of one that is known now, nothing is left to compute."""
    for one, other in ((a, b), (b, a)):
        if is_known(one):
            if op == "!=":
                return negated(other) if one.value else other
            return other if bool(one.value) == (op == "&&") else one
    return tree.Binary("bool", op, a, b)


def negated(cond):
    """!cond of a bool."""
    return tree.Const("bool", not cond.value) if is_known(cond) else tree.Unary("bool", "!", cond)


def negative(expr):
    """-a of a number that does not wrap: one that is not known, or a float."""
    if is_known(expr) and expr.type in types.FLOATS:
        return tree.Const(expr.type, -expr.value)
    return tree.Unary(expr.type, "-", expr)
