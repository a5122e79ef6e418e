"""``g' H^-1 g``: twice how far a quadratic is above its minimum.

``H`` is the Hessian of one model, with its penalty, of shape (d + 1, d + 1); the last row
belongs to the intercept and counts only where there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import single_threaded
from mlopt.gd.columns import layout
from mlopt.gd.curvature import Probe, distance, shared_hessians
from mlopt.gd.gram_inverse import UNSEEN
from mlopt.gd.joint_hessian import Inverse, inverse_of
from mlopt.gd.plans import samples
from mlopt.gd.plans.task import Problem
from mlopt.gd.sample import Moments, draw, hessian_rows
from mlopt.gd.sampled_curvature import DRIFT, MANY
from mlopt.rows import Rows

Array = NDArray[np.float64]

_PATIENCE = 4
"""Looks with a Hessian that has drifted before there is a new one."""


class SampledEnergy:
    """By a Cholesky factor of the Hessian of a sample, or of all rows where they are few.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem) -> None:
        rows, self._problem = problem.rows, problem
        self._plan = layout([problem.model])
        # Good enough to tell a gap by; a step would want more rows.
        enough = max(samples.USUAL * (rows.d + 1), samples.MANY)
        size = min(hessian_rows(rows.n, rows.d, 1), enough)
        # A Gram matrix of float32 loses what is flat.
        self._sample = draw(rows, size).in_doubles()
        self._probe = Probe.of(self._sample, many=rows.n > MANY * rows.d)
        self._lacking = _lacking(rows, self._sample)
        self._seen: Array | None = None
        self._curvatures: Any = None
        self._inverse: Inverse | None = None
        self._calls = 0

    def at(self, gradient: Array, weights: Array, enough: float = np.inf) -> float:
        """By the last Hessian, renewed where curvatures have changed since.

        What is beyond ``enough`` may be far off: only that it is beyond counts.
        """
        now = self._probe.curvatures(weights[:, None], self._plan, self._problem.sums)
        self._calls += 1
        if self._inverse is None:
            self._renew(now, weights)
        found = self._energy(gradient)
        if distance(now, self._curvatures).max() > DRIFT and (
            found < enough or self._calls >= _PATIENCE
        ):
            self._renew(now, weights)
            found = self._energy(gradient)
        return found

    def _energy(self, gradient: Array) -> float:
        return float(gradient @ self.solve(gradient))

    def solve(self, gradient: Array) -> Array:
        """``H^-1 g`` (d + 1,) by the last Hessian; 0 for an intercept that there is not."""
        assert self._inverse is not None
        if self._problem.task.fit_intercept:
            return np.asarray(self._inverse(gradient[:, None])[:, 0])
        return np.append(self._inverse(gradient[:-1, None])[:, 0], 0.0)

    def _renew(self, curvatures: Any, weights: Array) -> None:
        one, task = np.zeros(1, np.int64), self._problem.task
        made = shared_hessians(self._sample, None, weights[:, None], self._plan, one)
        H = made.matrices[0]
        np.einsum("ii->i", H)[:-1] += H[-1, -1] * self._lacking + task.l2
        # Factors are small: a second thread of BLAS would mostly wait.
        with single_threaded():
            self._inverse = inverse_of(H if task.fit_intercept else H[:-1, :-1])
        self._seen, self._curvatures, self._calls = weights.copy(), curvatures, 0

    def state(self) -> dict[str, Any]:
        """Where the Hessian was made, and how long ago."""
        return {"calls": self._calls, "seen": self._seen}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Make the same Hessian again."""
        if state["seen"] is not None:
            w = np.asarray(state["seen"])
            plan, sums = self._plan, self._problem.sums
            self._renew(self._probe.curvatures(w[:, None], plan, sums), w)
        self._calls = int(state["calls"])


def _lacking(rows: Rows, sample: Rows) -> Array:
    """Mean squares of the columns that ``sample`` (almost) never met, (d,)."""
    if sample.n == rows.n:
        return np.zeros(rows.d)
    squares, met = Moments.of(rows).squares, Moments.of(sample).squares
    return np.where(met < UNSEEN * squares, squares - met, 0.0)
