"""Each bandit's own arithmetic, on the numbers of the papers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from mlopt.errors import InputError
from mlopt.passes import Passes, exact
from mlopt.tuning.bandits import (
    ActionElimination,
    Hyperband,
    NoPruning,
    Progress,
    SuccessiveHalving,
    bandit_of,
)


def looks(*scores: float, passes: Passes = 10, done: bool = False) -> list[Progress]:
    """Trials 0, 1, ... with these scores."""
    return [Progress(trial, passes, score, done) for trial, score in enumerate(scores)]


def test_the_quality_form_prunes_next_to_nothing() -> None:
    """With a best of .95 and eps .5, every model above .6333 survives."""
    bandit = ActionElimination(eps=0.5, form="quality")
    verdicts = bandit.allocate(looks(0.95, 0.64, 0.6334, 0.6333, 0.5), [])
    assert verdicts.active == (0, 1, 2)
    assert verdicts.pruned == (3, 4)


def test_the_error_form_prunes_what_is_half_again_as_wrong() -> None:
    """With a best of .95, the bar is an error of .075."""
    bandit = ActionElimination(eps=0.5)
    verdicts = bandit.allocate(looks(0.95, 0.93, 0.925, 0.924, 0.64), [])
    assert verdicts.active == (0, 1, 2)
    assert verdicts.pruned == (3, 4)
    assert "1.5 times the best so far (trial 0)" in verdicts.reasons[4]


def test_a_perfect_model_does_not_end_all_others() -> None:
    verdicts = ActionElimination(eps=0.5).allocate(looks(1.0, 0.99, 0.985, 0.98), [])
    assert verdicts.active == (0, 1, 2)
    strict = ActionElimination(eps=0.5, floor=0.0)
    assert strict.allocate(looks(1.0, 0.99), []).pruned == (1,)


def test_errors_of_a_loss_have_no_fixed_unit() -> None:
    """The verdict is the same in metres and in kilometres, the floor included."""
    bandit = ActionElimination(perfect=0.0)
    errors = [-0.0, -1e-4, -100.0, -150.0, -200.0]
    metres = bandit.allocate(looks(*errors), [])
    kilometres = bandit.allocate(looks(*(error * 1e-3 for error in errors)), [])
    assert metres.active == kilometres.active == (0, 1)


def test_a_negated_loss_is_compared_by_ratio() -> None:
    verdicts = ActionElimination(perfect=0.0).allocate(looks(-2.0, -3.0, -3.1), [])
    assert verdicts.active == (0, 1)


def test_r2_below_zero_is_an_error_above_one() -> None:
    verdicts = ActionElimination().allocate(looks(-0.2, -0.8, -0.9), [])
    assert verdicts.active == (0, 1)


def test_a_score_above_the_best_possible_is_compared_by_quality() -> None:
    """A user's own profit of 300 has no error; 250 is within 1.5 of it, 150 is not."""
    verdicts = ActionElimination().allocate(looks(300.0, 250.0, 150.0), [])
    assert verdicts.active == (0, 1)


def test_the_best_is_kept_when_its_quality_is_negative() -> None:
    bandit = ActionElimination(form="quality")
    assert bandit.allocate(looks(-2.0, -3.0), []).active == (0,)


def test_the_bar_is_set_by_pruned_and_finished_models_too() -> None:
    history = [Progress(7, 10, 0.95, False), Progress(8, 8, 0.96, True)]
    verdicts = ActionElimination().allocate(looks(0.94, 0.93), history)
    assert (verdicts.active, verdicts.pruned) == ((0,), (1,))


def test_a_lucky_early_look_does_not_set_the_bar() -> None:
    history = [Progress(7, 10, 0.99, False), Progress(7, 20, 0.80, False)]
    verdicts = ActionElimination().allocate(looks(0.75, passes=20), history)
    assert verdicts.active == (0,)


def test_who_enters_late_is_compared_with_the_others_at_its_age() -> None:
    """Better than trial 7 was after 10 passes: by the paper it would be given up."""
    history = [Progress(7, 10, 0.80, False), Progress(7, 100, 0.95, True)]
    assert ActionElimination().allocate(looks(0.85), history).active == (0,)
    assert ActionElimination(against="best").allocate(looks(0.85), history).pruned == (0,)


def test_a_fully_trained_model_is_finished_however_bad() -> None:
    bandit = ActionElimination(max_passes=100)
    active = [
        Progress(0, 10, 0.9, False),
        Progress(1, 4, 0.1, True),
        Progress(2, 100, 0, False),
    ]
    assert bandit.allocate(active, []).finished == (1, 2)


