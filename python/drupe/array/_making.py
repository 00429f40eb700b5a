"""Functions with NumPy's names that make arrays."""
import itertools
import math
import operator

from drupe import _engine
from drupe.array._arguments import by_columns, in_c_order, laid_out, need
from drupe.array._joining import atleast_1d, ravel

_ops = _engine.operations


def array(obj, /, dtype=None, *, copy=True, order="K", ndmin=0, device=None, usm_type=None, queue=None,
          sycl_queue=None):
    """A new array of a number, nested sequences, an array, or anything with the buffer protocol, as asarray() takes it.

    dtype: of the elements, or None for that of obj. copy: False and None take an array as it is where it fits. ndmin:
    how many dimensions there are at least, the new ones in front. order: "C", elements lie in memory row by row, or
    "F", column by column; "K": as those of obj. sycl_queue: queue, as dpctl calls it. ValueError: copy=False where a
    copy is needed.

    >>> da.array([1, 2], ndmin=2).tolist()
    [[1, 2]]
    """
    where = {"device": device, "usm_type": usm_type, "queue": sycl_queue if queue is None else queue, "copy": copy}
    if isinstance(obj, _engine.Array) and _turns("array", obj, order):
        x = _engine.asarray(obj.T, dtype, order="C", **where).T
    else:
        x = _engine.asarray(obj, dtype, order=order, **where)
    return x[(None,) * (ndmin - x.ndim)] if x.ndim < ndmin else x


def _turns(function, x, order):
    """Whether a copy of x has its elements column by column."""
    return not in_c_order(function, order) or (order in ("A", "a", "K", "k") and by_columns(x))


def asanyarray(obj, /, dtype=None, *, order=None, device=None, usm_type=None, queue=None, copy=None,
               sycl_queue=None):
    """asarray(): there are no classes derived from Array.

    obj, dtype, copy, order: as asarray() has them. sycl_queue: queue, as dpctl calls it.

    >>> da.asanyarray([1, 2]).tolist()
    [1, 2]
    """
    return _engine.asarray(obj, dtype, device=device, usm_type=usm_type,
                           queue=sycl_queue if queue is None else queue, copy=copy, order=order)


def ascontiguousarray(obj, /, dtype=None, *, device=None, usm_type=None, queue=None, sycl_queue=None):
    """An array of one dimension at least whose elements lie side by side in C order: obj itself if it is one.

    obj: what asarray() takes. dtype: of the elements, or None for that of obj. sycl_queue: queue, as dpctl calls it.

    >>> da.ascontiguousarray(da.zeros((2, 3)).T).is_contiguous
    True
    """
    queue = sycl_queue if queue is None else queue
    return atleast_1d(laid_out(_engine.asarray(obj, dtype, device=device, usm_type=usm_type, queue=queue), "C"))


def asfortranarray(obj, /, dtype=None, *, device=None, usm_type=None, queue=None, sycl_queue=None):
    """An array whose elements lie side by side column by column: obj itself if it is one.

    obj: what asarray() takes. dtype: of the elements, or None for that of obj. sycl_queue: queue, as dpctl calls it.
    Other functions take such arrays as they take x.T, and make their results row by row.

    >>> da.asfortranarray([[1, 2, 3], [4, 5, 6]]).strides
    (1, 2)
    """
    queue = sycl_queue if queue is None else queue
    return laid_out(_engine.asarray(obj, dtype, device=device, usm_type=usm_type, queue=queue), "F")


def isfortran(x, /):
    """Whether the elements lie side by side column by column, and not row by row.

    x: an array of any shape. TypeError: what is no array.

    >>> da.isfortran(da.zeros((2, 3)).T)
    True
    """
    need("isfortran", x)
    return by_columns(x)


def copy(x, /, order="K"):
    """A copy of an array.

    x: an array of any shape and data type. order: "C", elements of the copy lie in memory row by row, or "F", column by
    column; "K" and "A": column by column where those of x do.

    >>> x = da.zeros(2)
    >>> y = da.copy(x)
    >>> y[0] = 1
    >>> x.tolist()
    [0.0, 0.0]
    """
    need("copy", x)
    return x.T.copy().T if _turns("copy", x, order) else x.copy()


