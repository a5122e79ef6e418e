"""How many passes wide sparse rows are said to take, before anything has run."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from mlopt.gd.plans import Task, plan
from mlopt.gd.plans.lbfgs import passes_of_sparse
from mlopt.gd.pricing import Shape

TEXT = Shape(
    n=10_000, d=50_000, columns=1, nonzero=500_000, itemsize=8, sparse=True, blocks=8
)


@cache
def words() -> tuple[sparse.csr_matrix, NDArray[np.int64]]:
    """Rows of 40 words, frequent ones and rare ones, of length one."""
    rng, n, d, each = np.random.default_rng(0), 6000, 8000, 40
    popular = 1 / np.arange(1, d + 1) ** 0.9
    columns = rng.choice(d, size=n * each, p=popular / popular.sum())
    values = rng.random(n * each) + 0.1
    X = sparse.csr_matrix((values, columns, np.arange(0, n * each + 1, each)), (n, d))
    X.sum_duplicates()
    X = sparse.csr_matrix(sparse.diags(1 / np.sqrt(X.multiply(X).sum(axis=1).A1)) @ X)
    z = X @ (rng.normal(size=d) * 3)
    return X, (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)


def test_the_larger_the_penalty_and_the_tolerance_the_fewer() -> None:
    by_penalty = [passes_of_sparse(TEXT, l2, 1e-3) for l2 in (0.0, 1e-6, 1e-4, 1e-2)]
    by_tolerance = [passes_of_sparse(TEXT, 1e-5, tol) for tol in (1e-8, 1e-4, 1e-2)]
    for passes in (by_penalty, by_tolerance):
        assert passes == sorted(passes, key=lambda count: -float(count or 0.0))
        assert len(set(passes)) == len(passes)


def test_other_rows_have_no_such_rule() -> None:
    assert passes_of_sparse(TEXT, 1e-5, 1e-3) is not None
    for other in ({"sparse": False}, {"d": 100}, {"columns": 3}):
        assert passes_of_sparse(replace(TEXT, **other), 1e-5, 1e-3) is None


@pytest.mark.parametrize("l2", [1e-6, 1e-5, 1e-4, 1e-3])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-5])
def test_words_take_about_as_many_passes(l2: float, tolerance: float) -> None:
    X, y = words()
    found = plan(
        Task("logistic", l2=l2), X, y, tolerance=tolerance, methods=["lbfgs"],
        speculation=False,
    )  # fmt: skip
    (only,) = found.alternatives
    assert only.passes.source == "typical"
    taken = found.run().n_iter
    assert only.passes.low <= taken <= only.passes.high
    assert only.passes.expected / 2.5 <= taken <= 2.5 * only.passes.expected
