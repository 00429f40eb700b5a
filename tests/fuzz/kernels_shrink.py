"""A function that fails made smaller: statements are dropped, expressions replaced by their parts or by numbers."""
import numpy as np

from kernels_groups import GROUP
from kernels_types import kind
from kernels_write import E, number

TRIES = 600


def _blocks(function):
    """All lists of statements, outer ones first."""
    todo = [function.body] + [helper.body for helper in function.helpers]
    while todo:
        block = todo.pop(0)
        yield block
        todo += [body for stmt in block for _head, body in stmt.blocks]


def _without(block, at):
    stmt = block[at]

    def undo():
        block.insert(at, stmt)

    del block[at]
    return undo


def _unwrapped(block, at):
    """A statement's blocks in its place."""
    stmt = block[at]
    inner = [one for _head, body in stmt.blocks for one in body]
    block[at:at + 1] = inner

    def undo():
        block[at:at + len(inner)] = [stmt]

    return undo


def _less(stmt):
    """Without the last of its blocks, such as an else."""
    last = stmt.blocks.pop()

    def undo():
        stmt.blocks.append(last)

    return undo


def _put(parts, at, e):
    before = parts[at]

    def undo():
        parts[at] = before

    parts[at] = e
    return undo


def _slots(function):
    """(list of expressions, place) of all expressions, outer ones first."""
    for block in _blocks(function):
        for stmt in block:
            todo = [(stmt.parts, at) for at in range(len(stmt.parts))]
            while todo:
                parts, at = todo.pop(0)
                yield parts, at
                e = parts[at]
                if e.parts:
                    e.parts = list(e.parts)
                    todo += [(e.parts, place) for place in range(len(e.parts))]


def _inside(e):
    todo = list(e.parts)
    while todo:
        one = todo.pop(0)
        yield one
        todo += one.parts


def _fits(one, e):
    return one.type == e.type and (e.low is None or (one.low is not None and e.low <= one.low and one.high <= e.high))


def _simpler(e):
    """What may stand for an expression: parts of it, and numbers."""
    yield from (one for one in _inside(e) if _fits(one, e))
    if not e.parts and (e.form.lstrip("(-")[:1].isdigit() or e.form.startswith("np.")):
        return  # a number
    if kind(e.type) == 0:
        yield from (E("True" if e.type == "bool" else "np.bool_(True)", [], e.type),
                    E("False" if e.type == "bool" else "np.bool_(False)", [], e.type))
    else:
        found = [number({1: int, 2: float, 3: complex}[kind(e.type)](value), e.type) for value in (1, 0, 2)]
        if e.low is not None:
            found.append(number(e.low, e.type))
        yield from (one for one in found if _fits(one, e))


def _changes(function):
    """Functions that change something and give what undoes it."""
    for block in list(_blocks(function)):
        for at in reversed(range(len(block))):
            yield lambda block=block, at=at: _without(block, at) if at < len(block) else None
    for block in list(_blocks(function)):
        for at in reversed(range(len(block))):
            yield lambda block=block, at=at: _unwrapped(block, at) if at < len(block) and block[at].blocks else None
            yield lambda block=block, at=at: _less(block[at]) if at < len(block) and block[at].blocks[1:] else None
    for parts, at in list(_slots(function)):
        for one in _simpler(parts[at]):
            yield lambda parts=parts, at=at, one=one: _put(parts, at, one) if at < len(parts) else None


def _used(function):
    """Drop functions and parameters that nothing names any more."""
    text = "\n".join(line for one in function.body for line in one.lines())
    for helper in reversed(function.helpers):
        if helper.name + "(" not in text:
            function.helpers.remove(helper)
        else:
            text += "\n".join(helper.lines())
    words = set(text.replace("[", " ").replace("(", " ").replace(",", " ").replace(")", " ").replace(".", " ")
                .replace("]", " ").split())
    for argument in list(function.arguments):
        if argument[0] not in words:
            function.arguments.remove(argument)
            dtype, _, row = argument[1][2:].rstrip(" i,]").partition("[")
            for kept in (function.outputs, function.scratch):
                if row and row.isdigit() and argument[1][0] in "ow" and (dtype, int(row)) in kept:
                    kept.remove((dtype, int(row)))


def shrink(function, fails):
    """Change the function while it fails; `fails(function)` runs it."""
    tries, smaller, text = 0, True, function.lines()
    while smaller and tries < TRIES:
        smaller = False
        for change in _changes(function):
            undo = change()
            if undo is None:
                continue
            now = function.lines()
            if now == text:
                continue  # of what was dropped meanwhile
            tries += 1
            if tries < TRIES and fails(function):
                smaller, text = True, now
            else:
                undo()
    _used(function)


def _literal(value):
    if not isinstance(value, np.ndarray):
        return repr(value)
    if not value.any():
        return "np.zeros(%r, %r)" % (value.shape, value.dtype.name)
    text = " ".join(repr(value.tolist()).split()).replace("nan", "np.nan").replace("inf", "np.inf")
    return "np.array(%s, %r)%s" % (text, value.dtype.name, "" if value.flags.c_contiguous else "[:, :]")


def _arguments(program, function):
    """{name: value} of what the call of a function needs, and its text: outputs and scratch have one row each."""
    given, call = {}, function.call()
    for _, what in function.arguments:
        name, _, place = what.partition("[")
        if name == "item":
            continue
        value = program.argument(name)
        if name[:2] in ("o_", "w_"):
            row = place.partition("]")[0].partition(",")[0]
            kept = given.setdefault(name, [])
            call = call.replace("%s[%s" % (name, row), "%s[%d" % (name, len(kept)), 1)
            kept.append(value[int(row)])
        else:
            given[name] = value
    return {name: np.array(one) if isinstance(one, list) else one for name, one in given.items()}, call


def as_test(program, function):
    """A test that can be pasted into tests/compiler/test_found.py."""
    given, call = _arguments(program, function)
    text = [text for one, text in program.constants if one.name in "\n".join(function.lines())]
    body = [*text, *([""] if text else []), *function.lines()]
    lines = ["def test_%s_of_program_%d(target):" % (function.name, program.seed), "    check(target, '''"]
    lines += ["    " + line if line else "" for line in body] + ["    ''', %r" % call]
    if program.groups:
        lines[-1] += ", group=%d" % GROUP
    for name, value in given.items():
        lines[-1] += ","
        lines.append("          %s=%s" % (name, _literal(value)))
    lines[-1] += ")"
    return "\n".join(lines)
