"""From a function and the types of its arguments to the lowered tree (tree.py).

Types are found by lowering: a variable has the common type of all that is assigned to it, and as a later assignment
can widen what an earlier statement has used, the function is lowered again until the types stay. So there is one place
that knows what an operation gives, and what the last run wrote is the result.
"""
import ast

from drupe.compiler import operators, places, tree, types
from drupe.compiler.expressions import Expressions
from drupe.compiler.messages import KernelError
from drupe.compiler.names import Names
from drupe.compiler.source import Source
from drupe.compiler.statements import Statements
from drupe.compiler.types import INT, Scalar
from drupe.compiler.values import Elements, Items, Known, Number, Place, Reference, constant, integer, is_simple, stored

_ROUNDS, _WIDEN = 12, 3


class Unit:
    """One kernel for one set of argument types, and what it is compiled for. `kind`: "item", "nditem", or "old" for
    kernels that take no item and ask get_global_id()."""

    def __init__(self, dims, grouped, fp64=True, device_name="the device", checked=False, asserts=False):
        self.dims, self.grouped, self.fp64, self.device_name = dims, grouped, fp64, device_name
        self.checked, self.asserts, self.watched = checked, asserts, []
        self.read = []  # (object of Python, name, value) of each attribute that was read
        self.sources, self.known, self.functions, self.calling = {}, {}, {}, []
        self.dialect, self.held = None, {}  # held: id of a global array → what it is in the kernel, an Elements

    def parsed(self, function):
        """(Source, Names) of a Python function; read once."""
        if function not in self.sources:
            source = Source(function)
            self.sources[function] = (source, Names(source))
        return self.sources[function]


class Scope:
    """The names of one function while it is lowered: `bound` maps those that have a value to it."""

    def __init__(self, source, names, prefix=""):
        self.source, self.names, self.prefix, self.bound, self.result = source, names, prefix, {}, None
        self.counts, self.depth = names.counts, 0  # depth: in how many loops


