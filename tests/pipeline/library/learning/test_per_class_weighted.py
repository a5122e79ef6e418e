"""Weights of each class: the solution of the same dense problem, solved directly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import mlopt
from mlopt.cluster import Threads
from mlopt.errors import InputError
from mlopt.pipeline.library.learning import PerClassWeightedLeastSquares
from mlopt.rows import Rows

Array = NDArray[Any]
N, D, K = 240, 11, 3
RNG = np.random.default_rng(0)
Y = RNG.choice(K, N, p=[0.7, 0.25, 0.05])
X = RNG.normal(size=(N, D)) + 0.7 * RNG.normal(size=(K, D))[Y] + 2.0
ALPHA = 0.01
FAR: dict[str, Any] = {"block_size": 4, "n_iter": 120}


def direct(Z: Array, w: float, intercept: bool = True, y: Array = Y) -> Array:
    """Coefficients and intercept of every class, (K, D + 1), by weighted ridge."""
    rows = []
    for c in np.unique(y):
        s = (1.0 - w) / len(Z) + w * (y == c) / (y == c).sum()
        A = np.column_stack((Z, np.full(len(Z), float(intercept))))
        penalty = np.diag([*np.full(Z.shape[1], ALPHA), 0.0 if intercept else 1.0])
        right = A.T @ (s * np.where(y == c, 1.0, -1.0))
        rows.append(np.linalg.solve(A.T @ (s[:, None] * A) + penalty, right))
    return np.array(rows)


@pytest.mark.slow
@pytest.mark.parametrize("w", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("intercept", [True, False])
def test_it_solves_the_weighted_problem_of_each_class(w: float, intercept: bool) -> None:
    # Columns far from zero are alike without an intercept: thousands of sweeps.
    Z = X if intercept else X - 2.0
    model = PerClassWeightedLeastSquares(
        ALPHA, mixture_weight=w, fit_intercept=intercept, **FAR
    ).fit(Z, Y)
    found = direct(Z, w, intercept)
    np.testing.assert_allclose(model.coef_, found[:, :-1], atol=1e-6)
    np.testing.assert_allclose(model.intercept_, found[:, -1], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_rows_in_several_blocks_agree(layout: Any) -> None:
    where = Threads(2)
    rows = Rows.of(layout(X), executor=where, block_rows=50)
    model = PerClassWeightedLeastSquares(ALPHA, **FAR).fit(rows, Y)
    where.close()
    np.testing.assert_allclose(model.coef_, direct(X, 0.5)[:, :-1], atol=1e-6)


@pytest.mark.slow
def test_generated_features() -> None:
    features = mlopt.RandomFeatures(20, gamma=0.02, random_state=0)
    model = PerClassWeightedLeastSquares(ALPHA, features=features, block_size=6, n_iter=300)
    Z = features.fit_transform(X)
    found = direct(Z, 0.5)
    scores = Z @ found[:, :-1].T + found[:, -1]
    np.testing.assert_allclose(model.fit(X, Y).decision_function(X), scores, atol=1e-4)


def test_rare_classes_are_found_more_often() -> None:
    recall = [
        np.mean(
            PerClassWeightedLeastSquares(ALPHA, mixture_weight=w)
            .fit(X, Y)
            .predict(X)[Y == 2]
            == 2
        )
        for w in (0.0, 0.5)
    ]
    assert recall[1] > recall[0]


def test_two_classes_have_one_decision() -> None:
    y = np.where(Y == 0, "many", "few")
    model = PerClassWeightedLeastSquares(ALPHA, **FAR).fit(X, y)
    found = direct(X, 0.5, y=y)
    scores = X @ found[:, :-1].T + found[:, -1]
    np.testing.assert_allclose(
        model.decision_function(X), scores[:, 1] - scores[:, 0], atol=1e-5
    )
    np.testing.assert_array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])


@pytest.mark.parametrize("w", [-0.1, 1.1, "half"])
def test_a_weight_is_a_share(w: Any) -> None:
    with pytest.raises(InputError, match="`mixture_weight` must"):
        PerClassWeightedLeastSquares(mixture_weight=w).fit(X, Y)
