"""scikit-learn on device arrays: every estimator, metric and tool that it documents for the array API, against NumPy.

The lists follow doc/modules/array_api and the notes of version 1.9. scikit-learn is imported by the tests, not when
they are collected, since that takes seconds."""
import importlib
import importlib.util

import numpy as np
import pytest

import drupe.array as da

pytestmark = [pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="needs scikit-learn"),
              pytest.mark.filterwarnings("ignore")]  # the data are small, so that not everything converges
RANDOM = np.random.default_rng(11)
SIZE = 60
X = RANDOM.random((SIZE, 5)) + np.arange(SIZE)[:, None] % 3 * [0.5, 0, 0.25, 0, 0.1]
CLASSES = np.arange(SIZE) % 3
BINARY = (X[:, 0] > 0.8).astype("int64")
REAL = X @ [1.0, -2.0, 0.5, 0.0, 3.0] + 0.1 * RANDOM.random(SIZE)
COUNTS = np.floor(3 * X[:, 0] + 1)
WEIGHTS = RANDOM.random(SIZE) + 0.5
DATA = {"X": X, "classes": CLASSES, "binary": BINARY, "real": REAL, "counts": COUNTS, "gram": X @ X.T,
        "both": np.stack([REAL, -REAL], axis=1)}


def named(path):
    """`module.name` of scikit-learn."""
    module, _, name = path.rpartition(".")
    if name.startswith("Halving"):
        importlib.import_module("sklearn.experimental.enable_halving_search_cv")
    return getattr(importlib.import_module("sklearn." + module), name)


def dispatching(on=True):
    return importlib.import_module("sklearn").config_context(array_api_dispatch=on)


def same(ours, numpys, device, *, arrays=True, rtol=1e-7, atol=1e-9):
    """Equal values; where `arrays` is true those that NumPy has as arrays are device arrays on this device."""
    if isinstance(numpys, (tuple, list)):
        assert len(ours) == len(numpys)
        for one, other in zip(ours, numpys):
            same(one, other, device, arrays=arrays, rtol=rtol, atol=atol)
    elif numpys is None:
        assert ours is None
    else:
        if isinstance(numpys, np.ndarray) and numpys.ndim and arrays:
            assert isinstance(ours, da.Array) and ours.device == device, type(ours)
        if isinstance(numpys, np.ndarray):
            assert np.shape(ours) == numpys.shape
        values = da.asnumpy(ours) if isinstance(ours, da.Array) else ours
        np.testing.assert_allclose(values, numpys, rtol=rtol, atol=atol)


# --- Estimators -------------------------------------------------------------------------------------------------

