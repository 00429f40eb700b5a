"""Kernels that are made of loops: a def around the loop's body, and what its parameters are.

Names of ours begin with `drupe_`. Where the rounds of a loop are cut into parts, a part is a loop of its own, and has
its own results of reductions; the first part goes on from the value that the variable had.
"""
import ast
import copy
from dataclasses import dataclass, field

from drupe.offloading import parallel
from drupe.offloading.outside import statements

ITEM = "drupe_item"
_ZEROS = {"+": 0, "*": 1, "^": 0}  # what other parts than the first begin with; of other operations all begin alike


def _number(value, place):
    return ast.copy_location(ast.Constant(value), place)


def _def(name, params, body, place):
    node = ast.FunctionDef(name, ast.arguments([], [ast.arg(one) for one in params], None, [], [], None, []), body, [],
                           None)
    node.type_params = []
    return ast.fix_missing_locations(ast.copy_location(node, place))


def _index(way, dim, count):
    """(expression, parameters) of a loop's variable from the number of its round, which `count` is."""
    place, args, natural = way.found.stmt, way.found.ranges[dim], way.natural
    params, expr = [], count
    if len(args) == 1:
        return expr, params
    step = args[2] if len(args) == 3 else _number(1, place)
    start = args[0] if len(args) > 1 else _number(0, place)
    if not isinstance(step, ast.Constant):
        params.append("drupe_step%d" % dim)
        step = _known("drupe_step%d" % dim, 1, natural, place)
    if not (isinstance(step, ast.Constant) and step.value == 1):
        expr = ast.BinOp(expr, ast.Mult(), step)
    if not isinstance(start, ast.Constant):
        params.append("drupe_start%d" % dim)
        start = _known("drupe_start%d" % dim, 0, natural, place)
    expr = ast.BinOp(start, ast.Add(), expr)
    for node in ast.walk(expr):
        if not hasattr(node, "lineno"):
            ast.copy_location(node, place)
    return expr, params


def _known(name, least, natural, place):
    """A parameter of which the compiler may know that it is not less."""
    if not natural:
        return statements(name, {}, place)[0].value
    return statements("max(%s, %d)" % (name, least), {}, place)[0].value


def _call_id(dim, place):
    return statements("%s.get_id(%d)" % (ITEM, dim), {}, place)[0].value


@dataclass
class Way:
    """How a parallel loop is made a kernel: `inputs` names of what it reads; `natural`: its ranges do not go below 0;
    `arrays`: the dimensions of names that are arrays, and `whole` the reductions among them."""
    name: str
    found: parallel.Parallel
    inputs: list
    natural: bool
    arrays: dict = field(default_factory=dict)
    whole: frozenset = frozenset()


class Piece:
    """A def that is to be a kernel: `params` without the item, in the order in which the launch passes them. `bounds`
    are those among them that say where ranges begin and how they count; `given`: what other names stand for."""

    def __init__(self, name, params, body, place, bounds=(), given=None):
        self.params, self.bounds, self.given = params, bounds, given or {}
        self.node = _def(name, [ITEM, *params], body, place)


def plain(way):
    """A work-item for each round."""
    place, params, body = way.found.stmt, [], []
    for dim, target in enumerate(way.found.targets):
        expr, more = _index(way, dim, _call_id(dim, place))
        params += more
        body += statements("target = expr", {"target": target, "expr": expr}, place)
    body += parallel.continues(copy.deepcopy(way.found.body))
    return Piece(way.name, [*params, *way.inputs], body, place, params)


# --- Reductions --------------------------------------------------------------------------------------------

def _begin(reduction, whole, place):
    """What a part begins with. A part of a whole array has been filled already."""
    names = {"s": reduction.name, "given": "drupe_in_" + reduction.name, "part": "drupe_part_" + reduction.name}
    if whole:
        return statements("s = part[drupe_part]", names, place)
    if reduction.op in _ZEROS:
        return statements("s = given if drupe_part == 0 else %d" % _ZEROS[reduction.op], names, place)
    return statements("s = bool(given)" if reduction.op in ("and", "or") else "s = given", names, place)


def _around(way, sizes, bounds, rounds, head=None, given=None):
    """The def around the rounds of a part: where its reductions begin, and where their results are put."""
    place, body, numbers, ends = way.found.stmt, [], [], []
    for one in way.found.reductions:
        part = "drupe_part_" + one.name
        if one.name not in way.whole:
            numbers.append("drupe_in_" + one.name)
            ends += statements("part[drupe_part] = s", {"s": one.name, "part": part}, place)
        if head is None:
            body += _begin(one, one.name in way.whole, place)
    body = statements("drupe_part = %s.get_id(0)" % ITEM, {}, place) + (head or body) + rounds + ends
    results = ["drupe_part_" + one.name for one in way.found.reductions]
    params = [*sizes, *("drupe_n%d" % dim for dim in range(len(way.found.targets))), *bounds, *way.inputs, *numbers,
              *results]
    return Piece(way.name, params, body, place, bounds, given)


