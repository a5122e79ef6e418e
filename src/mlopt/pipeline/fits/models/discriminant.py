"""scikit-learn's `LinearDiscriminantAnalysis` in one pass: means and scatter of classes.

The solvers are scikit-learn's, from the scatter of rows about the mean of their class
instead of the rows: an SVD of the rows becomes eigenvectors of it.

Shapes: k classes, d columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.covariance import shrunk_covariance
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils.validation import column_or_1d, validate_data

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.gd.pricing import shape_of_stats
from mlopt.gd.row_products import gram_cost
from mlopt.gd.sizes import HALF
from mlopt.pipeline.fits.numbers.blockwise import Blockwise, Columns
from mlopt.pipeline.fits.numbers.classes import united
from mlopt.pipeline.fits.numbers.spread import together
from mlopt.resources import Resources
from mlopt.stats import Stats

Array = NDArray[np.float64]

_SOLVED = ("solver", "shrinkage", "covariance_estimator", "store_covariance")


@dataclass(frozen=True)
class Scatter:
    """What a `LinearDiscriminantAnalysis` has seen.

    Attributes
    ----------
    columns : Columns
    dtype : dtype
        Float type of the result.
    classes : ndarray of shape (k,)
        In order.
    count : ndarray of shape (k, 1)
        Rows of each class.
    mean : ndarray of shape (k, d)
    within : ndarray of shape (d, d)
        Sum of the outer products of rows less the mean of their class.
    """

    columns: Columns
    dtype: np.dtype
    classes: Any
    count: Array
    mean: Array
    within: Array


class MergedScatter(Blockwise):
    """`LinearDiscriminantAnalysis`."""

    name = "merged scatter of classes"
    kinds = (LinearDiscriminantAnalysis,)
    needs = "dense"

    def refuses(self, estimator: Any, stats: Stats) -> str:
        if estimator.solver not in _SOLVERS:
            return f"there is no solver {estimator.solver!r}"
        if estimator.covariance_estimator is not None or estimator.shrinkage == "auto":
            return "the covariance is estimated from the rows"
        if estimator.shrinkage is not None and estimator.solver == "svd":
            return "shrinkage needs another solver"
        if estimator.solver == "svd" and estimator.tol < 10 * HALF:
            return f"`tol`={estimator.tol:g} is less than sums of squares tell"
        if estimator.priors is not None and (
            estimator.solver != "svd" or estimator.store_covariance
        ):
            return "priors weigh the scatter of each class by itself"
        return ""

    def cost(
        self,
        estimator: Any,
        stats: Stats,
        resources: Resources,
        passes: float | None = None,
    ) -> Cost | None:
        del passes  # there is one
        last = Cost(flops=20.0 * float(stats.columns) ** 3)
        return gram_cost(shape_of_stats(stats), resources) + last

    def learn(self, model: Any, X: Any, y: Any, weight: Any) -> Scatter:
        columns = Columns.of(model, X)
        X = validate_data(model, X, dtype=[np.float64, np.float32])
        classes, codes = np.unique(column_or_1d(y), return_inverse=True)
        d, dtype = X.shape[1], X.dtype
        count, mean = np.zeros((len(classes), 1)), np.zeros((len(classes), d))
        within = np.zeros((d, d))
        for number in range(len(classes)):
            own = X[codes == number].astype(np.float64)
            # From the first row on, so that what is constant has no variance of rounding.
            first = own[0].copy()
            own -= first
            apart = own.mean(axis=0)
            count[number], mean[number] = len(own), first + apart
            own -= apart
            within += own.T @ own
        return Scatter(columns, dtype, classes, count, mean, within)

    def join(self, left: Scatter, right: Scatter) -> Scatter:
        ours, theirs = (left.count, left.mean), (right.count, right.mean)
        classes, (n, a), (m, b) = united(left.classes, ours, right.classes, theirs)
        count, mean, _ = together((n, a, np.zeros_like(a)), (m, b, np.zeros_like(b)))
        # Chan, Golub, LeVeque, 1979: what lies between two means of one class.
        apart = np.sqrt(n * m / np.maximum(n + m, 1.0)) * (a - b)
        within = left.within + right.within + apart.T @ apart
        dtype = np.promote_types(left.dtype, right.dtype)
        return Scatter(left.columns, dtype, classes, count, mean, within)

    def fitted(self, model: Any, statistics: Scatter) -> Any:
        total, k = float(statistics.count.sum()), len(statistics.classes)
        if total == k:
            raise InputError(
                f"The number of rows must be more than that of classes, got {k} of both."
            )
        given = {name: getattr(model, name) for name in _SOLVED}
        _checked(model, statistics)
        model.set_params(**given)
        if model.priors is None:
            model.priors_ = np.ravel(statistics.count / total).astype(statistics.dtype)
        for name in ("xbar_", "scalings_", "explained_variance_ratio_"):
            vars(model).pop(name, None)  # not every solver finds them
        found = _SOLVERS[model.solver](model, statistics)
        # What scikit-learn holds in the rows' own type; the rest in float64.
        single = {*found} - {"covariance_"} if model.solver == "svd" else {"means_"}
        if k == 2:
            for name in ("coef_", "intercept_"):
                found[name] = found[name][1:] - found[name][:1]
                single.add(name)
        for name, value in found.items():
            setattr(
                model, name, value.astype(statistics.dtype) if name in single else value
            )
        return model


def _checked(model: Any, statistics: Scatter) -> None:
    """Let scikit-learn check parameters and set names, on a few rows of each class."""
    classes, d = statistics.classes, statistics.columns.count
    model.set_params(
        solver="svd", shrinkage=None, covariance_estimator=None, store_covariance=False
    )
    rows = np.random.default_rng(0).normal(size=(3 * len(classes), d))
    X = statistics.columns.block(rows.astype(statistics.dtype))
    model.fit(X, np.repeat(classes, 3))


def _by_svd(model: Any, seen: Scatter) -> dict[str, Any]:
    n, k = float(seen.count.sum()), len(seen.classes)
    priors, mean = model.priors_.astype(np.float64), seen.mean
    covariance = seen.within / n
    std = np.sqrt(covariance.diagonal())
    std[std == 0] = 1.0
    squares, V = np.linalg.eigh(covariance / np.outer(std, std))
    S, V = np.sqrt(np.maximum(squares[::-1], 0.0)), V[:, ::-1]
    rank = int((model.tol < S).sum())
    inner = V[:, :rank] / std[:, None] / S[:rank]
    xbar = priors @ mean
    share = n * priors / max(k - 1, 1)
    between = (np.sqrt(share)[:, None] * (mean - xbar)) @ inner
    _, S, Vt = scipy.linalg.svd(between, full_matrices=False)
    rank = int((model.tol * S[0] < S).sum())
    scalings = inner @ Vt.T[:, :rank]
    coef = (mean - xbar) @ scalings
    intercept = np.log(priors) - 0.5 * np.square(coef).sum(axis=1)
    coef = coef @ scalings.T
    most = model._max_components
    ratio = np.empty(0) if most == 0 else (S**2 / (S**2).sum())[:most]
    found = {"covariance_": covariance} if model.store_covariance else {}
    return {
        **found,
        "means_": mean,
        "xbar_": xbar,
        "explained_variance_ratio_": ratio,
        "scalings_": scalings,
        "intercept_": intercept - coef @ xbar,
        "coef_": coef,
    }


def _by_eigenvectors(model: Any, seen: Scatter) -> dict[str, Any]:
    n, mean = float(seen.count.sum()), seen.mean
    within = _shrunk(model, seen.within / n)
    apart = np.sqrt(seen.count / n) * (mean - np.ravel(seen.count / n) @ mean)
    whole = _shrunk(model, seen.within / n + apart.T @ apart)
    values, vectors = scipy.linalg.eigh(whole - within, within)
    ratio = np.sort(values / values.sum())[::-1][: model._max_components]
    vectors = vectors[:, np.argsort(values)[::-1]]
    coef = mean @ vectors @ vectors.T
    return {
        "means_": mean,
        "covariance_": within,
        "explained_variance_ratio_": ratio,
        "scalings_": vectors,
        "coef_": coef,
        "intercept_": _plane(model, mean, coef),
    }


def _by_least_squares(model: Any, seen: Scatter) -> dict[str, Any]:
    mean, within = seen.mean, _shrunk(model, seen.within / float(seen.count.sum()))
    coef = scipy.linalg.lstsq(within, mean.T)[0].T
    return {
        "means_": mean,
        "covariance_": within,
        "coef_": coef,
        "intercept_": _plane(model, mean, coef),
    }


def _plane(model: Any, mean: Array, coef: Array) -> Array:
    priors = np.asarray(model.priors_, np.float64)
    return np.asarray(np.log(priors) - 0.5 * np.einsum("kd,kd->k", mean, coef))


def _shrunk(model: Any, covariance: Array) -> Array:
    if model.shrinkage is None:
        return covariance
    return np.asarray(shrunk_covariance(covariance, model.shrinkage))


_SOLVERS = {
    "svd": _by_svd,
    "eigen": _by_eigenvectors,
    "lsqr": _by_least_squares,
}

DISCRIMINANT = (MergedScatter(),)
