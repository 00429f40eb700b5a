"""Functions and methods that drupe.array has beside the standard, with NumPy's names: each call is made of both."""
import numpy as np
import pytest

import drupe
import drupe.array as da

# V, W, U: one dimension, of int64 and float64; A, F, G: matrices; C: three dimensions; M, N: bools; S: special numbers.
HOST = {
    "V": np.array([3, -1, 4, 1, -5, 9]), "W": np.array([2.0, 0.5, -1.5, 0.0, 3.25, 1.0]),
    "U": np.array([0.5, 2.0, -1.0]),
    "A": np.array([[1, 2, 3], [4, 5, 6]]), "F": np.array([[1.5, -2.25, 0.0], [4.0, 5.5, -0.5]]),
    "G": np.array([[1.0, 2.0, 3.0], [-4.0, 5.0, 6.0]]), "C": np.arange(24).reshape(2, 3, 4),
    "M": np.array([True, False, True, True, False, False]), "N": np.array([[True], [False]]),
    "S": np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5, 1e300]), "Z": np.array(5.0), "E": np.zeros((0, 3)),
    "I": np.array([-7, -1, 0, 1, 7, 100], dtype="int32"), "Q": np.array([1.0, 2.0, 4.0, 7.0]),
}

CALLS = """
var(F, ddof=1) | std(F, axis=1, ddof=1) | std(F, 0, ddof=0, keepdims=True) | average(F, 1, returned=True)
average(F, returned=True) | average(F, weights=G * G, axis=0, returned=True) | meshgrid(V, W, sparse=True)
meshgrid(V, W, U, copy=False) | meshgrid(V, U, indexing="ij", sparse=True, copy=False) | linspace(0, 3, 7, retstep=True)
linspace(2, 3, 4, endpoint=False, retstep=True) | intersect1d(A, V, return_indices=True) | sort(W, kind="stable")
intersect1d(I[:4], I[2:], True, True) | argsort(W, kind="mergesort") | partition(W, 2, kind="introselect")[2]
unique(V, sorted=True)
ravel(A) | ravel(A, order="F") | ravel(C[:, ::2]) | ravel(Z) | transpose(C) | transpose(C, (1, 0, 2))
swapaxes(C, 0, -1) | rollaxis(C, 2) | rollaxis(C, 0, 3) | rollaxis(C, -1, 1) | rollaxis(C, 1, -1) | atleast_1d(Z)
atleast_1d(A) | atleast_2d(Z) | atleast_2d(V) | atleast_3d(Z) | atleast_3d(V) | atleast_3d(A) | atleast_3d(C)
atleast_2d(V, A) | array_split(V, 4) | array_split(V, [2, 3]) | array_split(V, [1, -1]) | array_split(A, 2, axis=1)
array_split(V, 9) | split(V, 3) | split(V, [4, 5]) | split(C, 2, -1) | hsplit(A, 3) | hsplit(V, 2) | vsplit(A, 2)
dsplit(C, [1, 3]) | concatenate([V, V]) | concatenate([A, F], 1) | concatenate([A, F], axis=None)
concatenate([V, M], dtype="float64") | hstack([V, V]) | hstack([A, F]) | vstack([V, V]) | vstack([A, F, F])
dstack([V, V]) | dstack([A, F]) | dstack([C, C]) | column_stack([V, W]) | column_stack([V, C.reshape(6, 4)])
row_stack([V, W]) | block([[A, F], [F, A]]) | block([V, V]) | block(A) | block([[V], [V]]) | block([[C, C]])
append(V, V) | append(A, F, axis=0) | append(V, A) | append(V, 7) | fliplr(A) | flipud(A) | rot90(A) | rot90(A, 2)
rot90(A, 3) | rot90(A, -3) | rot90(A, 4) | rot90(C, 1, (1, 2)) | rot90(C, 3, (2, 0)) | pad(V, 2)
pad(V, (1, 3), constant_values=(7, 8)) | pad(A, ((1, 0), (2, 1)), constant_values=3) | pad(A, 1, "edge")
pad(C, ((0, 1), (2, 0), (1, 1)), "edge") | pad(V, 3, "reflect") | pad(V, (13, 17), "reflect")
pad(A, ((3, 4), (5, 2)), "symmetric") | pad(V, (7, 20), "symmetric") | pad(V, (2, 3), "wrap") | pad(A, (5, 8), "wrap")
pad(F, 2, "linear_ramp", end_values=9.0) | pad(V, (3, 2), "linear_ramp", end_values=(20, -3))
pad(F, (1, 2), "maximum") | pad(F, 1, "minimum", stat_length=2) | pad(V, 2, "mean")
pad(F, ((1, 2), (0, 3)), "mean", stat_length=1) | pad(E, 1) | pad(V[:1], 3, "reflect") | identity(3)
identity(2, dtype="int32") | tri(3) | tri(3, 4, 1) | tri(2, 3, -1, dtype="int64") | indices((2, 3))
indices((2, 3), sparse=True) | indices(()) | diagonal(A) | diagonal(A, 1) | diagonal(A, -1) | diagonal(A, 5)
diagonal(C) | diagonal(C, 1, 2, 0) | diagonal(C, -1, 1, 2) | diagonal(C[:, ::2]) | trace(A) | trace(C)
trace(C, 1, 1, 2) | trace(F) | diag(V) | diag(V, 2) | diag(V, -1) | diag(A) | diag(A, 1) | diag(A, -5) | diagflat(A)
diagflat(A, -2) | vander(V) | vander(V, 3) | vander(W, 4, increasing=True) | vander(V, 0) | vander(I, 2)
logspace(0, 3, 4) | logspace(1, 2, 5, endpoint=False, base=2.0) | logspace(0, 1) | geomspace(1, 1000, 4)
geomspace(-1, -8, 4) | geomspace(1, 256, 9, endpoint=False) | geomspace(2, 5, 1) | geomspace(1, 4, 0) | mgrid[0:3]
mgrid[0:2, 1:4] | mgrid[0:1:3j, 0:2] | ogrid[0:2, 1:4] | mgrid[0:1:0.25] | mgrid[-1:1:5j] | ix_([0, 1], [2, 3, 4])
ix_([1]) | fromfunction(lambda i, j: i * 10 + j, (2, 3)) | fromiter((i * i for i in range(5)), "float64")
fromiter(range(9), "int32", 4) | frombuffer(b"\\x01\\x00\\x00\\x00\\x02\\x00\\x00\\x00", "int32")
frombuffer(bytes(24), "float64", 1, 8) | array([1, 2, 3]) | array([[1.5]], ndmin=4) | array([1, 2], dtype="float32")
asanyarray([1, 2]) | ascontiguousarray(C.T) | ascontiguousarray(5.0) | copy(F.T) | around(F) | round(F, 1)
around(W * 111.0, -1) | round(V, 2) | around(V * 7, -1) | rint(F) | fix(F) | fmod(V, 3) | fmod(V, -3) | fmod(W, 0.75)
fmod(F, G) | fmod(7, I) | fmod(-7, I) | fmod(I, 0) | fmod(S, 2.0) | divmod(V, 4) | divmod(W, -0.75)
float_power(V, 2) | float_power(W, 0.5) | float_power(2, V) | fabs(V) | fabs(F) | fmax(S, 0.5) | fmin(S, 0.5)
fmax(0.5, S) | fmin(F, G) | fmax(V, 2) | fmax(V, W) | fmax(S, S[::-1]) | fmin(S, np.nan) | fmax(np.nan, S)
heaviside(S, 0.5) | heaviside(V, 2) | heaviside(0.0, W) | heaviside(W, U[:1]) | deg2rad(V) | radians(W) | rad2deg(W)
degrees(V) | exp2(V) | exp2(W) | cbrt(W) | cbrt(S) | cbrt(V) | logaddexp2(W, 1.0) | logaddexp2(S, S) | sinc(W)
sinc(V) | nan_to_num(S) | nan_to_num(S, nan=1.0, posinf=2.0, neginf=3.0) | nan_to_num(V) | isposinf(S) | isneginf(S)
iscomplexobj(F) | isrealobj(F) | iscomplex(F) | isreal(S) | isscalar(3) | isscalar(np.float64(3)) | isscalar([1])
ldexp(W, 3) | ldexp(W, V) | ldexp(3.0, V) | mod(V, 4) | power(V, 2) | true_divide(V, 2) | absolute(V) | invert(V)
bitwise_not(V) | left_shift(V, 2) | right_shift(V, 1) | arcsin(U / 2) | arccos(U / 2) | arctan(W) | arctan2(W, 2.0)
arcsinh(W) | arccosh(G[:1]) | arctanh(U / 4) | amax(F, 0) | amin(F, 1) | isclose(F, F + 1e-9) | isclose(S, S)
isclose(S, S, equal_nan=True) | isclose(V, 4) | isclose(V, V, 0, 0) | isclose(3.0, W) | isclose(M, M) | allclose(F, F)
allclose(F, G) | allclose(S, S, equal_nan=True) | array_equal(F, F) | array_equal(F, A[:1]) | array_equal(V, W)
array_equal(S, S) | array_equal(S, S, equal_nan=True) | array_equiv(Z, Z) | array_equiv(A, A[:1]) | array_equiv(N, N)
array_equiv(V, A) | average(F) | average(F, axis=0) | average(F, weights=G) | average(F, axis=1, weights=U)
average(V) | average(F, 1, keepdims=True) | ptp(F) | ptp(C, axis=1) | ptp(V) | ediff1d(V)
ediff1d(A, to_begin=V[:2], to_end=V[:1]) | ediff1d(V[:0]) | gradient(Q) | gradient(Q, 2.0)
gradient(Q, W[:4] + Q * 3.0) | gradient(G[:, :] * G) | gradient(C * C, axis=(0, 2)) | gradient(Q, edge_order=2)
gradient(C * C, 2.0, U * U + V[:3] * V[:3] * 3.0, Q, axis=(0, 1, 2)) | gradient(Q, Q * Q, edge_order=2)
gradient(V, axis=0) | polyval([1, 0, 2], V) | polyval(U, W) | polyval([], V) | convolve(V, U) | convolve(U, V, "same")
convolve(V, V[:4], "same") | convolve(V, U, "valid") | convolve(V, V) | correlate(V, U) | correlate(V, U, "full")
correlate(U, V, "full") | correlate(U, V, "same") | correlate(V, V[:4], "same") | correlate(V[:4], V, "same")
correlate(U, V) | apply_along_axis(lambda v: v[:2] * 2, 0, A) | apply_along_axis(lambda v: v.sum(), 1, C)
apply_along_axis(lambda v: v[::-1], -1, C) | diag_indices(3) | diag_indices(2, 3) | diag_indices_from(C[:, :2, :2])
tril_indices(3) | tril_indices(3, 1, 4) | triu_indices(3, -1) | triu_indices(2, 1, 4) | tril_indices_from(A)
triu_indices_from(A, 1) | unravel_index(I[3:], (4, 5, 6)) | unravel_index(I[3:], (4, 5, 6), "F")
ravel_multi_index((V[:1], V[2:3]), (5, 6)) | ravel_multi_index((V, V), (5, 4), "wrap")
ravel_multi_index((V, V), (5, 4), "clip", "F") | frexp(S) | frexp(W) | frexp(V) | frexp(W * 1e-310) | real_if_close(W)
gcd(V, 6) | gcd(I, V) | lcm(V, 6) | lcm(I, V) | gcd(0, V) | lcm(V, 0) | unwrap(W * 4) | unwrap(V, period=6.5)
unwrap(F * 5, axis=0) | intersect1d(V, A) | setdiff1d(A, V) | setxor1d(V, A) | flip(A, 0) | roll(A, 1, 1)
repeat(A, 2, 1) | stack([A, A], 1) | take(A, V[:1] - 2, 0) | argmax(F, 0) | sort(F, 0) | delete(A, 1, 1)
insert(A, 1, 9, 1) | compress(M[:2], A, 0)
"""
METHODS = """
C.ravel() | C.T.ravel("F") | C.flatten() | A.flatten("F") | A.transpose() | C.transpose(1, 0, 2)
C.transpose((2, 0, 1)) | C.swapaxes(0, 2) | A[None].squeeze() | A[None, :, None].squeeze(0) | V.repeat(2)
A.repeat(2, 1) | V.clip(0, 3) | V.clip(None, 3) | W.clip(0.0) | F.round() | F.round(1) | F.mean() | F.mean(0)
A.mean(1) | F.mean(axis=(0, 1), keepdims=True) | A.mean(0, "float32") | F.std() | F.std(0) | F.var(1) | V.var(ddof=1)
A.std(0, None, None, 1, True) | C.diagonal() | C.trace() | A.ptp() | A.sum(0) | A.sum(0, "float64")
A.sum(axis=1, keepdims=True) | A.prod(1) | A.max(0) | A.min(1) | C.max((0, 1)) | N.any(0) | N.all(1) | M.sum()
A.max(1, None, True) | C.argmax() | C.argmin(1) | F.argmax(axis=0) | A.argmax(1, keepdims=True) | F.argsort()
F.argsort(0) | F.argsort(None) | Q.searchsorted(U) | Q.searchsorted(Q, "right") | A.cumsum() | A.cumsum(0)
A.cumsum(1, "float64") | A.cumprod(1) | V.nonzero() | A.take([2, 0]) | A.take([2, 0], 1) | A.take(V[:1] - 2, axis=0)
V.compress(M) | A.compress(M[:2], 0) | W.conj() | F.conjugate() | A.T.dot(F) | W.dot(V) | C.reshape(4, 6)
C.reshape((4, 6), order="F") | C.reshape(-1, order="F") | C.T.reshape(6, -1) | A.view()
"""
NUMPYS_OWN = {"A.ptp()": lambda a: np.ptp(a["A"]), "row_stack([V, W])": lambda a: np.vstack([a["V"], a["W"]])}


