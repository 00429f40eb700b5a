"""Programs and kernels."""
from drupe._engine import BuildError, Kernel, LocalMemory, Program

__all__ = ["BuildError", "Kernel", "LocalMemory", "Program", "build"]


def build(source, device=None, *, queue=None, context=None, options="", language="opencl"):
    """Build a Program; the same as calling Program(...)."""
    return Program(source, device, queue=queue, context=context, options=options, language=language)
