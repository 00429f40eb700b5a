"""Statistics, against NumPy's."""
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ordered import FLOATS, arrays, close, one_of_each_kind, quick, same

import drupe.array as da

METHODS = ("linear hazen weibull median_unbiased normal_unbiased interpolated_inverted_cdf lower higher nearest "
           "midpoint inverted_cdf averaged_inverted_cdf closest_observation").split()


def sample(*shape, nan=False):
    a = np.random.default_rng(7).standard_normal(shape)
    if nan:
        a[np.random.default_rng(8).random(shape) < 0.3] = np.nan
    return a


@pytest.mark.parametrize("axis, keepdims", [(None, False), (None, True), (0, False), (-1, True), ((0, 2), True),
                                            ((0, 2), False)])
@pytest.mark.parametrize("nan", [False, True])
def test_medians_and_quantiles(device, axis, keepdims, nan):
    for shape in ((5, 4, 3), (4, 1, 6)) if axis == 0 else ((5, 4, 3),):
        a = sample(*shape, nan=nan)
        a[0, 0] = np.abs(a[0, 0])
        x = da.asarray(a, device=device)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in ("median", "nanmedian"):
                expected = getattr(np, name)(a, axis, keepdims=keepdims)
                close(getattr(da, name)(x, axis, keepdims=keepdims), expected, 1e-12)
            for name, q in (("quantile", 0.3), ("nanquantile", [0, 0.5, 0.9, 1]), ("percentile", [25, 75]),
                            ("nanpercentile", 10)):
                expected = getattr(np, name)(a, q, axis, keepdims=keepdims)
                close(getattr(da, name)(x, q, axis, keepdims=keepdims), expected, 1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2, 5, 10])
