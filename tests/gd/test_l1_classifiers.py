"""`LinearSVC` with an L1 penalty: LIBLINEAR's problem, its intercept penalised too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning

import mlopt
from mlopt.gd.working_set import WAY

Array = NDArray[Any]
L1: dict[str, Any] = {"penalty": "l1", "dual": False}


def problem(classes: int = 2, n: int = 150, d: int = 12) -> tuple[Array, Array, Array]:
    """Rows far from zero, so that the intercept matters; labels; weights."""
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(n, d)) + 0.5
    planes = rng.normal(size=(d, classes)) * (rng.random((d, 1)) < 0.5)
    y = np.argmax(X @ planes + rng.normal(size=(n, classes)), axis=1)
    weights = rng.uniform(0.2, 2.0, n)
    weights[:3] = 0.0
    return X, y, weights


def objectives(model: Any, X: Array, y: Array, weights: Array, scaling: float) -> Array:
    """LIBLINEAR's objective of each plane; the intercept counts as a weight."""
    margins = np.asarray(model.decision_function(X)).reshape(len(X), -1)
    planes = margins.shape[1]
    own = y[:, None] == (np.arange(planes) if planes > 1 else 1)
    hinge = np.maximum(0.0, 1.0 - np.where(own, 1.0, -1.0) * margins) ** 2
    norms = np.abs(model.coef_).sum(axis=1) + np.abs(model.intercept_) / scaling
    return np.asarray(norms + model.C * (weights @ hinge))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scaling", [1.0, 5.0])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("C", [0.02, 0.5])
def test_each_plane_has_the_minimum_of_liblinear(
    C: float, classes: int, scaling: float, sparse: bool
) -> None:
    X, y, weights = problem(classes)
    X = np.where(np.abs(X) > 1.0, X, 0.0) if sparse else X
    same = {**L1, "C": C, "intercept_scaling": scaling}
    rows = sp.csr_array(X) if sparse else X
    ours = mlopt.LinearSVC(tol=1e-8, max_iter=50_000, **same).fit(rows, y, weights)
    theirs = svm.LinearSVC(tol=1e-9, max_iter=500_000, random_state=0, **same)
    theirs.fit(X, y, weights)
    found, wanted = (objectives(m, X, y, weights, scaling) for m in (ours, theirs))
    assert (found <= wanted * (1 + 1e-8)).all()
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-3)
    assert ours.plan_.choices[0].chosen == WAY


@pytest.mark.parametrize("class_weight", ["balanced", {0: 3.0, 1: 0.5}])
@pytest.mark.parametrize("classes", [2, 3])
def test_classes_weigh_as_in_liblinear(classes: int, class_weight: Any) -> None:
    X, y, weights = problem(classes)
    same = {**L1, "C": 0.1, "class_weight": class_weight}
    ours = mlopt.LinearSVC(tol=1e-9, max_iter=50_000, **same).fit(X, y, weights)
    theirs = svm.LinearSVC(tol=1e-9, max_iter=500_000, random_state=0, **same)
    theirs.fit(X, y, weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)


def test_without_an_intercept_there_is_no_column_for_it() -> None:
    X, y, _ = problem()
    same = {**L1, "C": 0.1, "fit_intercept": False}
    ours = mlopt.LinearSVC(tol=1e-9, **same).fit(X, y)
    theirs = svm.LinearSVC(tol=1e-9, max_iter=500_000, random_state=0, **same).fit(X, y)
    assert ours.coef_.shape == (1, X.shape[1])
    assert not np.any(ours.intercept_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)


def test_coefficients_of_float32_rows_are_float64_as_there() -> None:
    X, y, _ = problem(3)
    single = mlopt.LinearSVC(C=0.1, **L1).fit(X.astype(np.float32), y)
    there = svm.LinearSVC(C=0.1, **L1).fit(X.astype(np.float32), y)
    assert single.coef_.dtype == there.coef_.dtype
    assert single.intercept_.dtype == there.intercept_.dtype
    double = mlopt.LinearSVC(C=0.1, **L1).fit(X, y)
    np.testing.assert_allclose(single.coef_, double.coef_, atol=1e-2)


def test_a_large_penalty_leaves_nothing_and_few_sweeps_warn() -> None:
    X, y, _ = problem()
    assert not mlopt.LinearSVC(C=1e-6, **L1).fit(X, y).coef_.any()
    with pytest.warns(ConvergenceWarning, match="increase `max_iter`"):
        mlopt.LinearSVC(C=10.0, max_iter=1, tol=1e-9, **L1).fit(X, y)


def test_dask_rows_and_the_plan_before() -> None:
    da = pytest.importorskip("dask.array")
    X, y, _ = problem(3)
    model = mlopt.LinearSVC(C=0.1, **L1)
    assert model.explain(X, y).choices[0].chosen == WAY
    here = model.fit(X, y).coef_
    there = model.fit(da.from_array(X, chunks=(40, 12)), y).coef_
    np.testing.assert_allclose(here, there, atol=1e-9)


def test_a_run_that_rounding_keeps_from_its_gap_stops() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5)) + 1.7e9
    y = X[:, 0] + rng.normal(size=300) > 1.7e9
    with pytest.warns(ConvergenceWarning):
        model = mlopt.LinearSVC(**L1).fit(X, y)
    assert model.n_iter_ < 30
