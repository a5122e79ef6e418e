"""Quasi-Newton training finds what scikit-learn finds, alone or in a batch."""

from __future__ import annotations

from dataclasses import replace

import dask
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from tests.gd.problems import (
    binary,
    classes,
    features,
    folds,
    objective,
    rows_of,
    sklearn_solution,
)

from mlopt.errors import InputError
from mlopt.gd.columns import Model
from mlopt.gd.passes import decision_values
from mlopt.gd.quasi_newton import QuasiNewton
from mlopt.rows import Rows
from mlopt.training import Training

PENALTIES = (1e-6, 1e-3, 1.0)


def trained(rows: Rows, models: list[Model], **options: object) -> QuasiNewton:
    training = QuasiNewton(rows, models, **{"tol": 1e-9, **options})  # type: ignore[arg-type]
    training.advance(200)
    return training


def models_of(loss: str, **settings: object) -> list[Model]:
    return [
        Model(loss, l2, rowset=fold, **settings)  # type: ignore[arg-type]
        for l2 in PENALTIES
        for fold in range(3)
    ]


def assert_as_good_as_sklearn(
    training: QuasiNewton, X: np.ndarray, y: np.ndarray, c: np.ndarray, rtol: float = 1e-7
) -> None:
    """Each model's objective is scikit-learn's, and its coefficients nearly so."""
    assert training.converged.all()
    for number, model in enumerate(training.models):
        weights = c[:, model.rowset]
        theirs = sklearn_solution(model, X, y, weights)
        mine = training.coefficients(number)
        best = objective(model, X, y, weights, *theirs)
        assert objective(model, X, y, weights, *mine) <= best * (1 + rtol)
        np.testing.assert_allclose(training.objective()[number], best, rtol=rtol)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
def test_every_column_solves_its_own_problem_as_scikit_learn_does(loss: str) -> None:
    X, y = binary()
    c = folds(len(y))
    intercept = loss != "squared_hinge"  # LinearSVC would penalise it
    models = models_of(loss, fit_intercept=intercept)
    assert_as_good_as_sklearn(trained(rows_of(X, y, c), models), X, y, c)


def test_strongly_penalised_coefficients_are_scikit_learns() -> None:
    X, y = binary()
    c = folds(len(y))
    models = [Model("logistic", 0.01, rowset=k) for k in range(3)]
    training = trained(rows_of(X, y, c), models, tol=1e-13)
    for number, model in enumerate(models):
        coef, intercept = sklearn_solution(model, X, y, c[:, number])
        np.testing.assert_allclose(training.coefficients(number)[0], coef, atol=2e-5)
        np.testing.assert_allclose(training.coefficients(number)[1], intercept, atol=2e-5)


@pytest.mark.slow
def test_softmax_models_solve_what_scikit_learn_solves() -> None:
    X, y = classes()
    c = folds(len(y))
    models = models_of("multinomial", outputs=3)
    assert_as_good_as_sklearn(trained(rows_of(X, y, c), models), X, y, c, rtol=1e-6)


def test_one_against_rest_is_one_binary_problem_a_class() -> None:
    X, y = classes()
    c = np.ones((len(y), 1))
    training = trained(rows_of(X, y, c), [Model("logistic", 1e-3, outputs=3)])
    for k in range(3):
        alone = Model("logistic", 1e-3)
        theirs = sklearn_solution(alone, X, np.where(y == k, 1.0, -1.0), c[:, 0])
        coef, intercept = training.coefficients(0)
        np.testing.assert_allclose(coef[k], theirs[0][0], atol=2e-3)
        np.testing.assert_allclose(intercept[k], theirs[1][0], atol=2e-3)


def test_row_weights_count_as_repeated_rows_do() -> None:
    X, y = binary(400)
    c = np.random.default_rng(0).integers(0, 4, size=(len(y), 1)).astype(float)
    model = Model("logistic", 0.01)
    weighted = trained(rows_of(X, y, c), [model], tol=1e-12)
    again = np.repeat(np.arange(len(y)), c[:, 0].astype(int))
    ones = np.ones((len(again), 1))
    repeated = trained(rows_of(X[again], y[again], ones), [model], tol=1e-12)
    np.testing.assert_allclose(
        weighted.coefficients(0)[0], repeated.coefficients(0)[0], atol=1e-5
    )


def test_a_batch_gives_what_separate_runs_give() -> None:
    X, y = binary()
    c = folds(len(y))
    rows = rows_of(X, y, c)
    models = [*models_of("logistic"), *models_of("squared_hinge"), *models_of("squared")]
    together = trained(rows, models)
    for number, model in enumerate(models):
        alone = trained(rows, [model])
        assert together.objective()[number] == pytest.approx(alone.objective()[0], rel=1e-8)
        assert together.quality()[number] == pytest.approx(alone.quality()[0], abs=5e-3)


