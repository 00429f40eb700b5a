"""ReductionKernel: one value of many elements, by expressions in C."""
import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

from drupe._engine import Array, BuildError, Kernel, LocalMemory, Queue, UnsupportedError
from drupe.raw import binding, building, layout, parameters, scalars, text
from drupe.raw.foreign import refuse_cuda
from drupe.raw.launching import (LEAST, MOST_NUMBERS, Form, after_copies, copy_back, default_queue, dense, form_of,
                                  in_order, launch)
from drupe.raw.reduction_text import BLOCK, ReductionText, Shape, field_names, parts_of, value_type

_GROUP = 256
_UNKNOWN_SIZE = 64  # of a type of the user's, which a text may not exceed
_LEAST = 16384  # elements of a chunk on CPUs


class _Compiled(NamedTuple):
    source: str
    first: Kernel
    join: Kernel


class ReductionKernel:
    """A kernel that reduces many elements to one value, or along axes. There are two spellings of it.

    ReductionKernel(in_params, out_params, map_expr, reduce_expr, post_map_expr, identity, name, ...) is CuPy's.
    map_expr is an expression of the parameters, reduce_expr one of `a` and `b`, and post_map_expr statements that make
    the output of `a`. Elements are reduced in any order, so reduce_expr has to give the same in each. `identity` is
    the value of no elements; "" or None makes these an error.

    >>> norm = drupe.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    >>> print(norm(da.asarray([3.0, 4.0])))
    5.
    >>> print(norm(da.asarray([[3.0, 4.0], [6.0, 8.0]]), axis=1))
    [ 5., 10.]

    Where the value between is of another type than the output, reduce_type names it; it may be a struct of the
    preamble. `_J` in map_expr is the number of the element along the reduced axes.

    ReductionKernel(ctx, dtype_out, neutral, reduce_expr, map_expr, arguments, name, ...) is PyOpenCL's: the arguments
    are a list of declarations in C, and pointers are indexed by `i`.

    >>> dot = drupe.ReductionKernel(drupe.Device().queue, "float32", "0", reduce_expr="a + b", map_expr="x[i] * y[i]",
    ...                             arguments="const float *x, const float *y")
    >>> x = da.ones(1000, dtype="float32")
    >>> print(dot(x, x))
    1000.

    Options: preamble, options (of the compiler). A program is built for each combination of types when it is first
    called.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        if args and isinstance(args[0], str) or "in_params" in options:
            self._init_cupy(*args, **options)
        else:
            self._init_opencl(*args, **options)
        self._texts = {name: part for name, part in
                       (("preamble", self.preamble), ("map_expr", self.map_expr), ("reduce_expr", self.reduce_expr),
                        ("post_map_expr", self.post_map_expr), ("identity", self.identity)) if part}
        for name, part in self._texts.items():
            refuse_cuda(part, None, name)
            if name != "preamble":
                building.check_brackets(name, part)
        for name in ("map_expr", "reduce_expr", "post_map_expr"):
            if "return" in text.words_of([self._texts.get(name, "")]):
                raise ValueError(f"{name} has no 'return': it is {'statements' if name[0] == 'p' else 'an expression'}")
        building.check_name(self.name)
        raw = [one.name for one in self.in_params if one.kind == "raw"]
        self._code = {name: text.sizes_as_names(part, raw) for name, part in self._texts.items()}
        self._words = text.words_of(self._code.values())
        self._ordered = bool(self._words & {"_J", "i"})
        self._names = [one.name for one in (*self.in_params, *self.out_params)]
        self._cache = building.Cache()

    def _init_cupy(self, in_params: str, out_params: str, map_expr: str, reduce_expr: str, post_map_expr: str,
                   identity: Any = None, name: str = "reduce_kernel", reduce_type: "str | None" = None,
                   reduce_dims: bool = True, preamble: str = "", options: "str | Sequence[str]" = ()) -> None:
        del reduce_dims
        self.in_params, self.out_params = parameters.read_cupy(in_params, out_params)
        if not self.in_params or not self.out_params:
            raise ValueError("a reduction has at least one parameter in in_params and one in out_params")
        if any(one.kind == "raw" for one in self.out_params):
            raise UnsupportedError("outputs of a reduction are not raw: each result is written once")
        self.map_expr, self.reduce_expr, self.post_map_expr = map_expr, reduce_expr, post_map_expr
        self.identity, self.name, self.reduce_type, self.preamble = _literal(identity), name, reduce_type, preamble
        self._queue = None
        self.options, self._cupy = building.words_of(options), True

    def _init_opencl(self, ctx: Any, dtype_out: Any, neutral: Any, reduce_expr: str, map_expr: "str | None" = None,
                     arguments: "str | Sequence[Any] | None" = None, name: str = "reduce_kernel",
                     options: "str | Sequence[str]" = (), preamble: str = "") -> None:
        self._queue: "Queue | None" = default_queue(ctx)
        dtype = scalars.of_dtype(dtype_out)
        if arguments is None:
            arguments = f"const {scalars.SCALARS[dtype].value} *in"
        self.in_params = parameters.read_c(arguments)
        pointers = [one.name for one in self.in_params if one.kind == "raw"]
        if not pointers:
            raise ValueError("there is no pointer among the arguments, whose elements are to be reduced")
        self.out_params = (parameters.Parameter("_result", "element", dtype=dtype, output=True),)
        self.map_expr = map_expr if map_expr is not None else f"{pointers[0]}[i]"
        self.reduce_expr, self.post_map_expr, self.identity = reduce_expr, "_result = a", _literal(neutral)
        self.name, self.reduce_type, self.preamble = name, None, preamble
        self.options, self._cupy = building.words_of(options), False

    def __repr__(self) -> str:
        return f"<drupe.ReductionKernel {self.name}({', '.join(map(str, self.in_params))})>"

    @property
    def cached_codes(self) -> "dict[Any, str]":
        """The generated text of each program that was built."""
        return {key: compiled.source for key, compiled in self._cache.items()}

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._call_cupy(args, **options) if self._cupy else self._call_opencl(args, **options)

    # --- The two calls ---------------------------------------------------------------------------------------

    def _call_cupy(self, args, *, out=None, axis=None, keepdims=False, stream=None, queue=None, wait_for=()):
        inputs, outputs = len(self.in_params), len(self.out_params)
        if len(args) not in (inputs, inputs + outputs):
            raise TypeError(f"{self.name} takes {inputs} arguments, or {inputs + outputs} with its outputs, and "
                            f"{len(args)} were given")
        outs = list(args[inputs:]) or [None] * outputs
        if out is not None:
            if args[inputs:]:
                raise TypeError("the output is given twice, as an argument and as out=")
            outs = list(out) if isinstance(out, tuple) else [out]
            if len(outs) != outputs:
                raise ValueError(f"out= has {len(outs)} arrays, and {self.name} has {outputs} outputs")
        values = list(args[:inputs])
        for parameter, value in zip((*self.in_params, *self.out_params), [*values, *outs]):
            if value is not None or not parameter.output:
                binding.check(value, parameter)
        queue = binding.queue_of(self._names, [*values, *outs], queue if queue is not None else stream)
        shape = self._shape(values)
        axes = _axes(axis, len(shape))
        made, _event = self._run(queue, values, outs, shape, axes, keepdims, wait_for)
        return made[0] if len(made) == 1 else tuple(made)

    def _shape(self, values):
        shapes = [value.shape for one, value in zip(self.in_params, values)
                  if one.kind == "element" and isinstance(value, Array)]
        if not shapes:
            raise ValueError(f"{self.name} has no array whose elements are to be reduced: those of raw arrays are not; "
                             "leave out the word raw")
        if all(shape == shapes[0] for shape in shapes):
            return shapes[0]
        from drupe import array

        return tuple(array.broadcast_shapes(*shapes))

    def _call_opencl(self, args, *, queue=None, wait_for=(), out=None, return_event=False, allocator=None, slice=None,
                     range=None):
        del allocator  # memory comes from the pool of the queue
        if range is not None:
            raise UnsupportedError("range= is not supported; give slices of the arrays, x[a:b], or slice=")
        if len(args) != len(self.in_params):
            raise TypeError(f"{self.name} takes {len(self.in_params)} arguments, and {len(args)} were given")
        for parameter, value in zip(self.in_params, args):
            binding.check(value, parameter)
        values = [value if slice is None or one.kind != "raw" else value[slice]
                  for one, value in zip(self.in_params, args)]
        queue = binding.queue_of(self._names, [*values, out], queue, self._queue)
        size = next(value.size for one, value in zip(self.in_params, values) if one.kind == "raw")
        if out is not None:
            binding.check(out, self.out_params[0])
        made, event = self._run(queue, values, [out], (size,), (0,), False, wait_for or ())
        return (made[0], event) if return_event else made[0]

    # --- The work --------------------------------------------------------------------------------------------

    def _run(self, queue, values, outs, shape, axes, keepdims, wait_for):
        """The outputs and the event of a reduction over axes of a shape."""
        from drupe import array

        device = queue.device
        types = binding.decide((*self.in_params, *self.out_params), [*values, *outs], device)
        used = [binding.scalar_of(one, types, device) for one in self.in_params]
        made = [binding.scalar_of(one, types, device) for one in self.out_params]
        kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
        result = tuple(1 if axis in axes else size for axis, size in enumerate(shape)) if keepdims else kept
        given = [one for one in (*values, *outs) if isinstance(one, Array)]
        back: "list[tuple[Array, Array]]" = []
        targets = []
        for number, (one, scalar) in enumerate(zip(self.out_params, made)):
            if outs[number] is None:
                outs[number] = array.empty(result, scalar.name, queue=queue)
            elif outs[number].shape != result:
                raise ValueError(f"the output {one.name} has the shape {outs[number].shape}, and the result has "
                                 f"{result}")
            target, put = dense(outs[number], True)
            targets.append(target)
            back += put
        if 0 in result:
            return outs, queue.barrier(wait_for=wait_for)
        kinds = []
        for number, (one, value) in enumerate(zip(self.in_params, values)):
            if one.kind == "raw":
                values[number], put = dense(value, False)
            kinds.append("value" if one.kind != "raw" and not isinstance(value, Array) else one.kind)
        copied = bool(back) or any(value is not one for value, one in zip(values, given))
        wait_for = after_copies(queue, given, wait_for) if copied else wait_for
        work = _Work(queue, kinds, values, shape, axes, self._ordered)
        if work.reduced == 0 and not self.identity:
            raise ValueError(f"{self.name} has no identity, which would be the value of no elements")
        event = self._launch(queue, values, used, targets, made, types, kinds, work, wait_for)
        return outs, copy_back(event, queue, back)

    def _launch(self, queue, values, used, targets, made, types, kinds, work, wait_for):
        from drupe import array

        form = work.form
        key = (queue.context, tuple(one.name for one in (*used, *made)), tuple(types.items()), tuple(kinds), work.shape,
               form.language)
        compiled = self._cache.get(key, lambda: self._build(queue, used, made, types, kinds, work.shape, form.language))
        given = [work.memory.get(number, value) if kind == "element" else value if kind == "raw"
                 else scalars.convert(value, scalar.name, one.name)
                 for number, (one, kind, value, scalar) in enumerate(zip(self.in_params, kinds, values, used))]
        given += targets
        given += [value.size for one, kind, value in zip(self.in_params, kinds, values)
                  if kind == "raw" and f"{one.name}_size" in self._words]
        size = self._size_of(types, made)
        partial = None
        if work.chunks > 1:
            partial = array.empty(work.chunks * work.results * size, "uint8", queue=queue)
        given += [partial, work.numbers()]
        event = None
        with in_order(queue):
            if work.chunks:
                event = work.start(compiled.first, given, work.items, size, queue, wait_for)
            if work.chunks != 1:
                event = work.start(compiled.join, given, work.results, size, queue,
                                   wait_for if event is None else event)
        return event

    def _size_of(self, types, made):
        scalar = self._reduce_scalar(types, made)
        return _UNKNOWN_SIZE if scalar is None else 4 if scalar.name in ("bool", "float16") else scalar.size

    def _reduce_scalar(self, types, made):
        """The type of partial results; None for one that the preamble defines."""
        if self.reduce_type is None:
            return made[0]
        if not isinstance(self.reduce_type, str):
            return scalars.SCALARS[scalars.of_dtype(self.reduce_type)]
        name = types.get(self.reduce_type) or scalars.named(self.reduce_type)
        return None if name is None else scalars.SCALARS[name]

    def _build(self, queue, used, made, types, kinds, shape, language):
        operands = [text.operand(one, kind, scalar, language)._replace(output=False)
                    for one, kind, scalar in zip(self.in_params, kinds, used)]
        outputs = [text.operand(one, "element", scalar, language) for one, scalar in zip(self.out_params, made)]
        scalar = self._reduce_scalar(types, made)
        declared = str(self.reduce_type) if scalar is None else value_type(scalar, language)
        letters = {letter: scalars.SCALARS[name] for letter, name in types.items()}
        name = text.kernel_name(self.name, self._words)
        made_text = ReductionText(name, operands, outputs, declared, parts_of(self._code), shape, language, self._words,
                                  letters, self._size_of(types, made))
        source = made_text.source()
        try:
            program = building.build(source, queue, language, self.options, self._texts)
        except BuildError as error:
            if "_fits" in error.log:
                raise UnsupportedError(f"{self.reduce_type}, the reduce_type of {self.name}, is larger than "
                                       f"{_UNKNOWN_SIZE} bytes") from None
            raise
        return _Compiled(source, program[name], program[f"{name}_join"])


def _literal(value: Any) -> str:
    """A neutral element as an expression of C."""
    if value is None or isinstance(value, str):
        return (value or "").strip()
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, (bool, int)):
        number = int(value)
        return f"({number + 1}L - 1)" if number == -(1 << 63) else f"{number}{'UL' if number >= 1 << 63 else ''}"
    if isinstance(value, float):
        if math.isfinite(value):
            return repr(value)
        return "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
    raise TypeError(f"the neutral element is a number or an expression of C as text, not {type(value).__name__}")


def _axes(axis: Any, ndim: int) -> "tuple[int, ...]":
    if axis is None:
        return tuple(range(ndim))
    found = []
    for one in axis if isinstance(axis, (tuple, list)) else (axis,):
        number = operator.index(one)
        if not -ndim <= number < ndim:
            raise ValueError(f"there is no axis {number} in an array of {ndim} dimensions")
        found.append(number % ndim)
    if len(set(found)) != len(found):
        raise ValueError(f"an axis comes twice in {axis}")
    return tuple(sorted(found))


class _Work:
    """How one call is divided: the layout of the operands, the walk, chunks and work-items."""

    def __init__(self, queue: Queue, kinds: "list[str]", values: "list[Any]", shape: "tuple[int, ...]",
                 axes: "tuple[int, ...]", ordered: bool) -> None:
        self.results = math.prod(size for axis, size in enumerate(shape) if axis not in axes)
        self.reduced = math.prod(shape[axis] for axis in axes)
        self.form: Form = form_of(queue.device, max(self.results * self.reduced, 1))
        self.units = queue.device.max_compute_units
        self.which = [number for number, kind in enumerate(kinds) if kind == "element"]
        self.memory: "dict[int, Any]" = {}
        self.offsets: "list[int]" = []
        self._place(values, shape, axes, ordered)
        self._walk()
        self._divide()

    def _place(self, values, shape, axes, ordered):
        from drupe import array

        arrays = [values[number] for number in self.which]
        seen = [one if one.shape == shape else array.broadcast_to(one, shape) for one in arrays]
        reduced = [shape[axis] for axis in axes]
        strides = [[one.strides[axis] for axis in axes] for one in seen]
        if not ordered and seen and reduced:
            reduced, strides = layout.by_strides(reduced, strides)
        others = [axis for axis in range(len(shape)) if axis not in axes]
        self.over = layout.merge(reduced, strides)
        self.kept = layout.merge([shape[axis] for axis in others],
                                 [[one.strides[axis] for axis in others] for one in seen])
        if self._count() > MOST_NUMBERS:
            order = [*others, *axes]
            for number, one in zip(self.which, seen):
                values[number] = array.permute_dims(one, tuple(order)).copy()
            self.over = layout.Layout((self.reduced,), tuple((1,) for _ in seen))
            self.kept = layout.Layout((self.results,), tuple((self.reduced,) for _ in seen))
        for number in self.which:
            value = values[number]
            whole = value.is_contiguous
            self.offsets.append(0 if whole else value._offset)
            if not whole:
                self.memory[number] = value.usm_data

    def _count(self):
        dims = len(self.over.sizes) + len(self.kept.sizes)
        return 5 + dims + len(self.which) * (1 + dims)

    def _walk(self):
        walk = "rows"
        if self.results > 1 and self.which:
            inside, across = ([abs(one[-1]) for one in found.strides] for found in (self.over, self.kept))
            lead = max(range(len(self.which)), key=lambda number: (inside[number] > 0) + (across[number] > 0))
            if 0 < across[lead] < inside[lead] or self.reduced <= 1:
                walk = "columns"
        if walk == "rows" and self.form.wide and (self.reduced >= 64 or self.reduced == 0):
            walk = "tree"
        strides = (self.kept if walk == "columns" else self.over).strides
        self.shape = Shape(walk, len(self.over.sizes), len(self.kept.sizes),
                           tuple(layout.step(one[-1]) for one in strides), self.form.wide)

    def _divide(self):
        walk, units = self.shape.walk, self.units
        self.blocks = self.results
        if walk == "columns" and not self.form.wide:
            width = self.kept.sizes[-1]
            self.blocks = self.results // width * -(-width // BLOCK)
        self.group = min(_GROUP, max(32, 1 << (self.reduced // 8).bit_length() - 1)) if self.reduced >= 16 else 32
        if walk == "tree":
            most, least = 8 * units // self.results, 8 * _GROUP
        elif self.form.wide:
            most, least = 512 * units // self.results, 64
        else:
            most, least = 4 * units // self.blocks, -(-_LEAST * self.blocks // self.results)
        chunks = max(1, min(most, self.reduced // least)) if self.reduced else 0
        self.chunk = -(-self.reduced // chunks) if chunks else 1
        self.chunks = -(-self.reduced // self.chunk)
        self.items = self.blocks * self.chunks

    def numbers(self) -> bytes:
        """What the kernels are told, in the order of field_names()."""
        import struct

        given = [self.results, self.reduced, self.chunk, self.chunks, self.blocks, *self.over.sizes, *self.kept.sizes]
        for at, over, kept in zip(self.offsets, self.over.strides, self.kept.strides):
            given += [at, *over, *kept]
        assert len(given) == len(field_names(self.shape, [""] * len(self.which)))
        return struct.pack(f"={len(given)}q", *given)

    def start(self, kernel, given, items, size, queue, wait_for):
        """Launch one of the two kernels for so many work-items, or groups of a tree."""
        if self.shape.walk == "tree":
            group = min(self.group, kernel.work_group_size or 1)
            return kernel(*given, LocalMemory(group * size), global_size=items * group, local_size=group, queue=queue,
                          wait_for=wait_for)
        if self.form.wide:
            group = min(_GROUP, kernel.work_group_size or 1)
            return kernel(*given, items, 1, global_size=-(-items // group) * group, local_size=group, queue=queue,
                          wait_for=wait_for)
        each = self.results * self.reduced // self.items if self.items else 1
        return launch(kernel, given, items, max(1, LEAST // max(each, 1)), queue, wait_for)
