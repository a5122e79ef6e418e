"""What a few rows tell of the passes that methods take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import eigvalsh

from mlopt.cluster import alone
from mlopt.gd.sample import SEED
from mlopt.kernels.one_row import squared_norms
from mlopt.prices import count
from mlopt.rows import Rows
from mlopt.stats import sample_rows

Array = NDArray[np.float64]

_VALUES, _ROWS = count("look.values"), count("look.rows")


@dataclass(frozen=True)
class Look:
    """Of ``m`` rows.

    Attributes
    ----------
    length : float
        Their mean squared length.
    alike : float
        The mean squared product of two of them, over the square of ``length``: of the Gram
        matrix of all rows, the sum of the squared eigenvalues over the square of their sum.
        It is one over the number of directions in which rows lie, if these are equal.
    least : float
        The least of the ``min(m, d)`` eigenvalues that the Gram matrix of these rows,
        divided by m, may have.
    centred_length, centred_least : float
        The same of rows less their mean, which an intercept takes away: of fewer rows than
        columns it is 0. Of more, dense ones, of which fewer are looked at, it is the least
        that is left.
    scaled_alike, scaled_least : float
        The same of columns divided by the root of their mean squares, and the eigenvalue
        by the mean squared length: all that counts where columns go one by one.
    spread : float
        The standard deviation of the logarithms, to base 10, of these roots.
    rare : float
        The share of the rarest class among all rows; 0.5 in regression.
    """

    length: float
    alike: float
    least: float
    centred_length: float
    centred_least: float
    scaled_alike: float
    scaled_least: float
    spread: float
    rare: float = 0.5

    @staticmethod
    def of(rows: Rows, rare: float = 0.5) -> Look:
        """Look at a few hundred rows at most."""
        size = min(max(_VALUES * rows.n // max(rows.nonzero, 1), 1), _ROWS)
        X = rows.pick(sample_rows(rows.lengths, size, SEED)).astype(np.float64)
        squares = _by_column(X) / max(1, X.shape[0])
        length = float(squares.sum())
        if X.shape[0] < 2 or not 0.0 < length < np.inf:
            return Look(length, 1.0, 0.0, length, 0.0, 1.0, 0.0, 0.0, rare)
        roots = np.sqrt(squares)
        inverse = np.divide(1.0, roots, where=roots > 0, out=np.zeros_like(roots))
        with alone(briefly=True):  # threads of BLAS would wait for each other at each row
            plain, scaled = _Gram.of(X), _Gram.of(_scaled(X, inverse))
            middle = plain.centred(X, left=rows.n > rows.d and not rows.sparse)
            return Look(
                length, plain.alike, length * plain.least,
                length * middle.length, length * middle.least, scaled.alike, scaled.least,
                float(np.log10(roots[roots > 0]).std()), rare,
            )  # fmt: skip


@dataclass(frozen=True)
class _Gram:
    """The smaller Gram matrix of rows of mean squared length 1: both share what is asked.

    Parameters
    ----------
    products : ndarray of shape (min(m, d), min(m, d))
        Divided by m.
    squares : ndarray of shape (m,)
        Lengths of rows.
    scale : float
        By which products of the rows were divided.
    wide : bool
        Of rows with each other, not of columns.
    lost : int
        How many of its eigenvalues count for nothing, which are 0.
    singular : bool
        Whether one that counts is 0.
    """

    products: Array
    squares: Array
    scale: float
    wide: bool
    lost: int = 0
    singular: bool = False

    @staticmethod
    def of(X: Any) -> _Gram:
        """Of X (m, d), dense or sparse."""
        sparse, (m, d) = sp.issparse(X), X.shape
        squares = squared_norms(X)
        products = X @ X.T if m <= d else X.T @ X
        gram = np.asarray(products.toarray() if sparse else products)
        length = float(squares.mean())
        return _Gram(gram / (m * length), squares / length, length, m <= d)

    def centred(self, X: Any, *, left: bool) -> _Gram:
        """Of the same rows less their mean; without the 0 that gives, if others are
        ``left``."""
        gram = self.products
        if self.wide:
            means = gram.mean(axis=0)
            gram = gram - means - means[:, None] + means.mean()
        else:
            mean = np.asarray(X.mean(axis=0)).ravel() / np.sqrt(self.scale)
            gram = gram - np.outer(mean, mean)
        lost = int(left and self.wide)
        return replace(self, products=gram, lost=lost, singular=self.wide > lost)

    @property
    def length(self) -> float:
        """The mean squared length."""
        return max(float(np.trace(self.products)), 0.0)

    @property
    def alike(self) -> float:
        """See `Look`."""
        m = len(self.squares)
        others = np.square(m * self.products).sum() - np.square(self.squares).sum()
        return float(others) / (m * (m - 1))

    @property
    def least(self) -> float:
        """The least eigenvalue."""
        if self.singular:
            return 0.0
        where = [self.lost, self.lost]
        one = eigvalsh(self.products, subset_by_index=where, check_finite=False)
        return float(one[0])


def _by_column(X: Any) -> Array:
    """Sums of squares, dense or CSR."""
    if not sp.issparse(X):
        return np.asarray(np.square(X).sum(axis=0))
    return np.asarray(np.bincount(X.indices, np.square(X.data), minlength=X.shape[1]))


def _scaled(X: Any, columns: Array) -> Any:
    """``X`` with its columns multiplied, dense or CSR: SciPy would look for them as COO."""
    if not sp.issparse(X):
        return X * columns
    return sp.csr_array((X.data * columns[X.indices], X.indices, X.indptr), X.shape)


def rarest(counts: NDArray[Any]) -> float:
    """The share of the rarest of the classes of which there are any, (K,) rows each."""
    found = counts[counts > 0]
    return float(found.min() / found.sum())
