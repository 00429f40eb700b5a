#!/usr/bin/env python3
"""Stubs for editors and type checkers: python/drupe/*.pyi, of what the installed package tells of itself.

Names, parameters and defaults come from the package's own signatures, the types of device properties from
engine/include/drupe/device_info.def, all other types from the tables below, by the name of a parameter or of a member.
What no table has is Any.

usage: tools/stubs.py [--check]     write the files, or exit 1 if they are old

Run it with the Python that drupe is installed in.
"""
import inspect
import pathlib
import re
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python/drupe"

# A type, and the parameters that have it, by name.
PARAMETERS = """
Array: x
Array | complex: x1 x2
Callable[..., Any] | int: function
Context | None: context
DTypeLike: dtype
Device: peer
DeviceLike: device
DeviceLike | Sequence[Device | str]: devices
Event | Sequence[Event]: events
Events: dEvents wait_for
Future[Any] | asyncio.Future[Any]: future
Kernel: kernel
Literal["device", "shared", "host"] | None: usm_type
Literal["low", "normal", "high"] | None: priority
Queue | None: queue sycl_queue
Sizes: global_size
Sizes | None: local_size
Sequence[Any]: args
bool: allow cache endpoint event in_order include_backend include_device_type keepdims profiling
bool | None: copy
float | None: timeout
int: alignment dim0 limit num val
int | None: count dim1 dim2 nbytes
int | Sequence[int]: shape
int | tuple[int, ...] | None: axis
str: language name options
str | None: filter order
str | bytes | None: source
str | tuple[str, ...] | None: property
tuple[int, ...]: axes
"""
# A type, and what returns or is it: "owner.member", or any member of that name.
RESULTS = """
Any: Array.tolist copy_to_host
Array: Array.T Array.imag Array.real Array.__getitem__ Array.copy Array.reshape Array.to_device __abs__ __invert__
  __neg__ __pos__ all any astype max min prod sum
Callable[[DeviceError], object] | None: Queue.on_error
Context: context get_sycl_context sycl_context
DType: dtype
Device: Device.get_unpartitioned_parent_device device get_sycl_device sycl_device
Device | None: Device.composite_device Device.parent_device
DeviceError | None: Event.error
Event: Event.from_future
EventTimes: Event.times
Generator[Any, None, None]: __await__
Kernel: Program.__getitem__ Program.get_kernel
MemoryUSMDevice | MemoryUSMShared | MemoryUSMHost: Array.usm_data
None: accept_contents Event.add_done_callback Queue.flush Queue.memcpy Queue.memset __setitem__ contain_faults
  copy_from_device copy_from_host disable_peer_access enable_peer_access memset print_device_info wait wait_for
Platform: platform sycl_platform
Queue: Device.queue queue
Recipe | None: Array.pending
Queue | None: Event.queue
Sizes: NdRange.local_size
Range: NdRange.get_global_range NdRange.get_local_range NdRange.global_range NdRange.local_range
bool: __bool__ can_access_peer can_compile done has_enable_profiling has_kernel is_contiguous is_in_order
bool | int | float | complex: Array.item
bytes: Program.binary __bytes__ tobytes
dict[str, Any]: Device.info
enums.backend_type: Device.backend
enums.device_type: Device.device_type
enums.event_status_type: Event.execution_status
complex: __complex__
float: __float__
int: Device.default_selector_score Device.get_device_id Queue.cancel Range.dim0 Range.dim1 Range.dim2 Range.get
  Range.get.index __index__ __int__ __len__ addressof_ref
  device_count get_usm_type_enum itemsize nbytes ndim nin number pending profiling_info_end profiling_info_start
  profiling_info_submit size
int | Sequence[int]: Array.reshape.shape
int | tuple[int, ...]: moveaxis.source moveaxis.destination
list[Device]: Device.component_devices Device.create_sub_devices devices get_devices
list[Event]: Event.get_wait_list
list[dict[str, Any]]: trace
list[str]: Program.kernel_names
numpy.ndarray[Any, Any]: __array__ asnumpy
str: backend build_log driver_version filter_string get_filter_string get_usm_type kind name options priority status
  str usm_type
str | None: Event.backend
tuple[int, ...]: shape strides
tuple[tuple[str, str, str], ...] | None: Kernel.arguments
"""
WRITABLE = {"Array.imag", "Array.real", "Queue.on_error"}
# Properties that every device has.
SURE = {"name", "max_compute_units", "max_work_group_size", "max_work_item_sizes", "global_mem_size", "is_available"}
WORDS = {"ENUM": "enums.{0} | None", "FLAGS": "tuple[enums.{0}, ...] | None", "STRING": "str | None",
         "U64": "int | None", "U64X3": "tuple[int, int, int]", "LIST": "tuple[int, ...] | None", "BOOL": "bool | None",
         "TYPE": "bool"}
