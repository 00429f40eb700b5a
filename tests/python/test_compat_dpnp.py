"""dpnp's names over drupe.array: every name of dpnp is there, or says what to write instead."""
import importlib
import inspect

import numpy as np
import pytest

import drupe
import drupe.array as da
from drupe.compat import NotProvided, dpnp

# The names of dpnp 0.19 and its development branch.
NAMES = """bool bool_ byte cdouble complex128 complex64 complexfloating csingle double float16 float32 float64
floating inexact int_ int8 int16 int32 int64 integer intc intp longlong number short signedinteger single
ubyte uint8 uint16 uint32 uint64 uintc uintp unsignedinteger ushort ulonglong e euler_gamma inf nan newaxis pi
arange array asanyarray asarray ascontiguousarray asfortranarray astype copy diag diagflat empty empty_like
eye frombuffer fromfile fromfunction fromiter fromstring from_dlpack full full_like geomspace identity
linspace loadtxt logspace meshgrid mgrid ogrid ones ones_like trace tri tril triu vander zeros zeros_like
append array_split asarray_chkfinite asfarray atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to
column_stack concat concatenate copyto delete dsplit dstack expand_dims flip fliplr flipud hsplit hstack
insert matrix_transpose moveaxis ndim pad permute_dims ravel repeat reshape resize roll rollaxis rot90
row_stack shape size split squeeze stack swapaxes tile transpose trim_zeros unstack vsplit vstack binary_repr
bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
bitwise_xor invert left_shift right_shift common_type finfo iinfo isdtype issubdtype can_cast result_type
dtype apply_along_axis apply_over_axes choose compress diag_indices diag_indices_from diagonal extract
fill_diagonal indices iterable ix_ mask_indices ndindex nonzero place put put_along_axis putmask
ravel_multi_index select take take_along_axis tril_indices tril_indices_from triu_indices triu_indices_from
unravel_index dot einsum einsum_path inner kron matmul matvec outer tensordot vdot vecdot vecmat all allclose
any array_equal array_equiv equal greater greater_equal isclose iscomplex iscomplexobj isfinite isfortran
isinf isnan isneginf isposinf isreal isrealobj isscalar less less_equal logical_and logical_not logical_or
logical_xor not_equal abs absolute add angle around ceil clip conj conjugate copysign cross cumprod cumsum
cumulative_prod cumulative_sum diff divmod divide ediff1d fabs fix float_power floor floor_divide fmax fmin
fmod frexp gcd gradient heaviside imag interp lcm ldexp maximum minimum mod modf multiply nan_to_num negative
nextafter positive pow power prod real real_if_close remainder rint round sign signbit sinc subtract sum
trapezoid true_divide trunc nancumprod nancumsum nanprod nansum convolve arccos arccosh arcsin arcsinh arctan
arctan2 arctanh asin asinh acos acosh atan atan2 atanh cbrt cos cosh deg2rad degrees exp exp2 expm1 hypot log
log10 log1p log2 logaddexp logaddexp2 logsumexp rad2deg radians reciprocal reduce_hypot rsqrt sin sinh sqrt
square tan tanh unwrap broadcast_shapes unique unique_all unique_counts unique_inverse unique_values isin
count_nonzero flatnonzero nanargmax nanargmin argmax argmin argwhere searchsorted where argsort partition sort
sort_complex bincount digitize histogram histogram_bin_edges nanmax nanmean nanmedian nanmin nanstd nanvar
amax amin average corrcoef correlate cov max mean median min ptp std var bartlett blackman hamming hanning
kaiser are_same_logical_tensors asnumpy as_usm_ndarray check_limitations check_supported_arrays_type
default_float_type get_normalized_queue_device get_result_array get_usm_ndarray get_usm_ndarray_or_scalar
is_cuda_backend is_supported_array_or_scalar is_supported_array_type synchronize_array_data ndarray""".split()
ABSENT = """require piecewise flatiter i0 proj spacing cumlogsumexp byte_bounds get_include histogram2d
histogramdd get_dpnp_descriptor""".split()
RANDOM = """beta binomial bytes chisquare choice dirichlet exponential f gamma geometric gumbel hypergeometric
laplace logistic lognormal logseries multinomial multivariate_normal negative_binomial normal
noncentral_chisquare noncentral_f pareto permutation poisson power rand randint randn random random_integers
random_sample ranf rayleigh RandomState sample seed shuffle standard_cauchy standard_exponential
standard_gamma standard_normal standard_t triangular uniform vonmises wald weibull zipf""".split()
LINALG = """LinAlgError cholesky cond cross det diagonal eig eigh eigvals eigvalsh inv lstsq matmul
matrix_norm matrix_power matrix_rank matrix_transpose multi_dot norm outer pinv qr solve svd svdvals slogdet
tensordot tensorinv tensorsolve trace vecdot vector_norm""".split()
FFT = """fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2
rfftfreq rfftn""".split()


