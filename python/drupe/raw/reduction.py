"""ReductionKernel: one value of many elements, by expressions in C."""
import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

from drupe._engine import Array, BuildError, Kernel, Queue, UnsupportedError
from drupe.raw import binding, building, parameters, scalars, text
from drupe.raw.foreign import refuse_cuda
from drupe.raw.launching import Plans, after_copies, copy_back, default_queue, dense, in_order
from drupe.raw.reduction_text import ReductionText, parts_of, value_type
from drupe.raw.reduction_work import Work

_UNKNOWN_SIZE = 64  # of a type of the user's, which a text may not exceed


class _Compiled(NamedTuple):
    source: str
    first: Kernel
    join: Kernel


class _Plan(NamedTuple):
    """All that a call needs beside its arrays and numbers. `partial`: bytes for partial results; `starts`: of each of
    the one or two kernels, what follows the arguments, and the numbers of work-items."""

    modes: "tuple[str, ...]"
    used: "tuple[scalars.Scalar, ...]"
    made: "tuple[scalars.Scalar, ...]"
    result: "tuple[int, ...]"
    tail: "tuple[int, ...]"
    numbers: bytes
    partial: int
    starts: "list[tuple[Any, ...]]"


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
        self._cache, self._plans = building.Cache(), Plans()

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
        self._queue: "Queue | None" = None
        self.options, self._cupy = building.words_of(options), True

    def _init_opencl(self, ctx: Any, dtype_out: Any, neutral: Any, reduce_expr: str, map_expr: "str | None" = None,
                     arguments: "str | Sequence[Any] | None" = None, name: str = "reduce_kernel",
                     options: "str | Sequence[str]" = (), preamble: str = "") -> None:
        self._queue = default_queue(ctx)
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
        queue = queue if queue is not None else stream
        known = self._known([*values, *outs], queue, (axis, keepdims))
        plan = self._plans.find(known[0]) if known else None
        if known is not None and plan is not None:
            made, _event = self._submit(plan, known[1], values, outs, wait_for)
        else:
            made = self._first_cupy(values, outs, queue, axis, keepdims, wait_for, known)
        return made[0] if len(made) == 1 else tuple(made)

    def _known(self, args, queue, more):
        """By what a call is known; None where it is none of those that are kept."""
        if queue is not None or not isinstance(more[0], (int, tuple, type(None))):
            return None
        return self._plans.key([value for value in args if value is not None], (len(args) - args.count(None), *more))

    def _first_cupy(self, values, outs, queue, axis, keepdims, wait_for, known):
        """A call with arguments that are new: everything is checked. The outputs."""
        for parameter, value in zip((*self.in_params, *self.out_params), [*values, *outs]):
            if value is not None or not parameter.output:
                binding.check(value, parameter)
        queue = binding.queue_of(self._names, [*values, *outs], queue)
        shape = self._shape(values)
        axes = _axes(axis, len(shape))
        return self._first(queue, values, outs, shape, axes, keepdims, wait_for, known)[0]

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
        known = self._known([*args, out], queue if slice is None else True, (None, False))
        plan = self._plans.find(known[0]) if known else None
        if known is not None and plan is not None:
            made, event = self._submit(plan, known[1], list(args), [out], wait_for or ())
            return (made[0], event) if return_event else made[0]
        for parameter, value in zip(self.in_params, args):
            binding.check(value, parameter)
        values = [value if slice is None or one.kind != "raw" else value[slice]
                  for one, value in zip(self.in_params, args)]
        queue = binding.queue_of(self._names, [*values, out], queue, self._queue)
        size = next(value.size for one, value in zip(self.in_params, values) if one.kind == "raw")
        if out is not None:
            binding.check(out, self.out_params[0])
        made, event = self._first(queue, values, [out], (size,), (0,), False, wait_for or (), known)
        return (made[0], event) if return_event else made[0]

    # --- The work --------------------------------------------------------------------------------------------

    def _first(self, queue, values, outs, shape, axes, keepdims, wait_for, known):
        """The outputs and the event of a reduction over axes of a shape. The next call with such arguments does with
        the plan that this one makes."""
        device = queue.device
        types = binding.decide((*self.in_params, *self.out_params), [*values, *outs], device)
        used = [binding.scalar_of(one, types, device) for one in self.in_params]
        made = [binding.scalar_of(one, types, device) for one in self.out_params]
        kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
        result = tuple(1 if axis in axes else size for axis, size in enumerate(shape)) if keepdims else kept
        for one, out in zip(self.out_params, outs):
            if out is not None and out.shape != result:
                raise ValueError(f"the output {one.name} has the shape {out.shape}, and the result has {result}")
        if 0 in result:
            return self._make(outs, made, result, queue), queue.barrier(wait_for=wait_for)
        given = [value for value in values if isinstance(value, Array)]
        kinds = ["value" if one.kind != "raw" and not isinstance(value, Array) else one.kind
                 for one, value in zip(self.in_params, values)]
        values = [dense(value, False)[0] if kind == "raw" else value for kind, value in zip(kinds, values)]
        work = Work(queue, kinds, values, shape, axes, self._ordered)
        if work.reduced == 0 and not self.identity:
            raise ValueError(f"{self.name} has no identity, which would be the value of no elements")
        key = (queue.context, tuple(one.name for one in (*used, *made)), tuple(types.items()), tuple(kinds), work.shape,
               work.form.language)
        compiled = self._cache.get(key, lambda: self._build(queue, used, made, types, kinds, work))
        size = self._size_of(types, made)
        modes = tuple("memory" if number in work.memory else kind for number, kind in enumerate(kinds))
        tail = tuple(value.size for one, kind, value in zip(self.in_params, kinds, values)
                     if kind == "raw" and f"{one.name}_size" in self._words)
        starts = work.starts(compiled.first, compiled.join, size)
        plan = _Plan(modes, tuple(used), tuple(made), result, tail, work.numbers(),
                     work.chunks * work.results * size if work.chunks > 1 else 0, starts)
        after = [value for value in values if isinstance(value, Array)]
        if any(now is not before for now, before in zip(after, given)):
            wait_for = after_copies(queue, given, wait_for)
        elif known:
            self._plans.keep(known[0], plan)
        return self._submit(plan, queue, values, outs, wait_for)

    def _make(self, outs, made, result, queue):
        from drupe import array

        return [array.empty(result, scalar.name, queue=queue) if out is None else out
                for out, scalar in zip(outs, made)]

    def _submit(self, plan, queue, values, outs, wait_for):
        """The outputs and the event of a call."""
        from drupe import array

        before = [out for out in outs if out is not None and not out.is_contiguous]
        outs = self._make(outs, plan.made, plan.result, queue)
        if before:
            wait_for = after_copies(queue, before, wait_for)
        targets = [dense(out, True) for out in outs]
        given = [value.usm_data if mode == "memory" else scalars.convert(value, scalar.name, one.name)
                 if mode == "value" else value
                 for one, mode, scalar, value in zip(self.in_params, plan.modes, plan.used, values)]
        partial = array.empty(plan.partial, "uint8", queue=queue) if plan.partial else None
        given += [*(target for target, _back in targets), *plan.tail, partial, plan.numbers]
        with in_order(queue):
            for kernel, more, global_size, local_size in plan.starts:
                wait_for = kernel(*given, *more, global_size=global_size, local_size=local_size, queue=queue,
                                  wait_for=wait_for)
        return outs, copy_back(wait_for, queue, [pair for _target, back in targets for pair in back])

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

    def _build(self, queue, used, made, types, kinds, work):
        shape, language = work.shape, work.form.language
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