EVENTS = {"Queue": ("barrier", "copy", "copy_async", "fill", "host_task", "mem_advise", "memcpy_async", "memset_async",
                    "prefetch", "submit", "submit_async", "submit_barrier", "_submit_keep_args_alive")}
ARITHMETIC = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
# What functions of drupe.array return but arrays, and the attributes of its classes.
ARRAY_RETURNS = {"result_type": "DType", "broadcast_arrays": "tuple[Array, ...]", "broadcast_shapes": "tuple[int, ...]",
                 "meshgrid": "tuple[Array, ...]", "unstack": "tuple[Array, ...]", "can_cast": "builtins.bool",
                 "isdtype": "builtins.bool", "__array_namespace_info__": "Any"}
LIMITS = {"finfo": {"bits": "int", "eps": "float", "max": "float", "min": "float", "smallest_normal": "float",
                    "dtype": "DType"},
          "iinfo": {"bits": "int", "max": "int", "min": "int", "dtype": "DType"}}
# Modules of drupe.array that have their types written in them.
TYPED = ("drupe.array._fusing", "drupe.array._recipe")
NONE_TOO = ("Any", "DTypeLike", "DeviceLike", "Events")
HEAD = '''\
"""{0} Made by tools/stubs.py; do not edit."""
import asyncio
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy
'''
ALIASES = '''
from drupe import enums
from drupe.array._recipe import Recipe
from drupe.platforms import Platform

DeviceLike: TypeAlias = "Device | str | None"
DTypeLike: TypeAlias = "DType | str | type | numpy.dtype[Any] | None"
Events: TypeAlias = "Event | Sequence[Event] | None"
Sizes: TypeAlias = "int | Sequence[int]"
'''


def read_table(text):
    """The types by name. What is indented goes on with the line before."""
    found = {}
    for line in text.replace("\n  ", " ").strip().split("\n"):
        written, _, names = line.rpartition(": ")
        found.update(dict.fromkeys(names.split(), written))
    return found


PARAMETERS, RESULTS = read_table(PARAMETERS), read_table(RESULTS)


def table_properties():
    """Type of each device property of the engine's table, by its Python name."""
    text = (ROOT / "engine/include/drupe/device_info.def").read_text()
    words = dict(re.findall(r"X\((\w+), (\w+), DRUPE_WORDS_",
                            (ROOT / "engine/include/drupe/device_words.h").read_text()))
    found = {}
    for kind, key, name in re.findall(r"DRUPE_INFO\(\w+, (\w+), (\w+),\s*(\w+),", text):
        written = WORDS[kind].format(words.get(key))
        found[name] = written.removesuffix(" | None") if name in SURE else written
    return found


def default_text(value):
    return repr(value) if isinstance(value, (int, float, str, bool, tuple, type(None))) else "..."


