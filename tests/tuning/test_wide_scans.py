"""Scans of few rows of many columns are seen in the rows' own space, and score the same."""

from __future__ import annotations

import tracemalloc
from typing import Any

import dask
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from mlopt import ModelSearchCV
from mlopt.cluster import Threads
from mlopt.gd.columns import Model
from mlopt.gd.newton_training import NewtonTraining
from mlopt.gd.quasi_newton import QuasiNewton
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.tuning.crews import scan, spaces
from mlopt.tuning.crews.linear_task import LinearTask, linear_form
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.crews.scans import DUAL, NEWTON
from mlopt.tuning.crews.scoring import metrics_of
from mlopt.tuning.crews.spaces import AS_THEY_ARE, Space, space_of
from mlopt.tuning.crews.splits import make_splits

Array = NDArray[Any]
SPACES = [
    Space(narrow=True), Space(narrow=True, way=NEWTON), Space(way=NEWTON), Space(way=DUAL),
]  # fmt: skip
GRID = {"C": [0.001, 0.01, 0.1]}
ONES = [LogisticRegression(tol=1e-7, max_iter=1000), LinearSVC(tol=1e-6, max_iter=10**6)]


def wide(classes: int = 2, n: int = 60, d: int = 150) -> tuple[Array, Array]:
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(n, 5)) @ rng.normal(size=(5, d)) + 0.5 * rng.normal(size=(n, d))
    z = X @ rng.normal(size=(d, classes)) / 10
    return X, (z + rng.normal(size=z.shape)).argmax(axis=1)


def chosen(monkeypatch: pytest.MonkeyPatch) -> list[Space]:
    """What scans are trained in from here on."""
    found: list[Space] = []

    def noted(*given: Any) -> Space:
        found.append(space_of(*given))
        return found[-1]

    monkeypatch.setattr(scan, "space_of", noted)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "classes", "space", "one"),
    [
        (layout, classes, space, one)
        for layout, classes in [(np.asarray, 2), (np.asarray, 3), (sparse.csr_matrix, 2)]
        for space in SPACES
        for one in ONES
        if space.way != DUAL or (one is ONES[0] and classes == 2)  # logistic models alone
    ],
)
def test_every_space_gives_the_scores_of_a_grid_search(
    one: Any, space: Space, classes: int, layout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = wide(classes)
    scoring = "neg_log_loss" if isinstance(one, LogisticRegression) else "accuracy"
    monkeypatch.setattr(scan, "space_of", lambda *given: space)
    alone: list[Any] = []
    monkeypatch.setattr(
        "mlopt.tuning.crews.batching.BatchCrew._dissolve",
        lambda *given: alone.append(given),
    )
    ours = ModelSearchCV(one, GRID, cv=3, scoring=scoring).fit(layout(X), y)
    theirs = GridSearchCV(one, GRID, cv=3, scoring=scoring).fit(layout(X), y)
    assert not alone
    order = np.argsort(ours.cv_results_["param_C"].astype(float))
    scores = ours.cv_results_["mean_test_score"][order]
    np.testing.assert_allclose(scores, theirs.cv_results_["mean_test_score"], rtol=1e-4)
    best = ours.best_estimator_.coef_
    np.testing.assert_allclose(best, theirs.best_estimator_.coef_, atol=1e-4)


def test_rows_are_narrowed_where_columns_are_many_and_only_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = chosen(monkeypatch)
    X, y = wide(d=3000)
    ModelSearchCV(LinearSVC(), GRID, cv=3).fit(X, y)
    assert found
    assert all(space.narrow for space in found)
    del found[:]
    ModelSearchCV(LinearSVC(), GRID, cv=3).fit(X[:, :10], y)
    assert found
    assert not any(space.narrow for space in found)


def test_memory_alone_limits_the_rows_that_are_narrowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2200, 6000)).astype(np.float32)
    y = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int)
    found = [linear_form(LinearSVC(C=C)) for C in GRID["C"]]
    tasks = [task for task in found if isinstance(task, LinearTask)]
    assert tasks
    splits = make_splits(3, X, y, n=len(y), classifier=True)
    metrics = metrics_of("accuracy", LinearSVC(), True)
    problem = Problem(X, y, splits, metrics, True, Threads(2))
    rows = Rows.of(X, executor=Threads(2))
    for memory, narrow in ((16 << 30, True), (200 << 20, False)):
        here = Resources(threads=2, memory=memory)
        monkeypatch.setattr(spaces, "resources_of", lambda _, here=here: here)
        assert space_of(tasks, rows, problem).narrow == narrow


def test_scans_hold_weights_of_no_more_models_than_there_is_room_for() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(200) % 5
    X = rng.normal(size=(200, 3000)) + 0.1 * y[:, None]
    grid = {"C": np.logspace(-2, 1, 16).tolist()}

    def searched(X: Any, y: Array, bandit: str | None = None) -> ModelSearchCV:
        search = ModelSearchCV(
            LogisticRegression(tol=1e-7, max_iter=300), grid, sampler="grid", bandit=bandit,
            n_trials=None, cv=3, refit=False,
        )  # fmt: skip
        return search.fit(X, y)

    searched(X[:, :50], y)
    with dask.config.set({"mlopt.resources.memory": "30MB"}):
        tracemalloc.start()
        found = searched(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        pruned = searched(X, y, "action-elimination")
    assert peak < 30e6
    (batch,) = found.plan_.choices[0].children
    assert any("GiB for weights" in one.reason for one in batch.rejected)
    scores = searched(X, y).cv_results_["mean_test_score"]
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], scores, atol=0.02)
    assert pruned.best_score_ >= scores.max() - 0.02


