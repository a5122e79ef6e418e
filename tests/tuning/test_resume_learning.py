"""A sampler that learns goes on, after an interruption, as if there had been none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import mlopt
from mlopt import events
from mlopt.tuning.samplers.proposer import Proposer
from mlopt.tuning.space.space import Space

X, Y = make_classification(120, 6, flip_y=0.2, random_state=0)
SPACE = {
    "bayes": (GaussianNB(), {"var_smoothing": FloatDistribution(1e-9, 1e3, log=True)}),
    "tree": (
        DecisionTreeClassifier(),
        {
            "max_depth": IntDistribution(1, 12),
            "min_impurity_decrease": FloatDistribution(0.0, 0.2),
        },
    ),
}


class Enough(Exception):
    """Ends a search as a crash would."""


def search(sampler: Any, storage: Path | None = None, rungs: int | None = None) -> Any:
    def observe(event: events.Event) -> None:
        if isinstance(event, events.RungDone) and event.rung == rungs:
            raise Enough

    return mlopt.ModelSearchCV(
        SPACE, n_trials=24, cv=2, sampler=sampler, batch_size=3, storage=storage,
        observer=observe,
    )  # fmt: skip


def points(model: Any) -> list[Any]:
    return [(trial.params, trial.state.name) for trial in model.fit(X, Y).study_.trials]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tpe", "an object"])
def test_an_interrupted_search_resumes_to_the_same_search(
    tmp_path: Path, name: str
) -> None:
    def sampler() -> Any:
        given = optuna.samplers.TPESampler(seed=7, n_startup_trials=4)
        return given if name == "an object" else "tpe"

    whole = points(search(sampler()))
    with pytest.raises(Enough):
        search(sampler(), tmp_path / "study.db", rungs=5).fit(X, Y)
    resumed = points(search(sampler(), tmp_path / "study.db"))
    assert resumed == whole
    assert len({str(point) for point, _ in whole}) == 24


@pytest.mark.slow
def test_a_sampler_object_serves_twice() -> None:
    sampler = optuna.samplers.TPESampler(seed=7, n_startup_trials=4)
    assert points(search(sampler)) == points(search(sampler))


def test_tpe_learns_all_parameters_of_a_family_together() -> None:
    proposer = Proposer(Space.of_families(SPACE), "tpe")
    for proposal in proposer.ask(12):
        proposer.tell(proposal.number, 0.5)
    sampler, trial = proposer.study.sampler, proposer.study.trials[-1]
    joint = sampler.infer_relative_search_space(proposer.study, trial)
    assert joint.keys() == {
        "family", "bayes:var_smoothing", "tree:max_depth", "tree:min_impurity_decrease",
    }  # fmt: skip
