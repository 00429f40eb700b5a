"""RawKernel and RawModule: kernels as their text is written, called as CuPy calls them and as PyOpenCL does."""
import os
from collections.abc import Sequence
from typing import Any

from drupe._engine import Array, Device, Event, Kernel, LocalMemory, Program, Queue, UnsupportedError
from drupe.raw import binding, building, foreign, text

_GROUPS = {"get_local_id": "(get_global_id(d)%get_local_size(d))",
           "get_group_id": "(get_global_id(d)/get_local_size(d))",
           "get_num_groups": "(get_global_size(d)/get_local_size(d))"}
_SPIRV = b"\x03\x02\x23\x07"


def _three(sizes: Any, what: str) -> "tuple[int, ...]":
    sizes = (sizes,) if isinstance(sizes, int) or hasattr(sizes, "__index__") else tuple(sizes)
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"{what} has one to three sizes, not {len(sizes)}")
    return tuple(int(size) for size in sizes)


class _Source:
    """A text and its programs, each for a context and, in C, for a size of groups."""

    def __init__(self, code, options, language):
        if isinstance(code, (bytes, bytearray)):
            code = bytes(code) if code[:4] == _SPIRV else code.decode()
        if not isinstance(code, (str, bytes)):
            raise TypeError(f"code is text in OpenCL C or C, or a module of SPIR-V, not {type(code).__name__}")
        if language not in (None, "opencl", "c", "spirv"):
            raise ValueError(f"the language is 'opencl', 'c' or 'spirv', not {language!r}")
        self.code, self.language = code, language
        if isinstance(code, str):
            foreign.refuse_cuda(code, language)
        self.options = (options,) if isinstance(options, str) else tuple(options)
        self._words = building.words_of(options)
        self._cache = building.Cache()
        self._mentions: "frozenset[str]" = text.words_of([code]) if isinstance(code, str) else frozenset()
        self._together = isinstance(code, str) and foreign.has_groups(code)

    def language_on(self, device: Device) -> str:
        """The language that the text is taken for on a device."""
        if self.language is None:
            return building.language_of(device) if isinstance(self.code, str) else "spirv"
        return self.language

    def program(self, queue: Queue, block: "tuple[int, ...] | None") -> Program:
        """Build it, or find it."""
        language = self.language_on(queue.device)
        groups = language == "c" and (self._together or bool(self._mentions & {"get_local_size", *_GROUPS}))
        sizes = (*(block or ()), 1, 1, 1)[:3] if groups else ()
        return self._cache.get((queue.context, sizes), lambda: self._build(queue, language, sizes))

    def kernel(self, queue: Queue, block: "tuple[int, ...] | None", name: str) -> Kernel:
        """A kernel of the program."""
        program = self.program(queue, block)
        try:
            return program[name]
        except KeyError:
            raise AttributeError(f"the text has no kernel {name!r}; it has {', '.join(program.kernel_names)}") from None

    def _build(self, queue, language, sizes):
        options = self._words
        if sizes and self._together:
            options = "-drupe-groups=%d,%d,%d %s" % (*sizes, options)
        elif sizes:
            told = {**_GROUPS, "get_local_size": "((d)==0?{}:(d)==1?{}:(d)==2?{}:1)".format(*sizes)}
            options = " ".join([*(f"-D{name}(d)={value}" for name, value in told.items()), options])
        return Program(self.code, queue=queue, options=options, language=language)


def _refuse_options(options: "dict[str, Any]") -> None:
    for name in ("enable_cooperative_groups", "jitify", "translate_cucomplex"):
        if options.pop(name, False):
            raise UnsupportedError(f"{name}=True belongs to CUDA; there is nothing like it here")
    if options:
        raise TypeError(f"there is no option {next(iter(options))!r}")


