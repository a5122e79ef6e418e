"""How far weights are above the minimum at most: a bound that is proven.

The objective ``F(w) = min_b f(w, b)`` is strongly convex with the penalty as its modulus,
whatever the rows are like. So with the intercept ``b`` at its best for the weights,

    f(w, b) - min f  <=  ||g||^2 / (2 l2),    g = X' s + l2 w

with the slopes ``s`` of the losses at the margins. It is the duality gap, too: for these
slopes, which are feasible because ``sum s = 0``, Fenchel's inequality is an equality
(Shalev-Shwartz and Zhang, JMLR 14, 2013). The bound takes one pass, in float64.

What the bound leaves below one point is a floor for all others: ``min f`` is not below it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import logsumexp

from mlopt.costs import Cost
from mlopt.gd.gap import strong_convexity_bound
from mlopt.gd.passes import pieces
from mlopt.gd.plans.energy import SampledEnergy
from mlopt.gd.plans.task import Problem
from mlopt.gd.pricing import Shape, alone, arithmetic, asked, scan
from mlopt.gd.sizes import ROUNDED, ROUNDINGS, WIDEST
from mlopt.kernels.pointwise import losses_and_slopes
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.rows import Block

Array = NDArray[np.float64]

SMOOTH = frozenset({"logistic", "squared", "squared_hinge", "huber", "multinomial"})
"""Losses whose slopes tell the gap; at a kink there is more than one slope."""
_PASSES = 8
"""Passes towards a better bound: a sample's Hessian that needs more tells too little."""
_ROUNDING = ROUNDINGS * float(np.finfo(np.float64).eps)
_OPERATIONS, _SLOPE = price("proof.value"), price("proof.slope")
_STEPS = 60
"""Of a search for the intercept: steps that grow eightfold leave any sensible range."""


@dataclass(frozen=True)
class Proof:
    """What is certain of some weights.

    Attributes
    ----------
    intercept : ndarray of shape (outputs,)
        The best for these weights.
    objective : float
        With that intercept.
    gap : float
        The objective is at most so much above its minimum, relative to itself.
    """

    intercept: Array
    objective: float
    gap: float


def why_unproven(problem: Problem) -> str | None:
    """Why there is no bound; None where there is one."""
    if problem.task.loss_name not in SMOOTH:
        return f"nothing bounds the gap of {problem.task.title}"
    if problem.task.l2 == 0:
        return "nothing bounds the gap without a penalty (`l2`=0)"
    return None


def proof_cost(shape: Shape, resources: Resources) -> Cost:
    """Of `prove`, where the first bound is good enough: margins, slopes, a gradient."""
    columns = shape.columns
    products = arithmetic(shape, _OPERATIONS * shape.nonzero * columns)
    slopes = alone(_SLOPE * shape.n * columns, resources)
    reads = scan(shape, resources, 8.0 * shape.d * columns, times=2)
    # Targets, margins, their sums: one after the other.
    return reads + products + slopes + asked(2, resources)


def prove(
    problem: Problem,
    coef: NDArray[Any],
    intercept: NDArray[Any],
    tolerance: float = np.inf,
    spare: float = 1.0,
) -> Proof | None:
    """The bound at weights (outputs, d) and intercepts (outputs,): one pass.

    Where it is above ``spare`` times the ``tolerance``, a few steps towards the minimum may
    find a better one, a pass and a Hessian of some rows each. None where there is none, or
    no intercept is the best.
    """
    if why_unproven(problem) is not None:
        return None
    data = _Data.of(problem)
    here = data.at(np.asarray(coef, np.float64), np.asarray(intercept, np.float64))
    if here is None:
        return None
    # What is below the rounding of the objective at zero weights is zero.
    least = float(np.finfo(np.float64).eps) * problem.sums.scale(problem.model)
    size = max(here.objective, least, np.finfo(np.float64).tiny)
    bound = here.bound
    if bound > spare * tolerance * size and _has_hessian(problem):
        floor = _floor(data, here, tolerance * size)
        # Differences of objectives are no better than these are.
        left = max(here.objective - floor, 0.0) + _ROUNDING * size
        bound = min(bound, left)
    gap = bound / size
    return Proof(here.intercept, here.objective, gap if np.isfinite(gap) else np.inf)


@dataclass(frozen=True)
class _Point:
    """Weights (outputs, d), the best intercepts for them (outputs,), and what they give.

    The objective is at most ``bound`` above its minimum; the gradient is (outputs, d).
    """

    coef: Array
    intercept: Array
    objective: float
    gradient: Array
    bound: float


