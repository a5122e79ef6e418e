"""Means of columns, and what of least squares is a vector, in one pass over the rows.

Every block is centred on its own means, and blocks are merged by the formula for pairs of
samples: no digits are lost however far from zero the data lie.

Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample
variances", 1979, equations (2.1).

Shapes: ``X`` (n, d), targets (n, T), row weights ``s`` (n,).
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlopt.gd.sizes import PIECE
from mlopt.kernels.moments import moments
from mlopt.prices import count
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]

_THIN = count("pass.thin")
FAR = 1e4
"""Squares of means against variances: columns beyond are centred, for their digits."""


@dataclass(frozen=True)
class ColumnSums:
    """Weighted sums over rows, about their own means.

    Attributes
    ----------
    weight : float
        Sum of the row weights.
    mean : ndarray of shape (d + T,)
        Weighted means of features and targets.
    cross : ndarray of shape (d, T)
        ``(X - mean)' S (y - mean)``.
    squares : ndarray of shape (d,)
        Weighted sums of squares of the centred features.
    spread : ndarray of shape (T,)
        Weighted sums of squares of the centred targets.
    """

    weight: float
    mean: Array
    cross: Array
    squares: Array
    spread: Array

    def __add__(self, other: ColumnSums) -> ColumnSums:
        weight = self.weight + other.weight
        if not weight:
            return self
        part, step = other.weight / weight, other.mean - self.mean
        d, between = len(self.squares), self.weight * part
        return ColumnSums(
            weight,
            self.mean + part * step,
            self.cross + other.cross + between * np.outer(step[:d], step[d:]),
            self.squares + other.squares + between * step[:d] ** 2,
            self.spread + other.spread + between * step[d:] ** 2,
        )

    @staticmethod
    def of(rows: Rows, intercept: bool) -> ColumnSums:
        """One pass over rows with "targets" and "weights" beside them.

        Without an intercept the sums are about zero, and the means are zeros.
        """
        sums: ColumnSums = rows.map_reduce(block_sums, operator.add)
        return sums if intercept else sums._about_zero()

    def _about_zero(self) -> ColumnSums:
        d, weight = len(self.squares), self.weight
        x, y = self.mean[:d], self.mean[d:]
        cross = self.cross + weight * np.outer(x, y)
        squares = self.squares + weight * x**2
        spread = self.spread + weight * y**2
        return ColumnSums(weight, np.zeros_like(self.mean), cross, squares, spread)


def block_sums(block: Block) -> ColumnSums:
    """The sums of one block with "targets" and "weights" beside its rows."""
    weights = block.extra["weights"][:, 0].astype(np.float64)
    targets = block.extra["targets"].astype(np.float64)
    total = float(weights.sum())
    mean = weights @ targets / (total or 1.0)
    centred = targets - mean
    scaled = weights[:, None] * centred
    shift = _shift(block.X)
    sums, squares, products = _moments(block.X, shift, weights, scaled)
    offset = sums / (total or 1.0)
    return ColumnSums(
        total,
        np.concatenate((offset if shift is None else shift + offset, mean)),
        products - np.outer(offset, scaled.sum(axis=0)),
        np.maximum(squares - total * offset**2, 0.0),
        weights @ centred**2,
    )


def _shift(X: Any) -> Array | None:
    """Where dense columns lie, roughly, if that is far from zero."""
    if sp.issparse(X):
        return None
    first = X[: max(PIECE // X.shape[1], 64)].astype(np.float64, copy=False)
    mean = first.mean(axis=0)
    spread = np.einsum("ij,ij->j", first, first) / len(first) - mean**2
    return mean if (mean**2 > FAR * spread).any() else None


def _moments(
    X: Any, shift: Array | None, weights: Array, scaled: Array
) -> tuple[Array, Array, Array]:
    """Of ``X - shift``: weighted sums, those of squares, and products with ``scaled``."""
    n, d = X.shape
    if sp.issparse(X):
        squares = np.asarray(X.multiply(X).T @ weights, np.float64)
        return X.T @ weights, squares, X.T @ scaled
    shift = np.zeros(d) if shift is None else shift
    if scaled.shape[1] <= _THIN:
        return moments(X, shift, weights, scaled)
    sums, squares, _ = moments(X, shift, weights, scaled[:, :0])
    products = np.zeros((d, scaled.shape[1]))
    size = max(PIECE // d, 64)
    for start in range(0, n, size):
        rows = slice(start, start + size)
        products += (X[rows] - shift).T @ scaled[rows]
    return sums, squares, products
