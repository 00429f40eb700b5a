"""Kernels with barriers, cut into regions: what a work-item does between two barriers.

On the host one thread runs a group, so each region becomes a loop over the group's work-items. An if or a loop with a
barrier in it, which all work-items take alike, is run once for the group: it is a Step with Regions inside, and its
condition is that of the first work-item. What becomes of a variable depends on where it occurs:

- each region that reads it gives it a value before: it is a variable of that region;
- `rebuilt`: it is assigned once, from places and parameters, and computed again wherever it is used;
- `shared`: all its values are the same for all work-items, and the group has it once;
- `items`: each work-item has its own, from one region to the next.
"""
import dataclasses
from dataclasses import dataclass, field

from drupe.compiler import analysis, tree, types
from drupe.compiler.analysis import bodies, expressions, nodes, target

_VARYING = ("global_id", "local_id", "sub_group_id", "sub_group_local_id")


@dataclass
class Region:
    stmts: list
    ends: bool  # a work-item may end in it
    looped: bool  # it may run several times
    last: bool = False  # nothing follows


@dataclass
class Step:
    """A statement of the group: an Assign or Point of something shared; If, For, While with Regions and Steps in
    `bodies`; Break, Continue."""
    stmt: tree.Stmt
    bodies: list = field(default_factory=list)


@dataclass
class Plan:
    steps: list
    shared: set
    items: list
    rebuilt: dict  # name → value, each behind those that it is made of
    arrays: list  # private arrays that live from one region to the next
    types: dict

    @property
    def masked(self):
        """Whether later regions must skip work-items that have ended."""
        return any(one.ends and not one.last for one in self.regions())

    def regions(self, steps=None):
        for one in self.steps if steps is None else steps:
            if isinstance(one, Region):
                yield one
            else:
                for body in one.bodies:
                    yield from self.regions(body)


def has_barrier(stmt):
    return any(isinstance(node, tree.Barrier) for node in nodes(stmt))


def _leaves(stmt):
    """Whether it has a break or continue of a loop around it."""
    if isinstance(stmt, (tree.Break, tree.Continue)):
        return True
    return isinstance(stmt, tree.If) and any(_leaves(one) for body in bodies(stmt) for one in body)


def is_step(stmt):
    """Whether the group takes this statement of a list of the group's; there, loops around have barriers."""
    return _leaves(stmt) or has_barrier(stmt)


def is_pure(expr, failing):
    """Whether computing it once instead of for each work-item makes no difference to others."""
    todo = list(nodes(expr))
    for function in analysis.calls(expr):
        if id(function) in failing:
            return False
        todo += [node for one in (*analysis.reachable(function), function) for node in nodes(*one.body)]
    return not any(isinstance(node, (tree.Atomic, tree.Store, tree.Print, tree.SubGroup)) for node in todo)


def of_group(stmts):
    """The statements of the group's own lists, those in its ifs and loops among them."""
    for stmt in stmts:
        yield stmt
        if is_step(stmt):
            for body in bodies(stmt):
                yield from of_group(body)


