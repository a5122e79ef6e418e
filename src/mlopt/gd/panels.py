"""Rows of least squares as dense panels ``sqrt(weight) * [1 | X - shift | y - shift]``.

Both exact solvers read a block through these panels; they differ in what they sum. The
column of ones carries the intercept: eliminating it centres the others on their weighted
means, in one pass and without centring sparse data in place.

The shift is a vector near the means, the same for every row. It changes no result but
keeps digits: with the mean of one block out of N as shift, what is left to eliminate is at
most about N times the variance, however far from zero the data lie.

Shapes: ``X`` is (n, d), ``y`` is (n, T); a panel has ``m = intercept + d + T`` columns.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlopt.cluster import added
from mlopt.gd.column_sums import FAR
from mlopt.gd.sizes import PIECE
from mlopt.kernels.linear import add_gram, mirror
from mlopt.prices import count
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]

_FEWEST = count("panel.rows")


@dataclass(frozen=True)
class Layout:
    """Which columns a panel has.

    Attributes
    ----------
    shift : ndarray of shape (d + T,), float64
        Subtracted from the features and targets; (d,) for panels without targets.
    intercept : bool
        Whether the first column is the one of ones.
    """

    shift: Array
    intercept: bool

    @property
    def columns(self) -> int:
        """Columns of a panel."""
        return len(self.shift) + int(self.intercept)

    @staticmethod
    def of(rows: Rows, outputs: int, intercept: bool, *, shifted: bool = True) -> Layout:
        """The layout for ``rows``; reads the first block when the means are needed.

        Sparse rows that are to stay so are not ``shifted``, but where that adds no value.
        """
        if not intercept:
            return Layout(np.zeros(rows.d + outputs), intercept)
        return Layout(rows.first(_mean) if shifted else _of_stored(rows), intercept)


def _mean(block: Block) -> Array:
    """Weighted mean of the features and targets of one block.

    Rounding never takes it beyond the values: what is constant is exactly zero about it.
    """
    weights = _shares(block)
    return np.concatenate(
        [_within(weights @ part, part) for part in (block.X, block.extra["targets"])]
    )


def _shares(block: Block) -> Array:
    """Weights of the rows (n,) that add up to 1; alike where no row has any."""
    weights = block.extra["weights"][:, 0].astype(np.float64)
    total = float(weights.sum())
    return weights / total if total > 0 else np.full(len(weights), 1.0 / len(weights))


def _of_stored(rows: Rows) -> Array:
    """Means (d + T,) of targets, and of columns far from 0 that all rows store; others: 0.

    Only these would lose digits. Columns with zeros are no further from zero than the root
    of ``n`` deviations.
    """
    shift: Array = rows.first(_far_means)
    if (far := np.flatnonzero(shift[: rows.d])).size:
        stored = rows.map_reduce(_stored, operator.add, far)
        shift[far[stored < rows.n]] = 0.0
    return shift


def _far_means(block: Block) -> Array:
    X, targets = block.X, block.extra["targets"]
    weights, shift = _shares(block), np.zeros(X.shape[1])
    full = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) == block.rows)
    if full.size:
        values = X[:, full].toarray().astype(np.float64, copy=False)
        means = _within(weights @ values, values)
        far = means**2 > FAR * (weights @ (values - means) ** 2)
        shift[full[far]] = means[far]
    return np.concatenate([shift, _within(weights @ targets, targets)])


def _stored(block: Block, columns: NDArray[np.intp]) -> NDArray[np.intp]:
    """How many rows store a value of each of these columns."""
    return np.bincount(block.X.indices, minlength=block.X.shape[1])[columns]


def _within(means: Array, values: Any) -> Array:
    low, high = (_dense(edge(axis=0)).ravel() for edge in (values.min, values.max))
    return np.clip(means, low, high)


def panels(block: Block, layout: Layout, dtype: Any = np.float64) -> Iterator[NDArray[Any]]:
    """The block's rows as panels, one after the other in the same memory.

    Parameters
    ----------
    block : Block
        With "targets" (n, T) and "weights" (n, 1) in its extra arrays.
    layout : Layout
    dtype : dtype, default=float64
        Of the panels.

    Yields
    ------
    ndarray of shape (rows, m)
        Valid until the next one is asked for.
    """
    first, d = int(layout.intercept), block.X.shape[1]
    weighted = bool((block.extra["weights"] != 1.0).any())
    size = panel_rows(layout.columns)
    buffer = np.empty((min(size, block.rows), layout.columns), dtype)
    for start in range(0, block.rows, size):
        part = slice(start, min(start + size, block.rows))
        panel = buffer[: part.stop - part.start]
        panel[:, :first] = 1.0
        np.subtract(
            _dense(block.X[part]), layout.shift[:d], out=panel[:, first : first + d]
        )
        targets = block.extra["targets"][part, : len(layout.shift) - d]
        np.subtract(targets, layout.shift[d:], out=panel[:, first + d :])
        if weighted:
            panel *= np.sqrt(block.extra["weights"][part]).astype(dtype)
        yield panel


def panel_gram(rows: Rows, layout: Layout, dtype: Any = np.float64) -> NDArray[Any]:
    """The Gram matrix of all panels of ``rows``, of shape (m, m)."""
    return mirror(rows.map_reduce(lower_gram, added, layout, dtype))


def lower_gram(block: Block, layout: Layout, dtype: Any = np.float64) -> NDArray[Any]:
    """What one block adds up to the diagonal; zeros above it."""
    m = layout.columns
    total = np.zeros((m, m), dtype)
    for panel in panels(block, layout, dtype):
        add_gram(panel, total)
    return total


def panel_rows(columns: int) -> int:
    """Rows of a panel: about half a megabyte, but enough rows for BLAS to be worth it."""
    return max(PIECE // 2 // columns, _FEWEST, 2 * min(columns, 1024))


def _dense(X: Any) -> Any:
    return X.toarray() if sp.issparse(X) else X
