"""`PCA`, scikit-learn's and mlopt's, by mlopt's solvers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import decomposition

from mlopt.costs import Cost
from mlopt.gd.pricing import shape_of_stats
from mlopt.pipeline.fits.models.twin import Twin, same
from mlopt.pipeline.library import pca_plan
from mlopt.pipeline.library.pca import PCA
from mlopt.pipeline.library.pca_fit import NAMES
from mlopt.pipeline.library.pca_plan import passes_over_rows
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
        if self.solver not in _ASKED.get(estimator.svd_solver, (self.solver,)):
            return f"svd_solver={estimator.svd_solver!r} was asked for"
        if stats.sparse and estimator.svd_solver in ("full", "randomized"):
            return f"svd_solver={estimator.svd_solver!r} takes no sparse rows"
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


COMPONENTS = tuple(
    map(Principal, ("covariance-eigh", "randomized", "tsqr", "arpack", "full-svd"))
)
