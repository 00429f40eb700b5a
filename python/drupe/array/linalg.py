"""Linear algebra: products and factorisations of matrices, and of stacks of them.

Everything is work of the arrays' queue, so a matrix that cannot be factored is told late: LinAlgError comes where the
result is read, or at the end of the cell. drupe.array.providers() lists who computes it.

>>> da.linalg.solve(da.asarray([[2., 0], [0, 4]]), da.asarray([2., 2])).tolist()
[1.0, 0.5]
"""
import math
import operator
from collections import namedtuple

from drupe import _engine
from drupe._engine import LinAlgError, matmul
from drupe.array._axes import one_axis, some_axes
from drupe.array._products import _arrays, conjugate, cross, multi_dot, tensordot, vecdot
from drupe.array._products import outer as _outer

__all__ = ["LinAlgError", "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv",
           "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm",
           "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm"]

EigResult = namedtuple("EigResult", "eigenvalues eigenvectors")
EighResult = namedtuple("EighResult", "eigenvalues eigenvectors")
QRResult = namedtuple("QRResult", "Q R")
SlogdetResult = namedtuple("SlogdetResult", "sign logabsdet")
SVDResult = namedtuple("SVDResult", "U S Vh")

_ops = _engine.operations
_UPPER, _FULL, _VALUES = 1, 2, 4
_EPS = {"float32": 2.0**-23, "float64": 2.0**-52, "complex64": 2.0**-23, "complex128": 2.0**-52}


def _floating(name, x):
    """x in a type that LAPACK has: integers become floats."""
    _arrays(name, x)
    if x.dtype.kind in "biu":
        return x.astype("float64" if x.device.has_aspect_fp64 else "float32")
    if x.dtype.name not in _EPS:
        raise TypeError(f"{name} takes float32, float64, complex64 and complex128, not {x.dtype.name}: use "
                        'x.astype("float32")')
    return x


def _run(op, x, flags=0, b=None, cutoff=-1.0):
    return _engine._linear(op, _floating(op, x), b, flags, cutoff)


def _hermitian(x):
    """The conjugate transpose."""
    return conjugate(matrix_transpose(x))


# --- Systems and determinants ---------------------------------------------------------------------------------------

def solve(x1, x2, /):
    """The x of x1 @ x = x2, for a stack of square matrices x1. x2 is a vector, or a stack of matrices; stacks
    broadcast. LinAlgError if a matrix is singular.

    x1: shape (..., n, n). x2: shape (n,) or (..., n, k). The result has x2's shape, broadcast. All are computed in
    their common type, integers in float64. ValueError for other shapes; TypeError for float16.

    >>> da.linalg.solve(da.asarray([[2., 0], [0, 4]]), da.asarray([2., 4])).tolist()
    [1.0, 1.0]
    """
    return _two("solve", x1, x2)[0]


def _two(op, a, b, cutoff=-1.0):
    from drupe.array import broadcast_shapes, result_type

    a, b = _floating(op, a), _floating(op, b)
    if a.ndim < 2 or (op == "solve" and a.shape[-1] != a.shape[-2]):
        raise ValueError(f"{op} takes matrices" + (", which are square" if op == "solve" else "") +
                         f", and the shape is {a.shape}")
    dtype = result_type(a, b)
    vector = b.ndim == 1
    b = b.reshape(b.shape + (1,)) if vector else b
    if not b.ndim or a.shape[-2] != b.shape[-2]:
        raise ValueError(f"{op}: the shapes {a.shape} and {b.shape[:-1] if vector else b.shape} do not fit: as many "
                         "rows are needed")
    stack = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (x if x.shape[:-2] == stack else _engine.broadcast_to(x, stack + x.shape[-2:]) for x in (a, b))
    results = _engine._linear(op, a.astype(dtype, copy=False), b.astype(dtype, copy=False), 0, cutoff)
    return (results[0][..., 0] if vector else results[0], *results[1:])


def inv(x, /):
    """The inverses of square matrices. LinAlgError if one is singular.

    x: an array of shape (..., n, n). The result has x's shape and type, float64 of integers and bool. ValueError for
    other shapes; TypeError for float16.

    >>> da.linalg.inv(da.asarray([[2., 1], [1, 1]])).tolist()
    [[1.0, -1.0], [-1.0, 2.0]]
    """
    return _run("inv", x)[0]


