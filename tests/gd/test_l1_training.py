"""Paths of L1 penalties: every model is the one that is fitted alone."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import linear_model

import mlopt
from mlopt.cluster import Threads
from mlopt.gd import l1_training
from mlopt.gd.columns import Model
from mlopt.gd.l1_training import L1Training
from mlopt.gd.plans import by_columns
from mlopt.gd.plans.condensed import condensed
from mlopt.gd.plans.stop import GradientNorm
from mlopt.gd.ridge_path import sets_of
from mlopt.rows import Rows

Array = NDArray[Any]
TOL: dict[str, Any] = {"tol": 1e-7, "max_iter": 20_000}
ALPHAS = (0.01, 1.0, 0.1, 100.0)


def problem(n: int = 300, d: int = 12) -> tuple[Array, Array, Array]:
    """Correlated columns far from zero, one constant and one twice; two row sets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 20.0
    X[:, 3], X[:, 4] = 7.0, X[:, 5]
    y = X @ np.where(rng.random(d) < 0.5, rng.normal(size=d), 0.0) + rng.normal(size=n)
    weights = np.stack([rng.random(n) < 0.7, 3.0 * rng.random(n)], axis=1)
    return X, y, weights.astype(float)


def training(X: Any, y: Array, weights: Array, models: list[Model]) -> L1Training:
    rows = Rows.of(X).attach(targets=y[:, None], weights=weights)
    stop = GradientNorm(TOL["tol"])
    return L1Training(rows, models, stop=stop, max_iter=TOL["max_iter"])


def squares(ratio: float = 1.0, **more: Any) -> list[Model]:
    return [
        Model("squared", a * (1 - ratio), rowset=rowset, l1=a * ratio, **more)
        for a in ALPHAS
        for rowset in (0, 1)
    ]


@pytest.mark.parametrize("kind", ["many rows", "few rows", "sparse", "float32"])
@pytest.mark.parametrize(
    "more", [{}, {"fit_intercept": False}, {"positive": True}, {"ratio": 0.5}], ids=str
)
def test_a_path_of_lasso_is_that_of_separate_fits(kind: str, more: dict[str, Any]) -> None:
    X, y, weights = problem(20 if kind == "few rows" else 300)
    X = sp.csr_array(np.where(X > 25, X, 0.0)) if kind == "sparse" else X
    X = X.astype(np.float32) if kind == "float32" else X
    path = training(X, y, weights, squares(**more))
    path.advance(1)
    assert path.done
    assert path.converged.all()
    ratio, given = more.get("ratio", 1.0), {k: v for k, v in more.items() if k != "ratio"}
    for number, model in enumerate(path.models):
        alone = mlopt.ElasticNet(model.l1 + model.l2, l1_ratio=ratio, **TOL, **given)
        alone.fit(X, y, weights[:, model.rowset])
        coef, offset = path.coefficients(number)
        margins = X @ coef[0] + offset[0]
        np.testing.assert_allclose(margins, alone.predict(X), atol=2e-4 * np.ptp(y))
        assert not model.positive or (coef >= 0).all()


def test_models_that_stay_positive_share_a_path_with_others() -> None:
    X, y, weights = problem()
    models = [
        Model("squared", 0.0, l1=alpha, positive=positive)
        for alpha in ALPHAS
        for positive in (False, True)
    ]
    path = training(X, y, weights, models)
    path.advance(1)
    assert path.converged.all()
    for number, model in enumerate(models):
        alone = mlopt.Lasso(model.l1, positive=model.positive, **TOL)
        alone.fit(X, y, weights[:, 0])
        coef, offset = path.coefficients(number)
        margins = X @ coef[0] + offset[0]
        np.testing.assert_allclose(margins, alone.predict(X), atol=2e-4 * np.ptp(y))
        assert not model.positive or (coef >= 0).all()


def test_few_rows_keep_digits_of_a_target_far_away_and_of_rows_after_others() -> None:
    X, y, weights = problem()
    weights[:50], X[:50] = 0.0, X[:50] + 1e9
    path = training(X, y + 1e8, weights, squares())
    path.advance(1)
    assert path.converged.all()
    for number, model in enumerate(path.models):
        alone = mlopt.Lasso(model.l1, **TOL).fit(X[50:], y[50:], weights[50:, model.rowset])
        coef, _ = path.coefficients(number)
        margins, expected = X[50:] @ coef[0], X[50:] @ alone.coef_
        margins, expected = margins - margins.mean(), expected - expected.mean()
        np.testing.assert_allclose(margins, expected, atol=2e-4 * np.ptp(y))


