"""What mlopt knows of scikit-learn's classes and its own: traits, and ways to fit them.

A class that streams is a line in one of the two tables of transformers; one that has a seed
and draws from it only sometimes, a line of `_DRAWS`. Its ways name it among their `kinds`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sklearn import (
    cluster,
    decomposition,
    discriminant_analysis,
    feature_extraction,
    feature_selection,
    impute,
    kernel_approximation,
    linear_model,
    preprocessing,
    random_projection,
    svm,
)
from sklearn.feature_extraction import text as sklearn_text

from mlopt.gd.elastic_net import ElasticNet, Lasso
from mlopt.gd.least_squares import Ridge
from mlopt.gd.logistic import LogisticRegression
from mlopt.gd.svm import LinearSVC
from mlopt.pipeline.fits.base import Fit
from mlopt.pipeline.fits.models.table import MODELS
from mlopt.pipeline.fits.models.theirs import (
    kmeans_cost,
    logistic_cost,
    lstsq_cost,
    pca_cost,
    ridge_cost,
    svc_cost,
)
from mlopt.pipeline.fits.numbers.table import FITS
from mlopt.pipeline.fits.record import UNKNOWN, Own, Record
from mlopt.pipeline.fits.text.table import TEXT
from mlopt.pipeline.library import image, signal, text, util
from mlopt.pipeline.library.column_pca import ColumnPCA
from mlopt.pipeline.library.fisher import FisherVector
from mlopt.pipeline.library.mixture import GaussianMixture
from mlopt.pipeline.library.pca import PCA
from mlopt.pipeline.library.random_features import RandomFeatures
from mlopt.prices import price
from mlopt.topics.estimator import LatentDirichletAllocation

_BLIND: tuple[type, ...] = (
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
    feature_selection.VarianceThreshold,
    feature_extraction.DictVectorizer, feature_extraction.FeatureHasher,
    sklearn_text.CountVectorizer, sklearn_text.TfidfVectorizer,
    sklearn_text.TfidfTransformer, sklearn_text.HashingVectorizer,
    kernel_approximation.RBFSampler, kernel_approximation.Nystroem,
    kernel_approximation.AdditiveChi2Sampler, kernel_approximation.SkewedChi2Sampler,
    kernel_approximation.PolynomialCountSketch,
    random_projection.GaussianRandomProjection, random_projection.SparseRandomProjection,
    PCA, RandomFeatures, LatentDirichletAllocation,
    text.Trim, text.LowerCase, text.Tokenizer, text.NGrams, text.TermFrequency,
    text.HashingTF, text.CommonSparseFeatures, text.AllSparseFeatures,
    text.WordFrequencyEncoder,
    image.PixelScaler, image.GrayScaler, image.Cropper, image.SymmetricRectifier,
    image.Pooler, image.ImageVectorizer, image.Windower, image.CenterCornerPatcher,
    image.HOG, image.Daisy, image.SIFT, image.LCS,
    image.RandomImageTransformer, image.RandomPatcher,
    ColumnPCA, FisherVector, GaussianMixture,
    image.Convolver, image.ZCAWhitener, image.LearnedConvolver,
    signal.PaddedFFT, signal.RandomSign, signal.LinearRectifier, signal.NormalizeRows,
    signal.SignedHellinger,
    util.Cacher, util.Densify, util.FloatToDouble, util.Identity, util.MatrixVectorizer,
    util.MaxClassifier, util.Sparsify, util.TopK,
)  # fmt: skip
"""Transformers of rows that learn the same whatever the targets are. `image.Flipper` is
not among them: it makes two rows of one."""

_SUPERVISED: tuple[type, ...] = (
    discriminant_analysis.LinearDiscriminantAnalysis,
    feature_selection.SelectKBest,
    feature_selection.SelectPercentile, feature_selection.SelectFpr,
    feature_selection.SelectFdr, feature_selection.SelectFwe,
    feature_selection.GenericUnivariateSelect, feature_selection.SelectFromModel,
    feature_selection.RFE, feature_selection.RFECV,
)  # fmt: skip
"""Transformers of rows that may read the targets."""

_DRAWING = ("sag", "saga", "liblinear")

_DRAWS: dict[type, Callable[[Any], Any]] = {
    decomposition.PCA: lambda e: e.svd_solver in ("auto", "randomized", "arpack"),
    PCA: lambda e: e.svd_solver in ("auto", "randomized", "arpack"),
    preprocessing.KBinsDiscretizer: lambda e: e.strategy == "kmeans" or bool(e.subsample),
    # mlopt's own draw nothing, where it is not scikit-learn that fits.
    **dict.fromkeys(
        (ElasticNet, Lasso, LogisticRegression, Ridge), lambda e: e._not_ours()
    ),
    LinearSVC: lambda e: e._not_ours() or e.dual is not False,
    linear_model.LogisticRegression: lambda e: e.solver in _DRAWING,
    linear_model.Ridge: lambda e: e.solver in _DRAWING,
    linear_model.RidgeClassifier: lambda e: e.solver in _DRAWING,
    linear_model.Lasso: lambda e: e.selection == "random",
    linear_model.ElasticNet: lambda e: e.selection == "random",
    svm.LinearSVC: lambda e: e.dual is not False,
    svm.LinearSVR: lambda e: e.dual is not False,
    svm.SVC: lambda e: bool(e.probability),
    svm.NuSVC: lambda e: bool(e.probability),
}
"""When a class makes use of its `random_state`, where it does not always."""

_DOUBT = price("theirs.lbfgs.doubt")


def _by_vectors(estimator: Any, sparse: bool) -> bool:
    """Whether no Hessian is made, and factored; nor, of dense rows, a Gram matrix."""
    solver = str(getattr(estimator, "solver", ""))
    return "cholesky" not in solver if sparse else solver == "lbfgs"


_OWN = {
    linear_model.LogisticRegression: Own(logistic_cost, _DOUBT, vectors=_by_vectors),
    svm.LinearSVC: Own(svc_cost, _DOUBT, vectors=_by_vectors),
    linear_model.Ridge: Own(ridge_cost, vectors=_by_vectors),
    linear_model.RidgeClassifier: Own(ridge_cost, vectors=_by_vectors),
    linear_model.LinearRegression: Own(lstsq_cost, vectors=_by_vectors),
    decomposition.PCA: Own(pca_cost),
    cluster.KMeans: Own(kmeans_cost, threaded=True),
}
"""What classes' own fits cost, where a formula tells it."""

_WAYS: tuple[Fit, ...] = (*FITS, *TEXT, *MODELS)


def known() -> dict[Any, Record]:
    """The record of every class of which something is known."""
    found: dict[Any, Record] = {kind: Record(row_wise=True) for kind in _SUPERVISED}
    found |= {kind: Record(row_wise=True, reads_y=False) for kind in _BLIND}
    for kind, draws in _DRAWS.items():
        found[kind] = replace(found.get(kind, UNKNOWN), draws=draws)
    for kind, own in _OWN.items():
        found[kind] = replace(found.get(kind, UNKNOWN), own=own)
    for way in _WAYS:
        for kind in way.kinds:
            record = found.get(kind, UNKNOWN)
            found[kind] = replace(record, ways=(*record.ways, way))
    return found