@pytest.mark.parametrize("name", NAMES)
def test_names(name):
    found = getattr(dpnp, name)
    assert name in dpnp.__all__ and (found is not None or name == "newaxis")
    if name in dpnp._names.SAME:
        ours = getattr(da, name)
        assert ours in (found, inspect.unwrap(found)) or found != found  # nan


@pytest.mark.parametrize("name", [*ABSENT, "scipy", "special", "exceptions", "config", "polynomial"])
def test_absent_names_say_what_to_write(name):
    with pytest.raises(AttributeError, match=f"does not provide dpnp.{name}. [A-Z].*"):
        getattr(dpnp, name)
    with pytest.raises(NotProvided):
        getattr(dpnp, name)


@pytest.mark.parametrize("module, names", [("random", RANDOM), ("linalg", LINALG), ("fft", FFT)])
def test_names_of_modules(module, names):
    module = importlib.import_module("drupe.compat.dpnp." + module)
    for name in names:
        assert getattr(module, name) is not None and name in module.__all__
    with pytest.raises(AttributeError):
        module.nonsense  # noqa: B018


def test_absent_names_of_modules():
    for name in ("lu_factor", "lu_solve"):
        with pytest.raises(AttributeError, match="Write solve"):
            getattr(dpnp.linalg, name)
    with pytest.raises(AttributeError, match="drupe.array.random has"):
        dpnp.random.default_rng  # noqa: B018


# --- Programs -----------------------------------------------------------------------------------------------

def test_black_scholes(device):
    rng = np.random.default_rng(1)
    price, strike, t = rng.uniform(10, 50, 1000), rng.uniform(10, 50, 1000), rng.uniform(1, 2, 1000)

    def call(np, price, strike, t, rate=0.1, vol=0.2):
        a = np.log(price / strike) + t * (rate + vol * vol / 2)
        b = vol * np.sqrt(t)
        normal = 1 / (1 + np.exp(-1.702 * (a / b)))
        return np.where(normal > 0.5, price * normal, price - strike * np.exp(-rate * t))

    got = call(dpnp, *(dpnp.asarray(one, device=device.filter_string) for one in (price, strike, t)))
    assert isinstance(got, dpnp.ndarray) and got.device == device
    assert np.allclose(dpnp.asnumpy(got), call(np, price, strike, t), rtol=1e-12)


def test_distances(device):
    x = np.random.default_rng(2).random((30, 3))
    a = dpnp.asarray(x, device=device)
    got = dpnp.sqrt(dpnp.square(a[:, None, :] - a[None, :, :]).sum(axis=2))
    assert np.allclose(got.asnumpy(), np.sqrt(((x[:, None] - x[None]) ** 2).sum(2)))
    assert float(dpnp.linalg.norm(a)) == pytest.approx(np.linalg.norm(x))
    assert np.allclose(dpnp.fft.ifft(dpnp.fft.fft(a)).asnumpy(), x)


# --- Where arrays are made ----------------------------------------------------------------------------------

def test_placement(queue):
    from drupe.compat import dpctl

    theirs = dpctl.SyclDevice(queue.device.filter_string)
    for place in ({"device": queue.device}, {"device": queue.device.filter_string}, {"sycl_queue": queue},
                  {"device": queue}, {"device": theirs}, {"sycl_queue": dpctl.SyclQueue(theirs)}):
        for made in (dpnp.zeros(3, **place), dpnp.arange(3, **place), dpnp.asarray([1, 2], **place),
                     dpnp.hamming(3, **place), dpnp.ndarray((2, 2), dtype="f4", **place),
                     dpnp.full_like(dpnp.zeros(2), 1, **place)):
            assert isinstance(made, dpnp.ndarray) and made.device == queue.device
    assert dpnp.zeros(3, sycl_queue=queue).queue == queue and dpnp.zeros(2, usm_type="shared").usm_type == "shared"
    for wrong in ({"like": 1}, {"subok": True}):
        with pytest.raises(NotImplementedError, match="leave it out"):
            dpnp.zeros(3, **wrong)
    with pytest.raises(NotProvided, match="dpnp.asarray"):
        dpnp.ndarray(3, buffer=b"12345678")


