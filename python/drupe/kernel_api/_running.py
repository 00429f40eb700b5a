"""Which simulated kernel this thread runs. The functions of this package ask it; compiled kernels never call them."""
import threading


class _Here(threading.local):
    run = None


here = _Here()


def running(name):
    """The run (drupe.simulator.run.Run) that calls the function `name`; RuntimeError outside of one."""
    run = here.run
    if run is None:
        raise RuntimeError("%s is used inside a kernel, which call_kernel() runs: it has no meaning for a function "
                           "that is called by itself" % name)
    return run
