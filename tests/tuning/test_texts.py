"""Searches over texts read them as scikit-learn does, each fold once."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import (
    CountVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import StandardScaler

import mlopt
from mlopt.pipeline.fits.text.counting import fit_and_count
from mlopt.tuning.crews import chain

RANDOM = np.random.default_rng(0)
WORDS = np.array([f"word{i}" for i in range(200)])
Y = RANDOM.integers(0, 2, 300)
TEXTS = [" ".join(RANDOM.choice(WORDS[60 * y : 60 * y + 140], 12)) for y in Y]


class Upper(TfidfVectorizer):
    """One of a user's own: nothing is known of it."""

    def build_preprocessor(self) -> Any:
        return str.upper


@pytest.mark.parametrize(
    "vectorizer",
    [
        TfidfVectorizer(min_df=2, sublinear_tf=True),
        CountVectorizer(ngram_range=(1, 2), max_features=300),
        CountVectorizer(analyzer=str.split, dtype=np.float32),
        CountVectorizer(dtype=np.int8),
        Upper(),
    ],
)
@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
def test_scores_are_those_of_a_grid_search(vectorizer: Any, kind: Any) -> None:
    model = make_pipeline(vectorizer, LogisticRegression(tol=1e-6, max_iter=1000))
    space = {"logisticregression__C": [0.1, 10.0]}
    X, cv = kind(TEXTS), KFold(3, shuffle=True, random_state=0)
    ours = mlopt.ModelSearchCV(
        model, space, sampler="grid", bandit=None, scoring="neg_log_loss", cv=cv
    ).fit(X, Y)
    theirs = GridSearchCV(model, space, scoring="neg_log_loss", cv=cv).fit(X, Y)
    found, expected = (
        dict(
            zip(
                map(str, one.cv_results_["param_logisticregression__C"]),
                one.cv_results_["mean_test_score"],
                strict=True,
            )
        )
        for one in (ours, theirs)
    )
    assert found == pytest.approx(expected, abs=1e-4)
    first = theirs.best_estimator_[0]
    assert ours.best_estimator_[0].vocabulary_ == first.vocabulary_
    assert type(ours.best_estimator_[0]) is type(first)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)


def test_texts_that_cannot_be_read_fail_as_in_scikit_learn() -> None:
    texts = [*TEXTS[:-1], None]
    model = make_pipeline(TfidfVectorizer(), SGDClassifier(random_state=0))
    search = mlopt.ModelSearchCV(
        model, {"sgdclassifier__alpha": [1e-3]}, cv=2, error_score="raise"
    )
    with pytest.raises(AttributeError, match="NoneType"):
        search.fit(texts, Y)


def test_texts_among_other_columns_are_read_the_same() -> None:
    frame = pd.DataFrame({"said": TEXTS, "length": [len(text) for text in TEXTS]})
    columns = make_column_transformer(
        (TfidfVectorizer(min_df=2), "said"), (StandardScaler(), ["length"])
    )
    model = make_pipeline(columns, LogisticRegression(tol=1e-6, max_iter=1000))
    space = {"logisticregression__C": [0.1, 10.0]}
    cv = KFold(3, shuffle=True, random_state=0)
    ours = mlopt.ModelSearchCV(
        model, space, sampler="grid", bandit=None, scoring="neg_log_loss", cv=cv
    ).fit(frame, Y)
    theirs = GridSearchCV(model, space, scoring="neg_log_loss", cv=cv).fit(frame, Y)
    assert sorted(ours.cv_results_["mean_test_score"]) == pytest.approx(
        sorted(theirs.cv_results_["mean_test_score"]), abs=1e-4
    )
    np.testing.assert_allclose(
        ours.predict_proba(frame), theirs.predict_proba(frame), atol=1e-3
    )


def test_a_step_that_holds_texts_gives_what_scikit_learn_gives() -> None:
    frame = pd.DataFrame({"said": TEXTS, "length": [len(text) for text in TEXTS]})
    columns = make_column_transformer(
        (make_pipeline(CountVectorizer(), TfidfTransformer()), "said"),
        (StandardScaler(), ["length"]),
    )
    expected = clone(columns).fit(frame)
    fitted, rows = chain.fit_step(columns, frame, Y)
    assert not hasattr(columns, "transformers_")
    for found in (rows, chain.apply_step(fitted, frame)):
        assert type(found) is type(expected.transform(frame))
        assert abs(found - expected.transform(frame)).max() == 0
    assert fitted.get_feature_names_out().tolist() == (
        expected.get_feature_names_out().tolist()
    )


class Length(TransformerMixin, BaseEstimator):
    """Learns nothing, and scikit-learn cannot tell whether it has."""

    def fit(self, X: Any, y: Any = None) -> Length:
        return self

    def transform(self, X: Any) -> Any:
        return np.array([[len(text) / 100] for text in X])


def test_a_union_of_texts_with_a_step_that_learns_nothing_is_scored() -> None:
    last = LogisticRegression(max_iter=1000)
    model = make_pipeline(make_union(TfidfVectorizer(), Length()), last)
    space = {"logisticregression__C": [0.1, 1.0]}
    settings: dict[str, Any] = {"scoring": "accuracy", "cv": 3}
    ours = mlopt.ModelSearchCV(model, space, sampler="grid", bandit=None, **settings).fit(
        TEXTS, Y
    )
    theirs = GridSearchCV(model, space, **settings).fit(TEXTS, Y)
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=0.02)


def test_files_are_left_to_scikit_learn() -> None:
    vectorizer = TfidfVectorizer(input="file", token_pattern=r"[^,]+")
    assert (
        fit_and_count(vectorizer, [io.StringIO("a b,c d"), io.StringIO("c d,e f")]) is None
    )


def test_a_step_may_be_called_as_a_setting_of_planned_pipelines() -> None:
    frame = pd.DataFrame({"said": TEXTS})
    columns = make_column_transformer((CountVectorizer(), "said"))
    fitted, rows = chain.fit_step(columns, frame, Y, path="own__optimize")
    assert abs(rows - chain.apply_step(fitted, frame, "own__optimize")).max() == 0
