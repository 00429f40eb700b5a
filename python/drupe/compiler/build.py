"""From a function and types to a drupe.Kernel: through the passes, or from what an earlier process left on disk."""
import threading

from drupe.compiler import kernels, launch, text, tree
from drupe.compiler.messages import KernelError

ROUNDS = 500  # what a loop counts for whose length is not known
_GRAIN = 20_000  # operations that are worth a chunk of the host's work-items
_PATIENT = 20_000_000  # operations above which a launch waits for the better tier


def compile(kernel, kinds, dims, grouped, device, checked=False):
    """A launch.Variant whose kernel is not built yet. Raises KernelError."""
    dialect = launch.dialect_of(device)
    if dialect is None:
        raise KernelError("DK018", "%s compiles no kernels." % device.name,
                          "Use another device; `python -m drupe doctor` tells what is missing.")
    made = kernels.lower(kernel.py_func, kinds, dims=dims, grouped=grouped, fp64=device.has_aspect_fp64,
                         device_name=device.name, checked=checked)
    variant = launch.Variant(made, text.render(made, dialect), device)
    variant.watched, variant.kinds = made.watched, kinds
    variant.cost = sum(cost(stmt) for stmt in made.body)
    variant.grain = kernel.grain or max(1, _GRAIN // max(1, variant.cost))
    variant.form = ("host_" if dialect == "c99" else "") + ("groups" if grouped else "range")
    variant.local = None if grouped else launch.local_for(kernel, device, dims)
    return variant


def cost(node):
    """Operations of a statement, where a loop runs for a fixed number of rounds."""
    total = 1
    for child in tree.children(node):
        total += cost(child)
    if isinstance(node, tree.For):
        ends = [one.value for one in (node.start, node.stop, node.step) if isinstance(one, tree.Const)]
        return total * (max(1, len(range(*ends))) if len(ends) == 3 else ROUNDS)
    return total * (ROUNDS if isinstance(node, tree.While) else 1)


def make(kernel, variant, queue, work):
    """Build the variant's program: on `host` by the quick tier where little is to be done, with the better one behind
    it in the background."""
    import drupe

    if variant.form.startswith("host"):
        _make_on_host(kernel, variant, queue, work)
        return
    variant.program = drupe.Program(variant.text.text, queue=queue)
    variant.kernel, variant.tier = variant.program[variant.text.name], "driver"


def _make_on_host(kernel, variant, queue, work):
    import drupe

    if work < _PATIENT:
        try:
            variant.program = drupe.Program(variant.text.text, queue=queue, language="c",
                                            options="-drupe-table -drupe-quick")
        except (drupe.UnsupportedError, drupe.BuildError):
            pass  # no quick tier here, or it cannot take the text: the other one can, or says why not
        else:
            variant.kernel, variant.tier = variant.program[variant.text.name], "quick"
            threading.Thread(target=_better, args=(kernel, variant, queue), name="drupe-kernel-build",
                             daemon=True).start()
            return
    _best(variant, queue)


def _best(variant, queue):
    import drupe

    program = drupe.Program(variant.text.text, queue=queue, language="c", options="-drupe-table")
    variant.program, variant.kernel, variant.tier = program, program[variant.text.name], "best"


def _better(kernel, variant, queue):
    """The better tier takes the quick one's place; where it fails, the quick one stays."""
    import drupe

    before = variant.kernel
    try:
        _best(variant, queue)
    except drupe.DeviceError as error:
        variant.problem = error
    else:
        kernel._launcher.replace(before, variant.kernel)
