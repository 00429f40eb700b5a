"""What a loop over prange() is: its dimensions, its reductions, and what its rounds must not do.

A variable that the body assigns belongs to each round. One that every round changes by the same operation, and that
nothing else in the body reads, is a reduction: each part of the rounds has a result of its own, and these are put
together afterwards. All else that one round would leave to another, or to what follows the loop, is an error.
"""
import ast
from dataclasses import dataclass, field

from drupe.compiler.messages import KernelError
from drupe.offloading import flow

_MOST_DIMS = 3
_AUGMENTED = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitOr: "|", ast.BitAnd: "&", ast.BitXor: "^"}
_CALLED = {"min": "min", "max": "max", "minimum": "minimum", "maximum": "maximum", "fmin": "fmin", "fmax": "fmax"}
_GROUPS = {"-": "+", "/": "*"}
_FORMS = "s += x, s *= x, s = min(s, x), s = max(s, x), s |= x, s &= x, s = s and x"


@dataclass
class Reduction:
    """`op`: + * | & ^ and or min max minimum maximum fmin fmax; `updates`: (statement, the value that is put in)."""
    name: str
    op: str
    updates: list


@dataclass
class Parallel:
    """A nest of loops over prange(): a variable and the arguments of range() for each, and the innermost body."""
    stmt: ast.For
    targets: list
    ranges: list
    body: list
    reductions: list = field(default_factory=list)
    inputs: list = field(default_factory=list)


def is_prange(outside, node):
    """Whether a call is one of prange()."""
    return isinstance(node, ast.Call) and getattr(outside.thing(node.func), "__name__", "") == "prange"


def is_range(outside, node):
    return isinstance(node, ast.Call) and outside.thing(node.func) is range


def analyse(source, outside, stmt, live):
    """The Parallel of a loop whose variables `live` are read behind it. Raises KernelError."""
    found = _nest(source, outside, stmt)
    _forbidden(source, found.body, True)
    private = flow.stored(*found.body) | set(found.targets)
    for name in sorted(private & outside.shared):
        _wrong(source, _place(found.body, name) or stmt, "The variable %r of a parallel loop is one of another "
               "function, too, or a global one." % name, "Write results into an array.")
    carried = flow.carried(found.body, found.targets) & private
    for name in sorted(carried, key=lambda one: _order(found.body, one)):
        found.reductions.append(_reduction(source, outside, found.body, name))
    private -= carried
    for name in sorted(private & live):
        _wrong(source, _place([stmt], name), "%r is read behind the parallel loop, whose rounds run side by side, so "
               "that none of them is the last." % name,
               "Write it into an array, or make it a reduction: " + _FORMS + ".")
    names = flow.loaded(*found.body) & outside.locals
    found.inputs = sorted(names - private - carried)
    return found


def _nest(source, outside, stmt):
    found = Parallel(stmt, [], [], [stmt])
    while len(found.body) == 1 and isinstance(found.body[0], ast.For) and len(found.targets) < _MOST_DIMS:
        loop = found.body[0]
        inner = bool(found.targets)
        if not is_prange(outside, loop.iter) or (inner and (
                loop.orelse or flow.loaded(loop.iter) & (set(found.targets) | flow.stored(loop)) or _shares(loop))):
            break
        if not isinstance(loop.target, ast.Name):
            raise KernelError("DK003", "The variable of a loop over prange() is one name.", place=(source, loop.target))
        if loop.iter.keywords or not 1 <= len(loop.iter.args) <= 3 or any(
                isinstance(one, ast.Starred) for one in loop.iter.args):
            raise KernelError("DK008", "prange() takes 1 to 3 arguments: prange(stop), prange(start, stop), "
                              "prange(start, stop, step).", place=(source, loop.iter))
        found.targets.append(loop.target.id)
        found.ranges.append(loop.iter.args)
        found.body = loop.body
    return found


def _shares(loop):
    """Whether all rounds of a loop change one element by what it was, as `sums[i] += x[i, j]` does for each j. Numba
    runs an inner loop over prange() one round after the other, so that is a sum there, and here."""
    own = flow.stored(loop)
    own -= {one.target.id for one in ast.walk(loop) if isinstance(one, ast.For) and one is not loop and
            isinstance(one.target, ast.Name) and not flow.loaded(one.iter) & own}
    for node in ast.walk(loop):
        target = node.target if isinstance(node, ast.AugAssign) else \
            node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if not isinstance(target, ast.Subscript) or flow.loaded(target) & own:
            continue
        same = ast.unparse(target)
        if isinstance(node, ast.AugAssign) or any(ast.unparse(one) == same for one in ast.walk(node.value)
                                                  if isinstance(one, ast.Subscript)):
            return True
    return False


