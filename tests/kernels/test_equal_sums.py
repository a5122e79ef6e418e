"""Sums are the same to the last bit wherever the rows lie and whoever adds them up."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import dask.array as da
import numpy as np
import pytest
from numpy.typing import NDArray

from mlopt.cluster import Threads
from mlopt.gd.columns import Model, layout
from mlopt.gd.passes import Sums, evaluate
from mlopt.kernels import linear
from mlopt.kernels.linear import linear_pass
from mlopt.kernels.losses import LOGISTIC, SQUARED
from mlopt.rows import Rows

Array = NDArray[Any]


def block(d: int, dtype: Any) -> Array:
    return np.random.default_rng(d).normal(size=(1000, d)).astype(dtype)


def passed(X: Array, models: int) -> list[Array]:
    """Losses and gradients of a pass over ``X``."""
    rng = np.random.default_rng(0)
    W, n = rng.normal(size=(X.shape[1], models)).astype(X.dtype), len(X)
    y = np.where(rng.random((n, 1)) < 0.5, -1.0, 1.0).astype(X.dtype)
    kinds = [LOGISTIC, SQUARED][:models]
    segments = np.array([[k, k + 1, kind, 0, 0, 1] for k, kind in enumerate(kinds)])
    found = linear_pass(
        X, W, np.zeros(models, X.dtype), y, np.ones((n, 1), X.dtype), segments,
        np.ones(models, X.dtype),
    )  # fmt: skip
    return [found.loss, np.asarray(found.gradient), np.asarray(found.intercept_gradient)]


@pytest.mark.parametrize("models", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [17, 50, 54, 64, 333])
def test_a_block_of_a_large_array_and_its_copy_give_the_same(
    d: int, dtype: Any, models: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = block(d, dtype)
    monkeypatch.setattr(linear, "_CACHED", 1.5 * X.nbytes)
    whole = np.concatenate([X, X])
    for one, other in zip(passed(whole[:1000], models), passed(X, models), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("d", [17, 54])
def test_threads_and_separate_blocks_give_the_same(d: int) -> None:
    """A task of Dask holds its block alone; a thread has a view of all rows."""
    rng = np.random.default_rng(1)
    n = 17_000_000 // (8 * d)  # beyond what is taken for cached
    X, y = rng.normal(size=(n, d)), np.where(rng.random((n, 1)) < 0.5, -1.0, 1.0)
    with closing(Threads(1)) as here:
        lengths = Rows.of(X, executor=here).lengths
    apart = da.from_array(X, chunks=(lengths, (d,))) + 0.0
    plan, weights = layout([Model("logistic", 1e-3)]), rng.normal(size=(d + 1, 1))
    found = []
    for threads, data in ((1, X), (2, X), (2, apart)):
        with closing(Threads(threads)) as here:
            rows = Rows.of(data, executor=here)
            assert rows.lengths == lengths
            rows = rows.attach(targets=y, weights=np.ones((n, 1)))
            found.append(evaluate(rows, weights, plan, Sums.of(rows), scored=False))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].value, other.value)
        np.testing.assert_array_equal(found[0].gradient, other.gradient)
