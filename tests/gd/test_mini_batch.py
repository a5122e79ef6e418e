"""Mini-batch descent comes close to the minimum, for every loss."""

from __future__ import annotations

import numpy as np
import pytest
from tests.gd.problems import (
    Floats,
    binary,
    classes,
    folds,
    objective,
    rows_of,
    sklearn_solution,
)

from mlopt.errors import InputError
from mlopt.gd.columns import Model
from mlopt.gd.mini_batch import MiniBatch
from mlopt.training import Training


def standardised(X: Floats) -> Floats:
    return np.asarray((X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9))


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
def test_objectives_come_close_to_scikit_learns(loss: str) -> None:
    X, y = binary(3000)
    X, c = standardised(X), folds(len(y))
    intercept = loss != "squared_hinge"
    models = [Model(loss, 1e-2, rowset=k, fit_intercept=intercept) for k in range(3)]
    training = MiniBatch(rows_of(X, y, c), models)
    training.advance(60)
    for number, model in enumerate(models):
        w = c[:, number]
        best = objective(model, X, y, w, *sklearn_solution(model, X, y, w))
        assert training.objective()[number] <= best * 1.005


def test_a_softmax_comes_close_to_scikit_learns() -> None:
    X, y = classes(2000)
    X, c = standardised(X), np.ones((len(y), 1))
    model = Model("multinomial", 1e-2, outputs=3)
    training = MiniBatch(rows_of(X, y, c), [model])
    training.advance(60)
    best = objective(model, X, y, c[:, 0], *sklearn_solution(model, X, y, c[:, 0]))
    assert training.objective()[0] <= best * 1.005


def test_a_hinge_comes_close_to_the_best_known() -> None:
    X, y = binary(2000)
    X, c = standardised(X), np.ones((len(y), 1))
    model = Model("hinge", 1e-2)
    training = MiniBatch(rows_of(X, y, c), [model], tol=1e-5)
    training.advance(100)
    long = MiniBatch(rows_of(X, y, c), [model], momentum=0.0, learning_rate=0.01, tol=0.0)
    long.advance(100)
    assert training.objective()[0] <= long.objective()[0] * 1.01


def test_a_batch_gives_what_separate_runs_give() -> None:
    X, y = binary(1500)
    rows = rows_of(standardised(X), y, folds(len(y)))
    models = [Model("logistic", 10.0**-k, rowset=k % 3) for k in range(1, 6)]
    together = MiniBatch(rows, models, learning_rate=0.05)
    together.advance(5)
    for number, model in enumerate(models):
        alone = MiniBatch(rows, [model], learning_rate=0.05)
        alone.advance(5)
        np.testing.assert_allclose(
            together.coefficients(number)[0], alone.coefficients(0)[0], rtol=1e-9
        )


def test_dropped_and_added_models_leave_the_others_alone() -> None:
    X, y = binary(1500)
    rows = rows_of(standardised(X), y, folds(len(y)))
    models = [Model("logistic", 10.0**-k, rowset=k % 3) for k in range(1, 5)]
    whole = MiniBatch(rows, models, learning_rate=0.05)
    partly = MiniBatch(rows, models, learning_rate=0.05)
    whole.advance(4)
    partly.advance(2)
    partly.keep([True, False, True, False])
    partly.add([models[3]], learning_rate=[0.05])
    partly.advance(2)
    for mine, other in enumerate((0, 2)):
        np.testing.assert_allclose(
            partly.coefficients(mine)[0], whole.coefficients(other)[0], rtol=1e-9
        )


def test_going_on_from_a_checkpoint_equals_not_stopping() -> None:
    X, y = binary(1500)
    rows = rows_of(standardised(X), y, folds(len(y)))
    models = [Model("logistic", 1e-3, rowset=k) for k in range(3)]
    straight = MiniBatch(rows, models)
    straight.advance(6)
    first = MiniBatch(rows, models)
    first.advance(2)
    second = MiniBatch(rows, models)
    second.restore(first.state())
    second.advance(4)
    assert isinstance(second, Training)
    for number in range(3):
        np.testing.assert_array_equal(
            second.coefficients(number)[0], straight.coefficients(number)[0]
        )


def test_a_model_that_overflows_is_given_up_and_the_others_go_on() -> None:
    X, y = binary(500)
    rows = rows_of(X, y, folds(len(y)))
    models = [Model("squared", 1e-4), Model("squared", 1e-4)]
    training = MiniBatch(rows, models, learning_rate=[1e200, 1e-3], max_passes=40)
    training.advance(40)
    assert np.isnan(training.quality()[0])
    assert np.isfinite(training.quality()[1])


def test_settings_that_cannot_work_are_refused() -> None:
    X, y = binary(60)
    rows = rows_of(X, y, np.ones((60, 1)))
    with pytest.raises(InputError, match="`momentum`"):
        MiniBatch(rows, [Model("logistic", 0.1)], momentum=1.0)
    with pytest.raises(InputError, match="`learning_rate`"):
        MiniBatch(rows, [Model("logistic", 0.1)], learning_rate=0.0)
