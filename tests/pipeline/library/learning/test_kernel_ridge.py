"""Kernel ridge by blocks is scikit-learn's, once it has converged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import kernel_ridge
from sklearn.exceptions import ConvergenceWarning

from mlopt.cluster import Threads
from mlopt.errors import InputError
from mlopt.pipeline.library.learning import KernelRidge, KernelRidgeClassifier
from mlopt.rows import Rows

N = 120
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = np.sin(X @ RNG.normal(size=(3, 2)))
FAR: dict[str, Any] = {"gamma": 0.3, "block_size": 50, "n_iter": 500, "tol": 1e-9}


def judge(alpha: float = 0.5, y: Any = Y) -> Any:
    return kernel_ridge.KernelRidge(alpha=alpha, kernel="rbf", gamma=0.3).fit(X, y)


@pytest.mark.parametrize("budget", [0, "auto"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_it_is_scikit_learns(budget: Any, layout: Any) -> None:
    ours = KernelRidge(0.5, memory_budget=budget, **FAR).fit(layout(X), Y)
    np.testing.assert_allclose(ours.dual_coef_, judge().dual_coef_, atol=1e-6)
    np.testing.assert_allclose(
        ours.predict(layout(X[:9])), judge().predict(X[:9]), atol=1e-6
    )
    kept = "make columns anew" if budget == 0 else "keep the kernel"
    assert ours.plan_.choices[0].chosen == kept


@pytest.mark.parametrize("rows", [N, 37])
def test_rows_in_several_blocks_agree(rows: int) -> None:
    where = Threads(2)
    ours = KernelRidge(0.5, **FAR).fit(Rows.of(X, executor=where, block_rows=rows), Y)
    where.close()
    np.testing.assert_allclose(ours.dual_coef_, judge().dual_coef_, atol=1e-6)


def test_a_single_block_needs_one_sweep() -> None:
    ours = KernelRidge(0.5, gamma=0.3, block_size=N, tol=1e-6).fit(X, Y[:, 0])
    assert ours.dual_coef_.shape == (N,)
    assert ours.n_iter_ == 2  # the second one finds nothing left
    expected = judge(y=Y[:, 0]).dual_coef_
    np.testing.assert_allclose(ours.dual_coef_, expected, atol=1e-8)


def test_float32_stays_float32() -> None:
    ours = KernelRidge(0.5, **{**FAR, "tol": 1e-5}).fit(X.astype(np.float32), Y)
    assert ours.predict(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(ours.predict(X), judge().predict(X), atol=1e-3)


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_are_fitted_as_indicators(classes: int) -> None:
    y = np.digitize(Y[:, 0], [-0.3, 0.3][: classes - 1])
    ours = KernelRidgeClassifier(0.5, **FAR).fit(X, y)
    signs = np.where(y[:, None] == np.arange(classes), 1.0, -1.0)
    scores = judge(y=signs).predict(X)
    np.testing.assert_array_equal(ours.predict(X), scores.argmax(axis=1))
    found = ours.decision_function(X)
    np.testing.assert_allclose(found, scores[:, 1] if classes == 2 else scores, atol=1e-6)


def test_dask_rows_are_fitted_where_they_are() -> None:
    da = pytest.importorskip("dask.array")
    lazy = da.from_array(X, chunks=(50, 3))
    ours = KernelRidge(0.5, **FAR).fit(lazy, Y)
    np.testing.assert_allclose(ours.predict(lazy).compute(), judge().predict(X), atol=1e-6)


def test_too_few_sweeps_are_said() -> None:
    with pytest.warns(ConvergenceWarning, match="stopped after 1 sweeps"):
        KernelRidge(1e-3, block_size=20, n_iter=1).fit(X, Y)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (KernelRidge(0.0), "`alpha` must be a finite number, positive"),
        (KernelRidge(gamma=-1.0), "`gamma` must be a finite number, positive"),
        (KernelRidge(block_size=0), "`block_size` must be an integer"),
        (KernelRidge(tol=-1.0), "`tol` must be a finite number, at least 0"),
    ],
)
def test_wrong_parameters_say_what_to_do(model: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.fit(X, Y)
