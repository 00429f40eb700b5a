"""OffloadStream: drupe.native.Stream with pyMIC's rules for arguments."""
import numpy

from drupe.compat.pymic import _trace
from drupe.compat.pymic.offload_error import OffloadError
from drupe.native._stream import DevicePointer, Stream, _pointer


class OffloadStream(Stream):
    """A stream of a device."""

    def __init__(self, device=None, queue=None):
        if device is None:
            from drupe.compat.pymic.offload_device import devices

            device = devices[0]
        super().__init__(queue=device.queue if queue is None else queue)
        self._device = device

    def get_device(self):
        """The device that the stream belongs to."""
        return self._device

    device = property(get_device)

    def _arrays(self):
        from drupe.compat.pymic.offload_array import OffloadArray

        return OffloadArray

    def _function(self, kernel):
        if isinstance(kernel, str):
            kernel = self._device.find_kernel(kernel)
        if not (isinstance(kernel, tuple) and len(kernel) == 4):
            raise TypeError("invoke() takes a kernel, such as library.dgemm_kernel, not %s" % type(kernel).__name__)
        if kernel[2] != self._device:
            raise OffloadError("the kernel %s is of %s, and the stream of %s" % (kernel[0], kernel[2], self._device))
        return kernel[1]

    def invoke(self, kernel, *arguments):
        """Queue a kernel. Offload arrays stay where they are; NumPy arrays are brought there and back, and the call
        has ended on return; numbers go by address, and None is NULL."""
        function = self._function(kernel)
        _trace.debug(1, "invoking %s with %d arguments on %s", function.name, len(arguments), self._device)
        copied = []  # (the copy, the array)
        arguments = list(arguments)
        for index, one in enumerate(arguments):
            if isinstance(one, numpy.ndarray) and not (one.flags.forc and one.flags.writeable):
                arguments[index] = numpy.array(one, order="C")
                copied.append((arguments[index], one))
        event = function(*arguments, queue=self.queue)
        for copy, one in copied:
            if one.flags.writeable:
                one[...] = copy
        return event

    def transfer_host2device(self, host_ptr, device_ptr, nbytes, offset_host=0, offset_device=0):
        """Queue a copy of bytes from an address of the host, or from a NumPy array."""
        _check(host_ptr, nbytes, device_ptr)
        super().transfer_host2device(host_ptr, device_ptr, nbytes, offset_host, offset_device)

    def transfer_device2host(self, device_ptr, host_ptr, nbytes, offset_device=0, offset_host=0):
        """Queue a copy of bytes to an address of the host, or to a NumPy array."""
        _check(host_ptr, nbytes, device_ptr)
        super().transfer_device2host(device_ptr, host_ptr, nbytes, offset_device, offset_host)

    def transfer_device2device(self, device_ptr_src, device_ptr_dst, nbytes, offset_device_src=0, offset_device_dst=0):
        """Queue a copy of bytes of the device."""
        _check(0, nbytes, device_ptr_src, device_ptr_dst)
        super().transfer_device2device(device_ptr_src, device_ptr_dst, nbytes, offset_device_src, offset_device_dst)

    def deallocate_device_memory(self, device_ptr):
        """Give memory of the device back; work that uses it goes on."""
        _check(0, 1, device_ptr)
        _pointer(device_ptr)._bytes = None

    def __eq__(self, other):
        return isinstance(other, OffloadStream) and self.queue == other.queue

    def __hash__(self):
        return hash(self.queue)

    def __repr__(self):
        return "OffloadStream(%d) for %r" % (self.queue.number, self._device)


def _check(host, nbytes, *pointers):
    for one in pointers:
        if not isinstance(one, DevicePointer):
            raise ValueError("device memory is what allocate_device_memory() gave, not %s" % type(one).__name__)
    if host is None:
        raise ValueError("the host memory is None")
    if nbytes <= 0:
        raise ValueError("a transfer has at least 1 byte, not %s" % nbytes)


for _name in ("sync", "invoke", "bind", "copy", "empty", "empty_like", "zeros", "zeros_like", "ones", "ones_like",
              "bcast", "bcast_like", "allocate_device_memory", "deallocate_device_memory", "transfer_host2device",
              "transfer_device2host", "transfer_device2device"):
    setattr(OffloadStream, _name, _trace.traced(getattr(OffloadStream, _name)))
OffloadStream.invoke_kernel = OffloadStream.invoke
