"""Least squares of many rows as least squares of few: the same objective, d + 1 rows.

::

    X (n, d), y (n,)   ->   R (d, d), z (d,)   and one row of zeros for what no column says

``R`` is what a QR of the weighted, centred rows would give; here it comes from their Gram
matrix by Cholesky's decomposition, pivoted, so that dependent columns do no harm. A path of
penalties then never sees the n rows again.

Row sets share rows, as the training parts of folds do: rows that are in the same sets have
one Gram matrix, and that of a set is the sum of its parts.

Shapes: ``n`` rows, ``d`` columns, of rank ``r``; ``T`` targets, ``S`` row sets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular

from mlopt.gd.plans.by_columns import Columns
from mlopt.gd.plans.column_products import PRODUCTS, Products
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]

_PANEL = 1 << 18
"""Values of a panel of rows in float64, which stays in cache while BLAS reads it."""
_VISITS = 6.0
"""Reads of all columns that a penalty of a path takes at least: rounds, two reads each."""
_FINEST = 1e-8
"""A Gram matrix has half of the digits; who asks for more goes by the rows."""
_SETS = 52
"""Row sets whose combinations are told apart, one bit each."""
_FIRST = 1000
"""Rows whose mean is taken off all, so that what is centred later loses no digits."""


@dataclass(frozen=True, eq=False)
class Part:
    """Rows that are in the same row sets.

    Attributes
    ----------
    member : ndarray of shape (S,), bool
        Which sets. Where sets weigh a row differently each is a part of its own, and rows
        may be in several.
    alone : bool
        Whether it is such a one.
    gram : ndarray of shape (1 + d + T, 1 + d + T)
        Weighted, of ``[1 | X - shift | y]``; empty before `_multiply`.
    """

    member: NDArray[np.bool_]
    alone: bool
    gram: Array


@dataclass(frozen=True, eq=False)
class Condensed:
    """Gram matrices of row sets, by parts."""

    parts: tuple[Part, ...]
    shift: Array

    @staticmethod
    def of(rows: Rows) -> Condensed:
        """Of rows in one block with "targets" and "weights" beside them: one pass."""
        ((parts, shift),) = rows.fold(_look, [None])
        return Condensed(tuple(rows.fold(_multiply, parts, shift)), shift)

    def columns(self, rowset: int, target: int, intercept: bool) -> Columns:
        """The columns of few rows; where there is an intercept they need none."""
        total = np.sum([part.gram for part in self.parts if part.member[rowset]], axis=0)
        d = len(self.shift)
        chosen = np.r_[1 : d + 1, d + 1 + target]
        weight, sums = total[0, 0], total[0, chosen] / total[0, 0]
        gram = total[np.ix_(chosen, chosen)] / weight
        if intercept:
            gram -= np.outer(sums, sums)
            return _few(gram, self.shift + sums[:d], float(sums[d]))
        # About zero: what the shift took off comes back.
        back = np.append(self.shift, 0.0)
        gram += np.outer(sums, back) + np.outer(back, sums) + np.outer(back, back)
        return _few(gram, np.zeros(d), 0.0)


def worth_condensing(n: int, d: int, sets: int, penalties: int, tol: float) -> bool:
    """Whether Gram matrices of dense rows pay for so many penalties on each row set."""
    pays = d / (2.0 * PRODUCTS) <= _VISITS * penalties
    return pays and n >= (sets + 1) * d and tol >= _FINEST


def _look(block: Block, nothing: None) -> tuple[list[Part], Array]:
    """Which rows are in the same sets, and where columns lie."""
    del nothing
    weights = block.extra["weights"]
    inside, most = weights > 0, weights.max(axis=1, keepdims=True)
    sets = weights.shape[1]
    # One number for each combination; a float holds those of so many sets.
    kinds = np.unique(inside @ 2.0 ** np.arange(sets), return_index=True)[1]
    alone = sets > _SETS or len(kinds) > 2 * sets
    alone = alone or bool((weights != most * inside).any())
    members = np.eye(sets, dtype=bool) if alone else inside[kinds]
    parts = [Part(one, alone, np.empty((0, 0))) for one in members if one.any()]
    return parts, np.asarray(block.X[:_FIRST].mean(axis=0, dtype=np.float64))


def _multiply(block: Block, part: Part, shift: Array) -> Part:
    weights, X, Y = block.extra["weights"], block.X, block.extra["targets"]
    c = weights[:, part.member.argmax()].astype(np.float64)
    inside = c > 0 if part.alone else ((weights > 0) == part.member).all(axis=1)
    rows, d, width = np.flatnonzero(inside), X.shape[1], 1 + X.shape[1] + Y.shape[1]
    gram = np.zeros((width, width))
    for some in np.array_split(rows, max(1, len(rows) * width // _PANEL)):
        panel = np.ones((len(some), width))
        panel[:, 1 : d + 1], panel[:, d + 1 :] = X[some] - shift, Y[some]
        panel *= np.sqrt(c[some])[:, None]
        gram += panel.T @ panel
    return replace(part, gram=gram)


def _few(gram: Array, mean: Array, about: float) -> Columns:
    """From the Gram matrix of ``[X | y]``, (d + 1, d + 1), of weights that sum to 1."""
    d = len(mean)
    scale = np.sqrt(np.maximum(gram.diagonal()[:d], 0.0))
    scale[scale == 0] = 1.0
    upper, pivots, rank, _ = lapack.dpstrf(gram[:d, :d] / np.outer(scale, scale))
    order = pivots - 1
    R = np.zeros((rank + 1, d))
    R[:rank, order] = np.triu(upper)[:rank]
    z = np.zeros(rank + 1)
    cross = (gram[:d, d] / scale)[order[:rank]]
    z[:rank] = solve_triangular(upper[:rank, :rank], cross, trans="T")
    z[rank] = np.sqrt(max(float(gram[d, d] - z @ z), 0.0))
    root = np.sqrt(rank + 1.0)  # their weights sum to 1, as those of the many do
    few = np.ascontiguousarray((root * R * scale).T)
    each = np.full(rank + 1, 1.0 / (rank + 1))
    found = Columns(few, root * z, each, mean, about, centred=True)
    found.__dict__["products"] = Products(few, found.uniform, gram[:d, :d])
    return found
