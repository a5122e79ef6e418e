"""Least squares of many penalties and row sets are solved, whatever the columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from mlopt.gd import ridge_path
from mlopt.gd.columns import Model
from mlopt.gd.direct_training import DirectLeastSquares, _as_outputs
from mlopt.gd.normal_equations import moments
from mlopt.rows import Block, Rows

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
    seen = []
    for name in ("sparse_gram", "lower_gram"):
        multiply = getattr(ridge_path, name)

        def counted(block: Block, *args: Any, multiply: Any = multiply) -> Any:
            seen.append(block.rows)
            return multiply(block, *args)

        monkeypatch.setattr(ridge_path, name, counted)
    rows = Rows.of(sp.csr_array(X) if sparse else X)
    rows = rows.attach(targets=y[:, None], weights=weights)
    found = ridge_path.moments_of_sets(rows, 0, True)
    assert sum(seen) == 300
    for rowset, one in enumerate(found):
        alone = rows.compute_beside(_as_outputs, rowset, 0, 1)
        expected = moments(alone, 1, True)
        scale = np.sqrt(expected.gram.diagonal())
        apart = (one.gram - expected.gram) / np.outer(scale, scale)
        np.testing.assert_allclose(apart, 0.0, atol=1e-11)
        np.testing.assert_allclose(one.mean, expected.mean, rtol=1e-11)


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
    calls: list[int] = []
    eigh = scipy.linalg.eigh

    def counted(A: Any, **settings: Any) -> Any:
        calls.append(len(A))
        return eigh(A, **settings)

    monkeypatch.setattr(scipy.linalg, "eigh", counted)
    monkeypatch.setattr(ridge_path, "solve", lambda *a: pytest.fail("a factor was made"))
    training = DirectLeastSquares(rows, many, max_passes=5)
    training.advance(1)
    assert calls == [6, 6, 6]
    for number, model in enumerate(many):
        alpha = model.l2 * weights[:, model.rowset].sum()
        peer = Ridge(alpha).fit(X, y, weights[:, model.rowset])
        coef, intercept = training.coefficients(number)
        np.testing.assert_allclose(coef[0], peer.coef_, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(intercept[0], peer.intercept_, rtol=1e-9, atol=1e-12)