def test_models_dropped_on_the_way_change_nothing_for_the_others() -> None:
    X, y = binary()
    c = folds(len(y))
    rows = rows_of(X, y, c)
    models = models_of("logistic")
    whole = trained(rows, models)
    partly = QuasiNewton(rows, models, tol=1e-9)
    partly.advance(2)
    mask = np.arange(len(models)) % 2 == 0
    partly.keep(mask)
    partly.advance(100)
    assert partly.models == tuple(m for m, kept in zip(models, mask, strict=True) if kept)
    np.testing.assert_allclose(partly.objective(), whole.objective()[mask], rtol=1e-8)


def test_going_on_from_a_checkpoint_equals_not_stopping() -> None:
    X, y = binary(6000)
    c = folds(len(y))
    rows = rows_of(X, y, c)
    models = models_of("logistic")
    straight = QuasiNewton(rows, models, tol=1e-10)
    straight.advance(7)
    for interrupted_at in (1, 3, 6):
        first = QuasiNewton(rows, models, tol=1e-10)
        first.advance(interrupted_at)
        second = QuasiNewton(rows, models, tol=1e-10)
        second.restore(first.state())
        second.advance(7 - interrupted_at)
        assert second.passes == straight.passes
        for number in range(len(models)):
            np.testing.assert_array_equal(
                second.coefficients(number)[0], straight.coefficients(number)[0]
            )


@pytest.mark.slow
def test_merged_penalties_survive_a_checkpoint() -> None:
    X, y = binary(600, 100)
    rows = rows_of(X, y, folds(len(y)))
    models = [Model("logistic", l2) for l2 in np.geomspace(1e-5, 1.0, 40)]
    straight, first, second = (QuasiNewton(rows, models, tol=1e-8) for _ in range(3))
    straight.advance(6)
    first.advance(3)
    second.restore(first.state())
    second.advance(3)
    np.testing.assert_array_equal(second.objective(), straight.objective())


def test_a_row_set_that_the_sample_misses_is_trained_all_the_same() -> None:
    X, y = binary(20_000)
    c = np.ones((len(y), 2))
    c[6:, 1] = 0.0
    y[:6] = [1, -1, 1, -1, 1, -1]
    training = trained(rows_of(X, y, c), [Model("logistic", 0.1, rowset=k) for k in (0, 1)])
    assert training.converged.all()


def test_advancing_in_parts_equals_advancing_at_once() -> None:
    X, y = binary()
    rows = rows_of(X, y, folds(len(y)))
    at_once, in_parts = (QuasiNewton(rows, models_of("logistic")) for _ in range(2))
    at_once.advance(5)
    for _ in range(5):
        in_parts.advance(1)
    assert isinstance(at_once, Training)
    np.testing.assert_array_equal(at_once.objective(), in_parts.objective())


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
def test_what_rests_between_passes_comes_to_the_same_minima(loss: str) -> None:
    X, y = binary()
    c = folds(len(y))
    training = QuasiNewton(
        rows_of(X, y, c), models_of(loss, fit_intercept=False), tol=1e-9, max_passes=200
    )
    while not training.done:
        training.advance(3)
        training.rest()
    assert_as_good_as_sklearn(training, X, y, c)