def _body(way):
    body = copy.deepcopy(way.found.body)
    for name in way.whole:
        whole = _Whole(name, way.arrays)
        body = [one for stmt in body for one in _listed(whole.visit(stmt))]
    return body


def _listed(thing):
    return thing if isinstance(thing, list) else [thing]


def blocks(way):
    """A work-item for each block of rounds that follow one another, as CPUs like it. Inner dimensions are loops."""
    found, inner, bounds = way.found, _body(way), []
    for dim in range(len(found.targets) - 1, 0, -1):
        expr, more = _index(way, dim, _load("drupe_k%d" % dim, found.stmt))
        bounds += more
        inner = statements("for drupe_k%d in range(drupe_n%d):\n    target = expr\n    BODY" % (dim, dim), {
            "target": found.targets[dim], "expr": expr, "BODY": inner}, found.stmt)
    expr, more = _index(way, 0, _load("drupe_k0", found.stmt))
    rounds = statements(
        "drupe_low = drupe_part*max(drupe_per, 1)\n"
        "for drupe_k0 in range(drupe_low, min(drupe_low + drupe_per, drupe_n0)):\n    target = expr\n    BODY",
        {"target": found.targets[0], "expr": expr, "BODY": inner}, found.stmt)
    return _around(way, ["drupe_per"], bounds + more, rounds)


def _load(name, place):
    return ast.copy_location(ast.Name(name, ast.Load()), place)


def strided(way):
    """A work-item for every n-th round, so that neighbours read neighbours, as GPUs like it."""
    found, bounds, rounds, rest = way.found, [], [], "drupe_k"
    for dim in range(len(found.targets) - 1, -1, -1):
        count = rest if dim == 0 else "%s %% max(drupe_n%d, 1)" % (rest, dim)
        expr, more = _index(way, dim, statements(count, {}, found.stmt)[0].value)
        bounds += more
        rounds += statements("target = expr", {"target": found.targets[dim], "expr": expr}, found.stmt)
        rest = "(%s // max(drupe_n%d, 1))" % (rest, dim)
    total = "*".join("drupe_n%d" % dim for dim in range(len(found.targets)))
    rounds = statements("for drupe_k in range(drupe_part, %s, max(drupe_parts, 1)):\n    BODY" % total,
                        {"BODY": rounds + _body(way)}, found.stmt)
    return _around(way, ["drupe_parts"], bounds, rounds)


def lanes(way, width, dtypes):
    """Blocks, whose rounds are dealt to `width` results in turn: the compiler computes these side by side, which a sum
    of floats in one order does not allow. `dtypes`: those of the reductions."""
    from drupe.kernel_api import PrivateArray

    place, head, tail = way.found.stmt, [], []
    for at, one in enumerate(way.found.reductions):
        names = {"lanes": "drupe_lanes_" + one.name, "given": "drupe_in_" + one.name, "s": one.name}
        begin = "given if drupe_part + drupe_l == 0 else %d" % _ZEROS[one.op] if one.op in _ZEROS else "given"
        head += statements("lanes = drupe_array(%d, drupe_types[%d])\nfor drupe_l in range(%d):\n"
                           "    lanes[drupe_l] = %s" % (width, at, width, begin), names, place)
        tail += statements("s = lanes[0]\nfor drupe_l in range(1, %d):\n    JOIN" % width,
                           {**names, "JOIN": _joined(one, names, place)}, place)
    count = statements("drupe_low + drupe_k0*%d + drupe_l" % width, {}, place)[0].value
    wide, bounds = _index(way, 0, count)
    narrow, _bounds = _index(way, 0, _load("drupe_k0", place))
    first, second = (_in_lanes(way.found, lane) for lane in (_load("drupe_l", place), _number(0, place)))
    rounds = statements(_DEALT.replace("WIDTH", str(width)), {
        "target": way.found.targets[0], "wide": wide, "narrow": narrow, "FIRST": first, "SECOND": second}, place)
    return _around(way, ["drupe_per"], bounds, rounds + tail, head,
                   {"drupe_array": PrivateArray, "drupe_types": dtypes})


_DEALT = """
drupe_low = drupe_part*max(drupe_per, 1)
drupe_high = min(drupe_low + drupe_per, drupe_n0)
drupe_whole = max(drupe_high - drupe_low, 0) // WIDTH
for drupe_k0 in range(drupe_whole):
    for drupe_l in range(WIDTH):
        target = wide
        FIRST
for drupe_k0 in range(drupe_low + drupe_whole*WIDTH, drupe_high):
    target = narrow
    SECOND
"""


