"""L1 penalties and elastic nets for many classes: minima, by a bound that holds."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn import linear_model
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._testing import ignore_warnings

import mlopt
from mlopt.gd.penalty import Penalty
from mlopt.gd.plans import Task, plan
from mlopt.gd.plans.by_columns import Columns
from mlopt.gd.softmax_working_set import SoftmaxWorkingSet
from mlopt.gd.working_set import WAY

Array = NDArray[Any]


def drawn(
    classes: int, n: int = 120, d: int = 12, *, seed: int = 0, sparse: bool = False
) -> tuple[Any, Array, Array]:
    """Rows of unlike columns, labels, weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.3, 2.0, d) + 0.5 * rng.normal(size=d)
    X = np.where(np.abs(X) > 1.0, X, 0.0) if sparse else X
    planes = rng.normal(size=(d, classes)) * (rng.random((d, 1)) < 0.4)
    y = (X @ planes + 2.0 * rng.gumbel(size=(n, classes))).argmax(axis=1)
    y[:classes] = np.arange(classes)
    return sp.csr_array(X) if sparse else X, y, rng.uniform(0.1, 1.0, n)


def loss(X: Any, y: Array, c: Array, coef: Array, intercept: Array) -> float:
    z = X @ coef.T + intercept
    return float((logsumexp(z, axis=1) - z[np.arange(len(y)), y]) @ c / c.sum())


def objective(model: Any, X: Any, y: Array, c: Array) -> float:
    """Of the mean loss."""
    share = 1.0 / (model.C * c.sum())
    penalty = Penalty(model.l1_ratio * share, (1.0 - model.l1_ratio) * share)
    coef = model.coef_.astype(np.float64)
    return loss(X, y, c, coef, model.intercept_) + penalty.value(coef.ravel())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("classes", "C", "ratio", "intercept"),
    [(3, 1.0, 1.0, True), (3, 30.0, 0.3, True), (5, 0.3, 1.0, False), (4, 5.0, 0.7, True)],
)
def test_the_minimum_is_not_above_that_of_saga(
    classes: int, C: float, ratio: float, intercept: bool, sparse: bool
) -> None:
    X, y, c = drawn(classes, sparse=sparse)
    same: dict[str, Any] = {"C": C, "l1_ratio": ratio, "fit_intercept": intercept}
    ours = mlopt.LogisticRegression(tol=1e-9, max_iter=10_000, **same).fit(X, y, c)
    with ignore_warnings(category=ConvergenceWarning):
        theirs = linear_model.LogisticRegression(
            solver="saga", tol=1e-10, max_iter=2000, random_state=0, **same
        ).fit(X, y, c)
    least = objective(ours, X, y, c)
    assert ours.plan_.choices[0].chosen == WAY
    assert least <= objective(theirs, X, y, c) * (1 + 1e-12)
    assert objective(theirs, X, y, c) <= least * (1 + 1e-3)
    if not sparse:  # where saga comes near its minimum, but for what classes share
        found, wanted = (m.coef_ - m.coef_.mean(axis=0) for m in (ours, theirs))
        np.testing.assert_allclose(found, wanted, atol=0.01)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=0.01)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 1000),
    classes=st.integers(3, 6),
    l1=st.sampled_from([0.1, 0.01, 0.001]),
    l2=st.sampled_from([0.0, 1e-3, 0.1]),
    shape=st.sampled_from([(80, 8), (30, 60)]),
    sparse=st.booleans(),
)
def test_the_gap_bounds_what_is_left(
    seed: int, classes: int, l1: float, l2: float, shape: tuple[int, int], sparse: bool
) -> None:
    X, y, c = drawn(classes, *shape, seed=seed, sparse=sparse)
    columns = Columns.of(X, y.astype(np.float64), c, intercept=True)
    model, penalty = SoftmaxWorkingSet(columns, classes, intercept=True), Penalty(l1, l2)
    reached, gaps = [], []
    for gap in (1e-1, 1e-3, 1e-5, 1e-10):
        assert model.solve(penalty, gap, 20_000)
        W = model.w.reshape(classes, -1)
        value = loss(X, y, c, W, model.intercept) + penalty.value(model.w)
        assert model.gap <= gap
        reached.append(value)
        gaps.append(model.gap)
    assert (np.array(reached) - reached[-1] <= np.array(gaps) + 1e-14).all()
    # The last one is a minimum: no entry can move, whatever found it.
    z = X @ model.w.reshape(classes, -1).T + model.intercept
    slopes = np.exp(z - logsumexp(z, axis=1)[:, None])
    slopes[np.arange(len(y)), y] -= 1.0
    slopes *= (c / c.sum())[:, None]
    assert np.abs(slopes.sum(axis=0)).max() <= 1e-9
    assert penalty.violations(model.w, (X.T @ slopes).T.ravel()).max() <= 1e-4


def test_a_path_goes_on_from_the_last_penalty() -> None:
    X, y, c = drawn(4, 60, 100)
    columns = Columns.of(X, y.astype(np.float64), c, intercept=True)
    along = SoftmaxWorkingSet(columns, 4, intercept=True)
    for l1 in np.geomspace(0.1, 0.003, 6):
        assert along.solve(Penalty(l1), 1e-10, 10_000)
        alone = SoftmaxWorkingSet(columns, 4, intercept=True)
        assert alone.solve(Penalty(l1), 1e-10, 10_000)
        np.testing.assert_allclose(along.w, alone.w, atol=1e-3)