def copyto(x, value, /, *, where=True):
    """Write `value` into the elements of x, or into those where a mask is true.

    x: an array. value: an array or a number that broadcasts to x; it is cast. where: a mask that broadcasts to x.

    >>> x = da.zeros(3)
    >>> da.copyto(x, 5, where=da.asarray([True, False, True]))
    >>> x.tolist()
    [5.0, 0.0, 5.0]
    """
    need("copyto", x)
    if where is True:
        x[...] = value
    elif where is not False:
        value = value.astype(x.dtype, copy=False) if isinstance(value, _engine.Array) else value
        x[...] = _ops["where"](where, value, x)


def from_numpy(array, /, *, device=None, usm_type=None, queue=None, sycl_queue=None):
    """An array of a NumPy array: asarray() under dpctl.tensor's name.

    array: a numpy.ndarray. Returns an array of its shape and data type. sycl_queue: queue, as dpctl calls it.

    >>> import numpy
    >>> da.from_numpy(numpy.arange(3)).tolist()
    [0, 1, 2]
    """
    return _engine.asarray(array, device=device, usm_type=usm_type, queue=sycl_queue if queue is None else queue)


def to_numpy(x, /):
    """A copy in NumPy: asnumpy() under dpctl.tensor's name. Waits.

    x: an array. TypeError: what is no array.

    >>> da.to_numpy(da.arange(3)).sum()
    np.int64(3)
    """
    return _engine.asnumpy(x)


def frombuffer(buffer, /, dtype=float, count=-1, offset=0, *, device=None, usm_type=None, queue=None,
               sycl_queue=None):
    """An array of the bytes of a buffer, which are copied.

    dtype: of the elements. count: how many, -1 for all. offset: bytes before the first. sycl_queue: queue, as dpctl
    calls it. ValueError: the bytes are no whole number of elements, or there are too few.

    >>> da.frombuffer(bytes([5, 0, 0, 0]), "int32").tolist()
    [5]
    """
    import numpy

    dtype = _engine.DType(dtype)
    return _engine.asarray(numpy.frombuffer(buffer, dtype.name, count, offset), device=device, usm_type=usm_type,
                           queue=sycl_queue if queue is None else queue)


def fromiter(iter, /, dtype, count=-1, *, device=None, usm_type=None, queue=None, sycl_queue=None):
    """An array with one dimension of the numbers that an iterable gives.

    dtype: of the elements. count: how many to take, -1 for all. sycl_queue: queue, as dpctl calls it. ValueError: there
    are fewer.

    >>> da.fromiter((i * i for i in range(4)), "int64").tolist()
    [0, 1, 4, 9]
    """
    numbers = list(iter if count < 0 else itertools.islice(iter, count))
    if count >= 0 and len(numbers) < count:
        raise ValueError(f"fromiter: the iterable gave {len(numbers)} numbers, and {count} were wanted")
    return _engine.asarray(numbers, dtype, device=device, usm_type=usm_type,
                           queue=sycl_queue if queue is None else queue)


def fromfunction(function, shape, /, *, dtype=float, device=None, usm_type=None, queue=None, sycl_queue=None,
                 **options):
    """What a function makes of the indices of all elements: function(i, j, ...), each an array of the whole shape.

    shape: a tuple. dtype: of the indices. sycl_queue: queue, as dpctl calls it. options: further arguments of the
    function. Returns what the function does.

    >>> da.fromfunction(lambda i, j: i + j, (2, 2), dtype="int64").tolist()
    [[0, 1], [1, 2]]
    """
    where = {"device": device, "usm_type": usm_type, "queue": sycl_queue if queue is None else queue}
    return function(*indices(shape, dtype=dtype, **where), **options)


