"""scikit-learn's `TruncatedSVD` on blocks of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import decomposition
from sklearn.base import clone
from sklearn.utils import check_random_state

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.gd.pricing import shape_of_stats
from mlopt.pipeline.fits.models.twin import Priced, with_columns
from mlopt.pipeline.library import pca_plan
from mlopt.pipeline.library.truncated_svd import by_lanczos, by_sketch
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.stats import Stats


class Truncated(Priced):
    """`TruncatedSVD`, by the algorithm that it asks for.

    Parameters
    ----------
    algorithm : {"randomized", "arpack"}
    """

    kinds = (decomposition.TruncatedSVD,)

    def __init__(self, algorithm: str) -> None:
        self.name = algorithm

    def unlike(self, estimator: Any, stats: Stats) -> str:
        asked = estimator.algorithm
        return "" if asked == self.name else f"algorithm={asked!r} was asked for"

    def passes(self, estimator: Any, stats: Stats) -> float:
        return pca_plan.passes_over_rows(self.name, _shape(estimator, stats))

    def priced(
        self,
        estimator: Any,
        stats: Stats,
        resources: Resources,
        passes: float | None = None,
    ) -> Cost | str:
        return pca_plan.solver_cost(self.name, _shape(estimator, stats), resources)

    def fit(self, estimator: Any, rows: Rows, y: Any, weight: Any) -> Any:
        k, random = estimator.n_components, check_random_state(estimator.random_state)
        if k > rows.d:
            raise InputError(
                f"`n_components` must be at most the {rows.d} features, got {k}."
            )
        if self.name == "randomized":
            sketch = k + estimator.n_oversamples
            found = by_sketch(rows, k, sketch, estimator.n_iter, random)
        else:
            found = by_lanczos(rows, k, random)
        fitted = with_columns(clone(estimator), rows)
        ratios = found.variances / np.float64(found.total)  # 0/0 as in scikit-learn
        fitted.components_ = found.components.astype(rows.dtype)
        fitted.singular_values_ = found.singular.astype(rows.dtype)
        fitted.explained_variance_ = found.variances.astype(rows.dtype)
        fitted.explained_variance_ratio_ = ratios.astype(rows.dtype)
        return fitted


def _shape(estimator: Any, stats: Stats) -> pca_plan.Shape:
    rank = min(stats.rows, stats.columns)
    return pca_plan.Shape(
        rows=shape_of_stats(stats),
        components=min(int(estimator.n_components), rank),
        needs_all=False,
        oversamples=int(estimator.n_oversamples),
        iterations=int(estimator.n_iter),
    )


TRUNCATED = (Truncated("randomized"), Truncated("arpack"))
