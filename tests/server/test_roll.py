"""Who has the steps of a member's strata when tasks come, are told to end, and end."""

from __future__ import annotations

import threading

from mlopt.server.roll import Roll


def test_the_task_that_is_there_has_those_that_come_and_ends_when_none_is_left() -> None:
    roll, stop = Roll(), threading.Event()
    assert roll.begin({0: (0, 9)}, stop)
    assert roll.came() == {0: (0, 9)}
    assert not roll.begin({1: (4, 9)}, threading.Event())
    assert not roll.leave(stop)
    assert roll.came() == {1: (4, 9)}
    assert roll.leave(stop)
    assert roll.gone(stop) == {}
    assert roll.begin({2: (0, 9)}, threading.Event())


def test_what_the_task_has_already_stays_as_it_is() -> None:
    roll, stop = Roll(), threading.Event()
    roll.begin({0: (0, 9)}, stop)
    roll.came()
    assert not roll.begin({0: (0, 9), 1: (4, 9)}, threading.Event())
    assert roll.came() == {1: (4, 9)}


def test_a_task_that_was_told_to_end_takes_no_more_and_says_who_came_last() -> None:
    roll, stop = Roll(), threading.Event()
    roll.begin({0: (0, 9)}, stop)
    roll.came()
    roll.begin({1: (4, 9)}, threading.Event())
    stop.set()
    assert not roll.leave(stop)  # nobody has the one that came
    assert roll.gone(stop) == {1: (4, 9)}
    other = threading.Event()
    assert roll.begin({0: (3, 9)}, other)
    assert roll.gone(stop) == {}  # it is the other's by now
    assert roll.came() == {0: (3, 9)}
