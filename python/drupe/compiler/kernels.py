"""A kernel: its arguments become parameters of the tree, and its function is lowered."""
from drupe.compiler import places, tree, types
from drupe.compiler.lower import Lowerer, Scope, Unit, settled
from drupe.compiler.messages import KernelError
from drupe.compiler.values import Elements, Items, Number, Place, integer, stored


def lower(function, arguments, *, dims, grouped, fp64=True, device_name="the device", checked=False, dialect=None):
    """The tree.Function of a Python function for arguments of these types (types.py), launched over a Range of `dims`
    dimensions or, where `grouped`, an NdRange. `variables` of it are the Scalars that its variables were found to be;
    `parsed` and `read` tell what was read (Unit).
    `dialect`: a dialects.Dialect, where it was written for another system. Raises KernelError."""
    unit = Unit(dims, grouped, fp64, device_name, checked)
    unit.dialect = dialect
    with types.numbas(dialect is not None):
        return _lower(unit, function, arguments)


def _lower(unit, function, arguments):
    held = unit.dialect.arrays if unit.dialect is not None else []
    arguments, more = arguments[:len(arguments) - len(held)], arguments[len(arguments) - len(held):]
    source, names = unit.parsed(function)
    missing = len(names.params) - len(arguments)
    if missing not in (0, 1) or missing and not _may_take_item(unit):
        raise KernelError("DK008", "%s() takes %d argument%s (%s), and %d %s given." % (
            source.name, len(names.params), "" if len(names.params) == 1 else "s", ", ".join(names.params),
            len(arguments), "was" if len(arguments) == 1 else "were"), "The first parameter may be the item, which a "
            "launch gives by itself." if _may_take_item(unit) else "", place=(source, source.node))
    unit.calling.append(function)

    def attempt(known):
        made = tree.Function(source.name, [], dims=unit.dims, grouped=unit.grouped)
        low = Lowerer(unit, made, Scope(source, names), known)
        low.line = source.node.lineno
        unit.held = {id(one): _argument(low, made, ".held%d" % at, kind, (len(arguments) + at,))
                     for at, (one, kind) in enumerate(zip(held, more))}
        values = [_argument(low, made, name, kind, (at,))
                  for at, (name, kind) in enumerate(zip(names.params[missing:], arguments))]
        if missing:
            values.insert(0, Place("NdItem" if unit.grouped else "Item", unit.dims))
        for name, value in zip(names.params, values):
            if low.scope.counts[name] > 1:
                _given(value, made)
                low.bind(name, value)
            else:
                low.scope.bound[name] = value
        low.run(source.node.body)
        return low

    low = settled(attempt)
    made = low.function
    if any(not param.buffer.readonly for param in made.params if param.buffer and param.source[1][0] >= len(arguments)):
        raise KernelError("DK021", "%s() writes into a global array, which is a constant of it." % source.name,
                          "Pass the array as an argument.", place=(source, source.node))
    made.variables = {name: found[0] for name, found in low.found.items() if isinstance(found, tuple)}
    made.failures = made.failures or any(one.failures for one in made.functions)
    made.sources, made.parsed, made.read = [one for one, _names in unit.sources.values()], unit.sources, unit.read
    made.watched = [one for _source, names in unit.sources.values() for one in names.watched] + unit.watched
    _drop_unused(made)
    return made


def _may_take_item(unit):
    return unit.dialect is None or unit.dialect.item


def _given(value, made):
    """A parameter that the kernel assigns to gets a variable beside it."""
    if isinstance(value, Number):
        param = next(one for one in made.params if one.name == value.expr.name)
        param.name = value.expr.name = param.name + ".given"
    elif isinstance(value, Items):
        for one in value.items:
            _given(one, made)
    elif isinstance(value, Elements):
        value.buffer.name += ".given"


def _argument(low, made, name, kind, path):
    """What an argument is inside; its parameters are added."""
    if isinstance(kind, types.Tuple):
        fields = getattr(kind.cls, "_fields", None) or range(len(kind.items))
        return Items([_argument(low, made, "%s.%s" % (name, field), one, (*path, at))
                      for at, (field, one) in enumerate(zip(fields, kind.items))], kind.cls)
    if isinstance(kind, types.Scalar):
        if kind.name == "float64" and not kind.weak and not low.fp64:
            raise KernelError("DK018", "%s has no float64, which the argument %r is." % (low.device_name, name),
                              "Pass numpy.float32(...).")
        made.params.append(tree.Param(name, stored(kind, low.fp64), None, ("value", path)))
        return Number(kind, tree.Var(stored(kind, low.fp64), name), None,
                      0 if kind.name in types.UNSIGNED else None)
    if kind.dtype in ("float64", "complex128") and not low.fp64:
        raise KernelError("DK018", "%s has no %s, which the elements of %r are." % (low.device_name, kind.dtype, name),
                          "Use float32: x.astype(numpy.float32)")
    buffer = tree.Buffer(name, kind.dtype, kind.space)
    made.params.append(tree.Param(name, kind.dtype, buffer,
                                  ("local" if kind.space == "local" else "pointer", path)))

    def number(what, dim):
        full = "%s.%s%d" % (name, what, dim)
        made.params.append(tree.Param(full, "int64", None, (what, path, dim)))
        return integer(tree.Var("int64", full), 0 if what == "shape" else None)

    shape = [number("shape", dim) for dim in range(kind.ndim)]
    strides = places.packed_strides(low, shape) if kind.layout == "C" else \
        [number("stride", dim) for dim in range(kind.ndim)]
    return Elements(kind.dtype, buffer, shape, strides, None, kind.layout == "C", name)


def _drop_unused(made):
    """Parameters that nothing reads are not passed."""
    used = set()
    for node in tree.walk(made):
        if isinstance(node, tree.Var):
            used.add(node.name)
        for field in ("buffer", "source", "target"):
            buffer = getattr(node, field, None)
            if isinstance(buffer, tree.Buffer):
                used.add(buffer.name)
        if isinstance(node, tree.Call):
            used.update(one.name for one in node.args if isinstance(one, tree.Buffer))
        if isinstance(node, tree.Check):
            used.update(one.name for value in node.values for one in tree.walk(value) if isinstance(one, tree.Var))
        if isinstance(node, tree.Print):
            used.update(one.name for value in node.parts if isinstance(value, tree.Expr)
                        for one in tree.walk(value) if isinstance(one, tree.Var))
    made.params = [one for one in made.params if (one.buffer.name if one.buffer else one.name) in used]
