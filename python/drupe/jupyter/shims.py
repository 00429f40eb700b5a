"""The module names under which libraries look for a kernel: `ipykernel` and what is in it.

tqdm, rich, plotly, click and many others recognise a notebook by names of ipykernel: `"ipykernel" in sys.modules`,
`isinstance(get_ipython(), ipykernel.zmqshell.ZMQInteractiveShell)`. So these names are in sys.modules from the start,
as modules that are filled when somebody looks into them.

When the real ipykernel is installed, `ipykernel.__path__` is its folder: modules that are not listed in _ALWAYS are
imported from there. Those in _ALWAYS would look for a running ipykernel and do nothing here, so ours stand in for them;
names that ours lack are taken from the real module. When it is not installed, a finder at the end of sys.meta_path
answers for those in _ABSENT as well.
"""
import functools
import importlib.machinery
import json
import os
import sys
import types

_INTERFACE = (7, 4, 0)  # the ipykernel whose names these are


# --- what is in the modules; called on the first look ---


def _connect(kernel):
    def get_connection_file(app=None):
        """The path of this kernel's connection file."""
        return os.path.abspath(kernel.connection_file)

    def get_connection_info(connection_file=None, unpack=False):
        """The content of a connection file as text, or as a dict."""
        with open(connection_file or get_connection_file(), encoding="utf-8") as file:
            text = file.read()
        if not unpack:
            return text
        info = json.loads(text)
        info["key"] = info.get("key", "").encode()
        return info

    def connect_qtconsole(connection_file=None, argv=None):
        """Start a Qt console on this kernel; the process."""
        from . import magics

        return magics.start_qtconsole(connection_file or get_connection_file(), argv or [])

    return {
        "get_connection_file": get_connection_file,
        "get_connection_info": get_connection_info,
        "connect_qtconsole": connect_qtconsole,
    }


def _zmqshell(kernel):
    from . import display, magics, shell

    return {
        "ZMQInteractiveShell": shell.ZMQInteractiveShell,
        "ZMQDisplayPublisher": display.KernelDisplayPublisher,
        "ZMQShellDisplayHook": display.KernelDisplayHook,
        "KernelMagics": magics.KernelMagics,
    }


def _displayhook(kernel):
    from . import display

    return {"ZMQShellDisplayHook": display.KernelDisplayHook, "ZMQDisplayHook": display.KernelDisplayHook}


def _comm(kernel):
    import comm  # noqa: F401  sets the hooks

    from . import comms

    class Comm(comms.Comm):
        """As ipykernel's: takes and ignores what traitlets would."""

        def __init__(self, target_name="", data=None, metadata=None, buffers=None, comm_id=None, primary=True,
                     target_module=None, **ignored):
            super().__init__(target_name or "comm", data, metadata, buffers, comm_id, primary, target_module)

    return {"Comm": Comm, "BaseComm": comms.Comm, "CommManager": comms.CommManager}


def _iostream(kernel):
    from . import streams

    return {"OutStream": streams.OutStream}


def _kernel(kernel):
    from . import facade

    return {"Kernel": facade.Kernel, "IPythonKernel": facade.IPythonKernel}


def _kernelapp(kernel):
    from . import application

    return {"IPKernelApp": application.IPKernelApp, **_kernel(kernel), **_connect(kernel)}


def _compiler(kernel):
    from drupe import _jkernel

    from . import cell, shell

    return {"get_file_name": cell.file_name, "get_tmp_directory": lambda: cell.folder().rstrip("/"),
            "get_tmp_hash_seed": lambda: cell.SEED, "XCachingCompiler": shell.CellCompiler}


def _version(kernel):
    text = ".".join(map(str, _INTERFACE))
    return {"version_info": _INTERFACE, "__version__": text, "kernel_protocol_version": "5.5",
            "kernel_protocol_version_info": (5, 5)}


def _jsonutil(kernel):
    from . import jsontext

    return {"json_clean": jsontext.clean, "encode_images": lambda data: data, "json_default": jsontext.default}


def _inline(kernel):
    from matplotlib_inline import backend_inline

    return vars(backend_inline)


def _inline_config(kernel):
    from matplotlib_inline import config

    return vars(config)


def _nothing(kernel):
    return {}


_ALWAYS = {
    "ipykernel": _connect,
    "ipykernel.connect": _connect,
    "ipykernel.zmqshell": _zmqshell,
    "ipykernel.compiler": _compiler,
    "ipykernel.comm": _comm,
    "ipykernel.comm.comm": _comm,
    "ipykernel.comm.manager": _comm,
    "ipykernel.iostream": _iostream,
}
_ABSENT = {
    "ipykernel._version": _version,
    "ipykernel.displayhook": _displayhook,
    "ipykernel.ipkernel": _kernel,
    "ipykernel.jsonutil": _jsonutil,
    "ipykernel.kernelapp": _kernelapp,
    "ipykernel.kernelbase": _kernel,
    "ipykernel.pylab": _nothing,
    "ipykernel.pylab.backend_inline": _inline,
    "ipykernel.pylab.config": _inline_config,
}
_PACKAGES = ("ipykernel.comm", "ipykernel.pylab")
_VERSION_NAMES = ("__version__", "version_info", "kernel_protocol_version", "kernel_protocol_version_info")


