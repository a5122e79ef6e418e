"""What requests took, calm and under overload, and what follows for how long they may."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlopt.serving.waits import REMEMBERED, TIMES, Waits


def calls(waits: Waits, rows: int, seconds: float, refused: bool = False) -> None:
    for _ in range(REMEMBERED):
        if refused:
            waits.refused()
        waits.took(rows, seconds)


def test_what_is_let_in_may_take_some_times_as_long_as_in_calm_and_never_the_latency() -> (
    None
):
    waits = Waits(latency=1.0)
    assert waits.allowed(0.01) == 1.0  # nothing is known yet
    calls(waits, 64, 0.02)
    assert waits.allowed(0.01) == pytest.approx(TIMES * 0.02)
    assert waits.allowed(0.05) == pytest.approx(TIMES * 0.05)
    calls(waits, 64, 0.9)
    assert waits.allowed(0.01) == 1.0


def test_what_requests_take_under_overload_is_no_calm() -> None:
    waits = Waits(latency=1.0)
    calls(waits, 64, 0.02)
    calls(waits, 200, 0.1, refused=True)
    assert waits.measured == pytest.approx((0.02, 2000.0, True))
    for _ in range(REMEMBERED - 1):  # they wait behind those of before
        waits.took(200, 0.1)
    assert waits.measured == pytest.approx((0.02, 2000.0, True))
    waits.took(200, 0.1)
    assert waits.measured == pytest.approx((0.1, 2000.0, False))


def test_overload_shows_after_one_call_and_one_that_was_interrupted_changes_nothing() -> (
    None
):
    waits = Waits(latency=1.0)
    calls(waits, 64, 0.02)
    waits.refused()
    waits.took(200, 0.1)
    assert waits.measured.throughput == pytest.approx(2000.0)
    calls(waits, 200, 0.1, refused=True)
    waits.refused()
    waits.took(200, 3.0)
    assert waits.measured.throughput == pytest.approx(2000.0)


def test_where_calls_differ_the_second_slowest_says_how_many_rows_are_in_time() -> None:
    waits = Waits(latency=1.0)
    calls(waits, 64, 0.02)
    for at in range(REMEMBERED):
        waits.refused()
        waits.took(200, 0.2 if at in (3, 7) else 0.1)
    assert waits.measured.throughput == pytest.approx(1000.0)


@given(
    st.lists(st.tuples(st.integers(1, 5000), st.floats(0, 1e3), st.booleans())),
    st.floats(0, 1),
)
def test_whatever_calls_take_some_time_is_allowed(
    seen: list[tuple[int, float, bool]], least: float
) -> None:
    waits = Waits(latency=0.1)
    for rows, seconds, refused in seen:
        if refused:
            waits.refused()
        waits.took(rows, seconds)
        assert math.isfinite(waits.measured.throughput)
    assert min(0.1, TIMES * least) <= waits.allowed(least) <= 0.1
