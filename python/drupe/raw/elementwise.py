"""ElementwiseKernel: an expression in C for each element of several arrays."""
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from drupe._engine import Array, Event, Kernel, Queue, UnsupportedError
from drupe.raw import binding, building, launching, layout, parameters, scalars, text
from drupe.raw.foreign import refuse_cuda
from drupe.raw.launching import (MOST_NUMBERS, Geometry, Plans, after_copies, copy_back, default_queue, dense, form_of,
                                 in_batches, in_chunks, in_order)
from drupe.raw.loops import Loops

_NO_MORE = "C has no 'return' here; write 'continue', which goes on with the next element"


class _Compiled(NamedTuple):
    kernel: Kernel
    batch: int


class _Plan(NamedTuple):
    """All that a launch needs beside the arrays and numbers. `modes` says what becomes of each argument: "memory" is
    the memory of a strided view."""

    kernel: Kernel
    modes: "tuple[str, ...]"
    used: "tuple[scalars.Scalar, ...]"
    tail: "tuple[Any, ...]"
    geometry: Geometry
    shape: "tuple[int, ...]"


class ElementwiseKernel:
    """A kernel that computes an expression for each element. There are two spellings of it.

    ElementwiseKernel(in_params, out_params, operation, name, ...) is CuPy's. A parameter is a type and a name. Types
    are NumPy's names and C's, or single letters that stand for the type of an argument. The operation is statements in
    C; it reads a number for each parameter, writes those of out_params, and has the index `i`. Operands are broadcast,
    and outputs that are not given are made. A `raw` array is indexed by the operation itself; `_ind.size()` is the
    number of elements.

    >>> squared = drupe.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squared")
    >>> print(squared(da.arange(4.0), 1.0))
    [1., 0., 1., 4.]
    >>> reverse = drupe.ElementwiseKernel("raw T x", "T y", "y = x[_ind.size() - 1 - i]", "reverse")
    >>> print(reverse(da.arange(4), size=4))
    [3, 2, 1, 0]

    ElementwiseKernel(context, arguments, operation, name, ...) is PyOpenCL's: the arguments are a list of declarations
    in C, and pointers are indexed by `i`. The context is a drupe.Queue, a drupe.Context or a drupe.Device. A call
    returns an Event.

    >>> axpy = drupe.ElementwiseKernel(drupe.Device().queue, "float a, float *x, float *z", "z[i] = a * x[i]", "axpy")
    >>> x = da.ones(3, dtype="float32")
    >>> axpy(2, x, x).wait()
    >>> print(x)
    [2., 2., 2.]

    Options: preamble (text in front of the kernel), options (of the compiler); in CuPy's spelling also no_return,
    return_tuple, loop_prep and after_loop. A program is built for each combination of types when it is first called.
    float16 is computed as float. Complex types are refused. docs/kernels-c.md compares this with CuPy and PyOpenCL.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        if args and isinstance(args[0], str) or "in_params" in options:
            self._init_cupy(*args, **options)
        else:
            self._init_opencl(*args, **options)
        self._texts = {name: part for name, part in
                       (("preamble", self.preamble), ("loop_prep", self._loop_prep), ("operation", self.operation),
                        ("after_loop", self._after_loop)) if part}
        for name, part in self._texts.items():
            refuse_cuda(part, None, name)
            if name != "preamble":
                building.check_brackets(name, part)
        if "return" in text.words_of([self.operation]):
            raise ValueError(_NO_MORE)
        building.check_name(self.name)
        raw = [one.name for one in self._parameters if one.kind == "raw"]
        self._code = {name: text.sizes_as_names(part, raw) for name, part in self._texts.items()}
        self._words = text.words_of(self._code.values())
        self._ordered = bool(raw) or bool(self._words & {"i", "_ind"})
        self._least = launching.LEAST_HEAVY if self._words & {"for", "while"} else launching.LEAST
        self._names = [one.name for one in self._parameters]
        self.nin, self.nout = len(self.in_params), len(self.out_params)
        self.nargs = self.nin + self.nout
        self._cache, self._plans = building.Cache(), Plans()

    def _init_cupy(self, in_params: str, out_params: str, operation: str, name: str = "kernel",
                   reduce_dims: bool = True, preamble: str = "", no_return: bool = False, return_tuple: bool = False, *,
                   loop_prep: str = "", after_loop: str = "", options: "str | Sequence[str]" = ()) -> None:
        del reduce_dims  # dimensions are always as few as possible
        self.in_params, self.out_params = parameters.read_cupy(in_params, out_params)
        self._parameters = self.in_params + self.out_params
        self.operation, self.name, self.preamble = operation, name, preamble
        self.no_return, self.return_tuple = no_return, return_tuple
        self._loop_prep, self._after_loop = loop_prep, after_loop
        self._queue: "Queue | None" = None
        self.options, self._cupy = building.words_of(options), True
        if not self._parameters:
            raise ValueError("the kernel has no parameters")

    def _init_opencl(self, context: Any, arguments: "str | Sequence[Any]", operation: str, name: str = "elwise_kernel",
                     options: "str | Sequence[str]" = (), *, preamble: str = "", loop_prep: str = "",
                     after_loop: str = "") -> None:
        self._queue = default_queue(context)
        self._parameters = self.in_params = parameters.read_c(arguments)
        self.out_params = ()
        if not any(one.kind == "raw" for one in self._parameters):
            raise ValueError("there is no pointer among the arguments, whose elements the kernel is to go through")
        self.operation = operation.replace("PYOPENCL_ELWISE_CONTINUE", "continue")
        self.name, self.preamble, self.options = name, preamble, building.words_of(options)
        self.no_return, self.return_tuple, self._cupy = True, False, False
        self._loop_prep, self._after_loop = loop_prep, after_loop

    def __repr__(self) -> str:
        return f"<drupe.ElementwiseKernel {self.name}({', '.join(map(str, self._parameters))})>"

    @property
    def cached_codes(self) -> "dict[Any, str]":
        """The generated text of each program that was built."""
        return {key: source for key, (source, _compiled) in self._cache.items()}

    @property
    def cached_code(self) -> str:
        """The generated text of the only program that was built so far."""
        codes = list(self.cached_codes.values())
        if len(codes) != 1:
            raise ValueError(f"{len(codes)} programs were built so far; cached_codes has them")
        return codes[0]

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._call_cupy(args, **options) if self._cupy else self._call_opencl(args, **options)

    # --- CuPy's call -----------------------------------------------------------------------------------------

    def _call_cupy(self, args, *, size=None, block_size=None, stream=None, queue=None, wait_for=()):
        del block_size  # Drupe chooses
        inputs, outputs = len(self.in_params), len(self.out_params)
        if len(args) not in (inputs, inputs + outputs):
            raise TypeError(f"{self.name} takes {inputs} arguments, or {inputs + outputs} with its outputs, and "
                            f"{len(args)} were given")
        known = None if queue is not None or stream is not None else self._plans.key(args, size)
        plan = self._plans.find(known[0]) if known else None
        values = [*args, *[None] * (inputs + outputs - len(args))]
        if known is not None and plan is not None:
            queue = known[1]
            self._make_outputs(values, plan.used, plan.shape, queue)
            made = tuple(values[inputs:])
            self._submit(plan, values, queue, wait_for)
        else:
            made = self._first_cupy(values, size, queue if queue is not None else stream, wait_for, known)
        if self.no_return or not made:
            return None
        return made if len(made) > 1 or self.return_tuple else made[0]

    def _first_cupy(self, values, size, queue, wait_for, known):
        """A call with arguments that are new: everything is checked. The outputs."""
        for parameter, value in zip(self._parameters, values):
            if value is not None or not parameter.output:
                binding.check(value, parameter)
        queue = binding.queue_of(self._names, values, queue)
        device = queue.device
        types = binding.decide(self._parameters, values, device)
        used = [binding.scalar_of(one, types, device) for one in self._parameters]
        shape = self._shape(values, size)
        self._make_outputs(values, used, shape, queue)
        made = tuple(values[len(self.in_params):])
        self._launch(queue, values, used, types, shape, wait_for, known)
        return made

    def _shape(self, values, size):
        """The shape that the operands have in common."""
        shapes = [value.shape for one, value in zip(self._parameters, values)
                  if one.kind == "element" and isinstance(value, Array)]
        if size is not None:
            if shapes:
                raise ValueError("size= is for kernels whose arrays are all raw")
            return (size,) if isinstance(size, int) else tuple(size)
        if not shapes:
            raise ValueError(f"{self.name} has no array that tells how many elements there are; give size=")
        inputs = [value.shape for one, value in zip(self.in_params, values)
                  if one.kind == "element" and isinstance(value, Array)]
        first = shapes[0]
        if all(shape == first for shape in shapes):
            return first
        from drupe import array

        shape = tuple(array.broadcast_shapes(*inputs)) if inputs else shapes[0]
        for one, value in zip(self._parameters, values):
            if one.output and one.kind == "element" and value is not None and value.shape != shape:
                raise ValueError(f"the output {one.name} has the shape {value.shape}, and the operands have {shape}")
        return shape

    def _make_outputs(self, values, used, shape, queue):
        from drupe import array

        for number, (one, scalar) in enumerate(zip(self._parameters, used)):
            if one.output and values[number] is None:
                if one.kind == "raw":
                    raise ValueError(f"the output {one.name} is raw: give the array that it is")
                values[number] = array.empty(shape, scalar.name, queue=queue)

    # --- PyOpenCL's call -------------------------------------------------------------------------------------

    def _call_opencl(self, args, *, queue=None, wait_for=(), slice=None, range=None):
        if range is not None:
            raise UnsupportedError("range= is not supported; give slices of the arrays, x[a:b], or slice=")
        if len(args) != len(self._parameters):
            raise TypeError(f"{self.name} takes {len(self._parameters)} arguments, and {len(args)} were given")
        known = self._plans.key(args, None) if queue is None and slice is None else None
        plan = self._plans.find(known[0]) if known else None
        if known is not None and plan is not None:
            return self._submit(plan, args, known[1], wait_for or ())
        for parameter, value in zip(self._parameters, args):
            binding.check(value, parameter)
        values = [value if slice is None or one.kind != "raw" else value[slice]
                  for one, value in zip(self._parameters, args)]
        arrays = [value for one, value in zip(self._parameters, values) if one.kind == "raw"]
        if not any(array.is_contiguous for array in arrays) and all(array.T.is_contiguous for array in arrays):
            values = [value.T if one.kind == "raw" else value for one, value in zip(self._parameters, values)]
            known = None
        queue = binding.queue_of(self._names, values, queue, self._queue)
        types = binding.decide(self._parameters, values, queue.device)
        used = [binding.scalar_of(one, types, queue.device) for one in self._parameters]
        size = next(value.size for one, value in zip(self._parameters, values) if one.kind == "raw")
        return self._launch(queue, values, used, types, (size,), wait_for or (), known)

    # --- Both ------------------------------------------------------------------------------------------------

    def _launch(self, queue: Queue, values: "list[Any]", used: "list[scalars.Scalar]", types: "dict[str, str]",
                shape: "tuple[int, ...]", wait_for: Any, known: Any) -> Event:
        """Work on `shape`, in which each element operand is read or written."""
        given = [value for value in values if isinstance(value, Array)]
        kinds: "list[str]" = []
        back: "list[tuple[Array, Array]]" = []
        for number, one in enumerate(self._parameters):
            kind, value = one.kind, values[number]
            if kind == "raw":
                values[number], put = dense(value, one.output)
                back += put
            elif not isinstance(value, Array):
                kind = "value"
            kinds.append(kind)
        place = _Place(kinds, [one.output for one in self._parameters], values, shape, self._ordered)
        if place.items == 0:
            return queue.barrier(wait_for=wait_for)
        form = form_of(queue.device, place.items)
        names = tuple(scalar.name for scalar in used)
        key = (queue.context, names, tuple(types.items()), tuple(kinds), place.key, form)
        _source, compiled = self._cache.get(key, lambda: self._build(queue, used, types, kinds, place, form))
        plan = self._plan(compiled, kinds, used, values, place, shape, form, queue.device)
        copied = place.copied or any(now is not before for now, before in
                                     zip((value for value in values if isinstance(value, Array)), given))
        if copied:
            wait_for = after_copies(queue, given, wait_for)
        elif known:
            self._plans.keep(known[0], plan)
        return copy_back(self._submit(plan, values, queue, wait_for), queue, back + place.back)

    def _plan(self, compiled, kinds, used, values, place, shape, form, device):
        modes = tuple("memory" if number in place.memory else kind for number, kind in enumerate(kinds))
        tail = [values[number].size for number, (one, kind) in enumerate(zip(self._parameters, kinds))
                if kind == "raw" and f"{one.name}_size" in self._words]
        if place.numbers:
            tail.append(struct.pack(f"={len(place.numbers)}q", *place.numbers))
        if form.wide:
            width = place.sizes[-1] if place.numbers else 0
            geometry = in_batches(place.items, width, compiled.batch, compiled.kernel)
        else:
            geometry = in_chunks(place.items, self._least, device)
        return _Plan(compiled.kernel, modes, tuple(used), (*tail, *geometry.more), geometry, shape)

    def _submit(self, plan: "_Plan", values: "Sequence[Any]", queue: Queue, wait_for: Any) -> Event:
        given = [value.usm_data if mode == "memory" else scalars.convert(value, scalar.name, one.name)
                 if mode == "value" else value
                 for one, mode, scalar, value in zip(self._parameters, plan.modes, plan.used, values)]
        _more, global_size, local_size = plan.geometry
        with in_order(queue):
            return plan.kernel(*given, *plan.tail, global_size=global_size, local_size=local_size, queue=queue,
                               wait_for=wait_for)

    def _build(self, queue, used, types, kinds, place, form):
        language = form.language
        operands = [text.operand(one, kind, scalar, language)
                    for one, kind, scalar in zip(self._parameters, kinds, used)]
        placeholders = {letter: scalars.SCALARS[name] for letter, name in types.items()}
        parts = {name: building.part(name, code, "" if name == "preamble" else ";")
                 for name, code in self._code.items()}
        name = text.kernel_name(self.name, self._words)
        slots = [operand.slot(language) for operand in operands]
        slots += [text.Slot("long", f"{one.name}_size", 7) for one, kind in zip(self._parameters, kinds)
                  if kind == "raw" and f"{one.name}_size" in self._words]
        source = text.head(language, self._words, used, placeholders, parts.get("preamble", ""))
        if place.numbers:
            source += text.dims_struct(len(place.numbers))
            slots.append(text.Slot("_dims", "_d"))
        loops = Loops(operands, place.sizes, place.steps, bool(place.numbers), language, form.wide, form.narrow,
                      self._words, parts)
        source += text.kernel(language, name, slots, loops.body(), form.wide)
        source += text.table(language, {name: len(slots) + 2})
        program = building.build(source, queue, language, self.options, self._texts)
        return source, _Compiled(program[name], loops.batch)


class _Place:
    """Where the elements of a call's operands lie. `numbers`: what the kernel is told of it, none if all operands lie
    in one piece; `key` says which text fits."""

    def __init__(self, kinds, outputs, values, shape, ordered):
        self.outputs, self.copied = outputs, False
        self.which = [number for number, kind in enumerate(kinds) if kind == "element"]
        arrays = [values[number] for number in self.which]
        self.back: "list[tuple[Array, Array]]" = []
        self.items = 1
        for size in shape:
            self.items *= size
        self.memory: "set[int]" = set()
        self.numbers: "tuple[int, ...]" = ()
        self.sizes, self.steps = (self.items,), ("1",) * len(arrays)
        if self.items and not all(array.shape == shape and array.is_contiguous for array in arrays):
            self._strided(arrays, values, shape, ordered)
        self.key = (self.steps, len(self.sizes), bool(self.numbers))

    def _strided(self, arrays, values, shape, ordered):
        from drupe import array

        seen = [one if one.shape == shape else array.broadcast_to(one, shape) for one in arrays]
        sizes, strides = list(shape), [one.strides for one in seen]
        if not ordered and shape:
            sizes, strides = layout.by_strides(sizes, strides)
        found = layout.merge(sizes, strides)
        if 1 + len(found.sizes) + len(arrays) * (1 + len(found.sizes)) > MOST_NUMBERS:
            found = self._copied(seen, values, shape)
        self.sizes = found.sizes
        self.steps = tuple(layout.step(one[-1]) for one in found.strides)
        offsets = []
        for number, strides in zip(self.which, found.strides):
            value = values[number]
            whole = value.is_contiguous
            offsets.append(0 if whole else value._offset)
            if not whole:
                self.memory.add(number)
        if len(self.sizes) == 1 and "s" not in self.steps and not any(offsets):
            return
        self.numbers = (*self.sizes, *offsets, *(stride for one in found.strides for stride in one))

    def _copied(self, seen, values, shape):
        """Too many dimensions to tell a kernel of: all operands are copied into arrays that lie in one piece."""
        from drupe import array

        self.copied = True
        for number, one in zip(self.which, seen):
            fresh = array.asarray(one, copy=True)
            if self.outputs[number]:
                self.back.append((values[number], fresh))
            values[number] = fresh
        return layout.Layout((self.items,), tuple((1,) for _ in seen))
