"""Whether classes may be separated, as some rows tell, decides how squared hinges go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_wine, make_classification
from sklearn.svm import LinearSVC

from mlopt import ModelSearchCV
from mlopt.gd.columns import Model
from mlopt.gd.plans.newton_cholesky import Newton
from mlopt.rows import Rows
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.crews.scans import LOCKSTEP
from mlopt.tuning.crews.spaces import space_of

GRID = {"C": np.logspace(-3, 3, 16).tolist()}


def searched(X: Any, y: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Problem, str]:
    """The problem of a search over `LinearSVC`, and how its models descend."""
    found: list[tuple[Problem, str]] = []

    def noted(tasks: Any, rows: Rows, problem: Problem) -> Any:
        space = space_of(tasks, rows, problem)
        found.append((problem, space.way))
        return space

    monkeypatch.setattr("mlopt.tuning.crews.scan.space_of", noted)
    search = ModelSearchCV(LinearSVC(), GRID, sampler="grid", bandit=None, n_trials=None)
    search.fit(X, y)
    return found[0]


def test_classes_that_overlap_are_descended_to_in_lockstep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = make_classification(9000, 40, n_classes=3, n_informative=9, random_state=0)
    problem, way = searched(X, y, monkeypatch)
    assert not problem.apart
    assert way == LOCKSTEP
    assert not replace(problem, X=sp.csr_array(X)).apart
    wide = replace(problem, X=np.tile(X, (1, 8)))  # too few rows to tell
    assert wide.apart


def test_classes_that_a_plane_separates_may_take_any_number_of_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = load_wine(return_X_y=True)
    problem, way = searched(X, y, monkeypatch)
    assert problem.apart
    assert way != LOCKSTEP


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_nearly_separated_classes_take_few_hessians(C: float) -> None:
    rng = np.random.default_rng(104)
    X = rng.normal(size=(21_000, 60)) * np.exp(rng.normal(size=60))
    y = np.where(X @ rng.normal(size=60) + 0.01 * rng.normal(size=len(X)) > 0, 1.0, -1.0)
    rows = Rows.of(X).attach(targets=y[:, None], weights=np.ones((len(X), 1)))
    l2 = 1.0 / (C * len(X))
    model = Model("squared_hinge", l2, intercept_l2=l2)
    newton = Newton(rows, model, gtol=1e-4, max_passes=400)
    newton.advance(6)
    again = Newton(rows, model, gtol=1e-4, max_passes=400)
    again.restore(newton.state())
    for one in (newton, again):
        one.advance(400)
        assert one.converged[0]
        assert one.passes <= 30
    np.testing.assert_array_equal(newton.coefficients()[0], again.coefficients()[0])