class Planner:
    """Makes the Plan of a kernel's body, which has no `else` of loops. `fresh(name, type)` makes a variable."""

    def __init__(self, body, variables, views, seen, failing, fresh):
        self.types, self.views, self.seen, self.failing, self.fresh = variables, views, seen, failing, fresh
        self.assigned = analysis.assigned(body)
        self.rebuilt = self._rebuilt(body)
        body = self._without(body)
        while True:
            uniform = self._uniform(body)
            changed = self._rewritten(body, uniform)
            if changed is None:
                break
            body = changed
            self.assigned = analysis.assigned(body)
        self.body, self.uniform = body, uniform

    def plan(self):
        shared = {stmt.var for stmt in of_group(self.body) if isinstance(stmt, tree.For) and is_step(stmt)}
        while True:
            steps = self._divided(self.body, shared, False)
            crossing = self._crossing(steps)
            more = {name for name in crossing if name in self.uniform} - shared
            if not more:
                break
            shared |= more
        if steps and isinstance(steps[-1], Region):
            steps[-1].last = True
        names = self.seen.of_all(self.body)
        arrays = [one for one in self.views.values() if one.size is not None and one.name in crossing]
        known = [name for name in crossing if name not in shared and names[name] and
                 (name in self.types or self._is_view(name))]
        return Plan(steps, shared, known, self.rebuilt, arrays, self.types)

    def _is_view(self, name):
        return name in self.views and self.views[name].size is None

    # --- Variables that are computed again ---

    def _rebuilt(self, body):
        """Variables that are assigned once, from what never changes."""
        counts, found = {}, {}
        for node in nodes(*body):
            if isinstance(node, tree.For):
                counts[node.var] = 2
            elif target(node) is not None:
                counts[target(node)] = counts.get(target(node), 0) + 1
        outer = {id(stmt) for stmt in body}
        for node in nodes(*body):
            if isinstance(node, tree.Assign) and counts[node.name] == 1 and \
                    self._is_cheap(node.value, found, id(node) in outer):
                found[node.name] = node.value
        return found

    def _is_cheap(self, expr, found, always):
        for node in nodes(expr):
            if isinstance(node, tree.Var):
                if node.name in self.assigned and node.name not in found:
                    return False
            elif isinstance(node, tree.Binary):
                if node.op in ("//", "%") and not always and not isinstance(node.b, tree.Const):
                    return False
            elif isinstance(node, tree.Call):
                if not tree.is_cheap(node) or node.type not in types.INTEGERS:
                    return False
            elif not isinstance(node, (tree.Const, tree.Query, tree.Unary, tree.Cast, tree.Select)):
                return False
        return True

    def _without(self, stmts):
        """Without the assignments of what is computed again."""
        kept = []
        for stmt in stmts:
            if isinstance(stmt, tree.Assign) and stmt.name in self.rebuilt:
                continue
            if isinstance(stmt, tree.If):
                stmt = dataclasses.replace(stmt, then=self._without(stmt.then), other=self._without(stmt.other))
            elif isinstance(stmt, (tree.For, tree.While)):
                stmt = dataclasses.replace(stmt, body=self._without(stmt.body))
            kept.append(stmt)
        return kept

    # --- What is the same for all work-items ---

    def _uniform(self, body):
        """Variables that only the group's own statements assign, from what is the same for all."""
        own = list(of_group(body))
        mine = {id(stmt) for stmt in own}
        names = {name for name in self.assigned if name not in self.rebuilt}
        for node in nodes(*body):
            name = node.var if isinstance(node, tree.For) else target(node)
            if name is not None and (id(node) not in mine or isinstance(node, tree.For) and not is_step(node)):
                names.discard(name)
        while True:
            wrong = set()
            for stmt in own:
                name = stmt.var if isinstance(stmt, tree.For) else target(stmt)
                if name not in names:
                    continue
                source = [tree.Var("int64", stmt.source.name)] if isinstance(stmt, tree.Point) else []
                if not all(self._is_uniform(one, names) for one in (*expressions(stmt), *source)):
                    wrong.add(name)
            if not wrong:
                return names
            names -= wrong

    def _is_uniform(self, expr, names):
        for node in nodes(expr):
            if isinstance(node, tree.Query):
                if node.what in _VARYING:
                    return False
            elif isinstance(node, tree.Var):
                if not self._is_uniform_name(node.name, names):
                    return False
            elif isinstance(node, tree.Load):
                if node.buffer.space == tree.PRIVATE or not self._is_uniform_name(node.buffer.name, names):
                    return False
            elif isinstance(node, (tree.Atomic, tree.SubGroup)) or \
                    isinstance(node, tree.Call) and node.function is not None:
                return False
        return True

    def _is_uniform_name(self, name, names):
        if name in self.rebuilt:
            return self._is_uniform(self.rebuilt[name], names)
        if name in self.views and self.views[name].space == tree.PRIVATE:
            return False
        return name in names or name not in self.assigned

    # --- Statements that the group cannot take as they are ---

    def _rewritten(self, stmts, uniform):
        """The list with one statement of the group written otherwise, or None."""
        for at, stmt in enumerate(stmts):
            if not is_step(stmt):
                continue
            made = self._otherwise(stmt, uniform)
            if made is not None:
                return [*stmts[:at], *made, *stmts[at + 1:]]
            for name in ("then", "other", "body"):
                inner = getattr(stmt, name, None)
                changed = self._rewritten(inner, uniform) if inner else None
                if changed is not None:
                    return [*stmts[:at], dataclasses.replace(stmt, **{name: changed}), *stmts[at + 1:]]
        return None

    def _otherwise(self, stmt, uniform):
        line = stmt.line
        if isinstance(stmt, tree.For) and (stmt.var not in uniform or not all(
                is_pure(one, self.failing) for one in expressions(stmt))):
            return self._as_while(stmt)
        if isinstance(stmt, (tree.If, tree.While)) and not is_pure(stmt.cond, self.failing):
            name = self.fresh("drupe_cond", "bool")
            first, cond = tree.Assign(line, name, stmt.cond), tree.Var("bool", name)
            if isinstance(stmt, tree.If):
                return [first, dataclasses.replace(stmt, cond=cond)]
            leave = tree.If(line, tree.Unary("bool", "!", cond), [tree.Break(line)])
            return [tree.While(line, tree.Const("bool", True), [first, leave, *stmt.body])]
        return None

    def _as_while(self, stmt):
        """A loop whose variable differs between work-items; how often it runs does not."""
        line, kind = stmt.line, self.types[stmt.var]
        at, stop, step = (self.fresh("drupe_" + name, kind) for name in ("at", "stop", "step"))
        down = isinstance(stmt.step, tree.Const) and stmt.step.value < 0
        rest = [tree.Assign(line, stmt.var, tree.Var(kind, at)),
                tree.Assign(line, at, tree.Binary(kind, "+", tree.Var(kind, at), tree.Var(kind, step), True))]
        cond = tree.Binary("bool", ">" if down else "<", tree.Var(kind, at), tree.Var(kind, stop))
        return [tree.Assign(line, at, stmt.start), tree.Assign(line, stop, stmt.stop),
                tree.Assign(line, step, stmt.step), tree.While(line, cond, [*rest, *stmt.body])]

    # --- Cutting ---

    def _divided(self, stmts, shared, looped):
        steps, run = [], []

        def end():
            if run:
                steps.append(Region(list(run), self._ends(run), looped))
                run.clear()

        for stmt in stmts:
            if isinstance(stmt, tree.Barrier):
                end()
            elif target(stmt) in shared and self._comes_first(stmt, run):
                steps.append(Step(stmt))
            elif is_step(stmt) or target(stmt) in shared:
                end()
                inside = looped or isinstance(stmt, (tree.For, tree.While))
                steps.append(Step(stmt, [self._divided(body, shared, inside) for body in bodies(stmt)]))
            else:
                run.append(stmt)
        end()
        return steps

    def _comes_first(self, stmt, run):
        """Whether an assignment of the group may as well happen before these statements of work-items."""
        return isinstance(stmt, tree.Assign) and not any(self.seen.of(one)[stmt.name] for one in run) and \
            not any(isinstance(node, tree.Load) for node in nodes(stmt.value))

    def _ends(self, stmts):
        return any(isinstance(node, (tree.Return, tree.Check)) or isinstance(node, tree.Call) and
                   id(node.function) in self.failing for node in nodes(*stmts))

    def _sections(self, steps):
        for one in steps:
            if isinstance(one, Region):
                yield one, self.seen.of_all(one.stmts)
                continue
            names = self.seen.of_all(expressions(one.stmt))
            if isinstance(one.stmt, tree.For):
                names[one.stmt.var] += 1
            elif not one.bodies:
                names = self.seen.of(one.stmt)
            yield one, names
            for body in one.bodies:
                yield from self._sections(body)

    def _crossing(self, steps):
        """Names whose value one place leaves for another, or for its own next run; in order."""
        where = {}
        for one, names in self._sections(steps):
            for name in self._made_of(names):
                where.setdefault(name, []).append(one)
        return [name for name, places in where.items() if self._crosses(name, places)]

    def _crosses(self, name, places):
        again = len(places) > 1 or isinstance(places[0], Region) and places[0].looped
        if name in self.views and self.views[name].size is not None:
            return again
        return any(not isinstance(one, Region) or again and analysis.first(one.stmts, name, self.seen) == "read"
                   for one in places)

    def _made_of(self, names):
        """The names, those that others are computed from among them."""
        todo, found = list(names), {}
        while todo:
            name = todo.pop()
            if name in self.rebuilt:
                todo += self.seen.of(self.rebuilt[name])
            elif name in self.assigned or name in self.views:
                found[name] = True
        return sorted(found)
