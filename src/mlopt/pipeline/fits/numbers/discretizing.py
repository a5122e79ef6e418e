"""Bins in one pass: of equal width from the extremes, of equal counts from quantiles.

scikit-learn looks at a random sample of ``subsample`` rows of larger data. Here all rows
count: the extremes are exact, quantiles as exact as `quantiles` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.preprocessing import KBinsDiscretizer
from sklearn.utils.validation import validate_data

from mlopt.errors import InputError
from mlopt.pipeline.fits.numbers.blockwise import Blockwise, Columns, as_before
from mlopt.pipeline.fits.numbers.quantiles import Sketch
from mlopt.stats import Stats


@dataclass(frozen=True)
class Binned:
    """What a `KBinsDiscretizer` has seen.

    Attributes
    ----------
    columns : Columns
    extremes : ndarray of shape (2, d)
        Smallest and largest value; of rows that count, where weights are given.
    sketch : Sketch, or None
        None for bins of equal width.
    weighted : tuple of ndarray of shape (n, d) and (n,), or None
        All values and their weights, for bins of equal weight: summaries of weighted rows
        are not merged.
    """

    columns: Columns
    extremes: NDArray[Any]
    sketch: Sketch | None
    weighted: tuple[NDArray[Any], NDArray[Any]] | None


class MergedBins(Blockwise):
    """`KBinsDiscretizer` with bins of equal width or equal counts."""

    name = "merged quantiles"
    kinds = (KBinsDiscretizer,)
    weighted = True

    def refuses(self, estimator: Any, stats: Stats) -> str:
        """Why not: k-means reads its rows again and again."""
        if estimator.strategy == "kmeans":
            return "`strategy='kmeans'` reads the rows many times"
        return ""

    def learn(self, model: Any, X: Any, y: Any, weight: Any) -> Binned | None:
        columns, X = Columns.of(model, X), validate_data(model, X, dtype="numeric")
        sketch = weighted = None
        if model.strategy == "quantile":
            if weight is None:
                sketch = Sketch.of(X)
            else:
                weighted = X, np.asarray(weight)
        elif weight is not None:
            X = X[np.asarray(weight) != 0]
            if not len(X):
                return None
        extremes = np.stack((X.min(axis=0), X.max(axis=0)))
        return Binned(columns, extremes, sketch, weighted)

    def join(self, left: Binned, right: Binned) -> Binned:
        low = np.minimum(left.extremes[0], right.extremes[0])
        high = np.maximum(left.extremes[1], right.extremes[1])
        sketch = weighted = None
        if left.sketch is not None and right.sketch is not None:
            sketch = left.sketch.merged(right.sketch)
        elif left.weighted is not None and right.weighted is not None:
            values, weights = zip(left.weighted, right.weighted, strict=True)
            weighted = np.concatenate(values), np.concatenate(weights)
        elif left.sketch is not right.sketch:
            raise InputError("Either all blocks have weights, or none: pass them for all.")
        return Binned(left.columns, np.stack((low, high)), sketch, weighted)

    def fitted(self, model: Any, statistics: Binned) -> Any:
        given = clone(model)
        model.set_params(subsample=None)
        if statistics.weighted is not None:
            values, weights = statistics.weighted
            model.fit(statistics.columns.block(values), None, weights)
        elif statistics.sketch is None:
            model.fit(statistics.columns.block(statistics.extremes))
        elif statistics.sketch.exact:
            model.fit(statistics.columns.block(statistics.sketch.points()[0]))
        else:
            _fit_sketch(model, statistics.columns, statistics.sketch, statistics.extremes)
        return as_before(model, given, "subsample", "quantile_method")


def _fit_sketch(model: Any, columns: Columns, sketch: Sketch, extremes: Any) -> None:
    """Bins from weighted points: all methods agree within the rank error of these."""
    values, weights = sketch.points()
    # The first and the last edge are the extremes, which a summary may have lost.
    values, weights = np.concatenate((values, extremes)), np.append(weights, (1.0, 1.0))
    if model.quantile_method != "inverted_cdf":
        model.set_params(quantile_method="averaged_inverted_cdf")
    model.fit(columns.block(values), None, weights)


DISCRETIZING = (MergedBins(),)
