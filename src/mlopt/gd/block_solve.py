"""Least squares block by block of columns: Gauss-Seidel with the residual kept.

For matrices too wide for a Gram matrix of all columns. Every block of ``b`` columns is
solved for exactly with the others fixed; factors of its Gram matrix are kept from sweep to
sweep, residuals stay beside their rows.

KeystoneML (Sparks et al., ICDE 2017), Table I, "Block solve": ``i n d (b + k)`` operations
in ``i`` sweeps for ``k`` targets.

Shapes: ``d`` features, ``T`` targets.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.column_sums import ColumnSums
from mlopt.gd.gram_inverse import GramInverse, factorise
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]


class BlockSolve:
    """A `mlopt.training.Training` that minimises ``||Xw - y||^2 + alpha ||w||^2``.

    Parameters
    ----------
    rows : Rows
        Dense, with "targets" (n, T) and "weights" (n, 1) beside them.
    alphas : ndarray of shape (T,)
        All positive.
    intercept : bool
    tol : float
        Done when the error of the coefficients, estimated from the last two sweeps, is at
        most ``tol`` times these.
    columns : int
        Of a block.

    Attributes
    ----------
    mean : ndarray of shape (d + T,)
        Weighted means of features and targets; zeros without an intercept.
    coef : ndarray of shape (d, T)
    passes : int
        Sweeps over all columns.
    """

    def __init__(
        self, rows: Rows, alphas: Array, intercept: bool, tol: float, columns: int
    ) -> None:
        self.mean = ColumnSums.of(rows, intercept).mean
        self.coef, self.passes = np.zeros((rows.d, len(alphas))), 0
        self._alphas, self._tol = alphas, tol
        self._rows = rows.compute_beside(_residual, self.mean, self.coef)
        starts = range(0, rows.d, columns)
        self._blocks = [slice(a, min(a + columns, rows.d)) for a in starts]
        self._factors: dict[int, GramInverse] = {}
        self._change, self._error = np.inf, np.inf

    @property
    def done(self) -> bool:
        """Whether the estimated error is below the tolerance."""
        return bool(self._error <= self._tol)

    @property
    def converged(self) -> bool:
        """The same."""
        return self.done

    def ask(self, tol: float) -> None:
        """Go on to another ``tol``."""
        self._tol = tol

    def quality(self) -> float:
        """Minus the estimated relative error."""
        return -float(self._error)

    def advance(self, passes: int) -> None:
        """Take up to ``passes`` sweeps over all columns."""
        for _ in range(passes):
            if self.done:
                return
            changes = [self._solve(number) for number in range(len(self._blocks))]
            self._judge(float(np.linalg.norm(changes)))
            self.passes += 1

    def state(self) -> dict[str, Any]:
        """A checkpoint: copies of all that changes; residuals follow from it."""
        numbers = {"passes": self.passes, "change": self._change, "error": self._error}
        return {"coef": self.coef.copy(), **numbers}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.coef, self.passes = np.array(state["coef"]), int(state["passes"])
        self._change, self._error = float(state["change"]), float(state["error"])
        self._rows = self._rows.compute_beside(_residual, self.mean, self.coef)

    def _solve(self, number: int) -> float:
        """Solve for one block of columns; how much its coefficients changed."""
        columns = self._blocks[number]
        mean, new = self.mean[columns], number not in self._factors
        sums = self._rows.map_reduce(_block_normal, operator.add, columns, mean, new)
        if new:
            self._factors[number] = factorise(sums.gram, self._alphas)
        gradient = sums.cross - self._alphas * self.coef[columns]
        step = self._factors[number](gradient, np.arange(len(self._alphas)))
        self.coef[columns] += step
        self._rows = self._rows.compute_beside(_subtract, columns, mean, step)
        return float(np.linalg.norm(step))

    def _judge(self, change: float) -> None:
        """Changes shrink by a constant factor: what is left is a geometric series."""
        factor = change / self._change if self._change else 0.0
        left = change * max(1.0, factor / (1.0 - factor)) if factor < 1.0 else np.inf
        size = float(np.linalg.norm(self.coef))
        self._error = left / size if size else (0.0 if left == 0.0 else np.inf)
        self._change = change


@dataclass(frozen=True)
class _Normal:
    """``X_j' S X_j`` (b, b), or (0, 0) where it is known, and ``X_j' S r`` (b, T)."""

    gram: Array
    cross: Array

    def __add__(self, other: _Normal) -> _Normal:
        return _Normal(self.gram + other.gram, self.cross + other.cross)


def _residual(block: Block, mean: Array, coef: Array) -> dict[str, Array]:
    d = len(coef)
    targets = block.extra["targets"].astype(np.float64) - mean[d:]
    return {"residual": targets - (block.X @ coef - mean[:d] @ coef)}


def _subtract(block: Block, columns: slice, mean: Array, step: Array) -> dict[str, Array]:
    image = block.X[:, columns] @ step - mean @ step
    return {"residual": block.extra["residual"] - image}


def _block_normal(block: Block, columns: slice, mean: Array, gram: bool) -> _Normal:
    weights, residual = block.extra["weights"], block.extra["residual"]
    X = block.X[:, columns]
    if not gram:
        scaled = weights * residual
        cross = X.T @ scaled - np.outer(mean, scaled.sum(axis=0))
        return _Normal(np.zeros((0, 0)), cross)
    root = np.sqrt(weights, dtype=np.float64)
    panel = (X - mean) * root
    return _Normal(panel.T @ panel, panel.T @ (root * residual))
