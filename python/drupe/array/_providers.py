"""Who computes products and factorisations of matrices."""
import glob
import importlib.util
import os
import sys
from collections import namedtuple

from drupe import _engine

Provider = namedtuple("Provider", "operation dtype device provider library")


def suggest():
    """Tell the engine of the libraries that come with NumPy: of its own wheel, or of the environment that has it."""
    try:
        numpy = importlib.util.find_spec("numpy")
    except (ImportError, ValueError):  # it is being replaced, or is no ordinary module
        numpy = None
    if numpy is not None and numpy.origin:
        beside = os.path.join(os.path.dirname(os.path.dirname(numpy.origin)), "numpy.libs")
        for path in sorted(glob.glob(os.path.join(glob.escape(beside), "lib*openblas*.so*"))):
            _engine._provider_suggest(path, "OpenBLAS of NumPy")
    path = os.path.join(sys.prefix, "lib", "libopenblas.so.0")
    if os.path.exists(path):
        _engine._provider_suggest(path, "OpenBLAS of the environment")


def providers(device=None):
    """Who computes matmul and the factorisations of drupe.array.linalg: a list of tuples (operation, dtype, device,
    provider, library) for each data type on a device, or on all devices.

    `provider` is None where nobody is found. `library` is a file, or "" for what Drupe computes itself.

    >>> da.providers("host")[0]
    Provider(operation='matmul', dtype=drupe.array.bool, device='host:cpu:0', provider='Drupe', library='')
    """
    import drupe

    devices = drupe.devices() if device is None else [_engine.empty(0, device=device).device]
    rows = []
    for each in devices:
        reachable = each.is_cpu
        for operation, dtype, provider, library in _engine._providers():
            if dtype.itemsize == 8 and dtype.kind == "f" and not each.has_aspect_fp64:
                continue
            if not reachable and operation == "matmul":
                provider, library = "kernels of Drupe", ""
            elif not reachable and provider:
                provider += ", on copies"
            rows.append(Provider(operation, dtype, each.filter_string, provider, library))
    return rows


def summary():
    """Who computes linear algebra on CPUs, in a few words."""
    found = dict.fromkeys((provider, library) for operation, dtype, provider, library in _engine._providers()
                          if dtype.name == "float64" and provider)
    return "; ".join(provider + (f" ({library})" if library else "") for provider, library in found)
