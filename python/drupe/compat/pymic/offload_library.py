"""OffloadLibrary: a shared library whose attributes are kernels."""
import os

from drupe import native
from drupe.compat.pymic import _trace
from drupe.compat.pymic.offload_error import OffloadError


def search_path():
    """The folders of PYMIC_LIBRARY_PATH, then the current one."""
    listed = os.environ.get("PYMIC_LIBRARY_PATH", "")
    return [folder for folder in listed.split(os.pathsep) if folder] + [os.curdir]


def _find(library):
    if os.path.isabs(library):
        return library if os.path.isfile(library) else None
    for folder in search_path():
        path = os.path.join(folder, library)
        _trace.debug(5, "looking for %s in %s", library, folder)
        if os.path.isfile(path):
            return os.path.abspath(path)
    return None


class OffloadLibrary:
    """A library for a device. An attribute is a kernel: (name, function, device, library)."""

    def __init__(self, library, device=None):
        from drupe.compat.pymic.offload_device import devices

        self._name = os.fspath(library)
        self._device = devices[0] if device is None else device
        self._kernels = {}
        path = _find(self._name)
        if path is None:
            raise OffloadError("there is no library %r in PYMIC_LIBRARY_PATH (%s)"
                               % (self._name, os.pathsep.join(search_path())))
        try:
            self._library = native.load(path, self._device.queue)
        except OSError as error:
            raise OffloadError("%s. It has to be compiled for the processor of this machine." % error) from None
        _trace.debug(5, "loaded %s for %s", path, self._device)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        kernel = self._kernels.get(name)
        if kernel is None:
            kernel = self._kernels[name] = (name, self._library.function(name), self._device, self)
        return kernel

    def __repr__(self):
        return "OffloadLibrary(%r for %r)" % (self._name, self._device)
