"""Lockstep SGD makes scikit-learn's steps, for many models at once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier, SGDRegressor
from tests.gd.problems import binary, classes, features, folds, rows_of

from mlopt.errors import InputError
from mlopt.gd.columns import Model
from mlopt.gd.lockstep import LockstepSGD, Schedule
from mlopt.rows import Rows
from mlopt.training import Training

SCHEDULES = (
    Schedule("optimal"),
    Schedule("constant", 0.01),
    Schedule("invscaling", 0.05, 0.3),
    Schedule("adaptive", 0.01),
)
NAMES = {"logistic": "log_loss", "hinge": "hinge", "squared_hinge": "squared_hinge"}
EPOCHS = 3


def standardised(n: int = 700) -> tuple[np.ndarray, np.ndarray]:
    X, y = binary(n)
    return (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9), y


def theirs(model: Model, schedule: Schedule, **settings: object) -> SGDClassifier:
    return SGDClassifier(
        loss=NAMES[model.loss], alpha=model.l2, learning_rate=schedule.kind,
        eta0=schedule.eta0, power_t=schedule.power_t, shuffle=False,
        fit_intercept=model.fit_intercept,
        **{"tol": None, "max_iter": EPOCHS, **settings},
    )  # fmt: skip


def trained(
    rows: Rows, models: list[Model], schedules: list[Schedule], passes: int = EPOCHS
) -> LockstepSGD:
    training = LockstepSGD(rows, models, schedules, tol=None, shuffle=False)
    training.advance(passes)
    return training


@pytest.mark.parametrize("loss", sorted(NAMES))
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_steps_are_those_of_sgdclassifier(loss: str, kind: str) -> None:
    X, y = standardised()
    X *= 0.2  # the optimal schedule's first steps are long: nothing may overflow
    c = folds(len(y))
    models = [Model(loss, 1e-2, rowset=k) for k in range(3) for _ in SCHEDULES]
    schedules = list(SCHEDULES) * 3
    data = sp.csr_array(X) if kind == "sparse" else X
    training = trained(rows_of(data, y, c), models, schedules)
    for number, (model, schedule) in enumerate(zip(models, schedules, strict=True)):
        use = np.flatnonzero(c[:, model.rowset])
        fitted = theirs(model, schedule).fit(data[use], y[use])
        coef, intercept = training.coefficients(number)
        np.testing.assert_allclose(coef, fitted.coef_, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(intercept, fitted.intercept_, rtol=1e-9, atol=1e-11)


def test_regression_steps_are_those_of_sgdregressor() -> None:
    X = features(500, 5)
    X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
    y = X @ np.arange(5.0) + 1.0
    schedule = Schedule("invscaling", 0.01, 0.25)
    for loss, name, delta in (("squared", "squared_error", 1.0), ("huber", "huber", 0.3)):
        model = Model(loss, 1e-4, delta=delta)
        training = trained(rows_of(X, y, np.ones((500, 1))), [model], [schedule])
        fitted = SGDRegressor(
            loss=name, epsilon=delta, alpha=1e-4, learning_rate="invscaling", eta0=0.01,
            power_t=0.25, shuffle=False, tol=None, max_iter=EPOCHS,
        ).fit(X, y)  # fmt: skip
        np.testing.assert_allclose(training.coefficients(0)[0][0], fitted.coef_, rtol=1e-9)


def test_one_against_rest_steps_are_those_of_sgdclassifier() -> None:
    X, y = classes()
    model, schedule = Model("hinge", 1e-3, outputs=3), Schedule("optimal")
    training = trained(rows_of(X, y, np.ones((len(y), 1))), [model], [schedule])
    fitted = theirs(model, schedule).fit(X, y)
    coef, intercept = training.coefficients(0)
    np.testing.assert_allclose(coef, fitted.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(intercept, fitted.intercept_, rtol=1e-8)


def test_row_weights_multiply_the_steps() -> None:
    X, y = standardised(300)
    c = np.random.default_rng(0).uniform(0.5, 2.0, (300, 1))
    model, schedule = Model("logistic", 1e-3), Schedule("constant", 0.02)
    training = trained(rows_of(X, y, c), [model], [schedule])
    fitted = theirs(model, schedule).fit(X, y, sample_weight=c[:, 0])
    np.testing.assert_allclose(training.coefficients(0)[0], fitted.coef_, rtol=1e-9)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: s.kind)
def test_training_stops_when_scikit_learn_stops(schedule: Schedule) -> None:
    X, y = standardised()
    model = Model("logistic", 1e-2)
    training = LockstepSGD(
        rows_of(X, y, np.ones((len(y), 1))), [model], [schedule], shuffle=False, tol=1e-3
    )
    training.advance(1000)
    fitted = theirs(model, schedule, tol=1e-3, max_iter=1000).fit(X, y)
    assert training.converged.all()
    # The penalty enters the rule as an average over the epoch, taken from its two ends.
    assert abs(training.passes - fitted.n_iter_) <= 1


def test_each_class_stops_by_itself() -> None:
    X, y = classes()
    model, schedule = Model("logistic", 1e-2, outputs=3), Schedule("optimal")
    training = LockstepSGD(
        rows_of(X, y, np.ones((len(y), 1))), [model], [schedule], shuffle=False, tol=1e-3
    )
    training.advance(1000)
    fitted = theirs(model, schedule, tol=1e-3, max_iter=1000).fit(X, y)
    assert abs(training.passes - fitted.n_iter_) <= 1
    np.testing.assert_allclose(training.coefficients(0)[0], fitted.coef_, atol=0.02)


def test_a_batch_gives_what_separate_runs_give() -> None:
    X, y = standardised()
    rows = rows_of(X, y, folds(len(y)))
    models = [Model(loss, 1e-3, rowset=k) for loss in NAMES for k in range(3)]
    schedule = Schedule("optimal")
    together = LockstepSGD(rows, models, [schedule] * len(models), seed=3)
    together.advance(4)
    for number, model in enumerate(models):
        alone = LockstepSGD(rows, [model], [schedule], seed=3)
        alone.advance(4)
        np.testing.assert_allclose(
            together.coefficients(number)[0], alone.coefficients(0)[0], rtol=1e-10
        )


def test_dropped_models_leave_the_others_alone() -> None:
    X, y = standardised()
    rows = rows_of(X, y, folds(len(y)))
    models = [Model("logistic", 10.0**-k, rowset=k % 3) for k in range(1, 7)]
    schedules = [SCHEDULES[k % 4] for k in range(6)]
    whole = LockstepSGD(rows, models, schedules, tol=None)
    partly = LockstepSGD(rows, models, schedules, tol=None)
    whole.advance(4)
    partly.advance(2)
    partly.keep([True, False, True, True, False, True])
    partly.advance(2)
    for mine, other in enumerate((0, 2, 3, 5)):
        np.testing.assert_allclose(
            partly.coefficients(mine)[0], whole.coefficients(other)[0], rtol=1e-10
        )


def test_going_on_from_a_checkpoint_equals_not_stopping() -> None:
    X, y = standardised()
    rows = rows_of(X, y, folds(len(y)))
    models = [Model("logistic", 1e-3, rowset=k) for k in range(3)]
    schedules = [SCHEDULES[k] for k in (0, 2, 3)]
    straight = LockstepSGD(rows, models, schedules, seed=1)
    straight.advance(6)
    first = LockstepSGD(rows, models, schedules, seed=1)
    first.advance(2)
    second = LockstepSGD(rows, models, schedules, seed=1)
    second.restore(first.state())
    second.advance(4)
    assert isinstance(second, Training)
    for number in range(3):
        np.testing.assert_array_equal(
            second.coefficients(number)[0], straight.coefficients(number)[0]
        )


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_parts_of_epochs_make_whole_ones(kind: str) -> None:
    X, y = standardised()
    rows = rows_of(sp.csr_array(X) if kind == "sparse" else X, y, folds(len(y)))
    models = [Model("logistic", 1e-2, rowset=k % 3) for k in range(4)]
    whole = LockstepSGD(rows, models, SCHEDULES, seed=1)
    parts = LockstepSGD(rows, models, SCHEDULES, seed=1)
    again = LockstepSGD(rows, models, SCHEDULES, seed=1)
    whole.advance(30)
    for stop in (Fraction(1, 9), Fraction(1, 3)):
        parts.advance_to(stop)
        assert (parts.made, parts.passes) == (stop, 0)
    again.restore(parts.state())
    for training in (parts, again):
        training.advance_to(Fraction(5, 2))
        training.advance(1)
        assert (training.made, training.passes) == (Fraction(7, 2), 3)
        training.advance_to(30)
        assert training.made == whole.made
        np.testing.assert_array_equal(training.converged, whole.converged)
        for number in range(4):
            ours, theirs = training.coefficients(number)[0], whole.coefficients(number)[0]
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_what_overflows_within_an_epoch_is_told_at_once() -> None:
    X, y = standardised()
    models = [Model("squared_hinge", 1e-3), Model("logistic", 1e-3)]
    schedules = [Schedule("constant", 1e300), Schedule("constant", 0.01)]
    training = LockstepSGD(rows_of(X, y, folds(len(y))), models, schedules)
    training.advance_to(Fraction(1, 2))
    assert np.isnan(training.quality()[0])
    assert training.finished.tolist() == [True, False]


def test_seeds_decide_the_order_of_rows() -> None:
    X, y = standardised()
    rows = rows_of(X, y, np.ones((len(y), 1)))
    models, schedules = [Model("logistic", 1e-3)], [Schedule()]
    a, b, c = (LockstepSGD(rows, models, schedules, seed=s) for s in (1, 1, 2))
    for training in (a, b, c):
        training.advance(2)
    np.testing.assert_array_equal(a.coefficients(0)[0], b.coefficients(0)[0])
    assert np.abs(a.coefficients(0)[0] - c.coefficients(0)[0]).max() > 0


def test_rows_in_this_process_are_shuffled_as_a_whole() -> None:
    X, y = standardised(5000)
    rows = rows_of(X, y, np.ones((len(y), 1)), block_rows=800)
    whole = rows.in_one_block()
    assert len(rows.lengths) > 1
    assert whole.lengths == (5000,)
    (block,) = whole.map(lambda block: block)
    np.testing.assert_array_equal(block.X, X)
    assert np.shares_memory(block.X, X)
    np.testing.assert_array_equal(block.extra["targets"][:, 0], y)


def test_models_reach_a_good_accuracy_on_rows_left_out() -> None:
    X, y = standardised(4000)
    c = folds(len(y))
    models = [Model("logistic", 1e-2, rowset=k) for k in range(3)]
    training = LockstepSGD(rows_of(X, y, c), models, [Schedule()] * len(models))
    training.advance(30)
    for number in range(3):
        use = c[:, number] > 0
        fitted = SGDClassifier(loss="log_loss", alpha=1e-2, random_state=0).fit(
            X[use], y[use]
        )
        theirs = fitted.score(X[~use], y[~use])
        assert training.quality()[number] > theirs - 0.02


def test_a_model_that_overflows_is_given_up_and_the_others_go_on() -> None:
    X, y = standardised(400)
    rows = rows_of(X * 1e3, y * 1e3, folds(len(y)))
    models = [Model("squared", 0.0), Model("squared", 1e-4)]
    schedules = [Schedule("constant", 1e200), Schedule("constant", 1e-9)]
    training = LockstepSGD(rows, models, schedules, max_passes=20)
    training.advance(20)
    assert np.isnan(training.quality()[0])
    assert np.isfinite(training.quality()[1])
    assert not training.converged[0]
    assert training.finished[0]


def test_the_optimal_schedule_needs_a_penalty() -> None:
    X, y = standardised(100)
    with pytest.raises(InputError, match="needs a penalty"):
        LockstepSGD(rows_of(X, y, np.ones((100, 1))), [Model("hinge", 0.0)], [Schedule()])
