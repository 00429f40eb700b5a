"""The lines of random programs of arrays: each step looks at NumPy's side and makes a line that NumPy can run."""
import math

import numpy as np

from arrays_numpy import FUNCTIONS, OTHER, top
from arrays_program import LARGEST, Line

TYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
         "float64", "complex64", "complex128")
HELD = 24  # names of a program
SMALL, MEDIUM, LARGE = 6, 3000, 100000
SIDES = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 127)

# What is exact: the same numbers whoever computes them.
EXACT = {"negative": "iufc", "positive": "iufc", "abs": "biuf", "square": "iuf", "sign": "iuf", "ceil": "iuf",
         "floor": "iuf", "trunc": "iuf", "round": "iufc", "isfinite": "biufc", "isinf": "biufc", "isnan": "biufc",
         "signbit": "f", "logical_not": "biufc", "bitwise_invert": "biu", "conj": "iufc", "real": "iufc",
         "imag": "iufc"}
EXACT_PAIRS = {"add": "biufc", "subtract": "iufc", "multiply": "biuf", "maximum": "biuf", "minimum": "biuf",
               "equal": "biufc", "not_equal": "biufc", "less": "biuf", "less_equal": "biuf", "greater": "biuf",
               "greater_equal": "biuf", "logical_and": "biufc", "logical_or": "biufc", "logical_xor": "biufc",
               "bitwise_and": "biu", "bitwise_or": "biu", "bitwise_xor": "biu", "bitwise_left_shift": "iu",
               "bitwise_right_shift": "iu", "floor_divide": "iu", "remainder": "iu", "gcd": "iu",
               "copysign": "f", "nextafter": "f"}
OPERATORS = {"+": "biufc", "-": "iufc", "*": "biuf", "==": "biufc", "!=": "biufc", "<": "biuf", "<=": "biuf",
             ">": "biuf", ">=": "biuf", "&": "biu", "|": "biu", "^": "biu", "//": "iu", "%": "iu",
             "<<": "iu", ">>": "iu"}
IN_PLACE = {"+=": "biufc", "-=": "iufc", "*=": "biuf", "&=": "biu", "|=": "biu", "^=": "biu", "//=": "iu", "%=": "iu"}
# How far others may be, in ulps. OpenCL allows its functions 3 to 6 and pow 16, NumPy's own vector loops 4 of theirs;
# halves are rounded once from float32 by both. Complex functions are made of several real ones.
ULPS, ULPS_POW, ULPS_COMPLEX = 12, 40, 60


def kind(*operands):
    """That of the result type of arrays and numbers."""
    return np.result_type(*operands).kind


