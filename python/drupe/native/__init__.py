"""Functions of shared libraries as kernels, and arrays on a device in pyMIC's manner.

    from drupe import native
    library = native.load("./libaxpy.so")
    library.declare("axpy", "void(long n, double a, const double x[n], double y[n])")
    event = library.axpy(n, 2.0, x, y)         queued behind what its arrays' queue has; a drupe.Event

    stream = native.stream()                   bind(), zeros(), copy(), invoke(), sync(), memory by the byte
"""
import importlib
import os
import re

from drupe import _engine

from drupe.native._declare import declaration

__all__ = ["Library", "OffloadArray", "OffloadError", "Stream", "load", "stream"]


def load(path, device=None, *, queue=None):
    """Open a shared library, and give the Library whose attributes are its functions.

    `path` is a file, with or without folders, or the name of a library that the system knows: "m", "libm.so.6". Calls
    without arrays go to `queue`, or to the default queue of `device`, else to that of the default device. A file that
    has changed since it was loaded is loaded anew, beside the one that was there. OSError with the linker's words."""
    return Library(path, device, queue=queue)


class Library:
    """A shared library; `library.NAME` is its function of that name.

    A function is called as function(*arguments, queue=None, wait_for=(), event=True, result=None). The call is queued,
    behind what the queue of its arrays has, and gives an Event. Until it is declared, a function gets all arguments by
    address, numbers too, None is NULL, and there are at most 16 of them."""

    def __init__(self, path, device=None, *, queue=None):
        if device is not None and queue is not None:
            raise TypeError("give either device or queue: a queue has its device already")
        if device is not None:
            queue = device if isinstance(device, _engine.Queue) else _engine.Device(device).queue
        _check_device(queue)
        path = os.fsdecode(path)
        if "\0" in path:
            raise ValueError("the path of a library has a NUL in it: %r" % path)
        self._library = _open(path, queue)

    def declare(self, name, signature):
        """Say what a function takes, and get the function, which is `library.NAME` from now on.

        `signature` is a prototype in C, with or without the function's name and those of parameters:
        "void(double *x, long n, double a)". Scalars go by value then, and numbers, types and counts are checked before
        a call. `const` pointers are only read, also read-only arrays will do. A size such as `x[n]`, `x[n*m]` or
        `x[n][4]` is the least that an array has to have. Types are C's, those of <stdint.h>, size_t and the like, and
        complex. A sequence of types does as well, of types in C, data types, or ctypes: ("double *", "long", float)."""
        function = _engine._NativeFunction(self._library, name, declaration(signature))
        self.__dict__[name] = function
        return function

    def function(self, name, signature=None):
        """A function under a name that is no attribute; declared, if `signature` is given, without a change to
        `library.NAME`."""
        return _engine._NativeFunction(self._library, name, None if signature is None else declaration(signature))

    def __getattr__(self, name):
        if name.startswith("__") or name == "_library":
            raise AttributeError("%r has no attribute %r" % (type(self).__name__, name))
        function = _engine._NativeFunction(self.__dict__["_library"], name, None)
        self.__dict__[name] = function
        return function

    __getitem__ = function

    @property
    def path(self):
        """What was loaded."""
        return self._library.path

    def unload(self):
        """Take no more calls, wait for those that are queued, and unload the library."""
        self._library.unload()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.unload()

    def __repr__(self):
        return "<drupe.native.Library %s>" % self.path


def _check_device(queue):
    if queue is not None and not hasattr(queue, "device"):
        raise TypeError("queue must be a drupe.Queue, not %s" % type(queue).__name__)
    if queue is not None and queue.device.device_type.name != "cpu":
        raise _engine.UnsupportedError("functions of a library run on the host, and %s is another device: give a CPU, "
                                       'such as "host"' % queue.device.filter_string)


def _open(path, queue):
    """The library of a file, or of a name that the system knows."""
    if os.sep in path or not os.path.isfile(path):
        try:
            return _engine._NativeLibrary(path, queue)
        except OSError:
            found = None if os.sep in path or not re.fullmatch(r"[\w+-]+", path) else _find(path)
            if found is None:
                raise
            return _engine._NativeLibrary(found, queue)
    return _engine._NativeLibrary(os.path.abspath(path), queue)


def _find(name):
    from ctypes import util

    return util.find_library(name)


def __getattr__(name):
    if name in ("OffloadArray", "OffloadError", "Stream", "stream"):
        value = getattr(importlib.import_module("drupe.native._stream"), name)
        globals()[name] = value
        return value
    raise AttributeError("module 'drupe.native' has no attribute %r" % name)
