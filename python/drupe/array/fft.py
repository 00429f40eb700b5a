"""Discrete Fourier transforms, with the signatures of the array API (2025.12) and NumPy's names beside it.

Any length is transformed; lengths with small prime factors are the fastest. float32 and complex64 give complex64 (or
float32), all other types are computed in double precision. `norm` says where the factor 1/n goes: "backward" to the
inverse transforms, "forward" to the others, "ortho" as 1/sqrt(n) to both. Transforms run on several processors. On
devices whose memory the host cannot address they go through copies on the host.

>>> da.fft.irfft(da.fft.rfft(da.asarray([1.0, 2.0, 3.0, 4.0]))).tolist()
[1.0, 2.0, 3.0, 4.0]
"""
import math
import operator

from drupe import _engine
from drupe.array._axes import one_axis

__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft",
           "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"]

_WHOLE, _HALF, _REALS = range(3)  # drupe_fft_result


def _scale(norm, n, inverse):
    """The factor of a transform over n elements."""
    if norm is None:
        norm = "backward"
    if norm not in ("backward", "ortho", "forward"):
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if (norm == "backward") == inverse else 1.0


def _array(x, function):
    if not isinstance(x, _engine.Array):
        raise TypeError(f"{function}: x must be an array of drupe.array, not {type(x).__name__}. Copy it to the device "
                        "first: drupe.array.asarray(x)")
    return x


def _length(n, default):
    n = default if n is None else operator.index(n)
    if n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    return n


def _along(x, n, axis, norm, result, sign, inverse, spent=False):
    """The transform along an axis of known place. `sign` is True for exp(+...), `inverse` how `norm` sees it."""
    if result == _HALF and x.dtype.kind == "c":
        raise TypeError(f"a real transform does not take {x.dtype}: use fft(), or x.real")
    return _engine._fft(x, axis, n, result, sign, _scale(norm, n, inverse), spent)


def fft(x, /, *, n=None, axis=-1, norm="backward"):
    """The transform along an axis: X[k] = sum over j of x[j] exp(-2 pi i j k / n).

    x: real or complex, of any shape. n: how many elements are transformed; x is cut, or zeros are added to it. The
    result is complex and has n elements along the axis. ValueError for n < 1 and for an unknown norm.

    The type is complex64 of float16, float32 and complex64, else complex128. IndexError: an axis that x does not have;
    TypeError: x is no array.

    >>> da.fft.fft(da.asarray([1.0, 0.0, 0.0, 0.0])).real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    axis = one_axis(axis, _array(x, "fft").ndim)
    return _along(x, _length(n, x.shape[axis]), axis, norm, _WHOLE, False, False)


def ifft(x, /, *, n=None, axis=-1, norm="backward"):
    """The inverse of fft(): the same arguments, the opposite sign of the exponent, the factor 1/n.

    Shapes, types and errors are those of fft().

    >>> da.fft.ifft(da.asarray([4.0, 0.0, 0.0, 0.0])).real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    axis = one_axis(axis, _array(x, "ifft").ndim)
    return _along(x, _length(n, x.shape[axis]), axis, norm, _WHOLE, True, True)


def rfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The transform of real elements along an axis: the first n // 2 + 1 elements of fft()'s; the others are their
    conjugates. TypeError for complex x. At half the cost of fft() where n is even.

    n, the type and other errors: as for fft().

    >>> da.fft.rfft(da.ones(4)).real.tolist()
    [4.0, 0.0, 0.0]
    """
    axis = one_axis(axis, _array(x, "rfft").ndim)
    return _along(x, _length(n, x.shape[axis]), axis, norm, _HALF, False, False)


def irfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The inverse of rfft(): n real elements along the axis from n // 2 + 1 complex ones.

    n: the length of the result, 2 (m - 1) for m elements of x unless it is given; an odd one has to be given. The
    imaginary part of the first element, and of the last one where n is even, is not looked at.

    The type is float32 of float16, float32 and complex64, else float64. ValueError for n < 1; IndexError: an axis that
    x does not have.

    >>> da.fft.irfft(da.asarray([4.0, 0.0, 0.0])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    axis = one_axis(axis, _array(x, "irfft").ndim)
    return _along(x, _length(n, 2 * (x.shape[axis] - 1)), axis, norm, _REALS, True, True)


def hfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The transform of a signal whose elements n - j are the conjugates of elements j, of which x holds the first
    n // 2 + 1: n real elements. n is 2 (m - 1) for m elements of x unless it is given.

    Types and errors are those of irfft().

    >>> da.fft.hfft(da.asarray([1.0, 0.0, 0.0])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    axis = one_axis(axis, _array(x, "hfft").ndim)
    return _along(x, _length(n, 2 * (x.shape[axis] - 1)), axis, norm, _REALS, False, False)


def ihfft(x, /, *, n=None, axis=-1, norm="backward"):
    """The inverse of hfft(): from n real elements the first n // 2 + 1 of the signal. TypeError for complex x.

    Types and other errors are those of rfft().

    >>> da.fft.ihfft(da.ones(4)).shape
    (3,)
    """
    axis = one_axis(axis, _array(x, "ihfft").ndim)
    return _along(x, _length(n, x.shape[axis]), axis, norm, _HALF, True, True)


# --- Several axes ---------------------------------------------------------------------------------------------------


def _axes(x, s, axes, halved=False):
    """The lengths and places of the axes to transform; `halved`: the last length is that of an irfft()."""
    if s is None:
        places = list(range(x.ndim)) if axes is None else [one_axis(a, x.ndim) for a in axes]
        lengths = [x.shape[a] for a in places]
        if halved and lengths:
            lengths[-1] = 2 * (lengths[-1] - 1)
    else:
        lengths = [operator.index(n) for n in s]
        places = range(-len(lengths), 0) if axes is None else list(axes)
        if len(lengths) != len(places):
            raise ValueError("Shape and axes have different lengths.")
        places = [one_axis(a, x.ndim) for a in places]
        lengths = [x.shape[a] if n == -1 else n for n, a in zip(lengths, places)]  # as it is
    return [_length(n, n) for n in lengths], places


def _complex(x):
    """A copy, in the complex type of transforms."""
    single = x.dtype in ("float16", "float32", "complex64") or not x.device.has_aspect_fp64
    return x.astype("complex64" if single else "complex128", copy=True)


def _over(x, lengths, places, norm, inverse, spent=False):
    """Complex transforms, the last axis first."""
    if not places:
        return x if spent else _complex(x)
    for n, axis in zip(reversed(lengths), reversed(places)):
        x = _along(x, n, axis, norm, _WHOLE, inverse, inverse, spent)
        spent = True
    return x


def fftn(x, /, *, s=None, axes=None, norm="backward"):
    """fft() along several axes, all unless `axes` names them. `s` holds n for each of them; -1 is the axis's own
    length. ValueError when s and axes have different lengths.

    Types and other errors are those of fft().

    >>> da.fft.fftn(da.ones((2, 2))).real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    lengths, places = _axes(_array(x, "fftn"), s, axes)
    return _over(x, lengths, places, norm, False)


def ifftn(x, /, *, s=None, axes=None, norm="backward"):
    """The inverse of fftn(), with the same arguments.

    Shapes, types and errors are those of fftn().

    >>> da.fft.ifftn(da.ones((2, 2))).real.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    lengths, places = _axes(_array(x, "ifftn"), s, axes)
    return _over(x, lengths, places, norm, True)


def rfftn(x, /, *, s=None, axes=None, norm="backward"):
    """rfft() along the last of the axes, then fft() along the others. TypeError for complex x.

    Types and other errors are those of fftn().

    >>> da.fft.rfftn(da.ones((3, 4))).shape
    (3, 3)
    """
    lengths, places = _axes(_array(x, "rfftn"), s, axes)
    if not places:
        raise ValueError("at least 1 axis must be transformed")
    x = _along(x, lengths[-1], places[-1], norm, _HALF, False, False)
    return _over(x, lengths[:-1], places[:-1], norm, False, spent=True)


def irfftn(x, /, *, s=None, axes=None, norm="backward"):
    """The inverse of rfftn(): ifft() along all axes but the last, then irfft(). `s` holds the lengths of the result;
    the last one is 2 (m - 1) unless it is given.

    Types and errors are those of irfft() and fftn().

    >>> da.fft.irfftn(da.ones((3, 3))).shape
    (3, 4)
    """
    lengths, places = _axes(_array(x, "irfftn"), s, axes, halved=True)
    if not places:
        raise ValueError("at least 1 axis must be transformed")
    for n, axis, first in zip(lengths[:-1], places[:-1], [True] + [False] * len(places)):
        x = _along(x, n, axis, norm, _WHOLE, True, True, not first)
    return _along(x, lengths[-1], places[-1], norm, _REALS, True, True)


def fft2(x, /, *, s=None, axes=(-2, -1), norm="backward"):
    """fftn() along two axes, the last two unless others are named. NumPy's name, not part of the array API.

    Types and errors are those of fftn().

    >>> da.fft.fft2(da.ones((5, 2, 2)))[0, ...].real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    return fftn(x, s=s, axes=axes, norm=norm)


