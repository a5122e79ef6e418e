"""Least squares block by block of features: Gauss-Seidel with the residual kept.

::

    for each block of columns Z_b, centred:        R = Y - Z W, beside the rows
        (Z_b' Z_b + alpha I) step = Z_b' R - alpha W_b
        W_b += step;  R -= Z_b step

One block of features exists at a time, generated once a visit and kept beside its rows, or
generated twice and never stored. Errors of a factor slow the sweeps down, but do not move
where they lead.

KeystoneML (Sparks et al., ICDE 2017), Table I, "Block solve": ``i n d (b + k)`` operations
in ``i`` sweeps.

Shapes: ``X`` (n, d), ``D`` features in blocks of ``b``, ``k`` targets.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import between_passes
from mlopt.gd.gram_inverse import GramInverse, factorise
from mlopt.pipeline.library.learning.feature_blocks import (
    Features,
    Part,
    column_blocks,
    drop_features,
    first_mean,
    keep_features,
    panels,
)
from mlopt.pipeline.library.moments import Summed
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Keeping:
    """What stays in memory during a fit.

    Attributes
    ----------
    features : bool
        One block of features between its two uses.
    factors : bool
        The factors of all blocks from sweep to sweep.
    """

    features: bool
    factors: bool


class BlockDescent:
    """Minimises ``||S^(1/2) (Y - Z W - b)||^2 + alpha ||W||^2``, sweep by sweep.

    Parameters
    ----------
    rows : Rows
        With "targets" (n, k) and the roots of the row weights S, "root" (n, 1), beside
        them.
    features : Features
        Fitted; what makes Z.
    size : int
        Columns of a block.
    alphas : ndarray of shape (k,)
    weight : float
        Sum of the row weights.
    mean : ndarray of shape (k,), or None
        Weighted means of the targets; None for no intercept.
    keeping : Keeping

    Attributes
    ----------
    coef : ndarray of shape (D, k), float64
    means : ndarray of shape (D,), float64
        Weighted means of the features; zeros without an intercept.
    passes : int
        Sweeps so far.
    """

    def __init__(
        self,
        rows: Rows,
        features: Features,
        size: int,
        alphas: Array,
        weight: float,
        mean: Array | None,
        keeping: Keeping,
    ) -> None:
        D = features.n_features_out_
        self.coef, self.means = np.zeros((D, len(alphas))), np.zeros(D)
        self.passes = 0
        self._centred, self._weight = mean is not None, weight
        start = np.zeros(len(alphas)) if mean is None else mean
        self._start, self._alphas = start, alphas
        self._rows = rows.compute_beside(_residual, start)
        self._features, self._keeping = features, keeping
        self._blocks = column_blocks(D, size)
        self._factors: dict[int, GramInverse] = {}
        self._after: Callable[[], Rows] | None = None

    @property
    def dtype(self) -> Any:
        """Of the rows."""
        return self._rows.dtype

    @property
    def intercept(self) -> Array:
        """The intercepts (k,): the plane goes through the means."""
        return np.asarray(self._start - self.means @ self.coef)

    def advance(self, passes: int) -> None:
        """Sweep so many times over all blocks."""
        with between_passes():
            for _ in range(passes):
                for number in range(len(self._blocks)):
                    self._visit(number)
                self.passes += 1

    def _visit(self, number: int) -> None:
        if self._after is not None:
            self._rows, self._after = self._after(), None
        columns = self._blocks[number]
        where = self._rows.executor
        part = where.put(self._features.columns(columns.start, columns.stop))
        shift = self._shift(columns, part)
        rows = self._rows
        if self._keeping.features:
            rows = rows.compute_beside(keep_features, part, shift)
        new = number not in self._factors
        sums: _Normal = rows.map_reduce(_normal, operator.add, part, shift, new)
        offset = sums.sums / self._weight if self._centred else 0.0 * sums.sums
        if new:
            inverse = factorise(sums.centred_gram(offset, self._weight), self._alphas)
        else:
            inverse = self._factors[number]
        if self._keeping.factors:
            self._factors[number] = inverse
        cross = sums.cross - np.outer(offset, sums.residual)
        right = cross - self._alphas * self.coef[columns]
        step = inverse(right, np.arange(len(self._alphas)))
        self.coef[columns] += step
        self.means[columns] = shift + offset
        # After the last visit of all nobody asks for the residual.
        self._after = partial(rows.compute_beside, _subtract, part, shift, offset, step)

    def _shift(self, columns: slice, part: Any) -> Array:
        """What is taken off the features at once: near their means, so that digits stay."""
        if self._centred and self.passes == 0:
            found: Array = self._rows.first(first_mean, part)
            return found
        return self.means[columns]


@dataclass(frozen=True)
class _Normal(Summed):
    """Sums over rows of shifted features z and residuals r, with weights s.

    Attributes
    ----------
    gram : ndarray of shape (b, b), or (0, 0) where it is known
        ``sum s z z'``.
    cross : ndarray of shape (b, k)
        ``sum s z r'``.
    sums, residual : ndarray of shape (b,), (k,)
        ``sum s z`` and ``sum s r``.
    """

    gram: NDArray[Any]
    cross: Array
    sums: Array
    residual: Array

    def centred_gram(self, offset: Array, weight: float) -> NDArray[Any]:
        """The Gram matrix about means that are ``offset`` from zero."""
        if not offset.any():
            return self.gram
        root = (offset * np.sqrt(weight)).astype(self.gram.dtype)
        return np.asarray(self.gram - np.outer(root, root))


def _residual(block: Block, mean: Array) -> dict[str, NDArray[Any]]:
    targets = block.extra["targets"]
    return {"residual": (targets - mean).astype(block.X.dtype)}


def _normal(block: Block, part: Part, shift: Array, wanted: bool) -> _Normal:
    root, residual = block.extra["root"], block.extra["residual"]
    weighted = bool((root != 1.0).any())
    b, k = len(shift), residual.shape[1]
    gram = np.zeros((b, b) if wanted else (0, 0), block.X.dtype)
    cross, sums, total = np.zeros((b, k)), np.zeros(b), np.zeros(k)
    for rows, Z in panels(block, part, shift):
        right = residual[rows]
        if weighted:
            Z, right = Z * root[rows], right * root[rows]
        gram, product = _added(gram, Z) if wanted else gram, Z.T @ right
        cross += product
        ones = root[rows, 0]
        sums += ones @ Z
        total += ones @ right
    return _Normal(gram, cross, sums, total)


def _added(gram: NDArray[Any], Z: NDArray[Any]) -> NDArray[Any]:
    """``gram + Z' Z``; BLAS makes one half of the product of a matrix with itself."""
    product: NDArray[Any] = np.dot(Z.T, Z)
    product += gram
    return product


def _subtract(
    block: Block, part: Part, shift: Array, offset: Array, step: Array
) -> dict[str, NDArray[Any]]:
    """The residual after a step; features that were kept are let go."""
    residual = block.extra["residual"].copy()
    dtype = residual.dtype
    taken, step = (offset @ step).astype(dtype), step.astype(dtype)
    for rows, Z in panels(block, part, shift):
        residual[rows] -= Z @ step - taken
    return {"residual": residual, **drop_features(block)}
