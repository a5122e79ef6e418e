"""What is drawn at random for the columns there are, whatever stands in the rows.

One row tells how many columns there are, of which type, and what they are called.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.kernel_approximation import (
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils import check_array

from mlopt.pipeline.blocks.tables import take_rows
from mlopt.pipeline.fits.numbers.blockwise import Blockwise, Columns
from mlopt.pipeline.library.random_features import RandomFeatures
from mlopt.pipeline.library.signal import RandomSign
from mlopt.stats import Stats


@dataclass(frozen=True)
class Row:
    """The first row of a block."""

    columns: Columns
    row: Any


class Drawn(Blockwise):
    """scikit-learn's own ``fit``, on one row."""

    name = "one row"
    kinds = (
        RBFSampler, SkewedChi2Sampler, PolynomialCountSketch, GaussianRandomProjection,
        SparseRandomProjection, RandomFeatures, RandomSign,
    )  # fmt: skip
    by_columns = True

    def refuses(self, estimator: Any, stats: Stats) -> str:
        """Why not: some scales and sizes are chosen by all rows."""
        if getattr(estimator, "gamma", None) == "scale":
            return "`gamma='scale'` needs the variance of all rows"
        if getattr(estimator, "n_components", None) == "auto":
            return "`n_components='auto'` needs the number of rows"
        return ""

    def learn(self, model: Any, X: Any, y: Any, weight: Any) -> Row:
        check_array(X, accept_sparse=True, allow_nd=True, dtype=None)  # all of its rows
        return Row(Columns.of(model, X), take_rows(X, [0]))

    def join(self, left: Row, right: Row) -> Row:
        return left

    def fitted(self, model: Any, statistics: Row) -> Any:
        return model.fit(statistics.row)


DRAWING = (Drawn(),)