def test_not_a_number_is_pruned_with_a_reason() -> None:
    for bandit in (ActionElimination(), ActionElimination(eps=math.inf), NoPruning()):
        verdicts = bandit.allocate(looks(math.nan, 0.5, done=True), [])
        assert verdicts.reasons == {0: "the score is not a number"}
        assert verdicts.finished == (1,)


def test_partial_iterations_are_ten_of_a_hundred() -> None:
    """TuPAQ 4.1: 100 iterations, the first look after 10."""
    bandit = ActionElimination(max_passes=100)
    stops = [bandit.next_stop(Progress(0, p, 0.5, False)) for p in (0, 9, 10, 45, 90, 99)]
    assert stops == [10, 10, 20, 50, 100, 100]


def test_first_and_every_are_the_users() -> None:
    bandit = ActionElimination(first=5, every=20, max_passes=50)
    stops = [bandit.next_stop(Progress(0, p, 0.5, False)) for p in (0, 5, 25, 45)]
    assert stops == [5, 25, 45, 50]


def test_freed_slots_are_refilled() -> None:
    assert ActionElimination().room(looks(0.1, 0.2, 0.3), 10) == 7


def test_halving_keeps_a_third_each_time() -> None:
    bandit = SuccessiveHalving(factor=3, min_passes=3, max_passes=81)
    assert bandit.stops(0) == (3, 9, 27, 81)
    active = looks(*(n / 10 for n in range(9)), passes=3)
    verdicts = bandit.allocate(active, [])
    assert verdicts.active == (6, 7, 8)
    assert verdicts.reasons[0] == "rank 9 of 9 after 3 passes; 3 go on"


def test_halving_has_one_bracket_of_all_trials() -> None:
    bandit = bandit_of("successive-halving", 100, 64)
    assert bandit.room([], 8, 0) == 64
    assert bandit.room(looks(0.5), 8, 64) == 0


def test_halving_without_a_number_of_trials_leaves_one_at_the_end() -> None:
    assert bandit_of("successive-halving", 81).room([], 8, 0) == 27


def test_the_last_stop_is_the_maximum() -> None:
    assert SuccessiveHalving(max_passes=100).stops(0) == (3, 9, 27, 81, 100)
    assert SuccessiveHalving(max_passes=2).stops(0) == (2,)
    assert Hyperband(max_passes=2).stops(0) == (2,)


def test_who_converged_early_holds_its_place() -> None:
    """Of 9, the 3 best go on; two of those are done, so one place is left."""
    bandit = SuccessiveHalving(max_passes=81)
    done = [Progress(8, 2, 0.9, True), Progress(7, 2, 0.8, True)]
    active = [*looks(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, passes=3), *done]
    verdicts = bandit.allocate(active, [])
    assert verdicts.finished == (8, 7)
    assert verdicts.active == (6,)


def test_who_was_pruned_before_no_longer_counts() -> None:
    bandit = SuccessiveHalving(max_passes=81)
    first = looks(*(n / 10 for n in range(9)), passes=3)
    second = [Progress(t, 9, s, False) for t, s in ((6, 0.61), (7, 0.62), (8, 0.60))]
    verdicts = bandit.allocate(second, first)
    assert verdicts.active == (7,)
    assert verdicts.reasons[6] == "rank 2 of 3 after 9 passes; 1 go on"


def test_brackets_compete_apart() -> None:
    bandit = Hyperband(min_passes=1, max_passes=9)
    worse = [Progress(t, 1, 0.1 + t / 100, False, 0) for t in range(9)]
    better = [Progress(t, 3, 0.9 + t / 1000, False, 1) for t in range(9, 14)]
    verdicts = bandit.allocate([*worse, *better], [])
    assert verdicts.active == (6, 7, 8, 13)


def test_looks_within_the_first_pass() -> None:
    bandit = SuccessiveHalving(min_passes=1 / 9, max_passes=5)
    ninth, third = Fraction(1, 9), Fraction(1, 3)
    assert bandit.stops(0) == (ninth, third, 1, 3, 5)
    assert bandit.parts == 9
    assert bandit.next_stop(Progress(0, third, 0.5, False)) == 1
    active = looks(*(n / 10 for n in range(9)), passes=ninth)
    verdicts = bandit.allocate(active, [])
    assert verdicts.active == (6, 7, 8)
    assert verdicts.reasons[0] == "rank 9 of 9 after 0.111 passes; 3 go on"


def test_hyperband_that_starts_within_a_pass() -> None:
    bandit = Hyperband(min_passes=0.1, max_passes=3)
    assert bandit.sizes == (27, 12, 6, 4)
    assert bandit.stops(0) == (Fraction(1, 9), Fraction(1, 3), 1, 3)


