"""Programs and kernels: from OpenCL C, from C, from SPIR-V, from what was built before.

    program = drupe.Program("kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }", "opencl:cpu")
    program.twice(x, global_size=n)
    program = drupe.Program("kernel void twice(float *x) { x[get_global_id(0)] *= 2; }", "host", language="c")

Built programs are kept in a folder and found there the next time: see cache_info() and `python -m drupe cache`.
"""
import collections
import os
import struct

from drupe import _engine
from drupe._engine import BuildError, Kernel, LocalMemory, Program, UnsupportedError

__all__ = ["BuildError", "Kernel", "LocalMemory", "Program", "SpecializationConstant", "SpecializationConstantInfo",
           "build", "cache_clear", "cache_info", "create_kernel_bundle_from_source",
           "create_kernel_bundle_from_spirv", "create_kernel_bundle_from_sycl_source", "create_program_from_source",
           "create_program_from_spirv", "is_sycl_source_compilation_available", "load", "parse_spirv_specializations",
           "save"]


def build(source, device=None, **options):
    """Build a Program; the same as calling Program(...)."""
    return Program(source, device, **options)


# --- By the names of dpctl ---------------------------------------------------------------------------------

def create_kernel_bundle_from_source(q, src, copts=""):
    """Build OpenCL C for the device of a queue."""
    return Program(src, queue=q, options=copts)


def create_kernel_bundle_from_spirv(q, IL, copts="", specializations=None):
    """Build a SPIR-V module for the device of a queue."""
    return Program(IL, queue=q, options=copts, language="spirv", specializations=specializations)


def create_program_from_source(q, src, copts=""):
    """The older name of create_kernel_bundle_from_source()."""
    return create_kernel_bundle_from_source(q, src, copts)


def create_program_from_spirv(q, IL, copts=""):
    """The older name of create_kernel_bundle_from_spirv()."""
    return create_kernel_bundle_from_spirv(q, IL, copts)


def is_sycl_source_compilation_available():
    """False: there is no compiler of SYCL C++ here."""
    return False


def create_kernel_bundle_from_sycl_source(q, source, headers=None, registered_names=None, copts=None):
    """Raises UnsupportedError: there is no compiler of SYCL C++ here."""
    raise UnsupportedError("Drupe does not compile SYCL C++; give OpenCL C to create_kernel_bundle_from_source(), or "
                           "a module to create_kernel_bundle_from_spirv()")


# --- Binaries ----------------------------------------------------------------------------------------------

def save(program, path):
    """Write a built program to a file, for load() on the same device and driver."""
    with open(path, "wb") as file:
        file.write(program.binary)


def load(path, device=None, *, queue=None, context=None):
    """A program that save() wrote. InvalidArgumentError for a damaged file or one for another device."""
    with open(path, "rb") as file:
        return Program(file.read(), device, queue=queue, context=context, language="binary")


def cache_info():
    """The disk cache as a dict: whether it is on, where, how large, and what this process used of it."""
    return _engine._cache_info()


def cache_clear():
    """Remove all entries of the disk cache; the number of bytes that frees."""
    return _engine._cache_clear()


# --- Specialisation constants ------------------------------------------------------------------------------

_CODES = {"bool": "?", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
          "int64": "q", "uint64": "Q", "float16": "e", "float32": "f", "float64": "d",
          "b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q",
          "f2": "e", "f4": "f", "f8": "d", "int": "q", "float": "d", "single": "f", "double": "d", "half": "e"}

SpecializationConstantInfo = collections.namedtuple("SpecializationConstantInfo",
                                                    "spec_id dtype name itemsize default_value")
SpecializationConstantInfo.__doc__ = """A specialisation constant of a SPIR-V module. Modules for OpenCL do not say
whether an integer has a sign: `dtype` and `default_value` take it for signed."""


def _code(dtype):
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    code = _CODES.get(name.lstrip("<=|@")) if isinstance(name, str) else None
    if code is None:
        raise TypeError(f"{dtype!r} is no type of a specialization constant; a name such as 'int32' is")
    return code


def _pack(code, value, what):
    try:
        if code == "?":
            return b"\1" if value else b"\0"
        return struct.pack("=" + code, value if code in "efd" else int(value))
    except (struct.error, OverflowError) as error:
        raise OverflowError(f"{value!r} does not fit {what}: {error}") from None


