"""Memory of simulated kernels: what nobody has written, and arrays that tell who reads and writes them."""
import functools
import itertools
import sys

_MARK = 0xCD  # each byte of an integer that nobody has written


def unwritten(shape, dtype):
    """An array whose elements nobody has written: not a number, or for integers bytes of 0xCD."""
    import numpy

    array = numpy.empty(shape, dtype)
    if array.dtype.kind in "fc":
        array.fill(complex(numpy.nan, numpy.nan) if array.dtype.kind == "c" else numpy.nan)
    elif array.dtype.kind == "b":
        array.fill(True)
    else:
        array.reshape(-1).view(numpy.uint8).fill(_MARK)
    return array


def addresses(array):
    """The address of each element, in an array of the same shape."""
    import numpy

    found = numpy.full((), array.__array_interface__["data"][0], numpy.int64)
    for n, step in zip(array.shape, array.strides):
        found = found[..., None] + numpy.arange(n, dtype=numpy.int64) * step
    return found


class Memory:
    """An array of a kernel, its name, and who is told of reads and writes.

    kind: "global", "local" or "private". race: the cells of a data race detector, or None. written: the elements that
    somebody has written, where reads of others are reported, or None."""
    __slots__ = ("name", "kind", "array", "keys", "race", "written", "run")

    def __init__(self, run, array, name, kind, race, written):
        self.run, self.array, self.name, self.kind, self.race, self.written = run, array, name, kind, race, written
        self.keys = addresses(array)

    def watched(self):
        """The array that a kernel is given."""
        return Watched(self, self.array, self.keys)

    def element(self, key):
        """An element as people write it: part[3]."""
        import numpy

        at = numpy.argwhere(self.keys == key)[0]
        return "%s[%s]" % (self.name, ", ".join(map(str, at)))

    def read(self, key, frame):
        if self.written is not None and key not in self.written:
            self.run.unwritten_read(self, key)
        if self.race is not None:
            self.race.read(self, key, frame)

    def write(self, key, frame):
        if self.written is not None:
            self.written.add(key)
        if self.race is not None:
            self.race.write(self, key, frame)

    def atomic(self, key, frame, kind, order, scope):
        if self.written is not None:
            if kind != "store" and key not in self.written:
                self.run.unwritten_read(self, key)
            self.written.add(key)
        if self.race is not None:
            self.race.atomic(self, key, frame, kind, order, scope)


class Watched:
    """An array, or a row of it, that tells of each element that is read or written."""
    __slots__ = ("_memory", "_data", "_keys")

    def __init__(self, memory, data, keys):
        self._memory, self._data, self._keys = memory, data, keys

    def __getitem__(self, index):
        value, keys = self._data[index], self._keys[index]
        if getattr(value, "shape", ()) != () or getattr(keys, "shape", ()) != ():
            return Watched(self._memory, value, keys)
        self._memory.read(int(keys), sys._getframe(1))
        return value

    def __setitem__(self, index, value):
        keys = self._keys[index]
        frame, write = sys._getframe(1), self._memory.write
        for key in (int(keys),) if keys.shape == () else map(int, keys.flat):
            write(key, frame)
        self._data[index] = value._tell(frame) if isinstance(value, Watched) else value

    def _tell(self, frame):
        for key in map(int, self._keys.flat):
            self._memory.read(key, frame)
        return self._data

    def __array__(self, dtype=None, copy=None):
        data = self._tell(sys._getframe(1))
        return data if dtype is None else data.astype(dtype)

    def __len__(self):
        return len(self._data)

    def __repr__(self):
        return repr(self._data)

    def __str__(self):
        return str(self._data)

    shape = property(lambda self: self._data.shape)
    dtype = property(lambda self: self._data.dtype)
    ndim = property(lambda self: self._data.ndim)
    size = property(lambda self: self._data.size)
    itemsize = property(lambda self: self._data.itemsize)
    nbytes = property(lambda self: self._data.nbytes)
    T = property(lambda self: Watched(self._memory, self._data.T, self._keys.T))


def assigned_name(frame):
    """The name that the call at which a frame stands is assigned to, or None: `part` of part = local.array(...)."""
    return _assigned_name(frame.f_code, frame.f_lasti)


@functools.lru_cache(maxsize=256)
def _assigned_name(code, at):
    import dis

    for one in itertools.dropwhile(lambda one: one.offset <= at, dis.get_instructions(code)):
        if one.opname.startswith(("STORE_FAST", "STORE_NAME", "STORE_DEREF", "STORE_GLOBAL")):
            return one.argval if isinstance(one.argval, str) else None
        if one.opname not in ("CACHE", "NOP", "EXTENDED_ARG", "PRECALL", "RESUME"):
            return None
    return None
