"""Step lengths: Armijo's condition per unit, and gap estimates that hold."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mlopt.gd.batch import accepted, shortened
from mlopt.gd.gap import safeguarded, strong_convexity_bound
from mlopt.gd.sizes import SUFFICIENT

EPS = float(np.finfo(np.float64).eps)
one = np.ones(1)


def parabola(curvature: float, t: float) -> float:
    """Objective along a direction with slope -1 at 0, from 0."""
    return -t + 0.5 * curvature * t * t


@given(st.floats(0.1, 1e6))
def test_shortening_reaches_an_acceptable_step_on_a_parabola(curvature: float) -> None:
    t = one
    for _ in range(40):
        trial = np.array([parabola(curvature, float(t[0]))])
        if accepted(0 * one, trial, -one, t, EPS).all():
            assert trial[0] <= -SUFFICIENT * t[0]
            return
        t = shortened(0 * one, trial, -one, t)
    raise AssertionError("no step was accepted")


def test_each_unit_is_judged_by_itself() -> None:
    value = np.array([1.0, 1.0, np.inf])
    trial = np.array([0.5, 1.5, 7.0])
    ok = accepted(value, trial, np.array([-1.0, -1.0, 0.0]), np.ones(3), EPS)
    assert ok.tolist() == [True, False, True]


def test_an_overflow_is_refused_and_the_step_cut_to_a_tenth() -> None:
    trial = np.array([np.nan])
    assert not accepted(one, trial, -one, one, EPS).any()
    assert shortened(one, trial, -one, one)[0] == 0.1


def test_steps_that_promise_less_than_rounding_may_pass() -> None:
    value = np.array([1.0])
    assert accepted(value, value + 2e-16, -1e-16 * one, one, EPS).all()
    assert not accepted(value, value + 1e-9, -1e-16 * one, one, EPS).any()


@given(st.floats(0.05, 1.0), st.floats(0.1, 0.9), st.floats(1e-3, 1.0))
def test_a_biased_estimate_is_corrected_by_a_geometric_series(
    bias: float, rate: float, gap: float
) -> None:
    # Gaps fall by `rate` a step, and the estimate is too small by the factor `bias`.
    gaps = gap / rate ** np.arange(5.0)[:, None]
    found = safeguarded(gaps[0], bias * gaps[0], gaps[1:], bias * gaps[1:3])
    assert found[0] >= 0.99 * gap


@given(st.floats(0.1, 0.9), st.floats(1e-3, 1.0), st.floats(1e-9, 1e-3))
def test_a_useless_estimate_is_corrected_by_the_decreases(
    rate: float, gap: float, estimate: float
) -> None:
    gaps = gap / rate ** np.arange(5.0)[:, None]
    nothing = np.full((2, 1), np.nan)
    found = safeguarded(gaps[0], np.array([estimate]), gaps[1:], nothing)
    assert found[0] >= 0.99 * gap


def test_without_a_step_the_estimate_stands() -> None:
    found = safeguarded(one, 0.3 * one, np.full((4, 1), np.nan), np.full((2, 1), np.nan))
    assert found[0] == 0.3


@given(st.floats(0.01, 10), st.floats(0, 5), st.floats(-3, 3))
def test_the_strong_convexity_bound_is_never_below_the_gap(
    mu: float, more: float, x: float
) -> None:
    curvature = mu + more
    gap = 0.5 * curvature * x * x
    bound = strong_convexity_bound(np.array([(curvature * x) ** 2]), np.array([mu]))
    assert bound[0] >= gap * (1 - 1e-12) - np.finfo(float).tiny  # squares may underflow


def test_without_strong_convexity_nothing_is_certain() -> None:
    assert np.isinf(strong_convexity_bound(one, 0 * one)).all()
