"""Random functions as kernels have them, made so that plain Python gives each variable one type.

An E is an expression and an S a statement; both know their parts, so that a function that fails can be made smaller.
Python's integers do not overflow and those of kernels do, so each E of such a type knows its bounds.
"""
from kernels_types import COMPARISONS, INTEGERS, SIGNED, kind, limits, result

MOST = 1 << 53  # of Python's integers: a float64 holds them
INDENT = "    "


class E:
    """An expression. `low` and `high` bound it where it is a Python int or bool."""
    __slots__ = ("form", "parts", "type", "low", "high")

    def __init__(self, form, parts, kind, low=None, high=None):
        self.form, self.parts, self.type, self.low, self.high = form, parts, kind, low, high
        if kind == "bool" and low is None:
            self.low, self.high = 0, 1

    def __str__(self):
        return self.form.format(*map(str, self.parts)) if self.parts else self.form


class S:
    """A statement: a form with expressions, and blocks of (head, statements) below it; the first has no head."""
    __slots__ = ("form", "parts", "blocks")

    def __init__(self, form, parts=(), *blocks):
        self.form, self.parts, self.blocks = form, list(parts), list(blocks)

    def lines(self, indent=INDENT):
        found = []
        texts = [str(one) for one in self.parts]
        for line in (self.form.format(*texts) if texts else self.form).split("\n"):
            found.append(indent + line)
        for head, body in self.blocks:
            if head:
                found.append(indent + (head.format(*texts) if texts else head))
            found += [line for one in body for line in one.lines(indent + INDENT)] or [indent + INDENT + "pass"]
        return found


def number(value, name):
    """A literal of a type."""
    if name in ("bool", "int"):
        return E(repr(value) if value >= 0 else "(%d)" % value, [], name, int(value), int(value))
    if name == "float":
        text = repr(float(value))
        return E("np.%s" % text.lstrip("-") if text.lstrip("-") in ("inf", "nan") else
                 "(%s)" % text if text.startswith("-") else text, [], name)
    if name == "complex":
        return E("complex(%r, %r)" % (complex(value).real, complex(value).imag), [], name)
    if kind(name) == 3:
        return E("np.%s(complex(%r, %r))" % (name, complex(value).real, complex(value).imag), [], name)
    return E("np.%s(%r)" % (name, value), [], name)


def fitted(e, low, high, numbers):
    """A Python int or bool that lies between these."""
    if low <= e.low and e.high <= high:
        return e
    if low <= 0 <= high and high > 0 and (low == 0 or numbers.random() < 0.5):
        span = min(high, numbers.choice((2, 3, 5, 7, 10, 100, 1009))) + 1
        return E("({0} %% %d)" % span, [e], "int", 0, span - 1)
    span = min(high - low, numbers.choice((1, 2, 3, 6, 30, 1009))) + 1
    return E("({0} %% %d + %d)" % (span, low) if low >= 0 else "({0} %% %d - %d)" % (span, -low), [e], "int",
             low, low + span - 1)


def _small(parts, most, numbers):
    return [fitted(one, -most, most, numbers) for one in parts]


def _product(a, b):
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(ends), max(ends)


def _bits(a, b):
    top = 1 << max(abs(one) for one in (a.low, a.high, b.low, b.high)).bit_length()
    return (0 if a.low >= 0 and b.low >= 0 else -top), top - 1


def _not_zero(e, numbers):
    """A divisor of Python's that is no zero; seldom it may be, and Python's error says that nothing is compared."""
    if e.low > 0 or e.high < 0 or numbers.random() < 0.02:
        return e
    span = numbers.choice((3, 4, 9, 50))
    if numbers.random() < 0.3:
        return E("(-({0} %% %d) - 1)" % span, [e], "int", -span, -1)
    return E("({0} %% %d + 1)" % span, [e], "int", 1, span)


def python_ints(form, parts, numbers):
    """A form on Python ints and bools that gives an int: parts that fit, and its bounds."""
    sign = form[5:-5] if form.startswith("({0} ") and form.endswith(" {1})") else form
    if sign in ("+", "-", "*"):
        parts = _small(parts, (1 << 26) if sign == "*" else MOST >> 1, numbers)
        a, b = parts
        low, high = {"+": (a.low + b.low, a.high + b.high), "-": (a.low - b.high, a.high - b.low),
                     "*": _product(a, b)}[sign]
    elif sign in ("//", "%"):
        a, b = parts[0], _not_zero(parts[1], numbers)
        parts, most = [a, b], max(abs(a.low), abs(a.high))
        low, high = (0 if a.low >= 0 and b.low >= 0 else -most, most) if sign == "//" else \
            (min(b.low + 1, 0), max(b.high - 1, 0))
    elif sign in ("<<", ">>"):
        parts = [fitted(parts[0], -(1 << 40), 1 << 40, numbers),
                 fitted(parts[1], 0, 9 if sign == "<<" else 70, numbers)]
        a, b = parts
        low, high = (a.low << b.high if a.low < 0 else a.low, a.high << b.high if a.high > 0 else a.high) \
            if sign == "<<" else (min(a.low, -1 if a.low < 0 else 0), max(a.high, 0))
    elif sign in ("&", "|", "^"):
        low, high = _bits(*parts)
    else:
        return _python_function(form, parts, numbers)
    return parts, low, high


