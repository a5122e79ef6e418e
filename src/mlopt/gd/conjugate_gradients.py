"""Least squares by conjugate gradients on the normal equations, all targets in lockstep.

For matrices too wide for a Gram matrix, and for sparse ones, which stay sparse: with the
weighted means ``m`` of the features, the product with the centred matrix is

    A p = X' S (X p - m.p) - m * sum(S (X p - m.p)) + alpha p,    S = diag(weights)

Hestenes and Stiefel, "Methods of conjugate gradients for solving linear systems", 1952,
with the diagonal of ``A`` as preconditioner where there is a penalty. Without a penalty
there is none: started from zero, plain conjugate gradients never leave the row space of
``X`` and so end in the solution of least norm.

Shapes: ``d`` features, ``T`` targets.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlopt.kernels.linear import SQUARED, linear_pass
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]


class ConjugateGradients:
    """A `mlopt.training.Training` that minimises ``||Xw - y||^2 + alpha ||w||^2``.

    Parameters
    ----------
    rows : Rows
        With "targets" (n, T) and "weights" (n, 1) beside them.
    alphas : ndarray of shape (T,)
        Penalty of each target.
    intercept : bool
    tol : float
        A target is done when its gradient's norm is at most ``tol`` times that at zero.

    Attributes
    ----------
    mean : ndarray of shape (d + T,)
        Weighted means of features and targets; zeros without an intercept.
    coef : ndarray of shape (d, T)
    iterations : ndarray of shape (T,)
        Steps each target took.
    """

    def __init__(self, rows: Rows, alphas: Array, intercept: bool, tol: float) -> None:
        self._rows, self._alphas = rows, alphas
        sums: _Sums = rows.map_reduce(_block_sums, operator.add)
        self.mean = sums.mean if intercept else np.zeros_like(sums.mean)
        self._centre, self._weight = self.mean[: rows.d, None], sums.cross[-1, 0]
        right = sums.cross[:-1, 1:] - sums.cross[:-1, :1] * self.mean[rows.d :]
        self._diagonal = _preconditioner(sums, self._centre, alphas)
        self._enough = tol * np.linalg.norm(right, axis=0)
        self._passes = 1
        self.coef, self._residual = np.zeros_like(right), right
        self._direction = right / self._diagonal
        self._energy = np.sum(right * self._direction, axis=0)
        self.iterations = np.zeros(len(alphas), np.int64)
        self._broken = np.zeros(len(alphas), bool)

    @property
    def passes(self) -> int:
        """Passes over the rows so far."""
        return self._passes

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Which targets are solved to the tolerance, shape (T,)."""
        return np.asarray(np.linalg.norm(self._residual, axis=0) <= self._enough)

    @property
    def done(self) -> bool:
        """Whether no target gains from another pass."""
        return bool(np.all(self.converged | self._broken))

    def quality(self) -> Array:
        """Minus the gradient's norm, for each target."""
        return -np.asarray(np.linalg.norm(self._residual, axis=0), np.float64)

    def advance(self, passes: int) -> None:
        """Take up to ``passes`` steps, each one pass over the rows."""
        for _ in range(passes):
            active = np.flatnonzero(~(self.converged | self._broken))
            if not active.size:
                return
            self._step(active)
            self._passes += 1

    def state(self) -> dict[str, Any]:
        """A checkpoint: copies of all that changes."""
        return {name: np.copy(getattr(self, name)) for name in _STATE}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        for name in _STATE:
            setattr(self, name, np.copy(state[name]))
        self._passes = int(self._passes)

    def _step(self, active: NDArray[np.intp]) -> None:
        direction = self._direction[:, active]
        image = self._product(direction) + self._alphas[active] * direction
        curvature = np.sum(direction * image, axis=0)
        # Rounding, not mathematics: nothing is left to gain along this direction.
        self._broken[active] = curvature <= 0.0
        length = self._energy[active] / np.where(curvature > 0.0, curvature, np.inf)
        self.coef[:, active] += length * direction
        self._residual[:, active] -= length * image
        scaled = self._residual[:, active] / self._diagonal[:, active]
        energy = np.sum(self._residual[:, active] * scaled, axis=0)
        self._direction[:, active] = scaled + direction * (energy / self._energy[active])
        self._energy[active] = energy
        self.iterations[active] += 1

    def _product(self, direction: Array) -> Array:
        """The centred, weighted Gram matrix times ``direction`` (d, A), in one pass."""
        offset = -np.sum(self._centre * direction, axis=0)
        weights = direction.astype(self._rows.dtype)
        image: Array = self._rows.map_reduce(
            _block_product, operator.add, weights, offset.astype(self._rows.dtype)
        )
        return np.asarray(image[:-1] - self._centre * image[-1])


_STATE = (
    "coef",
    "iterations",
    "_residual",
    "_direction",
    "_energy",
    "_broken",
    "_passes",
)


@dataclass(frozen=True)
class _Sums:
    """``[X | 1]' S [1 | y]`` of shape (d + 1, 1 + T), and each column's sum of squares."""

    cross: Array
    squares: Array

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(self.cross + other.cross, self.squares + other.squares)

    @property
    def mean(self) -> Array:
        means = np.concatenate((self.cross[:-1, 0], self.cross[-1, 1:]))
        return np.asarray(means / self.cross[-1, 0])


def _preconditioner(sums: _Sums, centre: Array, alphas: Array) -> Array:
    """The diagonal of the system (d, T) where there is a penalty, else ones."""
    weight = sums.cross[-1, 0]
    diagonal = np.maximum(sums.squares[:, None] - weight * centre**2, 0.0) + alphas
    return np.where(alphas > 0.0, diagonal, 1.0)


def _block_sums(block: Block) -> _Sums:
    weights = block.extra["weights"].astype(np.float64)
    ones = np.ones((block.rows, 1))
    scaled = weights * np.hstack((ones, block.extra["targets"]))
    squares = block.X.multiply(block.X) if sp.issparse(block.X) else block.X**2
    cross = np.vstack((block.X.T @ scaled, scaled.sum(axis=0)))
    return _Sums(cross, np.asarray(squares.T @ weights[:, 0], np.float64))


def _block_product(block: Block, W: NDArray[Any], b: NDArray[Any]) -> Array:
    """``[X | 1]' S (X W + b)`` of shape (d + 1, A): the squared loss against zeros."""
    zeros = np.zeros((block.rows, 1), block.X.dtype)
    segments = np.array([[0, W.shape[1], SQUARED, 0, 0, 1]], np.int64)
    deltas = np.ones(1, block.X.dtype)
    found = linear_pass(block.X, W, b, zeros, block.extra["weights"], segments, deltas)
    stacked = (np.asarray(found.gradient), np.asarray(found.intercept_gradient)[None])
    return np.concatenate(stacked).astype(np.float64)