class Lowerer(Expressions, Statements):
    """One run through a function."""

    def __init__(self, unit, function, scope, known):
        self.unit, self.function, self.scope = unit, function, scope
        self.known, self.first = known or {}, known is None  # what the run before has found; whether there was none
        self.fp64, self.device_name, self.checked = unit.fp64, unit.device_name, unit.checked
        self.block, self.line, self.found, self.numbers = function.body, 0, {}, {}
        self.roots, self.changed, self.inlined, self.moved = {}, set(), False, False

    # --- Emitting, and names ---

    def emit(self, stmt):
        self.block.append(stmt)

    def fresh(self, name):
        """A name that no variable has: the same ones in each run."""
        self.numbers[name] = number = self.numbers.get(name, 0) + 1
        return "%s.%s%d" % (self.scope.prefix, name, number)

    def counter(self):
        """A variable for a loop that counts."""
        name = self.fresh("i")
        self.function.locals[name] = "int64"
        return name

    def temporary(self, kind, expr=None):
        """A variable for one value."""
        name = self.fresh("t")
        self.function.locals[name] = kind
        if expr is not None:
            self.emit(tree.Assign(self.line, name, expr))
        return tree.Var(kind, name)

    def once(self, number):
        """The number, such that using it twice computes it once."""
        return number if is_simple(number.expr) else self.kept_once(number)

    def kept_once(self, number):
        """The number in a variable: what it does, or reads, happens here."""
        return Number(number.scalar, self.temporary(number.expr.type, number.expr), number.const, number.low)

    def keep(self, name, number):
        """A number that belongs to another value, in a variable of its own name."""
        if isinstance(number.expr, tree.Const):
            return number
        full = self.slot(name)
        self.function.locals[full] = number.expr.type
        self.emit(tree.Assign(self.line, full, number.expr))
        return Number(number.scalar, tree.Var(number.expr.type, full), None, number.low)

    def slot(self, name):
        return self.scope.prefix + name

    def detached(self, value):
        """A value that a later assignment does not change."""
        if isinstance(value, Number):
            return value if isinstance(value.expr, (tree.Const, tree.Query)) else self.kept_once(value)
        if isinstance(value, Items):
            return Items([self.detached(one) for one in value.items], value.cls)
        if isinstance(value, Elements):
            buffer = tree.Buffer(self.fresh("p"), value.dtype, value.buffer.space)
            self.view_of(buffer, value.buffer)
            self.emit(tree.Point(self.line, buffer, value.buffer, (value.offset or constant(0)).expr))
            return Elements(value.dtype, buffer, [self.detached(one) for one in value.shape],
                            [self.detached(one) for one in value.strides], None, value.packed, value.name)
        return value

    # --- Buffers ---

    def view_of(self, buffer, source):
        """A view is written where its source is."""
        if all(one.name != buffer.name for one in self.function.buffers):
            self.function.buffers.append(buffer)
        self.roots.setdefault(buffer.name, set()).add(source.name)

    def written(self, buffer):
        self.changed.add(buffer.name)

    def settle_buffers(self):
        """Say of each buffer whether nothing is written to it."""
        todo = list(self.changed)
        while todo:
            for name in self.roots.get(todo.pop(), ()):
                if name not in self.changed:
                    self.changed.add(name)
                    todo.append(name)
        views = [one for one in self.function.buffers if one.size is None]
        for buffer in [one.buffer for one in self.function.params if one.buffer] + views:
            buffer.readonly = buffer.name not in self.changed
        for view in views:  # of what is written elsewhere: the pointers agree
            view.readonly = view.readonly and all(root not in self.changed for root in self.roots[view.name])

    # --- Variables ---

    def bind(self, name, value):
        """name = value"""
        scope = self.scope
        before = scope.bound.get(name)
        if isinstance(value, Number):
            if before is not None and not isinstance(before, Number):
                self._changes_kind(name, before, value)
            single = scope.counts.get(name, 0) == 1
            scope.bound[name] = self._assign(self.slot(name), value, single, name)
        elif isinstance(value, Items):
            if before is not None:  # t = t[1], t[0]
                value = self.detached(value)
            scope.bound[name] = self._bind_items(name, value, before)
        elif isinstance(value, Elements):
            scope.bound[name] = self._bind_array(name, value, before)
        else:
            if isinstance(value, Reference):
                value = self._fixed(value)
            if before is not None and before != value:
                self._changes_kind(name, before, value)
            scope.bound[name] = value

    def _fixed(self, reference):
        """An AtomicRef whose place does not follow a variable that is assigned again."""
        index = reference.index
        if isinstance(index, tree.Var) and self.scope.counts.get(index.name[len(self.scope.prefix):], 1) > 1:
            index = self.kept_once(integer(index)).expr
        return Reference(reference.buffer, reference.dtype, index, reference.order, reference.scope)

    def _changes_kind(self, name, before, value):
        raise KernelError("DK006", "%r is %s here, and %s before: a variable has one kind." % (
            name, value.type, before.type), "Use another name.")

    def _assign(self, slot, value, single=False, shown=None):
        """Store a number in a variable; gives what reading it is."""
        scalar = self._widened(slot, value.scalar, shown or slot)
        if single and value.const is not None:
            return value
        kind = stored(scalar, self.fp64)
        value = operators.cast(self, value, scalar)
        low = value.low if scalar.kind == 1 else None
        known = self.known.get(slot)
        entry = self.found.get(slot)
        lows = [low] + ([known[1]] if known else []) + ([entry[1]] if entry else [])
        low = None if None in lows else min(lows)
        self._note(slot, (scalar, low))
        self.function.locals[slot] = kind
        self.emit(tree.Assign(self.line, slot, value.expr))
        return Number(scalar, tree.Var(kind, slot), None, low)

    def _note(self, slot, found):
        """What is known of a variable; `moved` tells that it was something else before."""
        self.moved = self.moved or self.found.get(slot, found) != found
        self.found[slot] = found

    def _widened(self, slot, scalar, shown):
        for table in (self.known, self.found):
            if slot in table:
                both = types.union(table[slot][0], scalar)
                if both is None or (both.kind == 3) != (scalar.kind == 3 or table[slot][0].kind == 3):
                    self._changes_kind(shown, Number(table[slot][0], None), Number(scalar, None))
                scalar = both
        return scalar

    def _bind_items(self, name, value, before, counted=None):
        if before is not None and (not isinstance(before, Items) or len(before.items) != len(value.items)):
            self._changes_kind(name, before, value)
        items, counted = [], counted or name
        for place, one in enumerate(value.items):
            inner = "%s.%d" % (name, place)
            last = before.items[place] if before is not None and self.scope.counts.get(counted, 0) > 1 else one
            if type(last) is not type(one) or not isinstance(one, (Number, Items, Elements)) and last != one or \
                    isinstance(one, Items) and len(one.items) != len(last.items):
                self._changes_kind(name, last, one)
            if isinstance(one, Number):
                items.append(self._assign(self.slot(inner), one, self.scope.counts.get(counted, 0) == 1, counted))
            elif isinstance(one, Items):
                items.append(self._bind_items(inner, one, before and before.items[place], counted))
            elif isinstance(one, Elements):
                items.append(self._bind_array(inner, one, before and before.items[place], counted))
            else:
                items.append(one)
        return Items(items, value.cls)

    def _bind_array(self, name, value, before, counted=None):
        if before is not None and (not isinstance(before, Elements) or types.union(before.type, value.type) is None):
            self._changes_kind(name, before, value)
        if self.scope.counts.get(counted or name, 0) <= 1:
            slot = self.slot(name)
            if value.buffer.size is not None and value.buffer.name.startswith(self.scope.prefix + ".") and \
                    all(one.name != slot for one in self.function.buffers):
                value.buffer.name = slot  # memory of the kernel's own is called what the user calls it
            return places.view_into(self, name, value)
        packed = value.packed and self.known.get(("packed", self.slot(name)), True)
        key = ("packed", self.slot(name))
        self._note(key, packed and self.found.get(key, True))
        buffer = tree.Buffer(self.slot(name), value.dtype, value.buffer.space)
        self.view_of(buffer, value.buffer)
        self.emit(tree.Point(self.line, buffer, value.buffer, (value.offset or constant(0)).expr))
        shape, strides = value.shape, value.strides
        if before is not None:  # m = m.T
            shape, strides = [self.detached(one) for one in shape], [self.detached(one) for one in strides]
        shape = [self._assign(self.slot("%s.shape%d" % (name, i)), one) for i, one in enumerate(shape)]
        strides = places.packed_strides(self, shape) if packed else \
            [self._assign(self.slot("%s.stride%d" % (name, i)), one) for i, one in enumerate(strides)]
        return Elements(value.dtype, buffer, shape, strides, None, packed, name)

    def unassigned(self, name):
        """A variable that has no value yet in the order of the text: a loop may have given it one."""
        known = self.known.get(self.slot(name))
        if known is None and self.scope.depth and self.first:  # the next run knows what it is
            self.moved = True
            return Number(INT, tree.Var("int64", self.slot(name)))
        if known is None or not self.scope.depth:
            raise KernelError("DK005", "%r has no value here." % name, "Assign it before, in every branch.")
        scalar, low = known
        self.found.setdefault(self.slot(name), known)
        self.function.locals.setdefault(self.slot(name), stored(scalar, self.fp64))
        return Number(scalar, tree.Var(stored(scalar, self.fp64), self.slot(name)), None, low)

    def loop_variable(self, name):
        """The variable of the tree that counts: the user's own, unless that is of another type."""
        slot = self.slot(name)
        if self._widened(slot, INT, name) == INT:
            return slot
        return self.counter()

    def bind_loop(self, name, counter, low):
        self.function.locals[counter] = "int64"
        number = integer(tree.Var("int64", counter), low)
        if counter != self.slot(name):
            self.scope.bound[name] = self._assign(self.slot(name), number)
            return
        known, entry = self.known.get(counter), self.found.get(counter)
        lows = [low] + [one[1] for one in (known, entry) if one]
        number.low = None if None in lows else min(lows)
        self._note(counter, (INT, number.low))
        self.scope.bound[name] = number

    def held_array(self, thing):
        """A global array that a launch passes (dialects.Dialect.arrays)."""
        if self.function.result is None:
            raise KernelError("DK009", "A device function that returns in several places reads a global array.",
                              "Pass the array to it, or let it return once, at its end.")
        return self.unit.held[id(thing)]

    # --- Where a work-item is ---

    def query(self, what, dim):
        """get_global_id(dim) and its like."""
        if not isinstance(dim, Number) or not isinstance(dim.const, int):
            raise KernelError("DK014", "The dimension is a number that is known when the kernel is compiled.")
        dims = self.unit.dims
        if not 0 <= dim.const < dims:
            raise KernelError("DK013", "The dimension is %d, and the kernel is launched over %d." % (dim.const, dims))
        if what in ("local_id", "group_id", "local_size", "group_count") and not self.unit.grouped:
            raise KernelError("DK015", "This needs work-groups, and the kernel is launched over a Range.",
                              "Launch it over an NdRange(global_size, local_size).")
        return integer(tree.Query("int64", what, dim.const), 1 if what.endswith(("size", "count")) else 0)

    def linear(self, what):
        """The linear "global", "local" or "group" id as an expression; the last dimension runs fastest."""
        sizes = {"global": "global_size", "local": "local_size", "group": "group_count"}[what]
        total = None
        for dim in range(self.unit.dims):
            one = self.query(what + "_id", constant(dim))
            if total is not None:
                one = places.add(self, places.times(self, total, self.query(sizes, constant(dim))), one)
            total = one
        return total.expr

    def total(self, what):
        """The number of work-items or groups."""
        sizes = {"global": "global_size", "local": "local_size", "group": "group_count"}[what]
        total = constant(1)
        for dim in range(self.unit.dims):
            total = places.times(self, total, self.query(sizes, constant(dim)))
        return total

    # --- Checks ---

    def check(self, cond, code, *values):
        """Go on only where cond holds."""
        self.function.failures = True
        self.emit(tree.Check(self.line, cond, code, list(values)))

    def check_index(self, array, dim, index):
        extent = array.shape[dim]
        index = self.once(index)
        low = operators.binary(self, ">=", index, operators.unary(self, ast.USub(), extent)).expr
        high = operators.binary(self, "<", index, extent).expr
        self.check(tree.Binary("bool", "&&", low, high), 2, index.expr, extent.expr)

    # --- Calls of functions ---

    def call_function(self, function, args, named):
        """A device function: in place, where its return stands at its end, and otherwise as a function of C."""
        source, names = self.unit.parsed(function)
        args = self._arranged(function, names, args, named)
        if function in self.unit.calling:
            raise KernelError("DK017", "%s() calls itself, which devices cannot." % function.__name__, "Write a loop.")
        returns = [node for node in ast.walk(source.node) if isinstance(node, ast.Return)]
        last = source.node.body[-1]
        self.unit.calling.append(function)
        try:
            if not returns or returns == [last]:
                return self._in_place(source, names, args)
            return self._as_function(function, source, names, args)
        finally:
            self.unit.calling.pop()

    def _arranged(self, function, names, args, named):
        """The arguments in the order of the parameters, defaults among them."""
        given = dict(zip(names.params, args))
        extra = [name for name in named if name in given or name not in names.params]
        if len(args) > len(names.params) or extra:
            raise KernelError("DK008", "%s() takes %d argument%s: %s." % (
                function.__name__, len(names.params), "" if len(names.params) == 1 else "s", ", ".join(names.params)))
        given.update(named)
        defaults = function.__defaults__ or ()
        for name, value in zip(names.params[len(names.params) - len(defaults):], defaults):
            if name not in given:
                given[name] = self.known_value(value)
        missing = [name for name in names.params if name not in given]
        if missing:
            raise KernelError("DK008", "%s() was not given %s." % (function.__name__, ", ".join(missing)))
        return [given[name] for name in names.params]

    def _in_place(self, source, names, args):
        outer, line = self.scope, self.line
        self.numbers["call"] = number = self.numbers.get("call", 0) + 1
        inner = Scope(source, names, "%s%d." % (source.name, number))
        for name, value in zip(names.params, args):
            simple = not isinstance(value, Number) or is_simple(value.expr)
            self.scope = inner
            if inner.counts[name] == 1 and simple:
                inner.bound[name] = value
            else:
                self.bind(name, value)
        self.inlined, before = True, self.inlined
        self.run(source.node.body)
        self.scope, self.line, self.inlined = outer, line, before
        return Known(None) if inner.result is None else inner.result

    def give(self, value, stmt):
        """return value"""
        if self.inlined:
            self.scope.result = self.detached(value) if isinstance(value, Number) else value
        elif self.function.result is None:
            self._give_back(value)
        elif value is not None and not (isinstance(value, Known) and value.value is None):
            raise KernelError("DK016", "A kernel gives nothing back, and this returns %s." % value.type,
                              "Write the result into an array.")
        else:
            self.emit(tree.Return(stmt.lineno))

    def _give_back(self, value):
        """The return of a device function that is a function of C."""
        if value is None or (isinstance(value, Known) and value.value is None):
            self.emit(tree.Return(self.line))
            return
        if not isinstance(value, Number):
            raise KernelError("DK016", "A device function that returns in several places returns numbers, not %s."
                              % value.type, "Return once, at its end.")
        scalar = self._widened("return", value.scalar, "the result")
        self._note("return", (scalar, None))
        self.emit(tree.Return(self.line, operators.cast(self, value, scalar).expr))

    def _as_function(self, function, source, names, args):
        if any(isinstance(one, Reference) for one in args):
            raise KernelError("DK016", "A device function that returns in several places takes no AtomicRef.",
                              "Give it the array and the index, or let it return once, at its end.")
        key = (function, tuple(_signature(one) for one in args))
        if key not in self.unit.functions:
            self.unit.functions[key] = _lower_function(self.unit, source, names, args, len(self.unit.functions) + 1)
        callee, scalar = self.unit.functions[key]
        if callee not in self.function.functions:
            for one in (*callee.functions, callee):
                if one not in self.function.functions:
                    self.function.functions.append(one)
        given = [one for value in args for one in _passed(value)]
        for param, one in zip(callee.params, given):
            if param.buffer is not None and not param.buffer.readonly:
                self.written(one)
        exprs = [one if isinstance(one, tree.Buffer) else one.expr for one in given]
        expr = tree.Call(callee.result, callee.name, exprs, callee)
        if scalar is None:
            self.emit(tree.Do(self.line, expr))
            return Known(None)
        return self.kept_once(Number(scalar, expr))


