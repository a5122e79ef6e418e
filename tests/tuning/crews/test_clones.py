"""Objects that clone themselves as themselves are copied for each fit."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import mlopt
from mlopt.pipeline.steps.copies import private_copy
from mlopt.tuning.crews.chain import fit_step
from mlopt.tuning.crews.clones import clone_apart

X, Y = make_classification(300, 5, random_state=0)
FROZEN = FrozenEstimator(StandardScaler().fit(3 * X + 1))


class Marked(TransformerMixin, BaseEstimator):
    """Of which there is one, that bears a mark while it is fitted."""

    meet = threading.Barrier(2)

    def __sklearn_clone__(self) -> Marked:
        return self

    def fit(self, X: Any, y: Any = None) -> Marked:
        self.mark_ = threading.get_ident()
        self.meet.wait(30)
        assert self.mark_ == threading.get_ident()
        return self

    def transform(self, X: Any) -> Any:
        return X


def test_a_clone_of_what_stays_is_a_copy_and_what_it_holds_is_not() -> None:
    copy = clone_apart(FROZEN)
    assert copy is not FROZEN
    assert copy.estimator is FROZEN.estimator
    around = make_pipeline(make_column_transformer((FROZEN, [0, 1])), GaussianNB())
    inner = clone_apart(around).steps[0][1].transformers[0][1]
    assert inner is not FROZEN
    assert inner.estimator is FROZEN.estimator


def test_fits_side_by_side_do_not_share_a_step_that_stays() -> None:
    step = Marked()
    with ThreadPoolExecutor(2) as pool:
        fits = [pool.submit(fit_step, step, X, Y) for _ in range(2)]
        fitted = {fit.result()[0].mark_ for fit in fits}
    assert len(fitted) == 2
    assert not hasattr(step, "mark_")


@pytest.mark.parametrize("model", [LogisticRegression(), GaussianNB()])
def test_searches_over_frozen_steps_find_what_scikit_learn_does(model: Any) -> None:
    chain = make_pipeline(FROZEN, model)
    name = type(model).__name__.lower()
    own = {"C": [0.1, 1, 10]} if name.startswith("log") else {"var_smoothing": [1e-9, 1]}
    space = {f"{name}__{key}": values for key, values in own.items()}
    theirs = GridSearchCV(chain, space).fit(X, Y)
    for _ in range(6):
        ours = mlopt.ModelSearchCV(
            chain, space, sampler="grid", n_trials=None, bandit=None,
            return_predictions=True,
        ).fit(X, Y)  # fmt: skip
        scores = ours.cv_results_["mean_test_score"]
        np.testing.assert_allclose(scores, theirs.cv_results_["mean_test_score"], atol=5e-3)


def test_a_pipeline_ends_with_what_is_frozen() -> None:
    steps = [
        ("scale", StandardScaler()),
        ("model", FrozenEstimator(GaussianNB().fit(X, Y))),
    ]
    theirs, ours = Pipeline(steps).fit(X, Y), mlopt.Pipeline(steps).fit(X, Y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_copies_of_pipelines_share_what_is_frozen_and_not_who_holds_it() -> None:
    copied = private_copy(make_pipeline(FROZEN, GaussianNB()))
    assert copied[0] is not FROZEN
    assert copied[0].estimator is FROZEN.estimator