def calls(text):
    return [call.strip() for line in text.strip().split("\n") for call in line.split(" | ")]


def same(got, expected, call):
    if isinstance(expected, (list, tuple)):
        assert type(got) in (list, tuple) and len(got) == len(expected), call
        for one, other in zip(got, expected):
            same(one, other, call)
        return
    if isinstance(got, da.Array):
        got = got.asnumpy()
    expected = np.asarray(expected)
    assert np.shape(got) == expected.shape, call
    assert np.asarray(got).dtype == expected.dtype, call
    np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-13, err_msg=call)


@pytest.fixture(scope="module")
def everywhere():
    made = {}

    def arrays(device):
        if device not in made:
            made[device] = {name: da.asarray(a, device=device) for name, a in HOST.items()}
        return made[device]

    return arrays


@pytest.mark.parametrize("call", calls(CALLS) + calls(METHODS))
def test_against_numpy(device, everywhere, call):
    with np.errstate(all="ignore"):
        expected = NUMPYS_OWN[call](HOST) if call in NUMPYS_OWN else eval(call, {**vars(np), "np": np, **HOST})
    ours = {name: getattr(da, name) for name in da.__all__}
    same(eval(call, {**ours, "np": np, **everywhere(device)}), expected, call)


def test_names_that_only_new_numpys_have(device, everywhere):
    arrays = everywhere(device)
    f, q, v = HOST["F"], HOST["Q"], HOST["V"]
    integral = ((f[:, 1:] + f[:, :-1]) / 2 * 0.5).sum(-1)
    same(da.trapezoid(arrays["F"], dx=0.5), integral, "trapezoid dx")
    middle = (HOST["W"][1:4] + HOST["W"][:3]) / 2
    same(da.trapezoid(arrays["W"][:4], arrays["Q"]), (middle * np.diff(q)).sum(), "trapezoid x")
    bits = np.array([bin(abs(n)).count("1") for n in v.tolist()], "uint8")
    same(da.bitwise_count(arrays["V"]), bits, "bitwise_count")
    same(da.reduce_hypot(arrays["F"], axis=1), np.sqrt((f * f).sum(1)), "reduce_hypot")
    same(da.reduce_hypot(arrays["F"] * 1e200) * 1e-200, np.sqrt((f * f).sum()), "reduce_hypot of large numbers")
    same(da.logsumexp(arrays["F"], axis=0), np.log(np.exp(f).sum(0)), "logsumexp")
    same(da.rsqrt(arrays["Q"]), 1 / np.sqrt(q), "rsqrt")


