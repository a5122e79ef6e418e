"""`Ridge` and `LinearRegression` solve scikit-learn's problems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn import linear_model
from sklearn.exceptions import ConvergenceWarning

import mlopt
from mlopt.errors import InputError
from mlopt.gd.least_squares import LinearRegression, Ridge
from mlopt.gd.least_squares_fit import SOLVERS as ALL

Array = NDArray[Any]
SOLVERS = ["cholesky", "svd", "sparse_cg"]
LAYOUTS = [np.asarray, sparse.csr_array, sparse.csc_matrix]


def problem(n: int = 300, d: int = 7, outputs: int = 1, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) + rng.normal(size=d)) * (rng.random((n, d)) < 0.6)
    y = X @ rng.normal(size=(d, outputs)) + rng.normal(size=(n, outputs)) + 4.0
    return X, y[:, 0] if outputs == 1 else y, rng.random(n) + 0.1


def same(ours: Any, theirs: Any, rtol: float = 1e-7) -> None:
    scale = np.abs(theirs.coef_).max()
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=rtol, atol=rtol)
    assert np.shape(ours.coef_) == np.shape(theirs.coef_)
    assert np.shape(ours.intercept_) == np.shape(theirs.intercept_)


def far_and_near(n: int, d: int, far: float, std: float) -> tuple[Any, Any, Array, Array]:
    """Sparse rows whose last column is stored everywhere, far from zero; near it; y."""
    rng = np.random.default_rng(0)
    S = sparse.random(n, d, density=0.03, format="csr", random_state=0)
    t = std * rng.normal(size=n)
    y = S @ rng.normal(size=d) + 3.0 * t / std + 0.1 * rng.normal(size=n)
    scale = np.append(np.ones(d), std)
    found = (sparse.csr_array(sparse.hstack([S, c[:, None]])) for c in (far + t, t))
    return (*found, y, scale)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("far", "std"), [(1e6, 1.0), (1.7e9, 60.0)])
@pytest.mark.parametrize("n", [12000, 60])
def test_nor_where_only_a_column_of_sparse_rows_is_far(
    n: int, far: float, std: float, weighted: bool
) -> None:
    """Of the time of day beside categories R2 was .29 instead of .999."""
    X, near, y, scale = far_and_near(n, 100, far, std)
    weights = np.linspace(0.5, 2.0, n) if weighted else None
    ours = Ridge(1e-3 * std**2, solver="cholesky" if n > 100 else "dual_cholesky")
    found = ours.fit(X, y, sample_weight=weights).coef_
    theirs = linear_model.Ridge(1e-3 * std**2, solver="svd")
    expected = theirs.fit(near.toarray(), y, sample_weight=weights).coef_
    assert ours.solver_ == ours.solver
    # Of the values themselves so many digits are gone before any fit.
    atol = 1e-6 if far / std < 1e7 else 1e-5
    np.testing.assert_allclose(found * scale, expected * scale, atol=atol)


def test_rows_of_no_weight_at_the_beginning_cost_no_digits() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 20)) + 1e6
    y = (X - 1e6) @ rng.normal(size=20) + 0.1 * rng.normal(size=len(X))
    weights = np.repeat([0.0, 1.0], [4000, 16_000])
    found = Ridge(solver="cholesky").fit(X, y, sample_weight=weights)
    expected = Ridge(solver="cholesky").fit(X[4000:], y[4000:])
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)


def test_rows_without_a_weight_count_among_singular_values() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 5)), rng.normal(size=10)
    weight = np.zeros(10)
    weight[:3] = 1.0
    ours = mlopt.LinearRegression().fit(X, y, weight)
    theirs = linear_model.LinearRegression().fit(X, y, weight)
    np.testing.assert_allclose(ours.singular_, theirs.singular_, atol=1e-12)


@pytest.mark.parametrize("kind", [mlopt.Ridge, mlopt.LinearRegression])
def test_a_target_beyond_the_rows_type_is_refused(kind: Any) -> None:
    X, y = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32), np.ones(50)
    y[0] = 1e39
    with pytest.raises(InputError, match="too large for float32"):
        kind().fit(X, y)
    kind().fit(X.astype(np.float64), y)


@pytest.mark.parametrize("shape", [(6, 20), (6, 6), (7, 6)])
def test_there_are_as_many_singular_values_as_rows_or_columns(
    shape: tuple[int, int],
) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=shape), rng.normal(size=shape[0])
    ours, theirs = (m.LinearRegression().fit(X, y) for m in (mlopt, linear_model))
    np.testing.assert_allclose(ours.singular_, theirs.singular_, atol=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_ridge_agrees_with_scikit_learn(
    solver: str, layout: Any, fit_intercept: bool
) -> None:
    X, y, weights = problem()
    ours = Ridge(3.0, solver=solver, tol=1e-12, fit_intercept=fit_intercept)
    ours.fit(layout(X), y, sample_weight=weights)
    theirs = linear_model.Ridge(3.0, solver="svd", fit_intercept=fit_intercept)
    same(ours, theirs.fit(X, y, sample_weight=weights))
    np.testing.assert_allclose(ours.predict(layout(X)), theirs.predict(X), rtol=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_linear_regression_agrees_with_scikit_learn(
    solver: str, layout: Any, fit_intercept: bool
) -> None:
    X, y, weights = problem(outputs=2)
    tol = 1e-12 if solver == "sparse_cg" else 1e-6
    ours = LinearRegression(solver=solver, fit_intercept=fit_intercept, tol=tol)
    ours.fit(layout(X), y, sample_weight=weights)
    theirs = linear_model.LinearRegression(fit_intercept=fit_intercept)
    same(ours, theirs.fit(X, y, sample_weight=weights))
    if solver != "sparse_cg":
        assert ours.rank_ == theirs.rank_
        np.testing.assert_allclose(np.asarray(ours.singular_), theirs.singular_)


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_target_has_its_own_penalty(solver: str) -> None:
    X, y, weights = problem(outputs=3)
    alphas = [0.5, 20.0, 0.5]
    ours = Ridge(alphas, solver=solver, tol=1e-12).fit(X, y, sample_weight=weights)
    same(ours, linear_model.Ridge(alphas, solver="svd").fit(X, y, sample_weight=weights))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(60, 8), (6, 20)])
def test_of_many_solutions_the_one_of_least_norm(
    solver: str, shape: tuple[int, int]
) -> None:
    X, y, _ = problem(*shape)
    X[:, 2] = X[:, 0] - X[:, 1]  # two features say the third
    X[:, 3] = 5.0  # and the intercept says this one
    ours = LinearRegression(
        solver=solver, tol=1e-10 if solver == "sparse_cg" else 1e-6
    ).fit(X, y)
    same(ours, linear_model.LinearRegression().fit(X, y))
    if solver == "cholesky":
        assert ours.solver_ == "svd"
        assert "dependent" in ours.plan_.explain() or "off by" in ours.plan_.explain()


@pytest.mark.parametrize("solver", ["cholesky", "svd"])
@pytest.mark.parametrize("alpha", [0.0, 1e-3])
@pytest.mark.parametrize("twice", [False, True])
def test_a_ridge_has_every_column_whatever_its_unit(
    solver: str, alpha: float, twice: bool
) -> None:
    X, y, _ = problem(600)
    units = np.array([1e16, *np.ones(5), 1e-3])  # nanoseconds, say, and thousandths
    weighed = alpha * np.eye(7) / units**2  # in units in which columns are alike
    centred = X - X.mean(axis=0)
    expected = np.linalg.solve(centred.T @ centred + weighed, centred.T @ (y - y.mean()))
    rows = np.column_stack((X * units, X[:, 0] * 2e16)) if twice else X * units
    ours = Ridge(alpha, solver=solver).fit(rows, y)
    wanted = centred @ expected + y.mean()
    np.testing.assert_allclose(ours.predict(rows), wanted, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("solver", ["cholesky", "svd"])
def test_no_digits_are_lost_far_from_zero(solver: str) -> None:
    X, y, weights = problem()
    far = X + 1e6 * np.arange(1, 8)
    ours = LinearRegression(solver=solver).fit(far, y, sample_weight=weights)
    near = LinearRegression(solver=solver).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, near.coef_, rtol=1e-7)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", [Ridge, LinearRegression])
def test_float32_stays_float32(kind: Any, solver: str, layout: Any) -> None:
    X, y, _ = problem()
    single = kind(solver=solver).fit(layout(X.astype(np.float32)), y)
    assert single.coef_.dtype == np.float32
    assert single.predict(layout(X.astype(np.float32))).dtype == np.float32
    double = kind(solver="svd").fit(X, y)
    np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_weight_of_two_is_the_row_twice_and_of_zero_is_no_row(solver: str) -> None:
    X, y, _ = problem(n=40)
    counts = np.arange(40) % 3
    weighted = Ridge(solver=solver, tol=1e-12).fit(X, y, sample_weight=counts)
    repeated = Ridge(solver=solver, tol=1e-12).fit(
        np.repeat(X, counts, axis=0), np.repeat(y, counts)
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-9)


def test_stopping_early_warns_and_keeps_the_result() -> None:
    X, y, _ = problem()
    model = Ridge(solver="sparse_cg", max_iter=2, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="increase `max_iter`"):
        model.fit(X, y)
    assert model.n_iter_ == [2]
    assert model.score(X, y) > 0.5


def test_the_plan_shows_what_was_rejected_and_what_it_took() -> None:
    X, y, _ = problem(n=13_000)
    plan = Ridge().fit(X, y).plan_
    assert plan.choices[0].chosen == "cholesky"
    rejected = {one.name: one.seconds for one in plan.choices[0].rejected}
    assert set(rejected) == {*ALL} - {"cholesky"}
    assert min(filter(None, rejected.values())) >= plan.predicted
    assert plan.measured > 0


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_keep_their_names(frame: Any) -> None:
    X, y, _ = problem(d=3)
    columns = dict(zip("abc", X.T, strict=True))
    model = LinearRegression().fit(frame(columns), y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    plain = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.predict(frame(columns)), plain.predict(X))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Ridge(-1.0), "The 'alpha' parameter of Ridge must be .*Got -1.0"),
        (Ridge([1.0, 2.0]), "`alpha` must be a number or have one entry for each target"),
        (Ridge(solver="magic"), "The 'solver' parameter of Ridge must be .*'sketched_cg'"),
        (Ridge(solver="sag", positive=True), "does not support positive fitting"),
        (Ridge(tol=-1.0), "The 'tol' parameter of Ridge must be .*Got -1.0"),
        (LinearRegression(max_iter=0), "The 'max_iter' parameter of LinearRegression"),
        (LinearRegression(n_jobs=0), "`n_jobs` must not be 0"),
    ],
)
def test_wrong_parameters_say_what_to_do(model: Any, message: str) -> None:
    X, y, _ = problem(n=20)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), "one for each of the 20 rows"),
        (-np.ones(20), "not negative"),
        (np.zeros(20), "not all zero"),
    ],
)
def test_wrong_weights_say_what_to_do(weights: Array, message: str) -> None:
    X, y, _ = problem(n=20)
    with pytest.raises(ValueError, match=message):
        Ridge().fit(X, y, sample_weight=weights)


def test_dask_in_dask_out() -> None:
    da = pytest.importorskip("dask.array")
    X, y, weights = problem()
    lazy = da.from_array(X, chunks=(100, 4))
    model = Ridge(tol=1e-12).fit(lazy, da.from_array(y, chunks=50), sample_weight=weights)
    same(model, Ridge(tol=1e-12).fit(X, y, sample_weight=weights))
    predicted = model.predict(lazy)
    assert isinstance(predicted, da.Array)
    np.testing.assert_allclose(predicted.compute(), model.predict(X))


def test_dask_dataframes_keep_their_names() -> None:
    dd = pytest.importorskip("dask.dataframe")
    X, y, _ = problem(d=3, outputs=2)
    frame = pd.DataFrame(X, columns=list("abc"))
    lazy = dd.from_pandas(frame, npartitions=3)
    model = LinearRegression().fit(lazy, y)
    same(model, LinearRegression().fit(X, y))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(model.predict(lazy).compute(), model.predict(frame))
    with pytest.raises(ValueError, match="in the same order"):
        model.predict(lazy[["b", "a", "c"]])
    with pytest.raises(ValueError, match="now missing:\n- c"):
        model.predict(lazy[["a", "b"]])


def test_steps_with_a_penalty_below_rounding_end_in_the_solution_of_least_norm() -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(30, 60)), random.normal(size=30)
    model = Ridge(alpha=np.finfo(float).tiny, solver="sparse_cg", tol=1e-12)
    expected = np.linalg.pinv(X - X.mean(axis=0)) @ (y - y.mean())
    np.testing.assert_allclose(model.fit(X, y).coef_, expected, atol=1e-8)


@pytest.mark.parametrize("shape", [(300, 7), (6, 20)])
def test_without_a_penalty_no_singular_vectors_are_made(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scipy.linalg.svd", _unwanted)
    X, y, weights = problem(*shape)
    ours = LinearRegression(solver="svd").fit(X, y, sample_weight=weights)
    theirs = linear_model.LinearRegression().fit(X, y, sample_weight=weights)
    same(ours, theirs)
    assert ours.rank_ == theirs.rank_
    rank = theirs.rank_
    np.testing.assert_allclose(ours.singular_[:rank], theirs.singular_[:rank])


@pytest.mark.parametrize(
    "model", [Ridge(2.0, solver="svd"), LinearRegression(solver="svd")]
)
def test_fewer_rows_than_columns_are_centred_without_a_factor(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numpy.linalg.qr", _unwanted)
    X, y, weights = problem(6, 20)
    theirs = linear_model.LinearRegression()
    if isinstance(model, Ridge):
        theirs = linear_model.Ridge(2.0, solver="svd")
    model.fit(X, y, sample_weight=weights)
    same(model, theirs.fit(X, y, sample_weight=weights))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_centred_rows_do_not_depend_on_each_other_for_a_small_penalty(layout: Any) -> None:
    X, y, weights = problem(30, 200)
    weights[3] = 0.0
    ours = Ridge(1e-9, solver="dual_cholesky").fit(layout(X), y, sample_weight=weights)
    assert ours.solver_ == "dual_cholesky"
    theirs = linear_model.Ridge(1e-9, solver="svd").fit(X, y, sample_weight=weights)
    same(ours, theirs)


def _unwanted(*_: Any, **__: Any) -> Any:
    raise AssertionError("a decomposition that the solution does not need")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_steps_on_wide_rows_do_not_grow_as_the_penalty_fades(layout: Any) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 900)) * (rng.random((60, 900)) < 0.1)
    y = X @ rng.normal(size=900) + 3.0
    alphas = [1e-4, 1e-2, 1.0]
    ours = Ridge(alphas, solver="sparse_cg", tol=1e-8)
    ours.fit(layout(X), np.column_stack([y, y, y]))
    for coef, alpha in zip(ours.coef_, alphas, strict=True):
        theirs = linear_model.Ridge(alpha, solver="svd").fit(X, y).coef_
        np.testing.assert_allclose(coef, theirs, atol=1e-7 * np.abs(theirs).max())
    assert ours.n_iter_.max() <= 60  # the rank, and rounding


@pytest.mark.parametrize("shape", [(300, 20), (30, 60)])
@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_steps_with_a_penalty_end_for_the_usual_columns_beside_a_large_one(
    shape: tuple[int, int], alpha: float
) -> None:
    X, y, _ = problem(*shape)
    X[:, 0] *= 1e8
    ours = Ridge(alpha, solver="sparse_cg").fit(X, y)
    theirs = Ridge(alpha, solver="cholesky").fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-3, atol=1e-3)


def test_wide_rows_whose_columns_have_many_scales_are_evened_out() -> None:
    rng = np.random.default_rng(6)
    few = rng.normal(size=(200, 5)) * [1.0, 10.0, 1e2, 1e3, 1e4]
    X = np.hstack([rng.random((200, 600)) < 0.02, few])
    y = X @ (rng.normal(size=605) / (1.0 + np.linalg.norm(X, axis=0)))
    ours = Ridge(10.0, solver="sparse_cg", tol=1e-6).fit(sparse.csr_array(X), y)
    assert ours.n_iter_.max() < 40  # 51 as they are
    same(ours, linear_model.Ridge(10.0, solver="svd").fit(X, y), 1e-5)
