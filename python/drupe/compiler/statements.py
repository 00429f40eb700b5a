"""Statements: assignments, loops, branches."""
import ast

from drupe.compiler import operators, places, tree, types
from drupe.compiler.messages import KernelError
from drupe.compiler.types import INT
from drupe.compiler.values import Elements, Items, Known, Number, constant, integer


class Statements:
    """The part of a Lowerer that runs through the statements of a function, in order."""

    def run(self, body):
        """Lower statements into the current block. What follows a return or break is left out."""
        for stmt in body:
            self.line = stmt.lineno
            try:
                getattr(self, "_do_" + type(stmt).__name__.lower())(stmt)
            except KernelError as error:
                raise error.at(self.scope.source, stmt) from None
            if isinstance(stmt, (ast.Return, ast.Break, ast.Continue)):
                return

    def branch(self, body):
        """The statements of a block of its own."""
        with self.captured() as block:
            self.run(body)
        return block

    def _do_pass(self, stmt):
        pass

    def _do_expr(self, stmt):
        if isinstance(stmt.value, ast.Constant):
            return  # a docstring
        value = self.value(stmt.value)
        if isinstance(value, Number) and any(isinstance(one, tree.Call) for one in tree.walk(value.expr)):
            self.emit(tree.Do(stmt.lineno, value.expr))

    # --- Assignments ---

    def _do_assign(self, stmt):
        value = self.value(stmt.value)
        if len(stmt.targets) > 1 and isinstance(value, Number):
            value = self.once(value)
        for target in stmt.targets:
            self.assign(target, value)

    def _do_annassign(self, stmt):
        if stmt.value is not None:
            self.assign(stmt.target, self.value(stmt.value))

    def assign(self, target, value):
        """target = value"""
        if isinstance(target, ast.Name):
            self.bind(target.id, value)
        elif isinstance(target, ast.Subscript):
            with self.captured() as before:
                owner, key = self.value(target.value), places.key_of(self, target.slice)
            value = self.behind(value, before)
            self.block += before
            places.put(self, owner, key, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value)
        else:
            raise KernelError("DK021", "This cannot be assigned to in a kernel.", "Assign to a variable or an element.",
                              place=(self.scope.source, target))

    def _unpack(self, target, value):
        if isinstance(value, Elements) and value.shape and value.shape[0].const is not None:
            value = Items([places.get(self, value, constant(i)) for i in range(value.shape[0].const)])
        if not isinstance(value, Items):
            raise KernelError("DK012", "%s cannot be unpacked." % value.type)
        if len(value.items) != len(target.elts):
            raise KernelError("DK012", "%d values are assigned to %d names." % (len(value.items), len(target.elts)))
        kept = [self.detached(one) for one in value.items]  # a, b = b, a
        for one, item in zip(target.elts, kept):
            self.assign(one, item)

    def _do_augassign(self, stmt):
        sign = operators.SIGNS[type(stmt.op)]
        if isinstance(stmt.target, ast.Subscript):
            owner = self.value(stmt.target.value)
            key = places.key_of(self, stmt.target.slice)
            if isinstance(owner, Elements):
                return self._change(owner, key, sign, stmt.value)
        before = self.value(ast.copy_location(_as_read(stmt.target), stmt.target))
        self.assign(stmt.target, self.operate(sign, before, self.value(stmt.value)))

    def _change(self, array, key, sign, node):
        """array[key] sign= node, where the place is computed once."""
        offset, view = places.locate(self, array, key)
        if view is not None:
            raise KernelError("DK013", "%s= of a slice is not defined in a kernel." % sign, "Write a loop.")
        offset = self.once(offset)
        value = self.operate(sign, *self.values([node], [places.load(self, array, offset)]))
        self.written(array.buffer)
        if value.scalar.kind > types.Scalar(array.dtype).kind and value.scalar.kind > 1:
            raise KernelError("DK012", "%s %s= %s gives %s, which does not fit an element." % (
                array.dtype, sign, self.value(node).type, value.type), "Cast it: %s = numpy.%s(...)" % (
                    "a[i]", array.dtype))
        self.emit(tree.Store(self.line, array.buffer, offset.expr, places.element(self, array, value)))

    # --- Branches ---

    def _do_if(self, stmt):
        cond = self.test(stmt.test)
        if isinstance(cond, tree.Const):
            self.run(stmt.body if cond.value else stmt.orelse)
            return
        line, node = self.line, tree.If(self.line, cond, [], [])
        node.then = self.branch(stmt.body)
        node.other = self.branch(stmt.orelse)
        node.line = line
        self.emit(node)

    def _do_assert(self, stmt):
        cond = self.test(stmt.test)
        if isinstance(cond, tree.Const) and cond.value:
            return
        self.unit.asserts = True
        self.check(cond, 1)

    # --- Loops ---

    def _do_for(self, stmt):
        call = stmt.iter
        if isinstance(call, ast.Call):
            target = self.value(call.func)
            if isinstance(target, Known) and _is_range(target.value):
                return self._count(stmt, [self.number(one) for one in call.args])
            if isinstance(target, Known) and target.value in (enumerate, zip):
                return self._unroll(stmt, self._paired(target.value, call))
        value = self.value(call)
        if isinstance(value, Items):
            return self._unroll(stmt, value.items)
        if isinstance(value, Elements) and value.shape:
            return self._each(stmt, self.detached(value) if value.buffer.name in self.roots else value)
        raise KernelError("DK003", "A loop of a kernel runs over range(...), a tuple or an array, not over %s."
                          % value.type, "Write for i in range(n).", place=(self.scope.source, call))

    def _paired(self, kind, call):
        named = {one.arg: self.value(one.value) for one in call.keywords}
        start = named.pop("start", constant(0)) if kind is enumerate else constant(0)
        if named or not isinstance(start, Number) or not isinstance(start.const, int):
            raise KernelError("DK008", "%s() takes tuples in a kernel, and a number for `start`." % kind.__name__,
                              "Write for i in range(len(a)).")
        items = self.values(call.args)
        if not all(isinstance(one, Items) for one in items):
            raise KernelError("DK003", "%s() takes tuples in a kernel." % kind.__name__,
                              "Write for i in range(len(a)).")
        if kind is zip:
            return [Items(list(row)) for row in zip(*(one.items for one in items))]
        return [Items([constant(i), one]) for i, one in enumerate(items[0].items, start.const)]

    def _unroll(self, stmt, items):
        """A loop over a tuple: its items may be of different types, so each round is lowered by itself."""
        if any(_leaves(part) for part in stmt.body):
            raise KernelError("DK002", "A loop over a tuple has no break and no continue.", "Write an if.")
        for item in [self.detached(one) for one in items]:  # as they are before the first round
            self.assign(stmt.target, item)
            self.run(stmt.body)
        self.run(stmt.orelse)

    def _each(self, stmt, array):
        name = self.counter()
        loop = tree.For(self.line, name, tree.Const("int64", 0), array.shape[0].expr, tree.Const("int64", 1), [])
        with self.captured() as loop.body:
            self.assign(stmt.target, places.get(self, array, integer(tree.Var("int64", name), 0)))
            self.run(stmt.body)
        loop.other = self.branch(stmt.orelse)
        self.emit(loop)

    def _count(self, stmt, bounds):
        if not isinstance(stmt.target, ast.Name):
            raise KernelError("DK003", "The variable of a loop over range() is one name.")
        start, stop, step = self._bounds([operators.cast(self, one, INT) for one in bounds])
        low = start.low if step.positive else None if stop.low is None else stop.low + 1
        name, line = self.loop_variable(stmt.target.id), self.line
        loop = tree.For(line, name, start.expr, stop.expr, step.expr, [])
        with self.captured() as loop.body:
            self.bind_loop(stmt.target.id, name, low)
            self.run(stmt.body)
        loop.other = self.branch(stmt.orelse)
        self.emit(loop)

    def _bounds(self, bounds):
        if not 1 <= len(bounds) <= 3:
            raise KernelError("DK008", "range() takes 1 to 3 arguments.")
        start, stop = (constant(0), bounds[0]) if len(bounds) == 1 else bounds[:2]
        step = bounds[2] if len(bounds) == 3 else constant(1)
        if step.const == 0:
            raise KernelError("DK019", "The step of range() is 0.")
        if step.const is None and not step.positive:
            raise KernelError("DK014", "Whether the step of this range() is positive is not known.",
                              "Give it a number, or write a while loop.")
        return start, stop, step

    def _do_while(self, stmt):
        with self.captured() as before:
            cond = self.test(stmt.test)
        if before and any(_leaves(part) for part in stmt.orelse):
            return self._until(stmt, cond, before)
        if not before:
            loop = tree.While(stmt.lineno, cond, [], [])
            loop.body = self.branch(stmt.body)
        else:  # the condition takes statements, which run in each round
            leave = tree.If(stmt.lineno, tree.Unary("bool", "!", cond), [tree.Break(stmt.lineno)], [])
            if stmt.orelse:
                leave.then = self.branch(stmt.orelse) + leave.then
            loop = tree.While(stmt.lineno, tree.Const("bool", True), [*before, leave], [])
            loop.body += self.branch(stmt.body)
            self.emit(loop)
            return
        loop.other = self.branch(stmt.orelse)
        self.emit(loop)

    def _until(self, stmt, cond, before):
        """A while loop whose condition takes statements, with a break or continue of an outer loop in its else."""
        flag = self.temporary("bool", tree.Const("bool", True))
        leave = tree.If(stmt.lineno, tree.Unary("bool", "!", flag), [tree.Continue(stmt.lineno)], [])
        loop = tree.While(stmt.lineno, flag, [*before, tree.Assign(stmt.lineno, flag.name, cond), leave], [])
        loop.body += self.branch(stmt.body)
        loop.other = self.branch(stmt.orelse)
        self.emit(loop)

    def _do_break(self, stmt):
        self.emit(tree.Break(stmt.lineno))

    def _do_continue(self, stmt):
        self.emit(tree.Continue(stmt.lineno))

    def _do_return(self, stmt):
        self.give(None if stmt.value is None else self.value(stmt.value), stmt)


def _leaves(stmt):
    """Whether a statement of a loop has a break or continue of that loop."""
    if isinstance(stmt, (ast.Break, ast.Continue)):
        return True
    inner = stmt.orelse if isinstance(stmt, (ast.For, ast.While)) else ast.iter_child_nodes(stmt)
    return any(_leaves(one) for one in inner if isinstance(one, ast.stmt))


def _is_range(thing):
    """range() and prange(), Numba's among them."""
    return thing is range or getattr(thing, "_is_range", False) or getattr(thing, "__name__", "") == "prange"


def _as_read(target):
    """A target as an expression that reads it."""
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    return ast.Subscript(target.value, target.slice, ast.Load()) if isinstance(target, ast.Subscript) else target
