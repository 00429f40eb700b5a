"""Lowered trees run by Python: each work-item is a generator that stops at barriers. Integers and bools only."""
import operator

from drupe.compiler import tree

_REAL = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
         "&": operator.and_, "|": operator.or_, "^": operator.xor, "<": operator.lt, "<=": operator.le,
         ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}


def _wrapped(value):
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


class _Leave(Exception):
    pass


class _Break(_Leave):
    pass


class _Continue(_Leave):
    pass


class _Return(_Leave):
    pass


class Item:
    """One work-item. `memory`: name of a buffer → list; private ones are the item's."""

    def __init__(self, function, memory, values, place):
        self.variables, self.place = dict(values), place
        self.memory = dict(memory)
        for one in function.buffers:
            if one.space == tree.PRIVATE and one.size is not None:
                self.memory[one.name] = [0] * one.size
        self.views = {}

    def value(self, node):
        if isinstance(node, tree.Const):
            return node.value
        if isinstance(node, tree.Var):
            return self.variables[node.name]
        if isinstance(node, tree.Query):
            return self.place[node.what][node.dim]
        if isinstance(node, tree.Load):
            memory, offset = self._at(node.buffer)
            return memory[offset + self.value(node.index)]
        if isinstance(node, tree.Select):
            return self.value(node.a if self.value(node.cond) else node.b)
        if isinstance(node, tree.Unary):
            a = self.value(node.a)
            return not a if node.op == "!" else _wrapped(-a if node.op == "-" else ~a)
        if isinstance(node, tree.Call):
            return self._call(node)
        if isinstance(node, tree.Atomic):
            return self._atomic(node)
        assert isinstance(node, tree.Binary), node
        a = self.value(node.a)
        if node.op in ("&&", "||"):
            return bool(a and self.value(node.b)) if node.op == "&&" else bool(a or self.value(node.b))
        result = _REAL[node.op](a, self.value(node.b))
        return result if isinstance(result, bool) else _wrapped(result)

    def _call(self, node):
        args = [self.value(one) for one in node.args]
        if node.function is None:
            return {"mod": operator.mod, "floordiv": operator.floordiv}[node.name](*args)
        inner = Item(node.function, {}, {p.name: a for p, a in zip(node.function.params, args)}, self.place)
        try:
            for _barrier in inner.run(node.function.body):
                raise AssertionError("a barrier")
        except _Return as end:
            return end.args[0]

    def _atomic(self, node):
        memory, offset = self._at(node.buffer)
        at = offset + self.value(node.index)
        old = memory[at]
        memory[at] = _wrapped(old + self.value(node.args[0]))
        return old

    def _at(self, buffer):
        if buffer.name in self.views:
            return self.views[buffer.name]
        return self.memory[buffer.name], 0

    def run(self, stmts):
        for stmt in stmts:
            yield from getattr(self, "_" + type(stmt).__name__.lower())(stmt)

    def _assign(self, stmt):
        self.variables[stmt.name] = self.value(stmt.value)
        return ()

    def _point(self, stmt):
        memory, offset = self._at(stmt.source)
        self.views[stmt.target.name] = memory, offset + self.value(stmt.offset)
        return ()

    def _store(self, stmt):
        memory, offset = self._at(stmt.buffer)
        memory[offset + self.value(stmt.index)] = self.value(stmt.value)
        return ()

    def _do(self, stmt):
        self.value(stmt.value)
        return ()

    def _if(self, stmt):
        yield from self.run(stmt.then if self.value(stmt.cond) else stmt.other)

    def _for(self, stmt):
        bounds = [self.value(one) for one in (stmt.start, stmt.stop, stmt.step)]

        def rounds():
            for at in range(*bounds):
                self.variables[stmt.var] = at
                yield

        yield from self._loop(rounds(), stmt)

    def _while(self, stmt):
        def rounds():
            while self.value(stmt.cond):
                yield

        yield from self._loop(rounds(), stmt)

    def _loop(self, rounds, stmt):
        for _round in rounds:
            try:
                yield from self.run(stmt.body)
            except _Break:
                return
            except _Continue:
                continue
        yield from self.run(stmt.other)

    def _break(self, stmt):
        raise _Break

    def _continue(self, stmt):
        raise _Continue

    def _return(self, stmt):
        raise _Return(None if stmt.value is None else self.value(stmt.value))

    def _barrier(self, stmt):
        yield "barrier"


def run(function, args, size, local):
    """All groups one after the other; `args` are lists and numbers, in the order of the parameters. Local memory that
    is an argument is given as a number of elements."""
    counts = [g // l for g, l in zip(size, local)]
    for group in _places(counts):
        memory, values = {}, {}
        for param, value in zip(function.params, args):
            if param.buffer is None:
                values[param.name] = value
            else:
                memory[param.buffer.name] = [0] * value if param.buffer.space == tree.LOCAL else value
        for one in function.buffers:
            if one.space == tree.LOCAL and one.size is not None:
                memory[one.name] = [0] * one.size
        running = []
        for inside in _places(local):
            place = {"local_id": inside, "group_id": group, "global_size": size, "local_size": local,
                     "group_count": counts, "global_id": [w * l + i for w, l, i in zip(group, local, inside)]}
            running.append(Item(function, memory, values, place).run(function.body))
        while running:
            running = [one for one in running if _goes_on(one)]


def _goes_on(item):
    try:
        return next(item, None) is not None
    except _Return:
        return False


def _places(sizes):
    if not sizes:
        return [[]]
    return [[first, *rest] for first in range(sizes[0]) for rest in _places(sizes[1:])]
