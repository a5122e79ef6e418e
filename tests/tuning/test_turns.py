"""Where time is short, defaults come first: within half of it, and the cheapest first."""

from __future__ import annotations

import pytest

from mlopt.tuning.crews.trials import Trial
from mlopt.tuning.turns import Turns

REST = {0: 10.0, 1: 60.0, 2: 20.0, 3: 5.0, 4: 1.0}
"""Seconds that each trial still takes; the last is no default."""


def trials(passes: int = 10) -> list[Trial]:
    return [Trial(number, "", {}, passes=passes) for number in REST]


def numbers(found: list[Trial]) -> list[int]:
    return [trial.number for trial in found]


def chosen(turns: Turns, seconds: float) -> tuple[list[int], list[int]]:
    """Who trains first, and who is too dear to."""
    ordered, dear = turns.choose(trials(), lambda t: REST[t.number], seconds)
    return numbers(turns.now(ordered)), numbers(dear)


def turns(short: bool = True) -> Turns:
    return Turns(4, frozenset({2, 3}), short)


def test_with_time_for_all_defaults_twice_all_of_them_lead() -> None:
    assert chosen(turns(), 2 * 95.0) == ([3, 0, 2, 1], [])


def test_with_less_the_dearest_trains_as_any_other() -> None:
    found = turns()
    assert chosen(found, 189.0) == ([3, 0, 2], [1])
    kept = [found.keeps(trial) for trial in trials()]
    assert kept == [True, False, True, True, False]
    assert not found.straight(trials()[1])


def test_without_time_for_any_nobody_is_waited_for() -> None:
    assert chosen(turns(), 9.0) == ([3, 0, 2, 1, 4], [3, 0, 2, 1])


def test_the_looks_that_tell_the_prices_count() -> None:
    def dear(spent: float) -> list[int]:
        found = turns().choose(trials(), lambda t: REST[t.number], 200.0 - spent, spent)
        return numbers(found[1])

    assert dear(0.0) == dear(5.0) == []
    assert dear(6.0) == [1]


def test_what_was_chosen_once_stays_so() -> None:
    found = turns()
    assert chosen(found, 189.0) == ([3, 0, 2], [1])
    assert numbers(found.choose(trials(), lambda t: REST[t.number], 1.0)[1]) == []


def test_first_each_default_is_looked_at_those_of_classes_before_others() -> None:
    found, fresh = turns(), trials(passes=0)
    assert found.choose(fresh, lambda t: REST[t.number], 1.0) == (fresh, [])
    assert numbers(found.now(fresh)) == [2, 3, 0, 1]


def test_who_had_no_time_in_its_turn_is_not_waited_for_again() -> None:
    found, fresh = turns(), trials(passes=0)
    asked = [(trial, trial.passes) for trial in fresh[:3]]
    fresh[0].passes = 10
    assert found.heard(asked)
    assert numbers(found.now(fresh)) == [3]
    assert not found.heard(asked)


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_with_all_the_time_no_default_is_given_up_and_none_leads(number: int) -> None:
    found = turns(short=False)
    assert found.keeps(trials()[number])
    assert found.straight(trials()[number]) == (number in {2, 3})
    assert chosen(found, 1.0) == ([0, 1, 2, 3, 4], [])
