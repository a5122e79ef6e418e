"""Kernel ridge regression block by block of kernel columns, which are made when needed.

::

    for each block B of training rows:             F = K A
        (K_BB + alpha I) step = Y_B - F_B - alpha A_B
        A_B += step;  F += K[:, B] step

That is Gauss-Seidel on ``(K + alpha I) A = Y``, which converges for every positive alpha,
if slowly: after each sweep the last few are mixed so that they would have moved least.
Only a panel of rows of the columns K[:, B] exists at a time, unless all of K is kept.

Tu, Roelofs, Venkataraman, Recht, "Large scale kernel learning using block coordinate
descent", 2016; KeystoneML's `KernelRidgeRegression`. Walker, Ni, "Anderson acceleration for
fixed-point iterations", SIAM J. Numer. Anal. 49, 2011: for linear problems, GMRES.

Shapes: ``n`` rows, ``b`` of a block, ``k`` targets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances

from mlopt.cluster import between_passes
from mlopt.gd.gram_inverse import GramInverse, factorise
from mlopt.pipeline.library.learning.feature_blocks import (
    by_panels,
    column_blocks,
    panel_rows,
)
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]

_MEMORY = 12
"""Sweeps that are mixed."""


class KernelDescent:
    """Solves ``(K + alpha I) A = Y`` for a gaussian kernel, sweep by sweep.

    Parameters
    ----------
    rows : Rows
        The training rows.
    targets : ndarray of shape (n, k), float64
    gamma, alpha : float
        Both positive.
    size : int
        Rows of a block.
    kept : bool
        Whether kernel columns stay beside the rows after their first use.

    Attributes
    ----------
    dual : ndarray of shape (n, k), float64
        The coefficients A.
    passes : int
        Sweeps so far.
    residual : float
        Norm of ``Y - (K + alpha I) A`` over that of Y, as the last sweep met it.
    """

    def __init__(
        self,
        rows: Rows,
        targets: Array,
        gamma: float,
        alpha: float,
        size: int,
        kept: bool,
    ) -> None:
        self.dual, self.passes, self.residual = np.zeros_like(targets), 0, np.inf
        self._images = np.zeros_like(targets)
        self._targets, self._gamma, self._alpha = targets, gamma, alpha
        self._rows, self._kept = rows, kept
        self._blocks = column_blocks(rows.n, size)
        self._factors: dict[int, GramInverse] = {}
        self._history: list[tuple[Array, Array]] = []

    def advance(self, passes: int, tol: float = 0.0) -> None:
        """Sweep so many times over all blocks, or until the residual is below ``tol``."""
        size = float(np.linalg.norm(self._targets)) or 1.0
        with between_passes():
            for _ in range(passes):
                before = self._point()
                squares = [self._visit(number) for number in range(len(self._blocks))]
                self.passes += 1
                self.residual = float(np.sqrt(sum(squares))) / size
                if self.residual <= tol:
                    return
                self._mix(before)

    def _point(self) -> Array:
        """A and F of this moment: one is linear in the other, and so they are mixed."""
        return np.stack((self.dual, self._images))

    def _mix(self, before: Array) -> None:
        """Go where the last sweeps, in the right proportion, would have moved least."""
        after = self._point()
        self._history = [*self._history[-_MEMORY:], (after - before, after)]
        if len(self._history) < 2:
            return
        moves, ends = zip(*self._history, strict=True)
        apart = [moves[i + 1][0] - moves[i][0] for i in range(len(moves) - 1)]
        steps = [ends[i + 1] - ends[i] for i in range(len(ends) - 1)]
        matrix = np.stack([one.ravel() for one in apart], axis=1)
        shares = np.linalg.lstsq(matrix, moves[-1][0].ravel(), rcond=1e-12)[0]
        mixed = after - sum(share * step for share, step in zip(shares, steps, strict=True))
        self.dual, self._images = mixed[0].copy(), mixed[1].copy()

    def _visit(self, number: int) -> float:
        """Solve for one block; the squared norm of what was left of its equations."""
        own, where = self._blocks[number], self._rows.executor
        left = self._targets[own] - self._images[own] - self._alpha * self.dual[own]
        inverse, columns = self._factors.get(number), None
        if inverse is None:
            support = self._rows.take(np.arange(own.start, own.stop))
            columns = where.put(support)
            if self._kept:
                self._rows = self._rows.compute_beside(_keep, columns, self._gamma, number)
            kernel = gaussian(support, support, self._gamma).astype(np.float64)
            inverse = factorise(kernel, np.full(left.shape[1], self._alpha))
            if self._kept:
                self._factors[number] = inverse
        step = inverse(left, np.arange(left.shape[1]))
        self.dual[own] += step
        parts = self._rows.map(_product, columns, step, self._gamma, number)
        self._images += np.concatenate(parts)
        return float(np.square(left).sum())


def gaussian(X: Any, Y: Any, gamma: float) -> NDArray[Any]:
    """``exp(-gamma |x - y|^2)`` of all pairs of dense or CSR rows, in their dtype."""
    squares: NDArray[Any] = euclidean_distances(X, Y, squared=True)
    squares *= -gamma
    return np.asarray(np.exp(squares, out=squares))


def kernel_scores(X: Any, support: Any, dual: Array, gamma: float) -> NDArray[Any]:
    """``K(X, support) @ dual`` of shape (n, k), a panel of each at a time."""
    out = np.zeros((X.shape[0], dual.shape[1]), X.dtype)
    blocks = column_blocks(support.shape[0], _SUPPORT)

    def add(rows: slice) -> None:
        for own in blocks:
            panel = gaussian(X[rows], support[own], gamma)
            out[rows] += panel @ dual[own].astype(out.dtype, copy=False)

    by_panels(add, len(out), panel_rows(blocks[0].stop, out.itemsize))
    return out


_SUPPORT = 4096
"""Columns of a kernel that exist at a time when it is applied."""


def _keep(block: Block, support: Any, gamma: float, number: int) -> dict[str, Any]:
    return {f"kernel {number}": gaussian(block.X, support, gamma)}


def _product(
    block: Block, support: Any, step: Array, gamma: float, number: int
) -> NDArray[Any]:
    """``K(block, support) @ step``; the columns of K are beside the rows, or made."""
    kept = block.extra.get(f"kernel {number}")
    if kept is not None:
        return np.asarray(kept @ step.astype(kept.dtype))
    out = np.empty((block.rows, step.shape[1]))
    size = panel_rows(len(step), block.X.dtype.itemsize)
    for start in range(0, block.rows, size):
        panel = gaussian(block.X[start : start + size], support, gamma)
        out[start : start + size] = panel @ step.astype(panel.dtype)
    return out
