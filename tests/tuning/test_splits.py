"""Splits as row sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold, StratifiedKFold

from mlopt.cluster import Threads
from mlopt.errors import InputError
from mlopt.rows import Rows
from mlopt.tuning.crews import splits
from mlopt.tuning.crews.splits import make_splits, row_sets

y = np.array([0, 1] * 10)


def test_an_int_stratifies_for_classifiers_as_in_scikit_learn() -> None:
    ours = make_splits(5, y, y, n=20, classifier=True)
    theirs = list(StratifiedKFold(5).split(np.zeros((20, 1)), y))

    for split, (train, test) in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(split.train, train)
        np.testing.assert_array_equal(split.test, test)


def test_masks_say_who_trains_and_who_judges() -> None:
    every = make_splits(4, y, y, n=20, classifier=True)
    weights, judged = row_sets(every, len(y), None, np.float64)

    np.testing.assert_array_equal(weights + judged, 1)
    np.testing.assert_array_equal(judged.sum(axis=1), 1)


def test_sample_weights_count_where_rows_train_only() -> None:
    weight = np.arange(20.0)
    weights, judged = row_sets(
        make_splits(2, y, y, n=20, classifier=True), 20, weight, np.float64
    )

    np.testing.assert_array_equal(weights.sum(axis=1), weight)
    assert set(np.unique(judged)) == {0.0, 1.0}


def test_groups_reach_the_splitter() -> None:
    groups = np.repeat(np.arange(5), 4)

    given = {"groups": groups}
    for split in make_splits(GroupKFold(5), y, y, given, n=20, classifier=True):
        assert not set(groups[split.train]) & set(groups[split.test])


class Reading:
    """A splitter of the user's: the half of the rows with the larger values trains."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        order = np.argsort(np.asarray(X)[:, 0])
        yield order[10:], order[:10]

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return 1


@pytest.mark.parametrize("lazy", [False, True])
def test_a_splitter_reads_the_rows_themselves(lazy: bool) -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    rows = Rows.of(X, executor=Threads(1)) if lazy else X
    (split,) = make_splits(Reading(), rows, y, n=20, classifier=True)
    assert X[split.train, 0].min() > X[split.test, 0].max()


def test_rows_that_do_not_fit_are_not_gathered_for_a_splitter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(splits, "memory_limit", lambda: 100)
    rows = Rows.of(np.ones((20, 2)), executor=Threads(1))
    assert len(make_splits(4, rows, y, n=20, classifier=True)) == 4
    with pytest.raises(InputError, match="Reading may read the rows"):
        make_splits(Reading(), rows, y, n=20, classifier=True)


def test_a_splitter_that_contradicts_itself_is_refused() -> None:
    class Two(Reading):
        def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
            return 2

    with pytest.raises(InputError, match="inconsistent results"):
        make_splits(Two(), np.ones((20, 1)), y, n=20, classifier=True)


def test_a_split_without_rows_is_refused() -> None:
    with pytest.raises(InputError, match="has no test rows"):
        make_splits([(np.arange(20), np.array([], int))], y, y, n=20, classifier=False)


@pytest.mark.parametrize(("name", "wrong"), [("test", 20), ("training", -21)])
def test_rows_that_are_not_there_are_refused(name: str, wrong: int) -> None:
    some, others = np.arange(10), np.append(np.arange(10, 20), wrong)
    split = (some, others) if name == "test" else (others, some)
    with pytest.raises(InputError, match=f"the {name} rows of split 0 .* have {wrong}"):
        make_splits([split], y, y, n=20, classifier=False)


@pytest.mark.parametrize(
    "rows",
    [
        np.arange(9) < 4,
        np.array([0.0, 1.7]),
        np.array(["0", "1"]),
        np.array([[0], [1]]),
        slice(None),
        3,
    ],
    ids=["short mask", "fractions", "text", "column", "slice", "number"],
)
def test_what_says_no_rows_is_refused_and_not_read_as_others(rows: Any) -> None:
    with pytest.raises(InputError, match=r"masks with an entry for each of the 10 rows"):
        make_splits([(rows, [8, 9])], np.zeros((10, 1)), n=10, classifier=False)


@pytest.mark.parametrize(
    "rows",
    [
        [1, 2],
        pd.Series([1, 2], dtype="Int64"),
        pd.Index([1, 2]),
        np.array([1, 2], np.uint8),
    ],
    ids=["list", "nullable", "index", "bytes"],
)
def test_row_numbers_come_in_any_sequence_of_whole_numbers(rows: Any) -> None:
    (split,) = make_splits([(rows, [8, 9])], np.zeros((10, 1)), n=10, classifier=False)
    assert split.train.tolist() == [1, 2]