def test_helpers(queue):
    x = dpnp.asarray([1.0, 2.0], sycl_queue=queue)
    usm = dpnp.get_usm_ndarray(x)
    assert isinstance(usm, dpnp.tensor.usm_ndarray) and dpnp.are_same_logical_tensors(usm, x)
    assert dpnp.get_usm_ndarray(usm) is usm is dpnp.as_usm_ndarray(usm) and dpnp.get_usm_ndarray_or_scalar(3) == 3
    assert dpnp.as_usm_ndarray([1], sycl_queue=queue).sycl_queue.sycl_device.filter_string == \
        queue.device.filter_string
    assert dpnp.asarray(usm) is x and dpnp.asnumpy(usm).tolist() == [1, 2] and dpnp.is_supported_array_type(usm)
    assert dpnp.is_supported_array_type(x) and not dpnp.is_supported_array_type(np.ones(2))
    assert dpnp.is_supported_array_or_scalar(2.5) and dpnp.check_supported_arrays_type(x, 2, scalar_type=True)
    for wrong in ((np.ones(2),), (x, 2)):
        with pytest.raises(TypeError, match="array on a device is expected"):
            dpnp.check_supported_arrays_type(*wrong)
    with pytest.raises(TypeError, match="at least"):
        dpnp.check_supported_arrays_type(1, 2, scalar_type=True)
    assert dpnp.are_same_logical_tensors(x, x[:]) and not dpnp.are_same_logical_tensors(x, x[::-1])
    assert not dpnp.are_same_logical_tensors(x, dpnp.copy(x))
    out = dpnp.empty(2, dtype="float64", sycl_queue=queue)
    assert dpnp.get_result_array(x) is x and dpnp.get_result_array(x, out) is out and out.tolist() == [1, 2]
    assert dpnp.get_normalized_queue_device(x) == queue and dpnp.default_float_type(sycl_queue=queue).kind == "f"
    assert dpnp.is_cuda_backend(x) == (queue.device.backend.name == "cuda")
    assert dpnp.synchronize_array_data(x) is None and dpnp.check_limitations() is None
    assert dpnp.asnumpy(x, order="F").tolist() == [1, 2] and dpnp.asnumpy([3]).tolist() == [3]
    assert isinstance(dpnp.tensor.asarray([1]), dpnp.tensor.usm_ndarray)
    assert dpnp.tensor.broadcast_shapes((2, 1), (3,)) == (2, 3) and "get_execution_queue" in dir(dpnp.tensor)
    assert dpnp.tensor.get_execution_queue([usm.sycl_queue, usm.sycl_queue]) == usm.sycl_queue


# --- Functions that are written here ------------------------------------------------------------------------

X = np.array([[1.5, -2.25, np.inf, 0.0], [-0.0, 3.0, -np.inf, 7.75]])


@pytest.mark.parametrize("function", [
    lambda np, x: np.modf(x)[0], lambda np, x: np.modf(x)[1],
    lambda np, x: np.modf(x[:, :2].astype("int32"))[1],
    lambda np, x: np.resize(x, (3, 5)), lambda np, x: np.resize(x[:0], 3), lambda np, x: np.trim_zeros(x[1]),
    lambda np, x: np.trim_zeros(x[0], "f"), lambda np, x: np.trim_zeros(x[0] == 99),
    lambda np, x: np.apply_over_axes(np.sum, x[:, :2], (0, -1)),
    lambda np, x: np.sort_complex(x[0, :2] + 1j * x[1, 1:3:-1][:0].sum()),
    lambda np, x: np.sort_complex(np.asarray([[2 + 1j, 1 + 5j, 2 - 1j, 1 + 0j]] * 2)),
    lambda np, x: np.asarray(np.mask_indices(3, np.triu)[1]), lambda np, x: np.hanning(7),
    lambda np, x: np.kaiser(5, 14),
    lambda np, x: np.bartlett(6), lambda np, x: np.blackman(6), lambda np, x: np.hamming(1),
    lambda np, x: np.linalg.tensorinv(np.eye(24).reshape(4, 6, 8, 3), ind=2),
    lambda np, x: np.linalg.tensorsolve(np.eye(2 * 3 * 4).reshape(2 * 3, 4, 2, 3, 4) * 2, np.ones((2 * 3, 4))),
])
def test_written(function, device):
    want = function(np, X)
    with drupe.device(device.filter_string):
        got = function(dpnp, dpnp.asarray(X))
    assert str(got.dtype) == str(want.dtype) and got.shape == want.shape
    assert np.allclose(got.asnumpy(), want, equal_nan=True)
    if want.dtype.kind == "f" and want.ndim < 3:
        assert np.array_equal(np.signbit(got.asnumpy()), np.signbit(want))