def _python_function(form, parts, numbers):
    a = parts[0]
    most = max(abs(a.low), abs(a.high)) + 1
    if form.startswith(("min", "max", "({0} and", "({0} or")):
        return parts, min(one.low for one in parts), max(one.high for one in parts)
    if form.startswith("sum"):
        parts = _small(parts, MOST >> 1, numbers)
        return parts, sum(one.low for one in parts), sum(one.high for one in parts)
    if form.startswith("abs"):
        return parts, 0, most
    if form.endswith(".imag"):
        return parts, 0, 0
    return parts, -most, most


def form_of(form, parts, numbers):
    """An E of a form whose parts are made to fit; None where that is not possible."""
    names = [one.type for one in parts]
    given = result(form, *names)
    if given is None:
        return None
    if given == "int" and all(one in ("int", "bool") for one in names):
        parts, low, high = python_ints(form, parts, numbers)
        return E(form, parts, given, low, high)
    if form not in COMPARISONS:
        parts = _beside_strong(form, parts, names, numbers)
    if form[5:-5] in ("/", "//", "%") and all(one in ("bool", "int", "float", "complex") for one in names):
        parts = [parts[0], _divisor(parts[1], numbers)]
    if any(one.low is not None and max(abs(one.low), abs(one.high)) > MOST for one in parts):
        parts = [one if one.low is None else fitted(one, -MOST, MOST, numbers) for one in parts]
    return E(form, parts, given) if given != "int" else None


def _divisor(e, numbers):
    if e.low is not None:
        return _not_zero(e, numbers)
    if e.type == "float" and numbers.random() < 0.9:
        return E("(abs({0}) + %s)" % numbers.choice(("1.0", "0.5", "3.0")), [e], "float")
    return e


def _beside_strong(form, parts, names, numbers):
    """A Python int beside an integer of NumPy must fit that."""
    for name in names:
        if name in INTEGERS:
            low, high = limits(name)
            if "shift" in form or "<<" in form or ">>" in form:
                low, high = max(low, -3), min(high, 70)
            parts = [fitted(one, max(low, -MOST), min(high, MOST), numbers) if one.type == "int" else one
                     for one in parts]
    return parts


def cast(e, name, numbers):
    """The expression as another type; None where that takes a look at it first (see guarded) or is not possible."""
    have, want = kind(e.type), kind(name)
    if e.type == name:
        return e
    call = name if name in ("bool", "int", "float", "complex") else "np." + name
    if want == 0 or (have <= 1 and want >= 2) or (have == 2 and want >= 2) or (have == 3 == want):
        if e.type == "float" and name == "int":
            return None
        return E(call + "({0})", [e], name)
    if have <= 1 and want == 1:
        if name == "int":
            return _to_int(e, numbers)
        if e.low is not None:
            low, high = limits(name)
            e = fitted(e, max(low, -MOST), min(high, MOST), numbers)
        return E(call + "({0})", [e], name)
    return None


def _to_int(e, numbers):
    """int(x)"""
    if e.type in ("bool_", "bool"):
        return E("int({0})", [e], "int", 0, 1)
    low, high = limits(e.type)
    if high <= MOST:
        return E("int({0})", [e], "int", low, high)
    if e.type in SIGNED:
        return E("(int({0}) % 1009 - 50)", [e], "int", -50, 958)
    return E("int({0} % np.uint64(1009))", [e], "int", 0, 1008)


def guarded(v, name, numbers):
    """A float in a variable as an integer, where it fits one."""
    low, high = (-10**6, 10**6) if name in ("int", "int64", "int32") else \
        (0, 10**6) if name in ("uint32", "uint64") else limits(name)
    low, high = low + (low < 0), high - 1
    if v.type == "float16":
        high, low = min(high, 60000), max(low, -60000)
    calls = ["int", "int", "round", "math.floor", "math.ceil"] + ["math.trunc"] * (v.type in ("float", "float64"))
    call = "np." + name if name != "int" else numbers.choice(calls)
    other = number(numbers.choice((0, 1, 5)), name)
    text = "(%s({0}) if %d.0 <= {0} <= %d.0 else {1})" % (call, low, high)
    return E(text, [v, other], name, *((low - 1, high + 1) if name == "int" else ()))