# --- Functions of C ----------------------------------------------------------------------------------------

def _least(number):
    """What a function of C may know of the lower bound of an argument: that of all calls which share it."""
    return 1 if number.positive else 0 if number.natural else None


def _signature(value):
    if isinstance(value, Number):
        return (value.scalar, value.expr.type, _least(value))
    if isinstance(value, Elements):
        return (value.type, tuple(one.const for one in value.shape), value.offset is None,
                None if value.packed else tuple(one.const for one in value.strides))
    if isinstance(value, Items):
        return (value.cls, tuple(_signature(one) for one in value.items))
    return repr(value)


def _passed(value):
    """What a value is passed as: Numbers, and buffers."""
    if isinstance(value, Number):
        return [value]
    if isinstance(value, Items):
        return [one for item in value.items for one in _passed(item)]
    if isinstance(value, Elements):
        numbers = [one for one in (*value.shape, *(() if value.packed else value.strides)) if one.const is None]
        return [value.buffer, *numbers] if value.offset is None else [value.buffer, value.offset, *numbers]
    return []


def _parameter(low, function, name, value):
    """The value that a device function's parameter has inside, and its parameters of C."""
    if isinstance(value, Number):
        function.params.append(tree.Param(name, value.expr.type))
        return Number(value.scalar, tree.Var(value.expr.type, name), None, _least(value))
    if isinstance(value, Items):
        return Items([_parameter(low, function, "%s.%d" % (name, i), one) for i, one in enumerate(value.items)],
                     value.cls)
    if not isinstance(value, Elements):
        return value
    buffer = tree.Buffer(name, value.dtype, value.buffer.space)
    function.params.append(tree.Param(name, value.dtype, buffer))

    def number(suffix, one):
        if one.const is not None:
            return one
        function.params.append(tree.Param(name + suffix, "int64"))
        return integer(tree.Var("int64", name + suffix), 0 if suffix.startswith(".shape") else None)

    offset = None if value.offset is None else number(".offset", Number(INT, value.offset.expr, None, 0))
    shape = [number(".shape%d" % i, one) for i, one in enumerate(value.shape)]
    strides = places.packed_strides(low, shape) if value.packed else \
        [number(".stride%d" % i, one) for i, one in enumerate(value.strides)]
    return Elements(value.dtype, buffer, shape, strides, offset, value.packed, name)


