"""The ways to the minimum of a round's quadratic model agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mlopt.gd.penalty import Penalty
from mlopt.gd.subproblem import ByDual, ByRows, Model

Array = NDArray[Any]


def model(n: int, k: int, *, even: bool, intercept: bool) -> tuple[Model, Array, Array]:
    """A model of k of 2 k columns, weights and slopes at a point."""
    rng = np.random.default_rng(n + k)
    X = rng.normal(size=(2 * k, n)) + 1.0
    h = np.full(1, 1.0 / n) if even else rng.uniform(0.0, 2.0 / n, n) * (np.arange(n) > 2)
    all_of_h = np.broadcast_to(h, n)
    weight = float(all_of_h.sum())
    mean = X @ all_of_h / weight if intercept else np.zeros(2 * k)
    H = (X - mean[:, None]) ** 2 @ all_of_h
    chosen = np.sort(rng.permutation(2 * k)[:k])
    w = np.zeros(2 * k)
    w[chosen[:3]] = rng.uniform(0.1, 1.0, 3)
    about = w @ (X - mean[:, None]) - X[:4].sum(axis=0) - rng.normal(size=n)
    if intercept:
        about -= about @ all_of_h / weight
    return Model(X, chosen, h, weight, mean, H), w, about * all_of_h


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize(
    ("l1", "l2"), [(0.0, 0.05), (0.05, 0.05), (100.0, 0.05), (0.2, 0.0)]
)
def test_the_dual_ends_where_sweeps_end(
    l1: float, l2: float, positive: bool, even: bool, intercept: bool
) -> None:
    penalty = Penalty(l1, l2, positive)
    given, w, slopes = model(12, 40, even=even, intercept=intercept)
    swept = ByRows(penalty, given, w, slopes)
    assert swept.minimise(1e-11, 100_000)[1]
    solved = ByDual(penalty, given, w, slopes)
    steps, done = solved.minimise(1e-11 if l2 else 1e-9, 50)
    assert done
    assert steps < 35
    np.testing.assert_allclose(solved.w, swept.w, atol=1e-8 if l2 else 1e-6)
    assert not positive or (solved.w >= 0).all()


def test_the_dual_stops_at_the_steps_it_is_allowed() -> None:
    given, w, slopes = model(12, 40, even=True, intercept=True)
    short = ByDual(Penalty(0.0, 1e-6, positive=True), given, w, slopes)
    assert short.minimise(1e-14, 1) == (1, False)
    assert np.isfinite(short.w).all()