def test_written_without_arrays(device, tmp_path):
    x = dpnp.asarray(X, device=device)
    assert dpnp.ndim(x) == 2 and dpnp.ndim(3) == 0 and dpnp.ndim([[1]]) == 2
    assert dpnp.shape(x) == (2, 4) and dpnp.size(x) == 8 and dpnp.size(x, 1) == 4 and dpnp.shape([1]) == (1,)
    assert dpnp.issubdtype(x.dtype, dpnp.floating) and not dpnp.issubdtype(x.dtype, dpnp.integer)
    assert dpnp.issubdtype(dpnp.int32, dpnp.signedinteger)
    assert dpnp.common_type(x, dpnp.ones(2, dtype="int32")) == np.float64
    assert dpnp.iterable(x) and not dpnp.iterable(3) and dpnp.binary_repr(5) == "101"
    assert list(dpnp.ndindex(1, 2)) == [(0, 0), (0, 1)]
    assert dpnp.einsum_path("ij,jk", x, x.T)[0] == np.einsum_path("ij,jk", X, X.T)[0]
    assert dpnp.asfarray([1, 2]).dtype == np.float64 and dpnp.asfarray(x, "float32").dtype == np.float32
    with pytest.raises(ValueError, match="infinite"):
        dpnp.asarray_chkfinite(x)
    assert dpnp.asarray_chkfinite([1, 2]).tolist() == [1, 2]
    file = tmp_path / "numbers"
    file.write_text("1 2\n3 4\n")
    assert dpnp.loadtxt(file).tolist() == [[1, 2], [3, 4]] and dpnp.fromfile(file, sep=" ").tolist() == [1, 2, 3, 4]
    assert dpnp.fromstring("1 2", sep=" ").tolist() == [1, 2]
    with pytest.raises(ValueError, match="one dimension"):
        dpnp.trim_zeros(x)


def test_products_and_putmask(device):
    rng = np.random.default_rng(3)
    matrix, vector = rng.random((3, 4, 5)), rng.random((3, 5)) + 1j
    a, b = dpnp.asarray(matrix, device=device), dpnp.asarray(vector, device=device)
    assert np.allclose(dpnp.matvec(a, b).asnumpy(), np.einsum("bij,bj->bi", matrix, vector))
    assert np.allclose(dpnp.vecmat(b, dpnp.transpose(a, (0, 2, 1))).asnumpy(),
                       np.einsum("bj,bij->bi", vector.conj(), matrix))
    x, mask = np.arange(10), np.arange(10) % 3 == 0
    mine = dpnp.asarray(x, device=device)
    dpnp.putmask(mine, dpnp.asarray(mask, device=device), dpnp.asarray([-1, -2, -3, -4], device=device))
    np.putmask(x, mask, [-1, -2, -3, -4])
    assert mine.tolist() == x.tolist()
    dpnp.putmask(mine, mine > 5, 0)
    assert mine.max() == 5


# --- NumPy's places and names of arguments ------------------------------------------------------------------

