"""The loss by products is that of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mlopt.gd.penalty import Penalty
from mlopt.gd.plans.by_columns import Columns
from mlopt.gd.working_set import WorkingSet

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(80, 7)) + 0.5
X[:, 3] = 2.0  # never varies
Y = X @ RANDOM.normal(size=7) + RANDOM.normal(size=80)
PENALTIES = [
    Penalty(0.2),
    Penalty(0.1, 0.3),
    Penalty(0.05, positive=True),
    Penalty(0.0, 0.2),
]


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("started", [True, False])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_it_says_what_rows_say(
    penalty: Penalty, intercept: bool, started: bool, make: Any
) -> None:
    columns = Columns.of(make(X), Y, np.full(80, 1 / 80), intercept, 0.0, numeric=True)
    columns.products.of(np.arange(7))
    start = (RANDOM.random(7), 0.3) if started else None
    free = intercept and not columns.centred
    one = WorkingSet(columns, "squared", intercept=free, start=start)
    assert one.solve(penalty, 1e-6, 1000)
    assert one._stale
    known = one._quadratic()
    assert known is not None
    g, loss = known.at(one.w)
    gap, b = one.gap, one._b
    one._look()
    np.testing.assert_allclose(g, one._gradient(), atol=1e-12)
    assert loss == pytest.approx(one.loss, rel=1e-12)
    assert b == pytest.approx(one._b, abs=1e-12)
    assert gap == pytest.approx(one._dual_gap(penalty, one._gradient()), abs=1e-12)
    assert gap <= 1e-6


def test_a_gap_below_what_differences_lose_is_for_rows_to_judge() -> None:
    columns = Columns.of(X, Y, np.full(80, 1 / 80), False, 0.0, numeric=True)
    columns.products.of(np.arange(7))
    one = WorkingSet(columns, "squared", intercept=False)
    one.solve(Penalty(0.1), 1e-16, 1000)
    assert not one._stale