@dataclass(frozen=True)
class _Data:
    """A problem with its targets and row weights (n,), which add up to 1."""

    problem: Problem
    y: Array
    c: Array

    @staticmethod
    def of(problem: Problem) -> _Data:
        return _Data(problem, *problem.targets_and_shares())

    def at(self, coef: Array, start: Array) -> _Point | None:
        """A pass over the rows; the search for the intercept begins at ``start``."""
        task, rows = self.problem.task, self.problem.rows
        z = np.concatenate(rows.map(_margins, coef))
        search = _of_softmax if task.loss == "multinomial" else _of_one_column
        found = search(self.problem, z, self.y, self.c, start)
        if found is None:
            return None
        best, losses, slopes = found
        slopes = slopes * self.c[:, None]
        curved = rows.attach(slopes=np.column_stack((slopes, self.c)))
        *combined, mean = curved.map_reduce(_combination, operator.add)
        gradient = np.array(combined) + task.l2 * coef
        if task.intercept:
            # As of centred columns: what slopes add up to is times how far away they are.
            gradient -= np.outer(slopes.sum(axis=0), mean)
        objective = float(losses @ self.c) + 0.5 * task.l2 * float(np.sum(coef * coef))
        bound = float(strong_convexity_bound(np.sum(gradient * gradient), task.l2))
        return _Point(coef, best, objective, gradient, bound)


def _has_hessian(problem: Problem) -> bool:
    return problem.outputs == 1 and problem.rows.d < WIDEST


def _floor(data: _Data, here: _Point, enough: float) -> float:
    """What the minimum is not below, from points nearer to it.

    Steps by the Hessian of a sample lead there, also from weights that jump about their
    minimum, as those of stochastic methods do.
    """
    energy, point = SampledEnergy(data.problem), here
    floor = here.objective - here.bound
    for _ in range(_PASSES):
        gradient = np.append(point.gradient[0], 0.0)
        weights = np.append(point.coef[0], point.intercept)
        energy.at(gradient, weights)
        step = energy.solve(gradient)
        found = data.at(point.coef - step[:-1], point.intercept - step[-1:])
        if found is None or not found.objective <= point.objective * (1 + _ROUNDING):
            break
        point, floor = found, max(floor, found.objective - found.bound)
        if here.objective - floor <= enough or here.objective - point.objective > enough:
            break
    return floor


Found = tuple[Array, Array, Array]
"""Intercepts (outputs,), losses (n,) and slopes (n, outputs)."""


def _of_one_column(
    problem: Problem, z: Array, y: Array, c: Array, start: Array
) -> Found | None:
    task, z = problem.task, z[:, 0]

    def at(b: float) -> tuple[Array, Array]:
        return losses_and_slopes(task.loss_name, z + b, y, task.delta)

    b = _root(lambda t: at(t)[1] * c, float(start[0])) if task.intercept else 0.0
    if b is None:
        return None
    losses, slopes = at(b)
    return np.array([b]), losses, slopes[:, None]


def _root(slopes: Callable[[float], Array], start: float) -> float | None:
    """Where slopes, which grow with the intercept, add up to zero; None if nowhere."""

    def total(b: float) -> float:
        return float(slopes(b).sum())

    terms = slopes(start)
    here = float(terms.sum())
    if abs(here) <= ROUNDED * float(np.abs(terms).sum()):
        return start
    # Curvatures are below 1, so that the root is at least so far; a few times is usual.
    step = -8.0 * here
    for _ in range(_STEPS):
        there = start + step
        if (total(there) > 0) != (here > 0):
            ends = sorted((start, there))
            return float(brentq(total, *ends, xtol=1e-300, maxiter=_STEPS**2))
        start, step = there, 8.0 * step
    return None


def _of_softmax(
    problem: Problem, z: Array, y: Array, c: Array, start: Array
) -> Found | None:
    """Newton's method for the intercepts of all classes together."""
    codes, row = y.astype(np.int64), np.arange(len(y))

    def at(b: Array) -> tuple[Array, Array]:
        Z = z + b
        top = logsumexp(Z, axis=1)
        return top - Z[row, codes], np.exp(Z - top[:, None])

    b = start.copy() if problem.task.intercept else np.zeros_like(start)
    losses, p = at(b)
    for _ in range(_STEPS):
        weighted = p * c[:, None]
        curvature = np.diag(weighted.sum(axis=0)) - p.T @ weighted
        p[row, codes] -= 1.0
        weighted[row, codes] -= c
        total = weighted.sum(axis=0)
        small = ROUNDED * np.abs(weighted).sum()
        if not problem.task.intercept or np.abs(total).max() <= small:
            return b, losses, p
        step, t = np.linalg.lstsq(curvature, -total, rcond=None)[0], 1.0
        before = float(losses @ c)
        losses, p = at(b + step)
        while float(losses @ c) > before * (1 + ROUNDED) and t > ROUNDED:
            t /= 4
            losses, p = at(b + t * step)
        b = b + t * step
    return None


def _margins(block: Block, coef: Array) -> Array:
    """``X w`` for weights (outputs, d): (rows, outputs)."""
    return np.concatenate([X @ coef.T for _, X in pieces(block.X, np.float64)])


def _combination(block: Block) -> Array:
    """``X' s`` with the slopes (rows, outputs) beside the rows: (outputs, d)."""
    slopes = block.extra["slopes"]
    total = np.zeros((slopes.shape[1], block.X.shape[1]))
    for rows, X in pieces(block.X, np.float64):
        total += (X.T @ slopes[rows]).T
    return total