@pytest.mark.parametrize("function", [
    lambda np, x: np.triu(x, 1), lambda np, x: np.tril(m=x, k=-1), lambda np, x: np.sum(x, 0, None, None, True),
    lambda np, x: np.sum(a=x, axis=1, dtype="float32"), lambda np, x: np.max(x, 1, None, True),
    lambda np, x: np.std(x, 0, None, None, 1), lambda np, x: np.clip(x, a_min=1, a_max=3),
    lambda np, x: np.clip(x, 1, 3, None), lambda np, x: np.eye(3, 4, 1), lambda np, x: np.zeros((2, 3), "int32", "F"),
    lambda np, x: np.full((2,), 7, "int16", "C"), lambda np, x: np.linspace(0, 1, 5, False),
    lambda np, x: np.where(x > 2, x, 0),
    lambda np, x: np.concatenate((x, x), 1, None), lambda np, x: np.tensordot(x, x, 2),
    lambda np, x: np.isin(x, x[0], False, True), lambda np, x: np.searchsorted(x[0], x[1], "right"),
    lambda np, x: np.reshape(x, (8,), "C"), lambda np, x: np.sort(x, 0, None), lambda np, x: np.copy(x, "C", False),
    lambda np, x: np.take(x, np.asarray([0, 1]), 1, None, "wrap"), lambda np, x: np.tile(A=x, reps=2),
])
def test_arguments(function, device):
    x = np.arange(8.0).reshape(2, 4)
    with drupe.device(device.filter_string):
        got = function(dpnp, dpnp.asarray(x))
    want = function(np, x)
    assert str(got.dtype) == str(want.dtype) and np.array_equal(got.asnumpy(), want)


def test_refused_arguments(device):
    x = dpnp.ones(4, device=device)
    for call in (lambda: dpnp.sum(x, initial=3), lambda: dpnp.max(x, where=x > 1), lambda: dpnp.isin(x, x, True),
                 lambda: dpnp.sort(x, 0, None, "f")):
        with pytest.raises(NotProvided, match="takes no .*= here: leave it out"):
            call()
    with pytest.raises(TypeError):
        dpnp.sum(x, nonsense=3)
    with pytest.raises(TypeError, match="does not become"):
        dpnp.get_result_array(x, dpnp.empty(4, dtype="int32", device=device))


# --- Random numbers -----------------------------------------------------------------------------------------

def test_random(device):
    place = {"device": device.filter_string}
    dpnp.random.seed(7, **place)
    first = dpnp.random.rand(3, **place)
    dpnp.random.seed(7, **place)
    assert dpnp.random.rand(3, **place).tolist() == first.tolist() and first.device == device
    assert float(dpnp.random.normal(5, 0.001, 100, **place).mean()) == pytest.approx(5, abs=0.01)
    whole = dpnp.random.random_integers(3, size=200, **place)
    assert (int(whole.min()), int(whole.max())) == (1, 3)
    assert dpnp.random.poisson(3.0, 4).shape == (4,)
    for wrong in ({"usm_type": "shared"}, {"sycl_queue": device.queue}):
        with pytest.raises(NotProvided):
            dpnp.random.uniform(0, 1, 3, **wrong)


def test_random_state(queue):
    state, again = (dpnp.random.RandomState(5, sycl_queue=queue) for _ in range(2))
    assert state.get_sycl_queue() == queue and state.get_sycl_device() == queue.device
    drawn = [state.rand(2, 3), state.randn(4), state.normal(1, 2, 5, dtype="float32"), state.uniform(size=2),
             state.randint(10, size=6), state.random_sample(3), state.standard_normal((2, 2))]
    other = [again.rand(2, 3), again.randn(4), again.normal(1, 2, 5, dtype="float32"), again.uniform(size=2),
             again.randint(10, size=6), again.random_sample(3), again.standard_normal((2, 2))]
    for one, same in zip(drawn, other):
        assert one.tolist() == same.tolist() and one.queue == queue
    assert drawn[2].dtype == np.float32 and drawn[4].dtype == np.int64
    with pytest.raises(NotProvided, match="leave usm_type= out"):
        state.rand(2, usm_type="host")


def test_with_kernels(queue):
    """numba_dpex and dpnp together, as their programs use them."""
    from drupe.compat import numba_dpex as dpex

    @dpex.kernel
    def add(item, a, b, c):
        i = item.get_id(0)
        c[i] = a[i] + dpnp.float32(b[i])

    a = dpnp.arange(10, dtype=dpnp.float32, sycl_queue=queue)
    c = dpnp.empty_like(a)
    dpex.call_kernel(add, dpex.Range(a.size), a, dpnp.ones_like(a), c)
    assert c.tolist() == list(range(1, 11))
