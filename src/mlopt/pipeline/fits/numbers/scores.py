"""Scores of columns against a target, from sums over blocks of rows.

Shapes: k classes, d columns, n rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy import special, stats
from sklearn.feature_selection import chi2, f_classif, f_regression
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.validation import check_array, column_or_1d

from mlopt.errors import InputError
from mlopt.gd.column_sums import ColumnSums, block_sums
from mlopt.pipeline.fits.numbers.classes import united
from mlopt.pipeline.fits.numbers.spread import column_range, column_spread, together
from mlopt.pipeline.library.moments import Moments
from mlopt.rows import Block

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Variation:
    """`f_classif`: moments of each class, and the range of all rows.

    Attributes
    ----------
    classes : ndarray of shape (k,)
        In order.
    each : Moments
        Rows of shape (k, 1), the rest (k, d).
    low, high : ndarray of shape (d,)
        Of constant columns the moments are rounding, and equal these.
    """

    classes: Any
    each: Moments
    low: Array
    high: Array

    @staticmethod
    def of(X: Any, y: Any) -> Variation:
        """Of one block."""
        y, X = column_or_1d(y), check_array(X, accept_sparse="csr", dtype=np.float64)
        classes = np.unique(y)
        found = [column_spread(X[np.flatnonzero(y == one)]) for one in classes]
        rows, means, squares = (np.stack(part) for part in zip(*found, strict=True))
        return Variation(classes, (rows[:, :1], means, squares), *column_range(X))

    def __add__(self, other: Variation) -> Variation:
        classes, a, b = united(self.classes, self.each, other.classes, other.each)
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return Variation(classes, together(a, b), low, high)

    def scores(self) -> tuple[Any, Any]:
        """F values of one-way analyses of variance, and p values; constant columns: NaN."""
        rows, means, squares = self.each
        n, k = int(rows.sum()), len(rows)
        between = (rows * (means - rows.T @ means / n) ** 2).sum(axis=0) / (k - 1)
        within = squares.sum(axis=0) / (n - k)
        constant = self.low == self.high
        if constant.any():
            told = f"Features {np.flatnonzero(constant)} are constant."
            warnings.warn(told, UserWarning, stacklevel=2)
        values = np.where(constant, np.nan, between / within)
        return values, special.fdtrc(k - 1, n - k, values)


@dataclass(frozen=True)
class Correlation:
    """`f_regression`: sums of columns with the target, and of the target with itself.

    Attributes
    ----------
    rows : int
    features, target : ColumnSums
    low, high : ndarray of shape (d + 1,)
        Of constant columns, the target last, the sums are rounding, and these are equal.
    """

    rows: int
    features: ColumnSums
    target: ColumnSums
    low: Array
    high: Array

    @staticmethod
    def of(X: Any, y: Any) -> Correlation:
        """Of one block."""
        y = np.asarray(column_or_1d(y), np.float64)[:, None]
        beside = {"targets": y, "weights": np.ones_like(y)}
        X = check_array(X, accept_sparse="csr", dtype=np.float64)
        features, target = block_sums(Block(X, beside)), block_sums(Block(y, beside))
        low, high = map(np.append, column_range(X), column_range(y))
        return Correlation(len(y), features, target, low, high)

    def __add__(self, other: Correlation) -> Correlation:
        return Correlation(
            self.rows + other.rows,
            self.features + other.features,
            self.target + other.target,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )

    def scores(self) -> tuple[Any, Any]:
        """F values of least squares with one column, and p values; finite, as by default.

        Columns that are constant get 0 and 1, those that fit exactly the largest number.
        """
        constant = self.low == self.high
        norms = np.sqrt(self.features.squares) * np.sqrt(self.target.squares)
        norms[constant[:-1] | constant[-1]] = np.nan
        with np.errstate(divide="ignore", invalid="ignore"):
            squared = np.nan_to_num(self.features.cross[:, 0] / norms, nan=0.0) ** 2
            squared = np.minimum(squared, 1.0)  # above by rounding, F would be negative
            values = squared / (1.0 - squared) * (self.rows - 2)
            chances = stats.f.sf(values, 1, self.rows - 2)
        unknown = np.isnan(values)
        largest = np.finfo(np.float64).max
        return (
            np.nan_to_num(values, nan=0.0, posinf=largest, neginf=largest),
            np.where(unknown, 1.0, chances),
        )


@dataclass(frozen=True)
class Frequencies:
    """`chi2`: sums of each class, or label.

    Attributes
    ----------
    classes : ndarray of shape (k,)
        In order.
    rows : ndarray of shape (k,)
    sums : ndarray of shape (k, d)
    count : int
    total : ndarray of shape (d,)
        Of all rows: one may have several labels, or none.
    """

    classes: Any
    rows: Array
    sums: Array
    count: int
    total: Array

    @staticmethod
    def of(X: Any, y: Any) -> Frequencies:
        """Of one block; no value may be negative."""
        X = check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32))
        if ((X.data if sp.issparse(X) else X) < 0).any():
            raise InputError("Input X must be non-negative: `chi2` is about counts.")
        binarizer = LabelBinarizer().fit(y)  # refuses what is neither
        n, classes = X.shape[0], binarizer.classes_
        if binarizer.y_type_ == "multilabel-indicator":
            member = sp.csr_array(y, dtype=np.float64).T
        else:
            classes, codes = np.unique(column_or_1d(y), return_inverse=True)
            shape = (len(classes), n)
            member = sp.csr_array((np.ones(n), (codes, np.arange(n))), shape=shape)
        sums = member @ X
        dense = sums.toarray() if sp.issparse(sums) else np.asarray(sums)
        rows, total = member.sum(axis=1), np.ravel(X.sum(axis=0, dtype=np.float64))
        return Frequencies(classes, rows, dense, n, total)

    def __add__(self, other: Frequencies) -> Frequencies:
        ours, theirs = (self.rows, self.sums), (other.rows, other.sums)
        classes, a, b = united(self.classes, ours, other.classes, theirs)
        count, total = self.count + other.count, self.total + other.total
        return Frequencies(classes, a[0] + b[0], a[1] + b[1], count, total)

    def scores(self) -> tuple[Any, Any]:
        """Pearson's chi-squared statistics, and their p values."""
        # scikit-learn has a second class, of no rows, where there is one only
        lacking = max(2 - len(self.classes), 0)
        rows = np.pad(self.rows, (0, lacking))
        sums = np.pad(self.sums, ((0, lacking), (0, 0)))
        expected = np.outer(rows / self.count, self.total)
        with np.errstate(invalid="ignore"):
            values = ((sums - expected) ** 2 / expected).sum(axis=0)
        return values, special.chdtrc(len(rows) - 1, values)


SCORES: Mapping[Any, Any] = MappingProxyType(
    {f_classif: Variation, f_regression: Correlation, chi2: Frequencies}
)
"""The sums behind each score function of scikit-learn that blocks can be merged for."""
