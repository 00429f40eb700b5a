"""Work for tests, whose times and errors the test chooses: testwork.c, compiled when it is first imported.

Kernels of the tests import it, too: the folder is in their PYTHONPATH."""
import hashlib
import importlib.machinery
import importlib.util
import os
import pathlib
import subprocess
import sys

from drupe import ext

_SOURCE = pathlib.Path(__file__).with_suffix(".c")


def _compiled():
    """The extension module in build/, for this text, the header and this Python."""
    header = pathlib.Path(ext.get_include(), "drupe", "ext.h")
    parts = _SOURCE.read_bytes() + header.read_bytes() + sys.version.encode()
    made = hashlib.sha256(parts).hexdigest()[:16]
    target = _SOURCE.parents[2] / "build" / "testwork" / (made + importlib.machinery.EXTENSION_SUFFIXES[0])
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        own = target.with_name(f"{made}.{os.getpid()}")
        subprocess.run(ext.command(_SOURCE, own), check=True, timeout=120)
        own.rename(target)  # other processes of the tests may do the same
    return target


_spec = importlib.util.spec_from_file_location("testwork_c", _compiled())
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
task = _module.task