def _joined(reduction, names, place):
    """s = s op lanes[drupe_l], written as the user has written it."""
    stmt = copy.deepcopy(reduction.updates[0][0])
    if reduction.op in ("+", "*"):
        return statements("s %s= lanes[drupe_l]" % reduction.op, names, place)
    value = reduction.updates[0][1]
    joined = statements("lanes[drupe_l]", names, place)[0].value
    stmt.value.args = [joined if ast.dump(one) == ast.dump(value) else one for one in stmt.value.args]
    return [stmt]


def _in_lanes(found, lane):
    names = {one.name for one in found.reductions}
    return [_Lanes(names, lane).visit(stmt) for stmt in copy.deepcopy(found.body)]


class _Lanes(ast.NodeTransformer):
    def __init__(self, names, lane):
        self.names, self.lane = names, lane

    def visit_Name(self, node):
        if node.id not in self.names:
            return node
        lanes = ast.copy_location(ast.Name("drupe_lanes_" + node.id, ast.Load()), node)
        return ast.copy_location(ast.Subscript(lanes, ast.copy_location(copy.copy(self.lane), node), node.ctx), node)


class _Whole(ast.NodeTransformer):
    """`acc += e` of a whole array, element by element. `arrays`: the number of dimensions of names that are arrays."""

    def __init__(self, name, arrays):
        self.name, self.arrays = name, arrays

    def visit_AugAssign(self, node):
        if not (isinstance(node.target, ast.Name) and node.target.id == self.name):
            return node
        dims = self.arrays[self.name]
        places = ["drupe_q%d" % dim for dim in range(dims)]
        target = ast.Subscript(ast.Name(self.name, ast.Load()), _key(places), ast.Store())
        stmt = ast.AugAssign(target, node.op, self._element(node.value, places))
        body = [ast.fix_missing_locations(ast.copy_location(stmt, node))]
        for dim in range(dims - 1, -1, -1):
            body = statements("for %s in range(s.shape[%d]):\n    BODY" % (places[dim], dim),
                              {"s": self.name, "BODY": body}, node)
        return body

    def _element(self, node, places):
        """The element of an expression of arrays: each takes the indices of its own dimensions, the last ones."""
        dims = self._dims(node)
        if dims:
            return ast.copy_location(ast.Subscript(node, _key(places[len(places) - dims:]), ast.Load()), node)
        if isinstance(node, (ast.BinOp, ast.UnaryOp)):
            for part in ("left", "right", "operand"):
                if hasattr(node, part):
                    setattr(node, part, self._element(getattr(node, part), places))
        if isinstance(node, ast.Call):
            node.args = [self._element(one, places) for one in node.args]
        return node

    def _dims(self, node):
        if isinstance(node, ast.Name):
            return self.arrays.get(node.id, 0)
        if isinstance(node, ast.Subscript):
            keys = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            plain = sum(not isinstance(one, ast.Slice) for one in keys)
            return max(0, self._dims(node.value) - plain)
        return 0


def _key(places):
    names = [ast.Name(one, ast.Load()) for one in places]
    return names[0] if len(names) == 1 else ast.Tuple(names, ast.Load())


# --- Serial loops ------------------------------------------------------------------------------------------

def serial(name, stmt, inputs, outputs):
    """One work-item for the whole loop; what is read behind it goes into arrays of one element."""
    body = [copy.deepcopy(stmt)]
    for one in outputs:
        body += statements("out[0] = s", {"out": "drupe_out_" + one, "s": one}, stmt)
    return Piece(name, [*inputs, *("drupe_out_" + one for one in outputs)], body, stmt)


def is_loopless(body):
    return not any(isinstance(node, (ast.For, ast.While)) for stmt in body for node in ast.walk(stmt))


def is_counted(stmt):
    """Whether a loop over range() touches no element."""
    return isinstance(stmt, ast.For) and not any(isinstance(node, ast.Subscript) for node in ast.walk(stmt))


def attributes(stmt):
    """{name: attributes} of the names of which a loop only reads attributes."""
    found, owners = {}, set()
    for node in ast.walk(stmt):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and isinstance(node.ctx, ast.Load):
            owners.add(node.value)
            found.setdefault(node.value.id, set()).add(node.attr)
    others = {node.id for node in ast.walk(stmt) if isinstance(node, ast.Name) and node not in owners}
    return {name: sorted(names) for name, names in found.items()
            if name not in others and not any(one.startswith("_") for one in names)}
