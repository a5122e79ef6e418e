"""What is known of scikit-learn's classes: which work row by row, which learn nothing."""

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

from mlopt.identity import identified, is_known
from mlopt.pipeline.library import table as library
from mlopt.pipeline.library.util import Cacher
from mlopt.pipeline.steps.declared import declared

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


def is_row_wise(transformer: Any) -> bool:
    """Whether a transformer is known, or declared, to treat each row by itself."""
    if type(transformer) is preprocessing.FunctionTransformer:
        return _is_row_wise_function(transformer)
    said = declared(type(transformer))
    return type(transformer) in ROW_WISE or (said is not None and said.row_wise)


def _is_row_wise_function(transformer: Any) -> bool:
    func = transformer.func
    if func is None:
        return True
    said = declared(func)
    if said is None and isinstance(func, np.ufunc):
        by_value = func.signature is None and func.nout == 1
        # Arguments may hold a value for each row; a function made of Python may count.
        return by_value and not transformer.kw_args and identified(func) is not None
    return said is not None and said.row_wise


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
    kind = type(transformer)
    if (said := declared(kind)) is not None:
        return not said.reads_y
    if kind is feature_selection.VarianceThreshold:
        return True
    known = kind in ROW_WISE or is_stateless(transformer)
    return known and is_known(kind) and kind.__module__.startswith(_UNSUPERVISED)


def is_stateless(transformer: Any) -> bool:
    """Whether a transformer learns nothing from data."""
    kind = type(transformer)
    if (said := declared(kind)) is not None:
        return said.stateless
    return is_known(kind) and not get_tags(transformer).requires_fit
