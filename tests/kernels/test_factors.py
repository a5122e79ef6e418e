"""Kernels of matrix factorization do what NumPy does, rating by rating and row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import lsq_linear, nnls

from mlopt.factors.model import padded
from mlopt.kernels.factors_als import confide_rows, solve_rows
from mlopt.kernels.factors_sgd import visit
from mlopt.kernels.grouping import first_repeat, grouped

Array = NDArray[Any]

USERS, ITEMS, N = 12, 9, 70


def drawn(k: int) -> Any:
    random = np.random.default_rng(k)
    pairs = random.permutation(USERS * ITEMS)[:N]
    u, i = np.divmod(pairs[pairs // ITEMS != 3], ITEMS)  # user 3 has no rating
    r = random.normal(3, 1, len(u))
    sides = (random.normal(size=(count, k)) for count in (USERS, ITEMS))
    biases = (random.normal(size=count) for count in (USERS, ITEMS))
    return (u.astype(np.int32), i.astype(np.int32), r.astype(np.float32)), *sides, *biases


@pytest.mark.parametrize("k", [1, 8, 16, 19, 40])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("nonnegative", [True, False])
def test_a_visit_is_a_step_for_each_rating(k: int, biased: bool, nonnegative: bool) -> None:
    shelf, P, Q, b, c = drawn(k)
    now = padded(P), padded(Q), b.astype(np.float32), c.astype(np.float32)
    rate, penalty, mean, loss = 0.02, 0.1, 2.5, 0.0
    for u, i, r in zip(*shelf, strict=True):
        e = r - P[u] @ Q[i] - ((mean + b[u] + c[i]) if biased else 0.0)
        loss += e * e
        if biased:
            b[u] += rate * (e - penalty * b[u])
            c[i] += rate * (e - penalty * c[i])
        p, q = P[u].copy(), Q[i].copy()
        P[u] += rate * (e * q - penalty * p)
        Q[i] += rate * (e * p - penalty * q)
        if nonnegative:
            P[u], Q[i] = np.maximum(P[u], 0), np.maximum(Q[i], 0)
    got = visit(
        shelf, now[:2], now[2:], mean=mean, rate=rate, penalty=penalty, biased=biased,
        nonnegative=nonnegative,
    )  # fmt: skip
    assert got == pytest.approx(loss, rel=1e-4)
    np.testing.assert_allclose(now[0][:, :k], P, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(now[1][:, :k], Q, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(now[2], b, rtol=1e-3, atol=1e-4)
    assert not now[0][:, k:].any()


@pytest.mark.parametrize("k", [1, 8, 17])
def test_rows_are_solved(k: int) -> None:
    (u, i, r), _, Q, *_ = drawn(k)
    order, starts = grouped(u, USERS)
    rows, penalty = (starts, i[order], r[order]), 0.3
    free, bounded = np.ones((2, USERS, padded(Q).shape[1]), np.float32)
    solve_rows(rows, padded(Q), free, columns=k, penalty=penalty, last=USERS)
    solve_rows(rows, padded(Q), bounded, columns=k, penalty=penalty, bounded=k)
    for user in range(USERS):
        F, t = Q[i[u == user]], r[u == user]
        system = F.T @ F + penalty * len(t) * np.eye(k)
        if not len(t):
            assert not free[user].any()
            continue
        np.testing.assert_allclose(
            free[user, :k], np.linalg.solve(system, F.T @ t), rtol=1e-3, atol=1e-4
        )
        stacked = np.vstack([F, np.sqrt(penalty * len(t)) * np.eye(k)])
        expected = nnls(stacked, np.concatenate([t, np.zeros(k)]))[0]
        np.testing.assert_allclose(bounded[user, :k], expected, atol=2e-3)


@pytest.mark.parametrize("penalty", [1e-2, 1e-4, 1e-6, 1e-8, 1e-14])
@pytest.mark.parametrize("free", [0, 1])
@pytest.mark.parametrize("few", [1, 3, 8, 12, 40])
def test_rows_that_may_not_be_negative_end_at_the_solution(
    few: int, free: int, penalty: float
) -> None:
    random, k = np.random.default_rng(few), 8
    F = np.abs(random.normal(size=(40, k))).astype(np.float32)
    F[:, k - free :] = 1
    items = np.concatenate([random.permutation(40)[:few] for _ in range(8)])
    starts = few * np.arange(9)
    targets = random.normal(1, 2, len(items)).astype(np.float32)
    Z = np.abs(random.normal(size=(8, k))).astype(np.float32)
    solve_rows(
        (starts, items.astype(np.int32), targets), padded(F), Z, columns=k,
        penalty=penalty, bounded=k - free, ends=True,
    )  # fmt: skip
    low = np.where(np.arange(k) < k - free, 0.0, -np.inf)
    assert (low <= Z).all()
    for z, i, t in zip(
        Z.astype(float), items.reshape(8, -1), targets.reshape(8, -1), strict=True
    ):
        stacked = np.vstack([F[i], np.sqrt(penalty * few) * np.eye(k)])
        aims = np.concatenate([t, np.zeros(k)])
        best = lsq_linear(stacked, aims, (low, np.inf), method="bvls", tol=1e-15).x
        wanted = np.sum((stacked @ best - aims) ** 2)
        assert np.sum((stacked @ z - aims) ** 2) <= wanted * (1 + 1e-4) + 1e-11 * t @ t
        if penalty > 1e-12:  # else any that fit as well are as good, in float64
            np.testing.assert_allclose(z, best, atol=1e-3 * np.abs(best).max())


@pytest.mark.parametrize("k", [1, 8, 17])
def test_steps_of_counts_end_at_the_solution_over_all_items(k: int) -> None:
    (u, i, r), _, Q, *_ = drawn(k)
    order, starts = grouped(u, USERS)
    weights = np.abs(r[order])
    F = padded(Q)
    gram, Z = (F.T @ F + 0.5 * np.eye(F.shape[1])).astype(np.float32), np.zeros((USERS, 1))
    Z = np.zeros((USERS, F.shape[1]), np.float32)
    confide_rows((starts, i[order], weights), F, gram, Z, steps=3 * k, last=5)
    confide_rows((starts, i[order], weights), F, gram, Z, steps=3 * k, first=5)
    for user in range(USERS):
        c, t = np.ones(ITEMS), np.zeros(ITEMS)
        mine = slice(starts[user], starts[user + 1])
        c[i[order][mine]] += weights[mine]
        t[i[order][mine]] = 1
        system = (Q.T * c) @ Q + 0.5 * np.eye(k)
        expected = np.linalg.solve(system, (Q.T * c) @ t)
        np.testing.assert_allclose(Z[user, :k], expected, rtol=1e-2, atol=1e-3)


def test_a_counting_sort_is_stable() -> None:
    keys = np.random.default_rng(0).integers(5, size=100).astype(np.int32)
    order, starts = grouped(keys, 7)
    np.testing.assert_array_equal(order, np.argsort(keys, kind="stable"))
    np.testing.assert_array_equal(np.diff(starts), np.bincount(keys, minlength=7))


def test_the_first_value_that_a_group_has_twice_is_found() -> None:
    starts = np.array([0, 3, 3, 6])
    assert first_repeat(starts, np.array([0, 1, 2, 0, 2, 1], np.int32), 3) == -1
    assert first_repeat(starts, np.array([0, 1, 2, 0, 2, 0], np.int32), 3) == 5
