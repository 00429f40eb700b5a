"""Loops that were cut out of an offload function, as objects that its remains call.

A loop is a kernel for each way in which it can be launched; each of these is compiled for the types of its arguments,
as any kernel is. Results that are numbers are written into small arrays and read from there: the call waits for them.
"""
import collections
import types as pytypes

from drupe import _engine
from drupe.compiler import kernels, launch, passes, types
from drupe.compiler.messages import KernelError
from drupe.compiler.names import held
from drupe.offloading import pieces

_PARTS = {"blocks": 128, "strided": 16384}  # at most so many results of a reduction
_WORTH = 16384  # operations that are worth a part of their own
_MOST_BYTES = 1 << 26  # of the results of parts that are whole arrays
_MOST_KERNELS = 64  # of a loop, and of kinds of calls
FEW = 500  # rounds of a loop without arrays that Python runs sooner than a compiler has begun
_LANES = {"float16": 16, "float32": 16, "float64": 8}
_JOINS = {"+": "add", "*": "multiply", "|": "bitwise_or", "&": "bitwise_and", "^": "bitwise_xor", "and": "logical_and",
          "or": "logical_or", "min": "minimum", "max": "maximum"}


def _plain_types():
    import numpy

    names = ("bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
             "float64", "complex64", "complex128", "longlong", "ulonglong")
    return frozenset((bool, int, float, complex, _engine.Array, *(getattr(numpy, name) for name in names)))


def _kind(value):
    """What tells types of arguments apart, quickly."""
    kind = type(value)
    if kind is _engine.Array:
        return value.dtype, value.ndim, value.device
    if kind in Loop._plain:
        return kind
    if isinstance(value, tuple):
        return (kind, *map(_kind, value))
    return _same_code(value) if _is_constant(value) else kind


def _is_constant(value):
    """Whether it is a thing of Python that a kernel knows when it is compiled."""
    return isinstance(value, (str, bytes, type(None), type, pytypes.ModuleType)) or (
        callable(value) and hasattr(value, "__name__"))


def _same_code(value):
    """A constant, or its code if it is a function that a def has just made again."""
    return value.__code__ if isinstance(value, pytypes.FunctionType) and not value.__closure__ else value