def test_writing_in_place(device, everywhere):
    x, a = everywhere(device)["F"].copy(), HOST["F"].copy()
    da.fill_diagonal(x, 7.0)
    np.fill_diagonal(a, 7.0)
    same(x, a, "fill_diagonal")
    view, other = x.T, a.T
    da.fill_diagonal(view, 3.0)
    np.fill_diagonal(other, 3.0)
    same(x, a, "fill_diagonal of a view")
    da.copyto(x, 5.0, where=everywhere(device)["N"])
    np.copyto(a, 5.0, where=HOST["N"])
    same(x, a, "copyto")
    out = da.empty((3,), device=device)
    assert x.sum(0, None, out) is out and da.max(x, axis=0, out=out) is out
    same(out, a.max(0), "out")
    with pytest.raises(ValueError, match="shape of the result"):
        da.sum(x, axis=1, out=out)
    with pytest.raises(TypeError, match="Array"):
        da.sum(x, axis=0, out=a)
    x.fill(2)
    same(x, np.full_like(a, 2), "fill")


def test_diagonals_beyond_every_matrix():
    x = da.ones((2, 2), device="host")
    for k in (-2**63 - 1, 2**64):
        assert not bool(da.any(da.eye(2, k=k) != 0))
        assert bool(da.all(da.tril(x, k=k) == (k > 0))) and bool(da.all(da.triu(x, k=k) == (k < 0)))