def det(x, /):
    """The determinants of square matrices.

    x: an array of shape (..., n, n). The result has shape (...) and x's type, float64 of integers and bool. ValueError
    for other shapes; TypeError for float16.

    >>> da.linalg.det(da.asarray([[2., 1], [1, 1]])).item()
    1.0
    """
    return _run("det", x)[0]


def slogdet(x, /):
    """Sign (of complex matrices a number of absolute value 1) and logarithm of the absolute value of determinants, as
    a tuple (sign, logabsdet): 0 and -inf of a singular matrix.

    x: an array of shape (..., n, n). Both results have shape (...); the sign has x's type, the logarithm its real type,
    float64 of integers and bool. ValueError for other shapes; TypeError for float16.

    >>> da.linalg.slogdet(da.eye(3)).sign.item()
    1.0
    """
    return SlogdetResult(*_run("slogdet", x))


def lstsq(a, b, /, rcond=None):
    """The x of least squares: that makes a @ x as near to b as can be, and is shortest among those.

    A tuple of x, of the sums of squares that remain for each column of b (empty unless `a` has full rank and more
    rows than columns), of the rank of `a`, and of its singular values. Those up to `rcond` times the largest count as
    zero; None is the precision of the type times the longer side. It waits for the rank.

    a: an array of shape (m, n). b: shape (m,) or (m, k). ValueError for other shapes; TypeError for float16.

    >>> da.linalg.lstsq(da.asarray([[1., 0], [1, 1], [1, 2]]), da.asarray([1., 3, 5]))[2]
    2
    """
    a, b = _floating("lstsq", a), _floating("lstsq", b)
    if a.ndim != 2 or b.ndim not in (1, 2):
        raise ValueError(f"lstsq takes one matrix, and a vector or a matrix: not the shapes {a.shape} and {b.shape}")
    from drupe.array import result_type

    m, n = a.shape
    cutoff = _EPS[result_type(a, b).name] * max(m, n) if rcond is None else float(rcond)
    x, squares, rank, s = _two("lstsq", a, b, cutoff)
    rank = rank.item()
    if rank < n or m <= n:
        squares = squares[:0]
    return x, squares, rank, s


# --- Factorisations -------------------------------------------------------------------------------------------------

def cholesky(x, /, *, upper=False):
    """The factor L, with zeros above its diagonal, of Hermitian matrices x = L @ L^H; `upper`: U of x = U^H @ U. Only
    that half of x is read. LinAlgError if a matrix is not positive definite.

    x: an array of shape (..., n, n). The result has x's shape and type, float64 of integers and bool. ValueError for
    other shapes; TypeError for float16.

    >>> da.linalg.cholesky(da.asarray([[4., 2], [2, 2]])).tolist()
    [[2.0, 0.0], [1.0, 1.0]]
    """
    return _run("cholesky", x, _UPPER if upper else 0)[0]


def qr(x, /, *, mode="reduced"):
    """Matrices x = Q @ R with orthonormal columns in Q and zeros below the diagonal of R, as a tuple (Q, R).

    Of a matrix with m rows and n columns Q has min(m, n) columns, or m with mode="complete". mode="r" gives R alone.

    x: shape (..., m, n). Both have x's type, float64 of integers and bool. ValueError for an unknown mode and for fewer
    than two dimensions; TypeError for float16.

    >>> da.linalg.qr(da.ones((3, 2))).R.shape
    (2, 2)
    """
    if mode == "r":
        return _run("qr", x, _VALUES)[0]
    if mode not in ("reduced", "complete"):
        raise ValueError(f'qr: mode is "reduced", "complete" or "r", not {mode!r}')
    return QRResult(*_run("qr", x, _FULL if mode == "complete" else 0))


def svd(x, /, *, full_matrices=True):
    """Singular values in descending order, and their vectors: x = U @ diag(S) @ Vh, as a tuple (U, S, Vh).

    Of a matrix with m rows and n columns U is m by m and Vh n by n, or m by k and k by n, k = min(m, n), with
    full_matrices=False. LinAlgError if the iteration does not converge.

    x: shape (..., m, n). U and Vh have x's type, S its real type, float64 of integers and bool. ValueError for fewer
    than two dimensions; TypeError for float16.

    >>> da.linalg.svd(da.ones((3, 2)), full_matrices=False).U.shape
    (3, 2)
    """
    return SVDResult(*_run("svd", x, _FULL if full_matrices else 0))


