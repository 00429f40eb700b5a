"""Methods of Array with NumPy's names and order of arguments, each of which is a function of drupe.array. NumPy's own
functions hand over an argument `out`, too."""


def _into(out, result):
    if out is None:
        return result
    out[...] = result
    return out


class Flags(dict):
    """A dict whose keys are attributes too: NumPy's x.flags has both."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"flags have {', '.join(self)}, not {name!r}") from None


class ArrayMethods:
    @property
    def mT(self):
        """A view with the last two axes exchanged: ValueError for fewer than two.

        >>> da.zeros((2, 3)).mT.shape
        (3, 2)
        """
        from drupe import array

        return array.matrix_transpose(self)

    @property
    def flags(self):
        """How the elements lie in memory: c_contiguous, f_contiguous, contiguous and forc, each an attribute and a key
        of a dict.

        >>> x = da.zeros((2, 3))
        >>> x.flags.c_contiguous, x.flags["f_contiguous"]
        (True, False)
        """
        rows, columns = self.is_contiguous, self.T.is_contiguous
        return Flags(c_contiguous=rows, f_contiguous=columns, contiguous=rows, forc=rows or columns)

    def ravel(self, order="C"):
        """The elements in one dimension: ravel().

        >>> da.ones((2, 2)).ravel().shape
        (4,)
        """
        from drupe import array

        return array.ravel(self, order)

    def flatten(self, order="C"):
        """A copy of the elements in one dimension. ValueError: an order that is neither "C" nor "F".

        >>> da.ones((2, 2)).flatten().shape
        (4,)
        """
        from drupe.array._arguments import in_c_order

        return (self if in_c_order("flatten", order) else self.T).copy().reshape(-1)

    def transpose(self, *axes):
        """A view with the axes in another order: transpose(1, 0), transpose((1, 0)), or reversed.

        >>> da.zeros((2, 3, 4)).transpose(1, 0, 2).shape
        (3, 2, 4)
        """
        from drupe import array

        if len(axes) == 1 and (axes[0] is None or hasattr(axes[0], "__len__")):
            axes = axes[0]
        return array.transpose(self, axes or None if axes == () else axes)

    def swapaxes(self, axis1, axis2, /):
        """A view with two axes exchanged: swapaxes().

        >>> da.zeros((2, 3)).swapaxes(0, 1).shape
        (3, 2)
        """
        from drupe import array

        return array.swapaxes(self, axis1, axis2)

    def squeeze(self, axis=None):
        """A view without axes of size 1: all of them, or the given ones. ValueError: one has another size.

        >>> da.zeros((1, 3, 1)).squeeze().shape
        (3,)
        """
        from drupe import array

        return array.squeeze(self, tuple(a for a, n in enumerate(self.shape) if n == 1) if axis is None else axis)

    def fill(self, value, /):
        """Write a number into all elements. TypeError: what is no number.

        >>> x = da.zeros(2)
        >>> x.fill(7)
        >>> x.tolist()
        [7.0, 7.0]
        """
        self[...] = value

    def conj(self):
        """The conjugates of complex elements; real ones as they are.

        >>> da.asarray([1.0]).conj().tolist()
        [1.0]
        """
        from drupe import array

        return array.conj(self) if self.dtype.kind == "c" else self

    conjugate = conj

    def dot(self, other, /):
        """Product of matrices and vectors, or of each element with a number: dot().

        >>> da.asarray([1.0, 2.0]).dot(da.asarray([3.0, 4.0])).item()
        11.0
        """
        from drupe import array

        return array.dot(self, other)

    def repeat(self, repeats, axis=None):
        """Each element so often in a row: repeat().

        >>> da.asarray([1, 2]).repeat(2).tolist()
        [1, 1, 2, 2]
        """
        from drupe import array

        return array.repeat(self, repeats, axis=axis)

    def take(self, indices, axis=None, out=None, mode="raise"):
        """Elements along an axis, or of the flattened array: take().

        >>> da.asarray([5, 6, 7]).take([2, 0]).tolist()
        [7, 5]
        """
        from drupe import array

        return _into(out, array.take(self, indices, axis=axis, mode=mode))

    def put(self, indices, values, mode="raise"):
        """Write values into the flattened array: put().

        >>> x = da.zeros(3); x.put([0, -1], 7); x.tolist()
        [7.0, 0.0, 7.0]
        """
        from drupe import array

        array.put(self, indices, values, mode=mode)

    def nonzero(self):
        """Where elements are not zero, an array for each axis: nonzero(). Waits for their number.

        >>> da.asarray([0, 3, 4]).nonzero()[0].tolist()
        [1, 2]
        """
        from drupe import array

        return array.nonzero(self)

    def compress(self, condition, axis=None, out=None):
        """The parts along an axis where a condition is true: compress(). Waits for their number.

        >>> da.asarray([5, 6, 7]).compress([True, False, True]).tolist()
        [5, 7]
        """
        from drupe import array

        return _into(out, array.compress(condition, self, axis=axis))

    def choose(self, choices, out=None, mode="raise"):
        """For each element that of the array of `choices` which it numbers: choose().

        >>> da.asarray([0, 1]).choose([da.asarray([5, 6]), 9]).tolist()
        [5, 9]
        """
        from drupe import array

        return _into(out, array.choose(self, choices, mode=mode))

    def clip(self, min=None, max=None, out=None):
        """The elements, but not below min nor above max: clip().

        >>> da.asarray([1, 5, 9]).clip(2, 8).tolist()
        [2, 5, 8]
        """
        from drupe import array

        return array.clip(self, min, max, out=out)

    def round(self, decimals=0, out=None):
        """The elements with so many decimals: round().

        >>> da.asarray([0.126]).round(2).tolist()
        [0.13]
        """
        from drupe import array

        return array.round(self, decimals, out=out)

    def mean(self, axis=None, dtype=None, out=None, keepdims=False):
        """Mean over the axes: mean().

        >>> da.asarray([1, 2]).mean().item()
        1.5
        """
        from drupe import array

        return array.mean(self, axis=axis, dtype=dtype, out=out, keepdims=keepdims)

    def std(self, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, correction=None):
        """Standard deviation over the axes, with n - ddof (or correction) in place of n: std().

        >>> da.asarray([1.0, 3.0]).std().item()
        1.0
        """
        from drupe import array

        x = self if dtype is None else self.astype(dtype, copy=False)
        return _into(out, array.std(x, axis=axis, correction=ddof if correction is None else correction,
                                    keepdims=keepdims))

    def var(self, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, correction=None):
        """Variance over the axes, with n - ddof (or correction) in place of n: var().

        >>> da.asarray([1.0, 3.0]).var().item()
        1.0
        """
        from drupe import array

        x = self if dtype is None else self.astype(dtype, copy=False)
        return _into(out, array.var(x, axis=axis, correction=ddof if correction is None else correction,
                                    keepdims=keepdims))

    def diagonal(self, offset=0, axis1=0, axis2=1):
        """The elements on a diagonal: diagonal().

        >>> da.asarray([[1, 2], [3, 4]]).diagonal().tolist()
        [1, 4]
        """
        from drupe import array

        return array.diagonal(self, offset, axis1, axis2)

    def trace(self, offset=0, axis1=0, axis2=1, dtype=None, out=None):
        """The sum over a diagonal: trace().

        >>> da.asarray([[1, 2], [3, 4]]).trace().item()
        5
        """
        from drupe import array

        return _into(out, array.trace(self, offset, axis1, axis2, dtype))

    def ptp(self, axis=None, out=None, keepdims=False):
        """Distance between the largest and the smallest element over the axes: ptp().

        >>> da.asarray([3, 9, 4]).ptp().item()
        6
        """
        from drupe import array

        return _into(out, array.ptp(self, axis, keepdims=keepdims))

    def argmax(self, axis=None, out=None, *, keepdims=False):
        """Where the largest element is: argmax().

        >>> da.asarray([3, 7, 7]).argmax().item()
        1
        """
        from drupe import array

        return _into(out, array.argmax(self, axis=axis, keepdims=keepdims))

    def argmin(self, axis=None, out=None, *, keepdims=False):
        """Where the least element is: argmin().

        >>> da.asarray([3, 7, 3]).argmin().item()
        0
        """
        from drupe import array

        return _into(out, array.argmin(self, axis=axis, keepdims=keepdims))

    def sort(self, axis=-1, kind=None, order=None, *, descending=False, stable=None):
        """Sort the elements along an axis, in place; the sort is stable, whatever kind and stable say.

        >>> x = da.asarray([3, 1, 2])
        >>> x.sort()
        >>> x.tolist()
        [1, 2, 3]
        """
        from drupe import array

        if order is not None:
            raise ValueError("sort: order names fields, and arrays have none")
        self[...] = array.sort(self, axis=axis, descending=descending)

    def argsort(self, axis=-1, kind=None, order=None, *, descending=False, stable=None):
        """The places from which sort() takes its elements: argsort().

        >>> da.asarray([3, 1, 2]).argsort().tolist()
        [1, 2, 0]
        """
        from drupe import array

        if order is not None:
            raise ValueError("argsort: order names fields, and arrays have none")
        return array.argsort(self, axis=axis, descending=descending)

    def partition(self, kth, axis=-1, kind="introselect", order=None):
        """Sort in place, so that the kth element is in its place: partition().

        >>> x = da.asarray([3, 1, 2])
        >>> x.partition(1)
        >>> x.tolist()
        [1, 2, 3]
        """
        from drupe import array

        self[...] = array.partition(self, kth, axis=axis)

    def argpartition(self, kth, axis=-1, kind="introselect", order=None):
        """The places from which partition() takes its elements: argpartition().

        >>> da.asarray([3, 1, 2]).argpartition(1).tolist()
        [1, 2, 0]
        """
        from drupe import array

        return array.argpartition(self, kth, axis=axis)

    def searchsorted(self, v, side="left", sorter=None):
        """Where elements belong in this sorted array: searchsorted().

        >>> da.asarray([1, 3, 5]).searchsorted(3).item()
        1
        """
        from drupe import array

        return array.searchsorted(self, v, side=side, sorter=sorter)

    def cumsum(self, axis=None, dtype=None, out=None):
        """Running sums: cumsum().

        >>> da.asarray([1, 2, 3]).cumsum().tolist()
        [1, 3, 6]
        """
        from drupe import array

        return _into(out, array.cumsum(self, axis, dtype))

    def cumprod(self, axis=None, dtype=None, out=None):
        """Running products: cumprod().

        >>> da.asarray([1, 2, 3]).cumprod().tolist()
        [1, 2, 6]
        """
        from drupe import array

        return _into(out, array.cumprod(self, axis, dtype))

    def tobytes(self, order="C"):
        """The bytes of the elements. Waits. ValueError: order "F".

        >>> da.asarray([1, 2], dtype="int32").tobytes().hex()
        '0100000002000000'
        """
        return self.asnumpy().tobytes(order)

    def resize(self, *shape, refcheck=True):
        """Refused: the memory of an array keeps its size. Take reshape(), a slice, drupe.array.pad() or tile().

        >>> da.zeros(2).resize(4)
        Traceback (most recent call last):
        TypeError: an array on a device keeps its number of elements: ...
        """
        raise TypeError("an array on a device keeps its number of elements: x.reshape() gives them another shape, a "
                        "slice leaves some out, drupe.array.pad() and tile() make a larger array")

    def view(self, *args, **options):
        """Refused with a data type; without one, a view of the same elements.

        >>> da.zeros(2).view().shape
        (2,)
        """
        if args or options:
            raise TypeError("the bytes of an array are not read as another data type: x.astype() converts the values")
        return self[...]