class Loop:
    """`name` is its kernel's; `inputs` names of variables that it reads."""

    _plain, attributes = None, None

    def __init__(self, whole, name, stmt, inputs):
        self.whole, self.name, self.stmt, self.inputs = whole, name, stmt, inputs
        self.kernels, self.known, self._classes = {}, {}, {}
        self.notes = collections.deque(maxlen=8)
        if Loop._plain is None:
            Loop._plain = _plain_types()

    def kernel(self, key, build, local_size=None, constants=()):
        """(Kernel, Piece) for a way to launch it. `constants` are pairs of a name and what it stands for."""
        key = key, tuple((name, _same_code(value)) for name, value in constants)
        found = self.kernels.get(key)
        if found is None:
            piece = build()
            given = {**self.whole.outside.imported, **dict(constants), **piece.given}
            function = self.whole.outside.make(piece.node, given, self.whole.source.filename)
            function._cut = (piece.node, self.whole.source)
            kernel = launch.Kernel(function, checked=self.whole.options["checked"], local_size=local_size)
            kernel.grain = 0 if local_size is None else 1
            kernel.dialect = self.whole.options["dialect"]
            if len(self.kernels) >= _MOST_KERNELS:
                self.kernels.clear()
            self.kernels[key] = found = (kernel, piece)
        return found

    def remember(self, key, known):
        """Keep what was found out of a key; what is old goes."""
        if len(self.known) >= _MOST_KERNELS:
            self.known.clear()
        self.known[key] = known
        return known

    def kinds(self, values):
        """What tells calls apart that need different kernels."""
        if not self._plain.issuperset(map(type, values)):
            values = [self._fields(name, value) for name, value in zip(self.inputs, values)]
        return tuple(map(_kind, values))

    def settled(self, values):
        """(values, constants): arrays without dimensions as the numbers that they hold, and what cannot be passed, such
        as a function or a text, as constants."""
        if self._plain.issuperset(map(type, values)):
            for one in values:
                if type(one) is _engine.Array and not one.ndim:
                    break
            else:
                return values, ()
        constants, passed = [], []
        for name, value in zip(self.inputs, values):
            if _is_constant(value):
                constants.append((name, value))
            else:
                passed.append(self._fields(name, value))
        return [_as_number(one) for one in passed], tuple(constants)

    def _fields(self, name, value):
        """An object of a class of the user's as a named tuple of the attributes that the loop reads."""
        if type(value) in self._plain or isinstance(value, (tuple, list, dict, set)) or hasattr(value, "__array__") or (
                _is_constant(value)):
            return value
        if self.attributes is None:
            self.attributes = pieces.attributes(self.stmt)
        names = self.attributes.get(name)
        if not names or not all(hasattr(value, one) for one in names):
            return value
        kind = self._classes.setdefault((name, type(value)), collections.namedtuple(type(value).__name__, names))
        return kind(*(_as_number(getattr(value, one)) for one in names))

    def queue(self, values):
        for one in values:
            if type(one) is _engine.Array:
                return one.queue
            if type(one) is tuple and (inner := self.queue(one)) is not None:
                return inner
        return None

    def found_types(self, kernel, names, kinds, device, dims=1):
        """(Scalars of variables, cost) that a kernel has for these types of its arguments."""
        made = kernels.lower(kernel.py_func, kinds, dims=dims, grouped=False, fp64=device.has_aspect_fp64,
                             device_name=device.name, dialect=kernel.dialect)
        return [made.variables.get(name) for name in names], sum(passes.cost(one) for one in made.body), made.watched

    def types_of(self, names, values):
        return [launch.type_of(value, name)[0] for name, value in zip(names, values)]

    def launch(self, kernel, space, args):
        """Launch it; an error that has no place is at the loop."""
        try:
            kernel._launcher(space, None, args)
        except KernelError as error:
            raise error.at(self.whole.source, self.stmt) from None


def _as_number(value):
    if type(value) is _engine.Array and not value.ndim:
        return value.asnumpy()[()]
    return value


def _is_current(watched):
    return all(held(owner, name) is value for owner, name, value in watched)


def _result(scalar, value):
    """A number that a kernel has left, as the number that Python would have."""
    return value.item() if scalar.weak else value