# The class, its arguments, the target, the methods that are called with X, and the target's own one.
MIXTURE = {"n_components": 2, "init_params": "random", "random_state": 0, "max_iter": 20}
ESTIMATORS = {
    "PCA full": ("decomposition.PCA", {"n_components": 3, "svd_solver": "full"}, None, "transform"),
    "PCA whiten": ("decomposition.PCA", {"n_components": 0.9, "svd_solver": "full", "whiten": True}, None,
                   "transform"),
    "PCA covariance_eigh": ("decomposition.PCA", {"n_components": 2, "svd_solver": "covariance_eigh"}, None,
                            "transform"),
    "PCA randomized": ("decomposition.PCA", {"n_components": 2, "svd_solver": "randomized", "random_state": 0,
                                             "power_iteration_normalizer": "QR"}, None, "transform score_samples"),
    "LinearDiscriminantAnalysis": ("discriminant_analysis.LinearDiscriminantAnalysis", {"solver": "svd"}, "classes",
                                   "predict predict_proba decision_function transform"),
    "Nystroem": ("kernel_approximation.Nystroem", {"n_components": 8, "random_state": 0}, None, "transform"),
    "LogisticRegression": ("linear_model.LogisticRegression", {"solver": "lbfgs", "tol": 1e-12}, "classes",
                           "predict predict_proba decision_function"),
    "LogisticRegression binary": ("linear_model.LogisticRegression", {"C": 0.5, "tol": 1e-12}, "binary",
                                  "predict predict_proba predict_log_proba"),
    "PoissonRegressor": ("linear_model.PoissonRegressor", {"solver": "lbfgs", "tol": 1e-10}, "counts", "predict"),
    "Ridge": ("linear_model.Ridge", {"solver": "svd"}, "real", "predict"),
    "Ridge of two": ("linear_model.Ridge", {"solver": "svd", "alpha": [0.5, 2.0]}, "both", "predict"),
    "RidgeCV": ("linear_model.RidgeCV", {"alphas": [0.1, 1.0, 10.0]}, "real", "predict"),
    "RidgeCV eigen": ("linear_model.RidgeCV", {"gcv_mode": "eigen"}, "real", "predict"),
    "RidgeClassifier": ("linear_model.RidgeClassifier", {"solver": "svd"}, "classes", "predict decision_function"),
    "RidgeClassifierCV": ("linear_model.RidgeClassifierCV", {"alphas": [0.1, 1.0]}, "classes",
                          "predict decision_function"),
    "GaussianNB": ("naive_bayes.GaussianNB", {}, "classes", "predict predict_proba"),
    "GaussianMixture data": ("mixture.GaussianMixture", {**MIXTURE, "init_params": "random_from_data"}, None,
                             "predict predict_proba"),
    "GaussianMixture": ("mixture.GaussianMixture", MIXTURE, None, "predict score_samples"),
    **{"GaussianMixture " + kind: ("mixture.GaussianMixture", {**MIXTURE, "covariance_type": kind}, None, "predict")
       for kind in ("tied", "diag", "spherical")},
    "Binarizer": ("preprocessing.Binarizer", {"threshold": 0.7}, None, "transform"),
    "KernelCenterer": ("preprocessing.KernelCenterer", {}, None, "transform"),
    "MaxAbsScaler": ("preprocessing.MaxAbsScaler", {}, None, "transform inverse_transform"),
    "MinMaxScaler": ("preprocessing.MinMaxScaler", {"feature_range": (-1, 2), "clip": True}, None,
                     "transform inverse_transform"),
    "Normalizer l1": ("preprocessing.Normalizer", {"norm": "l1"}, None, "transform"),
    "Normalizer l2": ("preprocessing.Normalizer", {"norm": "l2"}, None, "transform"),
    "Normalizer max": ("preprocessing.Normalizer", {"norm": "max"}, None, "transform"),
    "PolynomialFeatures": ("preprocessing.PolynomialFeatures", {"degree": 3}, None, "transform"),
    "PolynomialFeatures interactions": ("preprocessing.PolynomialFeatures", {
        "degree": 2, "interaction_only": True, "include_bias": False}, None, "transform"),
    "StandardScaler": ("preprocessing.StandardScaler", {}, None, "transform inverse_transform"),
}


def fitted(path, options, target, methods, convert):
    """The estimator, and what its methods give."""
    x = convert(DATA["gram" if path.endswith("KernelCenterer") else "X"])
    estimator = named(path)(**options)
    estimator.fit(x) if target is None else estimator.fit(x, convert(DATA[target]))
    return estimator, {method: getattr(estimator, method)(x) for method in methods.split()}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators(device, name):
    path, options, target, methods = ESTIMATORS[name]
    numpys, expected = fitted(path, options, target, methods, np.asarray)
    with dispatching():
        ours, found = fitted(path, options, target, methods, lambda x: da.asarray(x, device=device))
    # What iterates until a tolerance amplifies the last digits.
    rtol = 1e-5 if any(word in name for word in ("Logistic", "Poisson", "Mixture", "randomized")) else 1e-7
    for method in expected:
        same(found[method], expected[method], device, rtol=rtol, atol=1e-7)
    learned = [key for key, value in vars(numpys).items()
               if key.endswith("_") and isinstance(value, np.ndarray) and value.dtype.kind == "f"]
    for key in learned:
        same(getattr(ours, key), getattr(numpys, key), device, arrays=False, rtol=rtol, atol=1e-6)
    assert type(vars(ours).get("n_features_in_", 0)) is int


def test_float32_stays(device):
    with dispatching():
        x = da.asarray(X, dtype="float32", device=device)
        for path, options in (("preprocessing.StandardScaler", {}), ("decomposition.PCA", {"svd_solver": "full"}),
                              ("preprocessing.MinMaxScaler", {}), ("preprocessing.Normalizer", {})):
            assert named(path)(**options).fit_transform(x).dtype == "float32"


