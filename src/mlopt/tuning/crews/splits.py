"""Cross-validation as row sets: which rows train and which judge, for each split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

from mlopt.errors import InputError
from mlopt.pipeline.by_split import Streamed, gathering
from mlopt.resources.probe import memory_limit
from mlopt.rows import Rows

GATHERED = 0.25
"""Part of the memory that the rows of a cluster may take here, for a splitter to read."""


@dataclass(frozen=True)
class Split:
    """Row numbers: ``train`` to fit on, ``test`` to score on."""

    train: NDArray[np.int64]
    test: NDArray[np.int64]


def make_splits(
    cv: Any,
    X: Any,
    y: Any = None,
    params: Mapping[str, Any] | None = None,
    *,
    n: int,
    classifier: bool,
    told: list[str] | None = None,
) -> tuple[Split, ...]:
    """The splits of any splitter, asked as scikit-learn asks it.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test)
        As in `sklearn.model_selection.GridSearchCV`; an int stratifies for classifiers.
    X : array-like, Rows or Streamed
        The data as they were given. `Rows` are gathered for splitters that are not
        scikit-learn's own, which only count them.
    y : array-like, optional
    params : mapping, optional
        Further arguments of ``split``, such as ``groups``.
    n : int
        How many rows there are.
    classifier : bool
    told : list of str, optional
        Takes what plans must say of rows that are gathered for it.

    Raises
    ------
    InputError
        No split, one without rows on a side, with rows that are not there or with what
        says no rows, or rows of a cluster that a splitter wants to read and that do not
        fit in memory.
    """
    splitter = check_cv(cv, y, classifier=classifier)
    told = [] if told is None else told
    rows = _readable(X, splitter, told) if isinstance(X, Rows | Streamed) else X
    given = dict(params or {})
    expected = splitter.get_n_splits(rows, y, **given)
    splits = tuple(
        Split(_row_numbers(train, n), _row_numbers(test, n))
        for train, test in splitter.split(rows, y, **given)
    )
    if len(splits) != expected:
        raise InputError(
            "cv.split and cv.get_n_splits return inconsistent results. Expected "
            f"{expected} splits, got {len(splits)}."
        )
    if not splits:
        raise InputError(
            "No fits were performed. Was the CV iterator empty? Were there no candidates? "
            "`cv` must give at least one split, it gave none."
        )
    for number, split in enumerate(splits):
        _check_rows(number, split, n)
    return splits


def row_sets(
    splits: Sequence[Split], n: int, sample_weight: NDArray[Any] | None, dtype: Any
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Training and scoring weights, both of shape (n, splits): folds as masks."""
    # A bootstrap may draw a row several times: it then counts as often.
    weights, judged = np.empty((2, n, len(splits)), dtype)
    for number, split in enumerate(splits):
        weights[:, number] = np.bincount(split.train, minlength=n)
        judged[:, number] = np.bincount(split.test, minlength=n)
    if sample_weight is not None:
        weights *= sample_weight[:, None].astype(dtype)
    return weights, judged


def _readable(X: Rows | Streamed, splitter: Any, told: list[str]) -> Any:
    """What a splitter is given for rows that live on a cluster."""
    if type(splitter).__module__ == "sklearn.model_selection._split":
        return np.zeros((X.n, 1))  # scikit-learn's own look at the length of X only
    if isinstance(X, Rows) and X.nbytes > GATHERED * memory_limit():
        raise InputError(
            f"`cv` must be one of scikit-learn's splitters for {X.nbytes / 2**30:.3g} GiB "
            f"of rows on a cluster: {type(splitter).__name__} may read the rows, and they "
            "do not fit in memory here. Give (train, test) row numbers instead."
        )
    reads = f"{type(splitter).__name__}, given as `cv`, may read the rows"
    if note := gathering(X, reads):
        told.append(note)
    return X.collect()


def _row_numbers(rows: Any, n: int) -> NDArray[np.int64]:
    given = np.asarray(rows)
    if given.dtype == object:  # whole numbers of a nullable column of pandas, say
        given = np.asarray(given.tolist())
    if given.ndim == 1 and given.dtype == bool and len(given) == n:
        return np.flatnonzero(given)
    if given.ndim != 1 or (given.dtype.kind not in "iu" and len(given)):
        raise InputError(
            "Splits must be pairs of row numbers (whole numbers in one dimension) or of "
            f"masks with an entry for each of the {n} rows; `cv` gave {rows!r:.60} "
            f"({type(rows).__name__} of {given.dtype}, shape {given.shape})."
        )
    return given.astype(np.int64)


def _check_rows(number: int, split: Split, n: int) -> None:
    for name, rows in (("training", split.train), ("test", split.test)):
        if len(rows) == 0:
            raise InputError(
                f"Every split must have rows on both sides; split {number} of `cv` has no "
                f"{name} rows. Use fewer splits, or other `groups`."
            )
        if len(wrong := rows[(rows >= n) | (rows < -n)]):
            raise InputError(
                f"Splits must consist of row numbers below {n}, as X has {n} rows; the "
                f"{name} rows of split {number} of `cv` have {wrong[0]}."
            )
