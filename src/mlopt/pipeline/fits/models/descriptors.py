"""Estimators of descriptors, every one a row, and filters, on blocks of images."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from mlopt.costs import Cost
from mlopt.pipeline.blocks.tables import as_numbers
from mlopt.pipeline.fits.base import SEEN, ManyPasses, OnePass
from mlopt.pipeline.fits.few import Few
from mlopt.pipeline.fits.models.twin import with_columns
from mlopt.pipeline.library.column_pca import ColumnPCA
from mlopt.pipeline.library.fisher import FisherVector
from mlopt.pipeline.library.image.drawn import Drawn
from mlopt.pipeline.library.image.learned import LearnedConvolver
from mlopt.pipeline.library.mixture import GaussianMixture
from mlopt.prices import count, price
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.stats import Stats

_ITERATIONS = count("mixture.iterations")
_BESIDE = count("mixture.beside")
_SKINNY = price("mixture.skinny")
_DOUBT = price("mixture.doubt")


class Mixture(ManyPasses):
    """`GaussianMixture` by EM, a pass an iteration."""

    name = "EM by block"
    kinds = (GaussianMixture,)
    flattens = True

    def refuses(self, estimator: Any, stats: Stats) -> str:
        return "rows must be dense" if stats.sparse else ""

    def passes(self, estimator: Any, stats: Stats) -> float:
        return float(min(_ITERATIONS, estimator.max_iter) + _BESIDE)

    def doubt(self, estimator: Any) -> float:
        return _DOUBT

    def cost(
        self,
        estimator: Any,
        stats: Stats,
        resources: Resources,
        passes: float | None = None,
    ) -> Cost | None:
        # in float64: products for densities and for sums, of rows and of their squares
        operations = _SKINNY * 8.0 * _values(stats) * estimator.n_components
        one = Cost(flops=operations / resources.workers, memory=float(stats.bytes))
        return (passes or self.passes(estimator, stats)) * one

    def speculate(
        self, estimator: Any, few: Few, stats: Stats
    ) -> tuple[float, float] | None:
        rows = Few(as_numbers(few.X, flattens=True), None).rows
        if rows.n < estimator.n_components:
            return None
        return float(clone(estimator).fit_rows(rows).n_iter_ + _BESIDE), SEEN

    def fit(self, estimator: Any, rows: Rows, y: Any, weight: Any) -> Any:
        return with_columns(clone(estimator).fit_rows(rows), rows)


class Sampled(ManyPasses):
    """Two passes, for sizes and for a sample of the descriptors; the rest is done here."""

    name = "sample by block"
    kinds = (FisherVector, ColumnPCA)
    flattens = True

    def refuses(self, estimator: Any, stats: Stats) -> str:
        return "descriptors must be dense" if stats.sparse else ""

    def passes(self, estimator: Any, stats: Stats) -> float:
        return 2.0

    def cost(
        self,
        estimator: Any,
        stats: Stats,
        resources: Resources,
        passes: float | None = None,
    ) -> Cost | None:
        columns = _columns(stats)
        few = min(estimator.n_samples, _values(stats) / columns)
        # Directions: a covariance matrix. A mixture: products for densities and for sums.
        operations = 2.0 * few * columns**2
        if isinstance(estimator, FisherVector):
            iterations = min(_ITERATIONS, estimator.max_iter)
            operations = iterations * _SKINNY * 8.0 * few * columns * estimator.n_components
        reading = Cost(memory=float(stats.bytes))
        return (passes or self.passes(estimator, stats)) * reading + Cost(flops=operations)

    def fit(self, estimator: Any, rows: Rows, y: Any, weight: Any) -> Any:
        return clone(estimator).fit_rows(rows)


class DrawPatches(OnePass):
    """`LearnedConvolver`: patches of each block, those of the smallest numbers kept."""

    name = "patches by block"
    kinds = (LearnedConvolver,)

    def part(self, estimator: Any, X: Any, y: Any, weight: Any) -> tuple[Drawn, int]:
        return estimator.draw(X), estimator.most_images

    def merge(self, left: tuple[Drawn, int], right: tuple[Drawn, int]) -> Any:
        drawn, most = left
        return drawn.merge(right[0], most), most

    def finish(self, estimator: Any, statistics: tuple[Drawn, int]) -> Any:
        return clone(estimator).finish(statistics[0])


def _columns(stats: Stats) -> float:
    """Of a descriptor; ``stats`` count descriptors of an image where there are images."""
    each = _values(stats) / max(1, stats.rows * stats.columns)
    return each if each > 1 else float(max(1, stats.columns))


def _values(stats: Stats) -> float:
    """Numbers of all rows, which may be descriptors of images."""
    size = np.dtype(stats.dtype).itemsize if stats.dtype != "mixed" else 8
    return stats.bytes / size


DESCRIPTORS = (Mixture(), Sampled(), DrawPatches())