def test_methods_of_quantiles(device, method, n):
    a = sample(n)
    x = da.asarray(a, device=device)
    q = np.linspace(0, 1, 21)
    close(da.quantile(x, q.tolist(), method=method), np.quantile(a, q, method=method), 1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_methods_without_nan(device, method, dtype):
    a = sample(8, 5, nan=True).astype(dtype)
    a[0], a[1], a[2, 1:] = np.nan, np.arange(5), np.nan
    x = da.asarray(a, device=device)
    q = np.linspace(0, 1, 21)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Numbers as np.float64, which are not rounded to float32 as those of Python are.
        wanted = np.nanquantile(a.astype(float), q, 1, method=method)
    close(da.nanquantile(x, q.tolist(), 1, method=method), wanted.astype(dtype), 1e-12 if dtype == "float64" else 1e-6)
    close(da.nanpercentile(x, (100 * q[::5]).tolist(), method=method, keepdims=True),
          np.nanpercentile(a.astype(float), 100 * q[::5], method=method, keepdims=True).astype(dtype), 1e-6)


def test_covariances_with_weights(device):
    a, often, much = sample(3, 6), np.array([1, 0, 3, 2, 1, 1]), np.array([0.5, 1, 2, 0, 1, 4])
    x, f, w = (da.asarray(part, device=device) for part in (a, often, much))
    for ours, theirs in (({"fweights": f}, {"fweights": often}), ({"aweights": w}, {"aweights": much}),
                         ({"fweights": f, "aweights": much.tolist()}, {"fweights": often, "aweights": much})):
        close(da.cov(x, **ours), np.cov(a, **theirs), 1e-12)
        close(da.cov(x, x[::-1], bias=True, **ours), np.cov(a, a[::-1], bias=True, **theirs), 1e-12)
    close(da.cov(x + 1j * x[::-1], aweights=w), np.cov(a + 1j * a[::-1], aweights=much), 1e-12)
    for wrong, error, text in (({"fweights": f[1:]}, ValueError, "as many as"),
                               ({"aweights": -w}, ValueError, "negative"), ({"fweights": w}, TypeError, "integers")):
        with pytest.raises(error, match=text):
            da.cov(x, **wrong)


def test_interp_around_a_period(device):
    a, xp, fp = sample(20) * 400, np.array([190.0, -190, 350, -350]), np.array([5.0, 10, 3, 4])
    x, p, f = (da.asarray(part, device=device) for part in (a, xp, fp))
    for period in (360, -360, 90.5):
        close(da.interp(x, p, f, period=period), np.interp(a, xp, fp, period=period), 1e-12)
    with pytest.raises(ValueError, match="period"):
        da.interp(x, p, f, period=0)


def test_infinite_quantiles(device):
    x = da.asarray([-np.inf, 1.0, np.nan, np.inf], device=device)
    assert da.nanquantile(x, [0, 0.5, 1]).tolist() == [-np.inf, 1.0, np.inf]


def test_quantiles_of_other_types(device):
    a = np.array([5, 1, 2, 8], "int32")
    x = da.asarray(a, device=device)
    close(da.median(x), np.median(a))
    close(da.quantile(x, 0.4), np.quantile(a, 0.4))
    close(da.quantile(x, da.asarray([0.0, 0.4], device=device)), np.quantile(a, [0, 0.4]))
    f = sample(5).astype("float32")
    close(da.median(da.asarray(f, device=device)), np.median(f))
    infinite = da.asarray([np.inf, 1.0, np.inf], device=device)
    assert da.median(infinite).item() == np.inf
    nested = [[0, 0.5], [0.9, 1]]
    close(da.quantile(x, nested), np.quantile(a, nested))


def test_quantiles_refused(device):
    x = da.asarray([1.0, 2.0], device=device)
    for call in (lambda: da.quantile(x, 1.1), lambda: da.percentile(x, -1), lambda: da.quantile(x, 0.5, method="mean"),
                 lambda: da.median(x[:0])):
        with pytest.raises(ValueError, match="quantile"):
            call()


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("dtype", [*FLOATS, "int64"])
def test_reductions_without_nan(device, axis, dtype):
    one_of_each_kind(device, dtype)
    a = sample(6, 5, nan=dtype != "int64")
    a[:, 1] = 1.5
    a[3] = 2.25
    a = (a * 4).astype(dtype) if dtype == "int64" else a.astype(dtype)
    x = da.asarray(a, device=device)
    rtol = {"float16": 2e-2, "float32": 1e-5}.get(dtype, 1e-12)
    for name in ("nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd"):
        close(getattr(da, name)(x, axis), getattr(np, name)(a, axis), rtol)
        close(getattr(da, name)(x, axis, keepdims=True), getattr(np, name)(a, axis, keepdims=True), rtol)
    close(da.nanvar(x, axis, ddof=1), np.nanvar(a, axis, ddof=1), rtol)
    for name in ("nanargmax", "nanargmin"):
        same(getattr(da, name)(x, axis), getattr(np, name)(a, axis))
    for name in ("nancumsum", "nancumprod"):
        close(getattr(da, name)(x, axis), getattr(np, name)(a, axis), rtol)


def test_rows_of_nan_alone(device):
    x = da.asarray([[np.nan, np.nan], [1.0, np.nan]], device=device)
    for name in ("nanmax", "nanmin", "nanmean", "nanvar", "nanmedian"):
        got = getattr(da, name)(x, 1).asnumpy()
        assert np.isnan(got[0]) and got[1] == (0 if name == "nanvar" else 1)
    with pytest.raises(ValueError, match="NaNs alone"):
        da.nanargmax(x, 1)


def test_covariances(device):
    a, b = sample(3, 8), sample(2, 8)
    x, y = da.asarray(a, device=device), da.asarray(b, device=device)
    close(da.cov(x), np.cov(a), 1e-12)
    close(da.cov(x, y, bias=True), np.cov(a, b, bias=True), 1e-12)
    close(da.cov(x.T, rowvar=False, ddof=0), np.cov(a, ddof=0), 1e-12)
    close(da.cov(x[0]), np.cov(a[0]), 1e-12)
    close(da.cov(x[0], x[1]), np.cov(a[0], a[1]), 1e-12)
    close(da.corrcoef(x), np.corrcoef(a), 1e-12)
    close(da.corrcoef(x, y), np.corrcoef(a, b), 1e-12)


def test_bincount(device):
    a = np.random.default_rng(1).integers(0, 9, 40_000)
    w = np.random.default_rng(2).random(40_000)
    x, v = da.asarray(a, device=device), da.asarray(w, device=device)
    same(da.bincount(x), np.bincount(a))
    same(da.bincount(x, minlength=20), np.bincount(a, minlength=20))
    close(da.bincount(x, v), np.bincount(a, w), 1e-12)
    same(da.bincount(x[:0], minlength=2), np.bincount(a[:0], minlength=2))
    same(da.bincount(da.asarray([70_000], device=device)), np.bincount([70_000]))
    for wrong in (da.asarray([-1], device=device), x.reshape((2, -1)), v):
        with pytest.raises(ValueError, match="bincount"):
            da.bincount(wrong)


@pytest.mark.parametrize("right", [False, True])
def test_digitize(device, right):
    a, edges = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 7.0]), np.array([0.0, 1.0, 2.0])
    x, e = da.asarray(a, device=device), da.asarray(edges, device=device)
    same(da.digitize(x, e, right), np.digitize(a, edges, right))
    same(da.digitize(x, e[::-1], right), np.digitize(a, edges[::-1], right))
    with pytest.raises(ValueError, match="rise or fall"):
        da.digitize(x, da.asarray([0.0, 2.0, 1.0], device=device))