def test_looks_are_told_apart_whatever_parts_they_are() -> None:
    """A study holds them as text; read again they must be the same looks."""
    bandit = Hyperband(min_passes=0.01, max_passes=100)
    assert bandit.stops(0)[0] == Fraction(100, 6561)
    assert [exact(Fraction(str(stop))) for stop in bandit.stops(0)] == [*bandit.stops(0)]


@pytest.mark.parametrize("passes", [0, -1, float("nan"), float("inf"), 1e-9])
def test_a_first_look_must_be_after_something(passes: float) -> None:
    with pytest.raises(InputError, match="`min_passes` must be at least 1/1000"):
        SuccessiveHalving(min_passes=passes)


@pytest.mark.parametrize(
    ("bandit", "wrong"),
    [
        (ActionElimination, {"eps": "half"}),
        (ActionElimination, {"floor": math.inf}),
        (ActionElimination, {"form": "errors"}),
        (ActionElimination, {"against": None}),
        (ActionElimination, {"first": 2.5}),
        (ActionElimination, {"every": 0}),
        (ActionElimination, {"max_passes": 9.5}),
        (NoPruning, {"every": "3"}),
        (NoPruning, {"n_trials": 0.5}),
        (SuccessiveHalving, {"factor": 2.5}),
        (SuccessiveHalving, {"size": "all"}),
    ],
)
def test_what_a_parameter_cannot_be_is_refused_by_name(
    bandit: Any, wrong: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match=f"`{next(iter(wrong))}` must be"):
        bandit(**wrong)


def test_hyperband_has_the_brackets_of_its_paper() -> None:
    """Li et al. 2018, table 1: R = 81, factor 3."""
    bandit = Hyperband(factor=3, min_passes=1, max_passes=81)
    assert bandit.sizes == (81, 34, 15, 8, 5)
    assert bandit.stops(0) == (1, 3, 9, 27, 81)
    assert bandit.stops(4) == (81,)
    ends = [0, 80, 81, 114, 115, 129, 130, 137, 138, 142, 143]
    assert [bandit.bracket(n) for n in ends] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5]
    assert bandit.stops(5) == bandit.stops(0)


def test_hyperband_survivors_are_those_of_its_paper() -> None:
    """Bracket s = 3 of table 1: 34, 11, 3, 1."""
    bandit = Hyperband(factor=3, min_passes=1, max_passes=81)
    active = [Progress(t, 3, t / 100, False, 1) for t in range(34)]
    history, alive = list(active), []
    for passes in bandit.stops(1)[1:]:
        kept = set(bandit.allocate(active, history).active)
        alive.append(len(kept))
        active = [Progress(t, passes, t / 100, False, 1) for t in sorted(kept)]
        history += active
    assert alive == [11, 3, 1]


def test_the_rest_of_a_bracket_is_asked_for() -> None:
    bandit = Hyperband(min_passes=1, max_passes=81)
    assert bandit.room([], 4, 0) == 81
    assert bandit.room([], 4, 100) == 15
    assert bandit.room([], 4, 143 + 81) == 34


def test_a_few_passes_leave_nothing_to_halve() -> None:
    bandit = bandit_of("hyperband", 2)
    assert bandit.room([], 16, 5) == 16
    assert bandit.next_stop(bandit.start(5)) == 2


def test_no_pruning_looks_once_or_as_often_as_asked() -> None:
    assert NoPruning(max_passes=50).next_stop(Progress(0, 0, 0.0, False)) == 50
    assert NoPruning(max_passes=50, every=20).next_stop(Progress(0, 40, 0.0, False)) == 50


def test_a_bandit_given_takes_the_size_of_the_search() -> None:
    bandit = bandit_of(Hyperband(factor=4), 64, 100, perfect=0.0)
    assert bandit == Hyperband(factor=4, max_passes=64, n_trials=100, perfect=0.0)
    assert bandit_of(None, 7) == NoPruning(max_passes=7, perfect=1.0)
    own = ActionElimination(perfect=0.0)  # of a function that gives minus an error
    assert bandit_of(own, 64, 100, perfect=1.0).perfect == 0.0
    assert ActionElimination().highest == 1.0


def test_an_unknown_bandit_is_named_with_the_likely_one() -> None:
    with pytest.raises(InputError, match=r"got 'hyper-band'. Did you mean `hyperband`\?"):
        bandit_of("hyper-band")


@pytest.mark.parametrize(
    "settings", [{"eps": -0.1}, {"floor": -1}, {"first": 0}, {"form": "ratio"}]
)
def test_a_setting_out_of_range_is_named(settings: dict) -> None:
    with pytest.raises(InputError, match=f"`{next(iter(settings))}` must be"):
        ActionElimination(**settings)