def parameters(function, owner="", drop_self=False):
    """The parameters as stubs write them; None where the package tells none."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return None
    listed, starred, positional = [], False, False
    for parameter in signature.parameters.values():
        if parameter.name == "self" or (drop_self and parameter.name in ("iterable",)):
            continue
        if positional and parameter.kind is not parameter.POSITIONAL_ONLY:
            listed.append("/")
            positional = False
        positional = positional or parameter.kind is parameter.POSITIONAL_ONLY
        prefix = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            listed.append("*")
            starred = True
        starred = starred or prefix == "*"
        written = RESULTS.get(f"{owner}.{parameter.name}") or PARAMETERS.get(parameter.name, "Any")
        text = f"{prefix}{parameter.name}: {written}"
        if parameter.default is not parameter.empty:
            text += f" = {default_text(parameter.default)}"
            none = parameter.default is None and "None" not in written and written not in NONE_TOO
            text = text.replace(": " + written, f": {written} | None", 1) if none else text
        listed.append(text)
    if positional:
        listed.append("/")
    return ", ".join(listed)


def result(owner, name, default="Any"):
    if name in EVENTS.get(owner, ()):
        return "Event"
    return RESULTS.get(f"{owner}.{name}") or RESULTS.get(name, default)


def wrap(text):
    """One statement in lines of at most 120 characters."""
    if len(text) <= 120:
        return text
    indent = " " * (text.index("(") + 1)
    lines, line = [], ""
    for part in re.split(r"(?<=,) (?![^\[]*\])", text):
        if len(line) + len(part) > 118:
            lines.append(line)
            line = indent + part
        else:
            line = f"{line} {part}" if line else part
    return "\n".join(lines + [line])


def method(owner, name, member):
    given = parameters(member.__func__ if isinstance(member, staticmethod) else member, f"{owner}.{name}")
    if given is None:
        return None
    static = isinstance(member, staticmethod)
    head = "    @staticmethod\n" if static else ""
    given = given if static else ", ".join(filter(None, ("self", given)))
    return head + wrap(f"    def {name}({given}) -> {result(owner, name)}: ...")


def operator(name, member):
    word = name.strip("_")
    if word in ARITHMETIC or word[1:] in ARITHMETIC and word[0] in "ri":
        return f"    def {name}(self, value: Array | complex, /) -> Array: ..."
    if word in ("lt", "le", "gt", "ge"):
        return f"    def {name}(self, value: Array | complex, /) -> Array: ..."
    if word in ("eq", "ne"):
        return f"    def {name}(self, value: Array | complex, /) -> Array: ...  # type: ignore[override]"
    return None


SHOWN = """__len__ __getitem__ __setitem__ __await__ __abs__ __array__ __bool__ __bytes__ __complex__ __float__
__index__ __int__ __neg__ __pos__ __invert__ _submit_keep_args_alive _pointer""".split()


def class_stub(cls, properties):
    owner, lines = cls.__name__, []
    created = parameters(cls, owner)
    lines.append(f"class {owner}({BASES[owner]}):" if owner in BASES else f"class {owner}:")
    if created and "iterable" not in created:
        lines.append(wrap(f"    def __init__(self, {created}) -> None: ..."))
    for name, member in sorted(vars(cls).items()):
        if owner == "Array" and (line := operator(name, member)):
            lines.append(line)
        elif name.startswith("_") and name not in SHOWN:
            continue
        elif isinstance(member, (property, types.GetSetDescriptorType, types.MemberDescriptorType)):
            written = (properties or {}).get(name) or result(owner, name)
            if owner == "Device" and name.startswith("has_aspect_") and written == "Any":
                written = "bool | None"
            lines.append(f"    @property\n    def {name}(self) -> {'int' if name == '_pointer' else written}: ...")
            if f"{owner}.{name}" in WRITABLE:
                taken = "Array | complex" if owner == "Array" else written
                lines.append(f"    @{name}.setter\n    def {name}(self, value: {taken}) -> None: ...")
        elif callable(member) or isinstance(member, staticmethod):
            line = method(owner, name, member)
            lines += [line] if line else []
    return lines


def special(engine):
    """What no introspection tells."""
    known = [name for name, value in vars(engine.DeviceError).items() if value is None]
    kinds = {"status": "str", "native_code": "int", "queue": "int", "submission": "int", "cell": "int", "line": "int",
             "cause": "BaseException"}
    lines = ["class EventTimes(NamedTuple):",
             *(f"    {name}: int" for name in ("queued", "submitted", "started", "ended")), "", "    @property",
             "    def duration(self) -> int: ...", "", "class DeviceError(Exception):",
             *(f"    {name}: {kinds.get(name, 'str')} | None" for name in known), ""]
    for name in sorted(vars(engine)):
        value = getattr(engine, name)
        if isinstance(value, type) and issubclass(value, engine.DeviceError) and value is not engine.DeviceError:
            lines.append(f"class {name}({', '.join(base.__name__ for base in value.__bases__)}):")
            lines += ["    log: str", ""] if name == "BuildError" else ["    ...", ""]
    return lines


BASES = {"Range": "tuple[int, ...]"}
CALLS = {"Kernel": ["    def __call__(self, *args: Any, global_size: Sizes, local_size: Sizes | None = None,",
                    "                 queue: Queue | None = None, wait_for: Events = (),",
                    "                 event: bool = True) -> Event: ..."],
         "Program": ["    def __getattr__(self, name: str) -> Kernel: ..."],
         "Operation": ["    def __call__(self, *args: Any, **kwargs: Any) -> Array: ..."]}


def engine_stub():
    from drupe import _engine
    properties = table_properties()
    lines = [HEAD.format("The engine's classes and functions."), ALIASES.strip("\n"), "", *special(_engine)]
    for name in sorted(vars(_engine)):
        value = getattr(_engine, name)
        if not isinstance(value, type) or issubclass(value, BaseException) or name.startswith("_"):
            continue
        if name == "EventTimes":
            continue
        lines += class_stub(value, properties if name == "Device" else None) + CALLS.get(name, []) + [""]
    for name in sorted(vars(_engine)):
        value = getattr(_engine, name)
        if isinstance(value, types.BuiltinFunctionType) and not name.startswith("_"):
            lines.append(wrap(f"def {name}({parameters(value, name)}) -> {result('', name, 'Array')}: ..."))
    return "\n".join(lines) + "\n"


def package_stub():
    import drupe
    lines = ['"""Devices from Python. Made by tools/stubs.py; do not edit."""', "from collections.abc import Sequence",
             "from typing import Any", ""]
    lines += [f"from drupe import {name} as {name}" for name in sorted(drupe._MODULES)]
    lines += [f"from drupe._engine import {name} as {name}" for name in sorted(drupe._ENGINE)]
    lines += [f"from drupe.{module} import {name} as {name}" for name, module in sorted(drupe._WRITTEN.items())]
    lines += [f"from drupe.{drupe._WRITTEN.get(name, '_engine')} import {name} as {other}"
              for other, name in sorted(drupe._DPCTL.items())]
    lines += ["from drupe._engine import DeviceLike", "", "__version__: str", "__all__: list[str]", "",
              "def get_include() -> str: ...",
              "def load_ipython_extension(shell: Any) -> None: ...",
              "def queue(device: DeviceLike = None) -> Queue: ...",
              "def synchronize(device: DeviceLike = None) -> None: ...",
              "def wait_for(events: Event | Sequence[Event], timeout: float | None = None) -> None: ..."]
    return "\n".join(lines) + "\n"


def array_stub():
    import drupe.array
    from drupe import _engine
    lines = ['"""Arrays on devices. Made by tools/stubs.py; do not edit."""', "import builtins",
             "from collections.abc import Sequence", "from typing import Any", "",
             "from drupe._engine import DeviceLike, DTypeLike, Operation"]
    names = sorted(drupe.array.__all__)
    for name in names:
        if hasattr(_engine, name) and getattr(_engine, name) is getattr(drupe.array, name):
            lines.append(f"from drupe._engine import {name} as {name}")
    typed = {name: module for name in names
             if (module := getattr(getattr(drupe.array, name), "__module__", None)) in TYPED}
    lines += [f"from {module} import {name} as {name}" for name, module in typed.items()]
    lines += ["", "__all__: list[str]"]
    for name in names:
        value = getattr(drupe.array, name)
        if name in typed or hasattr(_engine, name) and getattr(_engine, name) is value:
            continue
        if isinstance(value, types.FunctionType):
            given = re.sub(r"\bbool\b", "builtins.bool", parameters(value, name))  # there is a type of that name
            returned = ARRAY_RETURNS.get(name, "Array")
            lines.append(wrap(f"def {name}({given}) -> {returned}: ..."))
        elif isinstance(value, type) and name not in LIMITS:
            bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
            lines.append(f"class {name}({bases}): ..." if bases else f"class {name}: ...")
        elif isinstance(value, type):
            lines.append(f"class {name}:\n    def __init__(self, type: Any, /) -> None: ...")
            lines += [f"    {member}: {of}" for member, of in LIMITS[name].items()]
        elif isinstance(value, (float, types.NoneType, _engine.DType, _engine.Operation)):
            lines.append(f"{name}: {'None' if value is None else type(value).__name__}")
    return "\n".join(lines) + "\n"


def files():
    return {PACKAGE / "_engine.pyi": engine_stub(), PACKAGE / "__init__.pyi": package_stub(),
            PACKAGE / "array/__init__.pyi": array_stub()}


def main(argv):
    old = [path for path, text in files().items() if not path.exists() or path.read_text() != text]
    if argv == ["--check"]:
        for path in old:
            print(f"{path.relative_to(ROOT)} is not what tools/stubs.py makes: run it", file=sys.stderr)
        return 1 if old else 0
    if argv:
        print(__doc__)
        return 2
    for path, text in files().items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
