"""Working sets: minima of losses with an L1 penalty, by a bound that holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn import linear_model

import mlopt
from mlopt.errors import InputError
from mlopt.gd.penalty import Penalty
from mlopt.gd.plans.by_columns import Columns
from mlopt.gd.working_set import LOSSES, WAY, WorkingSet
from mlopt.kernels.pointwise import losses_and_slopes

Array = NDArray[Any]


def drawn(seed: int, loss: str, n: int = 80, d: int = 25) -> tuple[Array, Array, Array]:
    """Rows, targets, weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.2, 3.0, d) + rng.normal(size=d)
    z = X[:, :5] @ rng.normal(size=5) + rng.normal(size=n)
    y = np.where(z > np.median(z), 1.0, -1.0) if "og" in loss or "inge" in loss else z
    return X, y, rng.uniform(0.1, 2.0, n)


def least(X: Array, y: Array, c: Array, loss: str, penalty: Penalty) -> float:
    """The minimum by SciPy: weights as a difference of two that are not negative."""
    d, c = X.shape[1], c / c.sum()

    def value(v: Array) -> tuple[float, Array]:
        w = v[:d] - v[d:-1]
        values, slopes = losses_and_slopes(loss, X @ w + v[-1], y)
        g = X.T @ (c * slopes) + penalty.l2 * w
        total = float(values @ c) + penalty.l1 * float(v[:-1].sum())
        gradient = np.concatenate((g + penalty.l1, penalty.l1 - g, [slopes @ c]))
        return total + 0.5 * penalty.l2 * float(w @ w), gradient

    most = 0.0 if penalty.positive else None
    bounds = [(0.0, None)] * d + [(0.0, most)] * d + [(None, None)]
    options = {"maxiter": 20_000, "maxfun": 30_000, "ftol": 1e-15, "gtol": 1e-9}
    start = np.zeros(2 * d + 1)
    return float(
        minimize(
            value, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        ).fun
    )


@settings(max_examples=40)
@given(
    loss=st.sampled_from(LOSSES),
    seed=st.integers(0, 1000),
    share=st.sampled_from([0.3, 0.03, 0.003]),
    l2=st.sampled_from([0.0, 1e-3, 0.1]),
    positive=st.booleans(),
    sparse=st.booleans(),
)
def test_the_minimum_is_found_and_the_gap_bounds_it(
    loss: str, seed: int, share: float, l2: float, positive: bool, sparse: bool
) -> None:
    X, y, c = drawn(seed, loss)
    X = np.where(np.abs(X) > 1.5, X, 0.0) if sparse else X
    penalty = Penalty(share, l2, positive)
    rows = sp.csr_array(X) if sparse else X
    columns = Columns.of(rows, y, c, intercept=True)
    model = WorkingSet(columns, loss, intercept=True)
    wanted = least(X, y, c, loss, penalty)
    for gap in (1e-2, 1e-4, 1e-7):
        model.solve(penalty, gap * wanted, 20_000)
        values, _ = losses_and_slopes(loss, X @ model.w + model.intercept, y)
        reached = float(values @ c / c.sum()) + penalty.value(model.w)
        assert reached - wanted <= model.gap + 1e-9 * wanted
        assert reached - wanted <= 1.01 * gap * wanted + 1e-9
    assert not positive or (model.w >= 0).all()


def test_a_path_goes_on_from_the_last_penalty() -> None:
    X, y, c = drawn(1, "squared", 100, 400)
    columns = Columns.of(X, y, c, intercept=True)
    along = WorkingSet(columns, "squared", intercept=True)
    for share in np.geomspace(1.0, 0.01, 10):
        assert along.solve(Penalty(share), 1e-9, 10_000)
        alone = WorkingSet(columns, "squared", intercept=True)
        assert alone.solve(Penalty(share), 1e-9, 10_000)
        np.testing.assert_allclose(along.w, alone.w, atol=1e-3)


def test_what_no_penalty_can_be_is_refused() -> None:
    with pytest.raises(InputError, match="`l1` must be finite and at least 0"):
        Penalty(l1=-1.0)
    with pytest.raises(InputError, match="`l2` must be finite and at least 0"):
        Penalty(l2=np.nan)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("C", [0.05, 1.0])
@pytest.mark.parametrize("ratio", [1.0, 0.4])
def test_two_classes_are_those_of_saga(ratio: float, C: float, sparse: bool) -> None:
    X, y, c = drawn(3, "logistic", 200)
    rows = sp.csr_array(np.where(np.abs(X) > 1, X, 0.0)) if sparse else X / X.std(axis=0)
    same: dict[str, Any] = {"C": C, "l1_ratio": ratio}
    ours = mlopt.LogisticRegression(tol=1e-8, max_iter=10_000, **same).fit(rows, y, c)
    theirs = linear_model.LogisticRegression(
        solver="saga", tol=1e-5, max_iter=50_000, random_state=0, **same
    ).fit(rows, y, c)
    penalty = Penalty(ratio, 1.0 - ratio)

    def objective(model: Any) -> float:
        loss = np.logaddexp(0.0, -y * model.decision_function(rows)) @ c
        return C * float(loss) + penalty.value(model.coef_[0])

    assert objective(ours) <= objective(theirs) * (1 + 1e-9)
    if not sparse:  # where saga comes near its minimum
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=0.05)
    assert ours.plan_.choices[0].chosen == WAY


def test_a_start_that_is_worse_than_zeros_is_left() -> None:
    X, y, c = drawn(2, "logistic")
    columns = Columns.of(X, y, c, intercept=True)
    far = np.random.default_rng(0).normal(scale=1e4, size=(X.shape[1],))
    model = WorkingSet(columns, "logistic", intercept=True, start=(far, -1e3))
    alone = WorkingSet(columns, "logistic", intercept=True)
    for one in (model, alone):
        assert one.solve(Penalty(0.01), 1e-9, 1000)
    np.testing.assert_allclose(model.w, alone.w, atol=1e-4)


def test_sparse_columns_are_multiplied_only_where_that_pays_for_newtons_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1)
    X = sp.random_array((800, 3200), density=0.004, rng=rng, format="csr")
    y = X @ rng.normal(size=3200) + 0.1 * rng.normal(size=800)
    monkeypatch.setattr("mlopt.gd.plans.column_products.gram", _unwanted)
    ours = mlopt.Lasso(6e-4, max_iter=30_000).fit(X, y)
    theirs = linear_model.Lasso(6e-4, max_iter=30_000, tol=1e-7).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-3 * y.std())


def _unwanted(*_: Any) -> Any:
    raise AssertionError("products of columns that no sweeps have paid for")
