"""One-pass fits where data are odd: what scikit-learn refuses, and what it lets pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.feature_selection import (
    SelectKBest,
    VarianceThreshold,
    chi2,
    f_regression,
    mutual_info_classif,
)
from sklearn.impute import SimpleImputer
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from tests.pipeline.fits.cases import Data
from tests.pipeline.fits.same import (
    assert_same_fit,
    assert_same_use,
    finished,
    merged,
    parts,
    reference,
)

import mlopt
from mlopt.errors import InputError
from mlopt.pipeline.fits.base import OnePass
from mlopt.pipeline.fits.registry import ways_of
from mlopt.stats import Stats

GOOD = np.arange(24.0).reshape(8, 3) % 5
LABELS = np.array(["a", "b"] * 4)
Place = pytest.mark.parametrize("row", [0, 4, 7])


def fitted(estimator: Any, data: Data, cuts: tuple[int, ...] = (3, 5)) -> Any:
    (way,) = ways_of(estimator)
    assert isinstance(way, OnePass)
    return finished(way, estimator, merged(way, parts(way, estimator, data, cuts)))


def assert_as_scikit_learn(
    estimator: Any, data: Data, cuts: tuple[int, ...] = (3, 5)
) -> None:
    ours, theirs = fitted(estimator, data, cuts), reference(estimator, data)
    assert_same_fit(ours, theirs, 1e-11)
    assert_same_use(ours, theirs, data.X, 1e-11)


def spoilt(row: int, value: float) -> Any:
    X = GOOD.copy()
    X[row, 1] = value
    return X


REFUSED = [
    (StandardScaler(), np.inf),
    (MinMaxScaler(), np.inf),
    (MaxAbsScaler(), -np.inf),
    (SimpleImputer(), np.inf),
    (SimpleImputer(missing_values=0), np.nan),
    (OneHotEncoder(), np.inf),
    (OneHotEncoder(categories=[range(5)] * 3), 9.0),
    (OrdinalEncoder(categories=[range(5)] * 3), 9.0),
    (KBinsDiscretizer(), np.nan),
    (KBinsDiscretizer(strategy="uniform"), np.inf),
    (VarianceThreshold(), np.inf),
    (SelectKBest(k=1), np.nan),
    (SelectKBest(chi2, k=1), -1.0),
    (SelectKBest(f_regression, k=1), np.nan),
    (GaussianNB(), np.nan),
    (MultinomialNB(), -1.0),
]


@Place
@pytest.mark.parametrize(("estimator", "value"), REFUSED)
def test_a_bad_value_is_refused_whichever_block_holds_it(
    estimator: Any, value: float, row: int
) -> None:
    y = np.arange(8.0) if getattr(estimator, "score_func", None) is f_regression else LABELS
    data = Data(spoilt(row, value), y)
    with pytest.raises(ValueError) as wanted:  # noqa: PT011
        reference(estimator, data)
    with pytest.raises(ValueError, match=str(wanted.value)[:12]):
        fitted(estimator, data)


def test_sparse_rows_cannot_be_centred() -> None:
    with pytest.raises(ValueError, match="center sparse"):
        fitted(StandardScaler(), Data(sp.csr_array(GOOD)))


@pytest.mark.parametrize("estimator", [MinMaxScaler(), KBinsDiscretizer(), GaussianNB()])
def test_sparse_rows_are_refused_as_by_scikit_learn(estimator: Any) -> None:
    with pytest.raises(TypeError, match="dense data is required"):
        fitted(estimator, Data(sp.csr_array(GOOD), LABELS))


@pytest.mark.parametrize("estimator", [StandardScaler(), SimpleImputer(), MinMaxScaler()])
def test_text_in_one_block_is_refused(estimator: Any) -> None:
    X = GOOD.astype(object)
    X[7, 1] = "word"
    with pytest.raises(ValueError, match="word"):
        fitted(estimator, Data(X))


def test_scores_need_a_target() -> None:
    with pytest.raises(InputError, match="needs a target"):
        fitted(SelectKBest(), Data(GOOD))


def test_weights_are_refused_where_scikit_learn_takes_none() -> None:
    with pytest.raises(InputError, match="no weights"):
        fitted(MinMaxScaler(), Data(GOOD, None, np.ones(8)))


@pytest.mark.parametrize(
    ("estimator", "why"),
    [
        (OneHotEncoder(min_frequency=2), "min_frequency"),
        (OrdinalEncoder(max_categories=2), "max_categories"),
        (KBinsDiscretizer(strategy="kmeans"), "kmeans"),
        (SelectKBest(mutual_info_classif), "score_func"),
        (SimpleImputer(strategy=np.max), "strategy"),
    ],
)
def test_what_cannot_be_merged_is_refused_with_a_reason(estimator: Any, why: str) -> None:
    (way,) = ways_of(estimator)
    assert why in way.refuses(estimator, Stats(8, 3))


def test_no_column_above_the_threshold_is_an_error() -> None:
    with pytest.raises(InputError, match="variance threshold"):
        fitted(VarianceThreshold(), Data(np.ones((8, 2))))


@pytest.mark.parametrize("value", [0.1, 1e8 + 0.1, -3.0])
@pytest.mark.parametrize(
    "estimator",
    [StandardScaler(), MinMaxScaler(), MaxAbsScaler(), SimpleImputer(), GaussianNB()],
)
def test_constant_columns_are_like_scikit_learns(estimator: Any, value: float) -> None:
    data = Data(np.column_stack((np.full(8, value), np.arange(8.0))), LABELS)
    assert_same_fit(fitted(estimator, data), reference(estimator, data), 1e-11)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_constant_columns_have_one_bin(strategy: Any) -> None:
    X = np.column_stack((np.full(8, 2.5), np.arange(8.0)))
    assert_as_scikit_learn(KBinsDiscretizer(3, strategy=strategy), Data(X))


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent", "constant"])
def test_columns_without_a_value_are_kept_or_dropped(
    strategy: str, sparse: bool, keep: bool
) -> None:
    X = GOOD.copy()
    X[:, 1], X[3:5, 2], X[:, 0] = np.nan, np.nan, 0.0
    given = SimpleImputer(strategy=strategy, keep_empty_features=keep, add_indicator=True)
    assert_as_scikit_learn(given, Data(sp.csr_array(X) if sparse else X))


@pytest.mark.parametrize(
    "estimator", [StandardScaler(), MinMaxScaler(), MaxAbsScaler(), VarianceThreshold()]
)
def test_a_column_that_is_missing_everywhere_stays_unknown(estimator: Any) -> None:
    X = GOOD.copy()
    X[:, 1], X[:3, 0] = np.nan, np.nan
    assert_as_scikit_learn(estimator, Data(X))


@pytest.mark.parametrize("estimator", [OneHotEncoder(), OrdinalEncoder()])
def test_a_category_of_the_last_row_is_a_category(estimator: Any) -> None:
    X = np.array([["b", 2]] * 7 + [["a", 1]], object)
    ours = fitted(estimator, Data(X), (3, 5, 7))
    assert [list(found) for found in ours.categories_] == [["a", "b"], [1, 2]]


def test_a_class_of_the_last_row_is_a_class() -> None:
    y = np.array([2] * 4 + [1] * 3 + [0])
    for estimator in (
        GaussianNB(),
        MultinomialNB(),
        SelectKBest(k=1),
        SelectKBest(chi2, k=1),
    ):
        assert_as_scikit_learn(estimator, Data(GOOD, y), (3, 5, 7))


def test_labels_of_several_kinds_are_scored_by_chi2() -> None:
    Y = np.array([[1, 0, 1], [0, 0, 1], [1, 1, 0], [0, 0, 0]] * 2)
    for targets in (Y, Y.astype(bool), Y[:, :1]):
        assert_as_scikit_learn(SelectKBest(chi2, k=1), Data(GOOD, targets))


def test_chi2_refuses_targets_that_are_no_classes() -> None:
    for targets in (np.linspace(0.1, 1.0, 8), np.arange(16.0).reshape(8, 2)):
        with pytest.raises(ValueError, match=r"target|label") as theirs:
            reference(SelectKBest(chi2, k=1), Data(GOOD, targets))
        with pytest.raises(ValueError, match=str(theirs.value)[:18]):
            fitted(SelectKBest(chi2, k=1), Data(GOOD, targets))


@pytest.mark.parametrize("estimator", [GaussianNB(), MultinomialNB()])
def test_a_class_that_weighs_nothing_is_a_class(estimator: Any) -> None:
    y = np.array([0, 1, 2, 0, 1, 2, 0, 1])
    ours = fitted(estimator, Data(GOOD, y, np.where(y == 2, 0.0, 1.5)), (2, 3, 5, 6))
    assert list(ours.classes_) == [0, 1, 2]
    np.testing.assert_array_equal(ours.class_count_, [4.5, 4.5, 0.0])


def test_pandas_categories_that_differ_between_blocks_are_united() -> None:
    words = [["x", "y", "x"], ["z", "x"], ["y", None, "y"]]
    way, given = ways_of(OneHotEncoder())[0], OneHotEncoder()
    assert isinstance(way, OnePass)
    blocks = [pd.DataFrame({"word": pd.Categorical(some)}) for some in words]
    found = merged(way, [way.part(given, block, None, None) for block in blocks])
    theirs = reference(given, Data(pd.concat(blocks)))
    assert_same_fit(way.finish(given, found), theirs, 0.0)
    assert list(theirs.categories_[0][:3]) == ["x", "y", "z"]


def test_most_frequent_of_equally_frequent_objects_is_scikit_learns() -> None:
    X = np.array([["b"], ["a"], ["b"], ["a"], [np.nan], ["c"], [np.nan], [np.nan]], object)
    assert_as_scikit_learn(SimpleImputer(strategy="most_frequent"), Data(X))


def test_far_from_zero_few_digits_of_the_variance_are_lost() -> None:
    # A mean of 1e9 is known to 1e-7, and so are the distances between those of blocks.
    X = np.random.default_rng(0).normal(size=(200, 2)) + 1e9
    ours = fitted(StandardScaler(), Data(X), tuple(range(7, 200, 7)))
    np.testing.assert_allclose(ours.var_, X.var(axis=0), rtol=2e-7)


@pytest.mark.parametrize("n", [60, 3000])
def test_none_among_text_of_polars_stays_none(n: int) -> None:
    words = pl.DataFrame({"word": ["a", "b", None] * (n // 3)})
    ours = mlopt.Pipeline([("encode", OneHotEncoder()), ("last", "passthrough")]).fit(words)
    assert ours[0].categories_[0].tolist() == ["a", "b", None]
    assert ours.transform(words).shape == (n, 3)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("value", [0.7, 1e9 / 3])
def test_a_constant_column_is_never_the_best(layout: Any, value: float) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[:, 1] = value
    y = np.repeat(["a", "b", "c"], 20)
    found = fitted(SelectKBest(k=1), Data(layout(X), y), (7, 31))
    assert np.isnan([found.scores_[1], found.pvalues_[1]]).all()
    assert not found.get_support()[1]
    rest, _ = reference(SelectKBest(k=1), Data(X[:, [0, 2]], y)).score_func(X[:, [0, 2]], y)
    np.testing.assert_allclose(found.scores_[[0, 2]], rest, rtol=1e-9)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("value", [0.1, 1e9 / 3])
def test_a_constant_column_explains_nothing_and_nothing_explains_a_constant(
    layout: Any, value: float
) -> None:
    X, best = (
        np.random.default_rng(0).normal(size=(3000, 3)),
        SelectKBest(f_regression, k=1),
    )
    X[:, 1] = value
    data = Data(layout(X), X[:, 2] + X[:, 0])
    found = fitted(best, data, (700, 1501))
    assert [found.scores_[1], found.pvalues_[1]] == [0.0, 1.0]
    np.testing.assert_allclose(found.scores_[::2], reference(best, data).scores_[::2])
    same = fitted(best, Data(layout(X), np.full(3000, value)), (700, 1501))
    assert [*same.scores_, *same.pvalues_] == [0.0] * 3 + [1.0] * 3


@pytest.mark.parametrize("strategy", ["most_frequent", "constant"])
def test_a_column_without_entries_of_sparse_integers_is_zeros(strategy: str) -> None:
    X = GOOD.astype(int)
    X[:, 1] = 0
    assert_as_scikit_learn(SimpleImputer(strategy=strategy), Data(sp.csr_matrix(X)))


def test_a_column_that_fits_exactly_is_the_best() -> None:
    for seed in range(20):  # r^2 rounds above 1 in some of them
        y, noise = np.random.default_rng(seed).normal(size=(2, 500))
        X = np.column_stack([2.5 * y + 1.0, noise])
        found = fitted(SelectKBest(f_regression, k=1), Data(X, y), (100, 250))
        assert found.get_support().tolist() == [True, False]
        assert found.pvalues_[0] == 0.0
