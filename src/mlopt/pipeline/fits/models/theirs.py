"""What scikit-learn's own fit costs, on rows in one place, where a formula tells it.

Its lbfgs reads X twice a step: scores of all rows are written out between two products.
LIBLINEAR goes through a list of what is stored in each row, several times a step. Least
squares and components of dense rows are of one Gram matrix, beside copies and centring.
"""

from __future__ import annotations

from typing import Any

from sklearn.linear_model import RidgeClassifier

from mlopt.costs import Cost
from mlopt.gd.pricing import Shape, arithmetic, shape_of_stats
from mlopt.pipeline.fits.models.clusters import candidates, iterations, starts_of
from mlopt.pipeline.library.pca_plan import is_tall
from mlopt.prices import price
from mlopt.stats import Stats

_PASSES, _SPARSE = price("theirs.lbfgs.passes"), price("theirs.lbfgs.passes.sparse")
_SOFTMAX = price("theirs.lbfgs.passes.softmax")
_CALL, _STEP = price("theirs.lbfgs.call"), price("theirs.lbfgs.step")
_LOSS, _PRODUCT = price("theirs.lbfgs.loss"), price("theirs.lbfgs.product")
_READS, _STORED = price("theirs.lbfgs.reads"), price("theirs.lbfgs.stored")
_NEWTON = price("theirs.liblinear.passes")
_LISTED, _SPARSELY = price("theirs.liblinear.listed"), price("theirs.liblinear.stored")
_DIRECT, _GRAM = price("theirs.direct.call"), price("theirs.gram")
_CHOLESKY_READS, _SIGNS = price("theirs.cholesky.reads"), price("theirs.signs")
_LSTSQ, _LSTSQ_READS = price("theirs.lstsq"), price("theirs.lstsq.reads")
_EIGH, _PCA_READS = price("theirs.eigh"), price("theirs.pca.reads")
_LLOYD_READS, _LLOYD_CENTRE = price("theirs.lloyd.reads"), price("theirs.lloyd.centre")
_LLOYD, _LLOYD_CALL = price("theirs.lloyd.product"), price("theirs.lloyd.call")


def svc_cost(estimator: Any, stats: Stats, passes: float | None = None) -> Cost | None:
    """Of a `LinearSVC`, as `logistic_cost`; None in the dual: only a trial tells epochs."""
    dual = stats.rows < stats.columns if estimator.dual == "auto" else estimator.dual
    kinds = (estimator.loss, estimator.penalty, estimator.multi_class)
    if dual or kinds != ("squared_hinge", "l2", "ovr"):
        return None
    shape = shape_of_stats(stats)
    steps = min(_NEWTON, estimator.max_iter) if passes is None else passes
    each = _SPARSELY if shape.sparse else _LISTED
    return arithmetic(shape, steps * each * shape.nonzero * shape.columns)


def logistic_cost(estimator: Any, stats: Stats, passes: float | None = None) -> Cost | None:
    """Of a `LogisticRegression`, on one thread; None for solvers without a price.

    Parameters
    ----------
    estimator : LogisticRegression
    stats : Stats
        Of all rows; ``outputs`` are classes where there are three or more.
    passes : float, optional
        Steps that it takes, where that is known.
    """
    if estimator.solver != "lbfgs":
        return None
    shape = shape_of_stats(stats)
    if passes is None:
        dense = _SOFTMAX if shape.columns > 1 else _PASSES
        passes = min(_SPARSE if shape.sparse else dense, estimator.max_iter)
    return Cost(python=_CALL) + passes * _step(shape)


def _step(shape: Shape) -> Cost:
    """Two products, and between them loss and slope of each row and column of weights."""
    columns, beside = shape.columns, Cost(python=_STEP)
    loss = arithmetic(shape, _LOSS * shape.n * columns)
    if shape.sparse:
        products = arithmetic(shape, _STORED * shape.nonzero * columns)
    else:
        work = arithmetic(shape, _PRODUCT * 4.0 * shape.nonzero * columns)
        products = work | Cost(memory=_READS * shape.nbytes)
    return products + loss + beside


def ridge_cost(estimator: Any, stats: Stats, passes: float | None = None) -> Cost | None:
    """Of a `Ridge` or a `RidgeClassifier` of dense rows by Cholesky's decomposition."""
    if stats.sparse or estimator.positive or estimator.solver not in ("auto", "cholesky"):
        return None
    shape = shape_of_stats(stats)
    signs = _SIGNS * shape.n if isinstance(estimator, RidgeClassifier) else 0.0
    fewer = min(shape.n, shape.d)
    work = _GRAM * (fewer + 2.0 * shape.columns) * shape.nonzero + _GRAM * fewer**3
    return _direct(shape, _CHOLESKY_READS, work) + Cost(python=signs)


def lstsq_cost(estimator: Any, stats: Stats, passes: float | None = None) -> Cost | None:
    """Of a `LinearRegression` of dense rows, by LAPACK's `gelsd`."""
    if stats.sparse or estimator.positive:
        return None
    shape = shape_of_stats(stats)
    fewer = min(shape.n, shape.d)
    work = _LSTSQ * ((fewer + shape.columns) * shape.nonzero + fewer**3)
    return _direct(shape, _LSTSQ_READS, work)


def pca_cost(estimator: Any, stats: Stats, passes: float | None = None) -> Cost | None:
    """Of a `PCA` of dense rows by their covariances, where these are what it takes."""
    tall = is_tall(stats.rows, stats.columns)
    taken = ("covariance_eigh", "auto") if tall else ("covariance_eigh",)
    if stats.sparse or estimator.svd_solver not in taken or estimator.n_components == "mle":
        return None
    shape = shape_of_stats(stats)
    work = _GRAM * shape.d * shape.nonzero + _EIGH * float(shape.d) ** 3
    return _direct(shape, _PCA_READS, work)


def _direct(shape: Shape, reads: float, operations: float) -> Cost:
    """Rows copied and centred, and then products and a decomposition."""
    return Cost(python=_DIRECT, memory=reads * shape.nbytes) + arithmetic(shape, operations)


def kmeans_cost(estimator: Any, stats: Stats, passes: float | None = None) -> Cost | None:
    """Of a `KMeans` of dense rows by Lloyd's iterations, of all its starts."""
    if stats.sparse or estimator.algorithm != "lloyd" or callable(estimator.init):
        return None
    shape, centres = shape_of_stats(stats), estimator.n_clusters
    products = 2.0 * _LLOYD * shape.nonzero * centres
    near = arithmetic(shape, products + _LLOYD_CENTRE * shape.n * centres)
    one = near + Cost(memory=_LLOYD_READS * shape.nbytes)
    steps = iterations(estimator) if passes is None else passes
    tried = candidates(estimator) * arithmetic(shape, products)
    return starts_of(estimator) * (steps * one + tried + Cost(python=_LLOYD_CALL))
