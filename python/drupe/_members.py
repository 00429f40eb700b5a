"""Members of the engine's classes that need no C: a class of drupe._engine takes those of the class that has its name
here. Modules behind them are loaded with the first call, since every program that uses the engine loads this one."""
import operator as _operator

from drupe._array_methods import ArrayMethods

PROFILING, OUT_OF_ORDER, LOW, HIGH = 1, 2, 4, 8  # drupe_queue_flags of drupe/queue.h


class _Shown:
    def _repr_mimebundle_(self, include=None, exclude=None):
        """What a notebook shows. Waits for nothing."""
        from drupe import _repr

        return _repr.mimebundle(self, include, exclude)


def _attribute(path, doc):
    """A property that is an attribute of an attribute: "queue.device"."""
    return property(_operator.attrgetter(path), doc=doc)


def _platform(doc):
    def platform(self):
        from drupe.platforms import Platform

        return Platform(getattr(self, "devices", (self,))[0])

    return property(platform, doc=doc)


class Array(_Shown, ArrayMethods):
    __array_priority__ = 1000.0  # NumPy asks the operand with the highest
    sycl_queue = _attribute("queue", "The same as `queue`, as dpctl calls it.\n\n"
                            ">>> x = zeros(2)\n>>> x.sycl_queue == x.queue\nTrue")
    sycl_device = _attribute("device", "The same as `device`, as dpctl calls it.\n\n"
                             ">>> x = zeros(2)\n>>> x.sycl_device == x.device\nTrue")
    sycl_context = _attribute("queue.context", "The Context of its queue, as dpctl calls it.\n\n"
                              ">>> x = zeros(2)\n>>> x.sycl_context == x.queue.context\nTrue")

    def __array_ufunc__(self, ufunc, method, /, *inputs, **options):
        """NumPy's functions of elements, computed on the device by the function of drupe.array that does the same.
        numpy.add.reduce() and the like are reductions."""
        from drupe import _numpy

        return _numpy.universal(self, ufunc, method, inputs, options)

    def __array_function__(self, function, types, args, options):
        """NumPy's other functions, computed on the device by the function of drupe.array of that name."""
        from drupe import _numpy

        return _numpy.function(function, args, options)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """The elements as a capsule of DLPack, for from_dlpack() of other libraries: without a copy where the host can
        address them. Waits for the work on the array. BufferError where the elements cannot be had in that way."""
        from drupe.array import _exchange

        return _exchange.dlpack(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self):
        """Where DLPack finds the elements: (1, 0) is host memory, (14, n) is the nth OpenCL device, of
        whose memory no other library knows."""
        from drupe.array import _exchange

        return _exchange.dlpack_device(self)

    def __array_namespace__(self, /, *, api_version=None):
        """The module drupe.array, for any version of the array API up to its own."""
        from drupe import array

        if api_version is not None and not "2021.12" <= str(api_version) <= array.__array_api_version__:
            raise ValueError(f"drupe.array follows the array API {array.__array_api_version__} and what came before, "
                             f"not {api_version!r}")
        return array

    def __format__(self, specification):
        """Without dimensions it is formatted as its number is; str() formats every array."""
        if self.ndim and specification:
            raise TypeError(f"only an array without dimensions takes a format, and this one has {self.ndim}: take one "
                            "element, or convert it with x.asnumpy()")
        return format(str(self) if self.ndim else self.item(), specification)

    def __reduce_ex__(self, protocol, /):
        """For pickle: the elements travel with it, from protocol 5 on outside of the pickle where its reader wants
        that, and come back on the same device where there is one, else on the default device. Waits."""
        from drupe.array import _exchange

        return _exchange.reduce(self, protocol)

    def __reduce__(self):
        """The same, for protocol 2."""
        return self.__reduce_ex__(2)

    def _repr_pretty_(self, printer, cycle):
        """As an element of what IPython prints."""
        from drupe import _repr

        printer.text(_repr.brief(self, printer))

    @property
    def __sycl_usm_array_interface__(self):
        """The description other libraries read."""
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.usm_data._pointer, False),
                "strides": self.strides, "offset": self._offset, "version": 1, "syclobj": self.queue}


class DType:
    @property
    def dtype(self):
        """The same type in NumPy, which is imported.

        >>> float32.dtype
        dtype('float32')
        """
        import numpy

        return numpy.dtype(self.name)

    def __reduce__(self):
        return type(self), (self.name,)


class View:
    def data(self):
        """What json() says, as a dict."""
        import json

        return json.loads(self.json())


