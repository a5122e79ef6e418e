"""Few rows of many columns, seen in their own space: as many columns as there are rows.

With an L2 penalty a minimum is a combination of rows. Rows are ``X = t m' + P`` with m of
length 1 and all of P at right angles to it. With ``P P' = F F'`` and a w of the same
length as ``(u, v)``, the margins ``X w`` are ``t u + F v``: the same problem, with the rows
of ``(t, F)``. The length of a gradient is the same, too.

Products of rows lose the digits that these have in common, and the factor half of what is
left. So m is the direction of their mean: of what is far from zero nothing is left in P.
Rows that depend on others, but for rounding, need no columns of their own.

Chapelle, "Training a support vector machine in the primal", Neural Computation 19, 2007.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dpstrf

from mlopt.gd.plans.dual_cholesky import Dense, row_products
from mlopt.gd.pricing import Shape
from mlopt.gd.sample import local_executor
from mlopt.kernels.one_row import products
from mlopt.rows import Rows

Array = NDArray[np.float64]

_ROUNDED = float(np.finfo(np.float64).eps)
"""Of a row's product with itself, for each row: what rounding makes of one that depends on
others (Higham, Accuracy and Stability of Numerical Algorithms, section 10.3.2)."""
_LOST = 100.0
"""Times as much that products may lose to their mean: a digit of margins."""


@dataclass(frozen=True, eq=False)
class RowSpace:
    """Rows in their own space.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, d)
    mean : ndarray of shape (d,)
        Direction of the mean of all rows, of length 1; or zeros.
    along : ndarray of shape (n,)
        Of each row in that direction.
    order : ndarray of shape (n,), int
        Of rows; the first r depend on no others.
    lengths : ndarray of shape (n,)
        Of what is at right angles to the mean, in this order.
    factor : ndarray of shape (n, r)
        Of its directions, in this order: the first r rows are a lower triangle.
    """

    X: Any
    mean: Array
    along: Array
    order: NDArray[np.intp]
    lengths: Array
    factor: Array

    @classmethod
    def of(cls, rows: Rows) -> RowSpace:
        """Of rows that come into one block of this process."""
        (X,) = rows.in_one_block(must=True).map(lambda block: block.X)
        mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
        mean = mean / (np.linalg.norm(mean) or 1.0)
        along = products(X, mean)
        return cls(X, mean, along, *_factor(X, mean, along))

    def rows(self, rows: Rows, dtype: Any = np.float64) -> Rows:
        """These, where ``rows`` can be in this process; nothing is beside them."""
        n, rank = self.factor.shape
        inside = np.empty((n, rank + 1), dtype)
        inside[:, 0] = self.along
        inside[self.order, 1:] = self.lengths[:, None] * self.factor
        return Rows.of(inside, executor=local_executor(rows))

    def inside(self, coef: Array) -> Array:
        """Weights (T, d) as they are here, (T, r + 1)."""
        u = coef @ self.mean
        z = (self.X @ (coef - np.outer(u, self.mean)).T)[self.order] / self.lengths[:, None]
        rank = self.factor.shape[1]
        v = solve_triangular(self.factor[:rank], z[:rank], lower=True)
        return np.column_stack([u, v.T])

    def outside(self, found: Array) -> Array:
        """Weights (T, r + 1) of these rows as weights of all columns, (T, d)."""
        u, v, rank = found[:, 0], found[:, 1:], self.factor.shape[1]
        own = solve_triangular(self.factor[:rank], v.T, lower=True, trans="T")
        dual = np.zeros((len(self.order), len(u)))
        dual[self.order[:rank]] = own / self.lengths[:rank, None]
        coef = np.asarray((self.X.T @ dual).T)
        for _ in range(2):  # the first leaves the rounding of what it takes away
            coef = coef + np.outer(u - coef @ self.mean, self.mean)
        return coef


def _factor(X: Any, mean: Array, along: Array) -> tuple[NDArray[np.intp], Array, Array]:
    n, gram = len(along), row_products(X)
    least, rounded = gram.diagonal() / _LOST, _LOST * _ROUNDED
    gram -= np.outer(along, along)
    if least.sum() > gram.trace():
        whole = X.tocsc() if sp.issparse(X) else X
        gram = Dense(whole, mean, along=along[:, None]).gram()
        least, rounded = np.zeros(n), _ROUNDED
    lengths = np.sqrt(np.maximum(np.asarray_chkfinite(gram.diagonal()), least))
    lengths[lengths == 0.0] = 1.0
    gram /= lengths
    gram /= lengths[:, None]
    # They add up to nothing, so that one of them depends on all others: often that is all.
    order = np.roll(np.arange(n), -1 - int(np.argmax(lengths)))
    first, last = order[:-1], order[-1]
    found, failed = dpotrf(gram[np.ix_(first, first)].T, lower=1, clean=1, overwrite_a=1)
    if not failed and found.diagonal().min(initial=1.0) ** 2 > n * rounded:
        rest = solve_triangular(found, gram[first, last], lower=True)
        return order, lengths[order], np.vstack([found, rest])
    found, order, rank, _ = dpstrf(gram, tol=n * rounded, lower=1, overwrite_a=1)
    order = order.astype(np.intp) - 1
    return order, lengths[order], np.tril(found)[:, :rank]


def gradient_bound(rows: Rows, largest: float) -> float:
    """Below which no component of a gradient here may be, for those of all columns.

    None of these is larger than its length.
    """
    return largest / float(np.sqrt(rows.n))


def square_of(shape: Shape) -> Shape:
    """That of rows in their own space."""
    n = shape.n
    return replace(shape, d=n, nonzero=n * n, sparse=False, itemsize=8, blocks=1)