def svdvals(x, /):
    """The singular values in descending order.

    x: shape (..., m, n). The result has shape (..., min(m, n)) and the real type of x, float64 of integers and bool.
    ValueError for fewer than two dimensions; TypeError for float16; LinAlgError if the iteration does not converge.

    >>> da.linalg.svdvals(da.asarray([[3., 0], [0, 4]])).tolist()
    [4.0, 3.0]
    """
    return _run("svd", x, _VALUES)[0]


def _half(uplo):
    if uplo not in ("L", "U"):
        raise ValueError(f'UPLO is "L" or "U", not {uplo!r}')
    return _UPPER if uplo == "U" else 0


def eigh(x, /, *, UPLO="L"):
    """Eigenvalues in ascending order and eigenvectors, the columns, of Hermitian matrices, as a tuple (eigenvalues,
    eigenvectors). Only the lower half of x is read, or the upper one with UPLO="U".

    x: an array of shape (..., n, n). The eigenvalues have shape (..., n) and the real type of x, the eigenvectors x's
    shape and type, float64 of integers and bool. ValueError for other shapes; TypeError for float16; LinAlgError if the
    iteration does not converge.

    >>> da.linalg.eigh(da.asarray([[2., 0], [0, 1]])).eigenvalues.tolist()
    [1.0, 2.0]
    """
    return EighResult(*_run("eigh", x, _half(UPLO)))


def eigvalsh(x, /, *, UPLO="L"):
    """The eigenvalues of Hermitian matrices in ascending order, as eigh() has them.

    Shapes, types and errors are those of eigh().

    >>> da.linalg.eigvalsh(da.asarray([[2., 0], [0, 1]])).tolist()
    [1.0, 2.0]
    """
    return _run("eigh", x, _VALUES | _half(UPLO))[0]


def eig(x, /):
    """Eigenvalues in no order and eigenvectors, the columns, of square matrices, as a tuple (eigenvalues,
    eigenvectors). Both are complex. LinAlgError for elements that are not finite, and where the iteration does not
    converge.

    x: an array of shape (..., n, n). The eigenvalues have shape (..., n), the eigenvectors x's shape. Their type is
    complex64 of float32 and complex64, else complex128. ValueError for other shapes; TypeError for float16.

    >>> da.linalg.eig(da.asarray([[2., 0], [0, 1]])).eigenvalues.tolist()
    [(2+0j), (1+0j)]
    """
    return EigResult(*_run("eig", x))


def eigvals(x, /):
    """The eigenvalues of square matrices in no order, which are complex.

    Shapes, types and errors are those of eig().

    >>> da.linalg.eigvals(da.asarray([[2., 0], [0, 1]])).tolist()
    [(2+0j), (1+0j)]
    """
    return _run("eig", x, _VALUES)[0]


# --- What is made of them -------------------------------------------------------------------------------------------

def _cutoff(s, rtol, x):
    """The singular values below which others count as zero; with an axis for them."""
    if rtol is None:
        rtol = max(x.shape[-2:]) * _EPS[x.dtype.name]
    if isinstance(rtol, _engine.Array):
        rtol = rtol.reshape(rtol.shape + (1,))
    return _ops["max"](s, axis=-1, keepdims=True) * rtol


def matrix_rank(x, /, *, rtol=None):
    """The ranks of matrices: how many singular values are above rtol (a number, or an array that broadcasts with the
    stack) times the largest. None is the precision of the type times the longer side.

    x: shape (..., m, n). The result has shape (...) and the type int64. ValueError for fewer than two dimensions;
    TypeError for float16.

    >>> da.linalg.matrix_rank(da.ones((3, 3))).item()
    1
    """
    x = _floating("matrix_rank", x)
    s = svdvals(x)
    if not s.shape[-1]:
        return _engine.zeros(s.shape[:-1], dtype="int64", queue=s.queue)
    return _ops["sum"](s > _cutoff(s, rtol, x), axis=-1, dtype="int64")


