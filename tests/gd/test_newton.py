"""Newton's method for one model: right curvature, few passes, resumable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC
from tests.gd.laws import obeys_the_laws

from mlopt.cluster import Threads
from mlopt.gd.columns import Model, layout
from mlopt.gd.joint_hessian import inverse_of, joint_hessian
from mlopt.gd.passes import Sums, evaluate
from mlopt.gd.plans import Task, plan
from mlopt.gd.plans.newton_cholesky import Newton
from mlopt.gd.sample import hessian_rows, start_rows
from mlopt.rows import Rows

Array = NDArray[Any]
MODELS = [
    Model("logistic", 0.1),
    Model("logistic", 0.1, fit_intercept=False),
    Model("multinomial", 0.1, outputs=3),
    Model("multinomial", 0.1, outputs=3, fit_intercept=False),
    Model("squared_hinge", 0.1),
]


def problem(outputs: int, n: int = 300, d: int = 4, layout: Any = np.asarray) -> Rows:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    scores = X @ rng.normal(size=(d, max(outputs, 2))) + rng.gumbel(
        size=(n, max(outputs, 2))
    )
    y = scores.argmax(axis=1).astype(float)
    targets = y if outputs > 1 else 2.0 * y - 1.0
    rows = Rows.of(layout(X), executor=Threads(1))
    return rows.attach(targets=targets[:, None], weights=rng.random((n, 1)) + 0.1)


@pytest.mark.parametrize("layout_of", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_the_hessian_is_the_slope_of_the_gradient(model: Model, layout_of: Any) -> None:
    rows = problem(model.outputs, layout=layout_of)
    weights = 0.3 * np.random.default_rng(1).normal(size=(5, model.outputs))
    weights[-1] *= model.fit_intercept
    hessian = joint_hessian(rows, weights, model, np.zeros(4))
    plan, sums, h = layout([model]), Sums.of(rows), 1e-5

    def gradient(at: Array) -> Array:
        found = evaluate(rows, at, plan, sums).gradient
        assert found is not None
        return found.T.ravel()

    free = [i for i in range(weights.size) if model.fit_intercept or i % 5 != 4]
    for i in free:
        step = np.zeros(weights.size)
        step[i] = h
        shift = step.reshape(weights.T.shape).T
        slope = (gradient(weights + shift) - gradient(weights - shift)) / (2 * h)
        if model.outputs > 1 and model.fit_intercept and i % 5 == 4:
            # What a shift of all intercepts does is made up: there must be an inverse.
            slope[4::5] += hessian[i, 4::5].mean()
        np.testing.assert_allclose(hessian[i, free], slope[free], atol=1e-7)


def test_the_inverse_undoes_the_hessian() -> None:
    model = Model("multinomial", 0.1, outputs=3)
    weights = np.random.default_rng(1).normal(size=(5, 3))
    hessian = joint_hessian(problem(3), weights, model, np.zeros(4))
    image = (hessian @ weights.T.ravel()).reshape(3, 5).T
    np.testing.assert_allclose(inverse_of(hessian)(image), weights, rtol=1e-8)


def test_a_singular_hessian_has_a_stand_in() -> None:
    inverse = inverse_of(np.ones((4, 4)))
    assert np.isfinite(inverse(np.ones((2, 2)))).all()


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_few_passes_bring_the_gradient_down(model: Model) -> None:
    training = Newton(problem(model.outputs), model, gtol=1e-9, max_passes=50)
    training.advance(50)
    assert training.converged[0]
    assert training.passes <= 10


def test_a_sample_of_the_rows_does_not_move_the_solution() -> None:
    model = Model("multinomial", 1e-3, outputs=3)
    rows = problem(3, n=5000, d=20)
    assert hessian_rows(5000, 20, 3) < 2500
    sampled = Newton(rows, model, gtol=1e-9, max_passes=100)
    sampled.advance(100)
    exact = Newton(rows, model, gtol=1e-9, max_passes=100)
    exact._sample, exact._lacking, exact._exact = rows, np.zeros(20), True
    exact.advance(100)
    assert sampled.converged[0]
    assert exact.converged[0]
    np.testing.assert_allclose(sampled.quality(), exact.quality(), rtol=1e-12)


@pytest.mark.parametrize(("n", "d"), [(300, 4), (5000, 20)])
def test_it_obeys_the_laws_of_a_training(n: int, d: int) -> None:
    model = Model("multinomial", 1e-3, outputs=3)
    whole = obeys_the_laws(
        lambda: Newton(problem(3, n=n, d=d), model, gtol=1e-12, max_passes=100), 2, 6
    )
    assert whole.passes == 6


def separable() -> Rows:
    """More columns than rows, of many scales: the least loss is as good as 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 130)) * 10 ** rng.normal(size=130)
    y = np.sign(rng.normal(size=(120, 1)))
    return Rows.of(X, executor=Threads(1)).attach(targets=y, weights=np.ones((120, 1)))


