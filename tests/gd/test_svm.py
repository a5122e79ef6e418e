"""`LinearSVC` solves LIBLINEAR's problems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn import svm
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from mlopt.cluster import Threads
from mlopt.errors import InputError
from mlopt.gd.columns import Model
from mlopt.gd.logistic import LogisticRegression
from mlopt.gd.plans.dual_coordinate import DualCoordinateDescent
from mlopt.gd.plans.stop import GradientNorm
from mlopt.gd.plans.task import Problem, Task
from mlopt.gd.svm import LinearSVC
from mlopt.rows import Rows
from mlopt.training import Training

Array = NDArray[Any]
METHODS = [("squared_hinge", False), ("squared_hinge", True), ("hinge", True)]


def problem(classes: int = 2, n: int = 200, d: int = 6) -> tuple[Array, Array, Array]:
    settings = {"n_informative": 4, "n_redundant": 0, "flip_y": 0.2, "random_state": 0}
    X, y = make_classification(n, d, n_classes=classes, **settings)
    keep = (y > 0) | (np.arange(n) % 2 == 0)  # classes of different size
    X, y, n = X[keep], y[keep], int(keep.sum())
    rng = np.random.default_rng(0)
    X = (X + rng.normal(size=d)) * (rng.random((n, d)) < 0.7)
    return X, y, rng.random(n) + 0.1


def fitted(X: Any, y: Any, weights: Any = None, **params: Any) -> LinearSVC:
    settings = {"tol": 1e-8, "max_iter": 1_000_000, "C": 0.1} | params
    return LinearSVC(**settings).fit(X, y, sample_weight=weights)


def reference(X: Any, y: Any, weights: Any = None, **params: Any) -> Any:
    dual = params["loss"] == "hinge"
    settings = {"tol": 1e-9, "max_iter": 5_000_000, "C": 0.1} | params | {"dual": dual}
    return svm.LinearSVC(**settings).fit(X, y, sample_weight=weights)


def same(ours: Any, theirs: Any, tol: float = 1e-5) -> None:
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=tol, atol=tol)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=tol, atol=tol)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("loss", "dual"), METHODS)
def test_agrees_with_liblinear(loss: str, dual: bool, classes: int, layout: Any) -> None:
    X, y, weights = problem(classes)
    ours = fitted(layout(X), y, weights, loss=loss, dual=dual)
    theirs = reference(X, y, weights, loss=loss)
    same(ours, theirs)
    np.testing.assert_array_equal(ours.predict(layout(X)), theirs.predict(X))
    margins = ours.decision_function(layout(X))
    np.testing.assert_allclose(margins, theirs.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 3.0, 2: 0.5}])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("loss", "dual"), METHODS)
def test_class_weights_mean_what_they_mean_there(
    loss: str, dual: bool, classes: int, class_weight: Any
) -> None:
    X, y, weights = problem(classes)
    if isinstance(class_weight, dict):
        class_weight = {k: w for k, w in class_weight.items() if k < classes}
    params = {"loss": loss, "class_weight": class_weight}
    same(fitted(X, y, weights, dual=dual, **params), reference(X, y, weights, **params))


@pytest.mark.parametrize("settings", [{"fit_intercept": False}, {"intercept_scaling": 5.0}])
@pytest.mark.parametrize(("loss", "dual"), METHODS)
def test_the_intercept_is_penalised_as_there(loss: str, dual: bool, settings: Any) -> None:
    X, y, _ = problem()
    ours = fitted(X, y, loss=loss, dual=dual, **settings)
    same(ours, reference(X, y, loss=loss, **settings))


@pytest.mark.parametrize("model", [LinearSVC(), LogisticRegression()])
def test_classes_that_all_have_no_weight_are_refused(model: Any) -> None:
    X, y, _ = problem(2)
    model.set_params(class_weight=dict.fromkeys(np.unique(y).tolist(), 0.0))
    with pytest.raises(InputError, match="`class_weight` must leave rows of positive"):
        model.fit(X, y)


@pytest.mark.parametrize(("loss", "dual"), METHODS)
def test_coefficients_of_float32_rows_are_float64_as_there(loss: str, dual: bool) -> None:
    X, y, _ = problem(3)
    single = fitted(X.astype(np.float32), y, loss=loss, dual=dual, tol=1e-4)
    there = reference(X.astype(np.float32), y, loss=loss)
    assert single.coef_.dtype == there.coef_.dtype
    assert single.intercept_.dtype == there.intercept_.dtype
    assert single.decision_function(X.astype(np.float32)).dtype == np.float64
    np.testing.assert_allclose(single.coef_, reference(X, y, loss=loss).coef_, atol=0.01)


@pytest.mark.parametrize(("loss", "dual"), METHODS)
def test_a_weight_of_two_is_the_row_twice_and_of_zero_is_no_row(
    loss: str, dual: bool
) -> None:
    X, y, _ = problem(n=60)
    counts = np.arange(len(y)) % 3
    weighted = fitted(X, y, counts, loss=loss, dual=dual)
    repeated = fitted(
        np.repeat(X, counts, axis=0), np.repeat(y, counts), loss=loss, dual=dual
    )
    same(weighted, repeated, tol=1e-6)


def test_primal_and_dual_are_both_in_the_plan() -> None:
    X, y, _ = problem(n=20_000)
    tall = fitted(X, y).plan_.choices[0]
    primal = {"lbfgs", "newton-cholesky", "dual-newton", "newton-cg"}
    dual = "dual-coordinate-descent"
    assert tall.chosen in primal
    reasons = {one.name: one.reason for one in tall.rejected}
    assert "fewer features than rows" in reasons[dual]
    X, y = np.random.default_rng(0).normal(size=(200, 600)), np.arange(200) % 2
    wide = fitted(X, y).plan_.choices[0]
    assert {wide.chosen, *(one.name for one in wide.rejected)} == {*primal, dual}
    assert all(one.seconds >= wide.predicted for one in wide.rejected)
    asked = fitted(X, y, dual=False).plan_.choices[0]
    assert {asked.chosen, *(one.name for one in asked.rejected)} == primal
    hinge = fitted(X, y, loss="hinge").plan_.choices[0]
    assert hinge.chosen == "dual-coordinate-descent"
    assert {one.reason for one in hinge.rejected} == {"not for the hinge loss"}


def test_stopping_early_warns_and_keeps_the_result() -> None:
    X, y, _ = problem()
    with pytest.warns(ConvergenceWarning, match="increase `max_iter`"):
        model = fitted(X, y, dual=True, max_iter=8, random_state=0)
    assert model.n_iter_ == 8
    assert model.score(X, y) > 0.6


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_dask_in_dask_out(loss: str) -> None:
    da = pytest.importorskip("dask.array")
    X, y, _ = problem(3)
    lazy = da.from_array(X, chunks=(70, 3))
    model = fitted(lazy, y, loss=loss)
    same(model, fitted(X, y, loss=loss), tol=1e-6)
    np.testing.assert_array_equal(model.predict(lazy).compute(), model.predict(X))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": -1.0}, "The 'C' parameter of LinearSVC must be .*Got -1.0"),
        ({"loss": "log"}, "The 'loss' parameter of LinearSVC must be"),
        ({"penalty": "l1", "loss": "hinge"}, "penalty='l1' and loss='hinge' is not supp"),
        ({"loss": "hinge", "dual": False}, "loss='hinge' are not supported when dual=F"),
        ({"dual": "yes"}, "The 'dual' parameter of LinearSVC must be"),
        ({"intercept_scaling": 0.0}, "The 'intercept_scaling' parameter of LinearSVC must"),
    ],
)
def test_wrong_parameters_say_what_to_do(params: Any, message: str) -> None:
    X, y, _ = problem()
    with pytest.raises(ValueError, match=message):
        LinearSVC(**params).fit(X, y)


def descent(rows: Rows, y: Array) -> DualCoordinateDescent:
    extra = {"targets": y[:, None].astype(float), "weights": np.ones((len(y), 1))}
    l2 = 1.0 / (0.1 * len(y))
    model = Model("hinge", l2, outputs=2, intercept_l2=l2)
    task = Task("hinge", l2=l2)
    problem = Problem(task, rows.attach(**extra), (model,), seed=1)
    return DualCoordinateDescent(problem, GradientNorm(1e-6), 1000)


def test_coordinate_descent_obeys_the_laws_of_a_training() -> None:
    X, y, _ = problem()
    rows = Rows.of(X, executor=Threads(1))
    whole, parts, resumed = (descent(rows, y) for _ in range(3))
    assert isinstance(whole, Training)
    whole.advance(7)
    parts.advance(3)
    resumed.restore(parts.state())
    parts.advance(4)
    resumed.advance(4)
    for other in (parts, resumed):
        assert other.passes == whole.passes == 7
        np.testing.assert_array_equal(other.coefficients(0)[0], whole.coefficients(0)[0])
        np.testing.assert_array_equal(other.quality(), whole.quality())


def test_rows_in_many_blocks_are_put_into_one() -> None:
    X, y, _ = problem()
    rows = Rows.of(X, executor=Threads(1), block_rows=50)
    many, one = descent(rows, y), descent(rows.in_one_block(must=True), y)
    for training in (many, one):
        training.advance(3)
    np.testing.assert_array_equal(many.coefficients(0)[0], one.coefficients(0)[0])


@pytest.mark.parametrize(("n", "d"), [(20, 20), (20, 21), (60, 60), (49, 50)])
def test_as_many_rows_as_columns_far_from_zero(n: int, d: int) -> None:
    X = np.random.default_rng(0).normal(size=(n, d)) + 100.0
    y = X[:, :3].argmax(axis=1)
    found, theirs = LinearSVC().fit(X, y), LinearSVC(dual=False, tol=1e-8).fit(X, y)
    assert found.score(X, y) == 1.0

    def objective(model: LinearSVC) -> float:
        signs = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
        loss = np.square(np.maximum(0, 1 - signs * (X @ model.coef_.T + model.intercept_)))
        own = np.square(model.coef_).sum() + np.square(model.intercept_).sum()
        return float(loss.sum() + own / 2)

    assert objective(found) <= 1.02 * objective(theirs)


@pytest.mark.parametrize("classes", [2, 3])
def test_without_an_intercept_it_is_a_number_as_in_scikit_learn(classes: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    y = np.digitize(X[:, 0], np.linspace(-0.5, 0.5, classes - 1))
    expected = svm.LinearSVC(fit_intercept=False, tol=1e-8).fit(X, y)
    found = LinearSVC(fit_intercept=False, tol=1e-8).fit(X, y)
    assert type(found.intercept_) is type(expected.intercept_)
    np.testing.assert_allclose(
        found.decision_function(X), expected.decision_function(X), atol=1e-3
    )
    assert found.fit(X, y).score(X, y) == expected.score(X, y)


@pytest.mark.parametrize("C", [1.0, 30.0])
@pytest.mark.parametrize("classes", [2, 5])
def test_long_sparse_rows_are_fitted_as_well_as_by_liblinear(
    C: float, classes: int
) -> None:
    """Components of a gradient are small at once where columns have few values."""
    rng = np.random.default_rng(5)
    values, n, d = 60_000, 3000, 9000
    where = tuple(rng.integers(0, most, values, np.int32) for most in (n, d))
    X = sparse.csr_array((rng.random(values), where), shape=(n, d))
    margins = X @ (rng.normal(size=d) * (rng.random(d) < 0.1))
    margins = margins / margins.std() + 0.2 * rng.logistic(size=n)
    y = np.digitize(margins, np.quantile(margins, np.linspace(0, 1, classes + 1)[1:-1]))
    ours = LinearSVC(C=C, dual=False, max_iter=5000).fit(X, y)
    theirs = svm.LinearSVC(C=C, dual=True, max_iter=5000).fit(X, y)
    found, least = (svm_objectives(X, y, one, C) for one in (ours, theirs))
    assert (found <= least * (1 + 1e-3)).all(), (found, least)


def svm_objectives(X: Any, y: Any, model: Any, C: float) -> Any:
    """Of each plane."""
    W, b = model.coef_, model.intercept_
    signs = np.where(y[:, None] == model.classes_[-len(W) :], 1.0, -1.0)
    lacking = np.maximum(0.0, 1.0 - signs * (X @ W.T + b))
    return C * (lacking**2).sum(axis=0) + 0.5 * (W**2).sum(axis=1) + 0.5 * b**2


@pytest.mark.filterwarnings("ignore:.*did not reach:sklearn.exceptions.ConvergenceWarning")
def test_no_more_passes_are_predicted_than_there_may_be() -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(4000, 30)), random.permutation(4000) % 2
    few, many = (
        LinearSVC(loss="hinge", random_state=0, tol=1.0, max_iter=most).fit(X, y).plan_
        for most in (100, 10_000)
    )
    assert "predicted for 100 passes" in str(few)
    assert few.predicted < many.predicted