def pinv(x, /, *, rtol=None):
    """The pseudo-inverses of matrices, by singular values; those up to rtol times the largest count as zero. None is
    the precision of the type times the longer side.

    x: shape (..., m, n). The result has shape (..., n, m) and x's type, float64 of integers and bool. ValueError for
    fewer than two dimensions; TypeError for float16.

    >>> da.round(da.linalg.pinv(da.ones((2, 1))), 6).tolist()
    [[0.5, 0.5]]
    """
    x = _floating("pinv", x)
    if 0 in x.shape[-2:]:
        return _engine.zeros(x.shape[:-2] + (x.shape[-1], x.shape[-2]), dtype=x.dtype, queue=x.queue)
    u, s, vh = svd(x, full_matrices=False)
    large = s > _cutoff(s, rtol, x)
    inverse = _ops["where"](large, 1 / _ops["where"](large, s, 1), 0)
    return matmul(_hermitian(vh) * inverse.reshape(inverse.shape[:-1] + (1, inverse.shape[-1])), _hermitian(u))


def matrix_power(x, n, /):
    """Square matrices multiplied with themselves: n factors, for negative n of the inverse.

    x: an array of shape (..., n, n). The result has x's shape and type; of a negative n those of inv(). ValueError for
    other shapes; TypeError where n is no integer; LinAlgError for a negative n if a matrix is singular.

    >>> da.linalg.matrix_power(da.asarray([[1, 1], [0, 1]]), 3).tolist()
    [[1, 3], [0, 1]]
    """
    from drupe.array import eye

    _arrays("matrix_power", x)
    n = operator.index(n)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"matrix_power takes square matrices, and the shape is {x.shape}")
    if n == 0:
        one = eye(x.shape[-1], dtype=x.dtype, device=x.queue)
        return _engine.broadcast_to(one, x.shape).copy()
    x, n = (inv(x), -n) if n < 0 else (x, n)
    result = None
    while n:
        if n & 1:
            result = x if result is None else matmul(result, x)
        n >>= 1
        x = matmul(x, x) if n else x
    return result if result is not x else x.copy()


def matrix_transpose(x, /):
    """A view with the last two axes exchanged.

    x: shape (..., m, n). The view has shape (..., n, m). ValueError for fewer than two dimensions.

    >>> da.linalg.matrix_transpose(da.ones((2, 3))).shape
    (3, 2)
    """
    from drupe.array import matrix_transpose as transpose

    return transpose(x)