def _gives(body):
    """Whether statements always end with a return."""
    last = body[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and _gives(last.body) and _gives(last.orelse)
    if isinstance(last, ast.While):
        forever = isinstance(last.test, ast.Constant) and bool(last.test.value)
        return forever and not any(isinstance(node, ast.Break) for part in last.body for node in ast.walk(part))
    return isinstance(last, ast.Return)


def _lower_function(unit, source, names, args, number):
    def attempt(known):
        function = tree.Function("%s_%d" % (source.name, number), [], dims=unit.dims, grouped=unit.grouped, result=None)
        low = Lowerer(unit, function, Scope(source, names), known)
        for name, value in zip(names.params, args):
            inside = _parameter(low, function, name, value)
            if isinstance(inside, Number) and low.scope.counts[name] > 1:
                function.params[-1].name = name + ".given"
                inside.expr.name = name + ".given"
                low.bind(name, inside)
            else:
                low.scope.bound[name] = inside
        low.run(source.node.body)
        return low

    low = settled(attempt)
    scalar = low.found.get("return", (None,))[0]
    if scalar is not None and not _gives(source.node.body):
        raise KernelError("DK016", "%s() may come to its end without a value." % source.name,
                          "Return a value at its end, too.", place=(source, source.node))
    low.function.result = "void" if scalar is None else stored(scalar, unit.fp64)
    empty = any(isinstance(one, tree.Return) and one.value is None for one in tree.walk(low.function))
    if scalar is not None and empty:
        raise KernelError("DK016", "%s() returns a number in one place, and nothing in another." % source.name,
                          "Return a number in every place.", place=(source, source.node))
    if low.function.barriers:
        raise KernelError("DK020", "%s() has a barrier, and returns in several places." % source.name,
                          "Let it return once, at its end.", place=(source, source.node))
    return low.function, scalar


def settled(attempt):
    """Lower until the types of variables stay; `attempt` takes those that were found before."""
    known = None  # in the first run
    for count in range(_ROUNDS):
        low = attempt(known)
        found = low.found
        if found == known or not (count or low.moved):  # where nothing moved, another run would do the same
            low.settle_buffers()
            return low
        if count >= _WIDEN:  # lower bounds that keep falling have none
            found = {name: (one[0], None) if isinstance(one, tuple) and one[1] != known.get(name, one)[1] else one
                     for name, one in found.items()}
        known = found
    raise KernelError("DK006", "The types of the variables of this function are not found: they keep changing.",
                      place=(low.scope.source, low.scope.source.node))
