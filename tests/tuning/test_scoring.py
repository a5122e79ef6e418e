"""Scoring from margins that are already there."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer

from mlopt.errors import InputError
from mlopt.tuning.crews.scoring import FromMargins, from_quality, metrics_of

NOTHING = np.empty((0, 0))


@pytest.mark.parametrize("scoring", ["roc_auc", "f1", "neg_log_loss", "average_precision"])
def test_scorers_cannot_tell_margins_from_a_fitted_binary_classifier(scoring: str) -> None:
    X, y = make_classification(300, 8, random_state=0)
    model = LogisticRegression().fit(X, y)
    known = FromMargins(model.decision_function(X), model.classes_, "softmax")
    scorer = get_scorer(scoring)

    assert scorer(known, NOTHING, y) == pytest.approx(scorer(model, X, y))


@pytest.mark.parametrize("scoring", ["f1_macro", "neg_log_loss", "roc_auc_ovr"])
def test_scorers_cannot_tell_margins_from_a_fitted_multinomial_classifier(
    scoring: str,
) -> None:
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=1000).fit(X, y)
    known = FromMargins(model.decision_function(X), model.classes_, "softmax")
    scorer = get_scorer(scoring)

    assert scorer(known, NOTHING, y) == pytest.approx(scorer(model, X, y))


def test_several_metrics_need_one_that_decides() -> None:
    with pytest.raises(InputError, match="must be set to a scorer key"):
        metrics_of(["accuracy", "roc_auc"], LogisticRegression(), refit=True)

    metrics = metrics_of(["accuracy", "roc_auc"], LogisticRegression(), refit="roc_auc")
    assert metrics.main == "roc_auc"


def test_only_what_the_scan_counts_is_taken_from_the_scan() -> None:
    model = LogisticRegression()
    assert from_quality(metrics_of(None, model, True), classifier=True) == "accuracy"
    assert from_quality(metrics_of("roc_auc", model, True), classifier=True) is None
    assert from_quality(metrics_of("r2", model, True), classifier=False) == "r2"
