"""Statements of random kernels: each method of Statements named after `_make_` writes one kind."""
import contextlib
import re

from kernels_make import Expressions, Items, Row, Variable, stored
from kernels_types import ARITHMETIC, INTEGERS, STRONG, kind, result
from kernels_write import E, S, fitted, form_of

WIDE = 1 << 20  # of ints in variables that are assigned to again
CHOICES = {"declare": 10, "assign": 6, "change": 6, "swap": 2, "tuple": 2, "unpack": 2, "store": 4, "if": 5, "for": 4,
           "change_element": 3, "swap_elements": 1, "view": 2, "swap_views": 1, "private": 1, "fill": 1, "each": 2,
           "while": 2, "sum": 2, "leave": 2, "several": 1, "odd": 1}


class Statements(Expressions):
    """Writes statements into `block`. `loops` are those around, "for" or "while"; `returns` makes an early return, or
    is None where there may be none."""

    choices = CHOICES

    def __init__(self, numbers, pool, constants):
        super().__init__(numbers, pool, constants)
        self.loops, self.returns, self.budget, self.depth = [], None, 0, 0

    @contextlib.contextmanager
    def inner(self):
        """A block: what is made within ends with it."""
        kept, before = self.block, (list(self.variables), list(self.rows), list(self.tuples))
        self.block, self.depth = [], self.depth + 1
        yield self.block
        self.block, self.depth = kept, self.depth - 1
        self.variables, self.rows, self.tuples = before

    def some(self, most):
        """A few statements."""
        for _ in range(self.numbers.randint(1, most)):
            if self.budget <= 0:
                break
            self.budget -= 1
            name = self.numbers.choices(list(self.choices), list(self.choices.values()))[0]
            getattr(self, "_make_" + name)()
        if not self.block:
            self._make_declare()

    def body(self, most=3):
        with self.inner() as block:
            self.some(most)
        return block

    def wide(self, e):
        """Bounds of a variable that starts as this."""
        if e.type != "int":
            return e.low, e.high
        return min(e.low, -WIDE), max(e.high, WIDE)

    def changeable(self):
        return [one for one in self.variables if not one.fixed]

    def fit(self, e, variable):
        return e if variable.type != "int" else fitted(e, variable.low, variable.high, self.numbers)

    # --- Variables ---

    def _make_declare(self):
        name = self.numbers.choice(self.pool if self.numbers.random() < 0.6 else list(self.forms.of))
        e = self.expr(name, self.numbers.choice((1, 2, 2, 3)))
        variable = Variable(self.fresh(), e.type, *self.wide(e))
        self.emit(S(variable.name + (": %s = {0}" % self.numbers.choice(("int", "float")) if
                                     self.numbers.random() < 0.03 else " = {0}"), [e]))
        self.variables.append(variable)

    def _make_assign(self):
        found = self.changeable()
        if not found:
            return self._make_declare()
        variable = self.numbers.choice(found)
        self.emit(S(variable.name + " = {0}", [self.fit(self.expr(variable.type, 2), variable)]))

    def _make_change(self):
        """variable op= e"""
        found = self.changeable()
        if not found:
            return self._make_declare()
        variable = self.numbers.choice(found)
        done = self.changed(variable.read())
        if done is None:
            return self._make_assign()
        sign, e = done.form[5:-5], done.parts[1]
        if variable.type == "int":
            now = fitted(E(variable.name, [], "int", done.low, done.high), variable.low, variable.high, self.numbers)
            if done.parts[0].form != variable.name:
                return self.emit(S(variable.name + " = {0}", [self.fit(done, variable)]))
            lines = "%s %s= {0}" % (variable.name, sign)
            self.emit(S(lines if now.form == variable.name else lines + "\n%s = {1}" % variable.name, [e, now]))
        else:
            self.emit(S("%s %s= {0}" % (variable.name, sign), [e]))

    def changed(self, e):
        """A form of an expression and another one that gives its type; None where none was found."""
        for _ in range(4):
            other, form = self.some_type(), self.numbers.choice(ARITHMETIC)
            if result(form, e.type, other) == e.type:
                return form_of(form, [e, self.expr(other, 2)], self.numbers)
        return None

    def _make_swap(self):
        """a, b = b, a"""
        found = self.changeable()
        if not found:
            return self._make_declare()
        one = self.numbers.choice(found)
        alike = [v for v in found if (v.type, v.low, v.high) == (one.type, one.low, one.high)]
        picked = self.numbers.sample(alike, min(len(alike), self.numbers.choice((2, 2, 3))))
        values = [v.read() for v in picked[1:] + picked[:1]]
        if len(picked) == 1 or self.numbers.random() < 0.3:
            values = [self.fit(self.expr(v.type, 2), v) for v in picked]
        marks = ", ".join("{%d}" % at for at in range(len(values)))
        left = ", ".join(v.name for v in picked)
        self.emit(S("%s = (%s,)" % ("(%s,)" % left, marks) if len(picked) == 1 else "%s = %s" % (left, marks), values))

    def _make_tuple(self):
        count = self.numbers.choice((2, 3))
        types = [self.some_type()] * count if self.numbers.random() < 0.5 else [self.some_type() for _ in range(count)]
        values = [self.expr(one, 2) for one in types]
        name, marks = self.fresh(), ", ".join("{%d}" % at for at in range(count))
        if self.numbers.random() < 0.2:
            self.emit(S("%s = (%s) if {%d} else (%s)" % (name, marks, count, marks), [*values, self.test(1)]))
        elif self.numbers.random() < 0.2:
            self.emit(S("%s = ({0},) + (%s,)" % (name, marks.partition(", ")[2]), values))
        else:
            self.emit(S("%s = (%s)" % (name, marks), values))
        self.tuples.append(Items(name, [Variable(name, e.type, e.low, e.high, True) for e in values]))

    def _make_unpack(self):
        if not self.tuples:
            return self._make_tuple()
        group = self.numbers.choice(self.tuples)
        names = [Variable(self.fresh(), one.type, one.low, one.high, True) for one in group.items]
        self.emit(S("%s = %s" % (", ".join(one.name for one in names), group.name)))
        self.variables += names

    # --- Elements ---

    def _writable(self):
        return [one for one in self.rows if one.writable]

    def place(self, row):
        e = self.element(row)
        return e.form, e.parts

    def _make_store(self):
        found = self._writable()
        if not found:
            return self._make_declare()
        row = self.numbers.choice(found)
        e = self.expr(row.type if self.numbers.random() < 0.6 else self.some_type(), 2)
        e = stored(e, row.type, self.numbers)
        if e is None:
            e = self.expr(row.type, 2)
        form, parts = self.place(row)
        self.emit(S("%s = {%d}" % (form, len(parts)), [*parts, e]))

    def _make_change_element(self):
        found = self._writable()
        if not found:
            return self._make_declare()
        row = self.numbers.choice(found)
        form, parts = self.place(row)
        done = self.changed(E("_", [], row.type))
        if done is None or done.parts[0].form != "_":
            return self._make_store()
        self.emit(S("%s %s= {%d}" % (form, done.form[5:-5], len(parts)), [*parts, done.parts[1]]))

    def _make_view(self):
        found = [one for one in self.rows if len(one.shape) == 1 and one.shape[0] >= 3] + \
            [one for one in self.rows if len(one.shape) == 2]
        if not found:
            return self._make_declare()
        row, name = self.numbers.choice(found), self.fresh()
        if len(row.shape) == 2:
            if self.numbers.random() < 0.5:
                self.emit(S("%s = %s[{0}]" % (name, row.name), [self.index(row.shape[0])]))
                self.rows.append(Row(name, row.type, row.shape[1:], row.writable, row.root))
            else:
                self.emit(S("%s = %s[:, {0}]" % (name, row.name), [self.index(row.shape[1])]))
                self.rows.append(Row(name, row.type, row.shape[:1], row.writable, row.root))
            return
        key, parts, length = self.slice(row.shape[0])
        self.emit(S("%s = %s[%s]" % (name, row.name, key), parts))
        self.rows.append(Row(name, row.type, (length,), row.writable, row.root))

    def slice(self, length):
        """(text, parts, number of elements) of a slice of so many or more elements; at least one stays. Rows may be
        longer than is known, so that ends that count from the end are of no use but for a start."""
        choice, pick = self.numbers.random(), self.numbers.randrange
        if choice < 0.3:
            start = pick(0, length - 1)
            return "%d:" % start, [], length - start
        if choice < 0.5:
            stop = pick(1, length + 1)
            return ":%d" % stop, [], stop
        if choice < 0.6:
            start = -pick(1, length)
            return "%d:" % start, [], -start
        if choice < 0.75:
            step = self.numbers.choice((2, 3))
            return "::%d" % step, [], (length + step - 1) // step
        if choice < 0.85:
            return ":-1", [], length - 1
        start = self.in_variable(fitted(self.expr("int", 1), 0, length - 2, self.numbers))
        return "{0}:{0} + 2", [start], 2

    def _make_private(self):
        """An array of the function's own."""
        name, dtype = self.fresh(), self.numbers.choice([one for one in self.pool if one in STRONG])
        shape = self.numbers.choice(((3,), (5,), (2, 3)))
        self.emit(S("%s = np.zeros(%s, np.%s)" % (name, shape if len(shape) > 1 else shape[0], dtype)))
        self.rows.append(Row(name, dtype, shape, True, name))

    def _make_swap_views(self):
        """a, b = b, a of two views."""
        found = [one for one in self.rows if one.name[0] in "v_" and len(one.shape) == 1]
        if len(found) < 2:
            return self._make_view()
        a = self.numbers.choice(found)
        alike = [one for one in found if (one.type, one.writable) == (a.type, a.writable) and one is not a]
        if not alike:
            return self._make_view()
        b = self.numbers.choice(alike)
        self.emit(S("%s, %s = %s, %s" % (a.name, b.name, b.name, a.name)))
        least = (min(a.shape[0], b.shape[0]),)
        self.rows = [one for one in self.rows if one is not a and one is not b]
        self.rows += [Row(one.name, a.type, least, a.writable) for one in (a, b)]

    def _make_swap_elements(self):
        found = self._writable()
        if not found:
            return self._make_declare()
        row = self.numbers.choice(found)
        places = [self.element(row) for _ in "12"]
        forms = [places[0].form, _moved(places[1].form, len(places[0].parts))]
        self.emit(S("%s, %s = %s, %s" % (*forms, *reversed(forms)), places[0].parts + places[1].parts))

    def _make_fill(self):
        found = [one for one in self._writable() if len(one.shape) == 1]
        if not found:
            return self._make_declare()
        row = self.numbers.choice(found)
        start = self.numbers.randrange(0, row.shape[0])
        stop = self.numbers.randrange(start, row.shape[0]) + 1
        e = stored(self.expr(self.some_type(), 1), row.type, self.numbers) or self.expr(row.type, 1)
        other = [one for one in self.rows if one.type == row.type and len(one.shape) == 1
                 and one.shape[0] >= stop - start and row.root and one.root
                 and (one.root != row.root or one.name == row.name)]  # views that overlap are copied in some order
        if other and self.numbers.random() < 0.5:
            self.emit(S("%s[%d:%d] = %s[:%d]" % (row.name, start, stop, self.numbers.choice(other).name, stop - start)))
        else:
            self.emit(S("%s[%d:%d] = {0}" % (row.name, start, stop), [e]))

    # --- Branches ---

    def _make_if(self):
        if self.depth > 2:
            return self._make_assign()
        parts = [self.test(2)]
        blocks = [("", self.body())]
        while self.numbers.random() < 0.25:
            parts.append(self.test(1))
            blocks.append(("elif {%d}:" % (len(parts) - 1), self.body()))
        if self.numbers.random() < 0.5:
            blocks.append(("else:", self.body()))
        self.emit(S("if {0}:", parts, *blocks))

    def _make_leave(self):
        """break, continue or return, if..."""
        words = [] if not self.loops or self.depth < 1 else ["break", "continue"]
        if self.returns is not None:
            words.append("return")
        if not words:
            return self._make_assign()
        word, test = self.numbers.choice(words), self.test(2)
        with self.inner() as block:
            if self.numbers.random() < 0.4:
                self._make_assign()
            self.emit(self.returns() if word == "return" else S(word))
        self.emit(S("if {0}:", [test], ("", block)))

    # --- Loops ---

    def looped(self, word):
        self.loops.append(word)
        block = self.body()
        self.loops.pop()
        return block

    def otherwise(self):
        return [("else:", self.body(2))] if self.numbers.random() < 0.2 else []

    def _make_for(self):
        if len(self.loops) > 1 or self.depth > 2:
            return self._make_assign()
        parts, text, low, high = self.range()
        name = self.fresh()
        with self.inner():
            self.variables.append(Variable(name, "int", low, high, self.numbers.random() < 0.7))
            block = self.looped("for")
        self.emit(S("for %s in %s:" % (name, text), parts, ("", block), *self.otherwise()))

    def range(self):
        """(parts, text, bounds of the variable)."""
        choice = self.numbers.random()
        e = fitted(self.expr("int", 1), -2, 5, self.numbers)
        strong = [one for one in self.pool if one in INTEGERS]
        if choice < 0.1 and strong:
            name = self.numbers.choice(strong)
            return [self.expr(name, 1)], "range({0} %% np.%s(4))" % name, 0, 4
        if choice < 0.4:
            return [e], "range({0})", 0, 5
        if choice < 0.7:
            start = fitted(self.expr("int", 1), -4, 4, self.numbers)
            other = E("({0} + {1})", [start, e], "int", start.low + e.low, start.high + e.high)
            return [start, other], "range({0}, {1})", start.low, other.high + 1
        step = self.numbers.choice((2, 3, -1, -2, 1))
        start, stop = self.numbers.randrange(-4, 7), self.numbers.randrange(-4, 7)
        if choice < 0.9:
            return [], "range(%d, %d, %d)" % (start, stop, step), min(start, stop), max(start, stop)
        step = fitted(self.expr("int", 1), 1, 3, self.numbers)
        step = E("({0} % 2 + 1)", [step], "int", 1, 2)  # it must be known to be positive
        return [step, e], "range(%d, {1}, {0})" % start, start, max(start, 5)

    def _make_each(self):
        """A loop over a row or a tuple."""
        if len(self.loops) > 1 or self.depth > 2:
            return self._make_assign()
        rows, name = [one for one in self.rows if len(one.shape) == 1 and one.shape[0] <= 6], self.fresh()
        if rows and self.numbers.random() < 0.6:
            row = self.numbers.choice(rows)
            with self.inner():
                self.variables.append(Variable(name, row.type, fixed=True))
                block = self.looped("for")
            return self.emit(S("for %s in %s:" % (name, row.name), [], ("", block), *self.otherwise()))
        return self._over_tuple(name)

    def _over_tuple(self, name):
        kept, self.loops = self.loops, []  # it is unrolled, and has no break
        returns, self.returns = self.returns, None
        values = [self.expr(one, 1) for one in [self.some_type()] * self.numbers.choice((2, 3))]
        bounds = (min(e.low for e in values), max(e.high for e in values)) if values[0].low is not None else ()
        marks = ", ".join("{%d}" % at for at in range(len(values)))
        text = "for %s in (%s):" % (name, marks)
        with self.inner():
            self.variables.append(Variable(name, values[0].type, *(bounds or (None, None)), True))
            if self.numbers.random() < 0.3:
                place = self.fresh()
                text = "for %s, %s in enumerate((%s)):" % (place, name, marks)
                self.variables.append(Variable(place, "int", 0, 2, True))
            elif self.numbers.random() < 0.2:
                place = self.fresh()
                text = "for %s, %s in zip(%s, (%s)):" % (place, name, (1, 5, -3)[:len(values)], marks)
                self.variables.append(Variable(place, "int", -3, 5, True))
            block = self.body(2)
        self.loops, self.returns = kept, returns
        self.emit(S(text, values, ("", block)))

    def _make_while(self):
        if len(self.loops) > 1 or self.depth > 2:
            return self._make_assign()
        name, most = self.fresh(), self.numbers.randint(1, 4)
        self.emit(S(name + " = 0"))
        test = self.test(1) if self.numbers.random() < 0.6 else None
        self.variables.append(Variable(name, "int", 0, most + 1, True))
        count = "\n    %s += 1" % name  # with the head, so that a function made smaller ends, too
        block = self.looped("while")
        if self.numbers.random() < 0.2:
            head = self.numbers.choice(("while True:", "while 1:")) + count
            return self.emit(S(head + "\n    if %s > %d:\n        break" % (name, most), [], ("", block)))
        head = "while %s < %d%s:" % (name, most, " and {0}" if test else "")
        self.emit(S(head + count, [test] if test else [], ("", block), *self.otherwise()))

    def _make_sum(self):
        """acc = 0, and elements that are added: the variable gets their type."""
        rows = [one for one in self.rows if len(one.shape) == 1 and one.shape[0] <= 6 and kind(one.type) > 0]
        if not rows or self.depth > 2:
            return self._make_assign()
        row, name, at = self.numbers.choice(rows), self.fresh(), self.fresh()
        start = "0" if kind(row.type) == 1 else self.numbers.choice(("0", "0.0"))
        e = self.expr(row.type, 1) if self.numbers.random() < 0.3 and row.type not in INTEGERS else E("1", [], row.type)
        text = "%s %s= %s[%s]%s" % (name, self.numbers.choice("+-"), row.name, at,
                                    "" if e.form == "1" else " * {0}")
        self.emit(S("%s = %s" % (name, start)))
        self.emit(S("for %s in range(%s):" % (at, self.numbers.choice(("len(%s)" % row.name, row.name + ".shape[0]",
                                                                       "1", "2" if row.shape[0] > 1 else "1"))), [],
                    ("", [S(text, [e])])))
        self.variables.append(Variable(name, row.type))

    # --- Others ---

    def _make_several(self):
        """a, b = helper(...)"""
        found = [one for one in self.helpers if len(one.result) > 1 and self.row_for(one) is not False]
        if not found:
            return self._make_declare()
        helper = self.numbers.choice(found)
        call, parts = self.call_of(helper, 2)
        names = [Variable(self.fresh(), one, *bounds, True) for one, bounds in zip(helper.result, helper.bounds)]
        self.emit(S("%s = %s" % (", ".join(one.name for one in names), call), parts))
        self.variables += names

    def _make_odd(self):
        """What does nothing, and a pair of quotient and remainder."""
        choice = self.numbers.randrange(4)
        if choice == 0:
            self.emit(S("pass"))
        elif choice == 1:
            self.emit(S("\"a text that stands alone\""))
        elif choice == 2:
            self.emit(S("{0}", [self.expr(self.some_type(), 2)]))
        else:
            name = self.some_type()
            if kind(name) != 1 or name == "int":
                return
            a, b = Variable(self.fresh(), name), Variable(self.fresh(), name)
            self.emit(S("%s, %s = %s({0}, {1})" % (a.name, b.name, self.numbers.choice(("divmod", "divmod"))),
                        [self.expr(name, 2), self.expr(name, 1)]))
            self.variables += [a, b]


def _moved(form, count):
    """A form whose places begin so many later."""
    return re.sub(r"\{(\d)\}", lambda match: "{%d}" % (int(match[1]) + count), form)