def outer(x1, x2, /):
    """All products of an element of x1 with one of x2, both with one dimension, as a matrix.

    x1: shape (m,). x2: shape (n,). The result has shape (m, n) and their common type. ValueError for other shapes.

    >>> da.linalg.outer(da.asarray([1, 2]), da.asarray([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    _arrays("outer", x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"linalg.outer takes arrays with one dimension, not the shapes {x1.shape} and {x2.shape}: "
                         "drupe.array.outer() flattens")
    return _outer(x1, x2)


def diagonal(x, /, *, offset=0):
    """A view of the diagonals of matrices that begin `offset` to the right, or down for a negative one.

    x: shape (..., m, n), of any type. ValueError for fewer than two dimensions.

    >>> da.linalg.diagonal(da.asarray([[1, 2], [3, 4]])).tolist()
    [1, 4]
    """
    _arrays("diagonal", x)
    if x.ndim < 2:
        raise ValueError(f"diagonal needs 2 dimensions at least, and the array has {x.ndim}")
    return _engine._diagonal(x, operator.index(offset))


def trace(x, /, *, offset=0, dtype=None):
    """The sums of those diagonals, in the type that sum() has.

    x: shape (..., m, n). The result has shape (...). ValueError for fewer than two dimensions.

    >>> da.linalg.trace(da.asarray([[1, 2], [3, 4]])).item()
    5
    """
    return _ops["sum"](diagonal(x, offset=offset), axis=-1, dtype=dtype)


# --- Norms ----------------------------------------------------------------------------------------------------------

def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """Norms of vectors along an axis or several, None for all: the sum of abs(x)**ord, to the power 1/ord. ord may be
    inf and -inf, the largest and the smallest absolute value, and 0, how many elements are not zero.

    x: an array of any shape. keepdims: whether the axes stay, with size 1. The result has the real type of x, float64
    of integers and bool. IndexError: an axis that x does not have.

    >>> da.linalg.vector_norm(da.asarray([3., 4])).item()
    5.0
    """
    x = _real("vector_norm", x)
    axes = some_axes(axis, x.ndim)
    axis = tuple(axes)
    size = _ops["abs"](x)
    if not axes:
        return size if ord else (x != 0).astype(size.dtype)
    if ord == math.inf:
        return _ops["max"](size, axis=axis, keepdims=keepdims)
    if ord == -math.inf:
        return _ops["min"](size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return _ops["sum"](x != 0, axis=axis, keepdims=keepdims, dtype=size.dtype)
    if ord == 1:
        return _ops["sum"](size, axis=axis, keepdims=keepdims)
    if ord == 2:
        return _ops["sqrt"](_ops["sum"](_ops["square"](size), axis=axis, keepdims=keepdims))
    return _ops["sum"](size ** float(ord), axis=axis, keepdims=keepdims) ** (1 / float(ord))


def _real(name, x):
    """x in a floating-point type; float16 too, since norms take any."""
    return x if isinstance(x, _engine.Array) and x.dtype.kind in "fc" else _floating(name, x)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """Norms of matrices: "fro" (of all elements as a vector), "nuc" (the sum of the singular values), 2 and -2 (the
    largest and the smallest of them), 1 and -1 (the largest and the smallest sum of absolute values of a column), inf
    and -inf (of a row).

    x: shape (..., m, n). keepdims: whether the two axes stay, with size 1. The result has the real type of x, float64
    of integers and bool. ValueError for another ord and for fewer than two dimensions.

    >>> da.linalg.matrix_norm(da.asarray([[3., 0], [0, 4]]), ord=1).item()
    4.0
    """
    x = _real("matrix_norm", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_norm needs 2 dimensions at least, and the array has {x.ndim}")
    if ord in ("fro", None):
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord == "nuc" or ord in (2, -2):
        s = svdvals(x)
        norms = _ops["sum" if ord == "nuc" else "max" if ord == 2 else "min"](s, axis=-1)
        return norms.reshape(norms.shape + (1, 1)) if keepdims else norms
    if ord not in (1, -1, math.inf, -math.inf):
        raise ValueError(f'matrix_norm: ord is "fro", "nuc", 1, -1, 2, -2, inf or -inf, not {ord!r}')
    along = -2 if ord in (1, -1) else -1
    sums = _ops["sum"](_ops["abs"](x), axis=along, keepdims=True)
    return _ops["max" if ord > 0 else "min"](sums, axis=(-2, -1), keepdims=keepdims)


def norm(x, ord=None, axis=None, keepdims=False):
    """NumPy's norm: of a vector or a matrix as `axis` is one or two axes; without, as x has one or two dimensions, and
    with ord=None of all elements.

    The result has the real type of x, float64 of integers and bool. IndexError: an axis that x does not have;
    ValueError: an ord that there is not.

    >>> da.linalg.norm(da.asarray([[3., 0], [0, 4]])).item()
    5.0
    """
    from drupe.array import moveaxis

    x = _real("norm", x)
    if axis is None:
        if ord is None:
            return vector_norm(x, keepdims=keepdims)
        if x.ndim not in (1, 2):
            raise ValueError(f"norm with ord of an array with {x.ndim} dimensions needs an axis, or two")
        axis = tuple(range(x.ndim))
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    if len(axes) == 1:
        return vector_norm(x, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2 or len(some_axes(axes, x.ndim)) != 2:
        raise ValueError("norm takes one axis or two different ones")
    norms = matrix_norm(moveaxis(x, axes, (-2, -1)), keepdims=keepdims, ord="fro" if ord is None else ord)
    return moveaxis(norms, (-2, -1), tuple(one_axis(a, x.ndim) for a in axes)) if keepdims else norms


def cond(x, /, p=None):
    """Condition numbers of matrices: how much the solution of a linear system may change relative to its data. By the
    norm p of norm(); None and 2 take the largest and the smallest singular value.

    x: shape (..., m, n), and m = n unless p is None, 2 or -2. The result has shape (...) and the real type of x,
    float64 of integers and bool. ValueError for other shapes and another p; TypeError for float16.

    >>> da.linalg.cond(da.asarray([[4., 0], [0, 2]])).item()
    2.0
    """
    x = _floating("cond", x)
    if p is None or p in (2, -2):
        s = svdvals(x)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return matrix_norm(x, ord=p) * matrix_norm(inv(x), ord=p)
