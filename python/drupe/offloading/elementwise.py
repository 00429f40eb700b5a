"""The kernels of a function under @drupe.vectorize: one for each number of dimensions that arrays need."""
from drupe import _engine
from drupe.compiler import kernels, launch, types
from drupe.compiler.names import held
from drupe.compiler.source import Source
from drupe.compiler.values import stored
from drupe.offloading import pieces
from drupe.offloading.outside import Outside, statements

_MOST_DIMS = 3


class Elementwise:
    """A function for one set of argument types and one device; `dtype` is that of its result."""

    def __init__(self, owner, args, signature, device):
        import numpy

        self.owner, self.signature = owner, signature
        self.arrays = [isinstance(one, _engine.Array) for one in args]
        self.source = Source(owner.py_func)
        self.outside, self.kernels = Outside(owner.py_func, self.source.node), {}
        kinds = [types.Array(str(one.dtype), 1) if is_array else launch.type_of(one, "#%d" % at)[0]
                 for at, (one, is_array) in enumerate(zip(args, self.arrays))]
        wide = "complex128" if device.has_aspect_fp64 else "complex64"
        made = kernels.lower(self._function(1, probe=True), [*kinds, types.Array(wide, 1)], dims=1, grouped=False,
                             fp64=device.has_aspect_fp64, device_name=device.name, dialect=owner.dialect)
        self._watched = made.watched
        found = made.variables["drupe_r"]
        self.dtype = numpy.dtype(signature[1] if signature else stored(found, device.has_aspect_fp64))

    def is_current(self):
        return all(held(owner, name) is value for owner, name, value in self._watched)

    def _function(self, dims, probe=False):
        """out[i] = f(x0[i], x1 ...) as a function, over arrays of so many dimensions."""
        import numpy

        place = self.source.node
        names = ["drupe_x%d" % at for at in range(len(self.arrays))]
        key = ", ".join("%s.get_id(%d)" % (pieces.ITEM, dim) for dim in range(dims))
        given = {"drupe_f": self.owner.py_func}
        values = []
        for at, (name, is_array) in enumerate(zip(names, self.arrays)):
            value = "%s[%s]" % (name, key) if is_array else name
            if self.signature:
                given["drupe_t%d" % at] = numpy.dtype(self.signature[0][at]).type
                value = "drupe_t%d(%s)" % (at, value)
            values.append(value)
        text = "drupe_r = drupe_f(%s)\n" % ", ".join(values)
        if probe:
            text += "drupe_r = drupe_r\n"  # two assignments: the type of a variable, even of one that is constant
        elif self.signature:
            given["drupe_t"] = numpy.dtype(self.signature[1]).type
            text = text.replace("drupe_f(", "drupe_t(drupe_f(", 1).replace("\n", ")\n")
        text += "drupe_out[%s] = drupe_r" % key
        piece = pieces.Piece(self.source.name, [*names, "drupe_out"], statements(text, {}, place), place)
        function = self.outside.make(piece.node, given, self.source.filename)
        function._cut = (piece.node, self.source)
        return function

    def launch(self, args, out):
        arrays = [one for one in args if isinstance(one, _engine.Array)]
        args, out = _flat(args, arrays, out) or _broadcast(args, out)
        kernel = self.kernels.get(out.ndim)
        if kernel is None:
            kernel = self.kernels[out.ndim] = launch.Kernel(self._function(out.ndim), checked=self.owner.checked)
            kernel.dialect = self.owner.dialect
        kernel._launcher(_engine.Range(*out.shape), None, (*args, out))


def _flat(args, arrays, out):
    """Arrays as rows of elements, where all have one shape and lie in one order."""
    if any(one.shape != out.shape or not one.flags["c_contiguous"] for one in (*arrays, out)):
        return None
    if out.ndim == 1:
        return args, out
    return [one.reshape(-1) if isinstance(one, _engine.Array) else one for one in args], out.reshape(-1)


def _broadcast(args, out):
    """Views of one shape; where these have more dimensions than a kernel, a copy of what is broadcast."""
    from drupe import array

    shape = out.shape
    args = [array.broadcast_to(one, shape) if isinstance(one, _engine.Array) and one.shape != shape else one
            for one in args]
    if len(shape) <= _MOST_DIMS:
        return args, out
    if not out.flags["c_contiguous"]:
        raise ValueError(f"out of {len(shape)} dimensions is not contiguous")
    args = [array.ascontiguousarray(one) if isinstance(one, _engine.Array) else one for one in args]
    return _flat(args, [one for one in args if isinstance(one, _engine.Array)], out)
