"""What may take far less than the chosen plan is tried first, where its gaps tell soon."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mlopt.gd.plans import Task, plan
from mlopt.gd.plans.forecast import Passes
from mlopt.gd.plans.running import Alternative, Race
from mlopt.gd.plans.solver_plan import SolverPlan
from mlopt.gd.plans.trial import to_try

BEST, OTHER = "newton-cholesky", "newton-cg"


def planned(best: float = 2.5, low: float = 0.7, high: float = 12.0) -> SolverPlan:
    """As if the one took ``best`` seconds, and the other ``low`` to ``high``."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 40))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    task = Task("logistic", l2=1e-3)
    found = plan(task, X, y, tolerance=1e-6, methods=[BEST, OTHER], speculation=False)
    by_name = {one.name: one for one in found.alternatives}
    chosen = replace(
        by_name[BEST], predicted_seconds=best, span=(best, best), passes=Passes.known(5.0)
    )
    other = replace(by_name[OTHER], predicted_seconds=4.0, span=(low, high))
    return replace(found, contenders=(chosen, other))


def names(found: Alternative | None) -> str:
    return "" if found is None else found.name


@pytest.mark.parametrize(
    ("low", "high", "tried"),
    [
        (0.7, 12.0, OTHER),
        (2.4, 12.0, ""),  # it takes as long at best
        (0.7, 4000.0, ""),  # it hardly ever takes less
        (4.0, 4.0, ""),  # it is known to take longer
    ],
)
def test_what_is_likely_to_save_more_than_it_costs_is_tried(
    low: float, high: float, tried: str
) -> None:
    assert names(to_try(planned(low=low, high=high).contenders)) == tried


def test_a_trial_of_next_to_nothing_is_not_worth_it() -> None:
    assert to_try(planned(best=0.05, low=0.014, high=0.24).contenders) is None


def test_gaps_that_fall_at_the_end_or_weights_of_no_use_are_not_tried() -> None:
    chosen, other = planned().contenders
    for method in (
        replace(other.method, sudden=True),
        replace(other.method, continues=False),
    ):
        assert to_try((chosen, replace(other, method=method))) is None
    alone = replace(chosen, method=replace(chosen.method, continues=False))
    assert to_try((alone, other)) is None  # it could not go on from there


@pytest.mark.parametrize("left", [1.2, 1.3])
def test_it_is_left_unless_its_gaps_promise_twice_less(
    left: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = planned()
    slow = replace(found.contenders[1], predicted_seconds=1e6, passes=Passes.known(1.0))
    found = replace(found, contenders=(found.contenders[0], slow))
    monkeypatch.setattr(Race, "_left", lambda self: left)
    monkeypatch.setattr("mlopt.gd.plans.solver_plan.SHARE", 1e-9)
    result = found.run()
    assert result.methods == ((OTHER,) if left < 1.25 else (OTHER, BEST))
    assert result.converged
    assert "newton-cg, which may take 700 ms, is tried first" in found.explain()


def test_passes_that_somebody_limits_are_for_the_chosen_plan() -> None:
    found = planned()
    assert found.run(max_iter=50).methods == (BEST,)
    limited = replace(found, limits=(None, 50))
    assert limited.run().methods == (BEST,)
    assert "tried first" not in limited.explain()