def barely_separable(seed: int = 0) -> Rows:
    """A rare class that a plane can just cut off: a few rows decide where it lies."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(617, 71))
    signal = X @ rng.normal(size=71) / np.sqrt(71) + rng.normal(size=617)
    y = np.where(signal > np.quantile(signal, 0.97), 1.0, -1.0)[:, None]
    return Rows.of(X, executor=Threads(1)).attach(targets=y, weights=np.ones((617, 1)))


@pytest.mark.parametrize(
    ("rows", "l2", "most"), [(separable(), 1e-7, 20), (barely_separable(), 3e-8, 60)]
)
def test_classes_that_can_be_separated_take_few_steps(
    rows: Rows, l2: float, most: int
) -> None:
    model = Model("squared_hinge", l2)
    training = Newton(rows, model, tol=1e-6, max_passes=300, certain=True)
    training.advance(300)
    assert training.converged[0]
    assert training.passes <= most
    slow = Newton(rows, model, tol=1e-6, max_passes=100, certain=True)
    slow._may_raise = False
    slow.advance(100)
    assert not slow.converged[0]
    assert slow.objective()[0] > training.objective()[0]


@pytest.mark.parametrize("seed", range(8))
def test_the_minimum_of_separable_classes_is_one_by_its_own_gradient(seed: int) -> None:
    rows, model = barely_separable(seed), Model("squared_hinge", 1e-7)
    training = Newton(rows, model, tol=1e-9, max_passes=200, certain=True)
    training.advance(200)
    assert training.converged[0]
    coef, intercept = training.coefficients()
    X, y = rows.first(lambda block: (block.X, block.extra["targets"][:, 0]))
    short = np.maximum(0.0, 1.0 - y * (X @ coef[0] + intercept[0]))
    gradient = -2.0 * X.T @ (y * short) / len(y) + 1e-7 * coef[0]
    value = np.mean(short**2) + 0.5e-7 * coef[0] @ coef[0]
    assert value == pytest.approx(training.objective()[0], rel=1e-12)
    assert gradient @ gradient / 2e-7 <= 1e-8 * value


@pytest.mark.parametrize(("rows", "l2"), [(separable(), 1e-7), (barely_separable(), 3e-8)])
def test_steps_that_go_up_first_can_be_interrupted_anywhere(rows: Rows, l2: float) -> None:
    model = Model("squared_hinge", l2)
    whole, parts = (Newton(rows, model, tol=1e-9, max_passes=60) for _ in range(2))
    whole.advance(30)
    least = np.inf
    for _ in range(30):
        resumed = Newton(rows, model, tol=1e-9, max_passes=60)
        resumed.restore(parts.state())
        parts = resumed
        parts.advance(1)
        assert parts.objective()[0] <= least  # what is shown never gets worse
        least = parts.objective()[0]
    np.testing.assert_array_equal(parts.coefficients()[0], whole.coefficients()[0])


def test_enough_curved_rows_are_in_the_hessian_of_a_squared_hinge() -> None:
    X, y = load_digits(return_X_y=True)
    targets = np.where(y == 3, 1.0, -1.0)[:, None]
    rows, passes = Rows.of(X).attach(targets=targets, weights=np.ones_like(targets)), 0
    start: Any = None
    for cost in (0.01, 0.1, 1.0, 10.0, 100.0):
        l2 = 1 / (cost * len(X))
        model = Model("squared_hinge", l2, intercept_l2=l2)
        one = Newton(rows, model, gtol=1e-5, max_passes=1000, start=start)
        one.advance(1000)
        assert one.converged[0]
        passes, start = passes + one.passes, one.coefficients()
    assert passes <= 150
    theirs = LinearSVC(C=cost, tol=1e-6, max_iter=100_000).fit(X, y == 3)
    size = np.square(theirs.coef_).sum() + np.square(theirs.intercept_).sum()
    lacking = 1.0 - targets[:, 0] * theirs.decision_function(X)
    reached = np.square(lacking[lacking > 0]).sum() / len(X) + 0.5 * l2 * size
    assert one.objective()[0] <= reached * (1 + 1e-6)


def test_rows_without_curvature_are_no_part_of_a_hessian() -> None:
    """Left out, as rows of another fold are, they are not even read."""
    rows, model = problem(1, n=200, d=4), Model("logistic", 0.1)
    (block,) = rows.map(lambda block: block)
    kept = np.arange(200) % 3 > 0
    weights = np.where(kept[:, None], block.extra["weights"], 0.0)
    masked = rows.attach(targets=block.extra["targets"], weights=weights)
    left = Rows.of(block.X[kept], executor=Threads(1)).attach(
        targets=block.extra["targets"][kept], weights=weights[kept]
    )
    at = 0.3 * np.random.default_rng(1).normal(size=(5, 1))
    found, wanted = (joint_hessian(one, at, model, np.zeros(4)) for one in (masked, left))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_rare_columns_of_rare_classes_do_not_run_away() -> None:
    rng = np.random.default_rng(0)
    X = np.zeros((20_000, 6))
    X[:, :2] = rng.normal(size=(20_000, 2))
    X[np.arange(40), 2 + np.arange(40) % 4] = 1.0  # a sample meets few of these, or none
    y = np.where(rng.random(20_000) < 0.002, 2.0, (X[:, 0] > 0).astype(float))
    rows = Rows.of(X).attach(targets=y[:, None], weights=np.ones((20_000, 1)))
    training = Newton(
        rows, Model("multinomial", 1e-5, outputs=3), gtol=1e-6, max_passes=100
    )
    training.advance(100)
    assert training.converged[0]


def test_a_start_on_some_rows_spares_passes_over_all() -> None:
    rows = problem(1, n=40_000, d=30, layout=sparse.csr_array)
    started = Newton(rows, MODELS[0], tol=1e-9, max_passes=50)
    cold = Newton(
        rows, MODELS[0], tol=1e-9, max_passes=50, start=(np.zeros((1, 30)), np.zeros(1))
    )
    for training in (started, cold):
        training.advance(50)
        assert training.converged.all()
    assert started.passes < cold.passes
    for mine, other in zip(started.coefficients(), cold.coefficients(), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-4)


def test_few_rows_for_their_weights_are_no_start() -> None:
    assert start_rows(40_000, 30, 1) == 5000
    assert start_rows(40_000, 300, 1) == 0
    assert start_rows(16_000, 3, 1) == 0


def test_few_rows_for_each_weight_take_few_passes() -> None:
    """Where rows come and go from one step to the next, curvature must follow."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 110)) + rng.normal(size=(400, 1))
    y = (X @ rng.normal(size=110) / 10 + rng.normal(size=400) > 0).astype(int)
    task = Task("squared_hinge", l2=1e-4)
    found = plan(task, X, y, tolerance=1e-8, methods=["newton-cholesky"]).run()
    assert found.converged
    assert found.claim == "proven"
    assert found.n_iter <= 40
    slow = plan(task, X, y, tolerance=1e-6, methods=["lbfgs"]).run()
    assert found.objective <= slow.objective * (1 + 1e-8)


def test_a_sampled_hessian_does_not_mind_where_columns_lie() -> None:
    near = problem(3, n=6000, d=40)
    beside = near.map(lambda block: dict(block.extra))
    extra = {k: np.concatenate([one[k] for one in beside]) for k in beside[0]}
    far = Rows.of(near.collect() + 1e4, executor=Threads(1)).attach(**extra)
    model, taken = Model("multinomial", 1e-4, outputs=3), []
    for rows in (near, far):
        training = Newton(rows, model, tol=1e-7, max_passes=100)
        assert not training._exact
        training.advance(100)
        assert training.converged[0]
        taken.append(training.passes)
    assert taken[1] <= taken[0] + 3, taken
