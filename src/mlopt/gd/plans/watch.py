"""How far an objective is above its minimum, by its gradient ``g`` and Hessian ``H``.

::

    1/2 g' H^-1 g            right near the minimum: H of a sample, its Cholesky factor
    raised by                what the last steps revealed (`mlopt.gd.gap`)
    at most ||g||^2 / (2 l2) where everything is penalised: certain

With a penalty, ``||g||^2 / (2 l2)`` itself is the gap that counts: `watch` tells which.
Without one, and with too many columns for a Hessian, nothing tells it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError
from mlopt.gd.gap import VALUES, curved, safeguarded, strong_convexity_bound
from mlopt.gd.plans.energy import SampledEnergy
from mlopt.gd.plans.task import Problem
from mlopt.gd.sizes import WIDEST

Array = NDArray[Any]

_FAR = 0.1
"""Of the objective: estimates of larger gaps need no digits."""
_SURE = 2.0
"""By how much an estimate may be too low; irregular steps reveal no more."""
_LEAST = float(np.finfo(float).tiny)


def watchable(l2: float, d: int) -> bool:
    """Whether anything tells how far a smooth objective is above its minimum."""
    return l2 > 0 or d < WIDEST


def watch(problem: Problem, tolerance: float, *, noisy: bool = False) -> Watch:
    """What is certain of gaps where there is a penalty; otherwise what is estimated.

    The gradients of ``noisy`` methods never get small: a Hessian, where there is one, tells
    their gap far better, and `mlopt.gd.plans.proof` proves it.
    """
    estimated = problem.task.l2 == 0 or (noisy and problem.rows.d < WIDEST)
    return Watch(problem, tolerance, bounded=not estimated)


class Watch:
    """The relative gap of one smooth model at the points where somebody looks.

    Parameters
    ----------
    problem : Problem
        With one column of weights and any loss but the hinge.
    tolerance : float, default=inf
        Gaps above it are rather too high.
    bounded : bool, default=False
        By ``||g||^2 / (2 l2)`` alone, a bound once the intercept is the best for the
        weights. Otherwise there must be fewer than 2048 columns.

    Raises
    ------
    InputError
        For the hinge and the multinomial loss.
    """

    def __init__(
        self, problem: Problem, tolerance: float = np.inf, *, bounded: bool = False
    ) -> None:
        if problem.task.loss in ("hinge", "multinomial"):
            raise InputError(
                "`problem` must have a smooth loss of one column of weights, got "
                f"{problem.task.loss!r}."
            )
        self._problem, self._tolerance = problem, tolerance
        free = problem.task.fit_intercept and not bounded
        self._convexity = 0.0 if free else problem.task.l2
        self._energy, self._zero = None if bounded else SampledEnergy(problem), np.inf
        if not bounded:
            zeros = np.zeros((1, problem.rows.d)), np.zeros(1)
            self._zero = problem.objective(*zeros)
        self._values = np.full((VALUES, 1), np.nan)
        self._estimates = np.full((VALUES, 1), np.nan)

    def gap(self, value: float, gradient: Array, weights: Array) -> float:
        """Objective minus minimum, over the objective; call it at one step after another.

        Parameters
        ----------
        value : float
            The objective, with its penalty.
        gradient, weights : ndarray of shape (d + 1,)
            The last entry belongs to the intercept; its gradient is 0 where there is none.
        """
        g, w = np.asarray(gradient, np.float64), np.asarray(weights, np.float64)
        size = max(abs(value), _LEAST)
        bound = float(strong_convexity_bound(g @ g, self._convexity))
        if self._energy is None:
            return bound / size if np.isfinite(bound) else np.inf
        estimate = 0.5 * self._energy.at(g, w, 2 * _FAR * size)
        left = min(self._raised(value, estimate), bound)
        if left <= self._tolerance * size:
            left = max(min(left, _SURE * estimate), self._ahead(value, estimate, g, w))
        self._values = np.vstack([[[value]], self._values[:-1]])
        self._estimates = np.vstack([[[estimate]], self._estimates[:-1]])
        # Far away, where a loss is a straight line, its curvature tells nothing.
        return max(left, value - self._zero) / size

    def _ahead(self, value: float, estimate: float, g: Array, w: Array) -> float:
        """What steps bring that ``estimate`` leaves out, where a loss may be straight.

        The step that it is of brings as much where that is a parabola, twice as much where
        it is a line, and one of twice its length twice that again.
        """
        if self._problem.task.loss != "huber":
            return 0.0
        assert self._energy is not None
        step, found = self._energy.solve(g), 0.0
        while True:
            at = w - step
            fell = value - self._problem.objective(at[None, :-1], at[-1:])
            if curved(fell, estimate) or not fell > found:
                return found
            step, found = 2.0 * step, fell

    def _raised(self, value: float, estimate: float) -> float:
        now, then = np.array([value]), np.array([estimate])
        return float(safeguarded(now, then, self._values, self._estimates)[0])

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        seen = {"values": self._values.copy(), "estimates": self._estimates.copy()}
        return seen | ({} if self._energy is None else {"energy": self._energy.state()})

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of the same problem."""
        self._values = np.array(state["values"])
        self._estimates = np.array(state["estimates"])
        if self._energy is not None:
            self._energy.restore(state["energy"])
