"""syclinterface_diagnostics()."""
import contextlib

__all__ = ["syclinterface_diagnostics"]


@contextlib.contextmanager
def syclinterface_diagnostics(verbosity="warning", log_dir=None):
    """A block in which dpctl's C library writes what went wrong. Errors of Drupe carry their whole text in any case, so
    that nothing is written."""
    if verbosity not in ("warning", "error"):
        raise ValueError(f"verbosity is 'warning' or 'error', not {verbosity!r}")
    if log_dir is not None:
        import os

        if not os.path.isdir(log_dir):
            raise ValueError(f"log_dir is no folder: {log_dir!r}")
    yield
