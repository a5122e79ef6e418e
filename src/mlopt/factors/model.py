"""Factors and biases: what a training changes, and what predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.factors_sgd import LANES

Array = NDArray[Any]

SPREAD = 0.1
"""Deviation of factors where they begin, for ratings that deviate by about 1."""
FAINT = 0.01
"""Factors at most where they begin, for counts: what is common to all is learnt first, and
noise not at all (benchmarks/factors.py: with 64 factors the ranks of few passes are better
than of deviations of `SPREAD` around zero, and those of many the same)."""
_AT_ONCE = 2**16
"""Pairs that are predicted together: their factors stay in a cache."""


@dataclass(frozen=True, eq=False)
class Factors:
    """One side's factors and biases beside the other's; all float32.

    Parameters
    ----------
    P : (users, k)
    Q : (items, k)
    b : (users,)
    c : (items,)
        Zeros without biases.
    mean : float
        What every prediction begins with; 0 without biases.
    """

    P: Array
    Q: Array
    b: Array
    c: Array
    mean: float

    def predict(self, users: Array, items: Array) -> NDArray[np.float32]:
        """``mean + b_u + c_i + p_u q_i`` of pairs; a number of -1 stands for zeros."""
        out = np.empty(len(users), np.float32)
        for low in range(0, len(users), _AT_ONCE):
            u, i = users[low : low + _AT_ONCE], items[low : low + _AT_ONCE]
            known_u, known_i = u >= 0, i >= 0
            products = np.einsum("ij,ij->i", self.P[u], self.Q[i])
            out[low : low + _AT_ONCE] = (
                self.mean
                + np.where(known_u, self.b[u], 0)
                + np.where(known_i, self.c[i], 0)
                + np.where(known_u & known_i, products, 0)
            )
        return out

    def rmse(
        self, users: Array, items: Array, values: Array, confidence: float | None = None
    ) -> float:
        """The root of the mean squared error at pairs.

        Where values are counts, which have a ``confidence``: of whether there is one, each
        weighed as in the objective.
        """
        weights = None if confidence is None else 1 + confidence * values
        wanted = values if confidence is None else values > 0
        errors = self.predict(users, items).astype(np.float64) - wanted
        return float(np.sqrt(np.average(errors**2, weights=weights)))


def padded(A: Array, columns: int = 0) -> NDArray[np.float32]:
    """A copy with room for so many columns more, filled up with zeros to whole lanes."""
    width = -(-(A.shape[1] + columns) // LANES) * LANES
    out = np.zeros((len(A), width), np.float32)
    out[:, : A.shape[1]] = A
    return out


def drawn(
    shape: tuple[int, int], k: int, level: float, seed: int, nonnegative: bool
) -> tuple[Array, Array]:
    """Factors to begin with, whose products are around ``level``.

    The deviation is a tenth of the usual rating's: large enough to break symmetry.
    """
    random = np.random.default_rng(seed)
    base, spread = np.sqrt(max(level, 0.0) / k), np.float32(SPREAD)
    found = []
    for count in shape:
        A = base + spread * random.standard_normal((count, k), dtype=np.float32)
        found.append((np.abs(A) if nonnegative else A).astype(np.float32))
    return found[0], found[1]


def faint(shape: tuple[int, int], k: int, seed: int) -> tuple[Array, Array]:
    """Factors to begin with where ratings are counts: small, and none negative."""
    random = np.random.default_rng(seed)
    P, Q = (np.float32(FAINT) * random.random((n, k), np.float32) for n in shape)
    return P, Q