# --- the modules ---


def _installed():
    """The spec of the real ipykernel, or None."""
    for finder in sys.meta_path:
        if not isinstance(finder, _Finder) and hasattr(finder, "find_spec"):
            spec = finder.find_spec("ipykernel", None)
            if spec is not None:
                return spec
    return None


class _Module(types.ModuleType):
    """A module that is filled on the first look into it."""

    def __init__(self, name, fill, kernel):
        super().__init__(name)
        self.__spec__ = importlib.machinery.ModuleSpec(name, _Loader(), is_package=name in _PACKAGES)
        if name in _PACKAGES:
            self.__path__ = []
        self._fill = fill
        self._kernel = kernel

    def __getattr__(self, name):
        fill, kernel = self.__dict__.get("_fill"), self.__dict__.get("_kernel")
        if name.startswith("__") and self.__name__ != "ipykernel._version":
            raise AttributeError("module %r has no attribute %r" % (self.__name__, name))
        if fill is not None:
            self._fill = None
            for key, value in fill(kernel).items():
                self.__dict__.setdefault(key, value)
            if name in self.__dict__:
                return self.__dict__[name]
        below = sys.modules.get("%s.%s" % (self.__name__, name))
        return below if below is not None else self._from_real(name)

    def _from_real(self, name):
        real = self.__dict__.get("_real")
        if real is None and self.__name__ in _ALWAYS:
            real = self._real = _load_real(self.__name__)
        if real is None or not hasattr(real, name):
            raise AttributeError("module %r has no attribute %r" % (self.__name__, name))
        return getattr(real, name)

    def __dir__(self):
        self.__getattr__("_kernel")
        return [name for name in self.__dict__ if name not in ("_fill", "_kernel", "_real")]


class _Package(_Module):
    """`ipykernel` itself."""

    @property
    def __path__(self):
        spec = _installed()
        return list(spec.submodule_search_locations) if spec and spec.submodule_search_locations else []

    def __getattr__(self, name):
        if name in _VERSION_NAMES:
            return getattr(importlib.import_module("ipykernel._version"), name)
        return super().__getattr__(name)


def _load_real(name):
    """The real module, beside ours and not in sys.modules; None when there is none."""
    from importlib import util

    if name == "ipykernel":
        return None
    path = sys.modules["ipykernel"].__path__
    for part in name.split(".")[1:-1]:
        path = [os.path.join(folder, part) for folder in path]
    spec = importlib.machinery.PathFinder.find_spec(name, path) if path else None
    if spec is None or spec.loader is None:
        return None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Loader:
    def __init__(self, kernel=None):
        self._kernel = kernel

    def create_module(self, spec):
        return _Module(spec.name, _ABSENT[spec.name], self._kernel)

    def exec_module(self, module):
        """It fills itself."""


class _Finder:
    """Stands last: asked only for what nobody else has."""

    def __init__(self, kernel):
        self._kernel = kernel

    def find_spec(self, name, path=None, target=None):
        if name not in _ABSENT:
            return None
        return importlib.machinery.ModuleSpec(name, _Loader(self._kernel), is_package=name in _PACKAGES)


def _install_comm(kernel):
    from . import comms

    comms.install(kernel)


def _share_app():
    """The real IPKernelApp, just imported, gives the application that runs."""
    from . import application

    _share(sys.modules["ipykernel.kernelapp"].IPKernelApp, application.IPKernelApp,
           "instance", "initialized", "launch_instance")


def _share_kernel():
    """The same for the real Kernel."""
    from . import facade

    _share(sys.modules["ipykernel.kernelbase"].Kernel, facade.IPythonKernel, "instance", "initialized")


def _share(real, ours, *names):
    if not issubclass(ours, real):
        for name in names:
            setattr(real, name, getattr(ours, name))


def install(kernel):
    """Make the names known. Imports nothing."""
    from . import late, shell, streams

    # plotly and click look at the module of a class
    shell.ZMQInteractiveShell.__module__ = "ipykernel.zmqshell"
    streams.OutStream.__module__ = "ipykernel.iostream"
    for name, fill in _ALWAYS.items():
        sys.modules.setdefault(name, (_Package if name == "ipykernel" else _Module)(name, fill, kernel))
    sys.meta_path.append(_Finder(kernel))
    late.after_import("comm", functools.partial(_install_comm, kernel))
    late.after_import("ipykernel.kernelapp", _share_app)
    late.after_import("ipykernel.kernelbase", _share_kernel)
