"""numba.cuda as programs know it: kernels of threads and blocks, compiled by Drupe for any device.

    from numba import cuda

    @cuda.jit
    def add(a, b, c):
        i = cuda.grid(1)
        if i < c.size:
            c[i] = a[i] + b[i]

    add[blocks, threads](a, b, c)

It is found where there is no Numba, or one without CUDA; drupe.compat.numba_cuda() puts it in the place of Numba's own.
With NUMBA_ENABLE_CUDASIM=1 kernels run in Drupe's simulator. docs/compat-numba.md says what differs.
"""
import sys
import types

from drupe.compat import _numbas, absent

_WRITTEN = {name: "compat.numba_cuda." + module for module, names in {
    "_arrays": ("DeviceNDArray", "In", "InOut", "Out", "as_cuda_array", "device_array", "device_array_like",
                "is_cuda_array", "managed_array", "mapped", "mapped_array", "mapped_array_like", "pinned",
                "pinned_array", "pinned_array_like", "to_device"),
    "_devices": ("Event", "Stream", "close", "cuda_error", "current_context", "default_stream", "defer_cleanup",
                 "detect", "event", "event_elapsed_time", "external_stream", "get_current_device", "gpus",
                 "is_available", "is_supported_version", "legacy_default_stream", "list_devices",
                 "per_thread_default_stream", "select_device", "stream", "synchronize"),
    "_dispatch": ("jit",),
    "_written": ("atomic", "blockDim", "blockIdx", "brev", "cbrt", "clz", "const", "ffs", "fma", "grid", "gridDim",
                 "gridsize", "local", "popc", "selp", "shared", "syncthreads", "syncthreads_and", "syncthreads_count",
                 "syncthreads_or", "syncwarp", "threadIdx", "threadfence", "threadfence_block", "threadfence_system"),
}.items() for name in names}
warpsize = 32
__all__ = sorted({*_WRITTEN, "random", "warpsize"})

_WARPS = ("Devices differ in their warps: share by shared.array() and syncthreads(), or use the sub-groups of "
          "drupe.kernel_api.")
_missing = absent(__name__, {
    **dict.fromkeys(("activemask", "all_sync", "any_sync", "ballot_sync", "eq_sync", "lanemask_lt", "match_all_sync",
                     "match_any_sync", "shfl_down_sync", "shfl_sync", "shfl_up_sync", "shfl_xor_sync",
                     "vote_sync_intrinsic", "shfl_sync_intrinsic"), _WARPS),
    "laneid": "Write cuda.threadIdx.x % 32.",
    "nanosleep": "Leave it out.",
    "cg": "Write syncthreads() for a block; for the whole grid end the kernel, and launch another one.",
    "libdevice": "Write the function of the module math.",
    "libdevicefuncs": "Write the function of the module math.",
    "fp16": "Write numpy.float16: float16 is computed in float32 and rounded by each operation.",
    "reduce": "Write drupe.array.sum() and its like, or drupe.ReductionKernel.",
    "Reduce": "Write drupe.array.sum() and its like, or drupe.ReductionKernel.",
    "declare_device": "Functions in C are for drupe.program, in kernels that are written in C.",
    **dict.fromkeys(("compile", "compile_all", "compile_ptx", "compile_ptx_for_current_device",
                     "compile_for_current_device"),
                    "kernel.inspect() shows the text that a kernel has become."),
    **dict.fromkeys(("cudadrv", "cudaimpl", "runtime", "driver", "MemoryPointer", "MappedMemory", "PinnedMemory",
                     "set_memory_manager", "BaseCUDAMemoryManager", "HostOnlyCUDAMemoryManager",
                     "GetIpcHandleMixin", "MemoryInfo", "open_ipc_array", "IpcHandle"),
                    "It belongs to NVIDIA's driver; memory of Drupe is drupe.memory."),
    **dict.fromkeys(("profile_start", "profile_stop", "profiling"), "Write %timeline, which shows what runs when."),
    "as_external_kernel": "Kernels in C are for drupe.program.",
    "cudart": "It belongs to NVIDIA's libraries.",
    "vectorize": "Write @drupe.vectorize.",
})
__getattr__ = _numbas.lazy(globals(), _WRITTEN, _missing, ("random",))


def __dir__():
    return __all__


class _Module(types.ModuleType):
    """This module, which drupe.compat.numba_cuda() calls."""

    def __call__(self, install=True):
        """Put this module in the place of numba.cuda, also where Numba has a part of its own for CUDA; give the module.
        install=False takes it away again. Functions that were decorated before stay what they were."""
        from drupe.compat.numba_cuda import _install

        return _install.install(install)


sys.modules[__name__].__class__ = _Module
