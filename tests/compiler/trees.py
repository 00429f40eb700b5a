"""Small trees for tests, and what runs them: texts for the host by way of gcc and tcc, OpenCL C by way of a driver."""
import ctypes
import itertools
import pathlib
import shutil
import subprocess

import numpy as np
import pytest

import drupe
from drupe.compiler import text, tree
from drupe.compiler.tree import Assign, Binary, Buffer, Call, Const, For, Function, If, Load, Param, Query, Store, Var

# What the engine puts before a text with a table of its own (backends/host/ctext.c).
PRELUDE = """
typedef __SIZE_TYPE__ drupe_size_;
typedef struct { drupe_size_ drupe_count_[3], drupe_offset_[3]; } drupe_range_;
typedef struct { int pointer_, scalar_, reads_; unsigned bytes_; const char *name_, *type_; } drupe_param_;
typedef struct { const char *name_; drupe_size_ count_; const drupe_param_ *params_;
  void (*run_)(drupe_size_, drupe_size_, drupe_size_, const void *const *); } drupe_entry_;
#ifdef __TINYC__ /* one thread runs here */
static inline void drupe_fence_(void) {}
#define CAS(N, T) static inline T drupe_cas##N##_(T *at, T expected, T desired) { T old = *at; \\
  if (old == expected) *at = desired; return old; }
CAS(32, unsigned)
CAS(64, unsigned long)
#endif
"""
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-Wno-unused-variable", "-Wno-unused-parameter",
            "-Wno-unused-but-set-variable", "-Wno-unused-label", "-Wno-sign-compare", "-Wno-tautological-compare",
            "-Wno-maybe-uninitialized", "-Wno-type-limits"]
COMPILERS = {"gcc": ["gcc", "-std=gnu11", "-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fPIC",
                     *WARNINGS], "tcc": ["tcc"]}


def has_device(name):
    try:
        return bool(drupe.Device(name))
    except drupe.DeviceNotFoundError:
        return False


def _target(name, there):
    return pytest.param(name, marks=pytest.mark.skipif(not there, reason="there is no " + name))


TARGETS = [_target(name, shutil.which(name)) for name in COMPILERS] + [
    _target(name, has_device(name)) for name in ("opencl:cpu", "opencl:gpu")]


# --- Building trees ---

def i64(value):
    return value if isinstance(value, tree.Expr) else Const("int64", value)


def var(name, kind="int64"):
    return Var(kind, name)


def op(sign, a, b, kind=None, wraps=False):
    compares = sign in ("<", "<=", ">", ">=", "==", "!=", "&&", "||")
    return Binary(kind or ("bool" if compares else a.type), sign, a, b, wraps)


def call(name, *args, kind=None):
    return Call(kind or args[0].type, name, list(args))


def gid(dim=0):
    return Query("int64", "global_id", dim)


def lid(dim=0):
    return Query("int64", "local_id", dim)


def load(buffer, index):
    return Load(buffer.type, buffer, i64(index))


def store(buffer, index, value, line=1):
    return Store(line, buffer, i64(index), value)


def assign(name, value, line=1):
    return Assign(line, name, value)


def if_(cond, then, other=(), line=1):
    return If(line, cond, list(then), list(other))


def for_(name, start, stop, body, step=1, other=(), line=1):
    return For(line, name, i64(start), i64(stop), i64(step), list(body), list(other))


def kernel(name, params, body, *, locals=(), buffers=(), dims=1, grouped=False):
    """`params`: Buffers and (name, type) pairs; numbered in order."""
    made = []
    for at, one in enumerate(params):
        if isinstance(one, Buffer):
            made.append(Param(one.name, one.type, one, ("local" if one.space == "local" else "pointer", (at,))))
        else:
            made.append(Param(one[0], one[1], None, ("value", (at,))))
    return Function(name, made, dict(locals), list(buffers), list(body), dims=dims, grouped=grouped)


def global_(name, kind, readonly=False):
    return Buffer(name, kind, "global", None, readonly)


# --- Running ---

class _Param(ctypes.Structure):
    _fields_ = [("pointer", ctypes.c_int), ("scalar", ctypes.c_int), ("reads", ctypes.c_int), ("bytes", ctypes.c_uint),
                ("name", ctypes.c_char_p), ("type", ctypes.c_char_p)]


_RUN = ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)