def test_a_warm_start_moves_little_and_a_bad_one_is_left() -> None:
    X, y, _ = drawn(3)
    model = mlopt.LogisticRegression(l1_ratio=1.0, warm_start=True, tol=1e-6).fit(X, y)
    coef, sweeps = model.coef_, model.n_iter_[0]
    again = model.fit(X, y).n_iter_[0]
    assert again < sweeps / 2
    model.coef_ = 1e3 * np.random.default_rng(0).normal(size=coef.shape)
    np.testing.assert_allclose(model.fit(X, y).coef_, coef, atol=1e-3)


@pytest.mark.parametrize("sparse", [False, True])
def test_float32_comes_to_the_same_minimum(sparse: bool) -> None:
    X, y, c = drawn(3, sparse=sparse)
    model = mlopt.LogisticRegression(l1_ratio=0.8, tol=1e-7)
    double = model.fit(X, y, c).coef_
    single = model.fit(X.astype(np.float32), y, c).coef_
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, double, atol=1e-3)


def test_far_and_constant_columns_and_twins_are_no_trouble() -> None:
    X, y, c = drawn(4)
    X[:, 0], X[:, 1], X[:, 2] = 2.0, X[:, 3], 1000.0 + X[:, 4]
    model = mlopt.LogisticRegression(C=10.0, l1_ratio=1.0, tol=1e-6).fit(X, y, c)
    assert not model.coef_[:, 0].any()
    found = objective(model, X, y, c)
    X[:, [1, 2]] = 0.0  # what they hold is in their twins
    assert found == pytest.approx(objective(model.fit(X, y, c), X, y, c), rel=1e-6)


def test_weights_of_classes_are_weights_of_their_rows() -> None:
    X, y, c = drawn(3)
    model, costs = mlopt.LogisticRegression(l1_ratio=1.0, tol=1e-8), [2.0, 0.5, 1.0]
    by_rows = model.fit(X, y, c * np.array(costs)[y]).coef_
    by_class = model.set_params(class_weight=dict(enumerate(costs))).fit(X, y, c).coef_
    np.testing.assert_allclose(by_rows, by_class, atol=1e-8)


def test_a_class_without_weight_never_has_a_say() -> None:
    X, y, c = drawn(4)
    c[y == 2] = 0.0
    model = mlopt.LogisticRegression(l1_ratio=1.0, tol=1e-6).fit(X, y, c)
    assert not model.coef_[2].any()
    assert (model.predict_proba(X)[:, 2] < 1e-8).all()


def test_a_limit_of_steps_holds() -> None:
    X, y, _ = drawn(3)
    model = mlopt.LogisticRegression(C=100.0, l1_ratio=1.0, tol=1e-8, max_iter=2)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert model.n_iter_[0] == 2


@pytest.mark.parametrize("positive", [False, True])
def test_tasks_of_many_classes_take_the_penalty(positive: bool) -> None:
    X, y, _ = drawn(4)
    task = Task("multinomial", l1=0.01, positive=positive)
    found = plan(task, X, y, tolerance=1e-8, speculation=False)
    assert found.chosen.method.name == WAY
    result, even = found.run(), np.ones(len(y))
    model = SoftmaxWorkingSet(
        Columns.of(X, y.astype(np.float64), even, intercept=True), 4, intercept=True
    )
    assert model.solve(Penalty(0.01, positive=positive), 1e-8, 10_000)
    np.testing.assert_allclose(result.coef.T, model.w.reshape(4, -1), atol=1e-4)
    assert not positive or (result.coef >= 0).all()


def test_scikit_learn_fits_what_has_another_solver() -> None:
    X, y, _ = drawn(3)
    model = mlopt.LogisticRegression(l1_ratio=1.0, solver="saga")
    assert model.explain(X, y).choices[0].chosen == "scikit-learn"


def test_classes_of_few_wide_rows_are_separated() -> None:
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(60, 6))
    X = factors @ rng.normal(size=(6, 500)) + rng.normal(size=(60, 500)) + 8.0
    y, even = factors[:, :4].argmax(axis=1).astype(np.float64), np.ones(60)
    model = SoftmaxWorkingSet(Columns.of(X, y, even, intercept=True), 4, intercept=True)
    assert model.solve(Penalty(1e-3), 1e-6, 100, relative=True)
    assert model.loss < 0.05


def test_the_default_limit_is_enough_for_twin_columns() -> None:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(500, 40))
    X, y = np.hstack((Z, Z)), (Z[:, :3] + 0.3 * rng.normal(size=(500, 3))).argmax(axis=1)
    model = mlopt.LogisticRegression(C=10.0, l1_ratio=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.fit(X, y).n_iter_[0] < 30


def test_a_step_that_promises_to_rise_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, c = drawn(3)
    columns = Columns.of(X, y.astype(np.float64), c / c.sum(), intercept=True)
    model, penalty = SoftmaxWorkingSet(columns, 3, intercept=True), Penalty(1e-3)
    model.solve(penalty, 1e-2, 100, relative=True)
    before = model.loss + penalty.value(model.w)
    up = 10.0 * model._gradient()
    along = np.stack([one @ columns.X for one in up.reshape(3, -1)])
    monkeypatch.setattr(model, "_newton", lambda *_: (up, along, np.zeros((3, 1))))
    model._improve(penalty, model._gradient(), np.arange(len(up)), (0.0, 1))
    assert model.loss + penalty.value(model.w) <= before + 1e-12