def indices(dimensions, /, dtype="int64", sparse=False, *, device=None, usm_type=None, queue=None, sycl_queue=None):
    """The index of each element of an array of this shape, along each axis.

    dimensions: a shape of n axes. sycl_queue: queue, as dpctl calls it. Returns an array of shape (n, *dimensions), or,
    if sparse, a tuple of n arrays that broadcast to that shape.

    >>> da.indices((2, 2)).tolist()
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    shape = tuple(operator.index(n) for n in dimensions)
    first = _engine.empty(0, device=device, usm_type=usm_type, queue=sycl_queue if queue is None else queue)
    where = {"usm_type": first.usm_type, "queue": first.queue}
    open_ = []
    for axis, length in enumerate(shape):
        along = _engine._sequence(length, 0, 1, dtype, None, first.usm_type, first.queue)
        open_.append(along.reshape((1,) * axis + (length,) + (1,) * (len(shape) - 1 - axis)))
    if sparse:
        return tuple(open_)
    out = _engine._written((len(shape), *shape), dtype, **where)
    for axis, along in enumerate(open_):
        out[axis] = along
    return out


def identity(n, /, dtype=None, *, device=None, usm_type=None, queue=None, sycl_queue=None):
    """A matrix of n rows with ones on the diagonal and zeros elsewhere: eye(n).

    dtype: of the elements, or None for the default float. sycl_queue: queue, as dpctl calls it. ValueError: n is
    negative.

    >>> da.identity(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    from drupe.array import eye

    return eye(n, dtype=dtype, device=device, usm_type=usm_type, queue=queue, sycl_queue=sycl_queue)


def tri(N, M=None, /, k=0, dtype=None, *, device=None, usm_type=None, queue=None, sycl_queue=None):
    """A matrix of N rows and M columns with ones on the diagonal that begins in column k and below it.

    dtype: of the elements, or None for the default float. sycl_queue: queue, as dpctl calls it. ValueError: a size is
    negative.

    >>> da.tri(2, 3).tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
    """
    from drupe.array._shapes import _column, _diagonal

    rows, columns = operator.index(N), operator.index(N if M is None else M)
    queue = sycl_queue if queue is None else queue
    below = _diagonal(rows, columns, device=device, usm_type=usm_type, queue=queue) <= _column(k)
    return below.astype(_engine.empty(0, dtype, queue=below.queue).dtype)


def _flat_diagonal(rows, columns, offset):
    """Where the elements of a diagonal are in the flat elements of a matrix, and how many there are."""
    start = offset if offset >= 0 else -offset * columns
    count = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    return slice(start, start + count * (columns + 1) - columns if count else start, columns + 1), count


def diagonal(x, /, offset=0, axis1=0, axis2=1):
    """The elements on a diagonal of the matrices that two axes make, along a new last axis.

    x: an array of two dimensions at least. offset: the column in which the diagonal begins, negative for a row. Returns
    a view. ValueError: fewer dimensions, the same axis twice.

    >>> da.diagonal(da.asarray([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    from drupe.array import moveaxis

    need("diagonal", x)
    if x.ndim < 2:
        raise ValueError(f"diagonal needs 2 dimensions at least, and the array has {x.ndim}")
    return _engine._diagonal(moveaxis(x, (axis1, axis2), (-2, -1)), operator.index(offset))


def trace(x, /, offset=0, axis1=0, axis2=1, dtype=None):
    """The sum over a diagonal of the matrices that two axes make.

    x, offset, axis1, axis2: as diagonal() has them. dtype: that the sum is made in, or None for that of sum().

    >>> da.trace(da.asarray([[1, 2], [3, 4]])).item()
    5
    """
    return _ops["sum"](diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)


def diag(x, /, k=0):
    """A matrix with the elements of x on a diagonal and zeros elsewhere; of a matrix, a copy of its diagonal.

    x: an array with one dimension or two. k: the column in which the diagonal begins, negative for a row. ValueError: a
    different number of dimensions.

    >>> da.diag(da.asarray([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    need("diag", x)
    if x.ndim == 2:
        return diagonal(x, k).copy()
    if x.ndim != 1:
        raise ValueError(f"diag takes an array with 1 dimension or 2, and this one has {x.ndim}")
    k = operator.index(k)
    size = x.shape[0] + abs(k)
    out = _engine.zeros((size, size), x.dtype, queue=x.queue, usm_type=x.usm_type)
    chosen, count = _flat_diagonal(size, size, k)
    if count:
        out.reshape(-1)[chosen] = x
    return out


def diagflat(x, /, k=0):
    """diag() of the flattened array.

    x: an array of any shape. k: the column in which the diagonal begins, negative for a row.

    >>> da.diagflat(da.asarray([[1, 2]])).tolist()
    [[1, 0], [0, 2]]
    """
    return diag(ravel(x), k)


def fill_diagonal(x, value, /):
    """Write a number on the main diagonal of a matrix, in place.

    x: an array with two dimensions. value: a number, or an array that broadcasts to the diagonal. ValueError: a
    different number of dimensions.

    >>> x = da.zeros((2, 2))
    >>> da.fill_diagonal(x, 3)
    >>> x.tolist()
    [[3.0, 0.0], [0.0, 3.0]]
    """
    need("fill_diagonal", x)
    if x.ndim != 2:
        raise ValueError(f"fill_diagonal takes an array with 2 dimensions, and this one has {x.ndim}")
    chosen, count = _flat_diagonal(*x.shape, 0)
    if count == 0:
        return
    whole = x if x.is_contiguous else x.copy()
    whole.reshape(-1)[chosen] = value
    if whole is not x:
        x[...] = whole


def vander(x, /, N=None, increasing=False):
    """The powers of each element in a row: N of them, the highest first unless they increase.

    x: an array with one dimension. N: the number of columns, or None for as many as rows. ValueError: a different
    number of dimensions, or a negative N.

    >>> da.vander(da.asarray([2, 3]), 3).tolist()
    [[4, 2, 1], [9, 3, 1]]
    """
    need("vander", x)
    if x.ndim != 1:
        raise ValueError(f"vander takes an array with 1 dimension, and this one has {x.ndim}")
    count = x.shape[0] if N is None else operator.index(N)
    if count < 0:
        raise ValueError(f"vander: N must not be negative, and {count} is")
    dtype = _engine._promote(x.dtype, "int64")
    out = _engine.ones((x.shape[0], count), dtype, queue=x.queue, usm_type=x.usm_type)
    for power in range(1, count):
        column = power if increasing else count - 1 - power
        before = column - 1 if increasing else column + 1
        out[:, column] = out[:, before] * x
    return out


def logspace(start, stop, /, num=50, *, endpoint=True, base=10.0, dtype=None, device=None, usm_type=None, queue=None,
             sycl_queue=None):
    """Numbers whose logarithms are evenly spaced: powers of `base` from base**start to base**stop.

    start, stop, base: numbers. num: how many, 50 without it. endpoint: whether base**stop is the last one. dtype: of
    the result, or None for the default float. sycl_queue: queue, as dpctl calls it. ValueError: num is negative.

    >>> da.logspace(0, 2, 3).tolist()
    [1.0, 10.0, 100.0]
    """
    from drupe.array import linspace

    queue = sycl_queue if queue is None else queue
    exponents = linspace(start, stop, num, endpoint=endpoint, device=device, usm_type=usm_type, queue=queue)
    x = _ops["pow"](float(base), exponents)
    return x if dtype is None else x.astype(dtype, copy=False)


def geomspace(start, stop, /, num=50, *, endpoint=True, dtype=None, device=None, usm_type=None, queue=None,
              sycl_queue=None):
    """Numbers from start to stop of which each is the same multiple of the one before.

    start, stop: real numbers of the same sign, not 0. num: how many, 50 without it. endpoint: whether stop is the last
    one. dtype: of the result, or None for the default float. sycl_queue: queue, as dpctl calls it. ValueError: a limit
    is 0, or the signs differ.

    >>> da.round(da.geomspace(1, 8, 4)).tolist()
    [1.0, 2.0, 4.0, 8.0]
    """
    start, stop, queue = float(start), float(stop), sycl_queue if queue is None else queue
    if start * stop <= 0:
        raise ValueError("geomspace: start and stop must not be 0, and must have the same sign")
    sign = math.copysign(1.0, start)
    x = logspace(math.log10(abs(start)), math.log10(abs(stop)), num, endpoint=endpoint, device=device,
                 usm_type=usm_type, queue=queue)
    x = x if sign > 0 else _ops["negative"](x)
    if x.shape[0]:
        x[0] = start
        if endpoint and x.shape[0] > 1:
            x[-1] = stop
    return x if dtype is None else x.astype(dtype, copy=False)


class _Grid:
    """mgrid and ogrid: indexed with slices start:stop:step, where an imaginary step is a number of points."""

    def __init__(self, name, sparse, doc):
        self.__name__, self._sparse, self.__doc__ = name, sparse, doc

    def __repr__(self):
        return f"<drupe.array.{self.__name__}>"

    def __getitem__(self, key):
        parts = key if isinstance(key, tuple) else (key,)
        lines = [self._line(part) for part in parts]
        if not isinstance(key, tuple):
            return lines[0]
        from drupe.array import result_type

        dtype = result_type(*lines)
        n = len(lines)
        lines = [line.astype(dtype, copy=False).reshape((1,) * i + (-1,) + (1,) * (n - 1 - i))
                 for i, line in enumerate(lines)]
        if self._sparse:
            return tuple(lines)
        shape = tuple(line.size for line in lines)
        out = _engine._written((n, *shape), dtype, queue=lines[0].queue)
        for i, line in enumerate(lines):
            out[i] = line
        return out

    def _line(self, part):
        from drupe.array import arange, linspace

        if not isinstance(part, slice) or part.stop is None:
            raise TypeError(f"{self.__name__} is indexed with slices that have an end, such as 0:5, 0:1:0.1 or 0:1:11j")
        start = 0 if part.start is None else part.start
        if isinstance(part.step, complex):
            return linspace(start, part.stop, int(abs(part.step)))
        return arange(start, part.stop, 1 if part.step is None else part.step)


mgrid = _Grid("mgrid", False, """Coordinates on a grid, written as slices: an array of shape (n, ...) for n slices.

    A slice start:stop:step gives the numbers of arange(), and start:stop:5j five numbers of linspace(). TypeError: what
    is no slice with an end.

    >>> da.mgrid[0:2, 0:2].tolist()
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """)
ogrid = _Grid("ogrid", True, """Coordinates on a grid, written as slices: a tuple of arrays that broadcast with each
other.

    A slice start:stop:step gives the numbers of arange(), and start:stop:5j five numbers of linspace(). TypeError: what
    is no slice with an end.

    >>> [x.shape for x in da.ogrid[0:2, 0:3]]
    [(2, 1), (1, 3)]
    """)


def ix_(*sequences):
    """Arrays of indices that broadcast with each other, so that x[da.ix_(rows, columns)] is the part of x where chosen
    rows and columns meet.

    sequences: arrays or sequences of integers with one dimension, or masks. ValueError: more dimensions.

    >>> [x.shape for x in da.ix_([0, 1], [2, 3, 4])]
    [(2, 1), (1, 3)]
    """
    queue = next((x.queue for x in sequences if isinstance(x, _engine.Array)), None)
    arrays, n = [], len(sequences)
    for i, given in enumerate(sequences):
        x = given if isinstance(given, _engine.Array) else _engine.asarray(given, queue=queue)
        if x.ndim != 1:
            raise ValueError(f"ix_ takes sequences with 1 dimension, and this one has {x.ndim}")
        if x.dtype.kind == "b":
            from drupe.array import nonzero

            x = nonzero(x)[0]
        x = x if x.size else x.astype("int64")
        arrays.append(x.reshape((1,) * i + (-1,) + (1,) * (n - 1 - i)))
    return tuple(arrays)
