"""Expressions: from the user's tree to values (values.py)."""
import ast
import contextlib

from drupe.compiler import calls, folding, operators, places, tree, types
from drupe.compiler.attributes import attribute
from drupe.compiler.messages import KernelError
from drupe.compiler.types import BOOL
from drupe.compiler.values import Elements, Items, Known, Number, constant, is_simple


class Expressions:
    """The part of a Lowerer that evaluates. Statements that an expression needs go before it, into `block`; where it
    is not certain that it is computed, `captured()` keeps them apart."""

    def value(self, node):
        """What an expression is."""
        try:
            return getattr(self, "_" + type(node).__name__.lower())(node)
        except KernelError as error:
            raise error.at(self.scope.source, node) from None

    def number(self, node):
        """An expression that must be a number."""
        value = self.value(node)
        if isinstance(value, Number):
            return value
        raise KernelError("DK012", "A number is needed here, and this is %s." % value.type,
                          place=(self.scope.source, node))

    def values(self, nodes, first=()):
        """What expressions are, computed in order: what one reads is read before another one writes. `first`: values
        of those before them."""
        found = list(first)
        for node in nodes:
            with self.captured() as before:
                one = self.value(node)
            found = [self.behind(other, before) for other in found] if before else found
            self.block += before
            found.append(one)
        return found

    def behind(self, value, block):
        """A value that is used behind a block, and was computed before it."""
        return self._held(value) if any(_writes(stmt) for stmt in block) else value

    def _held(self, value):
        """A value whose elements have been read."""
        if isinstance(value, Items):
            return Items([self._held(one) for one in value.items], value.cls)
        reads = isinstance(value, Number) and any(isinstance(one, tree.Load) for one in tree.walk(value.expr))
        return self.kept_once(value) if reads else value

    @contextlib.contextmanager
    def captured(self):
        """The statements of what is evaluated within, in a list of their own."""
        outer, self.block = self.block, []
        try:
            yield self.block
        finally:
            self.block = outer

    # --- Names and constants ---

    def _constant(self, node):
        value = node.value
        if isinstance(value, int) and not isinstance(value, bool) and not -1 << 63 <= value < 1 << 64:
            raise KernelError("DK019", "%d has more than 64 bits." % value)
        return constant(value, fp64=self.fp64) if types.of_number(value) else Known(value)

    def _name(self, node):
        scope = self.scope
        if node.id in scope.bound:
            return scope.bound[node.id]
        if node.id in scope.names.assigned:
            return self.unassigned(node.id)
        return self.known_value(scope.names.constants[node.id])

    def known_value(self, thing):
        """An object of Python as a value: numbers are constants, tuples are tuples."""
        scalar = types.of_number(thing)
        if scalar is not None:
            plain = thing if scalar.weak else thing.item()
            if scalar.kind == 1 and not -1 << 63 <= plain < 1 << 64:
                raise KernelError("DK019", "%d has more than 64 bits." % plain)
            if not scalar.weak:
                return operators.cast(self, constant(plain, fp64=self.fp64), scalar)
            return constant(plain, fp64=self.fp64)
        if isinstance(thing, tuple):
            return Items([self.known_value(one) for one in thing], type(thing))
        if id(thing) in self.unit.held:
            return self.held_array(thing)
        return Known(thing)

    def _attribute(self, node):
        return attribute(self, self.value(node.value), node.attr)

    def _subscript(self, node):
        owner = self.value(node.value)
        if isinstance(owner, Known):
            raise KernelError("DK009", "%s cannot be indexed in a kernel." % owner,
                              "Pass arrays as arguments; a tuple of numbers can be a global variable.")
        return places.get(self, owner, places.key_of(self, node.slice))

    def _tuple(self, node):
        items = []
        for one in node.elts:
            if isinstance(one, ast.Starred):
                inner = self.value(one.value)
                if not isinstance(inner, Items):
                    raise KernelError("DK003", "* takes a tuple, and this is %s." % inner.type)
                items += inner.items
            else:
                items = self.values([one], items)
        return Items(items)

    def _list(self, node):
        raise KernelError("DK003", "A kernel cannot have a list: device memory does not grow.",
                          "Use a tuple (…), or PrivateArray(shape, dtype).")

    def _joinedstr(self, node):
        raise KernelError("DK003", "A kernel cannot make texts.", "print(a, b) prints texts and numbers one by one.")

    # --- Operators ---

    def _binop(self, node):
        sign = operators.SIGNS[type(node.op)]
        a, b = self.values([node.left, node.right])
        if isinstance(a, Items) and isinstance(b, Items) and sign == "+":
            return Items(a.items + b.items)
        return self.operate(sign, a, b)

    def operate(self, sign, a, b):
        """a sign b of two values, which must be numbers."""
        for one in (a, b):
            if not isinstance(one, Number):
                remedy = "Compute element by element, with an index." if isinstance(one, Elements) else ""
                raise KernelError("DK012", "%s %s %s is not defined in a kernel." % (a.type, sign, b.type), remedy)
        return operators.binary(self, sign, a, b)

    def _unaryop(self, node):
        if isinstance(node.op, ast.Not):
            cond = self.test(node.operand)
            if isinstance(cond, tree.Const):
                return constant(not cond.value)
            return Number(BOOL, folding.negated(cond))
        return operators.unary(self, node.op, self.number(node.operand))

    def _compare(self, node):
        left, result = self.value(node.left), None
        for at, (op, right_node) in enumerate(zip(node.ops, node.comparators)):
            if result is not None and folding.is_known(result.expr) and not result.expr.value:
                return result  # what follows is not computed
            with self.captured() as before:
                right = self.value(right_node)
                if at + 1 < len(node.ops) and isinstance(right, Number):
                    right = self.once(right)
            if result is None or not before or folding.is_known(result.expr):
                left = self.behind(left, before)
                self.block += before
                one = self._compare_two(op, left, right)
                result = one if result is None else Number(types.common(result.scalar, one.scalar),
                                                           folding.logic("&&", result.expr, one.expr))
            else:  # what it needs counts where the comparisons before it hold
                flag = self.temporary("bool", operators.truth(self, result))
                with self.captured() as more:
                    one = operators.truth(self, self._compare_two(op, left, right))
                self.emit(tree.If(self.line, flag, [*before, *more, tree.Assign(self.line, flag.name, one)]))
                result = Number(result.scalar, flag)
            left = right
        return result

    def _compare_two(self, op, left, right):
        if isinstance(op, (ast.In, ast.NotIn)):
            if not isinstance(right, Items):
                raise KernelError("DK012", "`in` takes a tuple, and this is %s." % right.type, "Write a loop.")
            found = constant(False)
            for one in right.items:
                same = self._compare_two(ast.Eq(), left, one)
                found = Number(BOOL, folding.logic("||", found.expr, same.expr))
            if isinstance(op, ast.In):
                return found
            return Number(BOOL, folding.negated(found.expr))
        if isinstance(op, (ast.Is, ast.IsNot)) and all(isinstance(one, Number) and one.scalar == BOOL
                                                       for one in (left, right)):
            return self.operate("==" if isinstance(op, ast.Is) else "!=", left, right)
        if (isinstance(left, Known) or isinstance(right, Known)) and not isinstance(op, (ast.Is, ast.IsNot, ast.Eq,
                                                                                         ast.NotEq)):
            raise KernelError("DK012", "%s and %s are compared with == and != only." % (left.type, right.type))
        if isinstance(left, Known) or isinstance(right, Known) or isinstance(op, (ast.Is, ast.IsNot)):
            return constant(_same(left, right) == isinstance(op, (ast.Is, ast.Eq)))
        if isinstance(left, Items) and isinstance(right, Items):
            return self._compare_tuples(op, left, right)
        return self.operate(operators.SIGNS[type(op)], left, right)

    def _compare_tuples(self, op, left, right):
        if not isinstance(op, (ast.Eq, ast.NotEq)):
            raise KernelError("DK012", "Tuples are compared with == and != only.")
        result = constant(len(left.items) == len(right.items))
        for a, b in zip(left.items, right.items):
            result = Number(BOOL, folding.logic("&&", result.expr, self._compare_two(ast.Eq(), a, b).expr))
        return result if isinstance(op, ast.Eq) else Number(BOOL, folding.negated(result.expr))

    # --- Conditions ---

    def test(self, node):
        """A bool of the tree: whether an expression counts as true."""
        try:
            if isinstance(node, ast.BoolOp):
                return self._test_all(node)
            value = self.value(node)
            if isinstance(value, Items):
                return tree.Const("bool", bool(value.items))
            if isinstance(value, Known):
                return tree.Const("bool", bool(value.value))
            if not isinstance(value, Number):
                raise KernelError("DK012", "%s is neither true nor false." % value.type)
            return operators.truth(self, value)
        except KernelError as error:
            raise error.at(self.scope.source, node) from None

    def _test_all(self, node):
        both = isinstance(node.op, ast.And)
        result = self.test(node.values[0])
        for at, one in enumerate(node.values[1:], 1):
            if isinstance(result, tree.Const):
                if bool(result.value) != both:
                    return result
                result = self.test(one)
                continue
            with self.captured() as before:
                more = self.test(one)
            if before:  # what it needs must not run where it does not count
                return self._test_late(result, both, before, more, node.values[at + 1:])
            result = folding.logic("&&" if both else "||", result, more)
        return result

    def _test_late(self, result, both, before, more, rest):
        flag = self.temporary("bool", result)
        cond = flag if both else tree.Unary("bool", "!", flag)
        self.emit(tree.If(self.line, cond, [*before, tree.Assign(self.line, flag.name, more)]))
        for one in rest:
            with self.captured() as inner:
                more = self.test(one)
            inner.append(tree.Assign(self.line, flag.name, more))
            self.emit(tree.If(self.line, cond, inner))
        return flag

    def _boolop(self, node):
        return self._either(isinstance(node.op, ast.And), node.values)

    def _either(self, both, nodes):
        """`a or b`, `a and b` give one of the two, and compute b only where it counts."""
        first, rest = self.value(nodes[0]), nodes[1:]
        if not rest:
            return first
        cond = operators.truth(self, first) if isinstance(first, Number) else self.test(nodes[0])
        if isinstance(cond, tree.Const):
            return self._either(both, rest) if bool(cond.value) == both else first
        with self.captured() as before:
            second = self._either(both, rest)
        if isinstance(second, Number) and first.scalar.kind == second.scalar.kind == 0 and not before:
            scalar = types.common(first.scalar, second.scalar)
            return Number(scalar, folding.logic("&&" if both else "||", first.expr, second.expr))
        first = self.once(first)
        cond = operators.truth(self, first)
        return self._choice(cond, (before, second), ([], first)) if both else \
            self._choice(cond, ([], first), (before, second))

    def _ifexp(self, node):
        cond = self.test(node.test)
        if isinstance(cond, tree.Const):
            return self.value(node.body if cond.value else node.orelse)
        with self.captured() as before_a:
            a = self.value(node.body)
        with self.captured() as before_b:
            b = self.value(node.orelse)
        return self._choice(cond, (before_a, a), (before_b, b))

    def _choice(self, cond, yes, no):
        """One of two values, each with the statements that it needs."""
        (before_a, a), (before_b, b) = yes, no
        if isinstance(a, Items) and isinstance(b, Items) and len(a.items) == len(b.items):
            flag = cond if is_simple(cond) else self.temporary("bool", cond)
            pairs = zip(a.items, b.items)
            before = [([], []) for _ in a.items]
            before[0] = (before_a, before_b)
            return Items([self._choice(flag, (p, x), (q, y)) for (p, q), (x, y) in zip(before, pairs)], a.cls)
        if not (isinstance(a, Number) and isinstance(b, Number)):
            if a == b and not before_a and not before_b:
                return a
            raise KernelError("DK012", "One of %s and %s cannot be chosen while the kernel runs." % (a.type, b.type),
                              "Write an if with the work in both branches.")
        if not before_a and not before_b:
            return operators.select(self, cond, a, b)
        scalar = types.union(a.scalar, b.scalar)
        a, b = (operators.cast(self, one, scalar) for one in (a, b))
        result = self.temporary(a.expr.type)
        for block, one in ((before_a, a), (before_b, b)):
            block.append(tree.Assign(self.line, result.name, one.expr))
        self.emit(tree.If(self.line, cond, before_a, before_b))
        return Number(scalar, result, None, None if None in (a.low, b.low) else min(a.low, b.low))

    # --- Calls ---

    def _call(self, node):
        target = self.value(node.func)
        args = []
        for one in node.args:
            if isinstance(one, ast.Starred):
                inner = self.value(one.value)
                if not isinstance(inner, Items):
                    raise KernelError("DK003", "* takes a tuple, and this is %s." % inner.type)
                args += inner.items
            else:
                args = self.values([one], args)
        if any(one.arg is None for one in node.keywords):
            raise KernelError("DK003", "A kernel cannot pass **keywords.")
        names = [one.arg for one in node.keywords]
        args = self.values([one.value for one in node.keywords], args)
        args, named = args[:len(args) - len(names)], dict(zip(names, args[len(args) - len(names):]))
        return calls.call(self, target, args, named)

    def _starred(self, node):
        raise KernelError("DK003", "* stands in calls and tuples only.")

    def _slice(self, node):
        raise KernelError("DK003", "A slice stands in brackets.")


def _writes(stmt):
    """Whether a statement changes elements."""
    return any(isinstance(one, (tree.Store, tree.Atomic, tree.Barrier)) or
               isinstance(one, tree.Call) and one.function is not None for one in tree.walk(stmt))


def _same(a, b):
    if isinstance(a, Known) and isinstance(b, Known):
        return a.value is b.value or a.value == b.value
    return False
