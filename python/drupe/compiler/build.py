"""From a function and types to a drupe.Kernel: through the passes, or past them, and by one of the compilers."""
import contextlib
import functools
import os
import threading

from drupe.compiler import cached, launch
from drupe.compiler.messages import KernelError
from drupe.compiler.variants import Target

_ROUNDED = "-cl-fp32-correctly-rounded-divide-sqrt"  # as Python and NumPy divide
_PATIENT = 20_000_000  # operations above which a launch waits for the better tier
_turn = threading.Lock()  # builds of the better tier that nobody waits for run one at a time


def compile(kernel, kinds, dims, grouped, device, checked=False):
    """A Variant whose kernel is not built yet: from the disk cache, or by the passes. Raises KernelError."""
    language = launch.dialect_of(device)
    if language is None:
        raise KernelError("DK018", "%s compiles no kernels." % device.name,
                          "Use another device; `python -m drupe doctor` tells what is missing.")
    variant = cached.variant(kernel.py_func, Target(kinds, dims, grouped, checked, language, device.has_aspect_fp64,
                                                    device.name, kernel.dialect))
    variant.device, variant.kinds = device, kinds
    variant.grain = kernel.grain or variant.grain
    variant.form = ("host_" if language == "c99" else "") + ("groups" if grouped else "range")
    variant.local = None if grouped else launch.local_for(kernel, device, dims)
    return variant


def make(kernel, variant, queue, work):
    """Build the variant's program: on `host` by the quick tier where little is to be done, with the better one behind
    it in the background."""
    import drupe

    if variant.form.startswith("host"):
        _make_on_host(kernel, variant, queue, work)
        return
    rounds = drupe.enums.fp_config.correctly_rounded_divide_sqrt in (queue.device.single_fp_config or ())
    variant.program = drupe.Program(variant.text.text, queue=queue, options=_ROUNDED if rounds else "")
    variant.kernel, variant.tier = variant.program[variant.text.name], "driver"


def _make_on_host(kernel, variant, queue, work):
    """The quick tier for a small launch, or where there is no other; and the simulator where there is none at all."""
    quick = _program(variant, queue, " -drupe-quick") if work < _PATIENT else None
    if quick is not None:
        _take(variant, quick, "quick")
        threading.Thread(target=_better, args=(kernel, variant, queue), name="drupe-kernel-build", daemon=True).start()
        return
    best = _program(variant, queue)
    if best is None and work >= _PATIENT:
        quick = _program(variant, queue, " -drupe-quick")
    if best is not None or quick is not None:
        _take(variant, best or quick, "best" if best else "quick")
    else:
        variant.tier = "simulator"


@functools.lru_cache(maxsize=None)
def _options():
    """Of both tiers: the functions of mathematics have other bits where they use the processor's fma."""
    machine = os.uname().machine
    fma = machine == "aarch64"
    if machine == "x86_64":
        with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            fma = any(line.startswith("flags") and " fma " in line for line in file)
    return "-drupe-table -DDRUPE_FMA" if fma else "-drupe-table"


def _program(variant, queue, more=""):
    """The variant's program by one of the tiers, or None where that is not there. What the quick one cannot take is
    None, too: the other one can, or says why not."""
    import drupe

    try:
        return drupe.Program(variant.text.text, queue=queue, language="c", options=_options() + more)
    except drupe.UnsupportedError:
        return None
    except drupe.BuildError:
        if more:
            return None
        raise


def _take(variant, program, tier):
    variant.program, variant.kernel, variant.tier = program, program[variant.text.name], tier


def _better(kernel, variant, queue):
    """The better tier takes the quick one's place; where it fails, the quick one stays."""
    import drupe

    try:
        with _turn:
            program = _program(variant, queue)
    except drupe.DeviceError as error:
        variant.problem = error
        return
    if program is None:
        variant.problem = "there is no C compiler"
        return
    with kernel._lock:
        before = variant.kernel
        _take(variant, program, "best")
        kernel._launcher.replace(before, variant.kernel)


def _forked():
    """The child has none of the threads, and one of them may have had its turn."""
    global _turn
    _turn = threading.Lock()


os.register_at_fork(after_in_child=_forked)