def _forbidden(source, body, own):
    """break, return and such within a parallel loop; `own`: a break here is one of the parallel loop's."""
    for stmt in body:
        if isinstance(stmt, ast.Break) and own:
            raise KernelError("DK022", "A parallel loop has no break: its rounds run side by side.",
                              "Test in each round whether there is something to do, or write range().",
                              place=(source, stmt))
        if isinstance(stmt, ast.Return):
            raise KernelError("DK022", "A parallel loop cannot return from the function: its rounds run side by side.",
                              "Write what was found into an array, or a reduction.", place=(source, stmt))
        loop = isinstance(stmt, (ast.For, ast.While))
        for part in ("body", "orelse"):
            _forbidden(source, getattr(stmt, part, []), own and not (loop and part == "body"))


def continues(body):
    """The body of a kernel, where `continue` of the loop that it was has become a return."""
    return [_Continue().visit(stmt) for stmt in body]


class _Continue(ast.NodeTransformer):
    def visit_For(self, node):
        return node

    visit_While = visit_For

    def visit_Continue(self, node):
        return ast.copy_location(ast.Return(None), node)


# --- Reductions --------------------------------------------------------------------------------------------

def _reduction(source, outside, body, name):
    updates, ops, inside = [], set(), set()
    for node in (one for stmt in body for one in ast.walk(stmt)):
        op, value = _update(outside, node, name)
        if op is None or name in flow.loaded(value):
            continue
        updates.append((node, value))
        ops.add(_GROUPS.get(op, op))
        inside.update(ast.walk(node))
    odd = next((one for stmt in body for one in ast.walk(stmt)
                if isinstance(one, ast.Name) and one.id == name and one not in inside), None)
    if odd is not None:
        assigned = isinstance(odd.ctx, ast.Store)
        _wrong(source, odd, "%r %s here, and it may still hold what another round of the parallel loop has left in it."
               % (name, "is assigned" if assigned else "is read"),
            "Give it a value at the begin of the body, or make it a reduction: " + _FORMS + ", and no other use of it.")
    if len(ops) > 1:
        _wrong(source, updates[1][0], "%r is a reduction by %s: it has one operation." % (
               name, " and ".join(sorted(ops))),
               "Use a variable for each.")
    return Reduction(name, ops.pop(), updates)


def _update(outside, node, name):
    """(operation, value) of a statement that reduces into a variable; (None, None) of others."""
    if isinstance(node, ast.AugAssign) and _is(node.target, name):
        return _AUGMENTED.get(type(node.op)), node.value
    if not (isinstance(node, ast.Assign) and len(node.targets) == 1 and _is(node.targets[0], name)):
        return None, None
    value = node.value
    if isinstance(value, ast.BinOp):
        op = _AUGMENTED.get(type(value.op))
        if op and _is(value.left, name):
            return op, value.right
        if op and op not in _GROUPS and _is(value.right, name):
            return op, value.left
    if isinstance(value, ast.BoolOp) and len(value.values) == 2 and _is(value.values[0], name):
        return "and" if isinstance(value.op, ast.And) else "or", value.values[1]
    if isinstance(value, ast.Call) and len(value.args) == 2 and not value.keywords:
        op = _CALLED.get(getattr(outside.thing(value.func), "__name__", ""))
        for one, other in (value.args, value.args[::-1]):
            if op and _is(one, name):
                return op, other
    return None, None


def _is(node, name):
    return isinstance(node, ast.Name) and node.id == name


# --- Where ------------------------------------------------------------------------------------------------

def _place(body, name):
    return next((one for stmt in body for one in ast.walk(stmt)
                 if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store)), None)


def _order(body, name):
    place = _place(body, name)
    return (place.lineno, place.col_offset) if place is not None else (0, 0)


def _wrong(source, node, cause, remedy):
    raise KernelError("DK023", cause, remedy, place=(source, node))
