"""A search over several families within what takes any estimator, before it is fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

import mlopt

X, Y = make_classification(200, 6, random_state=0)


def search(second: Any = None, **more: Any) -> mlopt.ModelSearchCV:
    families = {
        "linear": (LogisticRegression(), {"C": [0.1, 1.0]}),
        "second": (second or GaussianNB(), {}),
    }
    return mlopt.ModelSearchCV(families, n_trials=3, cv=2, random_state=0, **more)


def test_methods_are_there_before_a_fit_that_all_families_have() -> None:
    assert hasattr(search(), "predict")
    assert hasattr(search(), "predict_proba")
    assert not hasattr(search(RidgeClassifier()), "predict_proba")
    assert not hasattr(search(), "transform")
    assert not hasattr(search(refit=False), "predict")
    assert hasattr(search().fit(X, Y), "predict")


@pytest.mark.parametrize("kind", ["predicted", "calibrated", "stacked"])
def test_scikit_learns_meta_estimators_take_it(kind: str) -> None:
    if kind == "predicted":
        found = cross_val_predict(search(), X, Y, cv=2)
    elif kind == "calibrated":
        found = CalibratedClassifierCV(search(), cv=2).fit(X, Y).predict(X)
    else:
        found = StackingClassifier([("s", search())], cv=2).fit(X, Y).predict(X)
    assert np.mean(found == Y) > 0.8


def test_what_families_ask_for_goes_through_a_pipeline_around_them() -> None:
    weights = np.where(Y == 1, 3.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        linear, bayes = (
            one.set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
            for one in (LogisticRegression(), GaussianNB())
        )
        families = {"linear": (linear, {"C": [0.1, 1.0]}), "bayes": (bayes, {})}
        inner = mlopt.ModelSearchCV(families, n_trials=3, cv=2, random_state=0)
        around = make_pipeline("passthrough", inner)
        found = around.fit(X, Y, sample_weight=weights)[-1]
        alone = inner.fit(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(
        found.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"]
    )
