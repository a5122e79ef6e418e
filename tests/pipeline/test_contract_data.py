"""Data of every kind that scikit-learn takes, and frames that come out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    StandardScaler,
)
from tests.pipeline.peers import SIZES, assert_same, both, numbers, people

EXACT = LogisticRegression(tol=1e-8, max_iter=1000)


@SIZES
def test_rows_may_be_lists_documents_or_a_generator(n: int) -> None:
    y = np.arange(n) % 2
    rows = [[float(i % 7), "ab"[i % 2]] for i in range(n)]
    parts = [("n", StandardScaler(), [0]), ("w", OneHotEncoder(), [1])]
    ours, theirs = both([("columns", ColumnTransformer(parts)), ("clf", EXACT)])
    assert_same(ours.fit(rows, y).predict(rows), theirs.fit(rows, y).predict(rows))
    facts = [{"a": i % 3, "b": float(i % 10)} for i in range(n)]
    ours, theirs = both([("dicts", DictVectorizer()), ("ridge", Ridge())])
    assert_same(ours.fit(facts, y).predict(facts), theirs.fit(facts, y).predict(facts))
    ours, theirs = both([("hash", HashingVectorizer(n_features=16)), ("ridge", Ridge())])
    documents = [f"a{i % 3} b{i % 5}" for i in range(n)]
    ours.fit(iter(documents), y)
    theirs.fit(iter(documents), y)
    assert_same(ours.predict(documents), theirs.predict(documents))


@SIZES
def test_text_targets_and_several_targets(n: int) -> None:
    X, y = numbers(n)
    words = np.where(y == 1, "yes", "no")
    ours, theirs = both([("scale", StandardScaler()), ("clf", EXACT)])
    assert_same(ours.fit(X, words).predict(X), theirs.fit(X, words).predict(X))
    assert list(ours.classes_) == ["no", "yes"]
    Y = np.column_stack([y, X[:, 0]])
    ours, theirs = both([("scale", StandardScaler()), ("ridge", Ridge())])
    assert_same(ours.fit(X, Y).predict(X), theirs.fit(X, Y).predict(X))


@SIZES
@pytest.mark.parametrize("kind", [list, pd.Series])
def test_targets_may_be_lists_and_series(n: int, kind: Any) -> None:
    X, y = numbers(n)
    ours, theirs = both([("scale", StandardScaler()), ("clf", EXACT)])
    assert_same(ours.fit(X, kind(y)).predict(X), theirs.fit(X, kind(y)).predict(X))


@SIZES
def test_sparse_numbers_and_documents(n: int) -> None:
    _, y = numbers(n)
    X = sp.random_array((n, 8), density=0.3, format="csc", rng=np.random.default_rng(0))
    ours, theirs = both([("scale", StandardScaler(with_mean=False)), ("clf", EXACT)])
    assert_same(ours.fit(X, y).predict(X), theirs.fit(X, y).predict(X))
    documents = [f"word{i % 7} word{i % 11} word{i % 2}" for i in range(n)]
    ours, theirs = both([("count", CountVectorizer()), ("clf", EXACT)])
    ours.fit(documents, y)
    theirs.fit(documents, y)
    assert_same(ours.predict(documents), theirs.predict(documents))
    names = theirs[:-1].get_feature_names_out()
    assert list(ours[:-1].get_feature_names_out()) == list(names)


@SIZES
def test_names_of_columns_are_kept_and_checked(n: int) -> None:
    X, y = numbers(n)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    steps = [("norm", Normalizer()), ("bin", Binarizer()), ("scale", StandardScaler())]
    ours, theirs = both([*steps, ("clf", EXACT)])
    ours.fit(frame, y)
    theirs.fit(frame, y)
    assert list(ours.feature_names_in_) == list("abcdef")
    names = theirs[:-1].get_feature_names_out()
    assert list(ours[:-1].get_feature_names_out()) == list(names)
    with pytest.raises(ValueError, match="feature names should match"):
        ours.predict(frame.rename(columns={"a": "z"}))
    ours.fit(X, y)
    assert not hasattr(ours, "feature_names_in_")


def test_a_step_without_names_says_so() -> None:
    ours, theirs = both([("abs", FunctionTransformer(np.abs)), ("clf", EXACT)])
    for pipeline in (theirs, ours):
        with pytest.raises(AttributeError, match="get_feature_names_out"):
            pipeline.fit(*numbers(60))[:-1].get_feature_names_out()


@SIZES
@pytest.mark.parametrize("setting", ["estimator", "thread"])
def test_frames_come_out_where_frames_are_wanted(n: int, setting: str) -> None:
    table, y = people(n)
    X = table[["age", "fare"]]
    steps = [("fill", SimpleImputer()), ("scale", StandardScaler()), ("pca", PCA(1))]
    ours, theirs = both([*steps, ("clf", EXACT)])
    wanted = "pandas" if setting == "thread" else "default"
    with sklearn.config_context(transform_output=wanted):
        for pipeline in (ours, theirs):
            if setting == "estimator":
                pipeline.set_output(transform="pandas")
            pipeline.fit(X, y)
        assert_same(ours[:-1].transform(X), theirs[:-1].transform(X))
        assert list(ours[-1].feature_names_in_) == list(theirs[-1].feature_names_in_)
        assert_same(ours.predict(X), theirs.predict(X))
