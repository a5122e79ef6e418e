"""Iterations estimated from a sequence of errors (ML4all, section 5)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlopt.errors import InputError
from mlopt.gd.iterations import estimate, fit_inverse, fit_linear, fit_power


def pairs_of(error: object, k: int = 60) -> list[tuple[float, float]]:
    assert callable(error)
    return [(float(error(i)), float(i)) for i in range(1, k + 1)]


def test_the_papers_fit_is_least_squares_of_i_by_a_over_eps() -> None:
    eps, i = np.array([0.5, 0.2, 0.1]), np.array([1.0, 2.0, 3.0])
    a = (1 / 0.5 + 2 / 0.2 + 3 / 0.1) / (1 / 0.25 + 1 / 0.04 + 1 / 0.01)
    assert fit_inverse(eps, i).scale == pytest.approx(a)
    pairs = list(zip(eps, i, strict=True))
    assert estimate(pairs, 0.001, fidelity=True).iterations == pytest.approx(a / 0.001)


def test_only_finite_positive_errors_count() -> None:
    good = pairs_of(lambda i: 3 / i)
    bad = [(math.inf, 1.0), (0.0, 2.0), (math.nan, 3.0), (-1.0, 4.0)]
    for fidelity in (True, False):
        with_bad = estimate(bad + good, 0.01, fidelity=fidelity)
        assert with_bad == estimate(good, 0.01, fidelity=fidelity)
    with pytest.raises(InputError, match="finite and positive"):
        estimate(bad, 0.01)
    with pytest.raises(InputError, match="tolerance"):
        estimate(good, 0.0)


@given(st.floats(0.01, 100), st.floats(0.3, 2.0))
def test_power_laws_are_found_exactly(a: float, p: float) -> None:
    found = estimate(pairs_of(lambda i: a * i**-p), a * 1000**-p)
    assert found.iterations == pytest.approx(1000, rel=1e-3)
    assert found.low <= found.iterations <= found.high


@given(st.floats(0.01, 100), st.floats(0.5, 0.98))
def test_geometric_sequences_are_found_exactly(c: float, rho: float) -> None:
    found = estimate(pairs_of(lambda i: c * rho**i), c * rho**200)
    assert found.curve is not None
    assert found.curve.name == "linear"
    assert found.iterations == pytest.approx(200, rel=1e-3)


def test_a_inverse_curve_is_a_over_i() -> None:
    found = estimate(pairs_of(lambda i: 7 / i), 0.007)
    assert found.iterations == pytest.approx(1000, rel=1e-6)


@settings(deadline=None)
@given(st.integers(0, 1000))
def test_noise_widens_the_interval_and_stays_in_the_right_order(seed: int) -> None:
    noise = np.random.default_rng(seed).normal(0, 0.2, 61)
    found = estimate(pairs_of(lambda i: 2 / i * math.exp(noise[i])), 2 / 600)
    assert 200 < found.iterations < 1800
    exact = estimate(pairs_of(lambda i: 2 / i), 2 / 600)
    assert found.high / found.low > exact.high / exact.low


def test_what_was_seen_is_not_estimated() -> None:
    found = estimate(pairs_of(lambda i: 1 / i), 0.05)
    assert (found.iterations, found.low, found.high, found.curve) == (20, 20, 20, None)


def test_few_pairs_give_an_interval_of_an_order_of_magnitude() -> None:
    found = estimate([(0.5, 1), (0.25, 2)], 0.01)
    assert found.low == pytest.approx(found.iterations / 10)
    assert found.high == pytest.approx(found.iterations * 10)


def test_errors_that_do_not_fall_still_give_a_finite_estimate() -> None:
    found = estimate([(0.5, i) for i in range(1, 50)], 1e-3)
    assert math.isfinite(found.iterations)
    assert found.iterations > 50


def test_curves_that_rise_are_no_candidates() -> None:
    eps, i = np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0])
    assert fit_linear(eps, i) is None
    assert fit_power(eps, i) is None