class Device(_Shown):
    __name__ = "Device"
    platform = _platform("The drupe.Platform that offers it.")
    sycl_platform = _platform("The same.")
    sycl_context = _attribute("queue.context", "The context of its queue.")
    sycl_device = property(lambda self: self, doc="The device itself: what a device of dpctl's arrays has.")
    composite_device = property(lambda self: None, doc="The device this is a component of, or None.")

    def print_device_info(self):
        """Print the properties that matter most."""
        from drupe import _device

        _device.print_device_info(self)

    def component_devices(self):
        """The devices that a composite one is made of."""
        return ()

    def can_access_peer(self, peer, value="access_supported"):
        """Whether kernels of this device may use ("access_supported") or combine ("atomics_supported") device memory
        of `peer`."""
        from drupe import _device

        return _device.can_access_peer(self, peer, value)

    def enable_peer_access(self, peer):
        """Let kernels use device memory of `peer`."""
        from drupe import _device

        _device.need_peer(self, peer)

    def disable_peer_access(self, peer):
        """Take that back."""
        from drupe import _device

        _device.need_peer(self, peer)

    def get_filter_string(self, include_backend=True, include_device_type=True):
        """A filter that selects this device, without the parts not wanted."""
        from drupe import _device

        return _device.get_filter_string(self, include_backend, include_device_type)

    def get_unpartitioned_parent_device(self):
        """The whole device that this one is a part of."""
        while self.parent_device is not None:
            self = self.parent_device
        return self

    def get_device_id(self):
        """The number of the whole device among all of them."""
        from drupe import _device

        return _device.get_device_id(self)

    def can_compile(self, language):
        """Whether programs may be written in "opencl" ("ocl"), "spirv" ("spv") or "sycl"."""
        from drupe import _device

        return _device.can_compile(self, language)

    def info(self):
        """All properties as a dict; None where one means nothing on this device."""
        from drupe import _device

        return _device.info(self)


def _common(name, doc):
    """What all devices of a context can do; None when one of them does not tell."""
    def common(self):
        first, *others = [getattr(device, name) for device in self.devices]
        if first is None or None in others:
            return None
        return tuple([word for word in first if all(word in one for one in others)])

    return property(common, doc=doc)


class Context(_Shown):
    __name__ = "Context"
    platform = _platform("The drupe.Platform of its devices.")
    sycl_platform = _platform("The same.")
    atomic_memory_order_capabilities = _common("atomic_memory_order_capabilities",
                                              "Memory orders of atomic operations.")
    atomic_fence_order_capabilities = _common("atomic_fence_order_capabilities", "Memory orders of fences.")
    atomic_memory_scope_capabilities = _common("atomic_memory_scope_capabilities",
                                              "Memory scopes of atomic operations.")
    atomic_fence_scope_capabilities = _common("atomic_fence_scope_capabilities", "Memory scopes of fences.")

    def get_devices(self):
        """The devices of the context."""
        return self.devices


class Queue(_Shown):
    backend = property(lambda self: str(self.device.backend), doc='"host" or "opencl".')
    is_in_order = property(lambda self: not self._flags & OUT_OF_ORDER,
                           doc="Whether work starts in the order of its submission.")
    has_enable_profiling = property(lambda self: bool(self._flags & PROFILING), doc="Whether its events carry times.")
    priority = property(lambda self: "low" if self._flags & LOW else "high" if self._flags & HIGH else "normal",
                        doc='"low", "normal" or "high": a hint.')
    sycl_device = _attribute("device", "The same as `device`.")
    sycl_context = _attribute("context", "The same as `context`.")
    name = _attribute("device.name", "The name of the device.")
    driver_version = _attribute("device.driver_version", "The version of the device's driver.")

    def memcpy(self, dest, src, count=None):
        """Copy `count` bytes and wait until they are there."""
        self.memcpy_async(dest, src, count).wait()

    def memset(self, mem, val, count=0):
        """Set `count` bytes (0: all) to `val`, from 0 to 255, and wait until it is done."""
        self.memset_async(mem, val, count).wait()

    def memset_async(self, mem, val, count=0, dEvents=()):
        """Queue setting `count` bytes (0: all) to `val`, from 0 to 255, and give its Event."""
        return self.fill(mem, _operator.index(val), count or None, dEvents)

    def prefetch(self, mem, count=0, wait_for=()):
        """A hint that `count` bytes (0: all) will be used on the device soon; gives its Event."""
        return self._hint(mem, count, None, wait_for)

    def mem_advise(self, mem, count, advice, wait_for=()):
        """A hint to the driver, in its own numbers, how `count` bytes (0: all) will be
        used; 0 takes earlier advice back. Gives its Event."""
        if advice is None:
            raise TypeError("advice must be an integer, not NoneType")
        return self._hint(mem, count, advice, wait_for)

    def host_task(self, function, args=(), wait_for=(), *, user=None):
        """Call a function when its turn on the queue comes, and give its Event, which
        fails with what the function raises. A Python function runs on the main thread,
        or on one that waits for a device. A function in C (a ctypes function, or a
        PyCapsule of an int (*)(void *)) runs on a thread of the engine, gets the
        address of `user`, and fails unless it returns 0."""
        from drupe import _events

        return _events.host_task(self, function, args, wait_for, user=user)

    def get_sycl_device(self):
        """The same as `device`."""
        return self.device

    def get_sycl_context(self):
        """The same as `context`."""
        return self.context

    def print_device_info(self):
        """Print what is most important of the device."""
        self.device.print_device_info()


