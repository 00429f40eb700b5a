"""Random programs: device functions, and a kernel that calls them all for its work-item.

A function gets the number of the work-item, inputs, elements of its own to write to, and gives results by writing into
rows of outputs: what it does shows there.
"""
import collections
import dataclasses
import random

import numpy as np

from drupe.kernel_api import LocalAccessor
from kernels_body import WIDE, Statements
from kernels_groups import GROUP, Grouped
from kernels_make import DTYPES, Items, Row, Variable
from kernels_types import FLOATS, INTEGERS, ROUGH_MATH, ROUGH_ONE, ROUGH_TWO, STRONG, WEAK, kind, limits, result
from kernels_write import E, S, fitted, number

ITEMS, COLUMNS, SCRATCH = 20, 5, 6  # work-items; the second dimension of inputs; elements of a function's own
_SPECIAL = {2: (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.5, -1.5, 1e-7, 6e4, 3.0, 1e5, 7.25)}
TUPLE = "Triple = collections.namedtuple('Triple', 'a b c')"
_Triple = collections.namedtuple("Triple", "a b c")
OUTPUTS = {"bool": "bool", "int": "int64", "float": "float64", "complex": "complex128", **DTYPES}


def values(name, shape, seed):
    """Elements of all kinds: extremes, small numbers, large ones, NaN."""
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape))
    if kind(name) == 0:
        return rng.integers(0, 2, count).astype("bool").reshape(shape)
    if kind(name) == 1:
        low, high = limits(name)
        found = rng.integers(low, high, count, dtype=name, endpoint=True)
        small = rng.integers(max(low, -9), 10, count).astype(name)
        found = np.where(rng.random(count) < 0.6, small, found)
        special = np.array([low, high, 0, 1, high - 1, low + 1], dtype=name)
    else:
        with np.errstate(all="ignore"):
            scale = 10.0 ** rng.integers(-5, 5, count)
            found = np.where(rng.random(count) < 0.5, rng.integers(-20, 20, count) / 2, rng.normal(size=count) * scale)
            special = np.array(_SPECIAL[2])
            if kind(name) == 3:
                found = found + 1j * rng.permutation(found)
                special = special + 1j * rng.permutation(special)
            found, special = found.astype(name), special.astype(name)
    places = rng.random(count) < 0.25
    found[places] = rng.choice(special, int(places.sum()))
    return found.reshape(shape)


@dataclasses.dataclass
class Helper:
    """A function that others call. `taken` are its parameters, `result` the types of what it gives."""
    name: str
    taken: list
    result: tuple = ()
    bounds: list = None
    body: list = None
    defaults: dict = dataclasses.field(default_factory=dict)  # of the last parameters, as text
    row: "Row | None" = None  # its first parameter, to which it may write

    def lines(self):
        words = [one.name + ("=" + self.defaults[one.name] if one.name in self.defaults else "") for one in self.taken]
        head = "def %s(%s):" % (self.name, ", ".join(([self.row.name] if self.row else []) + words))
        return [head, *(line for one in self.body for line in one.lines())]


@dataclasses.dataclass
class Function:
    """`arguments`: (parameter, what the kernel passes); `outputs`: (type of elements, row); `scratch` likewise."""
    name: str
    arguments: list
    body: list
    outputs: list
    scratch: list
    helpers: list

    def lines(self):
        found = [line for helper in self.helpers for line in (*helper.lines(), "", "")]
        return found + ["def %s(%s):" % (self.name, ", ".join(["i"] + [one for one, _ in self.arguments]))] + [
            line for one in self.body for line in one.lines()]

    def call(self):
        return "%s(%s)" % (self.name, ", ".join(["i"] + [what for _, what in self.arguments]))


def _constants(numbers, pool):
    """Global variables that kernels read: (Variable, the text that makes it)."""
    found = []
    for at, name in enumerate(numbers.sample(pool, 3)):
        if name in WEAK:
            value = {"bool": True, "int": numbers.choice((3, -7, 100, 12)), "float": numbers.choice((0.1, -2.5, 3.0)),
                     "complex": complex(1.5, -2.0)}[name]
            e = number(value, name)
        else:
            value = {0: True, 1: numbers.choice((1, 7, 100)), 2: numbers.choice((0.5, 3.25, 7.0)), 3: 1.5}[kind(name)]
            e = E("np.%s(%r)" % (name, value), [], name)
        found.append((Variable("G%d" % at, name, e.low, e.high, True), "G%d = %s" % (at, e)))
    return found


