"""The gap that `Watch` sees is the gap there is, near the minimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from mlopt.cluster import Threads
from mlopt.errors import InputError
from mlopt.gd.columns import layout
from mlopt.gd.passes import evaluate
from mlopt.gd.plans.methods import BY_NAME
from mlopt.gd.plans.ranking import plan
from mlopt.gd.plans.task import Problem, Task, problem_of
from mlopt.gd.plans.watch import Watch
from mlopt.resources import Resources


def well_conditioned() -> Any:
    return np.random.default_rng(0).normal(size=(6000, 20))


def ill_conditioned() -> Any:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(5000, 30)) @ rng.normal(size=(30, 30)) / 5
    return X * np.logspace(-1, 0.5, 30)


def wide() -> Any:
    return sparse.random_array((600, 2100), density=0.01, rng=2, format="csr")


def problem(X: Any, **task: Any) -> Problem:
    rng = np.random.default_rng(3)
    z = X @ rng.normal(size=X.shape[1]) + 0.3
    y = z / np.std(z) + rng.logistic(size=X.shape[0]) > 0
    where = Threads(2)
    return problem_of(Task("logistic", **{"l2": 1e-5} | task), X, y, where)


def at(problem: Problem, w: Any) -> tuple[float, Any]:
    plan = layout([problem.model])
    found = evaluate(problem.rows, np.asarray(w)[:, None], plan, problem.sums)
    assert found.gradient is not None
    return float(found.value[0]), found.gradient[:, 0].astype(float)


@pytest.mark.slow
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("X", [well_conditioned(), ill_conditioned()])
def test_the_gap_is_right_near_the_minimum(X: Any, fit_intercept: bool) -> None:
    task = problem(X, fit_intercept=fit_intercept)
    points: list[Any] = []
    options = {"maxiter": 1500, "maxfun": 3000, "ftol": 1e-15, "gtol": 1e-9}
    least = minimize(
        lambda w: at(task, w), np.zeros(X.shape[1] + 1), jac=True, method="L-BFGS-B",
        options=options, callback=lambda w: points.append(w.copy()),
    ).fun  # fmt: skip
    watch, ratios = Watch(task), []
    for w in points[:400]:
        value, gradient = at(task, w)
        gap = watch.gap(value, gradient, w)
        true = (value - least) / value
        if 1e-8 < true < 1e-2:
            ratios.append(gap / true)
    assert len(ratios) > 3
    assert max(ratios) < 3
    assert min(ratios) > 1 / 3


def test_a_checkpoint_goes_on_alike() -> None:
    task = problem(well_conditioned())
    points = [np.full(21, 0.1 / k) for k in range(1, 6)]
    whole, first, second = Watch(task), Watch(task), Watch(task)
    gaps = [whole.gap(*at(task, w), w) for w in points]
    for w in points[:3]:
        first.gap(*at(task, w), w)
    second.restore(first.state())
    assert [second.gap(*at(task, w), w) for w in points[3:]] == gaps[3:]


def test_losses_without_a_hessian_are_refused() -> None:
    X = well_conditioned()
    hinge = problem_of(Task("hinge", l2=1.0), X, X[:, 0] > 0, Threads(1))
    with pytest.raises(InputError, match="smooth loss"):
        Watch(hinge)


def test_wide_rows_without_a_penalty_have_no_gap_that_is_known() -> None:
    primal, free = BY_NAME["primal-coordinate-descent"], problem(wide(), l2=0.0)
    assert "`l2` must be positive" in str(primal.price(free.outline, Resources()))
    assert callable(primal.price(problem(wide()).outline, Resources()))
    y = free.beside()["targets"][:, 0]
    found = plan(free.task, wide(), y, tolerance=0.5, methods=["bgd/eager"])
    result = found.chosen.run()
    assert result.claim == "estimated"
    assert "by the rule of bgd/eager" in result.message


def test_far_away_nothing_is_near_the_minimum() -> None:
    one = problem(well_conditioned(), l2=1e-6)
    weights = np.append(np.full(one.rows.d, -1e9), 0.0)
    found = evaluate(
        one.rows, weights[:, None], layout([one.model]), one.sums, scored=False
    )  # fmt: skip
    assert found.gradient is not None
    gap = Watch(one).gap(float(found.value[0]), found.gradient[:, 0], weights)
    assert gap > 0.5
