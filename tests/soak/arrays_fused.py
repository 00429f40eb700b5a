"""Lines for fusion.py: more expressions than other programs have, and more of what others do to memory meanwhile."""
import math
import re

import numpy as np

import arrays_numpy
import arrays_whole  # noqa: F401 (adds steps)
from arrays_program import LARGEST, Line, grown
from arrays_steps import SIDES, Steps

BLOCKS = (511, 512, 513, 1024, 4095, 16383, 16384, 16385, 32768, 40000, 70001)


class Numpys:
    """NumPy's side of what the processes do besides calling functions of drupe.array."""

    def __getattr__(self, name):
        return getattr(arrays_numpy, name)

    wait = barrier = hosttask = words = exposed = cleared = staticmethod(lambda x: None)
    peek = staticmethod(lambda x: (1,))
    doubled = staticmethod(lambda x: x.copy())
    scalar = staticmethod(lambda x: (1,))
    eagerly = staticmethod(lambda function: function())
    fusing = staticmethod(lambda function, x: function(x))

    @staticmethod
    def oned(x):
        x.reshape(-1).view("int8")[...] = 1


class Model:
    """The program as NumPy has it, whose shapes and types the next lines are made for."""

    def __init__(self, shared):
        self.names = {"xp": Numpys(), "q": maker_of_copies, "np": np, "inf": np.inf, "nan": np.nan,
                      "top": arrays_numpy.top, "sum": sum, **shared}

    def step(self, line):
        """Whether the line is to be part of the program."""
        try:
            a = eval(line.code(), self.names) if line.name else exec(line.code(), self.names)
        except NameError:
            return False
        except (ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError, AttributeError):
            return True  # both sides refuse it
        if not line.name:
            return True
        if isinstance(a, tuple):
            return True
        a = np.asarray(a)
        if a.size > LARGEST:
            return False
        self.names[line.name] = a if line.view else np.asarray(a, order="C")
        return True

    def too_large(self, line):
        """Numbers that grow are dropped by the next line, or all becomes infinite."""
        a = self.names.get(line.name or line.writes)
        return isinstance(a, np.ndarray) and grown(a)


def maker_of_copies(queue, a):
    return np.array(a)


