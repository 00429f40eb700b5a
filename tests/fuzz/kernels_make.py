"""Expressions of random kernels."""
import dataclasses
import math

from kernels_types import FLOATS, INTEGERS, STRONG, forms, kind, limits, result
from kernels_write import E, S, cast, fitted, form_of, guarded, number

DTYPES = {name: name.rstrip("_") for name in STRONG}  # NumPy's names of the types of elements
ODD_NAMES = """double register char static kernel main size_t half uint y I complex_ errno M_PI exp log sizeof goto NULL
x_shape0 a0_shape0 a0_stride0 _t1 _i1 o0_given i64 f32 u8 drupe_g0 drupe_id0 drupe_failed v1_0 v1_shape0 größe λ case_ k
""".split()
_WHOLE = (0, 1, 2, 3, 5, 7, 8, 10, 63, 100, -1, -2, -3, -7, -8, -100)
_LARGE = (127, 128, 255, 256, 1000, -129, 32767, 65536, 2**31 - 1, -2**31, 2**31, 2**40)
_REAL = (0.0, 1.0, 2.0, 0.5, -0.5, 0.1, 3.7, -1.5, 2.5, -2.5, 100.25, -0.0, 1e-3, 1e6, 65504.0, 1e30, 1e-40)


@dataclasses.dataclass
class Variable:
    name: str
    type: str
    low: "int | None" = None
    high: "int | None" = None
    fixed: bool = False  # nothing assigns to it

    def read(self):
        return E(self.name, [], self.type, self.low, self.high)


@dataclasses.dataclass
class Row:
    """Elements that an index is good for: at least `length` of them in each dimension."""
    name: str
    type: str
    shape: tuple
    writable: bool = False
    root: str = ""  # of what it is a view


@dataclasses.dataclass
class Items:
    """A variable that is a tuple, maybe a named one; of its items the types and bounds count."""
    name: str
    items: list
    fields: tuple = ()

    def read(self, at):
        one = self.items[at]
        place = "." + self.fields[at] if self.fields else "[%d]" % at
        return E(self.name + place, [], one.type, one.low, one.high)


