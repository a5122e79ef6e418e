"""Ask and tell on the study that users get, and the sampler table."""

from __future__ import annotations

import json
import logging
import math
from contextlib import ExitStack

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState
from scipy import stats
from sklearn.linear_model import Ridge
from sklearn.svm import SVC

from mlopt.errors import InputError, StudyError
from mlopt.tuning.samplers.proposer import Proposer, quiet
from mlopt.tuning.samplers.samplers import RandomPlan, sampler_of
from mlopt.tuning.space.space import Space
from mlopt.tuning.storage.records import Recorded, recorded


def proposer(sampler: str = "random", n_trials: int | None = None) -> Proposer:
    space = Space.of(
        {"C": FloatDistribution(1e-3, 1e3, log=True), "kernel": ["rbf", SVC()]}
    )
    return Proposer(space, sampler, n_trials=n_trials, study_name="here")


def test_the_study_holds_what_was_told() -> None:
    search = proposer()
    first, second, third = search.ask(3)
    search.report(first.number, 3, 0.5, {"accuracy": [0.4, 0.6], "auc": [0.7, 0.8]})
    search.report(first.number, 9, 0.7, {"accuracy": [0.6, 0.8], "auc": [0.8, 0.9]})
    search.note(first.number, seconds=1.5)
    assert search.tell(first.number, 0.7) == "COMPLETE"
    search.report(second.number, 3, 0.2)
    assert search.tell(second.number, None, "PRUNED", "rank 2 of 2") == "PRUNED"
    assert search.tell(third.number, None, "FAIL", "it raised") == "FAIL"
    trials = search.study.trials
    assert [t.state for t in trials] == [
        TrialState.COMPLETE,
        TrialState.PRUNED,
        TrialState.FAIL,
    ]
    assert [t.value for t in trials] == [0.7, 0.2, None]
    assert trials[0].intermediate_values == {3: 0.5, 9: 0.7}
    assert trials[2].user_attrs["reason"] == "it raised"
    assert search.study.best_trial.number == first.number
    assert search.study.study_name == "here"


def test_a_trial_survives_the_study() -> None:
    """What `recorded` reads is what was reported."""
    search = proposer()
    (proposal,) = search.ask(1)
    search.report(proposal.number, 3, 0.5, {"accuracy": [0.4, 0.6]})
    train = {"accuracy": [0.9, 0.8]}
    search.note(proposal.number, seconds=1.5, train_scores=train, mood=[0.9])
    search.tell(proposal.number, None, "PRUNED", "too slow")
    found = recorded(search.study.trials[0])
    assert found == Recorded(
        number=0,
        params=search.study.trials[0].params,
        state="PRUNED",
        rungs={3: {"accuracy": (0.4, 0.6)}},
        train={"accuracy": (0.9, 0.8)},
        score=0.5,
        reason="too slow",
        seconds=1.5,
    )
    assert found.finished
    assert search.study.trials[0].user_attrs["mood"] == [0.9]
    assert search.space.decode(found.params) == ("", dict(proposal.params))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, None])
def test_a_score_that_is_no_number_fails_the_trial(bad: float | None) -> None:
    search = proposer()
    (proposal,) = search.ask(1)
    assert search.tell(proposal.number, bad) == "FAIL"
    assert search.study.trials[0].user_attrs["reason"] == f"the score is {bad}"


def test_values_are_kept_as_labels_and_given_as_objects() -> None:
    search = proposer()
    proposals = search.ask(10)
    seen = {trial.params["kernel"] for trial in search.study.trials}
    assert seen == {"rbf", "SVC()"}
    assert {type(p.params["kernel"]) for p in proposals} == {str, SVC}
    json.dumps([trial.params for trial in search.study.trials])


def test_only_what_changed_is_handed_on() -> None:
    search = proposer()
    search.ask(3)
    assert [t.number for t in search.changed()] == [0, 1, 2]
    assert search.changed() == []
    search.report(1, 3, 0.5)
    (changed,) = search.changed()
    search.report(1, 9, 0.6)
    assert changed.intermediate_values == {3: 0.5}


def test_a_dead_process_leaves_trials_that_are_proposed_again() -> None:
    search = proposer()
    search.ask(2)
    search.report(0, 3, 0.5)
    found = [recorded(trial) for trial in search.study.trials]
    assert [r.state for r in found] == ["RUNNING", "RUNNING"]
    assert not found[0].finished
    again = Proposer(search.space, "random", recorded=found).ask(3)
    assert [p.recorded is not None for p in again] == [True, True, False]
    assert again[0].params["C"] == search.study.trials[0].params["C"]


def test_trials_of_another_space_are_refused() -> None:
    stranger = Recorded(number=0, params={"alpha": 1})
    with pytest.raises(StudyError, match="Trial 0 of the study must have the parameters"):
        Proposer(Space.of({"C": [1, 2]}), recorded=[stranger])
    families = Space.of_families({"svm": (SVC(), {"C": [1]}), "ridge": (Ridge(), {})})
    gone = Recorded(number=0, params={"family": "lasso"})
    with pytest.raises(StudyError, match="Use another `study_name`"):
        Proposer(families, recorded=[gone])


def test_a_random_point_depends_on_seed_and_number_alone() -> None:
    plan = RandomPlan(Space.of({"C": stats.norm()}), seed=3)
    never = lambda point: False  # noqa: E731
    alone = plan.point(17, never)
    assert [plan.point(n, never) for n in range(20)][17] == alone
    assert RandomPlan(plan.space, seed=4).point(17, never) != alone