class RawKernel:
    """A kernel as its text is written, in OpenCL C, or in C for the device `host`.

    It is launched as CuPy launches it, kernel(grid, block, args): `grid` is the number of groups along each axis and
    `block` their size, x first, so that x is dimension 0 of OpenCL. Or as PyOpenCL does, kernel(queue, global_size,
    local_size, *args). Both return an Event. The kernel runs on the queue of the arrays among its arguments, or else on
    that of the default device.

    >>> twice = drupe.RawKernel('''
    ...     #ifdef __OPENCL_VERSION__
    ...     #define GLOBAL global
    ...     #else
    ...     #define GLOBAL
    ...     #endif
    ...     kernel void twice(GLOBAL float *x) { x[get_global_id(0)] *= 2; }
    ... ''', "twice")
    >>> x = da.ones(6, dtype="float32")
    >>> twice((3,), (2,), (x,)).wait()
    >>> twice(x.queue, (6,), None, x).wait()
    >>> print(x)
    [4., 4., 4., 4., 4., 4.]

    It is built for each device when it is first launched there. options: of the compiler, a text or a sequence.
    language: "opencl", "c" or "spirv"; None takes text for C on host and for OpenCL C elsewhere. `shared_mem` bytes go
    to the one `local` parameter, where args leaves it out. CUDA C raises UnsupportedError, which says what to write
    instead.
    """

    def __init__(self, code: "str | bytes", name: str, options: "str | Sequence[str]" = (),
                 backend: "str | None" = None, *, language: "str | None" = None, **other: Any) -> None:
        del backend  # of CUDA's compilers there is none
        _refuse_options(other)
        self._init(_Source(code, options, language), name)

    def _init(self, source: _Source, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a kernel is text, not {type(name).__name__}")
        self._source, self.name = source, name

    @property
    def code(self) -> "str | bytes":
        """The text."""
        return self._source.code

    @property
    def options(self) -> "tuple[str, ...]":
        """The options for the compiler."""
        return self._source.options

    @property
    def language(self) -> str:
        """The language that the text is taken for on the default device."""
        return self._source.language_on(Device())

    @property
    def backend(self) -> str:
        """The backend of the default device."""
        return str(Device().backend)

    def __repr__(self) -> str:
        return f"<drupe.RawKernel {self.name}>"

    def compile(self, log_stream: Any = None) -> None:
        """Build it for the default device now. What the compiler wrote goes to a stream."""
        self._source.kernel(Device().queue, None, self.name)
        if log_stream is not None:
            log_stream.write(self._source.program(Device().queue, None).build_log)

    @property
    def kernel(self) -> Kernel:
        """The drupe.Kernel of the default device."""
        return self._source.kernel(Device().queue, None, self.name)

    @property
    def max_threads_per_block(self) -> "int | None":
        """The most work-items that a group may have on the default device."""
        return self.kernel.work_group_size

    @property
    def local_size_bytes(self) -> "int | None":
        """The private memory of a work-item, which CUDA calls local."""
        return self.kernel.private_mem_size

    @property
    def shared_size_bytes(self) -> "int | None":
        """The local memory of a group, which CUDA calls shared, without that of parameters."""
        return self.kernel.local_mem_size

    @property
    def attributes(self) -> "dict[str, int | None]":
        """The three numbers above, and the number of work-items that groups should have a multiple of."""
        kernel = self.kernel
        return {"max_threads_per_block": kernel.work_group_size, "local_size_bytes": kernel.private_mem_size,
                "shared_size_bytes": kernel.local_mem_size,
                "preferred_work_group_size_multiple": kernel.preferred_work_group_size_multiple}

    def __call__(self, *args: Any, **options: Any) -> Event:
        if args and isinstance(args[0], Queue):
            return self._call_opencl(*args, **options)
        return self._call_cupy(*args, **options)

    def _call_cupy(self, grid: Any, block: Any, args: "Sequence[Any]" = (), *, shared_mem: int = 0,
                   stream: "Queue | None" = None, queue: "Queue | None" = None, wait_for: Any = ()) -> Event:
        groups, block = _three(grid, "grid"), _three(block, "block")
        if isinstance(args, Array) or not isinstance(args, (tuple, list)):
            raise TypeError(f"args is a tuple, as in kernel(grid, block, (x, y)), not {type(args).__name__}")
        dims = max(len(groups), len(block))
        groups, block = ((*sizes, 1, 1)[:dims] for sizes in (groups, block))
        if min(*groups, *block, 1) < 1:
            raise ValueError(f"sizes are 1 at least: the grid is {groups}, the block {block}")
        return self._launch([count * size for count, size in zip(groups, block)], block, args, shared_mem,
                            queue if queue is not None else stream, wait_for)

    def _call_opencl(self, queue: Queue, global_size: Any, local_size: Any, *args: Any, g_times_l: bool = False,
                     global_offset: Any = None, wait_for: Any = (), allow_empty_ndrange: bool = False) -> Event:
        if global_offset is not None:
            raise UnsupportedError("global_offset is not supported: add an argument to get_global_id() in the kernel")
        sizes = _three(global_size, "global_size")
        local = None if local_size is None else _three(local_size, "local_size")
        if local is not None and len(local) != len(sizes):
            raise ValueError(f"the global size {sizes} and the local size {local} have different numbers of dimensions")
        if g_times_l and local is not None:
            sizes = tuple(count * size for count, size in zip(sizes, local))
        if allow_empty_ndrange and 0 in sizes:
            return queue.barrier(wait_for or ())
        return self._launch(sizes, local, args, 0, queue, wait_for or ())

    def _launch(self, sizes, block, args, shared, queue, wait_for):
        queue = binding.queue_of(map(str, range(len(args))), args, queue)
        kernel = self._source.kernel(queue, block, self.name)
        if shared:
            args = self._with_local(kernel, args, shared)
        if self._source.language_on(queue.device) == "c":
            if block is not None and any(size % one for size, one in zip(sizes, block)):
                raise ValueError(f"the local size {tuple(block)} does not divide the global size {tuple(sizes)}")
            block = None  # the program was built for it
        return kernel(*args, global_size=tuple(sizes), local_size=block and tuple(block), queue=queue,
                      wait_for=wait_for)

    def _with_local(self, kernel, args, shared):
        """The arguments, with memory for the parameter in local memory that they leave out."""
        places = [number for number, one in enumerate(kernel.arguments or ()) if one[2] == "local"]
        if len(places) != 1:
            raise ValueError(f"shared_mem goes to the one local parameter of a kernel, and {self.name} has "
                             f"{len(places)}: write `local float *part` among its parameters, or pass "
                             "drupe.LocalMemory(bytes) for each")
        if len(args) == kernel.num_args:
            raise ValueError(f"the local parameter {kernel.arguments[places[0]][0]!r} of {self.name} has an argument; "
                             "it is left out of args where shared_mem says how large it is")
        return [*args[:places[0]], LocalMemory(shared), *args[places[0]:]]


class RawModule:
    """A text with several kernels. get_function(name) is a RawKernel of it; all of them share one program.

    >>> module = drupe.RawModule(code='''
    ...     #ifdef __OPENCL_VERSION__
    ...     #define GLOBAL global
    ...     #else
    ...     #define GLOBAL
    ...     #endif
    ...     kernel void put(GLOBAL int *x, int a) { x[get_global_id(0)] = a; }
    ...     kernel void add(GLOBAL int *x, int a) { x[get_global_id(0)] += a; }
    ... ''')
    >>> put, add = module.get_function("put"), module.get_function("add")
    >>> x = da.zeros(3, dtype="int32")
    >>> put((3,), (1,), (x, 4)), add((1,), (3,), (x, 1))
    (<drupe.Event...>, <drupe.Event...>)
    >>> print(x)
    [5, 5, 5]

    `path` names a file instead: a text, or a module of SPIR-V.
    """

    def __init__(self, code: "str | bytes | None" = None, *, path: "str | os.PathLike[str] | None" = None,
                 options: "str | Sequence[str]" = (), backend: "str | None" = None, name_expressions: Any = None,
                 language: "str | None" = None, **other: Any) -> None:
        del backend
        _refuse_options(other)
        if name_expressions:
            raise UnsupportedError("name_expressions are names of C++ templates, and the languages here are OpenCL C "
                                   "and C. Write a kernel for each type with a macro, or build a module for each with "
                                   "options=('-DT=float',)")
        if (code is None) == (path is None):
            raise TypeError("give either code= or path=")
        self.file_path = None if path is None else os.fspath(path)
        if path is not None:
            with open(path, "rb") as file:
                code = file.read()
            if code[:4] == b"\x7fELF" or b".target sm_" in code:
                raise UnsupportedError(f"{self.file_path} was compiled for CUDA; give its source in OpenCL C, or a "
                                       "module of SPIR-V")
        self._source = _Source(code, options, language)

    @property
    def code(self) -> "str | bytes":
        """The text."""
        return self._source.code

    @property
    def options(self) -> "tuple[str, ...]":
        """The options for the compiler."""
        return self._source.options

    def __repr__(self) -> str:
        return f"<drupe.RawModule {self.file_path or ''}>".replace(" >", ">")

    def compile(self, log_stream: Any = None) -> None:
        """Build it for the default device now. What the compiler wrote goes to a stream."""
        program = self._source.program(Device().queue, None)
        if log_stream is not None:
            log_stream.write(program.build_log)

    def get_function(self, name: str) -> RawKernel:
        """The kernel of this name. Whether there is one is seen when it is launched."""
        kernel = RawKernel.__new__(RawKernel)
        kernel._init(self._source, name)
        return kernel

    def get_global(self, name: str) -> Any:
        """Raises UnsupportedError: a device gives no address of a variable in a program."""
        raise UnsupportedError(f"{name!r} cannot be had: OpenCL gives no addresses of variables in a program. Pass an "
                               "array to the kernel, or write the value into the text with options=('-DNAME=value',)")
