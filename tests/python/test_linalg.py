"""Products and factorisations of matrices against NumPy's."""
import itertools
import math
import os
import subprocess
import sys

import numpy as np
import pytest

import drupe
import drupe.array as da
from drupe.array import linalg

COMPLEX = [name for name in ("complex64", "complex128") if hasattr(da, name)]
TYPES = ["float32", "float64", *COMPLEX]
STACKS = [(), (3,), (2, 0), (2, 3)]
SIZES = [(3, 3), (5, 3), (3, 5), (0, 3), (3, 0), (1, 1), (0, 0), (40, 40)]


def numbers(shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    return rng.normal(size=shape).astype(dtype) if dtype.kind == "f" else rng.integers(0, 100, shape).astype(dtype)


def close(got, expected, scale=1.0):
    """Equal up to rounding, and of the same shape and type."""
    expected = np.asarray(expected)
    assert isinstance(got, da.Array) and got.shape == expected.shape and got.dtype.name == expected.dtype.name
    unit = 200 * scale * np.finfo(expected.dtype).eps if expected.dtype.kind in "fc" else 0
    largest = np.abs(expected).max() if expected.size else 0
    np.testing.assert_allclose(got.asnumpy(), expected, rtol=unit, atol=unit * max(largest, 1))


def swap(x):
    return np.conj(np.swapaxes(x, -1, -2))


def definite(shape, dtype):
    x = numbers(shape, dtype)
    return x @ swap(x) + shape[-1] * np.eye(shape[-1], dtype=dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("stack", STACKS)
def test_square(device, stack, dtype):
    for n in (1, 4, 0, 40):
        a = numbers(stack + (n, n), dtype) + 5 * np.eye(n, dtype=dtype)
        x = da.asarray(a, device=device)
        close(linalg.inv(x), np.linalg.inv(a), 10)
        close(linalg.det(x), np.linalg.det(a), 10)
        got, expected = linalg.slogdet(x), np.linalg.slogdet(a)
        close(got.sign, expected[0], 10)
        close(got.logabsdet, expected[1], 10)
        for shape in ((n,), (n, 3), stack + (n, 2), (n, 0), (n, 1)):
            b = numbers(shape, dtype, 1)
            close(linalg.solve(x, da.asarray(b, device=device)), np.linalg.solve(a, b), 10)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("stack", STACKS)
def test_hermitian(device, stack, dtype):
    for n in (1, 4, 0, 40):
        a = definite(stack + (n, n), dtype)
        x = da.asarray(a, device=device)
        lower = linalg.cholesky(x)
        close(lower, np.linalg.cholesky(a))
        upper = linalg.cholesky(x, upper=True)
        close(upper, swap(np.linalg.cholesky(a)))
        values, vectors = linalg.eigh(x)
        close(values, np.linalg.eigh(a)[0])
        v = vectors.asnumpy()
        assert v.dtype == dtype and v.shape == a.shape
        np.testing.assert_allclose(a @ v, v * values.asnumpy()[..., None, :], atol=1e-3 if "64" not in dtype else 1e-9
                                   if dtype != "complex64" else 1e-2, rtol=1e-4)
        one_half = np.tril(a) + np.triu(np.full_like(a, 7), 1)
        close(linalg.eigvalsh(da.asarray(one_half, device=device)), np.linalg.eigvalsh(a))
        close(linalg.eigvalsh(da.asarray(swap(one_half), device=device), UPLO="U"), np.linalg.eigvalsh(a))
        close(linalg.cholesky(da.asarray(one_half, device=device)), np.linalg.cholesky(a))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("stack", STACKS)
def test_any_shape(device, stack, dtype):
    for m, n in SIZES:
        a = numbers(stack + (m, n), dtype)
        x = da.asarray(a, device=device)
        for mode in ("reduced", "complete"):
            got, expected = linalg.qr(x, mode=mode), np.linalg.qr(a, mode=mode)
            close(got.Q, expected[0])
            close(got.R, expected[1])
        close(linalg.qr(x, mode="r"), np.linalg.qr(a, mode="r"))
        close(linalg.svdvals(x), np.linalg.svd(a, compute_uv=False))
        for full in (True, False):
            got, expected = linalg.svd(x, full_matrices=full), np.linalg.svd(a, full_matrices=full)
            close(got.S, expected[1])
            u, s, vh = (part.asnumpy() for part in got)
            assert u.shape == expected[0].shape and vh.shape == expected[2].shape and u.dtype == vh.dtype == dtype
            k = min(m, n)
            unit = np.finfo(dtype).eps
            np.testing.assert_allclose((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, atol=1000 * unit)
            for orthogonal in (swap(u) @ u, vh @ swap(vh)):
                np.testing.assert_allclose(orthogonal, np.broadcast_to(np.eye(orthogonal.shape[-1]), orthogonal.shape),
                                           atol=1000 * unit)
        close(linalg.pinv(x), np.linalg.pinv(a), 100)
        if min(m, n):
            assert np.array_equal(linalg.matrix_rank(x).asnumpy(), np.linalg.matrix_rank(a))
        else:
            assert linalg.matrix_rank(x).asnumpy().tolist() == np.zeros(stack, int).tolist()


def test_eig(device):
    if not COMPLEX:
        with pytest.raises(drupe.UnsupportedError, match="complex results"):
            linalg.eig(da.ones((2, 2), device=device))
        return
    for dtype, stack, n in itertools.product(TYPES, STACKS, (1, 5, 0, 20)):
        if dtype.startswith("complex") and device.backend.name != "host":
            continue
        a = numbers(stack + (n, n), dtype)
        x = da.asarray(a, device=device)
        values, vectors = linalg.eig(x)
        w, v = values.asnumpy(), vectors.asnumpy()
        assert w.dtype == v.dtype == np.result_type(dtype, "complex64") and v.shape == a.shape
        np.testing.assert_allclose(a @ v, v * w[..., None, :], atol=1e-3 if w.dtype == "complex64" else 1e-10)
        np.testing.assert_allclose(np.sort_complex(linalg.eigvals(x).asnumpy()), np.sort_complex(w), atol=1e-3)
    with pytest.raises(linalg.LinAlgError, match="infinite or NaN"):
        linalg.eigvals(da.full((2, 2), math.nan, device=device)).asnumpy()


def test_ranks(device):
    a = np.outer(np.arange(4.0), np.arange(4.0))
    x = da.asarray(a, device=device)
    assert linalg.matrix_rank(x).item() == 1 and linalg.matrix_rank(da.zeros((3, 3), device=device)).item() == 0
    assert linalg.matrix_rank(da.eye(3, device=device), rtol=2.0).item() == 0
    two = da.asarray(np.stack([np.diag([1, 1e-3]), np.diag([1, 1e-3])]), device=device)
    assert linalg.matrix_rank(two, rtol=da.asarray([1e-2, 1e-4], device=device)).tolist() == [1, 2]
    close(linalg.pinv(x), np.linalg.pinv(a), 10)
    close(linalg.pinv(two, rtol=1e-2), np.linalg.pinv(two.asnumpy(), 1e-2))


def test_failures(device):
    """What cannot be computed is told where the result is read."""
    singular = np.stack([np.eye(2), np.zeros((2, 2)), np.eye(2)])
    for function, x, words in ((linalg.inv, np.zeros((2, 2)), "inv: the matrix is singular"),
                               (linalg.inv, singular, "inv: matrix 1 of the 3 is singular"),
                               (lambda a: linalg.solve(a, da.ones(2, device=device)), np.zeros((2, 2)), "singular"),
                               (linalg.cholesky, -np.eye(2), "not positive definite"),
                               (linalg.svdvals, np.full((3, 3), np.nan), "converge"),
                               (lambda a: linalg.matrix_power(a, -2), np.zeros((2, 2)), "singular")):
        with pytest.raises(linalg.LinAlgError, match=words):
            function(da.asarray(x, device=device)).asnumpy()
    assert issubclass(linalg.LinAlgError, ValueError) and linalg.LinAlgError is drupe.LinAlgError
    assert linalg.det(da.zeros((2, 2), device=device)).item() == 0
    assert linalg.slogdet(da.zeros((2, 2), device=device)).logabsdet.item() == -math.inf


def test_arguments(device):
    x = da.ones((2, 3), device=device)
    for function, error, words in ((lambda: linalg.inv(x), ValueError, "square"),
                                   (lambda: linalg.det(x), ValueError, "square"),
                                   (lambda: linalg.svd(x[0]), ValueError, "2 dimensions"),
                                   (lambda: linalg.solve(x, x), ValueError, "square"),
                                   (lambda: linalg.solve(da.eye(2, device=device), x[0]), ValueError, "rows"),
                                   (lambda: linalg.qr(x, mode="raw"), ValueError, "mode"),
                                   (lambda: linalg.eigh(x[:, :2], UPLO="X"), ValueError, "UPLO"),
                                   (lambda: linalg.svd(np.ones((2, 2))), TypeError, "asarray"),
                                   (lambda: linalg.matrix_norm(x, ord=3), ValueError, "ord"),
                                   (lambda: linalg.matrix_power(x, 2), ValueError, "square"),
                                   (lambda: linalg.outer(x, x), ValueError, "one dimension")):
        with pytest.raises(error, match=words):
            function()
    close(linalg.inv(da.asarray([[2, 0], [0, 4]], device=device)), np.linalg.inv([[2, 0], [0, 4]]))


@pytest.mark.parametrize("shape", [(6,), (3, 4), (2, 3, 4)])
def test_norms(device, shape):
    for dtype in ("float32", "float64", "int64", *COMPLEX):
        a = numbers(shape, dtype)
        x = da.asarray(a, device=device)
        for ord, axis, keep in itertools.product((0, 1, 2, 3, 0.5, -1, np.inf, -np.inf), (None, 0, -1), (False, True)):
            close(linalg.vector_norm(x, axis=axis, keepdims=keep, ord=ord),
                  np.linalg.vector_norm(a.astype(float) if dtype == "int64" else a, axis=axis, keepdims=keep, ord=ord))
        if len(shape) < 2:
            continue
        for ord, keep in itertools.product(("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf), (False, True)):
            close(linalg.matrix_norm(x, keepdims=keep, ord=ord), np.linalg.matrix_norm(a, keepdims=keep, ord=ord), 10)
            close(linalg.norm(x, ord, (0, 1), keep), np.linalg.norm(a, ord, (0, 1), keep), 10)
    a = numbers(shape)
    x = da.asarray(a, device=device)
    close(linalg.norm(x), np.linalg.norm(a))
    close(linalg.norm(x, axis=-1), np.linalg.norm(a, axis=-1))
    if len(shape) == 2:
        close(linalg.norm(x, 1), np.linalg.norm(a, 1))
        for p in (None, 2, -2, 1, np.inf, "fro"):
            close(linalg.cond(x[:, :3], p), np.linalg.cond(a[:, :3], p), 1000)


def test_least_squares(device):
    for m, n, k in ((5, 3, 0), (3, 5, 0), (4, 0, 2), (0, 3, 2), (5, 3, 2), (3, 5, 2), (4, 4, 1), (5, 3, None)):
        a, b = numbers((m, n)), numbers((m,) if k is None else (m, k), seed=1)
        got = linalg.lstsq(da.asarray(a, device=device), da.asarray(b, device=device))
        expected = np.linalg.lstsq(a, b, rcond=None)
        for i in (0, 1, 3):
            close(got[i], expected[i], 10)
        assert got[2] == expected[2]
    a[:, 1] = a[:, 0]
    got = linalg.lstsq(da.asarray(a, device=device), da.asarray(b, device=device))
    assert got[2] == 2 and got[1].shape == (0,)


DTYPES = [name for name in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
                            "float32", "float64", "complex64", "complex128") if hasattr(da, name)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_matmul(device, dtype):
    for one, two in (((2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,)), ((5, 2, 3), (5, 3, 4)),
                     ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((4, 1, 2, 3), (5, 3, 2)), ((5, 2, 3), (3,)),
                     ((3,), (5, 3, 4)), ((5, 2, 0), (5, 0, 2)), ((0, 2, 3), (3, 2)), ((70, 65), (65, 67)),
                     ((3, 20, 30), (3, 30, 9)), ((200, 1, 7), (7, 20)), ((2, 129, 3), (2, 3, 1))):
        a, b = numbers(one, dtype), numbers(two, dtype, 1)
        if dtype == "float16":
            a, b = a.round(), b.round()
        x, y = da.asarray(a, device=device), da.asarray(b, device=device)
        close(x @ y, a @ b)
        if a.ndim > 1 and b.ndim > 1:
            close(x[..., ::-1] @ y[..., ::-1, :], a @ b)
            backwards = da.asarray(np.swapaxes(a, -1, -2), device=device)
            close(da.matrix_transpose(backwards) @ y[..., ::-1], a @ b[..., ::-1])
            close(da.matmul(da.matrix_transpose(y), da.matrix_transpose(x)), np.swapaxes(a @ b, -1, -2))


@pytest.mark.parametrize("dtype", ["float32", "float64", *COMPLEX])
@pytest.mark.parametrize("shape", [(70, 33), (33, 70), (200, 3), (3, 40, 9), (1, 5)])
def test_products_with_the_own_transpose(device, dtype, shape):
    a = numbers(shape, dtype)
    x = da.asarray(a, device=device)
    turned = np.swapaxes(a, -1, -2)
    close(x @ da.matrix_transpose(x), a @ turned)
    close(da.matrix_transpose(x) @ x, turned @ a)
    close(x[..., :-1] @ da.matrix_transpose(x)[..., :-1, :], a[..., :-1] @ turned[..., :-1, :])
    close(x[..., ::2, :] @ da.matrix_transpose(x), a[..., ::2, :] @ turned)  # not its own


def test_matmul_errors(device):
    x = da.ones((2, 3), device=device)
    with pytest.raises(ValueError, match="last but one"):
        da.ones((2, 2, 2), device=device) @ da.ones((2, 3, 2), device=device)
    with pytest.raises(ValueError, match="broadcast"):
        da.ones((2, 2, 3), device=device) @ da.ones((4, 3, 2), device=device)
    with pytest.raises(ValueError, match="zero-dimensional"):
        da.matmul(x, da.asarray(1.0, device=device))


@pytest.mark.parametrize("dtype", ["int32", "float64", *COMPLEX[1:]])
def test_products(device, dtype):
    a, b = numbers((2, 3, 4), dtype), numbers((4, 3, 2), dtype, 1)
    x, y = da.asarray(a, device=device), da.asarray(b, device=device)
    for axes in (0, 1, ((1, 2), (1, 0)), ((0, -1), (2, 0)), (1, 1), ((), ())):
        close(da.tensordot(x, y, axes=axes), np.tensordot(a, b, axes=axes))
    close(da.dot(x, y[:, 0, 0]), np.dot(a, b[:, 0, 0]))
    close(da.dot(x, da.permute_dims(y, (1, 0, 2))), np.dot(a, b.transpose(1, 0, 2)))
    close(da.inner(x[0], x), np.inner(a[0], a))
    close(da.vdot(x, x), np.vdot(a, a))
    close(da.outer(x[0], y[0]), np.outer(a[0], b[0]))
    close(da.kron(x, y), np.kron(a, b))
    close(da.kron(x[0], y[0, 0]), np.kron(a[0], b[0, 0]))
    close(da.cross(x[:, :, 0], y[0, :, 1]), np.cross(a[:, :, 0], b[0, :, 1]))
    close(da.cross(x, x[::-1], axis=1), np.cross(a, a[::-1], axis=1))
    close(da.vecdot(x, x[0]), np.vecdot(a, a[0]) if hasattr(np, "vecdot") else np.sum(np.conj(a) * a[0], -1))
    close(da.vecdot(x, x, axis=-3), np.sum(np.conj(a) * a, 0, dtype=a.dtype))
    for offset in (0, 1, -1, 3, -2, 9, -9):
        close(da.diagonal(x, offset), np.diagonal(a, offset))
        close(da.diagonal(x[:, ::-1], offset, 2, 0), np.diagonal(a[:, ::-1], offset, 2, 0))
        close(linalg.diagonal(x, offset=offset), np.diagonal(a, offset, -2, -1))
        close(linalg.trace(x, offset=offset), np.trace(a, offset, -2, -1))
    close(linalg.multi_dot([x[0, 0], da.permute_dims(x[0], (1, 0)), x[0], y[:, 0]]),
          np.linalg.multi_dot([a[0, 0], a[0].T, a[0], b[:, 0]]))
    for n in (0, 1, 2, 5, -1, -3):
        if n >= 0 or dtype != "int32":
            close(linalg.matrix_power(x[:, :2, :2], n), np.linalg.matrix_power(a[:, :2, :2], n), 1000)
    with pytest.raises(ValueError, match="sizes|axis"):
        da.tensordot(x, y, axes=2)


EINSUMS = [("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ij,ij->", (2, 3), (2, 3)), ("ij->ji", (2, 3)),
           ("ii", (3, 3)), ("ii->i", (3, 3)), ("ij->", (2, 3)), ("ij->j", (2, 3)), ("i,j->ij", (2,), (3,)),
           ("i,j", (2,), (3,)), ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)), ("...ij,...jk->...ik", (5, 2, 3), (3, 4)),
           ("...ij,...jk", (5, 1, 2, 3), (4, 3, 2)), ("...i->...", (2, 3)), ("i...,i...->i...", (3, 2), (3, 2)),
           ("ijk,ilm,njm,nlk,abc->", (2, 3, 4), (2, 3, 4), (2, 3, 4), (2, 3, 4), (2, 1, 2)),
           ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)), ("ij,jk,kl->li", (2, 3), (3, 4), (4, 5)), ("iij->j", (3, 3, 2)),
           ("ij,kj->ik", (2, 3), (4, 3)), ("ji,jk->ik", (3, 2), (3, 4)), ("ij,ij->ij", (2, 3), (2, 3)),
           ("ij,j->ij", (2, 3), (3,)), ("ij,jk->k", (2, 3), (3, 4)), ("ij,kl->ik", (2, 3), (4, 5)), (",", (), ()),
           ("i,->i", (3,), ()), ("ab,cd->dacb", (2, 3), (4, 5)), ("bi,bj->bij", (4, 2), (4, 3)),
           ("iji,i->j", (2, 3, 2), (2,)), ("ij,jk->ik", (2, 0), (0, 4)), ("ij,ij->i", (2, 1), (2, 3)),
           ("...,...", (2, 3), (3,)), ("i...->...i", (2, 3, 4)),
           ("b...i,...i->b...", (2, 4, 3), (4, 3))]


@pytest.mark.parametrize("text, shapes", [(text, shapes) for text, *shapes in EINSUMS])
def test_einsum(device, text, shapes):
    for dtype in ("float64", "int32", "bool"):
        a = [numbers(shape, "int32" if dtype == "bool" else dtype, i) for i, shape in enumerate(shapes)]
        a = [x % 3 == 0 if dtype == "bool" else x for x in a]
        x = [da.asarray(each, device=device) for each in a]
        close(da.einsum(text, *x), np.einsum(text, *a), 10)
        close(da.einsum(text, *x, optimize=False), np.einsum(text, *a), 10)


def test_einsum_arguments(device):
    x = da.ones((2, 3), device=device)
    close(da.einsum(x, [0, 1], x, [2, 1], [2, 0]), np.full((2, 2), 3, x.dtype.name))
    close(da.einsum(x, [0, ...]), np.einsum(np.ones((2, 3), x.dtype.name), [0, ...]))
    for text, words in (("ij,jk->ik", "2 operands"), ("ijk->i", "does not fit"), ("ij->ik", "is in no operand"),
                        ("ij->ii", "twice"), ("i1->i", "no letter"), ("i->i", "does not fit"), ("i...->i", "needs")):
        with pytest.raises(ValueError, match=words):
            da.einsum(text, x)
    with pytest.raises(ValueError, match="sizes"):
        da.einsum("ij,ij->ij", x, da.ones((2, 4), device=device))
    with pytest.raises(TypeError, match="asarray"):
        da.einsum("ij->i", np.ones((2, 3)))


def test_products_of_few_bytes_that_would_never_end(device):
    """A broadcast view may have 2^58 elements: the copy that it would take is refused, and nothing is submitted."""
    for dtype in ("int64", "int8", "float32", "bool"):
        x = da.ones(1, dtype=dtype, device=device)
        many = da.broadcast_to(x, (1 << 58,))
        for left, right in ((many, many), (da.broadcast_to(x, (2, 1 << 58)), many)):
            with pytest.raises(MemoryError):
                left @ right
        few, matrix = da.broadcast_to(x, (3,)), da.broadcast_to(x, (4, 3, 3))
        assert (few @ few).item() == (1 if dtype == "bool" else 3)
        close(matrix @ few, np.ones((4, 3, 3), dtype) @ np.ones(3, dtype))


def test_providers(device):
    rows = da.providers(device)
    assert {row.operation for row in rows} >= {"matmul", "solve", "inv", "det", "cholesky", "qr", "svd", "eigh"}
    for row in rows:
        assert row.device == device.filter_string and isinstance(row.dtype, da.DType)
        assert row.library == "" or os.path.isfile(row.library) or "/" not in row.library
        if row.operation == "matmul" and row.dtype.kind in "biu":
            assert row.provider in ("Drupe", "kernels of Drupe")


OWN = """
import numpy as np, drupe.array as da
from drupe.array import linalg
for dtype in [name for name in ("float32", "float64", "complex64", "complex128") if hasattr(da, name)]:
    rng = np.random.default_rng(3)
    a = rng.normal(size=(2, 6, 6)) + (1j * rng.normal(size=(2, 6, 6)) if dtype[0] == "c" else 0)
    a, unit = a.astype(dtype), np.finfo(dtype).eps
    x, h = da.asarray(a, device="host"), a @ np.conj(np.swapaxes(a, -1, -2)) + np.eye(6, dtype=dtype)
    def close(got, expected):
        assert np.allclose(got.asnumpy(), expected, atol=5000 * unit, rtol=5000 * unit), (dtype, expected)
    close(x @ x, a @ a)
    close(linalg.inv(x) @ x, np.broadcast_to(np.eye(6), (2, 6, 6)))
    close(linalg.solve(x, x[..., :2]), np.eye(6)[:, :2] + np.zeros((2, 1, 1)))
    close(linalg.det(x), np.linalg.det(a))
    for upper in (False, True):
        factor = linalg.cholesky(da.asarray(h, device="host"), upper=upper).asnumpy()
        assert (np.tril(factor, -1) == 0).all() if upper else (np.triu(factor, 1) == 0).all()
        other = np.conj(np.swapaxes(factor, -1, -2))
        close(da.asarray(other @ factor if upper else factor @ other), h)
    for rows, mode in ((6, "reduced"), (6, "complete"), (3, "complete"), (3, "reduced")):
        for part in (a[:, :rows], a[:, :, :rows]):
            q, r = (y.asnumpy() for y in linalg.qr(da.asarray(part, device="host"), mode=mode))
            close(da.asarray(q @ r), part)
            close(da.asarray(np.conj(np.swapaxes(q, -1, -2)) @ q), np.stack([np.eye(q.shape[-1])] * 2))
            assert (np.tril(r, -1) == 0).all()
    for broken, words in ((lambda: linalg.inv(da.zeros((2, 2), device="host")), "singular"),
                          (lambda: linalg.cholesky(-da.eye(2, device="host")), "positive")):
        try:
            broken().asnumpy()
        except linalg.LinAlgError as error:
            assert words in str(error)
        else:
            raise AssertionError(words)
try:
    linalg.svd(da.eye(2, device="host"))
except Exception as error:
    print(type(error).__name__, error)
print({row.provider for row in da.providers("host")} == {"Drupe", None})
"""


def test_without_a_library():
    done = subprocess.run([sys.executable, "-c", OWN], env={**os.environ, "DRUPE_BLAS": "none"}, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("DriverUnavailableError svd needs LAPACK") and "DRUPE_BLAS is none" in first
    assert "install NumPy" in first and second == "True"