@pytest.mark.parametrize("d", [20, 150, 600])
def test_neither_threads_nor_rates_change_how_a_scan_descends(
    d: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, d)) * np.logspace(0, 1, d)
    y = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int)
    forms = [linear_form(LinearSVC(C=C)) for C in np.logspace(-5, 2, 32)]
    tasks = [task for task in forms if isinstance(task, LinearTask)]
    splits = make_splits(3, X, y, n=len(y), classifier=True)
    metrics = metrics_of("accuracy", LinearSVC(), True)
    problem = Problem(X, y, splits, metrics, True, Threads(2))
    rows, model = Rows.of(X, executor=Threads(2)), Model("squared_hinge", 1.0)
    machines = [
        Resources(), Resources(threads=64), Resources(threads=64, bandwidth_all=1e12),
        Resources(gemm_f64=1e13), Resources(bandwidth=1e12, python=0.01),
    ]  # fmt: skip
    found = set()
    for here in machines:
        monkeypatch.setattr(spaces, "resources_of", lambda _, here=here: here)
        patience = spaces.patience_with(rows)
        space = space_of(tasks, rows, problem)
        found.add((space, patience.of_pass(96), patience.of_newton(model)))
    assert len(found) == 1


def test_sparse_rows_with_little_in_common_are_searched_in_their_duals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, rng = chosen(monkeypatch), np.random.default_rng(0)
    X = sparse.random_array((3000, 30_000), density=0.003, rng=rng, format="csr")
    y = (X @ rng.normal(size=30_000) + rng.normal(size=3000) > 0).astype(int)
    grid = {"C": [0.01, 1.0, 100.0]}
    one = LogisticRegression(tol=1e-7, max_iter=1000)
    ours = ModelSearchCV(one, grid, cv=3, scoring="neg_log_loss").fit(X, y)
    assert found
    assert all(space.way == DUAL for space in found)
    theirs = GridSearchCV(one, grid, cv=3, scoring="neg_log_loss").fit(X, y)
    order = np.argsort(ours.cv_results_["param_C"].astype(float))
    scores = ours.cv_results_["mean_test_score"][order]
    np.testing.assert_allclose(scores, theirs.cv_results_["mean_test_score"], rtol=1e-4)


def test_a_dual_that_a_limit_would_cut_off_is_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, rng = chosen(monkeypatch), np.random.default_rng(0)
    places = rng.integers(0, 2500, 40_000), np.arange(0, 40_001, 10)
    X = sparse.csr_array((rng.lognormal(size=40_000), *places), shape=(4000, 2500))
    X.sum_duplicates()
    y = (X @ rng.normal(size=2500) > 0).astype(int)
    one = LogisticRegression(max_iter=20)
    ModelSearchCV(one, {"C": [1e4, 1e6]}, cv=3).fit(X, y)
    assert found
    assert all(space.way != DUAL for space in found)


def test_what_is_not_descended_to_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    found = chosen(monkeypatch)
    X, y = wide(d=3000)
    ModelSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=3).fit(X, y.astype(float))
    assert found == [AS_THEY_ARE] * len(found)


def beside() -> tuple[Rows, list[Model]]:
    X, y = wide(3, d=20)
    rng = np.random.default_rng(0)
    targets = np.column_stack([y, np.where(y == 1, 1, -1)]).astype(float)
    rows = Rows.of(X).attach(targets=targets, weights=rng.random((len(y), 2)))
    models = [
        Model("multinomial", l2, rowset=s, outputs=3) for l2 in (0.1, 1.0) for s in (0, 1)
    ]
    models += [
        Model("squared_hinge", l2, rowset=1, outputs=3, intercept_l2=l2)
        for l2 in (2.0, 0.3)
    ]
    models += [Model("logistic", 0.1, target=1, fit_intercept=fit) for fit in (True, False)]
    return rows, models


def test_newton_finds_the_minima_of_a_mixed_batch() -> None:
    rows, models = beside()
    one = NewtonTraining(rows, models, gtol=1e-9, max_iter=100)
    assert not one.done
    one.advance(1)
    assert one.done
    assert one.converged.all()
    other = QuasiNewton(rows, models, gtol=1e-9, max_passes=2000)
    other.advance(2000)
    np.testing.assert_allclose(one.objective(), other.objective(), rtol=1e-10)
    for number in range(len(models)):
        for ours, theirs in zip(
            one.coefficients(number), other.coefficients(number), strict=True
        ):
            shift = 0.0
            if models[number].loss == "multinomial" and ours.ndim == 1:
                shift = float(np.mean(ours - theirs))  # what all classes share is free
            np.testing.assert_allclose(ours - shift, theirs, atol=1e-6)


def test_newton_says_what_its_limit_left_undone_and_goes_on_from_a_state() -> None:
    rows, models = beside()
    one = NewtonTraining(rows, models, gtol=1e-12, max_iter=2)
    state = one.state()
    one.advance(1)
    assert one.done
    assert not one.converged.all()
    other = NewtonTraining(rows, models, gtol=1e-12, max_iter=2)
    other.restore(state)
    other.keep([True] + [False] * (len(models) - 1))
    other.advance(1)
    np.testing.assert_array_equal(one.coefficients(0)[0].shape, (3, 20))
    assert other.objective()[0] >= 0
    again = NewtonTraining(rows, models, gtol=1e-12, max_iter=2)
    again.restore(one.state())
    assert again.finished.all()
    np.testing.assert_array_equal(again.objective(), one.objective())
