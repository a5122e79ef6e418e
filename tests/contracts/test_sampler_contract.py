"""What every sampler promises: new configurations, in the space, the same for a seed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from scipy import stats
from sklearn.linear_model import Ridge
from sklearn.svm import SVC

from mlopt.tuning.samplers.proposer import Proposer
from mlopt.tuning.samplers.samplers import SAMPLERS
from mlopt.tuning.space.space import Space
from mlopt.tuning.storage.records import recorded

SPACES = {
    "ranges": lambda: Space.of(
        {"C": FloatDistribution(1e-3, 1e3, log=True), "tol": FloatDistribution(0.0, 1.0)}
    ),
    "mixed": lambda: Space.of(
        {"C": stats.norm(), "degree": IntDistribution(1, 500), "kernel": ["rbf", SVC()]}
    ),
    "families": lambda: Space.of_families(
        {
            "svm": (SVC(), {"C": stats.loguniform(1e-3, 1e3), "degree": range(1, 90)}),
            "ridge": (Ridge(), {"alpha": stats.loguniform(1e-3, 1e3)}),
        }
    ),
}
FINITE = {
    "lists": lambda: Space.of({"a": [1, 2, 3], "b": ["x", "y", "z"], "c": range(2)}),
    "one point": lambda: Space.of({}),
    "families": lambda: Space.of_families(
        {"svm": (SVC(), {"C": [1, 2, 3]}), "ridge": (Ridge(), {"alpha": [1]})}
    ),
}


@pytest.fixture(params=[*sorted(SAMPLERS), "an optuna sampler"])
def sampler(request: pytest.FixtureRequest) -> Any:
    if request.param in SAMPLERS:
        return request.param
    return optuna.samplers.QMCSampler(seed=1, warn_asynchronous_seeding=False)


def score(point: dict[str, Any]) -> float:
    """Something to learn from."""
    return float(-sum(abs(hash(str(value)) % 97 - 40) for value in point.values()))


def search(
    proposer: Proposer, n: int, batch: int = 4
) -> tuple[list[Hashable], list[dict[str, Any]]]:
    """Ask and tell up to trial ``n``; the keys and the points that were proposed."""
    while proposer.proposed < n:
        proposals = proposer.ask(min(batch, n - proposer.proposed))
        if not proposals:
            break
        points = [proposer.study.trials[p.number].params for p in proposals]
        for proposal, point in zip(proposals, points, strict=True):
            proposer.report(proposal.number, 3, score(point), {"score": [score(point)]})
            proposer.tell(proposal.number, score(point))
    points = [trial.params for trial in proposer.study.trials]
    return [proposer.space.key(point) for point in points], points


@pytest.mark.parametrize("space", SPACES)
def test_points_belong_to_the_space(sampler: Any, space: str) -> None:
    proposer = Proposer(SPACES[space](), sampler, n_trials=30)
    _, points = search(proposer, 30)
    for point in points:
        distributions = proposer.space.applicable(point)
        assert list(point) == list(distributions)
        for name, value in point.items():
            distribution = distributions[name]
            assert (
                distribution.to_external_repr(distribution.to_internal_repr(value)) == value
            )


@pytest.mark.parametrize("space", SPACES)
def test_no_configuration_comes_twice(sampler: Any, space: str) -> None:
    keys, _ = search(Proposer(SPACES[space](), sampler, n_trials=40), 40)
    assert len(set(keys)) == len(keys) >= 25


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("space", FINITE)
def test_a_finite_space_is_visited_once_and_then_ends(
    sampler: Any, space: str, batch: int
) -> None:
    proposer = Proposer(FINITE[space](), sampler, n_trials=100)
    keys, _ = search(proposer, 100, batch)
    assert len(set(keys)) == len(keys) == proposer.space.size
    assert proposer.exhausted is not None
    assert str(len(keys)) in proposer.exhausted
    assert proposer.ask(5) == []


def test_the_same_seed_gives_the_same_search(sampler: Any) -> None:
    if not isinstance(sampler, str):
        sampler = "random"  # a sampler object goes on where it was
    first, again = (
        search(Proposer(SPACES["mixed"](), sampler, seed=3), 24) for _ in range(2)
    )
    assert str(first[1]) == str(again[1])


def test_numbers_count_up(sampler: Any) -> None:
    proposer = Proposer(SPACES["ranges"](), sampler, n_trials=20)
    numbers = [p.number for _ in range(4) for p in proposer.ask(3)]
    assert numbers == list(range(12))


@pytest.mark.parametrize("space", ["mixed", "families"])
@pytest.mark.parametrize("killed_after", [1, 8, 13])
def test_recorded_trials_are_proposed_again(
    sampler: Any, space: str, killed_after: int
) -> None:
    before = Proposer(SPACES[space](), sampler, seed=5, n_trials=25)
    _, points = search(before, killed_after)
    found = [recorded(trial) for trial in before.study.trials]
    after = Proposer(SPACES[space](), sampler, seed=5, n_trials=25, recorded=found)
    proposals = after.ask(killed_after)
    assert [p.recorded for p in proposals] == found
    assert [p.params for p in proposals] == [after.space.decode(p)[1] for p in points]
    keys, _ = search(after, 25)
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("name", ["random", "grid"])
@pytest.mark.parametrize("space", SPACES)
def test_a_resumed_search_is_the_uninterrupted_one(name: str, space: str) -> None:
    whole, points = search(Proposer(SPACES[space](), name, seed=7, n_trials=30), 30)
    part = Proposer(SPACES[space](), name, seed=7, n_trials=30)
    search(part, 11)
    found = [recorded(trial) for trial in part.study.trials]
    resumed, _ = search(
        Proposer(SPACES[space](), name, seed=7, n_trials=30, recorded=found), 30
    )
    assert resumed == whole
    assert len(points) > 11


def test_guided_search_beats_chance() -> None:
    """TPE on a bowl, against random draws, over seeds; both with batches of 4."""

    def best(name: str, seed: int) -> float:
        space = Space.of({n: FloatDistribution(-5.0, 5.0) for n in "xy"})
        proposer = Proposer(space, name, seed=seed)
        scores: list[float] = []
        while proposer.proposed < 60:
            for p in proposer.ask(4):
                scores.append(-float(p.params["x"] ** 2 + p.params["y"] ** 2))
                proposer.tell(p.number, scores[-1])
        return max(scores)

    tpe, random = (
        np.mean([best(name, seed) for seed in range(3)]) for name in ("tpe", "random")
    )
    assert tpe > random