class ParallelLoop(Loop):
    """A nest of loops over prange(), called with its ranges, what it reads, and where its reductions begin."""

    def __init__(self, whole, name, found):
        super().__init__(whole, name, found.stmt, found.inputs)
        self.found, self.dims = found, len(found.targets)
        self.simple = all(len(args) == 1 for args in found.ranges)

    def __call__(self, *args):
        ranges = args[:self.dims]
        sizes = [len(one) for one in ranges]
        last = self.dims + len(self.inputs)
        if 0 in sizes:
            return [_as_number(one) for one in args[last:]]
        inputs, constants = self.settled(args[self.dims:last])
        natural = self.simple or all(one.start >= 0 < one.step for one in ranges)
        if self.found.reductions:
            return self._reduce(ranges, sizes, inputs, [_as_number(one) for one in args[last:]], constants, natural)
        if self.queue(inputs) is None:
            return None  # without an array it leaves nothing
        kernel, piece = self.kernel(natural, lambda: pieces.plain(self._way(constants, natural)), constants=constants)
        if piece.bounds:
            inputs = [*_bounds(piece, ranges), *inputs]
        self.launch(kernel, _engine.Range(*sizes), tuple(inputs))
        return None

    def _way(self, constants, natural, **more):
        hidden = {name for name, _value in constants}
        return pieces.Way(self.name, self.found, [one for one in self.inputs if one not in hidden], natural, **more)

    # --- Reductions ---

    def _reduce(self, ranges, sizes, inputs, begun, constants, natural):
        found = self.found.reductions
        queue = self.queue([*inputs, *begun]) or _engine.Device().queue
        device = queue.device
        key = (natural, tuple((name, _same_code(value)) for name, value in constants), device,
               tuple(map(_kind, inputs)), tuple(map(_kind, begun)))
        known = self.known.get(key)
        if known is None or not _is_current(known[-1]):
            known = self.remember(key, self._infer(natural, constants, inputs, begun, device))
        kernel, piece, scalars, cost, _watched = known
        parts, per = self._cut(device, sizes, cost, begun)
        partial = [self._partial(one, value, scalar, parts, device, queue)
                   for one, value, scalar in zip(found, begun, scalars)]
        numbers = [value for value in begun if type(value) is not _engine.Array]
        self.launch(kernel, _engine.Range(parts),
                    (per, *sizes, *_bounds(piece, ranges), *inputs, *numbers, *partial))
        return [self._join(*one) for one in zip(found, begun, scalars, partial)]

    def _infer(self, natural, constants, inputs, begun, device):
        """The kernel for these types, the types of its results, and what a round costs."""
        way = self._way(constants, natural)
        whole = {one.name: value for one, value in zip(self.found.reductions, begun) if type(value) is _engine.Array}
        if whole:
            way.whole = frozenset(whole)
            way.arrays = {name: value.ndim for name, value in (*zip(way.inputs, inputs), *whole.items())
                          if type(value) is _engine.Array}
            self._check(whole)
        mode = _mode(device)
        local = None if mode == "strided" else (1,)
        kernel, piece = self.kernel((mode, natural, tuple(way.arrays.items())), lambda: (
            pieces.strided if mode == "strided" else pieces.blocks)(way), local, constants)
        numbers = [value for value in begun if type(value) is not _engine.Array]
        kinds = self.types_of(piece.params, [0]*(1 + self.dims + len(piece.bounds)) + list(inputs) + numbers)
        wide = "complex128" if device.has_aspect_fp64 else "complex64"
        kinds += [types.Array(str(value.dtype), value.ndim + 1) if one.name in whole else types.Array(wide, 1)
                  for one, value in zip(self.found.reductions, begun)]
        names = [one.name for one in self.found.reductions]
        scalars, cost, watched = self.found_types(kernel, names, kinds, device)
        if mode == "blocks" and not whole and self._takes_lanes(scalars):
            kernel, piece = self._lanes(way, scalars, local, constants, device)
        return kernel, piece, scalars, max(1, cost//passes.ROUNDS), watched

    def _lanes(self, way, scalars, local, constants, device):
        dtypes = tuple(_dtype(one, device) for one in scalars)
        width = max(_LANES[str(one)] for one in dtypes)
        return self.kernel(("lanes", way.natural, dtypes), lambda: pieces.lanes(way, width, dtypes), local, constants)

    def _check(self, arrays):
        for one in self.found.reductions:
            if one.name in arrays and (one.op not in ("+", "*") or not all(
                    hasattr(stmt, "target") for stmt, _value in one.updates)):
                raise KernelError("DK023", "%r is a whole array, which is reduced by += or *= only." % one.name,
                                  "Write a loop over its elements, with each element the work of one round.",
                                  place=(self.whole.source, one.updates[0][0]))

    def _takes_lanes(self, scalars):
        return (self.dims == 1 and pieces.is_loopless(self.found.body) and all(one.kind == 2 for one in scalars)
                and all(one.op in ("+", "*", "min", "max", "minimum", "maximum", "fmin", "fmax")
                        for one in self.found.reductions))

    def _cut(self, device, sizes, cost, begun):
        """(parts, rounds of a part) or, on GPUs, (parts, parts): the same ones in each run, so that results are."""
        mode, count = _mode(device), sizes[0]
        for one in sizes[1:]:
            if mode == "strided":
                count *= one
            else:
                cost = cost*one//passes.ROUNDS + 1
        most = _PARTS[mode]
        size = max((value.nbytes for value in begun if type(value) is _engine.Array), default=0)
        if size:
            most = max(1, min(most, _MOST_BYTES//size, 32 if mode == "blocks" else 1024))
        parts = max(1, min(most, count, count*cost//_WORTH))
        if mode == "strided":
            return parts, parts
        per = -(-count // parts)
        if per > 64:
            per = -(-per // 64)*64
        return -(-count // per), per

    def _partial(self, one, value, scalar, parts, device, queue):
        if type(value) is not _engine.Array:
            return _engine.empty(parts, dtype=_dtype(scalar, device), queue=queue)
        from drupe import array

        return (array.ones if one.op == "*" else array.zeros)((parts, *value.shape), dtype=value.dtype, queue=queue)

    def _join(self, one, value, scalar, part):
        if type(value) is _engine.Array:
            from drupe import array

            if one.op == "+":
                value += array.sum(part, axis=0)
            else:
                value *= array.prod(part, axis=0)
            return value
        import numpy

        numbers = part.asnumpy()
        if len(numbers) == 1:
            return _result(scalar, numbers[0])
        return _result(scalar, getattr(numpy, _JOINS.get(one.op, one.op)).reduce(numbers, dtype=numbers.dtype))


def _mode(device):
    """How the rounds of a reduction are dealt out."""
    return "strided" if device.device_type.name == "gpu" else "blocks"


def _bounds(piece, ranges):
    """The values of a piece's parameters that say where ranges begin and how they count."""
    return [getattr(ranges[int(name[-1])], name[len("drupe_"):-1]) for name in piece.bounds]


def _dtype(scalar, device):
    import numpy

    from drupe.compiler.values import stored

    return numpy.dtype(stored(scalar, device.has_aspect_fp64))


class SerialLoop(Loop):
    """Any other loop, called with what it reads: gives None where it stays Python, and the values of `outputs`.
    `counted`: it touches no element, and is given its range first, so that a short one stays Python."""

    def __init__(self, whole, name, stmt, inputs, outputs):
        super().__init__(whole, name, stmt, inputs)
        self.outputs = outputs
        self.counted = pieces.is_counted(stmt)

    def __call__(self, *values):
        if self.counted:
            rounds, values = values[0], values[1:]
            if len(rounds) < FEW:
                return None
        try:
            key = self.kinds(values)
            known = self.known.get(key)
        except TypeError:  # an argument that has no hash is none of a kernel
            return None
        if known is False:
            return None
        values, constants = self.settled(values)
        queue = self.queue(values) or _near()
        try:
            if known is None or not _is_current(known[-1]):
                known = self._infer(key, values, constants, queue.device)
            return known and self._run(known, values, queue)
        except KernelError as error:  # of an argument, such as an int of more than 64 bits
            self.notes.append(error)
            return None

    def _infer(self, key, values, constants, device):
        """The kernel, and the types of its results; None where it cannot be compiled for these types."""
        hidden = {name for name, _value in constants}
        names = [one for one in self.inputs if one not in hidden]
        kernel, piece = self.kernel("serial", lambda: pieces.serial(self.name, self.stmt, names, self.outputs),
                                    constants=constants)
        kinds = self.types_of(piece.params, values)
        wide = "complex128" if device.has_aspect_fp64 else "complex64"
        kinds += [types.Array(wide, 1)]*len(self.outputs)
        try:
            scalars, _cost, watched = self.found_types(kernel, self.outputs, kinds, device)
        except KernelError as error:
            self.notes.append(error)
            self.remember(key, False)
            return None
        return self.remember(key, (kernel, scalars, watched))

    def _run(self, known, values, queue):
        kernel, scalars, _watched = known
        out = [_engine.empty(1, dtype=_dtype(one, queue.device), queue=queue) for one in scalars]
        if out or self.queue(values) is not None:  # without an array it leaves nothing
            kernel._launcher(_engine.Range(1), None, (*values, *out))
        return [_result(scalar, one.asnumpy()[0]) for scalar, one in zip(scalars, out)]


def _near():
    """The queue for what has numbers only: of the host, if it is there."""
    try:
        return _engine.Device("host").queue
    except _engine.DeviceNotFoundError:
        return _engine.Device().queue
