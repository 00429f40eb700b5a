"""Calls of scikit-learn and of SciPy over a million elements, for fusion.py. Both libraries are as they come."""
import importlib

import numpy

COUNT = 10**6
# A call is an expression over the modules and arrays below; "name: call" gives it a shorter name.
SKLEARN = """
    metrics.accuracy_score(label, guess)
    metrics.confusion_matrix(label, guess)
    metrics.f1_score(label, guess)
    metrics.mean_squared_error(y, p)
    metrics.mean_absolute_error(y, p)
    metrics.mean_absolute_percentage_error(y, p)
    metrics.r2_score(y, p)
    metrics.mean_squared_log_error(y, p)
    metrics.mean_poisson_deviance(y, p)
    metrics.mean_gamma_deviance(y, p)
    metrics.mean_pinball_loss(y, p)
    metrics.log_loss(label, chance)
    metrics.brier_score_loss(label, chance)
    metrics.pairwise.rbf_kernel(rows, few)
    metrics.pairwise.cosine_similarity(rows, few)
    preprocessing.StandardScaler().fit_transform(table)
    preprocessing.MinMaxScaler().fit_transform(table)
    preprocessing.MaxAbsScaler().fit_transform(table)
    preprocessing.normalize(table)
    preprocessing.PolynomialFeatures(2).fit_transform(narrow)
"""
SCIPY = """
    special.entr(chance)
    special.rel_entr(y, p)
    special.expit(v)
    special.logit(chance)
    special.xlogy(y, p)
    special.boxcox(y, p)
    special.erf(v)
    special.log_ndtr(v)
    special.logsumexp(table, axis=1)
    special.softmax(table, axis=1)
    special.log_softmax(table, axis=1)
    stats.zscore(v)
    stats.skew(v)
    stats.kurtosis(v)
    stats.describe(v)
    stats.gmean(y)
    stats.hmean(y)
    stats.pearsonr(y, p)
    stats.ttest_ind(y, p)
    stats.variation(y)
    stats.circmean(v)
    integrate.trapezoid(v)
    integrate.cumulative_trapezoid(v)
    optimize.rosen(v)
    signal.detrend(v)
    signal.fftconvolve(v, few[0, :])
"""


def listed(text):
    return [line.strip() for line in text.strip().splitlines()]


def titles():
    return ["sklearn." + one for one in listed(SKLEARN)] + ["scipy." + one for one in listed(SCIPY)]


def arrays(count):
    rng = numpy.random.default_rng(8)
    y = rng.uniform(0.5, 3, count)
    label = rng.integers(0, 2, count)
    return {"y": y, "p": y * rng.uniform(0.8, 1.25, count), "v": rng.normal(size=count), "label": label,
            "guess": numpy.where(rng.random(count) < 0.8, label, 1 - label), "chance": rng.uniform(0.01, 0.99, count),
            "table": rng.normal(size=(count // 20, 20)), "narrow": rng.normal(size=(count // 5, 5)),
            "rows": rng.normal(size=(count // 50, 20)), "few": rng.normal(size=(50, 20))}


def names(library):
    modules = {"sklearn": ("metrics", "metrics.pairwise", "preprocessing"),
               "scipy": ("special", "stats", "integrate", "optimize", "signal")}[library]
    return {name: importlib.import_module(library + "." + name) for name in modules if "." not in name}


def values_of(result):
    """The numbers and arrays in a result."""
    if isinstance(result, (tuple, list)):
        return [part for one in result for part in values_of(one)]
    if hasattr(result, "shape") or isinstance(result, (int, float, complex)):
        return [result]
    return [part for key, one in sorted(vars(result).items()) if not key.startswith("_") and not callable(one)
            for part in values_of(one) if part is not None and not isinstance(one, str)]
