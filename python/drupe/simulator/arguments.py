"""The arguments of a simulated kernel: arrays of devices are copied to the host before it runs, and back behind it."""
import sys

from drupe.kernel_api.memory import LocalAccessor


def replaced(value, convert, name):
    """A value in which convert(part, name) stands for each part of its tuples; named tuples keep their class."""
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", None)
        names = ["%s.%s" % (name, one) for one in fields] if fields else \
            ["%s[%d]" % (name, number) for number in range(len(value))]
        parts = [replaced(part, convert, one) for part, one in zip(value, names)]
        return type(value)(*parts) if fields else tuple(parts)
    return convert(value, name)


def _refused(value, name):
    if isinstance(value, (list, dict, set, bytearray)):
        return "%s is a %s, which no kernel takes: pass an array or a tuple" % (name, type(value).__name__)
    return None


class Arguments:
    """What a kernel gets for the caller's arguments. `names` are those of its parameters."""

    def __init__(self, args, names, grouped):
        self._engine = sys.modules.get("drupe._engine")  # without it there is no array of a device
        self._devices, self._locals, self._grouped = {}, False, grouped
        for one, name in zip(args, names):
            replaced(one, self._look, name)
        self._hosts = _copies([array for array, _ in self._devices.values()]) if self._devices else {}
        self.values = tuple(replaced(one, self._on_host, name) for one, name in zip(args, names))
        self.names = names

    def _look(self, value, name):
        problem = _refused(value, name)
        if problem:
            raise TypeError(problem)
        if isinstance(value, LocalAccessor):
            self._locals = True
            if not self._grouped:
                raise TypeError("%s is a LocalAccessor, the memory of a work-group, and the kernel is launched over a "
                                "Range: launch it over an NdRange(global_size, local_size)" % name)
        elif self._engine is not None and isinstance(value, self._engine.Array):
            self._devices[id(value)] = value, name
        return value

    def _on_host(self, value, name):
        return self._hosts.get(id(value), value)

    def watched(self, wrap):
        """Have wrap(array, name) stand for the arrays."""
        import numpy

        def convert(value, name):
            return wrap(value, name) if isinstance(value, numpy.ndarray) else value
        self.values = tuple(replaced(one, convert, name) for one, name in zip(self.values, self.names))

    def of_group(self, make):
        """The arguments of one group, where make(shape, dtype, name) gives its local memory."""
        if not self._locals:
            return self.values

        def convert(value, name):
            return make(value.shape, value.dtype, name) if isinstance(value, LocalAccessor) else value
        return tuple(replaced(one, convert, name) for one, name in zip(self.values, self.names))

    def before(self):
        """Keep what device arrays are now, so that back() copies only what changed."""
        self._before = {key: host.tobytes() for key, host in self._hosts.items()}

    def back(self):
        """Copy what the kernel has written to the devices, on each array's own queue."""
        for key, (array, _) in self._devices.items():
            host = self._hosts[key]
            if host.tobytes() != self._before[key]:
                array[...] = host


class _Place:
    """Where an array of a device lies: addresses from `low` to before `high`."""

    def __init__(self, array):
        self.array = array
        self.pointer = array._pointer
        self.itemsize = array.itemsize
        steps = array.__sycl_usm_array_interface__["strides"] or _packed(array)
        self.strides = [step * self.itemsize for step in steps]
        reach = [(n - 1) * step for n, step in zip(array.shape, self.strides)]
        self.low = self.pointer + sum(step for step in reach if step < 0)
        self.high = self.pointer + sum(step for step in reach if step > 0) + self.itemsize


def _packed(array):
    strides, step = [], 1
    for n in reversed(array.shape):
        strides.insert(0, step)
        step *= n
    return strides


def _copies(arrays):
    """id of an array of a device → its copy. Arrays that share memory have copies that share memory."""
    import numpy

    copies, places = {}, []
    for array in arrays:
        if array.size == 0:
            copies[id(array)] = numpy.array(array.asnumpy())
        else:
            places.append(_Place(array))
    places.sort(key=lambda place: (place.array.device.filter_string, place.low))
    while places:
        cluster = [places.pop(0)]
        high = cluster[0].high
        while places and places[0].low < high and places[0].array.device == cluster[0].array.device:
            cluster.append(places.pop(0))
            high = max(high, cluster[-1].high)
        if len(cluster) == 1:
            copies[id(cluster[0].array)] = numpy.array(cluster[0].array.asnumpy())
            continue
        memory = numpy.zeros(high - cluster[0].low, numpy.uint8)
        for place in cluster:
            host = numpy.ndarray(place.array.shape, numpy.dtype(place.array.dtype), memory,
                                 place.pointer - cluster[0].low, place.strides)
            host[...] = place.array.asnumpy()
            copies[id(place.array)] = host
    return copies
