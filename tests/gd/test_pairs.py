"""The two-loop recursion for many columns is the BFGS update of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlopt.gd.batch import Pairs, dots, largest
from mlopt.gd.columns import Layout, Model, layout

PLAN = layout([Model("logistic", 0.1), Model("multinomial", 0.1, outputs=3)])
RANDOM = np.random.default_rng(0)


def bfgs(H: np.ndarray, s: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The textbook update of an inverse Hessian."""
    rho = 1 / (s @ y)
    V = np.eye(len(s)) - rho * np.outer(y, s)
    return np.asarray(V.T @ H @ V + rho * np.outer(s, s))


def parts(array: np.ndarray, plan: Layout) -> list[np.ndarray]:
    """The columns of each unit, flattened."""
    return [part.ravel() for part in np.split(array, plan.units[1:], axis=1)]


def steps(count: int, d: int = 5) -> list[tuple[np.ndarray, np.ndarray]]:
    """Steps and changes of gradients of a convex function."""
    made = []
    for _ in range(count):
        s = RANDOM.standard_normal((d, PLAN.width))
        made.append((s, s * RANDOM.uniform(0.5, 2.0, (d, 1))))
    return made


def test_directions_are_those_of_dense_bfgs_matrices() -> None:
    pairs, made = Pairs(10), steps(4)
    for step, change in made:
        pairs.add(step, change, PLAN)
    g = RANDOM.standard_normal((5, PLAN.width))
    found = parts(pairs.direction(g, lambda q: 0.7 * q, PLAN), PLAN)
    for unit, own in enumerate(parts(g, PLAN)):
        H = 0.7 * np.eye(len(own))
        for step, change in made:
            H = bfgs(H, parts(step, PLAN)[unit], parts(change, PLAN)[unit])
        np.testing.assert_allclose(found[unit], -H @ own, rtol=1e-9)


def test_only_the_newest_pairs_are_kept() -> None:
    long, short, made = Pairs(2), Pairs(2), steps(5)
    for pair in made:
        long.add(*pair, PLAN)
    for pair in made[-2:]:
        short.add(*pair, PLAN)
    g = RANDOM.standard_normal((5, PLAN.width))
    np.testing.assert_array_equal(
        long.direction(g, np.copy, PLAN), short.direction(g, np.copy, PLAN)
    )


def test_a_unit_that_stood_still_has_nothing_to_remember() -> None:
    pairs = Pairs(5)
    ((step, change),) = steps(1)
    step[:, 0] = 0.0
    pairs.add(step, change, PLAN)
    g = RANDOM.standard_normal((5, PLAN.width))
    direction = pairs.direction(g, np.copy, PLAN)
    np.testing.assert_array_equal(direction[:, 0], -g[:, 0])
    assert (direction[:, 1:] != -g[:, 1:]).any()


def test_directions_always_descend() -> None:
    pairs = Pairs(3)
    for pair in steps(3):
        pairs.add(*pair, PLAN)
    for _ in range(20):
        g = RANDOM.standard_normal((5, PLAN.width))
        assert (dots(g, pairs.direction(g, np.copy, PLAN), PLAN) < 0).all()


def test_rescaling_makes_the_first_guess_fit_the_newest_pair() -> None:
    pairs = Pairs(3)
    s = RANDOM.standard_normal((5, PLAN.width))
    pairs.add(s, 4.0 * s, PLAN)
    g = RANDOM.standard_normal((5, PLAN.width))
    # Entries near 0 are differences of larger ones.
    np.testing.assert_allclose(
        pairs.direction(g, np.copy, PLAN, rescaled=True), -g / 4.0, rtol=1e-12, atol=1e-14
    )


def test_selected_columns_keep_their_memory() -> None:
    pairs, made = Pairs(5), steps(2)
    for pair in made:
        pairs.add(*pair, PLAN)
    g = RANDOM.standard_normal((5, PLAN.width))
    chosen, columns = PLAN.select([1])
    taken = pairs.take(columns, np.array([1]))
    np.testing.assert_allclose(
        taken.direction(g[:, columns], np.copy, chosen),
        pairs.direction(g, np.copy, PLAN)[:, columns],
        rtol=1e-12,
        atol=1e-14,
    )


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("rows", [1, 5, 16, 48, 53, 400])
def test_sums_and_maxima_of_units_are_those_of_their_columns(rows: int, order: Any) -> None:
    a, b = (np.asarray(RANDOM.normal(size=(rows, PLAN.width)), order=order) for _ in "ab")
    products = [part.sum() for part in parts(a * b, PLAN)]
    np.testing.assert_allclose(dots(a, b, PLAN), products)
    np.testing.assert_array_equal(
        largest(a, PLAN), [np.abs(part).max() for part in parts(a, PLAN)]
    )


def test_what_is_not_finite_is_told() -> None:
    a = np.ones((70, PLAN.width))
    a[69, PLAN.units[1]] = np.nan
    assert np.isnan(largest(a, PLAN)[1])
    assert np.isnan(dots(a, a, PLAN)[1])
    assert largest(a, PLAN)[0] == 1.0
