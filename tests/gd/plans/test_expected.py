"""How many passes problems are said to take, before anything has run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from mlopt import LinearSVC
from mlopt.gd.plans import Task, plan
from mlopt.gd.plans.expected import Scale, Seen, expected
from mlopt.gd.plans.look import Look, rarest
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import GradientNorm, RelativeGap
from mlopt.gd.pricing import Shape, shape_of
from mlopt.rows import Rows

TEXT = Shape(
    n=10_000, d=50_000, columns=1, nonzero=500_000, itemsize=8, sparse=True, blocks=8
)

LOOK = Look(1.0, 0.01, 0.0, 1.0, 0.0, 0.01, 0.0, 0.3)


def outline(loss: str = "logistic", l2: float = 1e-5, **shape: Any) -> Outline:
    return Outline(loss, replace(TEXT, **shape), l2=l2, look=lambda: LOOK)


def words(rng: np.random.Generator) -> tuple[sparse.csr_matrix, NDArray[np.int64]]:
    """Rows of words, frequent ones and rare ones, of length one."""
    n, d, each = (
        int(10 ** rng.uniform(*of)) for of in ((3.0, 4.0), (3.3, 4.3), (1.0, 2.0))
    )
    popular = 1 / np.arange(1, d + 1) ** rng.uniform(0.7, 1.1)
    columns = rng.choice(d, size=n * each, p=popular / popular.sum())
    values = rng.random(n * each) + 0.1
    X = sparse.csr_matrix((values, columns, np.arange(0, n * each + 1, each)), (n, d))
    X.sum_duplicates()
    X = sparse.csr_matrix(sparse.diags(1 / np.sqrt(X.multiply(X).sum(axis=1).A1)) @ X)
    z = X @ (rng.normal(size=d) * 3)
    return X, (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)


def test_beyond_what_was_seen_is_as_the_last_that_was() -> None:
    last = expected("lbfgs", outline(l2=1e-12), RelativeGap(1e-3))
    assert last is not None
    assert expected("lbfgs", outline(l2=0.0), RelativeGap(1e-3)) == last
    assert expected("lbfgs", outline(l2=1e-4), RelativeGap(1e-3)) != last


def test_the_smaller_the_gap_the_more() -> None:
    dense = outline(n=2000, d=20, nonzero=40_000, sparse=False)
    for method, *outlines in (
        ("lbfgs", outline(), dense),
        ("primal-coordinate-descent", outline(), dense),
        ("newton-cholesky", dense),
    ):
        for one in outlines:
            found = [expected(method, one, RelativeGap(gap)) for gap in (1e-2, 1e-4, 1e-6)]
            passes = [few[0] for few in found if few is not None]
            assert len(passes) == 3
            assert passes == sorted(passes)


def test_of_what_nobody_looked_at_nothing_is_said() -> None:
    assert (
        expected("primal-coordinate-descent", outline("huber"), RelativeGap(1e-3)) is None
    )
    assert expected("lbfgs", outline("multinomial", columns=3), RelativeGap(1e-3)) is None
    assert expected("lbfgs", replace(outline(), sharp=True), RelativeGap(1e-3)) is None
    assert expected("sparse_cg", outline("squared"), GradientNorm(1e-3)) is None
    assert expected("working-set", outline(), RelativeGap(1e-3)) is None


def test_words_take_about_as_many_passes() -> None:
    rng, held, off = np.random.default_rng(0), [], []
    for _ in range(40):
        X, y = words(rng)
        task, tolerance = Task("logistic", l2=10 ** rng.uniform(-6, -3)), rng.integers(2, 6)
        found = plan(
            task, X, y, tolerance=10.0**-tolerance, methods=["lbfgs"], speculation=False
        )
        (only,) = found.alternatives
        taken = found.run().n_iter
        held.append(only.passes.low <= taken <= only.passes.high)
        off.append(abs(np.log2(taken / only.passes.expected)))
    assert np.mean(held) >= 0.7  # four of five are meant
    assert np.mean(np.array(off) < 1.0) >= 0.75


@pytest.mark.parametrize(("n", "d"), [(100, 2000), (200, 3000), (400, 1500)])
def test_wide_rows_of_noise_take_as_many_epochs_as_foreseen(n: int, d: int) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, d)), rng.integers(4, size=n)
    taken = LinearSVC(dual=True, random_state=0).fit(X, y).n_iter_
    rows = Rows.of(X)
    look = Look.of(rows, rarest(np.bincount(y)))
    found = expected(
        "dual-coordinate-descent",
        Outline("squared_hinge", shape_of(rows, 4), l2=1 / n, look=lambda: look),
        GradientNorm(1e-4),
    )
    assert found is not None
    passes, doubt = found
    assert passes / doubt <= taken <= passes * doubt
    assert passes / 3 <= taken <= 3 * passes


def test_where_neighbours_disagree_more_is_left_open() -> None:
    """Passes of 100 on one side; on the other 100 or 10,000, by chance."""
    rng = np.random.default_rng(0)
    places = rng.uniform(-1.0, 1.0, (300, 1))
    wild = (places[:, 0] > 0) & (rng.random(300) < 0.5)
    logs = np.where(wild, np.log(10_000), np.log(100)) + 0.1 * rng.standard_normal(300)
    seen = Seen.of(places, logs, Scale(2.0, 1.0, 1.3, np.array([1.0])))
    (_, calm), (_, wide) = (seen.foresee(np.array([at])) for at in (-0.5, 0.5))
    assert wide > 2 * calm
