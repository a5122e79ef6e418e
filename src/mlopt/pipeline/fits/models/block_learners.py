"""mlopt's estimators that learn by blocks, from rows that stay where they are."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from mlopt.pipeline.fits.base import ManyPasses
from mlopt.pipeline.fits.models.twin import with_columns
from mlopt.pipeline.library.learning import (
    BlockLeastSquares,
    BlockLeastSquaresClassifier,
    KernelRidge,
    KernelRidgeClassifier,
    PerClassWeightedLeastSquares,
)
from mlopt.rows import Rows
from mlopt.stats import Stats


class ByBlocks(ManyPasses):
    """The estimator's own ``fit``, given the blocks instead of all rows in one place.

    What it costs is known once its features are fitted; a trial on a sample tells before.
    """

    name = "block by block"
    kinds = (
        BlockLeastSquares,
        BlockLeastSquaresClassifier,
        KernelRidge,
        KernelRidgeClassifier,
        PerClassWeightedLeastSquares,
    )

    def passes(self, estimator: Any, stats: Stats) -> float:
        return 2.0 * float(estimator.n_iter)

    def fit(self, estimator: Any, rows: Rows, y: Any, weight: Any) -> Any:
        beside = {} if weight is None else {"sample_weight": weight}
        return with_columns(clone(estimator).fit(rows, y, **beside), rows)


BLOCK_LEARNERS = (ByBlocks(),)