def test_a_grid_says_when_it_ends() -> None:
    search = proposer("grid", n_trials=11)
    assert len(search.ask(100)) == 10
    assert search.exhausted == "All 10 points of the grid have been tried."


def test_a_finite_space_says_when_it_ends() -> None:
    search = Proposer(Space.of({"C": [1, 2, 3]}), "tpe")
    assert len(search.ask(100)) == 3
    assert search.exhausted == "All 3 configurations have been tried."


def test_a_part_of_a_grid_is_not_its_beginning() -> None:
    space = Space.of({"a": list(range(10)), "b": list(range(10))})
    points = [p.params for p in Proposer(space, "grid", n_trials=20).ask(100)]
    assert len(points) == 20
    assert len({p["a"] for p in points}) > 5


def test_families_take_turns_in_a_grid() -> None:
    space = Space.of_families(
        {"svm": (SVC(), {"C": [1, 2, 3]}), "ridge": (Ridge(), {"alpha": [1]})}
    )
    families = [p.family for p in Proposer(space, "grid", n_trials=10).ask(10)]
    assert families == ["svm", "ridge", "svm", "svm"]


def test_a_wider_grid_at_resume_visits_all_its_points() -> None:
    space = Space.of({"C": FloatDistribution(0.0, 1.0)})
    coarse = Proposer(space, "grid", n_trials=3)
    coarse.ask(3)
    found = [recorded(trial) for trial in coarse.study.trials]
    fine = Proposer(space, "grid", n_trials=5, recorded=found)
    assert [p.params["C"] for p in fine.ask(10)] == [0.0, 0.5, 1.0, 0.25, 0.75]


def test_given_points_come_first_and_once() -> None:
    space = Space.of({"a": [1, 2, 3], "b": [4]})
    search = Proposer(space, "grid", first=[{"a": 3, "b": 4}, {"a": 3, "b": 4}])
    assert [p.params["a"] for p in search.ask(9)] == [3, 1, 2]


def test_the_grid_of_optuna_is_all_that_is_tried_in_its_order() -> None:
    """After its last point random ones came, from all over the space."""
    grid = {"a": [0.5, 2.0, 7.0], "kind": ["x", "y"]}
    theirs = optuna.create_study(sampler=optuna.samplers.GridSampler(grid, seed=3))
    theirs.optimize(
        lambda trial: (
            trial.suggest_float("a", 0.0, 10.0)
            + len(trial.suggest_categorical("kind", ["x", "y"]))
        )
    )
    space = Space.of(
        {"a": FloatDistribution(0.0, 10.0), "kind": ["x", "y"], "fixed": ["one"]}
    )
    search = Proposer(space, optuna.samplers.GridSampler(grid, seed=3), n_trials=50)
    found = [dict(p.params) for p in search.ask(50)]
    assert found == [t.params | {"fixed": "one"} for t in theirs.trials]
    assert search.exhausted == "All 6 points of the grid have been tried."


def test_a_grid_of_optuna_without_a_parameter_of_the_space_is_refused() -> None:
    space = Space.of({"a": FloatDistribution(0.0, 10.0), "b": [1, 2]})
    with pytest.raises(InputError, match=r"\['b'\] are missing"):
        Proposer(space, optuna.samplers.GridSampler({"a": [1.0]}))


@pytest.mark.parametrize(
    "sampler",
    [
        optuna.samplers.GridSampler({"a": [1, 2], "b": [3, 4]}),
        optuna.samplers.BruteForceSampler(),
    ],
)
def test_an_exhaustive_optuna_sampler_ends_quietly(
    sampler: optuna.samplers.BaseSampler,
) -> None:
    """The latter calls `Study.stop`, which there is no loop for."""
    space = Space.of({"a": [1, 2], "b": [3, 4]})
    search = Proposer(space, sampler)
    proposals = search.ask(9)
    assert len(proposals) == 4
    assert {search.tell(p.number, 1.0) for p in proposals} == {"COMPLETE"}


def test_a_sampler_that_breaks_is_heard() -> None:
    class Broken(optuna.samplers.RandomSampler):
        def after_trial(self, *args: object) -> None:
            raise RuntimeError("out of order")

    search = Proposer(Space.of({"a": [1, 2]}), Broken())
    search.ask(1)
    with pytest.raises(RuntimeError, match="out of order"):
        search.tell(0, 1.0)


def test_optuna_says_nothing_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    before = optuna.logging.get_verbosity()
    proposer("tpe").ask(2)
    assert capsys.readouterr() == ("", "")
    assert optuna.logging.get_verbosity() == before == logging.INFO


def test_an_unknown_sampler_is_named_with_the_likely_one() -> None:
    with pytest.raises(InputError, match=r"got 'rando'. Did you mean `random`\?"):
        sampler_of("rando")


def test_optuna_is_quiet_while_any_thread_wants_it_and_as_before_afterwards() -> None:
    before = optuna.logging.get_verbosity()
    with ExitStack() as one, ExitStack() as other:
        one.enter_context(quiet())
        other.enter_context(quiet())
        one.close()
        assert optuna.logging.get_verbosity() == optuna.logging.WARNING
    assert optuna.logging.get_verbosity() == before != optuna.logging.WARNING
