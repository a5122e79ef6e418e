"""Samplers that learn: models of the scores, and descents."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import TrialState
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC

from mlopt import ModelSearchCV
from mlopt.tuning.samplers.cube import Cube
from mlopt.tuning.samplers.proposer import Proposer
from mlopt.tuning.samplers.samplers import SAMPLERS
from mlopt.tuning.samplers.surrogates import STARTUP, improvement
from mlopt.tuning.space.grid import at, level
from mlopt.tuning.space.space import Space
from mlopt.tuning.storage.records import recorded

LEARNING = [name for name, sampler in SAMPLERS.items() if sampler.guide]
DESCENTS = ["nelder-mead", "powell"]
MIXED = {
    "C": FloatDistribution(1e-3, 1e3, log=True),
    "degree": IntDistribution(1, 9),
    "kernel": ["rbf", "poly", "linear"],
}
RANGES = {"C": FloatDistribution(1e-3, 1e3, log=True), "tol": FloatDistribution(0.1, 2.0)}
FAMILIES = {
    "svm": (SVC(), {"C": FloatDistribution(1e-3, 1e3, log=True)}),
    "ridge": (Ridge(), {"alpha": FloatDistribution(1.0, 2.0), "positive": [True, False]}),
}


def hill(params: Mapping[str, Any]) -> float:
    """Best, 0, at C = 10, tol = 1."""
    return -float((math.log10(params["C"]) - 1.0) ** 2 + (params["tol"] - 1.0) ** 2)


def searched(
    sampler: str,
    score: Callable[[Mapping[str, Any]], float] = hill,
    *,
    trials: int = 40,
    batch: int = 1,
    seed: int = 3,
    space: Mapping[str, Any] = RANGES,
) -> Proposer:
    search = Proposer(Space.of(space), sampler, seed=seed)
    while search.proposed < trials and search.exhausted is None:
        for proposal in search.ask(batch):
            search.tell(proposal.number, score(proposal.params))
    return search


def test_the_methods_that_tupaq_compares_are_in_the_table() -> None:
    """Section 4.1: grid, random, Powell, Nelder-Mead, SMAC, TPE, GP."""
    named = {"grid", "random", "powell", "nelder-mead", "smac", "tpe", "gp"}
    assert named <= SAMPLERS.keys()


@pytest.mark.parametrize("sampler", LEARNING)
def test_what_learns_comes_nearer_than_what_draws(sampler: str) -> None:
    drawn = [searched("random", seed=seed).study.best_value for seed in range(5)]
    learnt = [searched(sampler, seed=seed).study.best_value for seed in range(5)]
    assert np.median(learnt) > np.median(drawn)


@pytest.mark.parametrize("sampler", ["gp", "smac", *DESCENTS])
def test_what_is_in_training_is_not_proposed_again(sampler: str) -> None:
    search = searched(sampler, trials=STARTUP + 2)
    asked = search.ask(8)
    points = {(one.params["C"], one.params["tol"]) for one in asked}
    assert len(points) == 8
    places = np.array(sorted(math.log10(one.params["C"]) for one in asked))
    assert places.max() - places.min() > 0.05


@pytest.mark.parametrize("sampler", LEARNING)
@pytest.mark.parametrize("space", ["mixed", "families"])
def test_choices_whole_numbers_and_families_are_searched(sampler: str, space: str) -> None:
    many = space == "families"
    found = Space.of_families(FAMILIES) if many else Space.of(MIXED)
    search = Proposer(found, sampler)
    for number in range(STARTUP + 8):
        (one,) = search.ask(1)
        assert found[one.family].distributions.keys() >= {
            name for name in search.study.trials[number].params if name != "family"
        }
        search.tell(one.number, float(number % 7))
    assert len({trial.params.get("family") for trial in search.study.trials}) == 1 + many


@pytest.mark.parametrize("sampler", LEARNING)
def test_a_finite_space_is_searched_to_its_end(sampler: str) -> None:
    space = {"degree": IntDistribution(1, 4), "kernel": ["rbf", "poly", "linear"]}
    search = searched(sampler, lambda params: params["degree"], trials=99, space=space)
    assert search.exhausted == "All 12 configurations have been tried."
    assert search.proposed == 12


@pytest.mark.parametrize("sampler", LEARNING)
def test_failed_and_given_up_trials_do_not_end_a_search(sampler: str) -> None:
    search = Proposer(Space.of(RANGES), sampler)
    for number in range(STARTUP + 8):
        (one,) = search.ask(1)
        if number % 3 == 0:
            search.tell(one.number, None, "FAIL", "it raised")
        elif number % 3 == 1:
            search.report(one.number, 1, -1e300 if number == 7 else 0.1)
            search.tell(one.number, None, "PRUNED")
        else:
            search.tell(one.number, hill(one.params))
    states = {trial.state for trial in search.study.trials}
    assert states == {TrialState.FAIL, TrialState.PRUNED, TrialState.COMPLETE}


@pytest.mark.parametrize("sampler", ["gp", "smac", *DESCENTS])
def test_a_search_that_is_taken_up_again_goes_on_alike(sampler: str) -> None:
    whole = searched(sampler, trials=STARTUP + 6)
    half = [recorded(trial) for trial in whole.study.trials[: STARTUP + 3]]
    again = Proposer(Space.of(RANGES), sampler, seed=3, recorded=half)
    for number in range(STARTUP + 6):
        (one,) = again.ask(1)
        assert one.params == whole.study.trials[number].params
        again.tell(one.number, hill(one.params))


def test_a_descent_ends_near_the_best_and_another_begins() -> None:
    search = searched("nelder-mead", trials=80)
    scores = [trial.value or 0.0 for trial in search.study.trials]
    assert max(scores) > -1e-3
    assert min(scores[60:]) < -1e-2  # at the start of another


@pytest.mark.parametrize("sampler", DESCENTS)
def test_a_descent_stays_within_the_box_although_the_best_is_outside(sampler: str) -> None:
    search = searched(sampler, lambda params: params["tol"], trials=50)
    assert search.study.best_value > 1.98


@pytest.mark.parametrize("distribution", [*RANGES.values(), IntDistribution(2, 9)])
def test_levels_are_where_values_come_from(distribution: Any) -> None:
    for value in (at(distribution, one) for one in np.linspace(0.01, 0.99, 23)):
        assert at(distribution, level(distribution, value)) == pytest.approx(value)


def test_a_cube_has_an_axis_for_each_parameter_of_any_family() -> None:
    cube = Cube(Space.of_families(FAMILIES))
    assert list(cube.axes) == ["family", "svm:C", "ridge:alpha", "ridge:positive"]
    point = cube.point(np.array([0.9, 0.1, 0.25, 0.1]))
    assert point == {"family": "ridge", "ridge:alpha": 1.25, "ridge:positive": True}
    np.testing.assert_allclose(cube.place(point), [0.75, 0.5, 0.25, 0.25])
    assert cube.features([point]).tolist() == [[0, 1, 0.5, 0.25, 1, 0]]


def test_expected_improvement_is_that_of_the_integral() -> None:
    """Jones et al. 1998, equation (15), against draws."""
    draws = np.random.default_rng(0).normal(-0.5, 2.0, 2_000_000)
    expected = np.maximum(draws, 0.0).mean()
    found = improvement(np.array([-0.5, 0.3]), np.array([2.0, 0.0]))
    np.testing.assert_allclose(found, [expected, 0.3], rtol=5e-3)


@pytest.mark.parametrize("sampler", LEARNING)
def test_searches_take_them(sampler: str) -> None:
    X, y = make_classification(120, 5, random_state=0)
    space = {"C": FloatDistribution(1e-3, 1e3, log=True), "solver": ["lbfgs", "newton-cg"]}
    search = ModelSearchCV(
        LogisticRegression(), space, sampler=sampler, n_trials=STARTUP + 4, cv=2, n_jobs=1
    ).fit(X, y)
    assert len(search.cv_results_["params"]) == STARTUP + 4
    assert search.best_score_ > 0.7
