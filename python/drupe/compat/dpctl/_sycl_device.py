"""SyclDevice."""
from drupe import _device, _engine
from drupe.compat.dpctl import _selection
from drupe.compat.dpctl._errors import SyclDeviceCreationError, SyclSubDeviceCreationError, raises
from drupe.compat.dpctl._wrapping import Wrapped, delegate, refuse_capsule

__all__ = ["SyclDevice", "SyclDeviceCreationError", "SyclSubDeviceCreationError"]

_PROPERTIES = """name vendor vendor_id driver_version version backend_version backend device_type is_cpu is_gpu
is_accelerator is_available max_work_item_dims max_work_item_sizes max_work_item_sizes1d
max_work_item_sizes2d max_work_item_sizes3d max_compute_units max_work_group_size max_num_sub_groups
sub_group_sizes sub_group_independent_forward_progress global_mem_size local_mem_size local_mem_type
max_mem_alloc_size global_mem_cache_type global_mem_cache_size global_mem_cache_line_size
mem_base_addr_align address_bits max_parameter_size error_correction_support
preferred_vector_width_char preferred_vector_width_short preferred_vector_width_int
preferred_vector_width_long preferred_vector_width_float preferred_vector_width_double
preferred_vector_width_half native_vector_width_char native_vector_width_short
native_vector_width_int native_vector_width_long native_vector_width_float
native_vector_width_double native_vector_width_half image_2d_max_width image_2d_max_height
image_3d_max_width image_3d_max_height image_3d_max_depth image_max_buffer_size max_read_image_args
max_write_image_args max_samplers max_clock_frequency profiling_timer_resolution half_fp_config
single_fp_config double_fp_config atomic_memory_order_capabilities atomic_fence_order_capabilities
atomic_memory_scope_capabilities atomic_fence_scope_capabilities partition_max_sub_devices
partition_properties partition_affinity_domains partition_type_property
partition_type_affinity_domain"""
_ASPECTS = " ".join(name for name in dir(_engine.Device) if name.startswith("has_aspect_"))
_PARTITIONS = ("not_applicable", "numa", "L4_cache", "L3_cache", "L2_cache", "L1_cache", "next_partitionable")


class SyclDevice(Wrapped):
    """A device: the best one, that of a filter such as "opencl:cpu:0", or that of another SyclDevice."""

    def __init__(self, arg=None):
        if arg is None:
            self._drupe = _selection.default()
        elif isinstance(arg, str):
            self._drupe = _selection.select(arg)
        elif isinstance(arg, SyclDevice):
            self._drupe = arg._drupe
        elif isinstance(arg, _engine.Device):
            self._drupe = arg
        else:
            refuse_capsule(arg, SyclDeviceCreationError)
            raise ValueError(f"a SyclDevice is made of a filter or of another SyclDevice, not of {type(arg).__name__}")

    # --- What it is ---

    @property
    def default_selector_score(self):
        """Devices with a higher one come first."""
        return _selection.score(self._drupe)

    @property
    def filter_string(self):
        """A filter that selects this device. TypeError for a part of a device, which has none."""
        if self._drupe.parent_device is not None:
            raise TypeError("a sub-device has no filter")
        return self._drupe.filter_string

    @property
    def sycl_platform(self):
        """The SyclPlatform that offers it."""
        from drupe.compat.dpctl._sycl_platform import SyclPlatform

        return SyclPlatform._of(self._drupe.platform)

    @property
    def parent_device(self):
        """The device this is a part of, or None."""
        parent = self._drupe.parent_device
        return None if parent is None else SyclDevice._of(parent)

    @property
    def composite_device(self):
        """The device this is a component of: None."""
        return None

    def get_filter_string(self, include_backend=True, include_device_type=True):
        """A filter that selects this device, without the parts not wanted."""
        words, found = [], _selection.devices()
        if self._drupe.parent_device is not None:
            raise TypeError("a sub-device has no filter")
        if include_backend:
            words.append(str(self._drupe.backend))
            found = [one for one in found if one.backend == self._drupe.backend]
        if include_device_type:
            words.append(str(self._drupe.device_type))
            found = [one for one in found if one.device_type == self._drupe.device_type]
        return ":".join([*words, str(found.index(self._drupe))])

    def get_unpartitioned_parent_device(self):
        """The whole device that this one is a part of."""
        return SyclDevice._of(self._drupe.get_unpartitioned_parent_device())

    def get_device_id(self):
        """The number of the whole device among all of them."""
        return _selection.devices().index(self._drupe.get_unpartitioned_parent_device())

    def can_compile(self, language):
        """Whether programs may be written in "opencl" ("ocl"), "spirv" ("spv") or "sycl"."""
        return self._drupe.can_compile(language)

    def print_device_info(self):
        """Print the properties that matter most."""
        _device.print_device_info(self._drupe)

    def __repr__(self):
        return f"<dpctl.SyclDevice [{self.backend}, {self.device_type}, {self.name}] at {id(self):#x}>"

    # --- Its parts and its peers ---

    def create_sub_devices(self, *, partition):
        """Parts of it: a number of compute units each, a sequence of such numbers, or what the parts share."""
        if isinstance(partition, str) and partition not in _PARTITIONS:
            raise ValueError(f"partition is a number, a sequence of numbers, or one of {', '.join(_PARTITIONS)}, "
                             f"not {partition!r}")
        with raises(SyclSubDeviceCreationError):
            return [SyclDevice._of(one) for one in self._drupe.create_sub_devices(partition)]

    def component_devices(self):
        """The devices that a composite one is made of."""
        return []

    def _peer(self, peer):
        if not isinstance(peer, SyclDevice):
            raise TypeError(f"a peer is a SyclDevice, not {type(peer).__name__}")
        return peer._drupe

    def can_access_peer(self, peer, value="access_supported"):
        """Whether kernels of this device may use ("access_supported") or combine ("atomics_supported") memory of it."""
        return self._drupe.can_access_peer(self._peer(peer), value)

    def enable_peer_access(self, peer):
        """Let kernels use device memory of `peer`."""
        self._drupe.enable_peer_access(self._peer(peer))

    def disable_peer_access(self, peer):
        """Take that back."""
        self._drupe.disable_peer_access(self._peer(peer))


delegate(SyclDevice, _PROPERTIES + " " + _ASPECTS, _engine.Device)