def test_labels(device):
    with dispatching():
        encoder = named("preprocessing.LabelEncoder")()
        y = da.asarray([40, 10, 40, 30], device=device)
        encoded = encoder.fit_transform(y)
        same(encoded, np.array([2, 0, 2, 1]), device)
        same(encoder.inverse_transform(encoded), np.array([40, 10, 40, 30]), device)


def test_arrays_of_another_queue(device):
    queue = importlib.import_module("drupe").Queue(device)
    with dispatching():
        for name in ("PCA full", "Ridge", "LinearDiscriminantAnalysis", "GaussianNB", "StandardScaler"):
            path, options, target, methods = ESTIMATORS[name]
            _, found = fitted(path, options, target, methods, lambda x: da.asarray(x, queue=queue))
            assert all(result.queue == queue for result in found.values())


def test_y_of_numpy_follows_x(device):
    expected = named("linear_model.Ridge")(solver="svd").fit(X, REAL).predict(X)
    with dispatching():
        ridge = named("linear_model.Ridge")(solver="svd").fit(da.asarray(X, device=device), REAL)
        same(ridge.predict(da.asarray(X, device=device)), expected, device)


# --- Estimators that contain others -----------------------------------------------------------------------------

def search(name, grid, convert):
    lda = named("discriminant_analysis.LinearDiscriminantAnalysis")()
    options = {"cv": 3, "error_score": "raise"}
    if name.startswith("Halving") or name.startswith("Randomized"):
        options["random_state"] = 0
    if name == "RandomizedSearchCV":
        options["n_iter"] = 2
    return named("model_selection." + name)(lda, grid, **options).fit(convert(X), convert(CLASSES))


@pytest.mark.parametrize("name", ["GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV",
                                  "HalvingRandomSearchCV"])
def test_searches(device, name):
    grid = {"tol": [1e-4, 1e-2, 0.5]}
    numpys = search(name, grid, np.asarray)
    with dispatching():
        ours = search(name, grid, lambda x: da.asarray(x, device=device))
        same(ours.predict(da.asarray(X, device=device)), numpys.predict(X), device)
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], numpys.cv_results_["mean_test_score"])
    assert ours.best_params_ == numpys.best_params_


def test_calibration(device):
    def made(convert):
        lda = named("discriminant_analysis.LinearDiscriminantAnalysis")()
        calibrated = named("calibration.CalibratedClassifierCV")(lda, method="temperature", cv=3)
        return calibrated.fit(convert(X), convert(CLASSES)).predict_proba(convert(X))

    expected = made(np.asarray)
    with dispatching():
        same(made(lambda x: da.asarray(x, device=device)), expected, device, rtol=1e-4)


def test_pipelines(device):
    def made(convert):
        scaler, pca = named("preprocessing.StandardScaler")(), named("decomposition.PCA")(2, svd_solver="full")
        union = named("pipeline.FeatureUnion")([("scaled", scaler), ("components", pca)])
        pipeline = named("pipeline.make_pipeline")(union, named("linear_model.Ridge")(solver="svd"))
        return pipeline.fit(convert(X), convert(REAL)).predict(convert(X))

    expected = made(np.asarray)
    with dispatching():
        same(made(lambda x: da.asarray(x, device=device)), expected, device)


# --- Metrics ----------------------------------------------------------------------------------------------------