def test_fewer_pairs_are_kept_where_memory_is_little() -> None:
    X, y = binary()
    X = np.tile(X, (1, 6000 // X.shape[1]))
    models = [Model("logistic", l2) for l2 in np.logspace(-3, 0, 40)]
    rows = rows_of(X, y, np.ones((len(y), 1)))
    assert QuasiNewton(rows, models).memory == 10
    with dask.config.set({"mlopt.resources.memory": "80MB"}):
        few = QuasiNewton(rows, models)
    assert few.memory == 20e6 // (2 * 8 * (rows.d + 1) * 40)


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    X, y = binary(9000)
    c = folds(len(y))
    one, two = (
        trained(rows_of(X, y, c, threads=threads), models_of("logistic"))
        for threads in (1, 2)
    )
    np.testing.assert_array_equal(one.objective(), two.objective())


def test_sparse_and_dense_rows_give_the_same_models() -> None:
    X, y = binary()
    X[np.random.default_rng(1).random(X.shape) < 0.7] = 0.0
    c = folds(len(y))
    models = models_of("logistic")
    dense = trained(rows_of(X, y, c), models)
    sparse = trained(rows_of(sp.csr_array(X), y, c), models)
    np.testing.assert_allclose(sparse.objective(), dense.objective(), rtol=1e-8)


@pytest.mark.slow
def test_wide_sparse_rows_are_trained_with_a_diagonal() -> None:
    X = sp.random_array((600, 3000), density=0.01, format="csr", rng=0)
    y = np.where(np.asarray(X.sum(axis=1)) > np.median(X.sum(axis=1)), 1.0, -1.0)
    c = np.ones((600, 1))
    model = Model("logistic", 1e-3)
    training = trained(rows_of(X, y, c, scored=False), [model])
    best = objective(
        model, X, y, c[:, 0], *sklearn_solution(model, X.toarray(), y, c[:, 0])
    )
    assert training.converged.all()
    assert training.objective()[0] == pytest.approx(best, rel=1e-7)


def test_single_precision_stays_single_and_comes_close() -> None:
    X, y = binary(5000)
    c = folds(len(y))
    models = [replace(model, l2=max(model.l2, 1e-4)) for model in models_of("logistic")]
    single = QuasiNewton(rows_of(X.astype(np.float32), y, c), models, tol=1e-5)
    single.advance(50)
    assert single.coefficients(0)[0].dtype == np.float32
    assert single.converged.all()
    double = trained(rows_of(X, y, c), models)
    np.testing.assert_allclose(single.objective(), double.objective(), rtol=2e-5)


def test_asking_for_more_than_rounding_allows_ends_all_the_same() -> None:
    X, y = binary(3000)
    rows = rows_of(X.astype(np.float32), y, folds(len(y)))
    training = QuasiNewton(rows, models_of("logistic"), gtol=1e-14, max_passes=400)
    training.advance(400)
    assert training.done
    assert training.passes < 200


def test_gradients_are_as_small_as_asked() -> None:
    X, y = binary()
    c = folds(len(y))
    training = QuasiNewton(rows_of(X, y, c), models_of("logistic"), gtol=1e-7)
    training.advance(100)
    assert training.converged.all()
    for number, model in enumerate(training.models):
        (w,), (b,) = training.coefficients(number)
        r = -y / (1 + np.exp(y * (X @ w + b))) * c[:, model.rowset]
        g = X.T @ r / c[:, model.rowset].sum() + model.l2 * w
        assert np.abs(g).max() <= 1.01e-7


def test_quality_is_the_accuracy_on_the_rows_left_out() -> None:
    X, y = binary()
    c = folds(len(y))
    training = trained(rows_of(X, y, c), models_of("logistic"))
    for number, model in enumerate(training.models):
        (w,), (b,) = training.coefficients(number)
        out = c[:, model.rowset] == 0
        accuracy = ((X[out] @ w + b > 0) == (y[out] > 0)).mean()
        assert training.quality()[number] == pytest.approx(accuracy)


def test_quality_of_a_regression_is_minus_the_mean_squared_error() -> None:
    X = features(500, 5)
    y = X @ np.arange(5.0) + 1.0
    c = folds(500)
    training = trained(rows_of(X, y, c), models_of("squared"))
    for number, model in enumerate(training.models):
        (w,), (b,) = training.coefficients(number)
        out = c[:, model.rowset] == 0
        mse = ((X[out] @ w + b - y[out]) ** 2).mean()
        assert training.quality()[number] == pytest.approx(-mse)


def test_separable_classes_with_hardly_a_penalty_do_not_blow_up() -> None:
    random = np.random.default_rng(0)
    y = np.where(random.random(800) < 0.5, 1.0, -1.0)
    X = np.column_stack([y + 0.1 * random.standard_normal(800), y == 1, y != 1])
    training = QuasiNewton(rows_of(X, y, folds(800)), models_of("logistic"))
    training.advance(100)
    assert np.isfinite(training.objective()).all()
    assert training.converged.all()
    assert (training.quality() == 1.0).all()


def test_collinear_indicator_columns_are_no_obstacle() -> None:
    random = np.random.default_rng(0)
    a, b = random.integers(6, size=(2, 2000))
    X = np.concatenate([np.eye(6)[a], np.eye(6)[b]], axis=1)
    y = np.where(random.random(2000) < 0.15 * a, 1.0, -1.0)
    c = folds(2000)
    models = models_of("logistic")
    assert_as_good_as_sklearn(trained(rows_of(X, y, c), models), X, y, c, rtol=1e-6)


def test_a_large_sample_start_changes_the_way_and_not_the_end() -> None:
    X, y = binary(30_000, 12)
    c = folds(len(y))
    rows = rows_of(X, y, c)
    models = models_of("logistic")
    sampled = trained(rows, models)
    zeros = [(np.zeros((1, 12)), np.zeros(1))] * len(models)
    plain = trained(rows, models, start=zeros)
    np.testing.assert_allclose(sampled.objective(), plain.objective(), rtol=1e-8)
    assert sampled.passes <= plain.passes


def test_a_start_at_the_solution_ends_at_once() -> None:
    X, y = binary()
    rows = rows_of(X, y, folds(len(y)))
    models = models_of("logistic")
    first = trained(rows, models)
    start = [first.coefficients(i) for i in range(len(models))]
    again = trained(rows, models, start=start, tol=1e-6)
    assert again.passes <= 2


def test_hinge_models_descend_and_never_claim_to_have_converged() -> None:
    X, y = binary()
    rows = rows_of(X, y, folds(len(y)))
    training = QuasiNewton(rows, models_of("hinge"), max_passes=60)
    training.advance(60)
    assert not training.converged.any()
    assert training.done
    assert (training.objective() < 1.0).all()


def test_an_empty_row_set_is_named() -> None:
    X, y = binary(50)
    with pytest.raises(InputError, match="column 1"):
        QuasiNewton(rows_of(X, y, np.eye(2)[np.zeros(50, int)]), [Model("logistic", 0.1)])


def test_dropping_all_models_is_refused() -> None:
    X, y = binary(50)
    training = QuasiNewton(rows_of(X, y, np.ones((50, 1))), [Model("logistic", 0.1)])
    with pytest.raises(InputError, match="keep at least one"):
        training.keep([False])


def test_margins_of_rows_come_in_their_order() -> None:
    X, _ = binary(5000)
    W, b = np.random.default_rng(0).standard_normal((8, 3)), np.arange(3.0)
    rows = Rows.of(X, block_rows=700)
    chosen = np.random.default_rng(1).integers(0, 5000, 6000)
    np.testing.assert_allclose(decision_values(rows, W, b, chosen), X[chosen] @ W + b)


def test_the_huber_loss_is_minimised_as_scipy_minimises_it() -> None:
    X, _ = binary(300, 4)
    y = X @ np.array([1.0, -2.0, 0.5, 0.0]) + np.random.default_rng(0).standard_t(2, 300)
    model = Model("huber", 0.01, delta=0.7)
    training = trained(rows_of(X, y, np.ones((300, 1))), [model])

    def value(v: np.ndarray) -> float:
        r = np.abs(X @ v[:4] + v[4] - y)
        losses = np.where(r <= 0.7, 0.5 * r * r, 0.7 * r - 0.245)
        return float(losses.mean() + 0.005 * (v[:4] @ v[:4]))

    best = minimize(value, np.zeros(5), method="BFGS", options={"gtol": 1e-7}).fun
    assert training.converged.all()
    assert training.objective()[0] == pytest.approx(best, rel=1e-7)


def test_every_model_learns_its_own_target() -> None:
    X, y = binary(500)
    targets = np.column_stack([y, -y, X[:, 0]])
    models = [Model("logistic", 0.01), Model("logistic", 0.01, target=1)]
    models.append(Model("squared", 1e-9, target=2))
    training = trained(rows_of(X, targets, np.ones((500, 1))), models)
    first, second = (training.coefficients(i)[0][0] for i in range(2))
    np.testing.assert_allclose(first, -second, atol=1e-4)
    assert training.objective()[2] < 1e-8


def test_without_rows_to_score_quality_is_minus_the_objective() -> None:
    X, y = binary(300)
    rows = rows_of(X, y, np.ones((300, 1)), scored=False)
    training = trained(rows, [Model("logistic", 0.01)])
    np.testing.assert_array_equal(training.quality(), -training.objective())


def test_scores_are_those_of_the_weights_that_were_taken() -> None:
    """Of a model of three classes some may move while others do not."""
    X, y = classes(900, 6, 4)
    c = folds(len(y))
    models = [
        Model("squared_hinge", l2, rowset=k, outputs=4, intercept_l2=l2)
        for l2 in np.geomspace(1e-7, 1, 8)
        for k in range(3)
    ]
    training = QuasiNewton(rows_of(X, y, c), models, gtol=1e-6, max_passes=200)
    while not training.done:
        training.advance(1)
        told = training.quality()
        for number, model in enumerate(models):
            W, b = training.coefficients(number)
            test = c[:, model.rowset] == 0
            own = ((X[test] @ W.T + b).argmax(axis=1) == y[test]).mean()
            assert told[number] == pytest.approx(own, abs=1e-9)
