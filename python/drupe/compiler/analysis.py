"""What the back end asks of a lowered tree: which names a statement has, and where a variable surely has a value."""
import dataclasses
import functools
from collections import Counter

from drupe.compiler import tree


@functools.cache
def _fields(kind):
    return tuple(one.name for one in dataclasses.fields(kind) if one.type not in (str, int, bool) and
                 one.name != "function")


def parts(node):
    """The nodes right below one, Buffers among them, in order."""
    for name in _fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, (tree.Expr, tree.Stmt, tree.Buffer)):
            yield value
        elif isinstance(value, list):
            yield from (one for one in value if isinstance(one, (tree.Expr, tree.Stmt, tree.Buffer)))


def nodes(*roots):
    """These nodes and all below them, Buffers left out."""
    todo = [node for node in reversed(roots) if not isinstance(node, tree.Buffer)]
    while todo:
        node = todo.pop()
        yield node
        for name in reversed(_fields(type(node))):
            value = getattr(node, name)
            if isinstance(value, (tree.Expr, tree.Stmt)):
                todo.append(value)
            elif isinstance(value, list):
                todo += [one for one in reversed(value) if isinstance(one, (tree.Expr, tree.Stmt))]


class Occurrences:
    """How often each name occurs in a node; kept, as the same nodes are asked for again and again."""

    def __init__(self):
        self._known = {}

    def of(self, node):
        found = self._known.get(id(node))
        if found is None:
            found = Counter()
            if isinstance(node, tree.Buffer):
                found[node.name] += 1
            else:
                name = getattr(node, "var", None) or getattr(node, "name", None)
                if isinstance(node, (tree.Var, tree.Assign, tree.For)):
                    found[name] += 1
                for part in parts(node):
                    found.update(self.of(part))
            self._known[id(node)] = found, node  # the node lives on, so that no other has its id
            return found
        return found[0]

    def of_all(self, stmts):
        found = Counter()
        for stmt in stmts:
            found.update(self.of(stmt))
        return found


def expressions(stmt):
    """The expressions of a statement itself, without those of statements in it."""
    return [part for part in parts(stmt) if isinstance(part, tree.Expr)]


def bodies(stmt):
    """The lists of statements in a statement."""
    if isinstance(stmt, tree.If):
        return [stmt.then, stmt.other]
    if isinstance(stmt, (tree.For, tree.While)):
        return [stmt.body, stmt.other]
    return []


def target(stmt):
    """The name that a statement itself gives a value, or None."""
    if isinstance(stmt, tree.Assign):
        return stmt.name
    return stmt.target.name if isinstance(stmt, tree.Point) else None


def assigned(stmts):
    """All names that these statements give a value."""
    found = set()
    for node in nodes(*stmts):
        name = node.var if isinstance(node, tree.For) else target(node)
        if name is not None:
            found.add(name)
    return found


def _reads(stmt, name, seen):
    """Whether a statement's own expressions have the name; of Point, the source as well."""
    if isinstance(stmt, tree.Point) and stmt.source.name == name:
        return True
    if isinstance(stmt, tree.Store) and stmt.buffer.name == name:
        return True
    return any(seen.of(one)[name] for one in expressions(stmt))


def first(stmts, name, seen):
    """What happens to a variable first: "read" (it may be), "set" (surely), or None: it passes these by."""
    for stmt in stmts:
        if not seen.of(stmt)[name]:
            if isinstance(stmt, tree.Return):
                return "set"
            continue
        if _reads(stmt, name, seen):
            return "read"
        if target(stmt) == name:
            return "set"
        blocks = bodies(stmt)
        if isinstance(stmt, tree.For) and stmt.var == name:
            blocks = blocks[1:]  # its body finds a value
        inner = [first(block, name, seen) for block in blocks]
        if "read" in inner:
            return "read"
        if isinstance(stmt, tree.If) and inner == ["set", "set"]:
            return "set"
    return None


def calls(*roots):
    """The device functions that these nodes call themselves."""
    return [node.function for node in nodes(*roots) if isinstance(node, tree.Call) and node.function is not None]


def reachable(function):
    """All device functions that a function may get into, callees first."""
    found = []

    def add(one):
        for callee in calls(*one.body):
            if callee not in found:
                add(callee)
                found.append(callee)

    add(function)
    return found


def everything(function):
    """The nodes of a function and of all that it calls."""
    for one in (*reachable(function), function):
        yield from nodes(*one.body)


def without_else(stmts, fresh):
    """The statements with no `else` of a loop: a flag that `fresh` names says whether a break ended it."""

    def many(block, flag):
        return [one for stmt in block for one in single(stmt, flag)]

    def single(stmt, flag):
        if isinstance(stmt, tree.Break) and flag:
            return [tree.Assign(stmt.line, flag, tree.Const("bool", True)), stmt]
        if isinstance(stmt, tree.If):
            return [dataclasses.replace(stmt, then=many(stmt.then, flag), other=many(stmt.other, flag))]
        if not isinstance(stmt, (tree.For, tree.While)):
            return [stmt]
        own = fresh() if stmt.other else None
        loop = dataclasses.replace(stmt, body=many(stmt.body, own), other=[])
        if own is None:
            return [loop]
        rest = tree.If(stmt.line, tree.Unary("bool", "!", tree.Var("bool", own)), many(stmt.other, flag))
        return [tree.Assign(stmt.line, own, tree.Const("bool", False)), loop, rest]

    if any(isinstance(node, (tree.For, tree.While)) and node.other for node in nodes(*stmts)):
        return many(stmts, None)
    return stmts


def rebuilt(node, change):
    """A copy of a node with `change` made of each Var and For in it, inner ones first."""
    fields = {}
    for name in _fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, (tree.Expr, tree.Stmt)):
            fields[name] = rebuilt(value, change)
        elif isinstance(value, list):
            fields[name] = [rebuilt(one, change) if isinstance(one, (tree.Expr, tree.Stmt)) else one for one in value]
    return change(dataclasses.replace(node, **fields))


def loops_apart(stmts, seen, fresh):
    """The statements with a variable for each loop, where several loops have one and nothing else reads it.
    `fresh(name)` makes another of the name."""
    loops, counts, inside = {}, seen.of_all(stmts), Counter()
    todo = list(stmts)
    while todo:
        stmt = todo.pop()
        todo += [one for body in bodies(stmt) for one in body]
        if isinstance(stmt, tree.For):
            loops.setdefault(stmt.var, []).append(stmt)
            inside[stmt.var] += 1 + seen.of_all(stmt.body)[stmt.var]
    several = {name for name, found in loops.items() if len(found) > 1 and inside[name] == counts[name] and
               not any(name in assigned(one.body) for one in found)}
    if not several:
        return stmts

    def change(node):
        if not isinstance(node, tree.For) or node.var not in several:
            return node
        old, new = node.var, fresh(node.var)

        def renamed(inner):
            return dataclasses.replace(inner, name=new) if isinstance(inner, tree.Var) and inner.name == old else inner

        return dataclasses.replace(node, var=new, body=[rebuilt(one, renamed) for one in node.body])

    return [rebuilt(stmt, change) for stmt in stmts]
