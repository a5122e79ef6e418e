"""Choosing columns in one pass: by variance, and by scores against the target.

Scores come from moments or sums of each class, or of columns and target together. They
are scikit-learn's up to rounding; its own formulas, which subtract sums of squares, lose
more digits far from zero than these do.

Shapes: k classes, d columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import (
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
    chi2,
    f_classif,
    f_regression,
)
from sklearn.utils.validation import validate_data

from mlopt.errors import InputError
from mlopt.pipeline.fits.numbers.blockwise import Blockwise, Columns, filled
from mlopt.pipeline.fits.numbers.scores import SCORES
from mlopt.pipeline.fits.numbers.spread import column_range, column_spread, together
from mlopt.pipeline.library.moments import Moments
from mlopt.stats import Stats

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Variances:
    """What a `VarianceThreshold` has seen.

    Attributes
    ----------
    columns : Columns
    rows : int
    spread : Moments
    low, high : ndarray of shape (d,)
        NaN where a value is missing: such columns count by variance alone.
    """

    columns: Columns
    rows: int
    spread: Moments
    low: Array
    high: Array


class MergedVariances(Blockwise):
    """`VarianceThreshold`; NaN and sparse rows included."""

    name = "merged moments"
    kinds = (VarianceThreshold,)

    def learn(self, model: Any, X: Any, y: Any, weight: Any) -> Variances:
        columns = Columns.of(model, X)
        X = validate_data(
            model,
            X,
            accept_sparse=("csr", "csc"),
            dtype=np.float64,
            ensure_all_finite="allow-nan",
        )
        return Variances(columns, int(X.shape[0]), column_spread(X), *column_range(X))

    def join(self, left: Variances, right: Variances) -> Variances:
        return Variances(
            left.columns,
            left.rows + right.rows,
            together(left.spread, right.spread),
            np.minimum(left.low, right.low),
            np.maximum(left.high, right.high),
        )

    def fitted(self, model: Any, statistics: Variances) -> Any:
        count, _, squares = statistics.spread
        with np.errstate(invalid="ignore", divide="ignore"):
            variances = squares / count
        if model.threshold == 0:
            # of constant columns, the range is zero where the variance may be rounding
            variances = np.fmin(variances, statistics.high - statistics.low)
        if not (variances > model.threshold).any():
            raise InputError(
                f"No feature in X meets the variance threshold {model.threshold:.5f} "
                f"in {statistics.rows} rows: lower `threshold`."
            )
        # scikit-learn checks the parameters and sets names on two rows that differ.
        model.fit(_spanning(statistics, model))
        model.variances_ = variances
        return model


def _spanning(statistics: Variances, model: Any) -> Any:
    """Two rows whose variances are above the threshold."""
    half = np.full(statistics.columns.count, 1.0 + 2.0 * float(model.threshold))
    return statistics.columns.block(np.stack((-half, half)))


@dataclass(frozen=True)
class Scored:
    """What a selection by scores has seen: columns, and sums that the score knows."""

    columns: Columns
    sums: Any


class MergedScores(Blockwise):
    """`SelectKBest` and `SelectPercentile` with `f_classif`, `f_regression` or `chi2`."""

    name = "merged scores"
    kinds = (SelectKBest, SelectPercentile)

    def refuses(self, estimator: Any, stats: Stats) -> str:
        """Why not: other scores are not sums over rows."""
        if estimator.score_func in SCORES:
            return ""
        known = ", ".join(
            f"`{score.__name__}`" for score in (f_classif, f_regression, chi2)
        )
        return f"`score_func` must be one of {known} to be merged from blocks"

    def learn(self, model: Any, X: Any, y: Any, weight: Any) -> Scored:
        if y is None:
            raise InputError(f"`{type(model).__name__}` needs a target: pass `y`.")
        columns = Columns.of(model, X)
        X, y = validate_data(model, X, y, accept_sparse=["csr"], multi_output=True)
        return Scored(columns, SCORES[model.score_func].of(X, y))

    def join(self, left: Scored, right: Scored) -> Scored:
        return Scored(left.columns, left.sums + right.sums)

    def fitted(self, model: Any, statistics: Scored) -> Any:
        given, found = model.score_func, statistics.sums.scores()
        # scikit-learn checks the parameters and sets names, with the scores as found.
        model.set_params(score_func=lambda X, y: found)
        model.fit(filled(statistics.columns, 1), np.zeros(1))
        return model.set_params(score_func=given)


SELECTING = (MergedVariances(), MergedScores())
