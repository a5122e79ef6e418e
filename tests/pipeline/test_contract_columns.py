"""`ColumnTransformer` and `FeatureUnion` inside a pipeline, fitted part by part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    StandardScaler,
    TargetEncoder,
)
from tests.pipeline.peers import SIZES, assert_same, both, numbers, people

import mlopt

NUMBERS, WORDS = ["age", "fare"], ["sex", "port"]
EXACT = LogisticRegression(tol=1e-8, max_iter=1000)


def by_columns(**settings: Any) -> ColumnTransformer:
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS),
            ("words", OneHotEncoder(handle_unknown="ignore"), WORDS),
        ],
        **settings,
    )


def assert_same_columns(mine: ColumnTransformer, other: ColumnTransformer) -> None:
    """What scikit-learn notes of a fit is there, and the same."""
    ends = [{n for n in vars(one) if n.endswith("_")} for one in (mine, other)]
    assert ends[0] == ends[1]
    for name in ("output_indices_", "sparse_output_", "n_features_in_"):
        assert getattr(mine, name, None) == getattr(other, name, None)
    parts = zip(mine.transformers_, other.transformers_, strict=True)
    for (name, part, columns), (name_, part_, columns_) in parts:
        assert (name, type(part), type(columns)) == (name_, type(part_), type(columns_))
        assert np.array_equal(np.asarray(columns), np.asarray(columns_))


@pytest.mark.slow
@SIZES
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"sparse_threshold": 0.9},
        {"sparse_threshold": 0.0},
        {"transformer_weights": {"numbers": 3.0}},
        {"verbose_feature_names_out": False},
        {"verbose_feature_names_out": "{feature_name}_of_{transformer_name}"},
        {"n_jobs": 1},
    ],
    ids=str,
)
def test_parts_of_a_table_are_fitted_as_by_scikit_learn(n: int, settings: Any) -> None:
    X, y = people(n)
    ours, theirs = both([("columns", by_columns(**settings)), ("clf", EXACT)])
    parts = [part for _, part, _ in ours[0].transformers]
    ours.fit(X, y)
    theirs.fit(X, y)
    assert_same_columns(ours[0], theirs[0])
    assert [part for _, part, _ in ours[0].transformers] == parts
    assert not hasattr(parts[1], "categories_")
    assert ours[0].named_transformers_["words"].categories_[1].tolist() == ["C", "Q", "S"]
    names = theirs[0].get_feature_names_out()
    assert list(ours[0].get_feature_names_out()) == list(names)
    assert_same(ours[0].transform(X), theirs[0].transform(X))
    assert_same(ours.predict(X), theirs.predict(X))


SELECTIONS: list[Any] = [
    [0, -1],
    slice(1, 3),
    slice("fare", "sex"),
    np.array([True, True, False, False]),
    [True, False, False, False],
    make_column_selector(dtype_include=float),
    make_column_selector(pattern="^a"),
    lambda X: [c for c in X.columns if c == "fare"],
    [],
]


@SIZES
@pytest.mark.parametrize("columns", SELECTIONS, ids=range(len(SELECTIONS)))
@pytest.mark.parametrize(
    "rest",
    [
        "passthrough",
        pytest.param("drop", marks=pytest.mark.slow),
        pytest.param(OrdinalEncoder(), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_columns_are_chosen_in_every_way_there_is(n: int, columns: Any, rest: Any) -> None:
    X, _ = people(n)
    whole = ColumnTransformer(
        [("some", OrdinalEncoder(), columns), ("not", "drop", ["port"])], remainder=rest
    )
    ours, theirs = both([("columns", whole)])
    assert_same(ours.fit_transform(X), theirs.fit_transform(X))
    assert_same(ours.transform(X), theirs.transform(X))
    assert_same_columns(ours[0], theirs[0])


@SIZES
def test_arrays_have_columns_by_number(n: int) -> None:
    X, _ = numbers(n)
    whole = ColumnTransformer(
        [
            ("a", StandardScaler(), [0, -1]),
            ("b", MinMaxScaler(), slice(1, 3)),
            ("c", "passthrough", np.array([False] * 3 + [True] + [False] * 2)),
        ],
        remainder=PowerTransformer(),
    )
    ours, theirs = both([("columns", whole), ("scale", StandardScaler())])
    assert_same(ours.fit_transform(X), theirs.fit_transform(X))
    assert_same_columns(ours[0], theirs[0])


@SIZES
def test_columns_of_what_an_earlier_step_makes(n: int) -> None:
    X, y = numbers(n)
    whole = ColumnTransformer([("first", StandardScaler(), [0])], remainder="passthrough")
    ours, theirs = both([("pca", PCA(3)), ("columns", whole), ("r", Ridge())])
    assert_same(ours.fit(X, y).predict(X), theirs.fit(X, y).predict(X))
    assert_same_columns(ours[1], theirs[1])


def test_the_density_of_all_rows_decides_whether_output_is_sparse() -> None:
    # 1% of the rows hold nearly all that is not zero: a few rows tell little.
    n = 9000
    X = sp.lil_array((n, 40))
    X[::100, :] = 1.0
    X[0::9, 0] = 1.0
    X = X.tocsr()
    exact = X.nnz / np.prod(X.shape)
    for threshold in (exact * 0.999, exact * 1.001):
        columns = [("a", "passthrough", slice(0, 20)), ("b", "passthrough", slice(20, 40))]
        whole = ColumnTransformer(columns, sparse_threshold=threshold)
        ours, theirs = both([("columns", whole)])
        assert_same(ours.fit_transform(X), theirs.fit_transform(X))
        assert ours[0].sparse_output_ == theirs[0].sparse_output_ == (exact < threshold)


@SIZES
def test_dense_output_reaches_a_step_that_needs_it(n: int) -> None:
    X, y = people(n)
    ours, theirs = both([("columns", by_columns()), ("bayes", GaussianNB())])
    assert_same(ours.fit(X, y).predict(X), theirs.fit(X, y).predict(X))


@pytest.mark.slow
@SIZES
@pytest.mark.parametrize("setting", ["estimator", "thread"])
def test_a_table_may_stay_a_table(n: int, setting: str) -> None:
    X, y = people(n)
    whole = by_columns(remainder="passthrough", verbose_feature_names_out=False)
    whole.set_params(words__sparse_output=False)
    ours, theirs = both([("columns", whole), ("scale", StandardScaler()), ("clf", EXACT)])
    wanted = "pandas" if setting == "thread" else "default"
    with sklearn.config_context(transform_output=wanted):
        for pipeline in (ours, theirs):
            if setting == "estimator":
                pipeline.set_output(transform="pandas")
            pipeline.fit(X, y)
        assert list(ours[-1].feature_names_in_) == list(theirs[-1].feature_names_in_)
        assert_same(ours[:-1].transform(X), theirs[:-1].transform(X))


def union(**settings: Any) -> FeatureUnion:
    return FeatureUnion(
        [
            ("pca", PCA(2)),
            ("same", "passthrough"),
            ("best", SelectKBest(k=2)),
            ("none", "drop"),
            ("deep", make_pipeline(StandardScaler(), PCA(1))),
        ],
        **settings,
    )


@SIZES
@pytest.mark.parametrize(
    "settings",
    [{}, {"transformer_weights": {"pca": 3.0, "same": 0.5}}, {"n_jobs": 1}],
    ids=str,
)
def test_parts_of_a_union_are_fitted_in_place(n: int, settings: Any) -> None:
    X, y = numbers(n)
    ours, theirs = both([("union", union(**settings)), ("r", Ridge())])
    pca, deep = ours[0]["pca"], ours[0]["deep"]
    ours.fit(X, y)
    theirs.fit(X, y)
    assert ours[0]["pca"] is pca
    assert ours[0]["deep"] is deep
    assert hasattr(deep[-1], "components_")
    kinds = [[type(part) for _, part in one[0].transformer_list] for one in (ours, theirs)]
    assert kinds[0] == kinds[1]
    assert_same(ours[0].transform(X), theirs[0].transform(X))
    assert_same(ours.predict(X), theirs.predict(X))
    names = theirs[0].get_feature_names_out()
    assert list(ours[0].get_feature_names_out()) == list(names)
    assert ours.n_features_in_ == 6


@SIZES
def test_a_union_of_tables_is_a_table(n: int) -> None:
    table, _ = people(n)
    X = table[["fare"]]
    parts = [("a", StandardScaler()), ("b", MinMaxScaler()), ("c", "passthrough")]
    ours, theirs = both([("union", FeatureUnion(parts))])
    for pipeline in (ours, theirs):
        pipeline.set_output(transform="pandas")
    assert_same(ours.fit_transform(X), theirs.fit_transform(X))
    assert_same(ours.transform(X), theirs.transform(X))


class Nameless(TransformerMixin, BaseEstimator):
    """Gives arrays and names no columns."""

    def fit(self, X: Any, y: Any = None) -> Nameless:
        self.columns_ = np.shape(X)[1]
        return self

    def transform(self, X: Any) -> Any:
        return np.asarray(X) * 2.0


@SIZES
@pytest.mark.parametrize("nested", [False, True])
def test_a_union_of_a_frame_and_an_array_is_a_frame(n: int, nested: bool) -> None:
    X, _ = numbers(n)
    inner: Any = FeatureUnion([("a", StandardScaler()), ("b", Nameless())])
    outer = FeatureUnion([("one", MinMaxScaler()), ("two", inner)])
    ours, theirs = both([("union", outer if nested else inner)])
    with sklearn.config_context(transform_output="pandas"):
        found, expected = ours.fit_transform(X), theirs.fit_transform(X)
        pd.testing.assert_frame_equal(found, expected)
        pd.testing.assert_frame_equal(ours.transform(X), theirs.transform(X))


@SIZES
def test_a_union_with_a_sparse_part_is_sparse(n: int) -> None:
    table, _ = people(n)
    X = table[WORDS]
    parts = [("a", OneHotEncoder()), ("b", OrdinalEncoder())]
    ours, theirs = both([("union", FeatureUnion(parts))])
    assert_same(ours.fit_transform(X), theirs.fit_transform(X))
    assert_same(ours.transform(X), theirs.transform(X))


@SIZES
@pytest.mark.parametrize(
    "step",
    [
        FeatureUnion([("a", "drop"), ("b", "drop")]),
        ColumnTransformer([("a", "drop", [0])]),
    ],
    ids=["union", "columns"],
)
def test_without_parts_no_column_is_left(n: int, step: Any) -> None:
    X, _ = numbers(n)
    ours, theirs = both([("nothing", step)])
    assert ours.fit_transform(X).shape == theirs.fit_transform(X).shape == (n, 0)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (FeatureUnion([("a", PCA())], transformer_weights={"b": 1.0}), "b"),
        (FeatureUnion([("a", PCA()), ("a", PCA())]), "not unique"),
        (ColumnTransformer([("a", PCA(), [0]), ("a", PCA(), [1])]), "not unique"),
        (ColumnTransformer([("a", Ridge(), [0])]), "fit and transform"),
    ],
)
@SIZES
def test_parts_are_checked_before_any_is_fitted(n: int, step: Any, message: str) -> None:
    ours, _ = both([("norm", Normalizer()), ("prepare", step), ("r", Ridge())])
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        ours.fit(*numbers(n))
    assert "`prepare`" in str(caught.value)


@SIZES
def test_nested_pipelines_are_one_graph(n: int) -> None:
    X, y = numbers(n)
    first = mlopt.Pipeline([("scale", StandardScaler()), ("pca", PCA(3))])
    last = mlopt.Pipeline([("again", MinMaxScaler()), ("clf", EXACT)])
    scale = first[0]
    ours = mlopt.Pipeline([("first", first), ("last", last)]).fit(X, y)
    assert first[0] is scale
    steps = [choice.step for choice in ours.plan_.choices]
    assert steps == ["first/scale", "first/pca", "last/again", "last/clf"]
    _, theirs = both([("s", scale), ("p", PCA(3)), ("m", MinMaxScaler()), ("clf", EXACT)])
    assert_same(ours.predict(X), theirs.fit(X, y).predict(X))
    assert list(ours.classes_) == [0, 1]


@SIZES
@pytest.mark.parametrize("kind", ["columns", "union"])
def test_columns_behind_a_step_without_names_are_called_as_scikit_learn_calls_them(
    n: int, kind: str
) -> None:
    X, y = people(n)
    X = X[NUMBERS]
    unnamed = make_pipeline(SimpleImputer(), FunctionTransformer(np.abs))
    parts: Any = ColumnTransformer([("part", unnamed, NUMBERS)])
    if kind == "union":
        parts = FeatureUnion([("part", unnamed)])
    parts.set_output(transform="pandas")
    steps = [("parts", parts), ("scale", StandardScaler()), ("last", LogisticRegression())]
    ours, theirs = (one.fit(X, y) for one in both(steps))
    names = [list(one[1].feature_names_in_) for one in (ours, theirs)]
    assert names[0] == names[1]
    assert np.array_equal(ours.predict(X), theirs.predict(X))


def test_sparse_columns_are_refused_where_frames_are_asked_for() -> None:
    words = pd.Series(["red blue", "blue", "green red", "warm"] * 1100)
    y = np.arange(len(words)) % 2
    branches = [("one", CountVectorizer()), ("other", TfidfVectorizer())]
    parts = FeatureUnion(branches)
    with pytest.raises(ValueError, match="Unable to configure output"):
        parts.set_output(transform="pandas")  # of its own it is configured
    steps = [("parts", parts), ("target", TargetEncoder()), ("last", GaussianNB())]
    for one in both(steps):
        with pytest.raises(ValueError, match="outputs a scipy sparse matrix"):
            one.fit(words, y)


@SIZES
@pytest.mark.parametrize("around", [False, True])
def test_a_slash_in_a_name_mistakes_no_step_for_another(n: int, around: bool) -> None:
    X, y = numbers(n)
    parts = [("km", StandardScaler(), [0]), ("rest", "passthrough", slice(1, None))]
    steps = [("in", ColumnTransformer(parts)), ("in/km", MinMaxScaler()), ("r", Ridge())]
    whole = [("all", Pipeline(steps))] if around else steps
    ours, theirs = both(whole)
    assert_same(ours.fit(X, y).predict(X), theirs.fit(X, y).predict(X))
    assert_same(ours.export().predict(X), theirs.predict(X))