def test_numbers_of_arrays_in_lists(device, everywhere):
    x, a = everywhere(device)["F"], HOST["F"]
    listed = [[x[i, j] for j in range(3)] for i in range(2)]
    same(da.asarray(listed, device=device), a, "nested lists of arrays without dimensions")
    same(da.asarray([x[0, 0], 2, True], dtype="float32", device=device), np.asarray([1.5, 2, 1], "float32"), "mixed")


@pytest.mark.parametrize("call, error, words", [
    ("ravel([1])", TypeError, "asarray"), ("split(V, 4)", ValueError, "array_split"),
    ("array_split(V, 0)", ValueError, "larger"), ("vsplit(V, 2)", ValueError, "2 dimensions"),
    ("block([[A], []])", ValueError, "same depth"), ("pad(V, -1)", ValueError, "negative"),
    ("pad(V, 1, 'odd')", ValueError, "there is no mode"), ("pad(E, 1, 'edge')", ValueError, "empty axis"),
    ("rot90(A, 1, (0, 0))", ValueError, "two different"), ("reshape(A.T, 6, copy=False)", ValueError, "copy=False"),
    ("A.reshape(6, order='X')", ValueError, "order"), ("array(A, order='X')", ValueError, "order"),
    ("diag(C)", ValueError, "1 dimension"), ("geomspace(-1, 1)", ValueError, "same sign"),
    ("gradient(V[:1])", ValueError, "2 elements"), ("convolve(V, V, 'x')", ValueError, "mode"),
    ("average(F, weights=V)", ValueError, "weights"), ("V.resize(3)", TypeError, "pad"),
    ("V.view('int8')", TypeError, "astype"), ("stack([A, V])", ValueError, "differ"),
    ("V.to_device('host', stream=1)", ValueError, "stream"), ("mgrid[3]", TypeError, "slices"),
    ("fromiter([1], 'int64', 2)", ValueError, "gave 1"),
    ("ravel_multi_index((V, V), (5, 5))", ValueError, "out of bounds"),
    ("apply_along_axis(max, 0, E[:, :0])", ValueError, "no parts"), ("swapaxes(A, 0, 5)", IndexError, "out of bounds"),
])
def test_errors_say_what_to_do(everywhere, call, error, words):
    arrays = everywhere(drupe.Device("host"))
    with pytest.raises(error, match=words):
        eval(call, {**{name: getattr(da, name) for name in da.__all__}, **arrays})
