"""The final test counts what scikit-learn counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import confusion_matrix, get_scorer, roc_auc_score
from sklearn.preprocessing import scale

from mlopt.report.checked import check_model, checked_charts
from mlopt.report.machine import describe
from mlopt.resources import Resources


def test_the_confusion_matrix_is_the_usual_one() -> None:
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression().fit(scale(X)[::2], y[::2])
    checked = check_model(model, scale(X), y, {"accuracy": get_scorer("accuracy")}, "iris")
    expected = confusion_matrix(y, model.predict(scale(X)))
    for (true, predicted), count in checked.confusion.items():
        assert expected[int(true), int(predicted)] == count
    assert sum(checked.confusion.values()) == 150
    assert checked.roc == []
    assert len(checked_charts(checked)) == 1


def test_the_roc_curve_has_the_right_area() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = LogisticRegression().fit(scale(X)[::2], y[::2])
    checked = check_model(model, scale(X), y, {"roc_auc": get_scorer("roc_auc")}, "bc")
    area = np.trapezoid([t for _, t in checked.roc], [f for f, _ in checked.roc])
    truth = roc_auc_score(y, model.decision_function(scale(X)))
    assert area == pytest.approx(truth, abs=2e-3)
    assert checked.scores["roc_auc"] == pytest.approx(truth)


@pytest.mark.parametrize("bunch", [load_breast_cancer, load_iris])
def test_a_metric_without_a_value_says_why_and_the_others_stay(bunch: Any) -> None:
    X, y = bunch(return_X_y=True)
    model = LogisticRegression().fit(scale(X), y)
    rows = y != 1  # a class is missing
    names = "neg_log_loss", "roc_auc", "accuracy"
    scorers = {name: get_scorer(name) for name in names}
    checked = check_model(model, scale(X)[rows], y[rows], scorers, "a file")
    assert checked.scores == {"accuracy": model.score(scale(X)[rows], y[rows])}
    assert set(checked.without) == {"neg_log_loss", "roc_auc"}
    assert "label" in checked.score("neg_log_loss")
    assert checked.score("roc_auc").startswith("none, ")


def test_a_regression_shows_true_and_predicted() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = LinearRegression().fit(X, y)
    checked = check_model(model, X, y, {"r2": get_scorer("r2")}, "diabetes")
    assert np.allclose([p for _, p in checked.pairs], model.predict(X))
    assert len(checked_charts(checked)) == 1


def test_the_machine_is_described_with_units() -> None:
    text = describe(Resources(workers=2, threads=3))
    assert "30 Gflop/s" in text
    assert "8.0 GiB" in text
