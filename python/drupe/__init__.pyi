"""Devices from Python. Made by tools/stubs.py; do not edit."""
from collections.abc import Sequence
from typing import Any

from drupe import array as array
from drupe import compat as compat
from drupe import ext as ext
from drupe import hosted as hosted
from drupe import kernel_api as kernel_api
from drupe import memory as memory
from drupe import native as native
from drupe import program as program
from drupe import simulator as simulator
from drupe import utils as utils
from drupe._engine import BuildError as BuildError
from drupe._engine import BusyError as BusyError
from drupe._engine import CancelledError as CancelledError
from drupe._engine import CheckError as CheckError
from drupe._engine import Context as Context
from drupe._engine import DependencyError as DependencyError
from drupe._engine import Device as Device
from drupe._engine import DeviceError as DeviceError
from drupe._engine import DeviceLostError as DeviceLostError
from drupe._engine import DeviceMemoryError as DeviceMemoryError
from drupe._engine import DeviceNotFoundError as DeviceNotFoundError
from drupe._engine import DriverUnavailableError as DriverUnavailableError
from drupe._engine import Event as Event
from drupe._engine import EventTimes as EventTimes
from drupe._engine import ExecutionPlacementError as ExecutionPlacementError
from drupe._engine import HostTaskError as HostTaskError
from drupe._engine import InternalError as InternalError
from drupe._engine import InvalidArgumentError as InvalidArgumentError
from drupe._engine import Kernel as Kernel
from drupe._engine import LinAlgError as LinAlgError
from drupe._engine import LocalMemory as LocalMemory
from drupe._engine import NdRange as NdRange
from drupe._engine import OutOfRangeError as OutOfRangeError
from drupe._engine import Program as Program
from drupe._engine import Queue as Queue
from drupe._engine import Range as Range
from drupe._engine import UnsupportedError as UnsupportedError
from drupe._engine import WaitTimeoutError as WaitTimeoutError
from drupe._engine import contain_faults as contain_faults
from drupe._engine import devices as devices
from drupe._engine import trace as trace
from drupe.raw import ElementwiseKernel as ElementwiseKernel
from drupe.timer import HostDeviceDuration as HostDeviceDuration
from drupe.compiler.messages import KernelError as KernelError
from drupe.platforms import Platform as Platform
from drupe.raw import RawKernel as RawKernel
from drupe.raw import RawModule as RawModule
from drupe.raw import ReductionKernel as ReductionKernel
from drupe.timer import Timer as Timer
from drupe.enums import backend_type as backend_type
from drupe.compiler.launch import call_kernel as call_kernel
from drupe.compiler.launch import call_kernel_async as call_kernel_async
from drupe.checking import checked as checked
from drupe.choice import device as device
from drupe.compiler.launch import device_func as device_func
from drupe.enums import device_type as device_type
from drupe.enums import event_status_type as event_status_type
from drupe.enums import fp_config as fp_config
from drupe.array._fusing import fuse as fuse
from drupe.choice import get_composite_devices as get_composite_devices
from drupe.choice import get_device_cached_queue as get_device_cached_queue
from drupe.choice import get_devices as get_devices
from drupe.choice import get_num_devices as get_num_devices
from drupe.platforms import get_platforms as get_platforms
from drupe.enums import global_mem_cache_type as global_mem_cache_type
from drupe.choice import has_accelerator_devices as has_accelerator_devices
from drupe.choice import has_cpu_devices as has_cpu_devices
from drupe.choice import has_gpu_devices as has_gpu_devices
from drupe.compiler.launch import kernel as kernel
from drupe.enums import local_mem_type as local_mem_type
from drupe.platforms import lsplatform as lsplatform
from drupe.enums import memory_order as memory_order
from drupe.enums import memory_scope as memory_scope
from drupe.offloading.function import offload as offload
from drupe.enums import partition_affinity_domain as partition_affinity_domain
from drupe.enums import partition_property as partition_property
from drupe.offloading.function import prange as prange
from drupe._progress import progress as progress
from drupe.choice import select_accelerator_device as select_accelerator_device
from drupe.choice import select_cpu_device as select_cpu_device
from drupe.choice import select_default_device as select_default_device
from drupe.choice import select_device_with_aspects as select_device_with_aspects
from drupe.choice import select_gpu_device as select_gpu_device
from drupe.offloading.vectorize import vectorize as vectorize
from drupe._engine import Context as SyclContext
from drupe._engine import Device as SyclDevice
from drupe._engine import Event as SyclEvent
from drupe._engine import Kernel as SyclKernel
from drupe.platforms import Platform as SyclPlatform
from drupe._engine import Queue as SyclQueue
from drupe.timer import Timer as SyclTimer
from drupe._engine import DeviceLike

__version__: str
__all__: list[str]

def get_include() -> str: ...
def load_ipython_extension(shell: Any) -> None: ...
def queue(device: DeviceLike = None) -> Queue: ...
def synchronize(device: DeviceLike = None) -> None: ...
def wait_for(events: Event | Sequence[Event], timeout: float | None = None) -> None: ...
