"""What runs in the C threads that serve subshells (jkernel/pyexec/pyexec_worker.c)."""
import importlib


def serve(module, subshell):
    """Have drupe.jupyter's `module` serve it to its end. Returns None, or why it could not, as one line."""
    try:
        importlib.import_module("drupe.jupyter." + module).serve(subshell)
    except BaseException as error:
        return "%s: %s" % (type(error).__name__, error)
