"""Imputation by column in one pass.

Means come from sums, the most frequent value from counts of all that differ. The median
needs every value: its statistics hold the observed ones, all but the zeros of sparse rows.

Shapes: n rows, d columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.utils.sparsefuncs import csc_median_axis_0
from sklearn.utils.validation import check_array

from mlopt.pipeline.blocks.tables import tabled
from mlopt.pipeline.fits.numbers.blockwise import Blockwise, Columns
from mlopt.stats import Stats

Numbers = NDArray[np.int64]
_NUMERIC, _ANY = ("mean", "median"), ("most_frequent", "constant")
_FLOATS = (np.float64, np.float32, np.float16)


@dataclass(frozen=True)
class Counts:
    """Values that differ, and how often each comes.

    Attributes
    ----------
    values : ndarray of shape (m,)
    counts : ndarray of shape (m,)
    """

    values: NDArray[Any]
    counts: NDArray[np.int64]

    @staticmethod
    def of(values: NDArray[Any]) -> Counts:
        """Of one array."""
        if values.dtype.kind == "O":
            return _of_objects(Counter(values.tolist()))
        return Counts(*np.unique(values, return_counts=True))

    def __add__(self, other: Counts) -> Counts:
        values = np.concatenate((self.values, other.values))
        return _summed(values, np.concatenate((self.counts, other.counts)))

    def most(self) -> NDArray[Any]:
        """The values that come most often: several, if they come equally often."""
        return np.asarray(self.values[self.counts == self.counts.max(initial=0)])


def _summed(values: NDArray[Any], counts: NDArray[np.int64]) -> Counts:
    """Counts of values that may come more than once."""
    if values.dtype.kind != "O":
        found, codes = np.unique(values, return_inverse=True)
        totals = np.zeros(len(found), np.int64)
        np.add.at(totals, codes, counts)
        return Counts(found, totals)
    total: Counter[Any] = Counter()
    for value, count in zip(values, counts.tolist(), strict=True):
        total[value] += count
    return _of_objects(total)


def _of_objects(counted: Counter[Any]) -> Counts:
    values = np.empty(len(counted), object)
    values[:] = list(counted)
    return Counts(values, np.fromiter(counted.values(), np.int64, len(counted)))


@dataclass(frozen=True)
class Observed:
    """What a `SimpleImputer` has seen.

    Attributes
    ----------
    columns : Columns
    dtype : dtype
        That scikit-learn works in.
    sparse : bool
    rows : int
    missing : ndarray of shape (d,)
        How many values are missing.
    stored : ndarray of shape (d,)
        How many are not; of sparse rows, those that are in memory.
    values : sequence of length d
        By strategy: sums, `Counts`, or the values; of sparse rows but for zeros. For the
        constant there are none.
    """

    columns: Columns
    dtype: np.dtype
    sparse: bool
    rows: int
    missing: Numbers
    stored: Numbers
    values: Any


class MergedObserved(Blockwise):
    """`SimpleImputer`, with or without indicators of what was missing."""

    name = "merged columns"
    kinds = (SimpleImputer,)

    def refuses(self, estimator: Any, stats: Stats) -> str:
        """Why not: a function of a whole column cannot be merged."""
        if estimator.strategy in _NUMERIC + _ANY:
            return ""
        return "`strategy` is a function, which wants whole columns"

    def learn(self, model: Any, X: Any, y: Any, weight: Any) -> Observed:
        columns, X = Columns.of(model, X), _checked(model, tabled(X))
        sparse = bool(sp.issparse(X))
        held = X.data if sparse else X
        known = ~_missing(held, model.missing_values)
        stored = _column_sums(X, known)
        missing = _column_sums(X, ~known)
        values: Any = ()
        if model.strategy == "mean":
            values = _column_sums(X, np.where(known, held, 0))
        elif model.strategy != "constant":
            # explicit zeros of sparse rows count with the others
            wanted = known & (held != 0) if sparse else known
            values = tuple(_split(X, wanted))
        if model.strategy == "most_frequent":
            values = tuple(map(Counts.of, values))
        return Observed(columns, X.dtype, sparse, int(X.shape[0]), missing, stored, values)

    def join(self, left: Observed, right: Observed) -> Observed:
        return Observed(
            left.columns,
            np.promote_types(left.dtype, right.dtype),
            left.sparse,
            left.rows + right.rows,
            left.missing + right.missing,
            left.stored + right.stored,
            _joined(left.values, right.values),
        )

    def fitted(self, model: Any, statistics: Observed) -> Any:
        # scikit-learn sets all but the values on two rows with the same columns missing.
        model.fit(_two_rows(statistics, model.missing_values))
        if model.strategy == "constant":
            return model
        find = {"mean": _means, "median": _medians, "most_frequent": _modes}
        found = find[model.strategy](statistics, model.missing_values)
        empty = statistics.rows == statistics.missing
        found[empty] = 0 if model.keep_empty_features else np.nan
        model.statistics_ = found
        return model


def _checked(model: Any, X: Any) -> Any:
    """A block as scikit-learn sees it, after all that it checks."""
    numeric = model.strategy in _NUMERIC
    fill = model.fill_value if model.strategy == "constant" else None
    probe = clone(model).set_params(
        strategy="mean" if numeric else "constant", fill_value=fill
    )
    probe.fit(X)
    dtype = _FLOATS if numeric else None
    return check_array(X, accept_sparse="csc", dtype=dtype, ensure_all_finite=False)


def _missing(values: Any, missing_values: Any) -> NDArray[np.bool_]:
    """Which are missing, of an array of one or two dimensions."""
    if not values.size:
        return np.zeros(values.shape, bool)
    if missing_values is pd.NA:
        return np.asarray(pd.isna(values))
    table = values if values.ndim == 2 else values[:, None]
    indicator = MissingIndicator(missing_values=missing_values, features="all")
    mask: NDArray[np.bool_] = indicator.fit_transform(table).reshape(values.shape)
    return mask


def _column_sums(X: Any, values: NDArray[Any]) -> NDArray[Any]:
    """Sums over the rows of something about each value that is in memory."""
    kind = np.int64 if values.dtype == bool else np.float64
    if not sp.issparse(X):
        return np.asarray(values.sum(axis=0, dtype=kind))
    number = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
    return np.bincount(number, values, X.shape[1]).astype(kind)


def _split(X: Any, wanted: NDArray[np.bool_]) -> list[NDArray[Any]]:
    """Of each column the values that are wanted."""
    if not sp.issparse(X):
        return [column[mask] for column, mask in zip(X.T, wanted.T, strict=True)]
    cuts = X.indptr[1:-1]
    pairs = zip(np.split(X.data, cuts), np.split(wanted, cuts), strict=True)
    return [column[mask] for column, mask in pairs]


def _joined(left: Any, right: Any) -> Any:
    if isinstance(left, np.ndarray):
        return left + right
    return tuple(
        a + b if isinstance(a, Counts) else np.concatenate((a, b))
        for a, b in zip(left, right, strict=True)
    )


def _two_rows(seen: Observed, missing_values: Any) -> Any:
    """Two rows: with something missing in the same columns, and all in the same."""
    nothing = pd.isna(missing_values)
    value = 2 if not nothing and missing_values == 1 else 1
    gap = np.nan if nothing and seen.dtype.kind == "f" else missing_values
    rows = np.full((2, seen.columns.count), value, seen.dtype)
    empty = (seen.stored == 0) & (seen.missing > 0)
    for row, mask in zip(rows, (empty, seen.missing > 0), strict=True):
        if mask.any():
            row[mask] = gap
    if not seen.sparse:
        return seen.columns.block(rows)
    rows[:, (seen.stored == 0) & (seen.missing == 0)] = 0
    return seen.columns.block(sp.csc_array(rows))


def _means(seen: Observed, missing_values: Any) -> NDArray[Any]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(seen.values / (seen.rows - seen.missing))


def _medians(seen: Observed, missing_values: Any) -> NDArray[Any]:
    found = np.zeros(seen.columns.count, np.float64 if seen.sparse else seen.dtype)
    for j, (values, n) in enumerate(zip(seen.values, _observed(seen), strict=True)):
        if n and not seen.sparse:
            found[j] = np.median(values)
        elif n:
            places = np.arange(len(values)), np.zeros(len(values), np.int64)
            column = sp.csc_array((values, places), shape=(n, 1))
            found[j] = csc_median_axis_0(column)[0]
    return found


def _modes(seen: Observed, missing_values: Any) -> NDArray[Any]:
    found = np.zeros(seen.columns.count, object if seen.dtype.kind == "O" else np.float64)
    for j, (counts, n) in enumerate(zip(seen.values, _observed(seen), strict=True)):
        zeros = n - counts.counts.sum()
        if zeros:
            counts += Counts(np.zeros(1, seen.dtype), np.array([zeros]))
        if n:
            found[j] = _first(counts.most(), missing_values)
    return found


def _observed(seen: Observed) -> Sequence[int]:
    return [int(n) for n in seen.rows - seen.missing]


def _first(values: NDArray[Any], missing_values: Any) -> Any:
    """Of values that come equally often the one that scikit-learn takes."""
    if len(values) == 1 or values.dtype.kind != "O":
        return values.min()
    chosen = SimpleImputer(missing_values=missing_values, strategy="most_frequent")
    return chosen.fit(values[:, None]).statistics_[0]


IMPUTING = (MergedObserved(),)
