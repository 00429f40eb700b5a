"""Work-items that end before a barrier to which others come.

On `host` they count as having come there, as they do on many GPUs; OpenCL leaves open what happens. So for OpenCL such
a kernel is written anew: a work-item that would end clears a flag, goes on to all barriers, and does nothing between
them.

    if i >= n:                        alive = i < n
        return                   →    if alive: part[t] = a[i]
    part[t] = a[i]                    barrier()
    barrier()                         if alive: ...
    ...

All work-items, ended or not, must take the same way to the barriers: a branch or a loop around one counts by what is
the same for all work-items of the group, such as sizes, numbers that were passed, and variables that are made of
these.
"""
import dataclasses

from drupe.compiler import tree
from drupe.compiler.analysis import assigned, bodies, calls, expressions, nodes, reachable
from drupe.compiler.messages import KernelError

_ALIKE = ("group_id", "global_size", "local_size", "group_count")
_FLAG = ".alive"


def mask(function):
    """Write a kernel anew in which work-items end before a barrier: by a return, or by a check that fails. Raises
    KernelError where that cannot be."""
    last = max((at for at, stmt in enumerate(function.body) if _has(stmt, tree.Barrier)), default=-1)
    masked = _Masked(function)
    if any(masked.ends(stmt) for stmt in function.body[:last + 1]):
        masked.run()


def _has(stmt, *kinds):
    return any(isinstance(node, kinds) for node in nodes(stmt))


def _leaves(stmt):
    """Whether it has a break or continue of a loop around it."""
    if isinstance(stmt, (tree.Break, tree.Continue)):
        return True
    return isinstance(stmt, tree.If) and any(_leaves(one) for body in bodies(stmt) for one in body)


