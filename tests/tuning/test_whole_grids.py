"""Finite spaces are tried to their end, and defaults are values of the space."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from optuna.distributions import FloatDistribution
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterGrid
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import mlopt
from mlopt.tuning.samplers.samplers import GridPlan
from mlopt.tuning.space.defaults import default_points
from mlopt.tuning.space.grid import shares
from mlopt.tuning.space.space import Space

X, Y = make_classification(80, 4, random_state=0)
ALL: dict[str, Any] = {"bandit": None, "cv": 2, "refit": False}


def tried(estimator: Any, space: Any, **more: Any) -> list[dict[str, Any]]:
    search = mlopt.ModelSearchCV(estimator, space, **ALL, **more).fit(X, Y)
    found: list[dict[str, Any]] = search.cv_results_["params"]
    return found


def keyed(points: Any) -> set[tuple[Any, ...]]:
    return {tuple(sorted((k, repr(v)) for k, v in point.items())) for point in points}


def test_a_grid_of_ranges_without_a_limit_is_walked_to_its_end() -> None:
    space = {"max_depth": range(1, 13), "min_samples_leaf": range(1, 13)}
    found = tried(DecisionTreeClassifier(), space, sampler="grid", n_trials=None)
    assert len(found) == 144
    assert keyed(found) == keyed(ParameterGrid({k: list(v) for k, v in space.items()}))


def test_a_large_grid_is_not_made_before_it_is_walked() -> None:
    ranges = {name: range(1, 10_000) for name in ("max_depth", "min_samples_leaf")}
    plan = GridPlan.of(Space.of(ranges, DecisionTreeClassifier()), 0, None)
    assert plan.size == 9999**2
    seen: list[tuple[int, int]] = []
    for number in range(30):
        point = plan.point(number, lambda p: (*p.values(),) in seen)
        assert point is not None
        seen.append((point["max_depth"], point["min_samples_leaf"]))
    assert seen[0] == (1, 1)
    assert len({depth for depth, _ in seen}) == 30  # from everywhere
    huge = Space.of({"random_state": range(2**31)}, DecisionTreeClassifier())
    assert GridPlan.of(huge, 0, None).size == 2**31


@pytest.mark.parametrize("sampler", ["random", "grid"])
def test_as_many_trials_as_points_take_in_every_space(sampler: str) -> None:
    spaces = [{"max_depth": range(1, 40)}, {"max_depth": [None]}]
    found = tried(DecisionTreeClassifier(), spaces, sampler=sampler, n_trials=40)
    assert len(keyed(found)) == 40


def test_what_a_small_space_leaves_goes_to_the_others() -> None:
    spaces = [
        {"kernel": ["linear"], "C": [1, 2, 3, 4]},
        {
            "kernel": ["rbf"],
            "C": [*np.logspace(-2, 2, 6)],
            "gamma": [*np.logspace(-3, 1, 6)],
        },
    ]
    found = tried(SVC(), spaces, sampler="grid", n_trials=24)
    assert len(keyed(found)) == 24
    assert sum(point["kernel"] == "linear" for point in found) == 4


@pytest.mark.parametrize(
    ("sizes", "total", "expected"),
    [
        ([4, 100], 64, [4, 60]),
        ([100, 4], 64, [60, 4]),
        ([np.inf, np.inf], 10, [5, 5]),
        ([3, 3, np.inf], 10, [3, 3, 4]),
        ([5, 5, 5], 2, [1, 1, 1]),
    ],
)
def test_shares(sizes: list[float], total: int, expected: list[int]) -> None:
    assert shares(sizes, total) == expected


def test_a_default_is_tried_as_the_space_lists_it() -> None:
    """1.0 of all columns is the default; one column is what is listed."""
    families = {"forest": (RandomForestRegressor(4), {"max_features": [1, 2, 3]})}
    search = mlopt.ModelSearchCV(families, sampler="grid", n_trials=None, **ALL)
    found = search.fit(X, X[:, 0]).cv_results_["params"]
    values = [point["max_features"] for point in found]
    assert sorted(values) == [1, 2, 3]
    assert {type(value) for value in values} == {int}


def test_a_default_is_a_step_of_its_range() -> None:
    families = {
        "near": (KNeighborsClassifier(), {"n_neighbors": range(2, 40, 4)}),
        "linear": (LogisticRegression(), {"C": FloatDistribution(0.3, 2.1, step=0.2)}),
        "bayes": (GaussianNB(), {}),
    }
    for point in default_points(Space.of_families(families)):
        assert point.get("near__n_neighbors", 2) in range(2, 40, 4)
    found = tried(families, None, n_trials=5, random_state=0)
    assert {p["n_neighbors"] for p in found if "n_neighbors" in p} <= {*range(2, 40, 4)}
    first = default_points(Space.of_families({"linear": families["linear"]}))[0]
    assert first["C"] == pytest.approx(1.1, abs=0.11)
    tenths = FloatDistribution(0.1, 1.0, step=0.1)
    own = {"linear": (LogisticRegression(C=0.3), {"C": tenths})}
    values = [p["C"] for p in tried(own, None, sampler="grid", n_trials=10)]
    assert len(values) == 10
    assert sorted(values)[-1] == 1.0
    whole = Space.of_families(
        {"near": (KNeighborsClassifier(), {"n_neighbors": range(1, 40, 2)})}
    )
    assert default_points(whole)[0] == {"n_neighbors": 5}
