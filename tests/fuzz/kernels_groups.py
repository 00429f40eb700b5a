"""Kernels of work-groups: barriers, and elements that the work-items of a group exchange in local memory.

Barriers stand where all work-items of a group come by: in blocks that are `uniform`, and in loops and branches that go
by what is the same for all.
"""
from kernels_body import CHOICES, Statements
from kernels_make import Variable
from kernels_write import E, S

GROUP = 5  # work-items of a group


class Grouped(Statements):
    """`part` is the type of the local memory, which is called that."""

    choices = {**CHOICES, "exchange": 9, "uniform_if": 3, "uniform_for": 4, "uniform_while": 2, "shared": 2}
    part = None

    def __init__(self, numbers, pool, constants):
        super().__init__(numbers, pool, constants)
        self.uniform = True

    def inner(self):
        return _Block(self, super().inner())

    def all_alike(self):
        """A condition that all work-items find the same."""
        known = [one.read() for one in self.variables if one.name == "n" and one.fixed] or [E("3", [], "int", 3, 3)]
        sign = self.numbers.choice(("<", ">=", "==", "!="))
        return E("({0} %s %d)" % (sign, self.numbers.randrange(-3, 6)), [self.numbers.choice(known)], "bool")

    def everywhere(self, most=3):
        """A block to which all work-items come."""
        uniform = self.uniform
        with self.inner() as block:
            self.uniform = uniform
            self.some(most)
        return block

    def _make_exchange(self):
        """part[own place] = e, and the element of another work-item."""
        if not self.uniform:
            return self._make_assign()
        e = self.expr(self.part, 2)
        place = self.index(GROUP)
        name = self.fresh()
        lines = ["part[item.get_local_id(0)] = {0}", "kapi.group_barrier(item.get_group())",
                 "%s = part[{1}]" % name, "kapi.group_barrier(item.get_group())"]
        self.emit(S("\n".join(lines), [e, place]))
        self.variables.append(Variable(name, self.part, None, None, self.numbers.random() < 0.5))

    def _make_shared(self):
        """What one work-item has computed is read by all of its group; local memory that the function makes itself."""
        if not self.uniform:
            return self._make_declare()
        dtype, own, name = self.part, self.fresh(), self.fresh()
        who = self.numbers.choice(("item.get_group().leader", "item.get_local_id(0) == %d" % (GROUP - 1)))
        lines = ["%s = kapi.local.array(3, np.%s)" % (own, dtype), "kapi.group_barrier(item.get_group())",
                 "if %s:" % who, "    %s[1] = {0}" % own, "kapi.group_barrier(item.get_group())",
                 "%s = %s[-2]" % (name, own)]
        self.emit(S("\n".join(lines), [self.expr(dtype, 1)]))
        self.variables.append(Variable(name, dtype, fixed=True))

    def _make_uniform_if(self):
        if self.depth > 2 or not self.uniform:
            return self._make_if()
        blocks = [("", self.everywhere())]
        if self.numbers.random() < 0.5:
            blocks.append(("else:", self.everywhere(2)))
        self.emit(S("if {0}:", [self.all_alike()], *blocks))

    def _make_uniform_for(self):
        if len(self.loops) > 1 or self.depth > 2 or not self.uniform:
            return self._make_for()
        name, loops, low, high = self.fresh(), self.loops, *self.numbers.choice(((0, 3), (1, 4), (-2, 1), (0, 0)))
        self.loops = [*loops, "uniform"]
        text = "for %s in range(%d, %d):" % (name, low, high)
        if self.numbers.random() < 0.3:
            text = "for %s in range(%d, %d, -1):" % (name, high, low)
        with self.inner():
            self.variables.append(Variable(name, "int", low, high, self.numbers.random() < 0.7))
            block = self.everywhere()
        self.loops = loops
        more = [("else:", self.everywhere(2))] if self.numbers.random() < 0.2 else []
        self.emit(S(text, [], ("", block), *more))

    def _make_uniform_while(self):
        if len(self.loops) > 1 or self.depth > 2 or not self.uniform:
            return self._make_while()
        name, loops = self.fresh(), self.loops
        self.emit(S(name + " = 0"))
        self.variables.append(Variable(name, "int", 0, 4, True))
        self.loops = [*loops, "uniform"]
        head = "while %s < %d:\n    %s += 1" % (name, self.numbers.randint(1, 3), name)
        block = self.everywhere()
        self.loops = loops
        self.emit(S(head, [], ("", block)))

    def _make_leave(self):
        """break and continue, where all work-items of a loop with barriers do it."""
        if not self.loops or self.loops[-1] != "uniform":
            return super()._make_leave() if self.loops else self._make_assign()
        if self.uniform:
            self.emit(S("if {0}:", [self.all_alike()], ("", [S(self.numbers.choice(("break", "continue")))])))


class _Block:
    """The context of a block, in which barriers are not allowed unless it says otherwise."""

    def __init__(self, owner, block):
        self.owner, self.block = owner, block

    def __enter__(self):
        self.before, self.owner.uniform = self.owner.uniform, False
        return self.block.__enter__()

    def __exit__(self, *error):
        self.owner.uniform = self.before
        return self.block.__exit__(*error)