class Program:
    """Functions made of one seed. `text()` is what is compiled, and `argument()` what a parameter of it is given."""

    def __init__(self, seed, count=50, rough=False, pool=None, groups=False):
        self.numbers, self.seed, self.rough, self.groups = random.Random(seed), seed, rough, groups
        self.pool = pool or self._some_types()
        self.constants = _constants(self.numbers, self.pool)
        strong = [one for one in self.pool if one in STRONG]
        # Of few types, as a kernel on the host has up to 64 parameters.
        self.scalars, self.scratch = self.numbers.sample(strong, 2), self.numbers.sample(strong, 2)
        self.strided = self.numbers.choice(strong)
        self.rows, self.functions = {}, []
        for at in range(count):
            self.functions.append(self.rough_function(at) if rough else self.function(at))

    def _some_types(self):
        strong = self.numbers.sample(STRONG, 4)
        if not any(one in INTEGERS for one in strong):
            strong[0] = self.numbers.choice(INTEGERS)
        if not any(one in FLOATS for one in strong):
            strong[1] = self.numbers.choice(FLOATS)
        weak = ["int", "float"] + [one for one in ("bool", "complex") if self.numbers.random() < 0.4]
        return list(dict.fromkeys(strong + weak))

    # --- Parts of a function ---

    def statements(self, kind=Statements):
        return kind(self.numbers, self.pool, [one for one, _text in self.constants])

    def helper(self, name, before):
        numbers, make = self.numbers, self.statements()
        taken = []
        for at in range(numbers.randint(1, 3)):
            chosen = numbers.choice(self.pool)
            taken.append(Variable("p%d" % at, chosen, *((-WIDE, WIDE) if chosen == "int" else (None, None)),
                                  numbers.random() < 0.6))
        made = Helper(name, taken)
        if numbers.random() < 0.2:
            made.defaults[taken[-1].name] = str(make.literal(taken[-1].type)) if taken[-1].type != "int" else "5"
        if numbers.random() < 0.25:
            made.row = Row("r", numbers.choice([one for one in self.pool if one in STRONG]), (2,), True, "r")
            make.rows.append(made.row)
        make.variables, make.helpers = list(taken), list(before)
        make.budget = numbers.randint(1, 4)
        several = numbers.random() < 0.25
        types = [numbers.choice(self.pool) for _ in range(2 if several else 1)]
        made.result, made.bounds = tuple(types), [(-WIDE, WIDE) if one == "int" else (None, None) for one in types]

        def leave():
            return S("return {0}", [self.bounded(make, types[0])])

        if not several and numbers.random() < 0.5:
            make.returns = leave
        make.some(3)
        marks = "({0}, {1})" if several else "{0}"
        end = S("return " + marks, [self.bounded(make, one) for one in types])
        made.body = [*make.block, end]
        return made

    def bounded(self, make, name):
        e = make.expr(name, 2)
        return fitted(e, -WIDE, WIDE, self.numbers) if name == "int" else e

    def row_of(self, letter, dtype):
        """The next row of an output or of memory that a function has for itself."""
        key = letter + "_" + dtype
        self.rows[key] = at = self.rows.get(key, -1) + 1
        return at

    def inputs(self, make):
        """Parameters of a function: (name, what it is given), which are put into scope."""
        numbers, given = self.numbers, []
        strong = [one for one in self.pool if one in STRONG]
        for at, name in enumerate(numbers.choice(strong) for _ in range(numbers.randint(1, 3))):
            dtype, parameter, choice = DTYPES[name], "a%d" % at, numbers.random()
            if choice < 0.5:
                given.append((parameter, "x_" + dtype))
                make.rows.append(Row(parameter, name, (ITEMS,), root=parameter))
            elif choice < 0.8:
                given.append((parameter, "m_%s[i]" % dtype))
                make.rows.append(Row(parameter, name, (COLUMNS,), root=parameter))
            else:
                given.append((parameter, "m_" + dtype))
                make.rows.append(Row(parameter, name, (ITEMS, COLUMNS), root=parameter))
        if numbers.random() < 0.4:
            given.append(("n", "n%d" % numbers.randrange(2)))
            make.variables.append(Variable("n", "int", -50, 50, numbers.random() < 0.5))
        if numbers.random() < 0.2:
            given.append(("q", "q"))
            make.variables.append(Variable("q", "float", fixed=numbers.random() < 0.5))
        if numbers.random() < 0.2:
            name = numbers.choice(self.scalars)
            given.append(("s", "s_" + DTYPES[name]))
            make.variables.append(Variable("s", name, fixed=numbers.random() < 0.5))
        if numbers.random() < 0.15:
            letter, name = numbers.choice("tp"), self.scalars[0]
            given.append((letter, letter + "_" + DTYPES[name]))
            items = [Variable("", "int", -9, 9), Variable("", "float"), Variable("", name)]
            make.tuples.append(Items(letter, items, ("a", "b", "c") if letter == "p" else ()))
        return given

    def function(self, at):
        numbers, name, helpers = self.numbers, "f%d" % at, []
        make = self.statements(Grouped if self.groups else Statements)
        for one in range(numbers.choice((0, 0, 0, 1, 1, 2))):
            name = numbers.choice(("h",) * 20 + ("exp", "double", "f")) + "%d_%d" % (at, one)
            helpers.append(self.helper(name, helpers))
        make.helpers = helpers
        name = "f%d" % at
        make.variables.append(Variable("i", "int", 0, ITEMS - 1, True))
        given, scratch, outputs = self.inputs(make), [], []
        if self.groups:
            make.part = numbers.choice(self.scratch)
            given += [("item", "item"), ("part", "part_" + DTYPES[make.part])]
        if numbers.random() < 0.4:
            strong = numbers.choice(self.scratch)
            row = self.row_of("w", DTYPES[strong])
            given.append(("w", "w_%s[%d, i]" % (DTYPES[strong], row)))
            make.rows.append(Row("w", strong, (SCRATCH,), True, "w"))
            scratch.append((DTYPES[strong], row))
        if numbers.random() < 0.4 and not self.groups:
            make.returns = lambda: S("return")
        make.budget = numbers.randint(3, 9)
        make.some(6)
        self.results(make, given, outputs)
        return Function(name, given, make.block, outputs, scratch, helpers)

    def output(self, name, given, outputs):
        dtype = OUTPUTS[name]
        row, parameter = self.row_of("o", dtype), "o%d" % len(outputs)
        given.append((parameter, "o_%s[%d]" % (dtype, row)))
        outputs.append((dtype, row))
        return parameter

    def results(self, make, given, outputs):
        """Write what the variables hold, and an expression, into outputs."""
        numbers = self.numbers
        for one in numbers.sample(make.variables, min(len(make.variables), 3)):
            if one.name != "i":
                make.emit(S(self.output(one.type, given, outputs) + "[i] = {0}", [one.read()]))
        e = make.expr(numbers.choice(make.pool), 3)
        make.emit(S(self.output(e.type, given, outputs) + "[i] = {0}", [e]))

    def rough_function(self, at):
        """Functions of mathematics, each on an input as it is."""
        numbers, make, given, outputs = self.numbers, self.statements(), [], []
        for count in range(4):
            name = numbers.choice([one for one in self.pool if one in STRONG and kind(one) in (1, 2)])
            if numbers.random() < 0.3:
                name = "float64"
            form = numbers.choice(ROUGH_ONE + ROUGH_TWO * 3 + (ROUGH_MATH if name == "float64" else []))
            gives = result(form, *[name] * (2 if "{1}" in form else 1))
            if gives is None:
                continue
            parameters = []
            for place in range(2 if "{1}" in form else 1):
                parameter = "a%d%d" % (count, place)
                given.append((parameter, numbers.choice(("x_%s", "m_%s[:, 1]")) % DTYPES[name]))
                parameters.append(E(parameter + "[i]", [], name))
            make.emit(S(self.output(gives, given, outputs) + "[i] = " + form, parameters))
        if not outputs:
            make.emit(S("pass"))
        return Function("f%d" % at, given, make.block, outputs, [], [])

    # --- As text, and as arguments ---

    def text(self, functions=None):
        functions = self.functions if functions is None else functions
        lines = ["import collections", "import math", "", "import numpy as np", "",
                 "from drupe import kernel_api as kapi", "", TUPLE,
                 *(text for _one, text in self.constants), "", ""]
        for one in functions:
            lines += [*one.lines(), "", ""]
        lines += ["def k(item, %s):" % ", ".join(self.names(functions)),
                  "    i = item.get_%sid(0)" % ("global_" if self.groups else "")]
        lines += ["    " + one.call() for one in functions]
        return "\n".join(lines) + "\n"

    def names(self, functions):
        """The kernel's parameters."""
        found = dict.fromkeys(what.partition("[")[0] for one in functions for _, what in one.arguments)
        return [one for one in found if one != "item"]

    def argument(self, name):
        """What a parameter of the kernel is given."""
        letter, _, dtype = name.partition("_")
        if letter == "part":
            return LocalAccessor(GROUP, dtype)
        seed = [self.seed & 0xffffffff, sum(map(ord, name))]
        full = {v: k for k, v in DTYPES.items()}.get(dtype)
        numbers = random.Random("%s %s" % (self.seed, name))
        if letter == "x":
            return values(full, (ITEMS,), seed)
        if letter == "m":
            wide = values(full, (ITEMS, 2 * COLUMNS), seed)
            choice = numbers.randrange(3) if full == self.strided else 0
            return (wide[:, :COLUMNS].copy(), wide[:, ::2], np.asfortranarray(wide[:, :COLUMNS]))[choice]
        if letter == "w":
            return values(full, (self.rows[name] + 1, ITEMS, SCRATCH), seed)
        if letter == "o":
            return np.zeros((self.rows[name] + 1, ITEMS), dtype)
        if letter in "tp":
            items = (numbers.choice((-9, 0, 3)), numbers.choice((0.5, -2.0)),
                     values(full, (8,), seed)[numbers.randrange(8)])
            return _Triple(*items) if letter == "p" else items
        if letter == "s":
            return values(full, (8,), seed)[numbers.randrange(8)]
        return numbers.choice((-50, -3, -1, 0, 1, 2, 7, 50)) if letter[0] == "n" else \
            numbers.choice((0.0, -1.5, 2.25, 0.1, 1e10))
