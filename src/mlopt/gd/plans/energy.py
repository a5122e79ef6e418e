"""``g' H^-1 g``: twice how far a quadratic is above its minimum.

``H`` is the Hessian of one model, with its penalty, of shape (d + 1, d + 1); the last row
belongs to the intercept and counts only where there is one.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import single_threaded
from mlopt.gd.columns import layout
from mlopt.gd.curvature import Probe, distance, margin_curvatures, shared_hessians
from mlopt.gd.energy_gap import WINDOW
from mlopt.gd.gram_inverse import UNSEEN
from mlopt.gd.joint_hessian import Inverse, inverse_of
from mlopt.gd.plans import samples
from mlopt.gd.plans.newton_cholesky import hessian_rows
from mlopt.gd.plans.task import Problem
from mlopt.gd.sample import Moments, draw
from mlopt.gd.sampled_curvature import DRIFT, MANY
from mlopt.prices import count
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]

_PATIENCE = 4
"""Looks with a Hessian that has drifted before there is a new one."""
_PROBES = count("energy.probes")
_MOST_PRODUCTS = 60
"""Steps of conjugate gradients: a system that needs more is estimated from these."""
_REST = 0.1
"""Of the estimate: little, for some last steps together."""


class Energy(ABC):
    """``g' H^-1 g`` at one point after another."""

    @abstractmethod
    def rough(self, gradient: Array, weights: Array, enough: float) -> float:
        """Quickly; of what is beyond ``enough`` only that it is."""

    def exact(self, gradient: Array, weights: Array) -> float:
        """To about a tenth; never called without `rough` at the same point before it."""
        return self.rough(gradient, weights, np.inf)

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        del state


class SampledEnergy(Energy):
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

    def rough(self, gradient: Array, weights: Array, enough: float) -> float:
        """By the last Hessian, renewed where curvatures have changed since."""
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


class IterativeEnergy(Energy):
    """By the diagonal of the Hessian; exactly by conjugate gradients on all rows.

    With ``D`` the diagonal, conjugate gradients add up ``g' H^-1 g`` term by term, each
    positive (Hestenes and Stiefel, 1952, section 10); it is left when the last terms hardly
    count.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, self._plan = problem, layout([problem.model])
        self._squares = np.append(Moments.of(problem.rows).squares, 1.0)
        sample = draw(problem.rows, min(problem.rows.n, _PROBES))
        self._probe = Probe.of(sample, many=True)

    def rough(self, gradient: Array, weights: Array, enough: float) -> float:
        """By the diagonal: rather too low where columns are correlated."""
        del enough
        return float(gradient**2 @ (1.0 / self._diagonal(weights)))

    def _diagonal(self, weights: Array) -> Array:
        w = weights[:, None].astype(self._problem.rows.dtype)
        h = self._probe.curvatures(w, self._plan, self._problem.sums)
        diagonal = self._squares * (np.nanmean(h) * self._problem.rows.n)
        diagonal[:-1] += self._problem.task.l2
        return np.asarray(np.maximum(diagonal, 1e-12 * diagonal.max()))

    def exact(self, gradient: Array, weights: Array) -> float:
        """By products with the Hessian."""
        rows = self._problem.rows
        w = weights[:, None].astype(rows.dtype)
        place = w, self._plan.segments, self._plan.deltas, self._problem.weight
        h = np.concatenate(rows.map(_curvatures, place))
        curved = rows.attach(curvature=h)
        penalty = np.append(np.full(rows.d, self._problem.task.l2), 0.0)

        def product(v: Array) -> Array:
            found = curved.map_reduce(_product, operator.add, v) + penalty * v
            if not self._problem.task.fit_intercept:
                found[-1] = 0.0
            return np.asarray(found)

        return inverse_energy(product, self._diagonal(weights), gradient)


def inverse_energy(
    product: Callable[[Array], Array], diagonal: Array, gradient: Array
) -> float:
    """``g' H^-1 g`` by preconditioned conjugate gradients.

    Parameters
    ----------
    product : callable
        ``H v``, for a symmetric positive definite ``H``.
    diagonal : ndarray of shape (d,)
        The preconditioner.
    gradient : ndarray of shape (d,)
    """
    r = gradient.copy()
    p = z = r / diagonal
    rho, terms = float(r @ z), [0.0]
    while len(terms) <= _MOST_PRODUCTS and rho > 0:
        q = product(p)
        curvature = float(p @ q)
        if curvature <= 0:  # no penalty, and nothing but rounding is left
            break
        step = rho / curvature
        terms.append(step * rho)
        if sum(terms[-WINDOW:]) <= _REST * sum(terms):
            break
        r = r - step * q
        z = r / diagonal
        rho, last = float(r @ z), rho
        p = z + (rho / last) * p
    return sum(terms)


def _curvatures(block: Block, place: tuple[Any, ...]) -> NDArray[Any]:
    """Curvatures of the mean loss by the margins, (rows,)."""
    weights, segments, deltas, total = place
    h = margin_curvatures(block, weights, segments, deltas)[:, 0]
    return np.asarray(h * block.extra["weights"][:, 0] / total)


def _product(block: Block, v: Array) -> Array:
    vector = v.astype(block.X.dtype)
    u = (block.X @ vector[:-1] + vector[-1]) * block.extra["curvature"]
    return np.append(block.X.T @ u, u.sum(dtype=np.float64)).astype(np.float64)
