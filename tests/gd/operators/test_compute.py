"""Gradients: Table 3 of ML4all, and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.gd.operators.cases import problem

from mlopt.errors import InputError
from mlopt.gd.operators import TABLE_3, Batch, Context, Gradient, UserGradient
from mlopt.gd.operators.interfaces import Floats


def at(w: Floats) -> Context:
    return Context(weights=w)


def row_gradients(X: Floats, y: Floats, w: Floats) -> dict[str, Floats]:
    """Table 3, written down row by row."""
    linear, logistic, svm = (np.zeros_like(w) for _ in range(3))
    for x, label in zip(X, y, strict=True):
        z = float(w @ x)
        linear += 2 * (z - label) * x
        logistic += (-1 / (1 + np.exp(label * z))) * label * x
        svm += -label * x if label * z < 1 else 0 * x
    return {"linear": linear, "logistic": logistic, "svm": svm}


@pytest.mark.parametrize("name", sorted(TABLE_3))
def test_gradients_are_those_of_table_3(name: str) -> None:
    X, y = problem(60, 4)
    w = np.array([0.3, -0.7, 0.1, 1.2])
    found = TABLE_3[name](Batch(X, y), at(w)).gradient
    np.testing.assert_allclose(found, row_gradients(X, y, w)[name], rtol=1e-12)


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "squared_hinge", "huber"])
def test_gradients_agree_with_finite_differences(loss: str) -> None:
    X, y = problem(40, 3)
    compute = Gradient(loss, l2=0.3, fit_intercept=True, delta=0.7, scale=1.5)
    w = np.array([0.3, -0.7, 0.1, 0.2])
    batch = Batch(X, y)
    total = compute(batch, at(w))
    assert total.objective == pytest.approx(compute.objective(batch, w))
    for j, step in enumerate(1e-6 * np.eye(4)):
        up, down = compute.objective(batch, w + step), compute.objective(batch, w - step)
        assert total.gradient[j] == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge"])
def test_labels_that_are_no_signs_are_refused(loss: str) -> None:
    X, y = problem(40, 3)
    for labels in (np.maximum(y, 0), y + 1, np.where(y > 0, y, np.nan)):
        with pytest.raises(InputError, match=f"Labels of the {loss} loss must be -1 and 1"):
            Gradient(loss)(Batch(X, labels), at(np.zeros(3)))


def test_sparse_and_dense_rows_agree() -> None:
    X, y = problem(40, 5)
    X[X < 0] = 0
    compute, w = Gradient("logistic", l2=0.1, fit_intercept=True), np.linspace(-1, 1, 6)
    dense = compute(Batch(X, y), at(w))
    sparse = compute(Batch(sp.csr_array(X), y), at(w))
    np.testing.assert_allclose(dense.gradient, sparse.gradient, rtol=1e-12)


def test_sums_of_parts_are_the_sum_of_the_whole() -> None:
    X, y = problem(40, 3)
    compute, w = Gradient("squared", l2=0.1), np.ones(3)
    parts = compute(Batch(X[:9], y[:9]), at(w)) + compute(Batch(X[9:], y[9:]), at(w))
    whole = compute(Batch(X, y), at(w))
    np.testing.assert_allclose(parts.gradient, whole.gradient)
    assert parts.objective == pytest.approx(whole.objective)


@pytest.mark.parametrize("batched", [True, False])
def test_a_users_gradient_is_summed_over_the_rows(batched: bool) -> None:
    X, y = problem(30, 3)
    w = np.array([0.5, -0.2, 0.1])
    if batched:
        mine = UserGradient(lambda x, t, v: 2 * (x @ v - t) @ x, l2=0.1, batched=True)
    else:
        mine = UserGradient(lambda x, t, v: 2 * (v @ x - t) * x, l2=0.1)
    found = mine(Batch(X, y), at(w)).gradient
    expected = TABLE_3["linear"](Batch(X, y), at(w)).gradient + 30 * 0.1 * w
    np.testing.assert_allclose(found, expected)


def test_bad_losses_and_shapes_are_named() -> None:
    with pytest.raises(InputError, match=r"`loss` must be one of.*multinomial"):
        Gradient("multinomial")
    with pytest.raises(InputError, match="l2"):
        Gradient(l2=-1)
    with pytest.raises(InputError, match="`compute` has weights for 2 columns, but rows"):
        Gradient()(Batch(np.ones((4, 3)), np.ones(4)), at(np.zeros(2)))
    wrong = UserGradient(lambda x, y, w: x[:2])
    with pytest.raises(InputError, match=r"`compute` must return a gradient of shape \(3,"):
        wrong(Batch(np.ones((4, 3)), np.ones(4)), at(np.zeros(3)))
