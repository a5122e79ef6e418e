"""Splits as row sets."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, PredefinedSplit, StratifiedKFold

from mlopt.errors import InputError
from mlopt.tuning.crews.splits import make_splits, row_sets

y = np.array([0, 1] * 10)


def test_an_int_stratifies_for_classifiers_as_in_scikit_learn() -> None:
    ours = make_splits(5, y, classifier=True)
    theirs = list(StratifiedKFold(5).split(np.zeros((20, 1)), y))

    for split, (train, test) in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(split.train, train)
        np.testing.assert_array_equal(split.test, test)


def test_masks_say_who_trains_and_who_judges() -> None:
    splits = make_splits(4, y, classifier=True)
    weights, judged = row_sets(splits, len(y), None, np.float64)

    np.testing.assert_array_equal(weights + judged, 1)
    np.testing.assert_array_equal(judged.sum(axis=1), 1)


def test_sample_weights_count_where_rows_train_only() -> None:
    weight = np.arange(20.0)
    weights, judged = row_sets(make_splits(2, y, classifier=True), 20, weight, np.float64)

    np.testing.assert_array_equal(weights.sum(axis=1), weight)
    assert set(np.unique(judged)) == {0.0, 1.0}


def test_groups_reach_the_splitter() -> None:
    groups = np.repeat(np.arange(5), 4)

    for split in make_splits(GroupKFold(5), y, groups, classifier=True):
        assert not set(groups[split.train]) & set(groups[split.test])


def test_a_fold_without_a_class_is_refused_by_name() -> None:
    rare = np.array([0] * 9 + [1])
    only = PredefinedSplit([-1] * 9 + [0])

    with pytest.raises(InputError, match=r"split 0 of `cv` has none of \{'1': 1\}"):
        make_splits(only, rare, classifier=True)


def test_a_split_without_rows_is_refused() -> None:
    with pytest.raises(InputError, match="has no test rows"):
        make_splits([(np.arange(20), np.array([], int))], y, classifier=False)
