"""How far conjugate gradients are above the minimum, by what their steps say.

Every step lowers the objective by ``1/2 length * energy`` exactly (Hestenes, Stiefel, 1952,
theorem 6:1), so that what is left is a sum of falls that are still to come. Two guesses at
it fail in different places, and the larger counts:

* falls go on shrinking as one window of steps did to the next. Too little where a few long
  axes are done with and the short ones have hardly begun;
* ``energy / (2 theta)``, with theta the least Ritz value, which the coefficients of the
  steps give (Golub, van Loan, "Matrix Computations", section 10.2): a bound once theta has
  come down to the least eigenvalue. Too little in the first steps, before it has.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh_tridiagonal

Array = NDArray[np.float64]

WINDOW = 3
"""Steps whose falls are taken together: one alone may be a lucky one."""
_LOOKS = 4
"""Windows that are looked at, each a step before the last."""
_FEWEST = 2 * WINDOW + _LOOKS - 1
"""Steps that fill these windows."""
_SLOWEST = 0.9
"""Share that one window's fall may keep of the one before, at most."""


class EnergyGap:
    """Estimates for T systems that are solved together.

    Parameters
    ----------
    objective : ndarray of shape (T,)
        Before the first step.

    Attributes
    ----------
    steps : ndarray of shape (k, 3, T)
        Of each step the fall of the objective, the length, and the share of its energy that
        the residual kept; zeros where a target took no step.
    """

    def __init__(self, objective: Array) -> None:
        self._start, self._least = objective, np.full(len(objective), np.inf)
        self.steps = np.empty((0, 3, len(objective)))

    def add(
        self, active: NDArray[np.intp], fall: Array, length: Array, kept: Array
    ) -> None:
        """Take in one step of some targets."""
        step = np.zeros((1, 3, len(self._start)))
        step[0][:, active] = fall, length, kept
        self.steps = np.concatenate([self.steps, step])

    @property
    def objective(self) -> Array:
        """After the steps so far, (T,), as far as rounding tells it from zero."""
        now = self._start - self.steps[:, 0].sum(axis=0)
        least = np.finfo(np.float64).eps * self._start + np.finfo(np.float64).tiny
        return np.asarray(np.maximum(now, least), np.float64)

    def within(self, gap: float, energy: Array) -> NDArray[np.bool_]:
        """Whether objectives are within ``gap`` of their minima, relative to these, (T,).

        ``energy`` (T,) is that of the residuals now.
        """
        each = [self._is_within(k, gap, float(e)) for k, e in enumerate(energy)]
        return np.array(each, bool)

    def _is_within(self, target: int, gap: float, energy: float) -> bool:
        taken = self.steps[:, :, target]
        now = self._start[target] - taken[:, 0].sum()
        falls, lengths, kept = taken[taken[:, 1] > 0].T
        if len(falls) < _FEWEST:
            return False
        # A Ritz value takes as long as a pass, and only falls from step to step.
        left = max(_by_falls(falls[::-1]), energy / (2 * self._least[target]))
        if left <= gap * (now - left):
            self._least[target] = _least_ritz(lengths, kept)
            left = max(left, energy / (2 * self._least[target]))
        return bool(left <= gap * (now - left))


def _by_falls(falls: Array) -> float:
    """What falls will add up to, the last one first."""
    most = falls[0]
    for back in range(_LOOKS):
        late = falls[back : back + WINDOW].sum()
        early = falls[back + WINDOW : back + 2 * WINDOW].sum()
        q = min(late / early, _SLOWEST) if early > 0 else 0.0
        # What was expected some steps before counts as well, less what came since.
        most = max(most, late * q / (1.0 - q) - falls[:back].sum())
    return float(most)


def _least_ritz(lengths: Array, kept: Array) -> float:
    """The least eigenvalue of the tridiagonal matrix of the steps so far."""
    diagonal = 1.0 / lengths
    diagonal[1:] += kept[:-1] / lengths[:-1]
    beside = np.sqrt(kept[:-1]) / lengths[:-1]
    least = eigvalsh_tridiagonal(diagonal, beside, select="i", select_range=(0, 0))[0]
    return max(float(least), np.finfo(np.float64).tiny)
