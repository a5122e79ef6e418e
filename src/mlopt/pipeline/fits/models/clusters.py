"""scikit-learn's `KMeans` on blocks of rows."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from sklearn import cluster
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.gd.pricing import arithmetic, scan, shape_of_stats
from mlopt.hearing import unheard
from mlopt.pipeline.fits.base import ManyPasses
from mlopt.pipeline.fits.models.twin import with_columns
from mlopt.pipeline.fits.numbers.blockwise import as_before
from mlopt.pipeline.library.descriptors import some_of
from mlopt.pipeline.library.lloyd import Clusters, lloyd
from mlopt.pipeline.library.mixture import SAMPLE
from mlopt.pipeline.library.moments import column_moments, join
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.stats import Stats

_ITERATIONS = price("lloyd.passes")
_CALL, _READS, _PRODUCT = price("lloyd.call"), price("lloyd.reads"), price("lloyd.product")
_ROW, _CENTRE = price("lloyd.row"), price("lloyd.centre")


class KMeans(ManyPasses):
    """`KMeans` by Lloyd's iterations; all of ``n_init`` starts share each pass.

    From the same first centres it ends where scikit-learn does. "k-means++" draws them from
    all rows, or from `SAMPLE` of them where there are more; "random" from all rows.
    """

    name = "lloyd by block"
    kinds = (cluster.KMeans,)

    def refuses(self, estimator: Any, stats: Stats) -> str:
        return (
            "the first centres are made by a function" if callable(estimator.init) else ""
        )

    def passes(self, estimator: Any, stats: Stats) -> float:
        return iterations(estimator) + 2.0

    def cost(
        self,
        estimator: Any,
        stats: Stats,
        resources: Resources,
        passes: float | None = None,
    ) -> Cost | None:
        centres = estimator.n_clusters * starts_of(estimator)
        shape, share = shape_of_stats(stats), 1.0 / resources.workers
        near = 2.0 * _PRODUCT * shape.nonzero * centres
        # What is done to each row beside products two threads hardly shorten.
        python = share * shape.n * (_ROW * starts_of(estimator) + _CENTRE * centres)
        reads = Cost(python=_CALL + python, memory=_READS * share * shape.nbytes)
        one = scan(shape, resources, 8.0 * centres * stats.columns) + reads
        steps = self.passes(estimator, stats) if passes is None else passes
        tried = candidates(estimator) * arithmetic(shape, near)
        return steps * (one + arithmetic(shape, share * near)) + tried

    def fit(self, estimator: Any, rows: Rows, y: Any, weight: Any) -> Any:
        if rows.n < estimator.n_clusters:
            raise InputError(
                f"`n_clusters` must be at most the number of rows, {rows.n}; got "
                f"{estimator.n_clusters}."
            )
        weights = np.ones(rows.n) if weight is None else np.asarray(weight, np.float64)
        count, mean, squares = rows.map_reduce(column_moments, join)
        tol = estimator.tol * float(np.mean(squares / count))
        shift = np.zeros(rows.d) if rows.sparse else mean
        starts = _first_centres(estimator, rows, weights, shift)
        beside = rows.attach(weights=weights)
        best = _best(lloyd(beside, starts, shift, tol, estimator.max_iter))
        return _fitted(estimator, rows, best, best.centres + shift)


def iterations(estimator: Any) -> float:
    """That are to be expected of each start."""
    return float(min(_ITERATIONS, estimator.max_iter))


def candidates(estimator: Any) -> float:
    """Rows to which distances of all are computed for each of the first centres."""
    drawn = isinstance(estimator.init, str) and estimator.init == "k-means++"
    return 2.0 + math.log(max(1, estimator.n_clusters)) if drawn else 0.0


def starts_of(estimator: Any) -> int:
    """How often it starts anew: all of ours share their passes."""
    if not isinstance(estimator.init, str):
        return 1
    if estimator.n_init == "auto":
        return 1 if estimator.init == "k-means++" else 10
    return int(estimator.n_init)


def _first_centres(estimator: Any, rows: Rows, weights: Any, shift: Any) -> Any:
    """The centres of every start less ``shift``, (R, k, d)."""
    k = estimator.n_clusters
    if not isinstance(estimator.init, str):
        if estimator.n_init not in ("auto", 1):  # in the words of scikit-learn
            warnings.warn(
                "Explicit initial center position passed: performing only one init in "
                f"{type(estimator).__name__} instead of n_init={estimator.n_init}.",
                RuntimeWarning,
                stacklevel=2,
            )
        given = np.array(estimator.init, dtype=np.float64)
        if given.shape != (k, rows.d):
            raise InputError(f"`init` must have shape {(k, rows.d)}, got {given.shape}.")
        return given[None] - shift
    random, starts = check_random_state(estimator.random_state), starts_of(estimator)
    if estimator.init == "random":
        shares = weights / weights.sum()
        drawn = [random.choice(rows.n, k, replace=False, p=shares) for _ in range(starts)]
        return np.stack([_dense(rows.take(one)) for one in drawn]) - shift
    few = some_of(rows.n, max(SAMPLE, k), random)
    X, beside = rows.take(few), weights[few]
    if not rows.sparse:  # distances of rows far from zero would have few digits
        X = np.subtract(X, shift, dtype=X.dtype, casting="same_kind")
    found = [
        cluster.kmeans_plusplus(X, k, sample_weight=beside, random_state=random)[0]
        for _ in range(starts)
    ]
    return np.stack([_dense(one) for one in found])


def _dense(X: Any) -> Any:
    return (X.toarray() if hasattr(X, "toarray") else X).astype(np.float64)


def _best(found: list[Clusters]) -> Clusters:
    return min(found, key=lambda one: one.inertia)


def _fitted(estimator: Any, rows: Rows, found: Clusters, centres: Any) -> Any:
    centres = centres.astype(rows.dtype)
    fitted = clone(estimator).set_params(init=centres, n_init=1, max_iter=1)
    # scikit-learn checks the parameters, and sets what `predict` needs
    with unheard(ConvergenceWarning):
        fitted.fit(centres)
    as_before(fitted, estimator, "init", "n_init", "max_iter")
    fitted.cluster_centers_, fitted.labels_ = centres, found.labels
    fitted.inertia_, fitted.n_iter_ = found.inertia, found.iterations
    distinct = len(np.unique(found.labels))
    if distinct < estimator.n_clusters:
        warnings.warn(
            f"Number of distinct clusters ({distinct}) found smaller than n_clusters "
            f"({estimator.n_clusters}). Possibly due to duplicate points in X.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return with_columns(fitted, rows)


CLUSTERS = (KMeans(),)
