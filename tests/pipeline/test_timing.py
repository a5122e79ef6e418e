"""Moments of a run belong to the operators that were at work in them."""

from __future__ import annotations

import pytest

from mlopt.pipeline.tasks.timing import Clock


def spent(*calls: tuple[str, float, float]) -> Clock:
    clock = Clock()
    for token, begin, end in calls:
        clock.add(token, begin, end, 1)
    return clock


def test_what_ran_alone_took_all_of_its_time() -> None:
    clock = spent(("a", 100.0, 103.0), ("b", 103.5, 104.0))
    clock.share()
    assert clock.seconds == {"a": 3.0, "b": 0.5}


def test_who_was_at_work_at_a_time_shares_it() -> None:
    # From 0 to 2 a twice; from 2 to 3 a and b; from 3 to 5 b.
    clock = spent(("a", 0.0, 2.0), ("a", 0.0, 3.0), ("b", 2.0, 5.0))
    clock.share()
    assert clock.seconds == pytest.approx({"a": 2.5, "b": 2.5})
    assert clock.done == {"a": 2, "b": 1}


def test_a_moment_is_shared_once() -> None:
    clock = spent(("a", 0.0, 2.0))
    clock.share()
    clock.add("b", 1.0, 4.0, 1)
    clock.share()
    assert clock.seconds == {"a": 2.0, "b": 3.0}


def test_calls_beside_work_without_a_clock_take_one_slot_each() -> None:
    clock = spent(("a", 0.0, 2.0), ("b", 0.0, 3.0))
    assert clock.split(2) == 2.5
    assert clock.seconds == {"a": 1.0, "b": 1.5}
    assert clock.split(2) == 0.0


def test_before_anything_ran_nothing_took_time() -> None:
    clock = Clock()
    clock.share()
    assert clock.seconds == {}
