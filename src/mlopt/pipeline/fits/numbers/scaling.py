"""Scalers in one pass: moments by Chan's formula, extremes by comparison.

Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample
variances", 1979.

Shapes: columns (d,).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.sparsefuncs import min_max_axis
from sklearn.utils.validation import validate_data

from mlopt.pipeline.fits.numbers.blockwise import Blockwise, Columns
from mlopt.pipeline.fits.numbers.spread import scaled_spread, together
from mlopt.pipeline.library.moments import Moments

FLOATS = (np.float64, np.float32)
_EPSILON = np.finfo(np.float64).eps


@dataclass(frozen=True)
class Scaled:
    """What a `StandardScaler` has seen.

    Attributes
    ----------
    columns : Columns
    count : ndarray of shape (d,)
        Rows that are not missing, or the sum of their weights.
    kind : dtype
        Of ``n_samples_seen_``.
    spread : Moments, or None
        None where scikit-learn keeps no means.
    """

    columns: Columns
    count: NDArray[np.float64]
    kind: np.dtype
    spread: Moments | None


class MergedMoments(Blockwise):
    """`StandardScaler`; NaN, sparse rows and weights included."""

    name = "merged moments"
    kinds = (StandardScaler,)
    panels = True
    weighted = True

    def learn(self, model: Any, X: Any, y: Any, weight: Any) -> Scaled | None:
        if weight is not None and not np.any(weight):
            return None
        columns = Columns.of(model, X)
        # columns that are missing everywhere in one block are nothing to warn of
        with np.errstate(invalid="ignore", divide="ignore"):
            model.fit(X, None, weight)
        seen = model.n_samples_seen_
        count = np.broadcast_to(np.asarray(seen, np.float64), (columns.count,))
        spread = None if model.mean_ is None else scaled_spread(model)
        return Scaled(columns, count, seen.dtype, spread)

    def join(self, left: Scaled, right: Scaled) -> Scaled:
        spread = None
        if left.spread is not None and right.spread is not None:
            spread = together(left.spread, right.spread)
        count = left.count + right.count
        return Scaled(left.columns, count, np.promote_types(left.kind, right.kind), spread)

    def fitted(self, model: Any, statistics: Scaled) -> Any:
        # scikit-learn checks the parameters and sets names; sparse rows have no means.
        model.fit(statistics.columns.block(np.zeros((1, statistics.columns.count))))
        count = statistics.count.astype(statistics.kind)
        model.n_samples_seen_ = count[0] if count.min() == count.max() else count
        model.mean_ = model.var_ = model.scale_ = None
        if statistics.spread is not None:
            _, model.mean_, squares = statistics.spread
            if model.with_std:
                with np.errstate(invalid="ignore", divide="ignore"):
                    model.var_ = squares / statistics.count
                model.scale_ = _scale(statistics.count, model.mean_, model.var_)
        return model


def _scale(count: Any, mean: Any, variance: Any) -> Any:
    """Standard deviations, and 1 for columns that are constant up to rounding.

    The bound of two-pass variances: Chan, Golub, LeVeque, "Algorithms for computing the
    sample variance", 1983, as in scikit-learn.
    """
    rounding = count * _EPSILON * variance + (count * mean * _EPSILON) ** 2
    return np.where(variance <= rounding, 1.0, np.sqrt(variance))


@dataclass(frozen=True)
class Extremes:
    """What a scaler by extremes has seen.

    Attributes
    ----------
    columns : Columns
    rows : int
    found : ndarray of shape (1 or 2, d)
        Rows on which scikit-learn fits what it fits on all: the smallest and the largest
        value of each column, or the largest absolute one. NaN where all are missing.
    """

    columns: Columns
    rows: int
    found: Any


class _ByExtremes(Blockwise):
    """What scikit-learn fits to the rows that were found is what it fits to all."""

    panels = True

    def fitted(self, model: Any, statistics: Extremes) -> Any:
        model.fit(statistics.columns.block(statistics.found))
        model.n_samples_seen_ = statistics.rows
        return model


class MergedExtremes(_ByExtremes):
    """`MinMaxScaler`, exactly; NaN included."""

    name = "merged extremes"
    kinds = (MinMaxScaler,)

    def learn(self, model: Any, X: Any, y: Any, weight: Any) -> Extremes:
        columns = Columns.of(model, X)
        X = validate_data(model, X, dtype=FLOATS, ensure_all_finite="allow-nan")
        found = np.stack((np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)))
        return Extremes(columns, len(X), found)

    def join(self, left: Extremes, right: Extremes) -> Extremes:
        low = np.fmin(left.found[0], right.found[0])
        high = np.fmax(left.found[1], right.found[1])
        return _joined(left, right, np.stack((low, high)))


class MergedMagnitudes(_ByExtremes):
    """`MaxAbsScaler`, exactly; NaN and sparse rows included."""

    name = "merged magnitudes"
    kinds = (MaxAbsScaler,)

    def learn(self, model: Any, X: Any, y: Any, weight: Any) -> Extremes:
        columns = Columns.of(model, X)
        X = validate_data(
            model,
            X,
            accept_sparse=("csr", "csc"),
            dtype=FLOATS,
            ensure_all_finite="allow-nan",
        )
        if sp.issparse(X):
            low, high = min_max_axis(X, axis=0, ignore_nan=True)
            largest = np.fmax(np.abs(low), np.abs(high))
        else:
            largest = np.fmax.reduce(np.abs(X), axis=0)
        return Extremes(columns, int(X.shape[0]), largest[None])

    def join(self, left: Extremes, right: Extremes) -> Extremes:
        return _joined(left, right, np.fmax(left.found, right.found))


def _joined(left: Extremes, right: Extremes, found: Any) -> Extremes:
    return Extremes(left.columns, left.rows + right.rows, found)


SCALING = (MergedMoments(), MergedExtremes(), MergedMagnitudes())