TRUE, PREDICTED = CLASSES, np.roll(CLASSES, 7) * (np.arange(SIZE) % 4 > 0)
LABELS = ((X[:, :3] > 0.7).astype("int64"), (X[:, 1:4] > 0.7).astype("int64"))
CHANCES = X[:, :3] / X[:, :3].sum(axis=1, keepdims=True)
POSITIVE = (np.abs(REAL) + 0.5, np.abs(REAL) + 0.4 + X[:, 1])
TWO = (np.stack(POSITIVE, axis=1), np.stack(POSITIVE[::-1], axis=1))
BOTH = [(BINARY, np.roll(BINARY, 3)), (TRUE, PREDICTED)]
SCORE = X[:, 1] / X[:, 1].max()
MACRO = {"average": "macro"}
# Names of sklearn.metrics, what they are called with, and their options.
METRICS = {
    "accuracy_score": ([*BOTH, LABELS], {}), "balanced_accuracy_score": (BOTH, {}), "cohen_kappa_score": (BOTH, {}),
    "confusion_matrix": (BOTH, {}), "f1_score": ([*BOTH, LABELS], MACRO),
    "fbeta_score": ([*BOTH, LABELS], {"beta": 0.5, **MACRO}), "hamming_loss": ([*BOTH, LABELS], {}),
    "jaccard_score": ([*BOTH, LABELS], MACRO), "multilabel_confusion_matrix": ([*BOTH, LABELS], {}),
    "precision_recall_fscore_support": ([*BOTH, LABELS], {}), "precision_score": ([*BOTH, LABELS], MACRO),
    "recall_score": ([*BOTH, LABELS], MACRO), "zero_one_loss": ([*BOTH, LABELS], {}),
    "average_precision_score": ([(BINARY, SCORE)], {}), "det_curve": ([(BINARY, SCORE)], {}),
    "precision_recall_curve": ([(BINARY, SCORE)], {}), "roc_curve": ([(BINARY, SCORE)], {}),
    "brier_score_loss": ([(BINARY, SCORE), (TRUE, CHANCES)], {}),
    "d2_brier_score": ([(BINARY, SCORE), (TRUE, CHANCES)], {}),
    "d2_log_loss_score": ([(BINARY, SCORE), (TRUE, CHANCES)], {}),
    "log_loss": ([(BINARY, SCORE), (TRUE, CHANCES)], {}),
    "d2_absolute_error_score": ([POSITIVE, TWO], {}), "d2_pinball_score": ([POSITIVE, TWO], {"alpha": 0.3}),
    "d2_tweedie_score": ([POSITIVE], {"power": 1.5}), "explained_variance_score": ([POSITIVE, TWO], {}),
    "max_error": ([POSITIVE], {}), "mean_absolute_error": ([POSITIVE, TWO], {}),
    "mean_absolute_percentage_error": ([POSITIVE, TWO], {}), "mean_gamma_deviance": ([POSITIVE], {}),
    "mean_pinball_loss": ([POSITIVE, TWO], {"alpha": 0.2}), "mean_poisson_deviance": ([POSITIVE], {}),
    "mean_squared_error": ([POSITIVE, TWO], {}), "mean_squared_log_error": ([POSITIVE, TWO], {}),
    "mean_tweedie_deviance": ([POSITIVE], {"power": 1.5}), "median_absolute_error": ([POSITIVE, TWO], {}),
    "r2_score": ([POSITIVE, TWO], {}), "root_mean_squared_error": ([POSITIVE, TWO], {}),
    "root_mean_squared_log_error": ([POSITIVE, TWO], {}),
    "calinski_harabasz_score": ([(X, CLASSES)], {}), "davies_bouldin_score": ([(X, CLASSES)], {}),
    "cluster.entropy": ([(CLASSES,)], {}), "cluster.contingency_matrix": ([BOTH[1]], {}),
    "pairwise_distances": ([(X, X[:7])], {}), "pairwise_distances_argmin": ([(X, X[:7])], {}),
    **{"pairwise." + name: ([(X, X[:7])], {}) for name in (
        "additive_chi2_kernel", "chi2_kernel", "cosine_distances", "cosine_similarity", "euclidean_distances",
        "laplacian_kernel", "linear_kernel", "manhattan_distances", "pairwise_kernels", "polynomial_kernel",
        "rbf_kernel", "sigmoid_kernel")},
    **{"pairwise." + name: ([(X, X[::-1].copy())], {}) for name in (
        "paired_cosine_distances", "paired_euclidean_distances", "paired_manhattan_distances")},
}
# Counted by scipy.sparse, which gives arrays of NumPy whatever it is given.
OF_NUMPY = ("cluster.contingency_matrix",)
UNWEIGHTED = ("max_error", "calinski", "davies", "cluster", "pairwise")