class SpecializationConstant:
    """A value for a specialisation constant: SpecializationConstant(number, value), (number, dtype, value), or
    (number, nbytes, pointer) for bytes somewhere in memory.

    A Python int, float or bool that comes without a dtype takes the type that the constant has in the module.
    """

    __slots__ = ("id", "_bytes", "_plain", "_buffer")

    def __init__(self, spec_id, *args):
        if not 0 <= spec_id < 1 << 32:
            raise ValueError(f"the number of a specialization constant has 32 bits, {spec_id} has not")
        if len(args) not in (1, 2):
            raise TypeError("SpecializationConstant takes a number and (value), (dtype, value) or (nbytes, pointer)")
        self.id = int(spec_id)
        self._plain = self._buffer = None
        if len(args) == 1:
            self._bytes = self._of_object(args[0])
        elif isinstance(args[0], int):
            import ctypes
            self._bytes = ctypes.string_at(args[1], args[0])
        else:
            self._bytes = _pack(_code(args[0]), args[1], str(args[0]))

    def _of_object(self, obj):
        if type(obj) in (bool, int, float):
            self._plain = obj
            return _pack({bool: "?", int: "q", float: "d"}[type(obj)], obj, "64 bits")
        try:
            return bytes(memoryview(obj).cast("B"))
        except TypeError:
            raise TypeError(f"a {type(obj).__name__} is no value of a specialization constant") from None

    @property
    def size(self):
        """The size of the value in bytes."""
        return len(self._bytes)

    def addressof_ref(self):
        """The address of the value, valid as long as this object."""
        import ctypes
        if self._buffer is None:
            self._buffer = ctypes.create_string_buffer(self._bytes, len(self._bytes))
        return ctypes.addressof(self._buffer)

    def __eq__(self, other):
        if not isinstance(other, SpecializationConstant):
            return NotImplemented
        return self.id == other.id and self._bytes == other._bytes

    def __hash__(self):
        return hash((self.id, self._bytes))

    def __repr__(self):
        return f"SpecializationConstant({self.id}, {self._bytes!r})"


def _type_name(kind, size):
    return "bool" if kind == "b" else ("float" if kind == "f" else "int") + str(8 * size)


def parse_spirv_specializations(spv_bytes):
    """The specialisation constants of a SPIR-V module, as a tuple of SpecializationConstantInfo."""
    found = []
    for number, kind, size, name, default in _engine._spirv_constants(spv_bytes):
        dtype = _type_name(kind, size)
        value = struct.unpack("=" + _CODES[dtype], default)[0]
        found.append(SpecializationConstantInfo(number, dtype, name, size, value))
    return tuple(found)


def _convert(value, number, known):
    """A Python number as the bytes that the module's constant wants."""
    if number not in known:
        return _pack("d" if isinstance(value, float) else "q", value, "64 bits")  # the engine says what is missing
    dtype = known[number]
    what = f"the specialization constant {number} of type {dtype}"
    if dtype.startswith("int") and value > 0:
        dtype = "u" + dtype
    if dtype.startswith(("int", "uint")) and isinstance(value, float):
        raise TypeError(f"{value!r} is no integer, as {what} is")
    return _pack(_CODES[dtype], value, what)


def _spec_values(module, specializations):
    """What the engine takes: (number, bytes) of each value."""
    if isinstance(specializations, SpecializationConstant):
        specializations = [specializations]
    if isinstance(specializations, dict):
        specializations = [SpecializationConstant(number, value) for number, value in specializations.items()]
    pairs, known = [], None
    for one in specializations:
        if not isinstance(one, SpecializationConstant):
            raise TypeError(f"specializations are SpecializationConstant objects, not {type(one).__name__}")
        if one._plain is not None and known is None:
            known = {info.spec_id: info.dtype for info in parse_spirv_specializations(module)}
        pairs.append((one.id, one._bytes if one._plain is None else _convert(one._plain, one.id, known)))
    return tuple(pairs)


# --- python -m drupe cache ---------------------------------------------------------------------------------

CACHE_USAGE = """\
usage: python -m drupe cache [list | clear]

Without an argument: where built programs and texts of kernels are kept, how many, and whether the cache is on.
  list    the entries, those used last first
  clear   remove all of them, and what makes the start of kernels faster

DRUPE_CACHE=0 switches the cache off, DRUPE_CACHE_DIR names another folder, DRUPE_CACHE_SIZE limits its size (256M)."""


def cache_command(argv):
    """python -m drupe cache; returns the exit code."""
    import time

    from drupe._units import size
    if argv not in ([], ["list"], ["clear"]):
        print(CACHE_USAGE)
        return 0 if argv in (["-h"], ["--help"]) else 2
    info = cache_info()
    if not info["on"]:
        print("off:", info["reason"])
        return 0 if not argv else 1
    if argv == ["clear"]:
        from drupe.jupyter import start_store

        print("freed", size(cache_clear() + start_store.clear()))
    elif argv == ["list"]:
        for entry in _engine._cache_entries():
            used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry["used"]))
            text = entry["device"] or "the text of a kernel in Python" if entry["valid"] else "damaged; it will be " \
                "built again"
            print(f"{used}  {size(entry['bytes']):>10}  {text}")
    else:
        print(f"{info['folder'].replace(os.path.expanduser('~') + os.sep, '~/', 1)}: {info['entries']} entries, "
              f"{size(info['bytes'])} of {size(info['limit'])}")
    return 0
