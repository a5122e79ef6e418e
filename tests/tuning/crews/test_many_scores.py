"""Scores of many models at once are those that scikit-learn's scorers give of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer

import mlopt
from mlopt.tuning.crews import scan
from mlopt.tuning.crews.many_scores import judge_of
from mlopt.tuning.crews.scoring import FromMargins

METRICS = [
    "accuracy", "balanced_accuracy", "f1", "precision", "recall", "roc_auc",
    "average_precision", "neg_log_loss", "neg_brier_score", "matthews_corrcoef",
]  # fmt: skip
OF_LABEL_1 = ["f1", "precision", "recall", "average_precision"]
RNG = np.random.default_rng(0)
POSITIVE = RNG.random(301) < 0.3
KINDS = {
    "apart": 3 * POSITIVE + RNG.normal(size=(4, 301)),
    "tied": np.round(POSITIVE + RNG.normal(size=(4, 301))),
    "all but one": np.where(np.arange(301) == 7, 1.0, -RNG.random((2, 301))),
    "far": 800 * (POSITIVE + RNG.normal(size=(3, 301))),
}


def asked(metric: str, margins: Any, labels: Any) -> Any:
    known = FromMargins(margins, labels, "softmax")
    return get_scorer(metric)(known, np.empty((len(margins), 0)), labels[POSITIVE * 1])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("metric", METRICS)
def test_scores_are_those_of_the_scorer(metric: str, kind: str, dtype: Any) -> None:
    labels, Z = np.array([-1, 1]), KINDS[kind].astype(dtype)
    judge = judge_of(metric, labels, probabilities=True)
    assert judge is not None
    expected = [asked(metric, z, labels) for z in Z]
    close = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(judge(Z, POSITIVE), expected, rtol=close, atol=1e-15)


@pytest.mark.parametrize("metric", ["precision", "matthews_corrcoef"])
def test_what_is_not_defined_is_left_to_the_scorer(metric: str) -> None:
    judge = judge_of(metric, np.array([0, 1]), probabilities=True)
    assert judge is not None
    assert np.isnan(judge(-np.ones((1, 301)), POSITIVE)).all()


@pytest.mark.parametrize("labels", [np.array(["no", "yes"]), np.array([1, 2])])
def test_a_metric_of_the_label_1_is_left_to_the_scorer_without_it(labels: Any) -> None:
    for metric in OF_LABEL_1:
        assert judge_of(metric, labels, probabilities=True) is None
    Z, judge = KINDS["apart"], judge_of("roc_auc", labels, probabilities=True)
    assert judge is not None
    expected = [asked("roc_auc", z, labels) for z in Z]
    np.testing.assert_allclose(judge(Z, POSITIVE), expected, rtol=1e-12)


def test_a_scorer_that_refuses_names_of_classes_is_asked() -> None:
    names = np.array(["no", "yes"])
    assert judge_of("neg_brier_score", names, probabilities=True) is None
    assert judge_of("neg_log_loss", names, probabilities=True) is not None
    with pytest.raises(ValueError, match="pos_label"):
        asked("neg_brier_score", KINDS["apart"][0], names)


def test_probabilities_are_asked_of_models_that_have_some_only() -> None:
    for metric in ("neg_log_loss", "neg_brier_score"):
        assert judge_of(metric, np.array([0, 1]), probabilities=False) is None


def search(**settings: Any) -> mlopt.ModelSearchCV:
    return mlopt.ModelSearchCV(
        LogisticRegression(), {"C": [0.01, 1.0]}, sampler="grid", n_trials=None,
        bandit=None, cv=3, refit=False, return_train_score=True, **settings,
    )  # fmt: skip


def test_a_search_asks_no_scorer_for_what_follows_from_margins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X = RNG.normal(size=(301, 3)) + 1.5 * POSITIVE[:, None]
    y = POSITIVE.astype(int)
    fast = search(scoring=METRICS).fit(X, y).cv_results_
    with monkeypatch.context() as patch:
        patch.setattr(scan, "_asked_scores", lambda *a: pytest.fail("it was asked"))
        search(scoring=METRICS).fit(X, y)
    monkeypatch.setattr(scan, "judge_of", lambda *a, **k: None)
    slow = search(scoring=METRICS).fit(X, y).cv_results_
    for name in slow:
        if ("_test_" in name or "_train_" in name) and not name.startswith("rank"):
            np.testing.assert_allclose(fast[name], slow[name], rtol=1e-12, atol=1e-14)


def test_a_warning_of_an_undefined_score_is_still_given() -> None:
    y = np.r_[np.ones(15), np.zeros(285)].astype(int)
    with pytest.warns(UndefinedMetricWarning, match="Precision is ill-defined"):
        found = search(scoring="precision").fit(RNG.normal(size=(300, 3)), y)
    assert (found.cv_results_["mean_test_score"] == 0.0).all()