class Event(_Shown):
    backend = property(lambda self: None if self.queue is None else self.queue.backend,
                       doc='"host" or "opencl"; None for an event without a queue.')
    profiling_info_submit = _attribute("times.submitted", "When it was handed to the device, in ns.")
    profiling_info_start = _attribute("times.started", "When the device began, in ns.")
    profiling_info_end = _attribute("times.ended", "When the device was done, in ns.")

    @property
    def execution_status(self):
        """A member of drupe.enums.event_status_type."""
        from drupe import enums

        return enums.event_status_type[{"queued": "submitted", "failed": "complete"}.get(self.status, self.status)]

    @staticmethod
    def wait_for(events, timeout=None):
        """Wait for one event or for all of a sequence."""
        from drupe import _events

        _events.wait_for(events, timeout)

    @staticmethod
    def from_future(future):
        """An event that ends when a future of concurrent.futures or asyncio does, for work to wait for."""
        from drupe import _events

        return _events.from_future(future)

    def add_done_callback(self, function, *, context=None):
        """Call function(event) when the work is done or has failed: on a thread of its own,
        `drupe-callbacks`, which holds no lock of the program and calls one function
        after the other, in the order in which their events were seen to be over and, for
        one event, in which they were added. Output goes to the cell that added it, what
        it raises is shown there. For code that must run in an event loop, await the
        event instead."""
        from drupe import _events

        _events.add_done_callback(self, function, context=context)

    def _ipython_display_(self):
        from drupe import _repr

        _repr.display_event(self)


class EventTimes(_Shown):
    pass


class _Memory(_Shown):
    device = _attribute("queue.device", "The device of that queue.")
    context = _attribute("queue.context", "The context of that queue.")

    def get_usm_type(self, context=None):
        """"device", "shared" or "host"; "unknown" to another Context or a Queue of one."""
        from drupe import _engine

        if isinstance(context, _engine.Queue):
            context = context.context
        if context is not None and not isinstance(context, _engine.Context):
            raise TypeError(f"a drupe.Context or drupe.Queue is expected, not {type(context).__name__}")
        return self.usm_type if context in (None, self.context) else "unknown"

    def get_usm_type_enum(self, context=None):
        """The same as a number: 1 device, 2 shared, 3 host, 0 unknown."""
        return {"device": 1, "shared": 2, "host": 3}.get(self.get_usm_type(context), 0)

    @property
    def __sycl_usm_array_interface__(self):
        """The description other libraries read."""
        return {"shape": (self.nbytes,), "typestr": "|u1", "data": (self._pointer, False), "strides": None, "offset": 0,
                "version": 1, "syclobj": self.queue}

    def __reduce__(self):
        """For pickle: the bytes travel with it, and it comes back on the same device where there is one."""
        from drupe.memory import _restore

        return _restore, (self.usm_type, self.tobytes(), self.device.filter_string)

    def __sizeof__(self):
        """Bytes of the object and its memory."""
        return object.__sizeof__(self) + self.nbytes


class Program(_Shown):
    device = _attribute("queue.device", "The device it was built for.")
    context = _attribute("queue.context", "The context it belongs to.")

    def __dir__(self):
        """The kernels and the attributes."""
        return [*self.kernel_names, *object.__dir__(self)]

    def has_kernel(self, name):
        """Whether the program has a kernel of this name."""
        from drupe import _engine

        try:
            self.get_kernel(name)
        except _engine.DeviceNotFoundError:
            return False
        return True


class Kernel(_Shown):
    @property
    def __signature__(self):  # what inspect asks for, and with it help and completion in front-ends
        from drupe import _repr

        return _repr.call_signature(self)


def signature(parameters):
    """Of an Operation: of objects of foreign types inspect knows a Signature only, which this function is asked for."""
    import inspect

    return inspect.signature(eval("lambda %s: None" % parameters))


MemoryUSMDevice = MemoryUSMShared = MemoryUSMHost = _Memory


class _Empty:
    pass


# Second names of members in C.
_ALIASES = {"Queue": {"copy_async": "copy", "submit_async": "submit", "submit_barrier": "barrier"}}


def of(name, type):
    """The members for the engine's class of that name. Nothing here holds on to the engine, which asks while it is
    loaded, and may be loaded anew when that failed."""
    classes = globals()[name].__mro__[-2::-1] if name in globals() else ()
    members = {key: member for one in classes for key, member in vars(one).items() if key not in vars(_Empty)}
    members.update((key, vars(type)[other]) for key, other in _ALIASES.get(name, {}).items())
    return members
