"""Eigenvalues of the Gram matrix of wide rows, as a few hundred rows tell them.

Conjugate gradients need a step for each eigenvalue that stands out, fewer where these are
close to each other, and steps by the condition number of what is left (Axelsson, Lindskog,
Numerische Mathematik 48, 1986). The Gram matrix of ``m`` rows has few eigenvalues, and
their noise is known: with columns that are only noise of variance ``s`` they lie within
``s (1 +- sqrt(d / m))^2`` (Marchenko, Pastur, 1967). One above that is an eigenvalue of all
rows with ``s d / m`` added to it (Baik, Silverstein, J. Multivariate Analysis 97, 2006,
to first order).

Shapes: ``d`` features, ``m`` rows of the sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.preconditioned_plan import EXPLAINED, LARGEST_RANK
from mlopt.gd.sample import draw
from mlopt.gd.sizes import LOST, ROUNDED
from mlopt.prices import count, price
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]

_ROWS = 256
"""Of the sample: eigenvalues of a matrix of so many rows come at once."""
_ABOVE = price("sketch.above")
_USUAL = 1e-4
"""The gap for which the rank of a sketch is chosen."""
_PER_RANK = price("sketch.direction")
_SPARE = count("sketch.spare")
_RANKS = (*(1 << power for power in range(4, 9)), LARGEST_RANK)
"""Of sketches that are compared: a finer choice saves no step."""


@dataclass(frozen=True)
class Spectrum:
    """Of the centred Gram matrix, divided by the number of rows.

    Attributes
    ----------
    leading : ndarray of shape (k,)
        Eigenvalues that stand out, largest first.
    rest : float
        The mean of the others.
    n, d : int
        All rows, and columns: the fewer rows, the further the others are spread.
    """

    leading: Array
    rest: float
    n: int
    d: int

    @staticmethod
    def of(rows: Rows) -> Spectrum | None:
        """Look at some rows; None where there are too few of them, or they are sparse."""
        if rows.sparse or rows.n < 2 * _ROWS or rows.d < 2 * _ROWS:
            return None
        sample = draw(rows, _ROWS)
        X = np.concatenate(sample.map(_values))
        X -= X.mean(axis=0)
        values = np.linalg.eigvalsh(X @ X.T / len(X))[:0:-1]  # the last one is the mean's
        leading, rest = _split(values, rows.d, len(X))
        return Spectrum(leading, rest, rows.n, rows.d)

    @staticmethod
    def even(length: float, n: int, d: int) -> Spectrum:
        """Of columns of one scale that have nothing in common, as sparse ones nearly have.

        ``length`` is the mean squared length of a row.
        """
        return Spectrum(np.empty(0), length / d, n, d)

    def steps(self, alpha: float, gap: float, rank: int = 0) -> int:
        """Steps to a relative gap of the objective.

        Parameters
        ----------
        alpha : float
            The penalty, divided by the number of rows.
        gap : float
        rank : int, default=0
            Of a sketch that takes the largest eigenvalues away.
        """
        least, most = self._others(alpha)
        digits = math.log(4.0 * EXPLAINED / max(gap, ROUNDED))
        left = self.leading[max(rank - _SPARE, 0) :] + alpha
        steps = math.ceil(digits / _gain(most / least))
        if left.size:
            # Steps for the others make the errors of these as much larger.
            grown = 2.0 * steps * math.log(4.0 * float(left[0]) / most)
            apart = float(left[0] / left[-1]) / _spread(len(left))
            close = math.ceil((digits + grown) / _gain(apart))
            together = math.ceil(digits / _gain(float(left[0]) / least))
            steps = min(steps + min(len(left), close), together)
        return max(1, min(steps, self.n, self.d))

    def epochs(self, alpha: float, gap: float) -> float:
        """Epochs of a method that takes one row at a time, or one column (SVRG's bound)."""
        least, _ = self._others(alpha)
        steepest = float(self.leading.sum()) + self.rest * self.d
        return (1.0 + steepest / (self.n * least)) * math.log(EXPLAINED / gap)

    def looseness(self, alpha: float) -> float:
        """How many times the gap its bound is: the largest of the eigenvalues over alpha.

        Those that stand out are done with first. 1 without a penalty: there is no bound.
        """
        return max(self._others(alpha)[1] / alpha, 1.0) if alpha > 0 else 1.0

    def rank(self, alpha: float) -> int:
        """The rank of the sketch that leaves the least work."""
        return min(_RANKS, key=lambda r: _PER_RANK * r + self.steps(alpha, _USUAL, r))

    def _others(self, alpha: float) -> tuple[float, float]:
        """Least and largest of the eigenvalues that do not stand out, with the penalty."""
        edge = math.sqrt(self.d / self.n)
        rest = max(self.rest, float(self.leading[:1].sum()) * LOST)  # or it is rounding
        rest = max(rest, np.finfo(float).tiny)
        least = max(rest * (1.0 - edge) ** 2, rest * LOST) + alpha
        return least, rest * (1.0 + edge) ** 2 + alpha


def _values(block: Block) -> Array:
    return np.asarray(block.X, np.float64)


def _split(values: Array, d: int, m: int) -> tuple[Array, float]:
    """Which of a sample's eigenvalues stand out, without noise; and the mean of others."""
    total, noise = float(values.sum()), float(values.sum()) / d
    count = 0
    for _ in range(len(values)):
        highest = noise * (1.0 + math.sqrt(d / m)) ** 2
        found = min(int((values > _ABOVE * highest).sum()), m // 2)
        if found <= count:
            break
        count = found
        # What these hold is theirs, but for the noise in their directions.
        noise = max(total - float(values[:count].sum()), 0.0) / (d * (1.0 - count / m))
    return np.maximum(values[:count] - noise * d / m, noise), noise


def _spread(count: int) -> float:
    """Largest to smallest of so many eigenvalues that are equal, as the sample shows it."""
    edge = math.sqrt(count / _ROWS)
    return ((1.0 + edge) / (1.0 - edge)) ** 2


def _gain(condition: float) -> float:
    """By how much a step makes the logarithm of the gap smaller."""
    root = math.sqrt(max(condition, 1.0))
    return -2.0 * math.log(max((root - 1.0) / (root + 1.0), 1e-3))
