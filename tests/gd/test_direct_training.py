"""Least squares of many penalties and row sets are solved, whatever the columns."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.linear_model import Ridge

import mlopt
from mlopt.gd import direct_training, linear_training, ridge_path, row_kinds
from mlopt.gd.columns import Model
from mlopt.gd.conjugate_gradients import ConjugateGradients
from mlopt.gd.direct_training import (
    DirectLeastSquares,
    _as_outputs,
    cheapest_of,
    direct_ways,
    squared_length,
)
from mlopt.gd.least_squares_fit import exactly
from mlopt.gd.normal_equations import moments
from mlopt.gd.plans.forecast import typical
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.sparse_cg import SPARSE_CG
from mlopt.gd.pricing import Shape, shape_of
from mlopt.gd.sizes import HALF
from mlopt.gd.spectrum import Spectrum
from mlopt.resources import Resources
from mlopt.rows import Rows

ALPHAS = (1e-2, 1.0, 1e3)


def problem(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Correlated columns of different scale, targets, and weights of two row sets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 12)) @ rng.normal(size=(12, 12)) * np.logspace(-2, 2, 12)
    X[:, 3] = X[:, 4] + 1e-3 * rng.normal(size=300)
    y = X @ rng.normal(size=12) + 5.0 + rng.normal(size=300)
    weights = np.stack([rng.random(300) < 0.7, 3.0 * rng.random(300)], axis=1)
    return X, y, weights.astype(np.float64)


def models(weights: np.ndarray, intercept: bool) -> list[Model]:
    sums = weights.sum(axis=0)
    return [
        Model("squared", alpha / sums[rowset], rowset=rowset, fit_intercept=intercept)
        for alpha in ALPHAS
        for rowset in (0, 1)
    ]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
def test_every_model_is_the_one_that_scikit_learn_solves(
    intercept: bool, sparse: bool
) -> None:
    X, y, weights = problem(0)
    data = sp.csr_array(X) if sparse else X
    rows = Rows.of(data).attach(targets=y[:, None], weights=weights)
    training = DirectLeastSquares(rows, models(weights, intercept), max_passes=5)
    training.advance(1)
    assert training.done
    assert training.converged.all()
    for number, model in enumerate(training.models):
        alpha = model.l2 * weights[:, model.rowset].sum()
        peer = Ridge(alpha, fit_intercept=intercept, solver="svd")
        peer.fit(X, y, weights[:, model.rowset])
        coef, offset = training.coefficients(number)
        margins, expected = X @ coef[0] + offset[0], peer.predict(X)
        np.testing.assert_allclose(margins, expected, atol=1e-6 * np.ptp(y))


def test_folds_of_sparse_rows_lose_no_digits_to_a_column_far_from_zero() -> None:
    random = np.random.default_rng(0)
    S = sp.random(3000, 20, density=0.1, format="csr", random_state=0)
    t = random.normal(size=(3000, 1))
    y = 3.0 * t + 0.1 * random.normal(size=(3000, 1))
    weights = np.repeat(1.0 - np.eye(3), 1000, axis=0)
    found = []
    for column in (t + 1e8, t):
        rows = Rows.of(sp.csr_array(sp.hstack([S, column])))
        beside = rows.attach(targets=y, weights=weights, score_weights=1.0 - weights)
        training = DirectLeastSquares(beside, models(weights, True), max_passes=5)
        training.advance(1)
        found.append([training.coefficients(k)[0] for k in range(len(training.models))])
    far, near = found
    np.testing.assert_allclose(far, near, atol=1e-6)


def test_a_restored_training_is_solved_and_keeps_some_of_its_models() -> None:
    X, y, weights = problem(1)
    rows = Rows.of(X).attach(targets=y[:, None], weights=weights)
    all_models = models(weights, True)
    whole = DirectLeastSquares(rows, all_models, max_passes=5)
    whole.advance(1)
    again = DirectLeastSquares(rows, all_models, max_passes=5)
    again.restore(whole.state())
    assert again.done
    again.keep([True, False, True, False, True, True])
    for mine, theirs in zip(range(4), (0, 2, 4, 5), strict=True):
        ours, expected = again.coefficients(mine)[0], whole.coefficients(theirs)[0]
        np.testing.assert_allclose(ours, expected, rtol=1e-9)


def counted(patch: pytest.MonkeyPatch, module: Any, name: str) -> list[tuple[Any, ...]]:
    """What a function of a module is called with, from now on."""
    calls: list[tuple[Any, ...]] = []
    call = getattr(module, name)

    def noted(*args: Any, **settings: Any) -> Any:
        calls.append(args)
        return call(*args, **settings)

    patch.setattr(module, name, noted)
    return calls


def folds(n: int, number: int) -> np.ndarray:
    """Training weights of folds, each row out of one."""
    fold = np.random.default_rng(3).integers(0, number, n)
    return np.asarray(fold[:, None] != np.arange(number), np.float64)


@pytest.mark.parametrize("sparse", [True, False])
def test_rows_that_folds_share_are_multiplied_once(
    sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, _ = problem(2)
    weights = folds(300, 5) * np.random.default_rng(4).random((300, 1))
    names = "sparse_gram", "lower_gram"
    dense, other = [counted(monkeypatch, row_kinds, name) for name in names]
    rows = Rows.of(sp.csr_array(X) if sparse else X)
    rows = rows.attach(targets=y[:, None], weights=weights)
    found = ridge_path.sets_of(rows, 0, True).moments
    assert sum(block.rows for block, *_ in dense + other) == 300
    for rowset, one in enumerate(found):
        alone = rows.compute_beside(_as_outputs, rowset, 0, 1)
        expected = moments(alone, 1, True)
        scale = np.sqrt(expected.gram.diagonal())
        apart = (one.gram - expected.gram) / np.outer(scale, scale)
        np.testing.assert_allclose(apart, 0.0, atol=1e-11)
        np.testing.assert_allclose(one.mean, expected.mean, rtol=1e-11)


def test_sets_are_known_one_after_the_other_where_there_is_no_room_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y, _ = problem(2)
    rows = Rows.of(X).attach(targets=y[:, None], weights=folds(300, 5))
    every = [Model("squared", alpha, rowset=s) for alpha in ALPHAS for s in range(5)]
    whole = DirectLeastSquares(rows, every, 5)
    whole.advance(1)
    alone = counted(monkeypatch, direct_training, "of_one_set")
    together = counted(monkeypatch, direct_training, "sets_of")
    columns = 1 + 12 + 1
    matrix = 8 * columns**2
    for matrices, taken in ((200, 0), (13, 5)):
        settings = {"memory": 2 * matrices * matrix, "threads": 2}
        with dask.config.set({"mlopt.resources": settings}):
            one = DirectLeastSquares(rows, every, 5)
            one.advance(1)
        assert len(alone) == taken
        assert len(together) == 1
        for number in range(len(every)):
            found, expected = one.coefficients(number), whole.coefficients(number)
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-9, atol=1e-10)
    here = [Resources(memory=2 * matrices * matrix) for matrices in (200, 13)]
    shape = shape_of(rows, 1)
    ways = [direct_ways(shape, 5, 3, [1.0], 0.0, HALF, one)["cholesky"] for one in here]
    assert ways[1].seconds(here[1]) > ways[0].seconds(here[0])
    assert ridge_path.sets_at_once(columns, 5, here[1]) == 2


@pytest.mark.parametrize(("intercept", "offset"), [(True, 1e3), (False, 0.0)])
def test_scores_follow_from_gram_matrices_or_from_a_pass_where_digits_are_lost(
    intercept: bool, offset: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(6)
    X, weights = rng.normal(size=(300, 6)) + offset, folds(300, 3)
    exact = X @ np.ones(6)
    y = exact + rng.normal(size=300)
    passes = counted(monkeypatch, linear_training, "scores")
    for target in (y, exact):
        beside = {"weights": weights, "score_weights": 1.0 - weights}
        rows = Rows.of(X).attach(targets=target[:, None], **beside)
        many = [
            Model("squared", a / 300, rowset=s, fit_intercept=intercept)
            for a in (1e-9, 1.0)
            for s in range(3)
        ]
        training = DirectLeastSquares(rows, many, max_passes=5)
        training.advance(1)
        for number, found in enumerate(training.quality()):
            coef, b = training.coefficients(number)
            judge = weights[:, many[number].rowset] == 0
            errors = X[judge] @ coef[0] + b[0] - target[judge]
            np.testing.assert_allclose(found, -np.mean(errors**2), rtol=1e-9, atol=1e-20)
        assert len(passes) == (target is exact), "noisy targets need no pass"


def test_all_rows_are_not_multiplied_again_where_their_parts_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y, _ = problem(7)
    common = np.random.default_rng(8).random((300, 1))
    rows, kept = Rows.of(X), dict[str, Any]()
    some = rows.attach(targets=y[:, None], weights=folds(300, 3) * common)
    parts = [Model("squared", 0.1, rowset=s) for s in range(3)]
    DirectLeastSquares(some, parts, 1, kept=kept).advance(1)
    multiplied = counted(monkeypatch, row_kinds, "lower_gram")
    for weights, again in ((common, 0), (common**2, 300)):
        whole = rows.attach(targets=y[:, None], weights=weights)
        training = DirectLeastSquares(whole, [Model("squared", 0.1)], 1, parts=kept)
        training.advance(1)
        peer = Ridge(0.1 * weights.sum(), solver="svd").fit(X, y, weights[:, 0])
        np.testing.assert_allclose(training.coefficients(0)[0][0], peer.coef_, rtol=1e-6)
        assert sum(block.rows for block, *_ in multiplied) == again


def test_many_penalties_of_a_set_share_one_eigendecomposition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(5)
    X, y, weights = rng.normal(size=(300, 6)), rng.normal(size=300), folds(300, 3)
    rows = Rows.of(X).attach(targets=y[:, None], weights=weights)
    many = [
        Model("squared", alpha / weights[:, s].sum(), rowset=s)
        for alpha in np.logspace(-3, 3, 9)
        for s in range(3)
    ]
    calls = counted(monkeypatch, scipy.linalg, "eigh")
    monkeypatch.setattr(ridge_path, "solve", lambda *a: pytest.fail("a factor was made"))
    training = DirectLeastSquares(rows, many, max_passes=5)
    training.advance(1)
    assert [len(A) for (A,) in calls] == [6, 6, 6]
    for number, model in enumerate(many):
        alpha = model.l2 * weights[:, model.rowset].sum()
        peer = Ridge(alpha).fit(X, y, weights[:, model.rowset])
        coef, intercept = training.coefficients(number)
        np.testing.assert_allclose(coef[0], peer.coef_, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(intercept[0], peer.intercept_, rtol=1e-9, atol=1e-12)


def test_trainings_that_follow_each_other_share_gram_matrices_of_wide_rows() -> None:
    rng = np.random.default_rng(8)
    X, y, weights = rng.normal(size=(130, 60)), rng.normal(size=130), folds(130, 2)
    rows = Rows.of(X).attach(targets=y[:, None], weights=weights)
    kept: dict[str, Any] = {}
    for alpha in (0.1, 10.0):
        sums = weights.sum(axis=0)
        own = [Model("squared", alpha / sums[s], rowset=s) for s in range(2)]
        training = DirectLeastSquares(rows, own, max_passes=5, kept=kept)
        with pytest.MonkeyPatch.context() as patch:
            if kept:
                patch.setattr(
                    direct_training, "sets_of", lambda *a: pytest.fail("multiplied again")
                )
            training.advance(1)
        coef, _ = training.coefficients(1)
        peer = Ridge(alpha).fit(X, y, weights[:, 1])
        np.testing.assert_allclose(coef[0], peer.coef_, rtol=1e-8, atol=1e-11)


def test_a_tolerance_is_what_conjugate_gradients_stop_at() -> None:
    rng = np.random.default_rng(9)
    X = sp.random(500, 4000, 0.01, format="csr", rng=rng)
    y, passes = rng.normal(size=500), []
    exact = Ridge(0.01, solver="cholesky").fit(X.toarray(), y)
    rows = Rows.of(X).attach(targets=y[:, None], weights=np.ones((500, 1)))
    for tol in (1e-3, HALF):
        training = DirectLeastSquares(rows, [Model("squared", 0.01 / 500)], 5, tol=tol)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(direct_training, "cheapest_of", lambda *_: "sparse_cg")
            calls = counted(patch, ConjugateGradients, "_step")
            training.advance(1)
        coef, _ = training.coefficients(0)
        off = np.linalg.norm(coef[0] - exact.coef_) / np.linalg.norm(exact.coef_)
        assert off < tol
        passes.append(len(calls))
    assert 0 < passes[0] < 0.7 * passes[1]


def test_penalties_cost_little_where_they_share_a_gram_matrix() -> None:
    here, seconds = Resources(), {}
    shape = Shape(20_000, 100, 1, 2_000_000, 8, False, 8)
    for models in (8, 64):
        ways = direct_ways(shape, 5, models, [1.0], 0.0, HALF, here)
        assert cheapest_of(ways, here) == "cholesky"
        seconds[models] = ways["cholesky"].seconds(here)
    assert seconds[64] < 2 * seconds[8]


def test_eigenvectors_for_many_penalties_are_cheaper_than_steps_for_each() -> None:
    here, shape = Resources(), Shape(6000, 2000, 1, 12_000_000, 8, False, 2)
    given = [1.0], 0.0, HALF, here
    chosen = [cheapest_of(direct_ways(shape, 1, n, *given), here) for n in (1, 64)]
    assert chosen == ["mixed_cholesky", "cholesky"]


def test_steps_of_sparse_rows_are_foreseen_by_their_penalties() -> None:
    """Within twice what they take, where a penalty tells how far eigenvalues are apart."""
    rng = np.random.default_rng(3)
    X = sp.random(1500, 1500, 0.02, format="csr", rng=rng)
    y, shape = X @ rng.normal(size=1500), shape_of(Rows.of(X), 1)
    seen = Spectrum.even(squared_length(X), *X.shape)
    for alpha in (0.03, 1.0, 30.0):
        took = int(mlopt.Ridge(alpha, solver="sparse_cg").fit(X, y).n_iter_[0])
        stop = exactly(1500, 1500, 1e-6, 1e-4)
        outline = Outline("squared", shape, alpha / 1500, stop=stop, spectrum=seen)
        assert took / 2 < typical(SPARSE_CG, outline, stop).expected < took * 2
