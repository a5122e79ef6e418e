"""Sweeps by products of columns, against what says that a point is a minimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlopt.gd.penalty import Penalty
from mlopt.kernels.shrinkage import descend_gram


def problem(d: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Products of columns of which two are the same and one is nothing, and slopes at 0."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, d)) + rng.normal(size=(60, 1))
    X[:, 1], X[:, 2] = X[:, 0], 0.0
    return X.T @ X / 60, -X.T @ (X[:, 3] - X[:, 4] + 0.3 * rng.normal(size=60)) / 60


@pytest.mark.parametrize("l2", [0.0, 0.1])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l1", [0.001, 0.1, 10.0])
def test_no_weight_is_far_from_its_optimum(l1: float, l2: float, positive: bool) -> None:
    (Q, start), penalty = problem(), Penalty(l1, l2, positive)
    g, w = start.copy(), np.zeros(len(start))
    asked: dict[str, Any] = {
        "l1": l1,
        "l2": l2,
        "positive": positive,
        "gap": 1e-9,
        "still": 1e-7,
    }
    visits = descend_gram(Q, **asked, g=g, w=w, most=10_000)
    assert len(w) <= visits < 10_000 * len(w)
    np.testing.assert_allclose(g, start + Q @ w, atol=1e-12)
    H = np.where(Q.diagonal() > 0, Q.diagonal(), 1.0)
    assert (penalty.violations(w, g) / H).max() <= 2e-7 * np.abs(w).max()
    assert w[2] == 0
    assert not positive or (w >= 0).all()
    assert w.any() == (l1 < 10.0)
    again = descend_gram(Q, **asked, g=g, w=w, most=10_000)
    assert again == len(w)  # it is there: one look


def test_no_weight_at_all_is_a_minimum_whatever_is_asked_of_steps() -> None:
    Q, g, w = np.eye(2), np.array([0.5, 0.5]), np.zeros(2)
    asked: dict[str, Any] = {"l1": 1.0, "l2": 0.0, "positive": False, "gap": 1.0}
    assert descend_gram(Q, **asked, g=g, w=w, still=np.inf, most=200) == 2
    # A warm start that all falls to nothing, from which another column is to enter.
    Q, w = np.array([[1.0, -0.9], [-0.9, 1.0]]), np.array([0.0, 2.0])
    g = np.array([-1.2, 0.0]) + Q @ w
    descend_gram(Q, **(asked | {"gap": 1e-9}), g=g, w=w, still=np.inf, most=200)
    np.testing.assert_allclose(w, [0.2, 0.0], atol=1e-8)


def test_no_more_sweeps_than_asked_for() -> None:
    (Q, g), w = problem(), np.zeros(12)
    asked: dict[str, Any] = {
        "l1": 1e-3,
        "l2": 0.0,
        "positive": False,
        "gap": 0.0,
        "still": 0.0,
    }
    assert 12 <= descend_gram(Q, **asked, g=g, w=w, most=3) <= 36
    assert descend_gram(Q, **asked, g=g, w=w, most=0) == 0