@given(a=arrays(["float64", "int64"], max_dims=2, min_side=1), data=st.data())
@quick
def test_histogram(device, a, data):
    a = np.where(np.isfinite(a), a, 0).clip(-1000, 1000)
    bins = data.draw(st.sampled_from([1, 4, 10, [-2.0, 0.0, 0.5, 3.0]]))
    density = data.draw(st.booleans())
    with np.errstate(all="ignore"):
        counts, edges = np.histogram(a, bins, density=density)
        got, at = da.histogram(da.asarray(a, device=device), bins, density=density)
    close(at, edges, 1e-12)
    close(got, counts, 1e-9)


def test_histogram_with_weights_and_range(device):
    a, w = sample(500), np.abs(sample(500))
    x, v = da.asarray(a, device=device), da.asarray(w, device=device)
    for options in ({"range": (-1, 1)}, {"bins": 7, "range": (0, 2)}):
        for got, expected in zip(da.histogram(x, weights=v, **options), np.histogram(a, weights=w, **options)):
            close(got, expected, 1e-12)
    for options in ({"bins": 0}, {"range": (1, 0)}, {"bins": [1.0, 0.0]}):
        with pytest.raises(ValueError, match="histogram"):
            da.histogram(x, **options)


RULES = "auto doane fd rice scott sqrt stone sturges".split()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.filterwarnings("ignore:The number of bins")
def test_rules_for_bins(device, rule):
    rng = np.random.default_rng(4)
    samples = (rng.standard_normal(700), rng.exponential(3, (20, 11)), rng.integers(0, 200, 300), np.array([1.5, 2, 9]),
               np.array([3.0, 3, 3]), np.array([2.0]))
    for a in samples:
        x = da.asarray(a, device=device)
        close(da.histogram_bin_edges(x, rule), np.histogram_bin_edges(a, rule), 1e-9)
        for got, expected in zip(da.histogram(x, rule), np.histogram(a, rule)):
            close(got, expected, 1e-9)
        if a.dtype.kind == "f":  # bins of integers are narrower than 1 in some versions of NumPy
            close(da.histogram_bin_edges(x, rule, (0.5, 4)), np.histogram_bin_edges(a, rule, (0.5, 4)), 1e-9)
    assert da.histogram_bin_edges(x[:0], rule).tolist() == [0, 1]
    f = samples[0].astype("float32")
    close(da.histogram(da.asarray(f, device=device), rule)[0], np.histogram(f.astype(float), rule)[0])


def test_rules_refused(device):
    x = da.ones(3, device=device)
    with pytest.raises(ValueError, match="no rule 'best'.*sturges"):
        da.histogram(x, "best")
    with pytest.raises(TypeError, match="weights"):
        da.histogram(x, "auto", weights=x)


def test_interp(device):
    xp, fp = np.array([0.0, 1.0, 1.5, 4.0]), np.array([1.0, -1.0, np.inf, 3.0])
    a = np.array([[-1.0, 0.0, 0.25, 1.0], [1.2, 1.5, 9.0, np.nan]])
    x, p, f = (da.asarray(part, device=device) for part in (a, xp, fp))
    close(da.interp(x, p, f), np.interp(a, xp, fp), 1e-12)
    close(da.interp(x, p, f, left=7, right=8), np.interp(a, xp, fp, 7, 8), 1e-12)
    close(da.interp(0.5, p, f), np.float64(0.0), 1e-12)
    close(da.interp(x[0], p[:1], f[:1]), np.interp(a[0], xp[:1], fp[:1]), 1e-12)
    with pytest.raises(ValueError, match="one point"):
        da.interp(x, p[:0], f[:0])
    with pytest.raises(ValueError, match="the same size"):
        da.interp(x, p, f[:2])