def ifft2(x, /, *, s=None, axes=(-2, -1), norm="backward"):
    """ifftn() along two axes, the last two unless others are named.

    Types and errors are those of ifftn().

    >>> da.fft.ifft2(da.ones((5, 2, 2)))[0, ...].real.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return ifftn(x, s=s, axes=axes, norm=norm)


def rfft2(x, /, *, s=None, axes=(-2, -1), norm="backward"):
    """rfftn() along two axes, the last two unless others are named.

    Types and errors are those of rfftn().

    >>> da.fft.rfft2(da.ones((5, 3, 4))).shape
    (5, 3, 3)
    """
    return rfftn(x, s=s, axes=axes, norm=norm)


def irfft2(x, /, *, s=None, axes=(-2, -1), norm="backward"):
    """irfftn() along two axes, the last two unless others are named.

    Types and errors are those of irfftn().

    >>> da.fft.irfft2(da.ones((5, 3, 3))).shape
    (5, 3, 4)
    """
    return irfftn(x, s=s, axes=axes, norm=norm)


# --- Helpers --------------------------------------------------------------------------------------------------------


def _frequencies(n, d, parts, dtype, device, usm_type, queue):
    """The parts, (start, count) each, one behind the other, times 1 / (n d)."""
    if dtype is not None and _engine.DType(dtype).kind != "f":
        raise ValueError(f"frequencies are floating-point numbers, not {dtype}")
    x = _engine._sequence(sum(count for _, count in parts), 0, 1, dtype, device, usm_type, queue)
    if len(parts) == 2:
        x[parts[0][1]:] -= n
    x *= 1.0 / (n * d)
    return x


def fftfreq(n, /, *, d=1.0, dtype=None, device=None, usm_type=None, queue=None, sycl_queue=None):
    """The frequencies of the n elements of fft(): 0, 1, ... (n-1)//2, -(n//2), ... -1, each divided by n d.

    d: the distance of samples. dtype: a real floating type, the default one if None. sycl_queue: queue, as dpctl calls
    it. ValueError for n < 1.

    The result has n elements.

    >>> da.fft.fftfreq(4, d=0.5).tolist()
    [0.0, 0.5, -1.0, -0.5]
    """
    n, positive, queue = _length(n, None), (operator.index(n) - 1) // 2 + 1, sycl_queue if queue is None else queue
    return _frequencies(n, d, [(0, positive), (-(n // 2), n // 2)], dtype, device, usm_type, queue)


def rfftfreq(n, /, *, d=1.0, dtype=None, device=None, usm_type=None, queue=None, sycl_queue=None):
    """The frequencies of the n // 2 + 1 elements of rfft(): 0, 1, ... n//2, each divided by n d.

    d, dtype, errors and sycl_queue: as for fftfreq().

    >>> da.fft.rfftfreq(4, d=0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    n, queue = _length(n, None), sycl_queue if queue is None else queue
    return _frequencies(n, d, [(0, n // 2 + 1)], dtype, device, usm_type, queue)


def _shifted(x, axes, back):
    from drupe.array import roll
    if axes is None:
        axes = tuple(range(x.ndim))
    axes = tuple(one_axis(a, x.ndim) for a in (axes if isinstance(axes, (tuple, list)) else (axes,)))
    return roll(x, tuple(-(x.shape[a] // 2) if back else x.shape[a] // 2 for a in axes), axis=axes)


def fftshift(x, /, *, axes=None):
    """The elements with the zero frequency moved to the middle of the axes, all unless they are named.

    x: an array of any shape and type. The result is a copy. IndexError: an axis that x does not have.

    >>> da.fft.fftshift(da.asarray([0, 1, -2, -1])).tolist()
    [-2, -1, 0, 1]
    """
    return _shifted(_array(x, "fftshift"), axes, False)


def ifftshift(x, /, *, axes=None):
    """The inverse of fftshift(), which differs from it along axes of odd length.

    Arguments and errors are those of fftshift().

    >>> da.fft.ifftshift(da.asarray([-2, -1, 0, 1])).tolist()
    [0, 1, -2, -1]
    """
    return _shifted(_array(x, "ifftshift"), axes, True)
