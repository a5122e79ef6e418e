"""Block least squares is ridge regression, however features and rows are cut."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mlopt
from mlopt.cluster import Threads
from mlopt.errors import InputError
from mlopt.pipeline.fits.registry import ways_of
from mlopt.pipeline.library.learning import BlockLeastSquares, BlockLeastSquaresClassifier
from mlopt.rows import Rows

Array = NDArray[Any]

N, D = 300, 23
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D)) + 3.0
Y = X @ RNG.normal(size=(D, 2)) + RNG.normal(size=(N, 2)) + 10.0
LABELS = np.array(["ash", "elm", "fir"])[np.argmax(X[:, :3] + 0.3 * Y[:, :1], axis=1)]
WEIGHTS = RNG.integers(0, 3, N).astype(float)
FAR: dict[str, Any] = {"n_iter": 80, "block_size": 7}
"""Sweeps enough to converge, with a last block that is smaller than the others."""
COSINES = mlopt.RandomFeatures(40, gamma=0.02, random_state=0)


def direct(Z: Array, Y: Array, alpha: float, weights: Array | None = None) -> Array:
    """Coefficients and, in the last row, intercepts by the normal equations."""
    s = np.ones(len(Z)) if weights is None else weights
    A = np.column_stack((Z, np.ones(len(Z))))
    penalty = alpha * np.diag([*np.ones(Z.shape[1]), 0.0])
    found: Array = np.linalg.solve(A.T @ (s[:, None] * A) + penalty, A.T @ (s[:, None] * Y))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 7, D, 1000])
def test_sweeps_lead_to_ridge_regression(size: int) -> None:
    ours = BlockLeastSquares(2.0, block_size=size, n_iter=150).fit(X, Y)
    found = direct(X, Y, 2.0)
    np.testing.assert_allclose(ours.coef_.T, found[:-1], atol=1e-7)
    np.testing.assert_allclose(ours.intercept_, found[-1], atol=1e-6)
    np.testing.assert_allclose(ours.predict(X), X @ found[:-1] + found[-1], atol=1e-6)


def test_one_block_needs_one_sweep() -> None:
    ours = BlockLeastSquares(2.0, n_iter=1).fit(X, Y)
    np.testing.assert_allclose(ours.coef_.T, direct(X, Y, 2.0)[:-1], atol=1e-9)


def test_one_sweep_is_one_step_of_gauss_seidel() -> None:
    """By hand: each block is fitted to what the blocks before it have left."""
    Z, left = X - X.mean(axis=0), Y - Y.mean(axis=0)
    expected = np.zeros((D, 2))
    for start in range(0, D, 10):
        own = slice(start, start + 10)
        gram = Z[:, own].T @ Z[:, own] + 2.0 * np.eye(Z[:, own].shape[1])
        expected[own] = np.linalg.solve(gram, Z[:, own].T @ left)
        left = left - Z[:, own] @ expected[own]
    ours = BlockLeastSquares(2.0, block_size=10, n_iter=1).fit(X, Y)
    np.testing.assert_allclose(ours.coef_.T, expected, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [0, 4 * D * 7 * 8, "auto"])
def test_what_is_kept_changes_no_result(budget: Any) -> None:
    model = BlockLeastSquares(2.0, features=COSINES, memory_budget=budget, **FAR).fit(X, Y)
    Z = COSINES.fit_transform(X)
    expected = Z @ (found := direct(Z, Y, 2.0))[:-1] + found[-1]
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-3)
    wanted = {0: "keep nothing", "auto": "keep features and factors"}
    assert model.plan_.choices[0].chosen == wanted.get(budget, "keep factors")


@pytest.mark.slow
@pytest.mark.parametrize("rows", [N, 101, 32])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_rows_in_several_blocks_agree(rows: int, layout: Any) -> None:
    where = Threads(2)
    blocks = Rows.of(layout(X), executor=where, block_rows=rows)
    ours = BlockLeastSquares(2.0, **FAR).fit(blocks, Y)
    where.close()
    np.testing.assert_allclose(ours.coef_.T, direct(X, Y, 2.0)[:-1], atol=1e-7)


def test_weights_are_repeated_rows() -> None:
    ours = BlockLeastSquares(2.0, **FAR).fit(X, Y, WEIGHTS)
    found = direct(X, Y, 2.0, WEIGHTS)
    np.testing.assert_allclose(ours.coef_.T, found[:-1], atol=1e-7)
    np.testing.assert_allclose(ours.intercept_, found[-1], atol=1e-6)


def test_each_target_may_have_its_penalty() -> None:
    ours = BlockLeastSquares([0.5, 80.0], **FAR).fit(X, Y)
    for number, alpha in enumerate((0.5, 80.0)):
        expected = direct(X, Y, alpha)[:-1, number]
        np.testing.assert_allclose(ours.coef_[number], expected, atol=1e-6)


def test_without_an_intercept_the_plane_goes_through_zero() -> None:
    near = X - X.mean(axis=0) + 0.1  # far from zero, columns are alike: thousands of sweeps
    ours = BlockLeastSquares(2.0, fit_intercept=False, **FAR).fit(near, Y)
    theirs = Ridge(2.0, fit_intercept=False).fit(near, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_array_equal(ours.intercept_, 0.0)


def test_one_target_gives_one_column_less() -> None:
    ours = BlockLeastSquares(2.0, **FAR).fit(X, Y[:, 0])
    assert ours.coef_.shape == (D,)
    assert ours.predict(X).shape == (N,)
    np.testing.assert_allclose(ours.coef_, direct(X, Y, 2.0)[:-1, 0], atol=1e-7)


def test_float32_stays_float32() -> None:
    ours = BlockLeastSquares(2.0, **FAR).fit(X.astype(np.float32), Y)
    assert ours.coef_.dtype == ours.predict(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(ours.coef_.T, direct(X, Y, 2.0)[:-1], atol=1e-4)


def test_data_far_from_zero_lose_no_digits() -> None:
    far = (X + 1e4).astype(np.float32)
    ours = BlockLeastSquares(2.0, **FAR).fit(far, Y)
    expected = direct(far.astype(np.float64) - 1e4, Y, 2.0)[:-1]
    np.testing.assert_allclose(ours.coef_.T, expected, atol=1e-4)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_classifier_is_scikit_learns_ridge_classifier(classes: int) -> None:
    y = LABELS if classes == 3 else LABELS == "elm"
    ours = BlockLeastSquaresClassifier(2.0, **FAR).fit(X, y)
    theirs = RidgeClassifier(2.0).fit(X, y)
    scores = theirs.decision_function(X)
    np.testing.assert_allclose(ours.decision_function(X), scores, atol=1e-7)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.slow
def test_generated_features_are_those_of_the_whole() -> None:
    ours = BlockLeastSquaresClassifier(1.0, features=COSINES, n_iter=300, block_size=13)
    ours.fit(X, LABELS)
    Z = COSINES.fit_transform(X)
    theirs = RidgeClassifier(1.0).fit(Z, LABELS)
    scores = theirs.decision_function(Z)
    np.testing.assert_allclose(ours.decision_function(X), scores, atol=1e-5)
    assert not hasattr(COSINES.__class__(), "random_weights_")


def test_a_fit_is_the_same_to_the_last_bit() -> None:
    models = [BlockLeastSquares(features=COSINES, block_size=16).fit(X, Y) for _ in "ab"]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    again = pickle.loads(pickle.dumps(models[0]))
    np.testing.assert_array_equal(again.predict(X), models[1].predict(X))


def test_dask_in_dask_out() -> None:
    da = pytest.importorskip("dask.array")
    lazy = da.from_array(X, chunks=(70, 5))
    ours = BlockLeastSquares(2.0, features=COSINES).fit(lazy, da.from_array(Y, chunks=70))
    here = BlockLeastSquares(2.0, features=COSINES).fit(X, Y)
    out = ours.predict(lazy)
    assert isinstance(out, da.Array)
    np.testing.assert_allclose(out.compute(), here.predict(X), atol=1e-8)


def test_the_plan_comes_before_the_run_and_is_measured_after() -> None:
    model = BlockLeastSquares(features=COSINES, block_size=16, n_iter=2)
    before = model.explain(X, Y)
    assert before.predicted is not None
    assert before.predicted > 0
    assert before.measured is None
    assert "3 blocks of 16 of 40 features" in before.explain()
    assert not hasattr(model, "coef_")
    after = model.fit(X, Y).plan_
    assert after.choices[0].chosen == before.choices[0].chosen
    assert (after.measured or 0.0) >= (after.choices[0].measured or 0.0) > 0


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BlockLeastSquares(-1.0), "`alpha` must be a finite number, at least 0"),
        (BlockLeastSquares([1.0, 2.0, 3.0]), "`alpha` must be a number or have one entry"),
        (BlockLeastSquares(block_size=0), "`block_size` must be an integer of at least 1"),
        (BlockLeastSquares(n_iter=0), "`n_iter` must be an integer of at least 1"),
        (BlockLeastSquares(features="cosine"), "`features` must be None"),
        (BlockLeastSquares(features=mlopt.RandomFeatures), "`features` must be None"),
        (BlockLeastSquares(memory_budget="much"), "`memory_budget` must be"),
    ],
)
def test_wrong_parameters_say_what_to_do(model: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.fit(X, Y)


def test_one_class_is_refused() -> None:
    with pytest.raises(InputError, match="at least two classes"):
        BlockLeastSquaresClassifier().fit(X, np.zeros(N))


def test_in_a_pipeline_rows_are_not_gathered() -> None:
    da = pytest.importorskip("dask.array")
    model = BlockLeastSquaresClassifier(2.0, features=COSINES, n_iter=1)
    ours = mlopt.make_pipeline(StandardScaler(), model)
    ours.fit(da.from_array(X, chunks=(70, D)), LABELS)
    theirs = make_pipeline(StandardScaler(), COSINES, RidgeClassifier(2.0)).fit(X, LABELS)
    np.testing.assert_array_equal(np.asarray(ours.predict(X)), theirs.predict(X))
    assert [way.name for way in ways_of(model)] == ["block by block"]