class _Masked:
    def __init__(self, function):
        self.function = function
        self.alive = tree.Var("bool", _FLAG)
        self.failing = {id(one) for one in reachable(function) if any(_has(stmt, tree.Check) for part in
                        (*reachable(one), one) for stmt in part.body)}
        self.alike = {one.name for one in function.params if one.buffer is None}
        self._find_alike()

    def run(self):
        body, dead = self.group(self.function.body, False)
        if dead:
            line = self.function.body[0].line
            self.function.locals[_FLAG] = "bool"
            self.function.alive = _FLAG
            self.function.body[:] = [tree.Assign(line, _FLAG, tree.Const("bool", True)), *body]

    def ends(self, stmt):
        """Whether work-items may end in a statement."""
        return _has(stmt, tree.Return, tree.Check) or self.may_fail(stmt)

    def may_fail(self, *parts):
        return any(id(one) in self.failing for one in calls(*parts))

    # --- What is the same for all work-items of a group ---

    def _find_alike(self):
        values, other = {}, set()
        self._collect(self.function.body, values, other)
        names = set(values) - other
        self.alike -= other
        while True:
            self.alike |= names
            wrong = {name for name in names if not all(self.is_alike(one) for one in values[name])}
            if not wrong:
                return
            self.alike -= wrong
            names -= wrong

    def _collect(self, stmts, values, other):
        """The values of variables that the whole group assigns, and the names of others."""
        for stmt in stmts:
            if isinstance(stmt, tree.Assign):
                values.setdefault(stmt.name, []).append(stmt.value)
            elif _has(stmt, tree.Barrier):
                if isinstance(stmt, tree.For):
                    values.setdefault(stmt.var, []).extend((stmt.start, stmt.stop, stmt.step))
                for body in bodies(stmt):
                    self._collect(body, values, other)
            else:
                other |= assigned([stmt])

    def is_alike(self, expr):
        return all(isinstance(one, (tree.Const, tree.Cast, tree.Unary, tree.Binary, tree.Select)) or
                   isinstance(one, tree.Var) and one.name in self.alike or
                   isinstance(one, tree.Query) and one.what in _ALIKE or
                   isinstance(one, tree.Call) and one.function is None for one in nodes(expr))

    # --- Statements that the whole group comes by ---

    def group(self, stmts, dead):
        """(the statements anew, whether work-items may have ended behind them); `dead`: before them."""
        done, guarded = [], []
        for stmt in stmts:
            if isinstance(stmt, (tree.Return, tree.Break, tree.Continue)):
                return [*done, *self._guarded(guarded), stmt], dead
            if self._is_step(stmt, dead):
                done += [*self._guarded(guarded), *self.step(stmt, dead)]
                dead = dead or self._ends_some(stmt)
                continue
            (guarded if dead else done).extend(self.soft_one(stmt))
            if self.ends(stmt):
                done += self._guarded(guarded)
                dead = True
        return done + self._guarded(guarded), dead

    def _guarded(self, stmts):
        """What only work-items do that have not ended. Empties the list."""
        found = [tree.If(stmts[0].line, self.alive, list(stmts), [])] if stmts else []
        stmts.clear()
        return found

    def _is_step(self, stmt, dead):
        if _has(stmt, tree.Barrier) or isinstance(stmt, tree.Assign) and stmt.name in self.alike:
            return True
        if isinstance(stmt, tree.If) and self.is_alike(stmt.cond) and _has(stmt, tree.Return):
            return True
        return dead and _leaves(stmt)

    def _ends_some(self, stmt):
        """Whether some work-items end in it, and others go on."""
        if isinstance(stmt, tree.If) and self.is_alike(stmt.cond):
            return any(self._ends_some(one) for body in bodies(stmt) for one in body)
        return not isinstance(stmt, tree.Return) and self.ends(stmt)

    def step(self, stmt, dead):
        """A statement that work-items take which have ended, too."""
        inner = dead or self._ends_some(stmt)
        if not inner or isinstance(stmt, (tree.Barrier, tree.Assign)):
            return [stmt]
        if not all(self.is_alike(one) for one in expressions(stmt)):
            self._refuse(stmt)
        parts = {name: self.group(getattr(stmt, name), inner)[0] for name in ("then", "body", "other")
                 if hasattr(stmt, name)}
        return [dataclasses.replace(stmt, **parts)]

    def _refuse(self, stmt):
        if any(_has(one, tree.Return) for one in self.function.body):
            how, remedy = "return", "leave `return` out, and test with `if` what is done between the barriers."
        else:
            how, remedy = "end at a check", "leave the check out, or run the kernel on the device `host`."
        raise KernelError("DK020", "Some work-items %s before the barriers within line %d, and whether the others come "
                          "to these differs." % (how, stmt.line), "OpenCL has no such barriers: " + remedy)

    # --- Statements without barriers in which work-items end ---

    def soft(self, stmts):
        """The statements with the flag for a return, and nothing done behind it."""
        done, guarded, dead = [], [], False
        for stmt in stmts:
            (guarded if dead else done).extend(self.soft_one(stmt))
            if self.ends(stmt):
                done += self._guarded(guarded)
                dead = True
            if isinstance(stmt, tree.Return):
                break
        return done + self._guarded(guarded)

    def soft_one(self, stmt):
        """The same of one statement. What fails in the text of a kernel clears the flag (Function.alive)."""
        if isinstance(stmt, tree.Return):
            return [tree.Assign(stmt.line, _FLAG, tree.Const("bool", False))]
        if not self.ends(stmt) or not bodies(stmt):
            return [stmt]
        before, stmt = self._apart(stmt)
        parts = {name: self.soft(getattr(stmt, name)) for name in ("then", "body", "other") if hasattr(stmt, name)}
        if "body" in parts:
            # Behind the body, so that the loop's condition is not computed, nor its else run, once the work-item ended.
            ended = tree.Unary("bool", "!", self.alive)
            parts["body"].append(tree.If(stmt.line, ended, [tree.Break(stmt.line)], []))
            if self.may_fail(*expressions(stmt)):
                parts["other"] = self._guarded(parts["other"])
        stmt = dataclasses.replace(stmt, **parts)
        return [*before, tree.If(stmt.line, self.alive, [stmt], [])] if before else [stmt]

    def _apart(self, stmt):
        """A condition, or a bound of a loop, in which a work-item may end is computed before the statement."""
        if isinstance(stmt, tree.While):
            return [], stmt  # computed in each round: the text ends the loop
        before, changed = [], {}
        for name in ("cond", "start", "stop", "step"):
            expr = getattr(stmt, name, None)
            if expr is not None and self.may_fail(expr):
                kept = ".kept%d" % len(self.function.locals)
                self.function.locals[kept] = expr.type
                before.append(tree.Assign(stmt.line, kept, expr))
                changed[name] = tree.Var(expr.type, kept)
        guarded = [*before[:1], *(tree.If(stmt.line, self.alive, [one], []) for one in before[1:])]
        return guarded, dataclasses.replace(stmt, **changed)
