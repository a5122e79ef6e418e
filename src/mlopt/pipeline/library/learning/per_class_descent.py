"""Least squares with weights of rows that differ from class to class, block by block.

The problem of class c weighs row i by

    s_ic = (1 - w) / n + w / n_c [i is of class c]

so every class has a Gram matrix of its own, which is a mixture of that of all rows and
that of its rows. One pass over the rows makes all of them for a block of features, for each
row is of one class: no more operations than for one.

KeystoneML, `PerClassWeightedLeastSquares`.

Shapes: ``D`` features in blocks of ``b``, ``K`` classes.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import between_passes
from mlopt.gd.gram_inverse import factorise
from mlopt.pipeline.library.learning.feature_blocks import (
    Features,
    Part,
    column_blocks,
    first_mean,
    panels,
)
from mlopt.pipeline.library.moments import Summed
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Mixture:
    """How rows are weighed.

    Attributes
    ----------
    weight : float
        Of a class by itself, w; the rest is that of all rows.
    counts : ndarray of shape (K,)
        Rows of each class.
    """

    weight: float
    counts: NDArray[np.intp]

    def mixed(self, sums: NDArray[Any]) -> Array:
        """Weighted means (K, ...), one for each class, from sums over its rows (K, ...)."""
        own = self.counts.reshape(-1, *[1] * (sums.ndim - 1))
        of_all = sums.sum(axis=0) / self.counts.sum()
        return np.asarray((1.0 - self.weight) * of_all + self.weight * sums / own)


class PerClassDescent:
    """Minimises ``sum_i s_ic (y_ic - w_c z_i - b_c)^2 + alpha ||w_c||^2`` for every c.

    Parameters
    ----------
    rows : Rows
        With "signs" (n, K), 1 and -1, and "codes" (n,) of the classes beside them.
    features : Features
        Fitted.
    size : int
        Columns of a block.
    alphas : ndarray of shape (K,)
    mixture : Mixture
    intercept : bool

    Attributes
    ----------
    coef : ndarray of shape (D, K)
    means : ndarray of shape (K, D)
        Weighted means of the features; zeros without an intercept.
    """

    def __init__(
        self,
        rows: Rows,
        features: Features,
        size: int,
        alphas: Array,
        mixture: Mixture,
        intercept: bool,
    ) -> None:
        D, K = features.n_features_out_, len(alphas)
        self.coef, self.means = np.zeros((D, K)), np.zeros((K, D))
        self._features, self._alphas, self._mixture = features, alphas, mixture
        self._intercept, self._blocks = intercept, column_blocks(D, size)
        # Of the targets of class c, 1 in its own rows and -1 in all others.
        signs = 2.0 * np.diag(mixture.counts) - mixture.counts[:, None]
        self._start = np.diagonal(mixture.mixed(signs)) * float(intercept)
        self._rows = rows.compute_beside(_residual, self._start)

    @property
    def dtype(self) -> Any:
        """Of the rows."""
        return self._rows.dtype

    @property
    def intercept(self) -> Array:
        """The intercepts (K,)."""
        return np.asarray(self._start - np.einsum("kd,dk->k", self.means, self.coef))

    def advance(self, passes: int) -> None:
        """Sweep so many times over all blocks."""
        with between_passes():
            for _ in range(passes):
                for columns in self._blocks:
                    self._visit(columns)

    def _visit(self, columns: slice) -> None:
        part = self._rows.executor.put(self._features.columns(columns.start, columns.stop))
        shift = np.zeros(columns.stop - columns.start)
        if self._intercept:
            shift = self._rows.first(first_mean, part)
        K = len(self._alphas)
        sums: _Sums = self._rows.map_reduce(_sums, operator.add, part, shift, K)
        offset = self._mixture.mixed(sums.features) * float(self._intercept)
        residual = np.diagonal(self._mixture.mixed(sums.residual))
        of_all = sums.gram.sum(axis=0)
        step = np.empty((len(shift), K))
        for c in range(K):
            gram = self._one(of_all, sums.gram[c], c) - np.outer(offset[c], offset[c])
            cross = self._one(sums.cross[:, :, c].sum(axis=0), sums.cross[c, :, c], c)
            right = (
                cross - offset[c] * residual[c] - self._alphas[c] * self.coef[columns, c]
            )
            inverse = factorise(gram, self._alphas[c : c + 1])
            step[:, c] = inverse(right[:, None], np.arange(1))[:, 0]
        self.coef[columns] += step
        self.means[:, columns] = (shift + offset) * float(self._intercept)
        self._rows = self._rows.compute_beside(_subtract, part, shift, offset, step)

    def _one(self, of_all: NDArray[Any], own: NDArray[Any], c: int) -> NDArray[Any]:
        """The weighted mean for class c, from sums over all rows and over its own."""
        counts, weight = self._mixture.counts, self._mixture.weight
        of_all = float((1.0 - weight) / counts.sum()) * of_all
        return np.asarray(of_all + float(weight / counts[c]) * own)


@dataclass(frozen=True)
class _Sums(Summed):
    """Sums over the rows of each class: of z z' (K, b, b), z r' (K, b, K), z and r."""

    gram: NDArray[Any]
    cross: Array
    features: Array
    residual: Array


def _residual(block: Block, start: Array) -> dict[str, NDArray[Any]]:
    return {"residual": (block.extra["signs"] - start).astype(block.X.dtype)}


def _sums(block: Block, part: Part, shift: Array, K: int) -> _Sums:
    b = len(shift)
    found = _Sums(
        np.zeros((K, b, b), block.X.dtype),
        np.zeros((K, b, K)),
        np.zeros((K, b)),
        np.zeros((K, K)),
    )
    for rows, Z in panels(block, part, shift):
        codes, residual = block.extra["codes"][rows], block.extra["residual"][rows]
        for c in np.unique(codes):
            own, left = Z[codes == c], residual[codes == c]
            found.gram[c] += np.dot(own.T, own)
            found.cross[c] += own.T @ left
            found.features[c] += own.sum(axis=0, dtype=np.float64)
            found.residual[c] += left.sum(axis=0, dtype=np.float64)
    return found


def _subtract(
    block: Block, part: Part, shift: Array, offset: Array, step: Array
) -> dict[str, NDArray[Any]]:
    residual = block.extra["residual"].copy()
    dtype = residual.dtype
    taken = np.einsum("kb,bk->k", offset, step).astype(dtype)
    for rows, Z in panels(block, part, shift):
        residual[rows] -= Z @ step.astype(dtype) - taken
    return {"residual": residual}