@pytest.mark.parametrize("name", METRICS)
def test_metrics(device, name):
    metric = named("metrics." + name)
    sets, options = METRICS[name]
    for arguments in sets:
        for weighted in (False, True) if not name.startswith(UNWEIGHTED) else (False,):
            words = {**options, **({"sample_weight": WEIGHTS} if weighted else {})}
            expected = metric(*arguments, **words)
            with dispatching():
                words = {key: da.asarray(value, device=device) if value is WEIGHTS else value
                         for key, value in words.items()}
                found = metric(*[da.asarray(one, device=device) for one in arguments], **words)
            same(found, expected, device, arrays=name not in OF_NUMPY, atol=1e-7)
            assert name not in OF_NUMPY or type(found) is np.ndarray
            if type(expected) is float:
                assert type(found) is float


@pytest.mark.parametrize("metric", ["cosine", "euclidean", "l2", "manhattan"])
def test_distances_by_name(device, metric):
    expected = named("metrics.pairwise_distances")(X, metric=metric)
    with dispatching():
        found = named("metrics.pairwise_distances")(da.asarray(X, device=device), metric=metric)
        same(found, expected, device, atol=1e-7)


@pytest.mark.parametrize("averaging", ["raw_values", [0.3, 0.7]])
def test_several_outputs(device, averaging):
    for name in ("r2_score", "mean_squared_error", "mean_absolute_error"):
        metric = named("metrics." + name)
        expected = metric(*TWO, multioutput=averaging)
        with dispatching():
            ours = averaging if isinstance(averaging, str) else da.asarray(averaging, device=device)
            same(metric(*[da.asarray(one, device=device) for one in TWO], multioutput=ours), expected, device)


# --- Tools ------------------------------------------------------------------------------------------------------

def test_train_test_split(device):
    split = named("model_selection.train_test_split")
    expected = split(X, CLASSES, random_state=0, stratify=CLASSES)
    with dispatching():
        x, y = (da.asarray(one, device=device) for one in (X, CLASSES))
        same(split(x, y, random_state=0, stratify=y), expected, device)


def test_cross_val_predict(device):
    def made(convert):
        lda = named("discriminant_analysis.LinearDiscriminantAnalysis")()
        predict = named("model_selection.cross_val_predict")
        return [predict(lda, convert(X), convert(CLASSES), cv=3, method=method)
                for method in ("predict", "predict_proba", "decision_function")]

    expected = made(np.asarray)
    with dispatching():
        same(made(lambda x: da.asarray(x, device=device)), expected, device)


def test_check_consistent_length(device):
    check = named("utils.check_consistent_length")
    with dispatching():
        x = da.asarray(X, device=device)
        check(x, x[:, 0])
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            check(x, x[1:])


# --- Without array_api_dispatch ---------------------------------------------------------------------------------

def test_estimators_that_know_numpy_only(device):
    """They take device arrays that the host can read as they take any buffer, and give arrays of NumPy."""
    for path, target in (("tree.DecisionTreeClassifier", CLASSES), ("neighbors.KNeighborsClassifier", CLASSES),
                         ("linear_model.LinearRegression", REAL)):
        expected = named(path)().fit(X, target).predict(X)
        x, y = (da.asarray(one, device=device, usm_type="shared") for one in (X, target))
        found = named(path)().fit(x, y).predict(x)
        assert type(found) is np.ndarray
        np.testing.assert_allclose(found, expected)


# What combines device arrays with NumPy's in one operation where nothing dispatches.
MIXED = {"brier_score_loss": (BINARY, SCORE), "log_loss": (BINARY, SCORE), "d2_brier_score": (BINARY, SCORE),
         "d2_log_loss_score": (BINARY, SCORE)}


@pytest.mark.parametrize("name", MIXED)
def test_what_mixes_arrays_is_refused(device, name):
    arguments = [da.asarray(one, device=device) for one in (*MIXED[name], WEIGHTS)]
    with pytest.raises(TypeError, match=r"a drupe\.array\.Array is expected, not ndarray"):
        named("metrics." + name)(*arguments[:2], sample_weight=arguments[2])
    with dispatching():
        assert type(named("metrics." + name)(*arguments[:2], sample_weight=arguments[2])) is float