class Steps:
    """Makes lines for a Run. `plain`: names whose elements are all apart in memory, so that they may be written."""

    def __init__(self, run, numbers, dtypes, queues, shared):
        self.run, self.n, self.dtypes, self.queues, self.shared = run, numbers, dtypes, queues, shared
        self.names = run.numpy.names
        self.queue_of, self.plain, self.counter = dict(shared), set(), 0
        self.steps = [step for step, weight in self.table().items() for _ in range(weight)]

    def table(self):
        return {self.make: 10, self.unary: 5, self.function: 4, self.pair: 8, self.operator: 8, self.inexact_pair: 3,
                self.power: 1, self.view: 12, self.part: 2, self.in_place: 8, self.into: 3, self.assign: 8,
                self.fancy_get: 6, self.fancy_set: 5, self.reduce: 6, self.mean: 2, self.scan: 3, self.sorted: 4,
                self.distinct: 2, self.search: 2, self.where: 3, self.clip: 2, self.take: 3, self.joined: 4,
                self.arranged: 4, self.matmul: 2, self.cast: 6, self.copied: 2, self.across: 2, self.find: 2,
                self.formula: 3, self.exchanged: 2, self.lost: 1, self.named: 6, self.drop: 14, self.check: 6}

    def line(self):
        """A line, and what is to be known of its result when that is kept; None where the step found nothing."""
        self.new_plain = True
        return self.n.choice(self.steps)()

    def kept(self, line):
        self.queue_of[line.name] = line.queue
        if self.new_plain:
            self.plain.add(line.name)

    # --- choosing

    def all(self, queue=None, kinds=None, ndim=0):
        names = self.names
        return [name for name, at in self.queue_of.items() if name in names and (queue is None or at == queue)
                and (kinds is None or names[name].dtype.kind in kinds) and names[name].ndim >= ndim]

    def any(self, **wanted):
        """(name, NumPy's array) of one, or None twice."""
        names = self.all(**wanted)
        if not names:
            return None, None
        name = self.n.choice(names)
        return name, self.names[name]

    def writable(self, **wanted):
        names = [name for name in self.all(**wanted) if name in self.plain]
        if not names:
            return None, None
        name = self.n.choice(names)
        return name, self.names[name]

    def fitting(self, a, queue, kinds=None, inside=False):
        """One that broadcasts with `a`; `inside`: to the shape of a."""
        for _ in range(4):
            name, b = self.any(queue=queue, kinds=kinds)
            if name is None:
                break
            try:
                shape = np.broadcast_shapes(a.shape, b.shape)
            except ValueError:
                continue
            if math.prod(shape) <= LARGEST and (not inside or shape == a.shape):
                return name, b
        return None, None

    def number(self, a):
        """A Python number as text that fits beside `a`."""
        n, limits = self.n, np.iinfo(a.dtype) if a.dtype.kind in "iu" else None
        way = n.random()
        if a.dtype.kind == "b":
            return n.choice(("True", "False", "1", "2.5"))
        if limits and way < 0.7:
            return str(n.choice([0, 1, 2, 3, 7, limits.max, limits.min] + ([-1, -3] if limits.min else [])))
        if a.dtype.kind == "c" and way < 0.4:
            return n.choice(("(1+2j)", "1j", "(-0.5+0j)"))
        return n.choice(("0", "1", "-1", "2", "0.5", "-1.5", "True", "3.25", *(("inf", "nan") if way < 0.2 else ())))

    def new(self, text, queue, plain=True, **how):
        """A line that makes something."""
        self.counter += 1
        self.new_plain = plain
        return Line(text, "v%d" % self.counter, queue=queue, **how)

    def axis(self, a):
        return self.n.randrange(-a.ndim, a.ndim)

    # --- makers

    def shape(self):
        n, way = self.n, self.n.random()
        if way < 0.94:
            return tuple([n.randrange(SMALL + 1) for _ in range(n.randrange(5))])
        if way < 0.96:  # loops over rows and columns of all lengths
            return tuple(n.choice(SIDES) for _ in range(n.choice((2, 2, 3))))
        return (n.randrange(1, LARGE if way > 0.996 else MEDIUM),)

    def values(self, shape=None, dtype=None):
        n = self.n
        way = n.choice(("plain", "plain", "few", "wide", "odd"))
        return "xp.values(%r, %r, %d, %r)" % (dtype or n.choice(self.dtypes), self.shape() if shape is None else shape,
                                              n.randrange(1 << 20), way)

    def make(self):
        queue = self.n.choice(self.queues)
        return self.new("q(%d, %s)" % (queue, self.values()), queue)

    # --- elementwise

    def unary(self):
        name, a = self.any()
        names = name and [one for one, kinds in EXACT.items() if a.dtype.kind in kinds]
        return self.new("xp.%s(%s)" % (self.n.choice(names), name), self.queue_of[name]) if name else None

    def function(self):
        name, a = self.any()
        if name is None:
            return None
        which = self.n.choice(FUNCTIONS + ("reciprocal", "angle"))
        if which == "reciprocal" and a.dtype.kind in "biu":
            return None
        if a.dtype.kind == "c":
            if top(a) > 20 or which in ("expm1", "log1p"):
                return None  # their parts are differences of large numbers
            return self.new("xp.%s(%s)" % (which, name), self.queue_of[name], ulps=ULPS_COMPLEX,
                            scale="top(%s)" % name if which != "angle" else "1")
        return self.new("xp.%s(%s)" % (which, name), self.queue_of[name], ulps=ULPS)

    def operands(self):
        """Texts of two operands, and the kind of what they are together."""
        name, a = self.any()
        if name is None:
            return None
        other, b = (None, None) if self.n.random() < 0.3 else self.fitting(a, self.queue_of[name])
        if other is None:
            other = self.number(a)
            b = {"inf": np.inf, "nan": np.nan}.get(other)
            b = eval(other) if b is None else b
        swap = self.n.random() < 0.3
        return self.queue_of[name], *((other, name) if swap else (name, other)), kind(a, b)

    def pair(self, table=None, form="xp.%s(%s, %s)", **how):
        given = self.operands()
        if given is None:
            return None
        queue, x, y, together = given
        names = [one for one, kinds in (table or EXACT_PAIRS).items() if together in kinds]
        if not names:
            return None
        name = self.n.choice(names)
        if form[0] == "x" and self.n.random() < 0.1:
            form = "np.%s(%s, %s)"  # which NumPy hands over to Drupe
            name = OTHER.get(name, name)
        if form[0] == "%" and x[0] == "-":
            x = "(%s)" % x
        return self.new(form % ((name, x, y) if form[0] != "%" else (x, name, y)), queue, **how)

    def operator(self):
        return self.pair(OPERATORS, "%s %s %s")

    def inexact_pair(self):
        given = self.operands()
        if given is None:
            return None
        queue, x, y, together = given
        if together == "c":
            name, how = self.n.choice(("multiply", "divide")), dict(ulps=8)
        else:
            name, how = self.n.choice(("divide", "atan2", "hypot", "logaddexp")), dict(ulps=ULPS)
            how["scale"] = "1" if name == "logaddexp" else "0"
        return self.new("xp.%s(%s, %s)" % (name, x, y), queue, **how)

    def power(self):
        name, a = self.any(kinds="iuf")
        if name is None:
            return None
        y = self.n.choice(("0", "1", "2", "3") if a.dtype.kind in "iu" else ("0", "1", "2", "0.75", "-1", "1.25"))
        form = self.n.choice(("%s ** %s", "xp.pow(%s, %s)"))
        return self.new(form % (name, y), self.queue_of[name],
                        ulps=0 if a.dtype.kind in "iu" else ULPS_POW)

    def formula(self):
        """Operators on what operators gave, which is gone afterwards: its memory may be the result's."""
        name, a = self.any(kinds="iuf")
        other, b = self.fitting(a, self.queue_of[name], "iuf") if name else (None, None)
        if other is None:
            return None
        text = self.n.choice(("x * 2 + y", "(x + 1) * (y - 1)", "1 - (x - y)", "(x + y) - (y - x)",
                              "((x - 1) * y + x) * 2 - y", "(x * 1)[...] + y", "[x - 1, y][0] + (y - 1)"))
        return self.new(text.replace("x", name).replace("y", other), self.queue_of[name])

    # --- views

    def index(self, shape):
        n, key = self.n, []
        for length in shape:
            way = n.randrange(4)
            if way == 0 and length:
                key.append(str(n.randrange(-length, length)))
            elif way == 1:
                key.append("::%d" % n.choice((-2, -1, 2, 3)))
            elif way == 2:
                key.append("%d:%d" % (n.randrange(-2, length + 2), n.randrange(-2, length + 2)))
            else:
                key.append(":")
        if n.random() < 0.2:
            key.insert(n.randrange(len(key) + 1), "None")
        return ", ".join(key + ["..."])

    def view(self):
        n, (name, a) = self.n, self.any()
        if name is None:
            return None
        queue, plain, way = self.queue_of[name], name in self.plain, n.randrange(8)
        if way == 0:
            return self.new("%s.T" % name, queue, plain, view=True)
        if way == 1 and a.ndim:
            axes = tuple(n.sample(range(a.ndim), a.ndim))
            return self.new("xp.permute_dims(%s, %r)" % (name, axes), queue, plain, view=True)
        if way == 2 and a.size < LARGEST // 8:
            return self.new("xp.broadcast_to(%s, %r)" % (name, (n.randrange(4), *a.shape)), queue, False, view=True)
        if way == 3 and a.ndim:
            return self.new("xp.flip(%s, axis=%d)" % (name, self.axis(a)), queue, plain, view=True)
        if way == 4 and a.dtype.kind == "c":
            return self.new("%s.%s" % (name, n.choice(("real", "imag"))), queue, plain, view=True)
        return self.new("%s[%s]" % (name, self.index(a.shape)), queue, plain, view=True)

    def part(self):
        """Other shapes, which are views of what is in one piece; of the rest they are copies on one side alone."""
        n, (name, a) = self.n, self.any()
        if name is None or not a.flags.c_contiguous:
            return None
        text = n.choice(("%s.reshape(-1)", "xp.reshape(%s, (1, -1))" if a.size else "xp.expand_dims(%s, axis=0)",
                         "xp.expand_dims(%s, axis=0)"))
        return self.new(text % name, self.queue_of[name], name in self.plain, view=True)

    # --- in place

    def value(self, part, queue):
        """What may be written into an array: a text and a tolerance, 0 where the result is exact."""
        other, b, kinds = None, 0, {"b": "b", "i": "bi", "u": "bu", "f": "biuf", "c": "biufc"}[part.dtype.kind]
        if self.n.random() < 0.7:
            other, b = self.fitting(part, queue, kinds, inside=True)
        if other is None or not np.can_cast(b.dtype, part.dtype, "same_kind"):
            return self.whole(part), 0
        return other, b

    def whole(self, part):
        n = self.n
        return n.choice({"b": ("True", "False"), "i": ("0", "-1", "5", "True"), "u": ("0", "1", "9"),
                         "f": ("0.5", "-2", "0", "True", "nan"), "c": ("1", "0.5", "2j")}[part.dtype.kind])

    def in_place(self):
        name, a = self.writable()
        if name is None:
            return None
        operators = [one for one, kinds in IN_PLACE.items() if a.dtype.kind in kinds]
        value, b = self.value(a, self.queue_of[name])
        if value in ("0", "nan", "2j") or not operators:
            return None
        operator_ = self.n.choice(operators)
        how = {}
        if isinstance(b, np.ndarray):
            together = np.result_type(a, b)
            if together != a.dtype:
                if not np.can_cast(together, a.dtype, "same_kind") or together.kind == "f" and a.dtype == "float16":
                    return None
                if a.dtype.kind in "fc":  # NumPy computes in the wider type, Drupe in that of the result
                    how = dict(ulps=2, scale="top(%s) + top(%s)" % (name, value) if operator_ != "*=" else
                               "top(%s) * top(%s)" % (name, value))
        return Line("%s %s %s" % (name, operator_, value), writes=name, queue=self.queue_of[name], **how)

    def into(self):
        """out= is another array, which may share memory with the operands."""
        out, a = self.writable(kinds="biuf")
        if out is None:
            return None
        queue = self.queue_of[out]
        x, b = self.fitting(a, queue, a.dtype.kind, inside=True)
        y, c = self.fitting(a, queue, a.dtype.kind, inside=True)
        if x is None or y is None or np.broadcast_shapes(b.shape, c.shape) != a.shape or \
                np.result_type(b, c) != a.dtype:
            return None
        names = [one for one, kinds in EXACT_PAIRS.items() if a.dtype.kind in kinds and "equal" not in one
                 and one not in ("less", "greater") and not one.startswith("logical")]
        return Line("xp.%s(%s, %s, out=%s)" % (self.n.choice(names), x, y, out), writes=out, queue=queue)

    def assign(self):
        name, a = self.writable()
        if name is None:
            return None
        key = self.index(a.shape)
        part = eval("a[%s]" % key, {"a": a})
        return Line("%s[%s] = %s" % (name, key, self.value(part, self.queue_of[name])[0]), writes=name,
                    queue=self.queue_of[name])

    def drop(self):
        name = self.any()[0]
        return Line("drop " + name) if name and name not in self.shared else None

    def check(self):
        name = self.any()[0]
        return Line("check " + name) if name else None

    # --- copies

    def cast(self):
        name, a = self.any()
        if name is None:
            return None
        dtype = np.dtype(self.n.choice(self.dtypes))
        if a.dtype.kind == "c" and dtype.kind not in "cb":
            return None
        if a.dtype.kind == "f" and dtype.kind in "iu":
            limits = np.iinfo(dtype)
            with np.errstate(all="ignore"):
                if not np.isfinite(a).all() or a.size and not (a.astype("float64").min() >= limits.min
                                                               and a.astype("float64").max() <= limits.max / 2):
                    return None
        return self.new("%s.astype(%r)" % (name, dtype.name), self.queue_of[name])

    def copied(self):
        name, _ = self.any()
        return self.new("%s.copy()" % name, self.queue_of[name]) if name else None

    def across(self):
        """To another queue."""
        name, _ = self.any()
        queue = self.n.choice(self.queues)
        if name is None or queue == self.queue_of[name]:
            return None
        return self.new("xp.move(%s, %d)" % (name, queue), queue, False)


def add(cls):
    """More steps, of another file."""
    for name, function in vars(cls).items():
        if not name.startswith("__"):
            setattr(Steps, name, function)
    return cls
