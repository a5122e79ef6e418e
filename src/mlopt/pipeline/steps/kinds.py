"""What is known of scikit-learn's classes: which work row by row, which are random."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import (
    cluster,
    decomposition,
    discriminant_analysis,
    feature_extraction,
    feature_selection,
    impute,
    kernel_approximation,
    preprocessing,
    random_projection,
)
from sklearn.feature_extraction import text
from sklearn.utils import get_tags

from mlopt.pipeline.library import table as library
from mlopt.pipeline.library.pca import PCA
from mlopt.pipeline.library.util import Cacher

ROW_WISE: frozenset[type] = frozenset({
    preprocessing.StandardScaler, preprocessing.MinMaxScaler, preprocessing.MaxAbsScaler,
    preprocessing.RobustScaler, preprocessing.PowerTransformer,
    preprocessing.QuantileTransformer, preprocessing.PolynomialFeatures,
    preprocessing.SplineTransformer, preprocessing.Normalizer, preprocessing.Binarizer,
    preprocessing.OneHotEncoder, preprocessing.OrdinalEncoder,
    preprocessing.KBinsDiscretizer,
    impute.SimpleImputer, impute.MissingIndicator, impute.KNNImputer,
    decomposition.PCA, decomposition.IncrementalPCA, decomposition.TruncatedSVD,
    decomposition.FactorAnalysis, decomposition.FastICA,
    cluster.KMeans, cluster.MiniBatchKMeans,
    discriminant_analysis.LinearDiscriminantAnalysis,
    feature_selection.VarianceThreshold, feature_selection.SelectKBest,
    feature_selection.SelectPercentile, feature_selection.SelectFpr,
    feature_selection.SelectFdr, feature_selection.SelectFwe,
    feature_selection.GenericUnivariateSelect, feature_selection.SelectFromModel,
    feature_selection.RFE, feature_selection.RFECV,
    feature_extraction.DictVectorizer, feature_extraction.FeatureHasher,
    text.CountVectorizer, text.TfidfVectorizer, text.TfidfTransformer,
    text.HashingVectorizer,
    kernel_approximation.RBFSampler, kernel_approximation.Nystroem,
    kernel_approximation.AdditiveChi2Sampler, kernel_approximation.SkewedChi2Sampler,
    kernel_approximation.PolynomialCountSketch,
    random_projection.GaussianRandomProjection, random_projection.SparseRandomProjection,
}) | library.ROW_WISE  # fmt: skip
"""Transformers of which each row depends on its own row alone, once they are fitted, and
whose `fit_transform` is `fit` and then `transform`."""

_UNSEEDED_USE: dict[type, Any] = {
    decomposition.PCA: lambda e: e.svd_solver in ("auto", "randomized", "arpack"),
    PCA: lambda e: e.solver in ("auto", "randomized", "arpack"),
    preprocessing.KBinsDiscretizer: lambda e: e.strategy == "kmeans" or e.subsample,
}
"""When a class makes use of its `random_state`, where it does not always."""

_DETERMINISTIC = frozenset({
    "LogisticRegression", "LinearSVC", "Ridge", "RidgeClassifier", "LinearRegression",
    "SVC",
})  # fmt: skip
"""Linear models whose solution is unique: the order of their steps is all that varies."""


def is_row_wise(transformer: Any) -> bool:
    """Whether a transformer is known to treat each row by itself."""
    if type(transformer) is preprocessing.FunctionTransformer:
        return transformer.func is None or isinstance(transformer.func, np.ufunc)
    return type(transformer) in ROW_WISE


def is_pinned(transformer: Any) -> bool:
    """Whether what a transformer gives is to be kept in any case."""
    return type(transformer) is Cacher


_UNSUPERVISED = (
    "sklearn.preprocessing", "sklearn.impute", "sklearn.decomposition", "sklearn.cluster",
    "sklearn.random_projection", "sklearn.kernel_approximation",
    "sklearn.feature_extraction", "mlopt.pipeline.library",
)  # fmt: skip


def ignores_targets(transformer: Any) -> bool:
    """Whether a transformer is known to learn the same whatever the targets are."""
    if type(transformer) is feature_selection.VarianceThreshold:
        return True
    known = type(transformer) in ROW_WISE or is_stateless(transformer)
    return known and type(transformer).__module__.startswith(_UNSUPERVISED)


def is_stateless(transformer: Any) -> bool:
    """Whether a transformer learns nothing from data."""
    return (
        type(transformer).__module__.startswith(("sklearn.", "mlopt.pipeline.library."))
        and not get_tags(transformer).requires_fit
    )


def is_seeded(estimator: Any) -> bool:
    """Whether fitting twice to the same data gives the same.

    It does not when something in the estimator is random and has no seed. Where that is not
    known, a ``random_state`` of None counts as random.
    """
    if not hasattr(estimator, "get_params"):
        return True
    params = estimator.get_params(deep=False)
    inner = [v for v in params.values() if hasattr(v, "get_params") and not _is_class(v)]
    return all(map(is_seeded, inner)) and not _is_random(estimator, params)


def _is_random(estimator: Any, params: dict[str, Any]) -> bool:
    state = params.get("random_state", 0)
    if isinstance(state, np.random.RandomState | np.random.Generator):
        return True  # its state moves on with every use
    if state is not None or type(estimator).__name__ in _DETERMINISTIC:
        return False
    uses = _UNSEEDED_USE.get(type(estimator))
    return bool(uses(estimator)) if uses else True


def _is_class(value: Any) -> bool:
    return isinstance(value, type)
