"""Cross-validation as row sets: which rows train and which judge, for each split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

from mlopt.errors import InputError


@dataclass(frozen=True)
class Split:
    """Row numbers: ``train`` to fit on, ``test`` to score on."""

    train: NDArray[np.int64]
    test: NDArray[np.int64]


def make_splits(
    cv: Any, y: NDArray[Any], groups: Any = None, *, classifier: bool
) -> tuple[Split, ...]:
    """The splits of any scikit-learn splitter, checked before anything is trained.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test)
        As in `sklearn.model_selection.GridSearchCV`; an int stratifies for classifiers.
    y : ndarray of shape (n,) or (n, outputs)
    groups : array-like of shape (n,), optional
    classifier : bool

    Raises
    ------
    InputError
        A split without rows, or, for classifiers, without one of the classes in its
        training rows.
    """
    splitter = check_cv(cv, y, classifier=classifier)
    rows = np.zeros((len(y), 1))  # splitters look at the length of X only
    splits = tuple(
        Split(_row_numbers(train, len(y)), _row_numbers(test, len(y)))
        for train, test in splitter.split(rows, y, groups)
    )
    if not splits:
        raise InputError("`cv` must give at least one split, it gave none.")
    for number, split in enumerate(splits):
        _check_rows(number, split)
        if classifier:
            _check_classes(number, split, y)
    return splits


def row_sets(
    splits: Sequence[Split], n: int, sample_weight: NDArray[Any] | None, dtype: Any
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Training and scoring weights, both of shape (n, splits): folds as masks."""
    weights = np.zeros((n, len(splits)), dtype)
    judged = np.zeros((n, len(splits)), dtype)
    own = np.ones(n, dtype) if sample_weight is None else sample_weight
    for number, split in enumerate(splits):
        # A bootstrap may draw a row several times: it then counts as often.
        np.add.at(weights[:, number], split.train, own[split.train])
        np.add.at(judged[:, number], split.test, 1)
    return weights, judged


def _row_numbers(rows: Any, n: int) -> NDArray[np.int64]:
    rows = np.asarray(rows)
    return (
        np.flatnonzero(rows)
        if rows.dtype == bool and len(rows) == n
        else rows.astype(np.int64)
    )


def _check_rows(number: int, split: Split) -> None:
    for name, rows in (("training", split.train), ("test", split.test)):
        if len(rows) == 0:
            raise InputError(
                f"Every split must have rows on both sides; split {number} of `cv` has no "
                f"{name} rows. Use fewer splits, or other `groups`."
            )


def _check_classes(number: int, split: Split, y: NDArray[Any]) -> None:
    missing = np.setdiff1d(np.unique(y), np.unique(y[split.train]))
    if len(missing):
        counts = {str(label): int(np.sum(y == label)) for label in missing[:5]}
        raise InputError(
            f"Every training split must hold every class; split {number} of `cv` has none "
            f"of {counts} (class: rows in all). Use a stratified `cv`, fewer splits, or "
            "drop classes that are this rare."
        )
