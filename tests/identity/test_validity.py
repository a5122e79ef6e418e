"""Parameters are valid where scikit-learn would take them, and are asked about once."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import mlopt
from mlopt.identity import is_valid


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(), LogisticRegression(C=-1.0), LogisticRegression(solver="none"),
        LogisticRegression(class_weight={0: 1.0}), LogisticRegression(tol="1e-4"),
        LinearSVC(C=True), LinearSVC(loss="hinge"), StandardScaler(copy=1),
    ],
)  # fmt: skip
def test_what_scikit_learn_takes_is_valid(model: Any) -> None:
    try:
        model._validate_params()
    except ValueError:
        assert not is_valid(model)
    else:
        assert is_valid(model)


def test_a_class_that_asks_otherwise_is_asked_itself() -> None:
    class Picky(LogisticRegression):
        def _validate_params(self) -> None:
            raise ValueError("never")

    assert not is_valid(Picky())


def test_a_pipeline_asks_no_more_often_than_its_steps(monkeypatch: Any) -> None:
    asked: list[str] = []
    own = BaseEstimator._validate_params

    def counted(self: Any) -> None:
        asked.append(type(self).__name__)
        own(self)

    X, y = load_iris(return_X_y=True)
    steps = [("scale", StandardScaler()), ("model", LogisticRegression())]
    monkeypatch.setattr(BaseEstimator, "_validate_params", counted)
    mlopt.Pipeline(steps).fit(X, y)
    assert sorted(asked) == ["LogisticRegression", "Pipeline", "StandardScaler"]