class _Entry(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("count", ctypes.c_size_t), ("params", ctypes.POINTER(_Param)), ("run",
        _RUN)]


_COUNTER = itertools.count()


def compiled(made, compiler, folder):
    """The entry of a text for the host."""
    path = pathlib.Path(folder) / ("k%d" % next(_COUNTER))
    path.with_suffix(".c").write_text(PRELUDE + "extern const drupe_entry_ drupe_entries_[];\n" + made.text)
    subprocess.run([*COMPILERS[compiler], "-shared", "-o", str(path) + ".so", str(path) + ".c", "-lm"], check=True)
    library = ctypes.CDLL(str(path) + ".so")
    entry = _Entry.in_dll(library, "drupe_entries_")
    assert entry.name.decode() == made.name and entry.count == len(made.params)
    return library, entry


def _values(made, args, size, local, chunk, failures):
    for kind, *rest in made.params:
        if kind == "pointer":
            yield args[rest[0][0]]
        elif kind == "failures":
            yield failures
        elif kind == "local":
            yield rest[0][0], args[rest[0][0]]
        elif kind == "value":
            value, name = args[rest[0][0]], rest[1]
            if "." in name:
                name, _, part = name.partition(".")
                value, name = (value.real if part == "re" else value.imag), "float%d" % (int(name[7:]) // 2)
            yield np.dtype(name).type(value)
        else:
            yield np.int64({"global_size": size, "local_size": local, "chunk": chunk}[kind][rest[0] if rest else 0]
                           if kind != "chunk" else chunk)


def run_host(made, args, size, local=None, *, compiler="gcc", folder, chunk=7, parts=3):
    """Runs all work-items, in `parts` calls as several workers would; gives the record of failures."""
    library, entry = compiled(made, compiler, folder)
    failures = np.zeros(5, "int64")
    cells = []
    for at, value in enumerate(_values(made, args, size, local, chunk, failures)):
        param = entry.params[at]
        if isinstance(value, np.ndarray):
            assert param.pointer == 1 and param.bytes == 8
            cells.append(ctypes.c_void_p(value.ctypes.data))
            continue
        value = np.int64(value[1]) if isinstance(value, tuple) else value
        assert param.pointer == 0 and param.bytes == value.nbytes, (param.name, value)
        cells.append(ctypes.create_string_buffer(value.tobytes(), value.nbytes))
    pointers = (ctypes.c_void_p * (len(cells) + 1))(None, *(ctypes.cast(one, ctypes.c_void_p).value if not isinstance(
        one, ctypes.c_void_p) else ctypes.addressof(one) for one in cells))
    count = int(np.prod([g // l for g, l in zip(size, local)])) if local else -(-int(np.prod(size)) // chunk)
    cuts = sorted({count * part // parts for part in range(parts + 1)})
    for begin, end in zip(cuts, cuts[1:]):
        entry.run(begin, end, count, ctypes.cast(pointers, ctypes.c_void_p))
    return failures


_STORED = {"float16": "uint16", "bool": "uint8"}


def run_opencl(made, args, size, local=None, device="opencl:cpu"):
    """The same on a driver's device; arrays are copied there and back."""
    import drupe.array as da

    program = drupe.Program(made.text, device)
    failures = np.zeros(5, "int64")
    arrays, words = [], []
    for value in _values(made, args, size, local, None, failures):
        if isinstance(value, np.ndarray):
            there = next((b for a, b in arrays if a is value), None)
            if there is None:
                there = da.asarray(value.view(_STORED.get(value.dtype.name, value.dtype)), device=device)
                arrays.append((value, there))
            words.append(there)
        elif isinstance(value, tuple):
            words.append(drupe.LocalMemory(int(value[1])))
        else:
            words.append(np.uint8(value) if value.dtype == bool else value)
    event = getattr(program, made.name)(*words, global_size=tuple(reversed(size)),
                                        local_size=tuple(reversed(local)) if local else None)
    event.wait()
    for value, there in arrays:
        np.copyto(value, there.asnumpy().view(value.dtype))
    return failures


def run(function, args, size, local=None, *, target, folder, **options):
    """Render for the target, compile, run."""
    if target.startswith("opencl"):
        return run_opencl(text.render(function, "opencl"), args, size, local, target)
    return run_host(text.render(function, "c99"), args, size, local, compiler=target, folder=folder, **options)
