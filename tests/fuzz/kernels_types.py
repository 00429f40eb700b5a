"""What an operation gives, asked of NumPy: types of expressions in random kernels, and which forms give which type.

A type is a name: "bool", "int", "float" and "complex" are Python's, "bool_", "int8" ... "complex128" NumPy's. A form
is a text with places for expressions, such as "({0} + {1})".
"""
import functools
import itertools
import math
import warnings

import numpy as np

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
STRONG = ("bool_",) + INTEGERS + FLOATS + COMPLEX
WEAK = ("bool", "int", "float", "complex")
TYPES = WEAK + STRONG

ONES = {"bool": True, "int": 1, "float": 1.0, "complex": 1j, **{name: getattr(np, name)(1) for name in STRONG}}
_NAMES = {type(one): name for name, one in ONES.items()}

ARITHMETIC = ["({0} %s {1})" % sign for sign in "+ - * / // % & | ^ << >>".split()]
COMPARISONS = ["({0} %s {1})" % sign for sign in "< <= > >= == !=".split()]
UNARY = ["(-{0})", "(+{0})", "(~{0})", "abs({0})", "({0}).real", "({0}).imag", "({0}).conjugate()"]
SAME = ["min({0}, {1})", "max({0}, {1})", "({0} and {1})", "({0} or {1})", "sum(({0}, {1}))", "max({0}, {1}, {2})",
        "({0} or {1} or {2})"]
NUMPY_ONE = ["np.%s({0})" % name for name in """absolute fabs negative positive sign floor ceil trunc rint sqrt square
reciprocal isnan isinf isfinite signbit logical_not invert conjugate""".split()]
NUMPY_TWO = ["np.%s({0}, {1})" % name for name in """fmod copysign nextafter floor_divide remainder
add subtract multiply divide bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd logical_and logical_or
logical_xor less greater_equal not_equal""".split()]
# Which of 0.0 and -0.0 is less is anyone's guess, and not seen behind an addition.
NUMPY_TWO += ["(np.%s({0}, {1}) + 0)" % name for name in "maximum minimum fmax fmin".split()]
# where() gives arrays, of which some operations round otherwise.
NUMPY_THREE = ["np.%s(np.where({0}, {1}, {2}))" % name for name in STRONG] + ["(np.clip({0}, {1}, {2}) + 0)"]
MATH_ONE = ["math.%s({0})" % name for name in "sqrt fabs isnan isinf isfinite".split()]
MATH_TWO = ["math.%s({0}, {1})" % name for name in "fmod copysign".split()]
# What need not be exact: each is compared within a few units in the last place.
ROUGH_ONE = ["np.%s({0})" % name for name in """cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos
arctan sinh cosh tanh arcsinh arccosh arctanh degrees radians""".split()]
ROUGH_TWO = ["np.%s({0}, {1})" % name for name in "arctan2 hypot power".split()] + ["({0} ** {1})"]
ROUGH_MATH = ["math.%s({0})" % name for name in """cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan
sinh cosh tanh asinh acosh atanh erf erfc degrees radians""".split()]


def kind(name):
    """0 bool, 1 integer, 2 real, 3 complex."""
    return 0 if name.startswith("bool") else 1 if "int" in name else 2 if name.startswith("float") else 3


def limits(name):
    info = np.iinfo(name)
    return int(info.min), int(info.max)


def name_of(value):
    """The type of a number; of an array without dimensions, that of its element."""
    if isinstance(value, np.ndarray):
        value = value[()]
    return _NAMES.get(type(value))


# Kernels have no order of complex numbers, which NumPy has.
_ORDERED = ("<", "<=", ">", ">=", "min", "max", "np.maximum", "np.minimum", "np.fmax", "np.fmin", "np.less",
            "np.greater_equal", "np.sign", "np.clip", "np.rint")


# What NumPy computes for complex numbers by instructions that round once, where there are such.
_LOOSE = ("np.sqrt", "np.absolute", "abs", "np.square", "np.multiply", "np.divide", "np.reciprocal")


def _is_order(form):
    return form.lstrip("(").partition("(")[0] in _ORDERED or form[5:-5] in _ORDERED


@functools.lru_cache(maxsize=None)
def result(form, *names):
    """The type of what a form gives for operands of these types; None where Python or NumPy refuse."""
    if any(kind(name) == 3 for name in names) and _is_order(form):
        return None
    if names == ("complex", "float64"):
        return None  # Python computes it, whose complex numbers know of no float64 of NumPy's
    if form.startswith("np.power") and any(kind(name) > 1 for name in names):
        return None  # it takes roots where the operator does not
    if form.startswith(_LOOSE) and any(kind(name) == 3 for name in names):
        return None
    if form == "({0} / {1})" and "complex" in names and all(name in WEAK for name in names):
        return None  # kernels divide as NumPy does, which rounds otherwise than Python
    if form.startswith("np.nextafter") and any(kind(name) < 2 or name == "float16" for name in names):
        return None  # float16, of which kernels have none
    if form.startswith("np.reciprocal") and all(kind(name) < 2 for name in names):
        return None  # of 0 it is anything
    spaces = dict(zip("abcd", (ONES[name] for name in names)), np=np, math=math)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return name_of(eval(form.format(*"abcd"), spaces))
    except (TypeError, AttributeError, ValueError):
        return None


@functools.lru_cache(maxsize=4096)
def found(form, pool):
    """result type → the lists of operands' types in the pool that give it."""
    gives = {}
    count = 1 + max(int(one) for one in form.split("{")[1:] and [part[0] for part in form.split("{")[1:]])
    if form in SAME:
        choices = [(name,) * count for name in pool]
    elif "np.where" in form:
        name = form[3:].partition("(")[0]
        choices = [(cond, name, name) for cond in pool if kind(cond) == 0] if name in pool else []
    elif "np.clip" in form:
        choices = [(name,) * 3 for name in pool if kind(name) in (1, 2)]
    else:
        choices = itertools.product(pool, repeat=count)
    for names in choices:
        given = result(form, *names)
        if given is not None:
            gives.setdefault(given, []).append(names)
    return gives


class Forms:
    """The forms that give each type from a pool of types: `of[type]` is a list of (form, lists of operands' types)."""

    def __init__(self, pool, extra=()):
        self.pool, self.of = tuple(pool), {}
        every = (ARITHMETIC * 3 + COMPARISONS + UNARY + SAME + NUMPY_ONE + NUMPY_TWO + NUMPY_THREE + list(extra))
        for form in every:
            for given, names in found(form, self.pool).items():
                self.of.setdefault(given, []).append((form, names))


@functools.lru_cache(maxsize=256)
def forms(pool):
    return Forms(pool)