class Expressions:
    """Makes expressions of what is in scope: `variables`, `rows`, `tuples`, `helpers`; `emit` takes statements that go
    before."""

    def __init__(self, numbers, pool, constants):
        self.numbers, self.pool, self.forms = numbers, pool, forms(tuple(pool))
        self.variables, self.rows, self.tuples, self.helpers, self.constants = [], [], [], [], constants
        self.block, self.named, self.line_names = [], 0, set()

    def emit(self, stmt):
        self.block.append(stmt)

    def fresh(self):
        """A name; some of those that texts in C have a use for."""
        self.named += 1
        if self.numbers.random() < 0.08:
            odd = self.numbers.choice(ODD_NAMES)
            if odd not in self.line_names:
                self.line_names.add(odd)
                return odd
        return "v%d" % self.named

    def some_type(self):
        """Rather one of what is in scope."""
        if self.numbers.random() < 0.6:
            here = [one.type for one in (*self.variables, *self.rows) if one.type in self.pool]
            if here:
                return self.numbers.choice(here)
        return self.numbers.choice(self.pool)

    # --- Leaves ---

    def literal(self, name):
        pick = self.numbers.choice
        if kind(name) == 0:
            value = pick((True, False))
            return number(value, "bool") if name == "bool" else E("np.bool_(%r)" % value, [], name)
        if kind(name) == 1:
            value = pick(_WHOLE + _LARGE) if self.numbers.random() < 0.3 else pick(_WHOLE)
            if name != "int":
                low, high = limits(name)
                value = pick([one for one in _WHOLE + _LARGE + (low, high) if low <= one <= high])
            return number(value, name)
        value = pick(_REAL)
        if name == "float16" and abs(value) > 65504:
            value = 7.0
        return number(complex(value, pick(_REAL[:8])) if kind(name) == 3 else value, name)

    def leaf(self, name):
        """A variable, an element, a constant, a number."""
        found = [one.read for one in self.variables if one.type == name]
        found += [lambda one=one: self.element(one) for one in self.rows if one.type == name for _ in "12"]
        found += [one.read for one in self.constants if one.type == name]
        found += [lambda group=group, at=at: group.read(at) for group in self.tuples
                  for at, one in enumerate(group.items) if one.type == name]
        if not found or self.numbers.random() < 0.2:
            return self.literal(name)
        return self.numbers.choice(found)()

    def index(self, length):
        """An int for a dimension of at least so many elements."""
        choice = self.numbers.random()
        if choice < 0.35:
            return number(self.numbers.randrange(-length, length), "int")
        strong = [one for one in self.pool if one in INTEGERS]
        if choice < 0.5 and strong:
            name = self.numbers.choice(strong)
            return E("({0} %% np.%s(%d))" % (name, length), [self.expr(name, 1)], name)
        e = self.expr("int", 1) if choice < 0.8 else self.leaf("int")
        return fitted(e, -length if self.numbers.random() < 0.5 else 0, length - 1, self.numbers)

    def element(self, row):
        places = [self.index(length) for length in row.shape]
        marks = ["{%d}" % at for at in range(len(places))]
        separator = "][" if self.numbers.random() < 0.2 else ", "
        return E("%s[%s]" % (row.name, separator.join(marks)), places, row.type)

    # --- Conditions ---

    def test(self, depth):
        """Something that an `if` asks."""
        choice = self.numbers.random()
        if choice < 0.12:
            return self.expr(self.some_type(), depth - 1)
        if choice < 0.3 and depth > 0:
            count = self.numbers.choice((2, 2, 3))
            parts = [self.test(depth - 1) for _ in range(count)]
            word = self.numbers.choice((" and ", " or "))
            return E("(%s)" % word.join("{%d}" % at for at in range(count)), parts, "bool")
        if choice < 0.38:
            return E("(not {0})", [self.test(depth - 1)], "bool")
        if choice < 0.5:
            return self.chain(depth)
        if choice < 0.56:
            return self.among(depth)
        return self.comparison(depth)

    def comparison(self, depth):
        a, b = self.some_type(), self.some_type()
        sign = self.numbers.choice(("<", "<=", ">", ">=", "==", "!="))
        if 3 in (kind(a), kind(b)):
            sign = self.numbers.choice(("==", "!="))
        parts = [self.expr(a, depth - 1), self.expr(b, depth - 1)]
        return E("({0} %s {1})" % sign, parts, result("({0} %s {1})" % sign, a, b) or "bool")

    def chain(self, depth):
        reals = [one for one in self.pool if kind(one) < 3]
        parts = [self.expr(self.numbers.choice(reals), depth - 1) for _ in range(3)]
        signs = [self.numbers.choice(("<", "<=", ">", ">=", "==", "!=")) for _ in "12"]
        return E("({0} %s {1} %s {2})" % tuple(signs), parts, "bool")

    def among(self, depth):
        name = self.some_type()
        made = self.leaf if kind(name) < 2 else self.literal  # Python finds the very same NaN
        parts = [self.expr(name, depth - 1)] + [made(name) for _ in range(self.numbers.choice((1, 2, 3)))]
        marks = "".join("{%d}, " % at for at in range(1, len(parts)))
        return E("({0} %s (%s))" % (self.numbers.choice(("in", "not in")), marks.rstrip()), parts, "bool")

    # --- Everything ---

    def expr(self, name, depth):
        """An expression of a type."""
        choice = self.numbers.random()
        if depth <= 0 or choice < 0.12:
            return self.leaf(name)
        if choice < 0.2:
            return self.conditional(name, depth)
        if choice < 0.3:
            return self.converted(name, depth) or self.leaf(name)
        if choice < 0.36:
            called = self.called(name, depth)
            if called is not None:
                return called
        if name == "int" and choice < 0.42:
            return self.special_int(depth)
        if name == "bool" and choice < 0.7:
            return E("bool({0})", [self.test(depth - 1)], "bool")
        return self.formed(name, depth) or self.leaf(name)

    def formed(self, name, depth):
        every = self.forms.of.get(name)
        if not every:
            return self.converted(name, depth)
        form, operands = self.numbers.choice(every)
        return self.of_form(form, self.numbers.choice(operands), depth)

    def of_form(self, form, names, depth):
        parts = [self.expr(one, depth - 1) for one in names]
        return form_of(form, parts, self.numbers)

    def conditional(self, name, depth):
        parts = [self.test(depth - 1), self.expr(name, depth - 1), self.expr(name, depth - 1)]
        bounds = (None, None) if parts[1].low is None else \
            (min(one.low for one in parts[1:]), max(one.high for one in parts[1:]))
        return E("({1} if {0} else {2})", parts, name, *bounds)

    def converted(self, name, depth):
        """An expression of another type, cast."""
        other = self.some_type()
        e = self.expr(other, depth - 1)
        if kind(other) == 2 and kind(name) == 1:
            return guarded(self.in_variable(e), name, self.numbers)
        done = cast(e, name, self.numbers)
        if done is not None and done is not e and name in STRONG and other in STRONG and self.numbers.random() < 0.3:
            return E("{0}.astype(np.%s)" % name, [e], name)
        return done

    def in_variable(self, e):
        if not e.parts and e.form.isidentifier():
            return e
        name = self.fresh()
        self.emit(S(name + " = {0}", [e]))
        variable = Variable(name, e.type, e.low, e.high, True)
        return variable.read()

    def called(self, name, depth):
        """A call of a function that gives this type."""
        fit = [one for one in self.helpers if one.result == (name,) and self.row_for(one) is not False]
        if not fit:
            return None
        helper = self.numbers.choice(fit)
        text, parts = self.call_of(helper, depth)
        return E(text, parts, name, *helper.bounds[0])

    def row_for(self, helper):
        """A row that a helper can be given; None where it takes none, and False where there is none."""
        if helper.row is None:
            return None
        fit = [one for one in self.rows if one.type == helper.row.type and len(one.shape) == 1 and
               one.shape[0] >= helper.row.shape[0] and one.writable]
        return self.numbers.choice(fit) if fit else False

    def call_of(self, helper, depth):
        """(text, parts) of a call."""
        parts, words = [], []
        for one in helper.taken:
            if one.name in helper.defaults and self.numbers.random() < 0.5:
                break
            e = self.expr(one.type, depth - 1)
            parts.append(fitted(e, one.low, one.high, self.numbers) if one.low is not None else e)
            words.append("{%d}" % (len(parts) - 1))
        if len(words) > 1 and self.numbers.random() < 0.2:
            words[-1] = "%s=%s" % (helper.taken[len(words) - 1].name, words[-1])
        row = self.row_for(helper)
        return "%s(%s)" % (helper.name, ", ".join(([row.name] if row else []) + words)), parts

    def special_int(self, depth):
        """A Python int that only some forms give."""
        choice = self.numbers.randrange(5)
        if choice == 0:
            parts = [fitted(self.expr("int", depth - 1), -30, 30, self.numbers)]
            power = self.numbers.choice((0, 1, 2, 3, 4))
            return E("({0} ** %d)" % power, parts, "int", -30**power, 30**power)
        if choice == 1:
            parts = [fitted(self.expr("int", depth - 1), -9, 9, self.numbers),
                     fitted(self.expr("int", depth - 1), 0, 5, self.numbers)]
            return E(self.numbers.choice(("({0} ** {1})", "pow({0}, {1})")), parts, "int", -9**5, 9**5)
        if choice == 2 and self.rows:
            row = self.numbers.choice(self.rows)
            return E(self.numbers.choice(("len(%s)", "%s.shape[0]", "%s.shape[-1]", "%s.size", "%s.ndim")) % row.name,
                     [], "int", 1, 200)
        if choice == 3:
            group = [one for one in self.tuples if len({item.type for item in one.items}) == 1 and
                     one.items[0].type == "int"]
            if group:
                one = self.numbers.choice(group)
                return E(one.name + "[{0}]", [self.index(len(one.items))], "int", min(i.low for i in one.items),
                         max(i.high for i in one.items))
        floats = [one for one in self.variables if one.type in FLOATS + ("float",)]
        if floats:
            return guarded(self.numbers.choice(floats).read(), "int", self.numbers)
        return E("math.gcd({0}, {1})", [self.leaf("int"), self.leaf("int")], "int", 0, 1 << 53)


def stored(e, dtype, numbers):
    """An expression as it can be stored into an element of a type; None where it cannot without a look."""
    name = "bool_" if dtype == "bool" else dtype
    if kind(e.type) == 3 and kind(name) < 3:
        return None
    if kind(e.type) == 2 and kind(name) == 1:
        return None
    if e.low is not None and kind(name) == 1:
        low, high = limits(name)
        return fitted(e, max(low, -(1 << 53)), min(high, 1 << 53), numbers)
    return e


def finite(value):
    return not isinstance(value, float) or math.isfinite(value)
