"""Least squares by conjugate gradients on the normal equations, all targets in lockstep.

For matrices too wide for a Gram matrix, and for sparse ones, which stay sparse: with the
weighted means ``m`` of the features, the product with the centred matrix is

    A p = X' S (X p - m.p) - m * sum(S (X p - m.p)) + alpha p,    S = diag(weights)

Hestenes and Stiefel, "Methods of conjugate gradients for solving linear systems", 1952,
with the diagonal of ``A`` as preconditioner where there is a penalty, unless a better one
is given. Without a penalty there is none: started from zero, plain conjugate gradients
never leave the row space of ``X`` and so end in the solution of least norm. Nor is there
one where a row space with few dimensions is worth more than columns of one scale.

Shapes: ``d`` features, ``T`` targets.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import reduce
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.column_sums import ColumnSums
from mlopt.gd.energy_gap import EnergyGap
from mlopt.gd.gap import strong_convexity_bound
from mlopt.gd.passes import pieces
from mlopt.kernels.linear import linear_pass
from mlopt.kernels.losses import SQUARED
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]


class Inverse(Protocol):
    """An approximate inverse of the systems: symmetric, positive definite."""

    def __call__(self, residual: Array, targets: NDArray[np.intp]) -> Array:
        """Applied to the residuals (d, A) of the targets (A,) named."""
        ...


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
        A target is done when its gradient's norm is at most ``tol`` times that at zero,
        and, with a penalty, the error of its coefficients is certain to be at most ``tol``
        times these in the norm of the system;
        with an ``inverse``, when the error of its coefficients is estimated to be at most
        ``tol`` times these, in the Euclidean norm and in that of the system.
    sums : ColumnSums, optional
        Of the rows, where they are known.
    inverse : Inverse, optional
        Preconditioner that is close to the inverse of the system. Products are then made
        in float64 whatever the rows are in.
    gap : float, default=0.0
        Where it is positive a target with a penalty is solved when the bound
        ``||residual||^2 / (2 alpha)`` is within ``gap`` of the objective, and never by
        ``tol``; one without is, too, when it is so by the estimate of
        `mlopt.gd.energy_gap`.

    Attributes
    ----------
    mean : ndarray of shape (d + T,)
        Weighted means of features and targets; zeros without an intercept.
    coef : ndarray of shape (d, T)
    iterations : ndarray of shape (T,)
        Steps each target took.
    """

    def __init__(
        self,
        rows: Rows,
        alphas: Array,
        intercept: bool,
        tol: float,
        sums: ColumnSums | None = None,
        inverse: Inverse | None = None,
        gap: float = 0.0,
    ) -> None:
        sums = ColumnSums.of(rows, intercept) if sums is None else sums
        self._rows, self._alphas, self._tol = rows, alphas, tol
        self._by_coef = inverse is not None
        self._inverse: Inverse = (
            _Diagonal.of(sums, alphas, rows.n) if inverse is None else inverse
        )
        self._dtype = rows.dtype if inverse is None else np.dtype(np.float64)
        self.mean, self._centre = sums.mean, sums.mean[: rows.d, None]
        # By columns, as most of a step goes through them where rows are sparse.
        self._right, self._passes = np.asfortranarray(sums.cross), 1
        self.coef, self._residual = np.zeros_like(self._right), self._right.copy("F")
        everything = np.arange(len(alphas))
        self._direction = self._inverse(self._residual, everything)
        self._energy = np.sum(self._residual * self._direction, axis=0)
        self._error = np.where(self._residual.any(axis=0), np.inf, 0.0)
        self.iterations = np.zeros(len(alphas), np.int64)
        self._gap, self._left = gap, EnergyGap(0.5 * sums.spread)
        self._penalised = _matters(alphas, sums)
        self._bounded = (alphas > 0) & (gap > 0)
        self._near = np.zeros(len(alphas), bool)
        self._broken = np.zeros(len(alphas), bool)

    @property
    def passes(self) -> int:
        """Passes over the rows so far."""
        return self._passes

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Which targets are solved to the tolerance, shape (T,)."""
        solved = (self._error <= self._tol) & ~self._bounded
        return np.asarray(solved | self._near | ~self._right.any(axis=0))

    @property
    def gap(self) -> Array:
        """Bounds of the gaps, relative to the objectives, (T,).

        Infinite without a penalty.
        """
        squares = np.sum(self._residual * self._residual, axis=0)
        return strong_convexity_bound(squares, self._alphas) / self._left.objective

    def ask(self, gap: float) -> None:
        """Go on until objectives are within ``gap`` of their minima."""
        self._gap = gap
        self._judge()

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
        found = {name: np.copy(getattr(self, name)) for name in _STATE}
        return found | {"steps": self._left.steps.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        for name in _STATE:
            setattr(self, name, np.copy(state[name]))
        self._passes = int(self._passes)
        self._left.steps = np.copy(state["steps"])

    def _step(self, active: NDArray[np.intp]) -> None:
        direction = self._direction[:, active]
        image = self._product(direction) + self._alphas[active] * direction
        curvature = np.sum(direction * image, axis=0)
        # Rounding, not mathematics: nothing is left to gain along this direction.
        self._broken[active] = curvature <= 0.0
        length = self._energy[active] / np.where(curvature > 0.0, curvature, np.inf)
        self.coef[:, active] += length * direction
        self._residual[:, active] -= length * image
        scaled = self._inverse(self._residual[:, active], active)
        energy = np.sum(self._residual[:, active] * scaled, axis=0)
        before, kept = self._energy[active], energy / self._energy[active]
        self._direction[:, active] = scaled + direction * kept
        self._energy[active] = energy
        if self._gap:
            self._left.add(active, 0.5 * length * before, length, kept)
            self._judge()
        self._error[active] = self._errors(active, scaled)
        self.iterations[active] += 1

    def _judge(self) -> None:
        """Which targets are within the gap."""
        self._near = self.gap <= self._gap
        if not self._bounded.all():
            estimated = self._left.within(self._gap, self._energy)
            self._near = np.where(self._bounded, self._near, estimated)

    def _errors(self, active: NDArray[np.intp], scaled: Array) -> Array:
        """Relative errors of some targets, as the tolerance means them, shape (A,)."""
        right, residual = self._right[:, active], self._residual[:, active]
        reached = np.sum(self.coef[:, active] * (right - residual), axis=0)
        if not self._by_coef:
            squares = np.sum(residual * residual, axis=0)
            plain = _ratio(np.sqrt(squares), np.linalg.norm(right, axis=0))
            # The error, in the norm of the system, is at most ||residual|| / sqrt(alpha).
            penalised = self._penalised[active]
            held = np.where(penalised, self._alphas[active], 0.0) * np.maximum(reached, 0.0)
            bound = np.sqrt(_ratio(squares, held))
            return np.maximum(plain, np.where(penalised, bound, 0.0))
        # The inverse times the residual is the error itself, as far as it is the inverse.
        coef = self.coef[:, active]
        plain = _ratio(np.linalg.norm(scaled, axis=0), np.linalg.norm(coef, axis=0))
        energy = _ratio(np.maximum(self._energy[active], 0.0), np.maximum(reached, 0.0))
        return np.maximum(plain, np.sqrt(energy))

    def _product(self, direction: Array) -> Array:
        """The centred, weighted Gram matrix times ``direction`` (d, A), in one pass."""
        offset = -np.sum(self._centre * direction, axis=0)
        weights, offset = direction.astype(self._dtype), offset.astype(self._dtype)
        image: Array = self._rows.map_reduce(_block_product, operator.add, weights, offset)
        return np.asarray(image[:-1] - self._centre * image[-1], order="F")


_STATE = (
    "coef",
    "iterations",
    "_residual",
    "_direction",
    "_energy",
    "_error",
    "_near",
    "_broken",
    "_passes",
)


def _matters(alphas: Array, sums: ColumnSums) -> NDArray[np.bool_]:
    """Which penalties are any: one below the rounding of a usual column is none."""
    squares = sums.squares[sums.squares > 0.0]
    usual = np.median(squares) if len(squares) else 0.0
    return np.asarray(alphas > np.finfo(np.float64).eps * usual)


def _evens(alphas: Array, sums: ColumnSums, n: int) -> NDArray[np.bool_]:
    """For which penalties the diagonal is expected to save steps.

    It takes away what the mean column is larger than a usual one. With fewer rows than
    columns it leads out of the row space, where a usual column is larger than the penalty
    alone by its square.
    """
    squares = sums.squares[sums.squares > 0.0]
    if n >= len(sums.squares) or not len(squares):
        return np.ones(len(alphas), np.bool_)
    usual, mean = np.median(squares) + alphas, squares.mean() + alphas
    return np.asarray(usual * usual <= alphas * mean)


class _Diagonal:
    """The diagonal of the system (d, T) where there is a penalty and it pays, else ones."""

    def __init__(self, diagonal: Array) -> None:
        self._diagonal = diagonal

    @staticmethod
    def of(sums: ColumnSums, alphas: Array, n: int) -> _Diagonal:
        taken = _matters(alphas, sums) & _evens(alphas, sums, n)
        diagonal = np.where(taken, sums.squares[:, None] + alphas, 1.0)
        return _Diagonal(np.asfortranarray(diagonal))

    def __call__(self, residual: Array, targets: NDArray[np.intp]) -> Array:
        return np.asarray(residual / self._diagonal[:, targets])


def _ratio(above: Array, below: Array) -> Array:
    """``above / below``; infinite where only ``below`` is zero, 0 where both are."""
    empty = np.where(above > 0.0, np.inf, 0.0)
    return np.divide(above, below, out=empty, where=below > 0.0)


def _block_product(block: Block, W: NDArray[Any], b: NDArray[Any]) -> Array:
    """``[X | 1]' S (X W + b)`` of shape (d + 1, A), in the dtype of ``W``."""
    weights = block.extra["weights"]
    parts = (_product(X, weights[rows], W, b) for rows, X in pieces(block.X, W.dtype))
    return reduce(operator.iadd, parts)


def _product(X: Any, weights: NDArray[Any], W: NDArray[Any], b: Any) -> Array:
    """The squared loss against zeros: its gradient is the product."""
    zeros, deltas = np.zeros((X.shape[0], 1), X.dtype), np.ones(1, X.dtype)
    segments = np.array([[0, W.shape[1], SQUARED, 0, 0, 1]], np.int64)
    found = linear_pass(X, W, b, zeros, weights, segments, deltas)
    stacked = (np.asarray(found.gradient), np.asarray(found.intercept_gradient)[None])
    return np.concatenate(stacked).astype(np.float64)
