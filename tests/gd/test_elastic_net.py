"""`Lasso` and `ElasticNet`: the solutions and the attributes of scikit-learn's."""

from __future__ import annotations

import warnings
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import linear_model
from sklearn.exceptions import ConvergenceWarning

import mlopt
from mlopt.errors import InputError
from mlopt.gd.working_set import WAY

Array = NDArray[Any]
FINE: dict[str, Any] = {"tol": 1e-10}
FINER: dict[str, Any] = {"tol": 1e-12, "max_iter": 100_000}


def problem(n: int = 200, d: int = 30, seed: int = 0) -> tuple[Array, Array, Array]:
    """Rows, two targets of which few columns tell something, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 5
    weights = np.where(rng.random(d) < 0.3, rng.normal(size=d), 0.0)
    Y = np.column_stack((X @ weights, X[:, :4] @ rng.normal(size=4)))
    c = rng.uniform(0.0, 2.0, n)
    c[:5] = 0.0
    return X, Y + rng.normal(size=Y.shape), c


def few(X: Array) -> Any:
    """The same as a sparse matrix, with few values."""
    return sp.csr_array(np.where(X > 6, X, 0.0))


SETTINGS: list[dict[str, Any]] = [
    {"alpha": 0.1, "l1_ratio": 1.0},
    {"alpha": 0.1, "l1_ratio": 0.3},
    {"alpha": 0.1, "l1_ratio": 0.0},
    {"alpha": 0.05, "l1_ratio": 0.7, "fit_intercept": False},
    {"alpha": 0.2, "l1_ratio": 0.9, "positive": True},
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("settings", SETTINGS)
def test_solutions_are_those_of_scikit_learn(
    settings: dict[str, Any], sparse: bool, weighted: bool
) -> None:
    X, Y, c = problem()
    rows, weights = few(X) if sparse else X, c if weighted else None
    ours = mlopt.ElasticNet(**FINE, **settings).fit(rows, Y[:, 0], weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # without an L1 penalty
        theirs = linear_model.ElasticNet(**FINER, **settings).fit(rows, Y[:, 0], weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-4, atol=1e-4)
    assert ours.plan_.choices[0].chosen == WAY


@pytest.mark.parametrize("columns", [0, 1, 2])
def test_attributes_have_the_shapes_of_scikit_learn(columns: int) -> None:
    X, Y, _ = problem()
    y = Y[:, 0] if columns == 0 else Y[:, :columns]
    ours, theirs = (kind.Lasso(0.1).fit(X, y) for kind in (mlopt, linear_model))
    for name in ("coef_", "intercept_", "dual_gap_", "n_iter_", "sparse_coef_"):
        assert np.shape(getattr(ours, name)) == np.shape(getattr(theirs, name)), name
    assert ours.predict(X).shape == theirs.predict(X).shape


def test_float32_stays_float32_and_loses_no_digits() -> None:
    X, Y, _ = problem()
    single = mlopt.Lasso(0.1, **FINE).fit(X.astype(np.float32), Y[:, 0])
    assert single.coef_.dtype == np.float32
    double = mlopt.Lasso(0.1, **FINE).fit(X.astype(np.float32).astype(float), Y[:, 0])
    np.testing.assert_allclose(single.coef_, double.coef_, atol=1e-5)


def test_digits_are_kept_far_from_zero() -> None:
    X, Y, _ = problem()
    near, far = (mlopt.Lasso(0.1, **FINE).fit(X + by, Y[:, 0]) for by in (0.0, 1e6))
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("positive", [False, True])
def test_digits_are_kept_of_a_target_far_from_zero(sparse: bool, positive: bool) -> None:
    X, Y, c = problem()
    rows = few(X) if sparse else X
    setting: dict[str, Any] = {"positive": positive, "tol": 1e-7}
    near = mlopt.Lasso(0.1, **setting).fit(rows, Y[:, 0], c)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        far = mlopt.Lasso(0.1, **setting).fit(rows, Y[:, 0] + 1e8, c)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-5)
    assert far.intercept_ == pytest.approx(near.intercept_ + 1e8, rel=1e-13)


def test_constant_and_empty_columns_have_no_weight() -> None:
    X, Y, _ = problem()
    X[:, 3], X[:, 7] = 2.5, 0.0
    for rows in (X, sp.csr_array(X)):
        found = mlopt.Lasso(0.01, **FINE).fit(rows, Y[:, 0])
        assert found.coef_[3] == found.coef_[7] == 0.0


def test_the_gap_that_is_told_is_a_bound_and_is_reached() -> None:
    X, Y, _ = problem(60, 200)
    y = Y[:, 0]

    def objective(model: Any) -> float:
        return float(
            np.mean((y - model.predict(X)) ** 2) / 2 + 0.05 * abs(model.coef_).sum()
        )

    best = objective(mlopt.Lasso(0.05, tol=1e-13).fit(X, y))
    for tol in (1e-1, 1e-2, 1e-4, 1e-6):
        model = mlopt.Lasso(0.05, tol=tol).fit(X, y)
        assert objective(model) - best <= model.dual_gap_ + 1e-12
        assert model.dual_gap_ <= tol * y.var()


def test_a_penalty_beyond_the_largest_leaves_nothing() -> None:
    X, Y, _ = problem()
    y = Y[:, 0]
    most = float(np.abs((X - X.mean(0)).T @ (y - y.mean())).max() / len(y))
    assert not mlopt.Lasso(1.0001 * most).fit(X, y).coef_.any()
    assert mlopt.Lasso(0.99 * most, **FINE).fit(X, y).coef_.any()


def test_a_warm_start_goes_on() -> None:
    X, Y, _ = problem(100, 300)
    model = mlopt.Lasso(0.05, tol=1e-8, warm_start=True).fit(X, Y[:, 0])
    cold, coef = model.n_iter_, model.coef_.copy()
    model.fit(X, Y[:, 0])
    assert model.n_iter_ == 0 < cold
    np.testing.assert_allclose(model.coef_, coef, atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_more_columns_than_rows_do_not_make_sweeps_creep_to_their_limit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 200))
    y = X[:, :10] @ rng.normal(size=10)
    model = mlopt.ElasticNet(alpha=1e-3, tol=1e-6, warm_start=True).fit(X, y)
    assert 0 < model.n_iter_ < model.max_iter
    assert model.fit(X, y).n_iter_ == 0
    exact = linear_model.ElasticNet(alpha=1e-3, **FINER).fit(X, y)  # 25,000 sweeps
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-5 * abs(exact.coef_).max())


@pytest.mark.parametrize("walk", [False, True])
@pytest.mark.parametrize("ratio", [1.0, 0.99])
def test_weak_penalties_of_wide_columns_converge_within_the_default(
    ratio: float, walk: bool
) -> None:
    rng = np.random.default_rng(3)
    n, d = 120, 900
    X = rng.normal(size=(n, d))
    if walk:
        X = np.cumsum(X, axis=1) / np.sqrt(np.arange(1, d + 1))
    y = X @ np.where(rng.random(d) < 0.1, rng.normal(size=d), 0.0) + rng.normal(size=n)
    most = float(np.abs((X - X.mean(0)).T @ (y - y.mean())).max() / n)
    setting: dict[str, Any] = {"alpha": most * (1e-3 if walk else 5e-3), "l1_ratio": ratio}

    def objective(model: Any) -> float:
        l1, w = setting["alpha"], model.coef_
        size = ratio * np.abs(w).sum() + (1 - ratio) / 2 * (w @ w)
        return float(np.mean((y - model.predict(X)) ** 2) / 2 + l1 * size)

    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = mlopt.ElasticNet(**setting).fit(X, y)
    assert model.n_iter_ < 500
    assert model.dual_gap_ <= model.tol * y.var()
    exact = linear_model.ElasticNet(**setting, tol=1e-6, max_iter=200_000).fit(X, y)
    assert objective(model) - objective(exact) <= model.dual_gap_


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_limits_count_sweeps_over_all_columns(most: int) -> None:
    X, Y, _ = problem(100, 2000)
    with pytest.warns(ConvergenceWarning, match=f"after {most} sweeps"):
        model = mlopt.Lasso(1e-3, max_iter=most).fit(X, Y[:, 0])
    assert model.n_iter_ == most
    assert model.dual_gap_ > model.tol * Y[:, 0].var()


def test_a_start_below_zero_does_not_stay_where_weights_are_positive() -> None:
    X, Y, _ = problem()
    y = Y[:, 0]
    model = mlopt.Lasso(0.01, warm_start=True, tol=1e-8).fit(X, y)
    assert model.coef_.min() < 0
    model.set_params(positive=True).fit(X, y)
    expected = mlopt.Lasso(0.01, positive=True, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)


def test_few_sweeps_warn_and_say_the_gap() -> None:
    X, Y, _ = problem(100, 300)
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        model = mlopt.Lasso(0.01, max_iter=2, tol=1e-10).fit(X, Y[:, 0])
    assert model.n_iter_ == 2


def test_rounding_alone_is_no_reason_to_warn() -> None:
    X, Y, _ = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = mlopt.Lasso(0.1, tol=0.0).fit(X, Y[:, 0])
    assert model.dual_gap_ < 1e-12 * Y[:, 0].var()


def test_sparse_columns_far_from_zero_do_not_overflow() -> None:
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.normal(size=(2000, 50)) + 1.7e9)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.warns(ConvergenceWarning):
            mlopt.Lasso(0.005).fit(X, rng.normal(size=2000))


def test_dask_rows_are_gathered() -> None:
    X, Y, _ = problem()
    lazy = da.from_array(X, chunks=(70, 30))
    ours = mlopt.Lasso(0.1, **FINE).fit(lazy, da.from_array(Y[:, 0], chunks=70))
    here = mlopt.Lasso(0.1, **FINE).fit(X, Y[:, 0])
    np.testing.assert_allclose(ours.coef_, here.coef_, atol=1e-12)
    np.testing.assert_allclose(ours.predict(lazy).compute(), here.predict(X))


def test_without_a_penalty_and_with_a_matrix_scikit_learn_fits() -> None:
    X, Y, _ = problem()
    with pytest.warns(UserWarning, match="alpha=0"):
        free = mlopt.ElasticNet(0.0).fit(X, Y[:, 0])
    centred = X - X.mean(axis=0)
    given = mlopt.Lasso(0.1, precompute=centred.T @ centred, fit_intercept=False)
    for model in (free, given.fit(centred, Y[:, 0])):
        assert model.plan_.choices[0].chosen == "scikit-learn"


@pytest.mark.parametrize("ratio", [-0.1, 1.1])
def test_a_share_outside_of_0_and_1_is_refused_at_once(ratio: float) -> None:
    X, Y, _ = problem()
    with pytest.raises(InputError, match="l1_ratio"):
        mlopt.ElasticNet(l1_ratio=ratio).fit(X, Y[:, 0])


def test_the_plan_before_is_that_of_the_fit() -> None:
    X, Y, _ = problem()
    model = mlopt.Lasso(0.1)
    before = model.explain(X, Y[:, 0])
    assert not hasattr(model, "coef_")
    assert before.choices[0].chosen == model.fit(X, Y[:, 0]).plan_.choices[0].chosen
