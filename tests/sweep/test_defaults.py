"""Every family of a sweep is tried as scikit-learn has it, and to the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification, make_friedman1
from sklearn.model_selection import cross_val_score

from mlopt.sweep.families import DEFAULTS, Case
from mlopt.sweep.result import SweepResult
from mlopt.sweep.roles import roles_of
from mlopt.sweep.run import sweep
from mlopt.sweep.target import Target
from mlopt.tuning.space.defaults import default_points
from mlopt.tuning.space.space import Space

TREES = "hist_gradient_boosting", "random_forest", "extra_trees"


def table(kind: str) -> pd.DataFrame:
    """90 rows of five numbers and a ``target``."""
    if kind == "labels":
        X, y = make_classification(90, 5, flip_y=0.2, random_state=0)
        target: Any = np.where(y == 1, "yes", "no")
    else:
        X, target = make_friedman1(90, 5, noise=2.0, random_state=0)
    return pd.DataFrame(X, columns=list("abcde")).assign(target=target)


@pytest.fixture(scope="module", params=["labels", "numbers"])
def swept(request: pytest.FixtureRequest) -> SweepResult:
    return sweep(table(request.param), "target", n_trials=8, timeout=None, families=TREES)


def plain(estimator: Any) -> Any:
    """The same preprocessing with the class of the final step as scikit-learn has it."""
    estimator = clone(estimator)
    last = estimator.steps[-1][1]
    as_it_is = type(last)(random_state=0)
    if "categorical_features" in last.get_params():
        as_it_is.set_params(categorical_features=last.categorical_features)
    return estimator.set_params(model=as_it_is)


@pytest.mark.slow
@pytest.mark.parametrize("family", TREES)
def test_the_default_of_a_class_is_tried_and_scored_as_alone(
    swept: SweepResult, family: str
) -> None:
    prepared = swept.prepared
    alone = cross_val_score(
        plain(prepared.families[family][0]), prepared.X, prepared.y,
        cv=prepared.cv, scoring=prepared.scoring,
    )  # fmt: skip
    same = [row for row in swept.trials if row.score == pytest.approx(alone.mean(), 1e-12)]
    assert [row.state for row in same if row.family == family][:1] == ["COMPLETE"]


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("rows", [900, 15_000, 90_000, 5_000_000])
def test_every_default_is_a_point_of_its_space(rows: int, task: str) -> None:
    """However many rows there are; what is sized to them is so in other trials."""
    classes = np.array(["a", "b", "c"]) if task == "classification" else np.empty(0)
    case = Case(roles_of(table("numbers"), []), Target("y", task, "", classes), rows, 9, 0)
    families = {name: DEFAULTS[name](case) for name in TREES}
    space = Space.of_families(families)
    tried = [space.decode(point) for point in default_points(space)]
    for name, (estimator, _) in families.items():
        wanted = plain(estimator).named_steps["model"].get_params()
        if rows <= 10_000 and name == TREES[0]:
            wanted["early_stopping"] = False  # what "auto" means for so few
        own = [params for family, params in tried if family == name]
        models = [clone(estimator).set_params(**p).named_steps["model"] for p in own]
        assert wanted in [model.get_params() for model in models]


@pytest.mark.slow
def test_a_sweep_without_time_for_the_defaults_says_so() -> None:
    result = sweep(table("labels"), "target", n_trials=2, timeout=None, families=TREES)
    assert result.untried == ("hist_gradient_boosting", "extra_trees")
    said = "not fully trained with its defaults: hist_gradient_boosting; give more time"
    assert said in result.describe()


@pytest.mark.slow
def test_a_sweep_with_time_for_the_defaults_misses_none(swept: SweepResult) -> None:
    assert swept.untried == ()
    assert "with its defaults" not in swept.describe()