def test_a_path_of_classes_is_that_of_separate_fits() -> None:
    X, y, weights = problem()
    X, y = X - 20.0, np.where(y > np.median(y), 1.0, -1.0)
    models = [Model("logistic", 0.0, rowset, l1=a) for a in ALPHAS for rowset in (0, 1)]
    path = training(X, y, weights, models)
    path.advance(1)
    for number, model in enumerate(models):
        C = 1.0 / (model.l1 * weights[:, model.rowset].sum())
        alone = mlopt.LogisticRegression(C=C, l1_ratio=1.0, **TOL)
        alone.fit(X, y, weights[:, model.rowset])
        coef, offset = path.coefficients(number)
        found = X @ coef[0] + offset[0]
        np.testing.assert_allclose(found, alone.decision_function(X), atol=1e-2)


def test_the_objective_has_the_penalty_and_no_model_is_above_its_minimum() -> None:
    X, y, weights = problem()
    path = training(X, y, weights, squares())
    path.advance(1)
    for number, model in enumerate(path.models):
        c = weights[:, model.rowset] / weights[:, model.rowset].sum()
        alone = linear_model.Lasso(model.l1, tol=1e-10, max_iter=100_000)
        alone.fit(X, y, weights[:, model.rowset])
        least = c @ (y - alone.predict(X)) ** 2 / 2 + model.l1 * np.abs(alone.coef_).sum()
        value = path.objective()[number]
        assert value == pytest.approx(least, rel=1e-5)


def test_a_restored_path_is_solved_and_keeps_some_of_its_models() -> None:
    X, y, weights = problem()
    models = squares()
    whole, again = (training(X, y, weights, models) for _ in range(2))
    whole.advance(1)
    again.restore(whole.state())
    assert again.done
    again.keep(np.arange(len(models)) % 2 == 0)
    for mine, theirs in enumerate(range(0, len(models), 2)):
        ours, expected = again.coefficients(mine), whole.coefficients(theirs)
        margins = X @ ours[0][0] + ours[1][0], X @ expected[0][0] + expected[1][0]
        np.testing.assert_allclose(*margins, atol=1e-3 * np.ptp(y))


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_few_rows_have_the_objective_of_the_many(intercept: bool, own: bool) -> None:
    X, y, weights = problem()
    weights = np.tile(weights[:, :1], 3) * (np.arange(len(y))[:, None] % 3 != np.arange(3))
    weights = weights * np.array(2.0 if own else [1.0, 2.0, 3.0])
    rng, c = np.random.default_rng(1), weights[:, 1] / weights[:, 1].sum()
    rows = Rows.of(X, block_rows=len(X)).attach(targets=y[:, None], weights=weights)
    found = condensed(sets_of(rows, 0, intercept).moments[1], float(weights[:, 1].sum()))
    for _ in range(3):
        w = rng.normal(size=X.shape[1])
        b = c @ (y - X @ w) if intercept else 0.0
        many = c @ (y - X @ w - b) ** 2
        assert found.c @ (found.y - w @ found.X) ** 2 == pytest.approx(many, rel=1e-9)


def test_targets_share_the_columns_that_they_have_in_common(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = []
    transposed = by_columns.transposed

    def counted(X: Any, constant: float = 0.0) -> Any:
        made.append(X.shape)
        return transposed(X, constant)

    monkeypatch.setattr(by_columns, "transposed", counted)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 12)) + 50.0 * (np.arange(12) == 3)  # one is far from zero
    Y = X[:, :5] + rng.normal(size=(400, 5))
    ours = mlopt.Lasso(0.05, tol=1e-8).fit(X, Y)
    assert len(made) == 1
    mlopt.LinearSVC(penalty="l1", dual=False, C=0.1).fit(X, Y[:, :3].argmax(axis=1))
    assert len(made) == 2
    theirs = linear_model.Lasso(0.05, tol=1e-10).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)


def test_targets_are_fitted_alike_on_any_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 1)) + 0.3 * rng.normal(size=(4000, 30))
    Y = X @ rng.normal(size=(30, 8))

    def fit(threads: int) -> Any:
        rows = Rows.of(X, executor=Threads(threads), block_rows=4000)
        rows = rows.attach(targets=Y, weights=np.ones((4000, 1)))
        models = [Model("squared", 0.0, target=target, l1=1e-3) for target in range(8)]
        training = L1Training(rows, models, stop=GradientNorm(1e-4), max_iter=1000)
        training.advance(1)
        return np.array([training.coefficients(target)[0][0] for target in range(8)])

    np.testing.assert_array_equal(fit(1), fit(4))


def test_nothing_new_is_begun_once_a_path_has_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, of_set = [], l1_training._of_set

    def failing(block: Any, path: Any, *known: Any) -> Any:
        begun.append(path.numbers)
        if path.numbers == (0,):
            raise RuntimeError("as a path may")
        time.sleep(0.02)
        return of_set(block, path, *known)

    monkeypatch.setattr(l1_training, "_of_set", failing)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 40))
    with pytest.raises(RuntimeError, match="as a path may"):
        mlopt.Lasso(0.01).fit(X, X @ rng.normal(size=(40, 64)))
    assert len(begun) < 48
