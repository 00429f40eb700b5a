"""dpctl.program: kernels from OpenCL C and SPIR-V."""
from drupe import _engine
from drupe import program as _program
from drupe.compat import NotProvided
from drupe.compat.dpctl._errors import raises
from drupe.compat.dpctl._sycl_queue import SyclQueue
from drupe.compat.dpctl._wrapping import Wrapped, behind, delegate
from drupe.program import SpecializationConstant

__all__ = ["SpecializationConstant", "SyclKernel", "SyclKernelBundle", "SyclKernelBundleCompilationError",
           "SyclProgram", "SyclProgramCompilationError", "create_kernel_bundle_from_source",
           "create_kernel_bundle_from_spirv", "create_kernel_bundle_from_sycl_source", "create_program_from_source",
           "create_program_from_spirv", "is_sycl_source_compilation_available"]


class SyclKernelBundleCompilationError(Exception):
    """The program was not built; the text has the compiler's messages."""


SyclProgramCompilationError = SyclKernelBundleCompilationError  # its name in 0.21


class _NoAddress(Wrapped):
    def addressof_ref(self):
        """Refused: no SYCL object stands behind it."""
        raise NotProvided(f"the address of a {type(self).__name__} is that of a C++ object of SYCL, which Drupe does "
                          "not have. An extension over drupe/ext.h builds and launches kernels by itself")


class SyclKernel(_NoAddress):
    """A kernel of a program."""

    def get_function_name(self):
        """Its name."""
        return self._drupe.name

    def get_num_args(self):
        """How many arguments it takes."""
        return self._drupe.num_args

    def __repr__(self):
        return f"<dpctl.program.SyclKernel: {self._drupe.name}>"


delegate(SyclKernel, "num_args work_group_size preferred_work_group_size_multiple private_mem_size max_num_sub_groups "
         "max_sub_group_size compile_num_sub_groups compile_sub_group_size", _engine.Kernel)


class SyclKernelBundle(_NoAddress):
    """A program that is built."""

    def get_sycl_kernel(self, kernel_name):
        """The kernel of this name."""
        return SyclKernel._of(self._drupe.get_kernel(kernel_name))

    def has_sycl_kernel(self, kernel_name):
        """Whether there is one."""
        return self._drupe.has_kernel(kernel_name)

    def __repr__(self):
        return f"<dpctl.program.{type(self).__name__}: {', '.join(self._drupe.kernel_names)}>"


SyclProgram = SyclKernelBundle  # its name in 0.21


def _queue_of(q):
    if not isinstance(q, SyclQueue):
        raise TypeError(f"a SyclQueue is expected, not {type(q).__name__}")
    return behind(q)


def create_kernel_bundle_from_source(q, src, copts=""):
    """Build OpenCL C for the device of a queue. The device `host` takes C instead: docs/compat-dpctl.md."""
    queue = _queue_of(q)
    with raises(SyclKernelBundleCompilationError):
        return SyclKernelBundle._of(_program.create_kernel_bundle_from_source(queue, src, copts))


def create_kernel_bundle_from_spirv(q, IL, copts="", specializations=None):
    """Build a SPIR-V module for the device of a queue."""
    queue = _queue_of(q)
    with raises(SyclKernelBundleCompilationError):
        return SyclKernelBundle._of(_program.create_kernel_bundle_from_spirv(queue, bytes(IL), copts, specializations))


create_program_from_source = create_kernel_bundle_from_source  # their names in 0.21
create_program_from_spirv = create_kernel_bundle_from_spirv


def is_sycl_source_compilation_available():
    """False: there is no compiler of SYCL C++ here."""
    return False


def create_kernel_bundle_from_sycl_source(q, source, headers=None, registered_names=None, copts=None):
    """Refused: there is no compiler of SYCL C++ here."""
    raise NotProvided("Drupe does not compile SYCL C++. Write the kernel in OpenCL C, for "
                      "create_kernel_bundle_from_source(), or in Python (drupe.kernel)")