class FusedSteps(Steps):
    def table(self):
        more = {self.make: 6, self.unary: 8, self.function: 5, self.pair: 14, self.operator: 24, self.formula: 10,
                self.in_place: 16, self.into: 5, self.assign: 12, self.reduce: 8, self.where: 6, self.clip: 4,
                self.cast: 8, self.drop: 16, self.check: 4, self.chain: 6, self.shifted: 6, self.other: 10,
                self.broad: 6, self.written: 4, self.wrong: 1, self.loop: 2, self.wide: 3, self.held: 3,
                self.chosen: 3}
        return {step: more.get(step, max(1, weight // 3)) for step, weight in {**super().table(), **more}.items()}

    def shape(self):
        n, way = self.n, self.n.random()
        if way < 0.55:
            return n.choice(self.common)
        if way < 0.85:
            return super().shape()
        if way < 0.93:
            return (n.choice(BLOCKS),)
        return tuple(n.choice(SIDES + (200,)) for _ in range(2))

    @property
    def common(self):
        """Shapes that many arrays have, so that they meet."""
        return ((6, 5), (6, 5), (6, 1), (5,), (1, 5), (), (600,), (700, 30), (30,), (2, 3, 40), (3, 40), (0, 5))

    def chain(self):
        """A node that others take often."""
        name, a = self.any(kinds="iuf")
        if name is None:
            return None
        n = self.n.randrange(2, 30)
        body = self.n.choice(("a * 0.5 + a" if a.dtype.kind == "f" else "a * 3 + a", "xp.maximum(a, -a) - a",
                              "xp.where(a > 1, a, a + 1)", "(a + 1) * (a - a) + a", "a - (a + a)"))
        if a.dtype.kind == "u":
            body = body.replace("-a", "a")
        return self.new("[a := %s, [a := %s for _ in range(%d)], a][-1]" % (name, body, n), self.queue_of[name])

    def loop(self):
        """The same, with a name that each round gives a new array."""
        name, a = self.writable(kinds="f")
        if name is None:
            return None
        text = self.n.choice(("for _ in range(%d): NAME = NAME * 0.5 + 1", "for _ in range(%d): NAME *= 0.5; NAME += 1",
                              "for _ in range(%d): NAME[...] = NAME * 0.5 + NAME"))
        return Line(text.replace("NAME", name) % self.n.randrange(2, 20), writes=name, queue=self.queue_of[name])

    def shifted(self):
        """Written where it is read, at another place."""
        name, a = self.writable(kinds="iuf", ndim=1)
        if name is None or a.shape[0] < 3:
            return None
        text = self.n.choice(("x[1:] = x[:-1] * 2", "x[:-1] = x[1:] + x[:-1]", "x[...] = x[::-1] + x",
                              "x[::2] = x[::-2][:x[::2].shape[0]]", "x[1:-1] = (x[:-2] + x[2:]) * 2",
                              "x[1:] += x[:-1]", "x[:] = x + x[:1]",
                              "x += x", "x *= x[:1]", "x[0] = x[-1] + x[1]"))
        return Line(on(text, name), writes=name, queue=self.queue_of[name])

    def other(self):
        """What is not element-wise, and is to notice what is pending."""
        name, a = self.any()
        if name is None:
            return None
        what = self.n.choice(("wait", "barrier", "hosttask", "words", "peek", "scalar", "doubled", "exposed",
                              "cleared"))
        if what in ("exposed", "cleared") and name not in self.plain:
            return None
        if what == "doubled":
            return self.new("xp.doubled(%s.copy())" % name, self.queue_of[name])
        if what in ("peek", "scalar"):
            return self.new("xp.%s(%s)" % (what, name), self.queue_of[name])
        return Line("xp.%s(%s)" % (what, name), writes=name, queue=self.queue_of[name])

    def written(self):
        """By a kernel of the program."""
        name, a = self.writable(kinds="biu")
        if name is None or not a.flags.c_contiguous or a.itemsize != 1:
            return None
        return Line("xp.oned(%s)" % name, writes=name, queue=self.queue_of[name])

    def broad(self):
        """What has fewer elements is computed before, by itself."""
        name, a = self.any(kinds="iuf", ndim=1)
        if name is None or not a.size:
            return None
        text = self.n.choice(("(x[:1] * 2 + 1) + x", "x - xp.sum(x, axis=-1, keepdims=True)", "(x + 1)[0] * 2 + x",
                              "x - (xp.max(x) - 1)", "(x[:1] + 1) * (x * 2) + (x[:1] - 1)",
                              "xp.where(x[:1] * 1 > x, x[:1] * 3, x + 1)"))
        return self.new(on(text, name), self.queue_of[name])

    def wide(self):
        """More operands, constants and values at a time than a kernel has."""
        name, a = self.any(kinds="iuf")
        if name is None:
            return None
        names = [other for other in (self.fitting(a, self.queue_of[name], "iuf", inside=True)[0] for _ in range(25))
                 if other]
        if len(names) < 3:
            return None
        n, form = self.n, self.n.randrange(3)
        terms = ["%s * %d" % (other, n.randrange(1, 9)) for other in names]
        if form == 0:
            return self.new(" + ".join(terms), self.queue_of[name])
        if form == 1:  # all of the terms are there before the first is added
            return self.new("sum([%s], %s)" % (", ".join(terms), name), self.queue_of[name])
        text = name
        for term in terms:
            text = "(%s - %s)" % (term, text)
        return self.new(text, self.queue_of[name])

    def held(self):
        """Many results that are all there at once."""
        name, a = self.any(kinds="iuf")
        if name is None or a.size > 5000:
            return None
        text = self.n.choice(("xp.stack([x * k + x for k in range(%d)])", "xp.stack([x + k for k in range(%d)])[1:]",
                              "sum([(x + k) * x for k in range(%d)][::-1])",
                              "xp.sum(xp.stack([xp.where(x > k, x, k) for k in range(%d)]), axis=0)"))
        return self.new(on(text % self.n.randrange(2, 40), name), self.queue_of[name])

    def chosen(self):
        """Where the program says how it is to be computed."""
        name, a = self.any(kinds="iuf")
        if name is None or not a.size:
            return None
        text = self.n.choice(("xp.eagerly(lambda: (x + 1) * x - 1)", "xp.eagerly(lambda: x * 2) + x",
                              "xp.fusing(lambda x: (x * x + x) * 2, x)",
                              "xp.fusing(lambda x: x - xp.max(x) * 1 + x, x)",
                              "xp.fusing(lambda x: (x + 1) - xp.eagerly(lambda: x * 3), x)"))
        return self.new(on(text, name), self.queue_of[name])

    def wrong(self):
        """Refused at once."""
        name, a = self.any(kinds="iuf", ndim=1)
        if name is None:
            return None
        text = self.n.choice(("x + x.reshape(-1)[:-1] * 2", "(x * 2) + q(QUEUE, np.ones(7771))",
                              "(x + 1)[x.shape[0] + 3]",
                              "xp.add(x * 2, x, out=xp.ones(3, dtype='bool'))"))
        return self.new(on(text, name).replace("QUEUE", str(self.queue_of[name])), self.queue_of[name])


def on(text, name):
    return re.sub(r"\bx\b", name, text)


def program(numbers, dtypes, queues, shared, length):
    """Lines of one thread."""
    model = Model(shared)
    run = type("Run", (), {"numpy": model})()
    steps, lines = FusedSteps(run, numbers, dtypes, range(queues), dict.fromkeys(shared, 0)), []
    held = numbers.choice((8, 16, 24))
    while len(lines) < length:
        line = steps.line()
        if line is None or line.text.startswith("xp.lost") and math.log(numbers.random()) > -1:
            continue
        if line.text.startswith("drop "):
            model.names.pop(line.text[5:], None)
        elif not line.text.startswith("check "):
            if not model.step(line):
                continue
            if line.name in model.names:
                steps.kept(line)
        lines.append(line)
        if model.too_large(line):
            lines.append(Line("drop " + (line.name or line.writes)))
            model.names.pop(lines[-1].text[5:])
        names = [name for name in model.names if name[0] == "v" and name[1:].isdigit()]
        if len(names) > held:
            lines.append(Line("drop " + numbers.choice(names)))
            model.names.pop(lines[-1].text[5:])
    return lines
