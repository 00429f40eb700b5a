"""Extension modules in C that work on Drupe's arrays: compile one and import it, for instance from a cell.

    from drupe import ext
    gemv = ext.build("gemv.c", libraries=["openblas"])

The C side is described in drupe/ext.h, in the folder that drupe.get_include() names.
"""
import hashlib
import importlib.machinery
import importlib.util
import os
import pathlib
import shlex
import subprocess
import sys
import sysconfig
import tempfile

_TIMEOUT = 120  # seconds for the compiler


def get_include():
    """The folder to give to a C compiler with -I."""
    return str(pathlib.Path(__file__).with_name("include"))


def _compiler():
    """The C compiler: $CC, else the usual one; the one that built this Python may be absent here."""
    import shutil

    for candidate in (os.environ.get("CC"), "cc", "gcc", "clang", sysconfig.get_config_var("CC")):
        words = shlex.split(candidate or "")
        if words and shutil.which(words[0]):
            return words
    raise RuntimeError("there is no C compiler: install one (on Debian and Ubuntu: apt install gcc), or name it in $CC")


def _library_option(name, folders):
    """-l for a library, also where only its run-time file is installed, without the development package's link."""
    import ctypes.util

    if any(os.path.exists(os.path.join(folder, "lib%s.so" % name)) for folder in folders):
        return "-l" + name
    found = ctypes.util.find_library(name)
    return "-l:" + found if found else "-l" + name


def command(source, target, *, libraries=(), include_dirs=(), library_dirs=(), options=()):
    """The command that compiles `source` into the extension module `target`, as a list of words."""
    include = [get_include(), sysconfig.get_paths()["include"], *map(str, include_dirs)]
    folders = [*map(str, library_dirs), sysconfig.get_config_var("LIBDIR") or "/usr/lib", "/usr/lib", "/usr/local/lib",
               "/usr/lib/" + (sysconfig.get_config_var("MULTIARCH") or "")]
    return [*_compiler(), "-shared", "-fPIC", "-O2", "-std=gnu11", "-Wall", *("-I" + folder for folder in include),
            *map(str, options), str(source), "-o", str(target), *("-L" + str(folder) for folder in library_dirs),
            *(_library_option(name, folders) for name in libraries)]


def build(source, *, name=None, libraries=(), include_dirs=(), library_dirs=(), options=()):
    """Compile a C file, or C text, into an extension module, import it, and return the module.

    `name` is the module's name, the NAME of its PyInit_NAME: that of the file, if it is not given. `libraries` are
    linked by name, such as "openblas". A module with the same text and options is compiled once in a process and
    imported once; changed text gives a new module beside the old one. Raises RuntimeError with the compiler's
    messages."""
    path = pathlib.Path(source) if isinstance(source, os.PathLike) or "\n" not in source else None
    if path is None and name is None:
        raise TypeError("build() of C text needs name=, the NAME of its PyInit_NAME")
    text = source if path is None else path.read_text()
    name = name or path.stem
    words = dict(libraries=tuple(libraries), include_dirs=tuple(map(str, include_dirs)),
                 library_dirs=tuple(map(str, library_dirs)), options=tuple(map(str, options)))
    key = hashlib.sha256(repr((name, text, sorted(words.items()))).encode()).hexdigest()
    if key not in _built:
        _built[key] = _import(name, _compile(name, text, path, words))
    return _built[key]


_built = {}  # by the hash of what a module is made of


def _compile(name, text, path, words):
    """The built file, in a folder of this process."""
    global _folder
    if _folder is None:
        _folder = tempfile.TemporaryDirectory(prefix="drupe-ext-")
    target = pathlib.Path(tempfile.mkdtemp(dir=_folder.name)) / (name + importlib.machinery.EXTENSION_SUFFIXES[0])
    if path is None:
        path = target.with_name(name + ".c")
        path.write_text(text)
    try:
        run = subprocess.run(command(path, target, **words), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=_TIMEOUT)
    except subprocess.TimeoutExpired:
        raise RuntimeError("the C compiler did not end within %d seconds" % _TIMEOUT) from None
    if run.returncode != 0:
        raise RuntimeError("%s cannot be compiled:\n%s" % (path, run.stderr.strip()))
    if run.stderr.strip():
        sys.stderr.write(run.stderr)  # warnings
    return target


_folder = None  # removed when the process ends


def _import(name, target):
    spec = importlib.util.spec_from_file_location(name, target)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
