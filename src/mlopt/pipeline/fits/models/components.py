"""`PCA`, scikit-learn's and mlopt's, and `TruncatedSVD`, by mlopt's solvers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import decomposition
from sklearn.base import clone
from sklearn.utils import check_random_state

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.gd.pricing import shape_of_stats
from mlopt.pipeline.fits.models.twin import Priced, Twin, same, with_columns
from mlopt.pipeline.library import pca_plan
from mlopt.pipeline.library.pca import PCA
from mlopt.pipeline.library.pca_fit import NAMES
from mlopt.pipeline.library.pca_plan import passes_over_rows
from mlopt.pipeline.library.truncated_svd import by_lanczos, by_sketch
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.stats import Stats

_ASKED = {
    "full": ("full-svd", "tsqr"),
    "covariance_eigh": ("covariance-eigh",),
    "arpack": ("arpack",),
    "randomized": ("randomized",),
}
"""The ways of each of scikit-learn's solvers; "auto" leaves the choice."""


class Principal(Twin):
    """`PCA`."""

    ours = PCA
    asks = "svd_solver"
    kinds = (decomposition.PCA, ours)
    learnt = (
        "components_", "explained_variance_", "explained_variance_ratio_",
        "singular_values_", "mean_", "n_components_", "n_samples_", "noise_variance_",
    )  # fmt: skip

    def twin(self, estimator: Any, rows: Rows) -> Any:
        names = "n_components", "whiten", "iterated_power", "n_oversamples", "random_state"
        return PCA(svd_solver=NAMES[self.solver], **same(estimator, *names))

    @property
    def named(self) -> str:
        return NAMES[self.solver]

    def differs(self, estimator: Any, stats: Stats) -> str:
        if estimator.n_components == "mle":
            return "the number of components is to be guessed"
        if estimator.n_components == 0:
            return "no component is kept"
        if self.solver not in _ASKED.get(estimator.svd_solver, (self.solver,)):
            return f"svd_solver={estimator.svd_solver!r} was asked for"
        if stats.sparse and estimator.svd_solver in ("full", "randomized"):
            return f"svd_solver={estimator.svd_solver!r} takes no sparse rows"
        if stats.sparse and estimator.svd_solver == "auto":
            return _lanczos_differs(estimator.n_components, stats)
        return ""

    def passes(self, estimator: Any, stats: Stats) -> float:
        shape = _shape(stats, estimator)
        return 1.0 if isinstance(shape, str) else passes_over_rows(self.solver, shape)

    def priced(
        self,
        estimator: Any,
        stats: Stats,
        resources: Resources,
        passes: float | None = None,
    ) -> Cost | str:
        shape = _shape(stats, estimator)
        if isinstance(shape, str):
            return shape
        # Where scikit-learn's own choice would not approximate, this does not either.
        free = self.solver == "randomized" and estimator.svd_solver == "auto"
        if free and not shape.may_approximate:
            return "approximate"
        return pca_plan.solver_cost(self.solver, shape, resources)


def _lanczos_differs(wanted: Any, stats: Stats) -> str:
    """Of sparse rows "auto" is scikit-learn's "arpack", which is not able to keep all."""
    most = min(stats.rows, stats.columns)
    if isinstance(wanted, int | np.integer) and 1 <= wanted < most:
        return ""
    return f"of sparse rows scikit-learn keeps a number of components below {most}"


def _shape(stats: Stats, estimator: Any) -> pca_plan.Shape | str:
    rank, wanted = min(stats.rows, stats.columns), estimator.n_components
    whole = isinstance(wanted, int | np.integer)
    components = int(wanted) if whole else rank
    if components > rank:
        return f"{components} components of at most {rank}"
    iterations = estimator.iterated_power
    if not isinstance(iterations, int):
        iterations = 7 if components < 0.1 * rank else 4
    return pca_plan.Shape(
        rows=shape_of_stats(stats),
        components=components,
        needs_all=not whole,
        oversamples=estimator.n_oversamples,
        iterations=iterations,
    )


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
        return passes_over_rows(self.name, _shape_truncated(estimator, stats))

    def priced(
        self,
        estimator: Any,
        stats: Stats,
        resources: Resources,
        passes: float | None = None,
    ) -> Cost | str:
        return pca_plan.solver_cost(
            self.name, _shape_truncated(estimator, stats), resources
        )

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


def _shape_truncated(estimator: Any, stats: Stats) -> pca_plan.Shape:
    rank = min(stats.rows, stats.columns)
    return pca_plan.Shape(
        rows=shape_of_stats(stats),
        components=min(int(estimator.n_components), rank),
        needs_all=False,
        oversamples=int(estimator.n_oversamples),
        iterations=int(estimator.n_iter),
    )


COMPONENTS = (
    *map(Principal, ("covariance-eigh", "randomized", "tsqr", "arpack", "full-svd")),
    *map(Truncated, ("randomized", "arpack")),
)
