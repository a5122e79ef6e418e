"""mlopt's estimators by their own ``fit``, from rows that stay where they are."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone, is_classifier

from mlopt.costs import Cost
from mlopt.gd.elastic_net import ElasticNet, Lasso
from mlopt.gd.least_squares import Ridge
from mlopt.gd.logistic import LogisticRegression
from mlopt.gd.plans.fitting import prices
from mlopt.gd.plans.outline import Outline
from mlopt.gd.pricing import shape_of_stats
from mlopt.gd.svm import LinearSVC
from mlopt.gd.working_set import WAY
from mlopt.pipeline.fits.base import ManyPasses
from mlopt.pipeline.fits.models.twin import Priced, with_columns
from mlopt.pipeline.library.learning import (
    BlockLeastSquares,
    BlockLeastSquaresClassifier,
    KernelRidge,
    KernelRidgeClassifier,
    PerClassWeightedLeastSquares,
)
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.stats import Stats


class Own(ManyPasses):
    """The estimator's own ``fit``, given the blocks instead of all rows in one place."""

    def fit(self, estimator: Any, rows: Rows, y: Any, weight: Any) -> Any:
        beside = {} if weight is None else {"sample_weight": weight}
        return with_columns(clone(estimator).fit(rows, y, **beside), rows)


class ByBlocks(Own):
    """What learns by blocks of columns, or of rows of a kernel."""

    name = "block by block"
    sampled = True  # where only a fit tells how many features there are
    kinds = (
        BlockLeastSquares,
        BlockLeastSquaresClassifier,
        KernelRidge,
        KernelRidgeClassifier,
        PerClassWeightedLeastSquares,
    )

    def passes(self, estimator: Any, stats: Stats) -> float:
        return 2.0 * float(estimator.n_iter)

    def cost(
        self,
        estimator: Any,
        stats: Stats,
        resources: Resources,
        passes: float | None = None,
    ) -> Cost | None:
        found: Cost | None = estimator._foreseen(stats, resources)
        return found


class WorkingSets(Own, Priced):
    """Penalties with kinks, by working sets of columns: its ``fit`` gathers the rows."""

    name = WAY
    gathers = True
    kinds = (ElasticNet, Lasso, LogisticRegression, LinearSVC, Ridge)

    def unlike(self, estimator: Any, stats: Stats) -> str:
        if why := estimator._not_ours():
            return f"scikit-learn fits it: {why}"
        if getattr(estimator, "warm_start", False):
            return "it starts where it was"
        return "" if estimator._methods() == (WAY,) else "the penalty has no kinks"

    def priced(
        self,
        estimator: Any,
        stats: Stats,
        resources: Resources,
        passes: float | None = None,
    ) -> Cost | str:
        loss = "squared"
        if isinstance(estimator, LinearSVC):
            loss = "squared_hinge"
        elif is_classifier(estimator):
            loss = "multinomial" if stats.outputs > 1 else "logistic"
        outline = Outline(loss, shape_of_stats(stats), sharp=True)
        return prices((WAY,), outline, resources)[WAY]


OWN = (ByBlocks(), WorkingSets())
