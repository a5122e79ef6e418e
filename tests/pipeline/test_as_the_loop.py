"""Where a plan could tell less than scikit-learn's own loop: answers are the loop's."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.pipeline
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler

import mlopt

N = 20_000
RNG = np.random.default_rng(0)


def both(*steps: Any) -> tuple[Any, Any]:
    cloned = [sklearn.base.clone(step) for step in steps]
    return mlopt.make_pipeline(*steps), sklearn.pipeline.make_pipeline(*cloned)


@pytest.mark.parametrize(
    "vectorizer",
    [CountVectorizer(min_df=9000), TfidfVectorizer(min_df=1000, max_df=0.1)],
    ids=["more than a sample", "beside a share"],
)
def test_terms_that_no_sample_has_often_enough_are_kept(vectorizer: Any) -> None:
    docs = [f"common term{i % 15} word{i}" for i in range(N)]
    ours, theirs = both(vectorizer)
    assert ours.fit(docs)[0].vocabulary_ == theirs.fit(docs)[0].vocabulary_


def test_a_vocabulary_that_is_empty_is_refused_as_there() -> None:
    docs = [f"word{i}" for i in range(N)]
    with pytest.raises(ValueError, match="no terms remain"):
        mlopt.make_pipeline(CountVectorizer(min_df=2)).fit(docs)


def test_files_are_read_once() -> None:
    texts = [f"term{i % 7} text {'more ' * 300}" for i in range(3000)]
    pipes = both(TfidfVectorizer(input="file"))
    found = [pipe.fit_transform([io.StringIO(t) for t in texts]) for pipe in pipes]
    assert abs(found[0] - found[1]).max() < 1e-12


def test_what_is_no_text_among_documents_does_not_become_text() -> None:
    docs: list[Any] = [float("nan")] + ["good text"] * 5000
    for pipe in both(CountVectorizer()):
        with pytest.raises((ValueError, AttributeError)):
            pipe.fit(docs)


class Dummies(TransformerMixin, BaseEstimator):
    """Its columns are those of all rows."""

    def fit(self, X: Any, y: Any = None) -> Dummies:
        self.fitted_ = True
        return self

    def transform(self, X: Any) -> Any:
        return pd.get_dummies(X, dtype=float)


@pytest.mark.parametrize("part", [StandardScaler(), Normalizer()])
def test_columns_that_few_rows_do_not_have_are_put_back(part: Any) -> None:
    kinds = np.full(N, "usual", dtype=object)
    kinds[[5, 11_111]] = "rare"
    frame = pd.DataFrame({"x": RNG.normal(size=N), "c": kinds})
    columns = ColumnTransformer([("s", part, ["x"])], remainder="passthrough")
    ours, theirs = both(Dummies(), columns, Ridge())
    expected = theirs.fit(frame, frame["x"]).predict(frame)
    found = ours.fit(frame, frame["x"]).predict(frame)
    np.testing.assert_allclose(found, expected, atol=1e-8)
    assert ours[1].n_features_in_ == 3
    assert list(ours[1].feature_names_in_) == list(theirs[1].feature_names_in_)


def test_frozen_models_stay_as_they_were_whatever_frames_are_asked_for() -> None:
    X = RNG.normal(size=(300, 3))
    y = (X[:, 0] > 0).astype(int)
    inner = sklearn.pipeline.make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    with sklearn.config_context(transform_output="pandas"):
        ensemble = VotingClassifier([("a", FrozenEstimator(inner))])
        mlopt.make_pipeline(ensemble).fit(X, y)
        mlopt.make_pipeline(StandardScaler(), FrozenEstimator(inner[0])).fit(X)
    assert isinstance(inner[0].transform(X), np.ndarray)


@pytest.mark.parametrize("n", [300, N])
def test_frozen_steps_give_the_frames_that_are_asked_for(n: int) -> None:
    frame = pd.DataFrame(RNG.normal(size=(n, 2)), columns=["x", "z"])
    frozen = FrozenEstimator(StandardScaler().fit(frame))
    columns = ColumnTransformer([("a", MinMaxScaler(), ["x"])])
    ours, theirs = both(frozen, columns, Ridge())
    with sklearn.config_context(transform_output="pandas"):
        expected = theirs.fit(frame, frame["z"]).predict(frame)
        found = ours.fit(frame, frame["z"]).predict(frame)
    np.testing.assert_allclose(found, expected, atol=1e-8)
    assert list(ours[-1].feature_names_in_) == list(theirs[-1].feature_names_in_)


def test_blocks_see_the_configuration_of_who_fits() -> None:
    docs = ["red apple", "green pear"] * 50_000
    with sklearn.config_context(sparse_interface="sparray"):
        ours, theirs = both(CountVectorizer())
        found, expected = ours.fit_transform(docs), theirs.fit_transform(docs)
    assert type(found) is type(expected)
    assert isinstance(found, sp.sparray)
    X = RNG.normal(size=(N, 3))
    X[5, 0] = np.inf
    for pipe in both(StandardScaler(), Normalizer()):
        with pytest.raises(ValueError, match="infinity"):
            pipe.fit(X)
        with sklearn.config_context(assume_finite=True), np.errstate(invalid="ignore"):
            pipe.fit(X)


class Adds(TransformerMixin, BaseEstimator):
    def __init__(self, input: Any) -> None:
        self.input = input

    def fit(self, X: Any, y: Any = None) -> Adds:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, X: Any) -> Any:
        return X + self.input


def test_a_parameter_called_input_may_be_anything() -> None:
    X = RNG.normal(size=(N, 3))
    for pipe in both(Adds(np.ones(3)), Ridge()):
        assert pipe.fit(X, X[:, 0]).score(X, X[:, 0]) > 0.9


def test_labels_in_a_list_are_of_one_type() -> None:
    X, y = RNG.normal(size=(N, 3)), [0, "a"] * (N // 2)
    for pipe in both(StandardScaler(), GaussianNB()):
        assert pipe.fit(X, y).classes_.tolist() == ["0", "a"]


class Tensor:
    """As of other libraries: an array for NumPy, of which rows are not chosen by lists."""

    def __init__(self, values: Any) -> None:
        self.values, self.shape = values, values.shape

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.values, dtype=dtype)

    def __len__(self) -> int:
        return len(self.values)


def test_arrays_of_other_libraries_are_arrays() -> None:
    X = RNG.normal(size=(200_000, 4))
    y = (X[:, 0] > 0).astype(int)
    pipe = mlopt.make_pipeline(StandardScaler(), LogisticRegression())
    assert pipe.fit(Tensor(X), y).score(X, y) > 0.99
