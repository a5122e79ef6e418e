"""The model families that a sweep tries by itself, with their search spaces.

Sizes follow the rows: a forest of 100 trees on 40 thousand rows takes as long as one of 12
on half a million, and a tree of many rows is as good as several of few. Every space also
holds the defaults of its scikit-learn class, which are among the first trials.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from optuna.distributions import FloatDistribution, IntDistribution
from sklearn.pipeline import Pipeline

from mlopt.sweep.roles import FEW_LEVELS, Roles
from mlopt.sweep.tabular import SPELLED_OUT, for_linear, for_trees
from mlopt.sweep.target import Target
from mlopt.sweep.texts import TOPICS
from mlopt.tuning.crews.growing import STOPS

FOREST = 100
"""Trees of scikit-learn's forests, and rounds of its boosting."""

TREE_ROWS = 4_000_000
"""Rows that all trees of one forest may see together."""

BOOSTING_CELLS = 4_000_000_000
"""Table cells that all trees of one boosted model may see together."""

FEATURE_BYTES = 128_000_000
"""What the random features of one training split may take."""

MANY_ROWS = 100_000
"""Rows from which boosting can use larger trees, and forests must save on features."""

Built = tuple[Any, dict[str, Any]]
"""An estimator and its space."""


@dataclass(frozen=True)
class Case:
    """All that a family needs to know to set itself up.

    Parameters
    ----------
    roles : Roles or None
        None for a sparse matrix, which needs no reading of columns.
    target : Target
    rows, columns : int
        Of the training part, as trees see it.
    seed : int
    """

    roles: Roles | None
    target: Target
    rows: int
    columns: int
    seed: int

    @property
    def classifies(self) -> bool:
        """Whether labels are predicted."""
        return self.target.classifies

    @property
    def spread(self) -> int:
        """Half the squared distance of two rows as linear models see them: each scaled
        column adds one, and so do all words of a text together."""
        topics = 0 if self.roles is None else (TOPICS - 1) * len(self.roles.texts)
        return self.columns - topics

    @property
    def trees(self) -> int:
        """Trees in a forest."""
        return max(12, min(FOREST, TREE_ROWS // max(1, self.rows)))

    @property
    def boosting_rounds(self) -> int:
        """The most rounds of boosting; each grows a tree for every class."""
        trees = len(self.target.classes) if self.target.kind == "multiclass" else 1
        cells = max(1, self.rows * self.columns * trees)
        return max(30, min(500, BOOSTING_CELLS // cells))

    @property
    def random_features(self) -> int:
        """Columns of random features: fewer than rows, and no more than fit in memory."""
        fitting = FEATURE_BYTES // (4 * max(1, self.rows))
        return int(max(50, min(600, fitting, self.rows // 2)))


def linear(case: Case) -> Built:
    """A linear model on one-hot and scaled columns, of any strength of regularisation."""
    from mlopt.gd.least_squares import Ridge
    from mlopt.gd.logistic import LogisticRegression

    if case.classifies:
        model, space = LogisticRegression(), {"model__C": log_float(1e-4, 1e4)}
    else:
        model, space = Ridge(), {"model__alpha": log_float(1e-4, 1e6)}
    return Pipeline([*linear_steps(case), ("model", model)]), space


def random_features(case: Case) -> Built:
    """The same behind random Fourier features: an approximate Gaussian kernel."""
    from mlopt.pipeline.library.random_features import RandomFeatures

    estimator, space = linear(case)
    # Trials of equal gamma share the features, and with them every pass over the rows.
    scale = 1.0 / max(1, case.spread)
    features = RandomFeatures(
        n_components=case.random_features, gamma=scale, random_state=case.seed
    )
    steps = [*estimator.steps[:-1], ("features", features), estimator.steps[-1]]
    gammas = [scale * factor for factor in (0.1, 0.3, 1.0, 3.0)]
    return Pipeline(steps), space | {"features__gamma": gammas}


def hist_gradient_boosting(case: Case) -> Built:
    """Gradient boosting on histograms, with categories as such."""
    from sklearn import ensemble

    steps, coded = tree_steps(case, FEW_LEVELS)
    kind = (
        ensemble.HistGradientBoostingClassifier
        if case.classifies
        else ensemble.HistGradientBoostingRegressor
    )
    model = kind(
        learning_rate=0.07,
        max_iter=min(200, case.boosting_rounds),
        max_leaf_nodes=16 if case.classifies and case.rows < MANY_ROWS else 31,
        l2_regularization=1.0,
        early_stopping=False,
        categorical_features=coded or None,
        random_state=case.seed,
    )
    rounds = case.boosting_rounds
    space: dict[str, Any] = {
        "model__learning_rate": log_float(0.02, 0.3),
        "model__max_iter": log_int(min(50, rounds // 2), max(FOREST, rounds)),
        "model__max_leaf_nodes": log_int(8, 128),
        "model__min_samples_leaf": log_int(5, 200),
        "model__l2_regularization": [0.0, 1e-3, 1e-2, 0.1, 1.0, 10.0],
        "model__max_features": FloatDistribution(0.3, 1.0),
    }
    if case.rows > STOPS:
        space["model__early_stopping"] = [False, "auto"]
    return Pipeline([*steps, ("model", model)]), space


def random_forest(case: Case) -> Built:
    """A random forest."""
    from sklearn import ensemble

    kind = (
        ensemble.RandomForestClassifier
        if case.classifies
        else ensemble.RandomForestRegressor
    )
    return _forest(case, kind)


def extra_trees(case: Case) -> Built:
    """Extremely randomised trees."""
    from sklearn import ensemble

    kind = (
        ensemble.ExtraTreesClassifier if case.classifies else ensemble.ExtraTreesRegressor
    )
    return _forest(case, kind)


def _forest(case: Case, kind: Callable[..., Any]) -> Built:
    steps, _ = tree_steps(case, SPELLED_OUT)
    leaf = 1 if case.rows < 20_000 else 2
    share: float | str = "sqrt" if case.classifies else 0.5
    shares = [0.1, 0.15, 0.25, 0.35, 0.5, *([0.8] if case.rows < MANY_ROWS else [])]
    model = kind(
        n_estimators=case.trees,
        min_samples_leaf=leaf,
        max_features=share,
        random_state=case.seed,
    )
    space: dict[str, Any] = {
        "model__max_features": [*shares, "sqrt" if case.classifies else 1.0],
        "model__min_samples_leaf": log_int(1, 20),
    }
    if case.trees < FOREST:
        space["model__n_estimators"] = log_int(case.trees, FOREST)
    return Pipeline([*steps, ("model", model)]), space


def linear_steps(case: Case) -> list[tuple[str, Any]]:
    if case.roles is None:
        from sklearn.preprocessing import MaxAbsScaler

        # Centring would fill the zeros in.
        return [("scale", MaxAbsScaler())]
    return for_linear(case.roles, case.target.kind, case.rows, case.seed)


def tree_steps(case: Case, spelled_out: int) -> tuple[list[tuple[str, Any]], list[int]]:
    if case.roles is None:
        return [], []
    return for_trees(case.roles, case.target.kind, case.seed, spelled_out=spelled_out)


def log_float(low: float, high: float) -> FloatDistribution:
    """A positive number on a logarithmic scale."""
    return FloatDistribution(low, high, log=True)


def log_int(low: int, high: int) -> IntDistribution:
    """A positive whole number on a logarithmic scale."""
    return IntDistribution(low, high, log=True)


DEFAULTS: Mapping[str, Callable[[Case], Built]] = {
    "linear": linear,
    "random_features": random_features,
    "hist_gradient_boosting": hist_gradient_boosting,
    "random_forest": random_forest,
    "extra_trees": extra_trees,
}
SPARSE: Mapping[str, Callable[[Case], Built]] = {
    name: DEFAULTS[name] for name in ("linear", "random_forest", "extra_trees")
}
