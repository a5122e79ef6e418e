"""Newton's method without a Hessian: conjugate gradients multiply by it, row by row.

::

    a pass   gradient, and the diagonal of the Hessian, at a new point
    passes   X' D X p, a step of conjugate gradients each, until the gradient that is left
             is a tenth of it, or as small as was asked for
             how far to go: margins of the steps were kept, so that no row is read

Dembo, Eisenstat, Steihaug, "Inexact Newton methods", SIAM J. Numer. Anal. 19, 1982. Lin,
Weng, Keerthi, "Trust region Newton method for large-scale logistic regression", JMLR 9,
2008, whose problems these are: rows of many columns, of which few have a value.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import daxpy

from mlopt.gd.gap import strong_convexity_bound
from mlopt.gd.plans.bracket import margins
from mlopt.gd.plans.by_plane import one_by_one
from mlopt.gd.plans.method import Method, Price, Solver, Start, at_least
from mlopt.gd.plans.one_model import OneModel
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import GradientNorm, Minimum, RelativeGap, tolerances
from mlopt.gd.plans.task import Problem
from mlopt.gd.pricing import handing, read_alone, scan
from mlopt.gd.sample import KINKED
from mlopt.gd.sizes import LOST, ROUNDINGS, SUFFICIENT
from mlopt.kernels.linear import hessian_weights
from mlopt.kernels.losses import LOSSES as NUMBERS
from mlopt.kernels.one_row import curved, sloped
from mlopt.kernels.pointwise import losses_and_slopes
from mlopt.locking import cached_property
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.rows import Block, Rows

Array = NDArray[Any]

LOSSES = frozenset({"logistic", "squared_hinge"})
"""What it can minimise."""

_PASSES, _DOUBT = price("newton-cg.passes"), price("sequential.doubt")
_VALUE = (price("newton-cg.value.dense"), price("newton-cg.value.sparse"))
_ROW, _STEP = price("newton-cg.row"), price("newton-cg.step")
_VECTORS = price("newton-cg.vectors")
_LEFT, _ENOUGH = price("newton-cg.left"), price("newton-cg.enough")
_POWER, _CURVED = price("newton-cg.power"), price("newton.curved")
_ROUNDING = ROUNDINGS * float(np.finfo(np.float64).eps)


class NewtonCG(OneModel):
    """A `mlopt.training.Training` of one model, a gradient or a product a pass.

    Parameters
    ----------
    problem : Problem
        Of one column of weights, with a penalty.
    stop : RelativeGap or GradientNorm
        A gap counts as reached where ``||g||^2 / (2 l2)`` is within it, which bounds it
        once the intercept is the best for the weights.
    max_passes : int
    start : (coef, intercept), optional
        Arrays (1, d) and (1,); default 0.
    """

    _kept = (
        "passes", "gap", "_weights", "_margins", "_gradient", "_scale", "_residual",
        "_direction", "_step", "_moved", "_value", "_energy", "_promised", "_arrived",
        "_stuck",
    )  # fmt: skip

    def __init__(
        self, problem: Problem, stop: Minimum, max_passes: int, start: Start = None
    ) -> None:
        rows, model = problem.rows, problem.model
        self._problem, self._max_passes, self.passes = problem, max_passes, 0
        self._gtol, self._tolerance = tolerances(stop)
        self._y, self._c = problem.targets_and_shares()
        # Of all weights, the intercept's last: penalties, and which there are.
        self._l2 = np.append(np.full(rows.d, model.l2), model.intercept_l2)
        self._free = np.append(np.ones(rows.d), float(model.fit_intercept))
        self._weights, self._margins = np.zeros(rows.d + 1), np.zeros(rows.n)
        if start is not None:
            self._weights[:] = np.append(start[0][0], start[1][0]) * self._free
        self._gradient = np.full(rows.d + 1, np.inf)
        self._scale, self._residual = np.ones(rows.d + 1), -self._gradient
        self._direction, self._step = np.zeros(rows.d + 1), np.zeros(rows.d + 1)
        self._moved = np.zeros(rows.n)
        self._value = self.gap = np.inf
        self._energy, self._arrived, self._stuck = 0.0, True, False
        self._promised = np.inf

    @property
    def converged(self) -> bool:
        """Whether it is at the tolerance; of gradients, or at all that rounding allows."""
        if self._tolerance:
            return bool(self.gap <= self._tolerance)
        near = np.abs(self._gradient).max() <= self._gtol
        # A step that promised more was too long, not lost in rounding.
        lost = SUFFICIENT * self._promised <= 2 * _ROUNDING * self._value
        return bool(near or (self._stuck and lost and np.isfinite(self._value)))

    def _pass(self) -> None:
        """A gradient where it has arrived, else a product."""
        if self._arrived:
            self._look()
        else:
            self._multiply()

    def _losses(self, margins: Array) -> tuple[float, Array]:
        """The mean loss, and the slopes of its terms."""
        losses, slopes = losses_and_slopes(self._problem.task.loss_name, margins, self._y)
        return float(losses @ self._c), slopes * self._c

    @cached_property
    def _curved_rows(self) -> Rows:
        """The rows, with their curvatures beside them: where it is, until it moves."""
        number = NUMBERS[self._problem.task.loss_name]
        curvatures = hessian_weights(number, self._margins, self._y) * self._c
        return self._problem.rows.attach(curvatures=curvatures)

    def _look(self) -> None:
        """Gradient and diagonal where it is, and a first direction."""
        rows, w = self._problem.rows, self._weights
        if not self.passes and w.any():
            w = self._begin_from(margins(rows, w[:-1]) + w[-1])
        loss, slopes = self._losses(self._margins)
        sums = self._curved_rows.attach(slopes=slopes).map_reduce(_slopes, operator.add)
        before, value = float(np.linalg.norm(self._gradient)), self._value
        self._gradient = (sums[0] + self._l2 * w) * self._free
        self._value = loss + 0.5 * float(self._l2 @ (w * w))
        size = float(np.linalg.norm(self._gradient))
        bound = strong_convexity_bound(size**2, self._l2[0])
        self.gap = float(bound / max(self._value, np.finfo(np.float64).tiny))
        # Where objectives do not tell points apart, gradients still shrink.
        fell = self._value < value * (1 - _ROUNDING) or size < 0.5 * before
        self._stuck = not (fell and np.isfinite(size))
        curvature = sums[1] + self._l2
        # An intercept that there is not has no curvature, nor one of rows that are all far
        # from where losses bend.
        self._scale = np.where(curvature > 0.0, np.power(curvature, _POWER), 1.0)
        self._residual = -self._gradient
        self._direction = self._residual / self._scale
        self._energy = float(self._residual @ self._direction)
        self._step, self._moved = np.zeros_like(w), np.zeros_like(self._margins)
        self._arrived = False

    def _begin_from(self, z: Array) -> Array:
        """The start, of margins ``z``, unless zero is less: far away nothing is curved."""
        zero = np.zeros_like(self._weights)
        if self._objective(self._weights, z) < self._objective(zero, self._margins):
            self._margins = z
        else:
            self._weights = zero
        return self._weights

    def _objective(self, w: Array, z: Array) -> float:
        """At weights (d + 1,) and their margins (n,)."""
        return float(self._losses(z)[0] + 0.5 * float(self._l2 @ (w * w)))

    def _multiply(self) -> None:
        """A step of conjugate gradients; after the last one, to where they have led."""
        p, rows = self._direction, self._curved_rows
        handle = rows.executor.put(p)
        moved, images = zip(*rows.map(_image, handle), strict=True)
        rows.executor.release(handle)
        image = self._l2 * p
        for one in images:
            image += one
        image *= self._free
        curvature = float(p @ image)
        if not curvature > 0.0:  # rounding, not mathematics
            self._move()
            return
        length = self._energy / curvature
        self._step = daxpy(p, self._step, a=length)  # where it is
        self._moved += length * np.concatenate(moved)
        self._residual = daxpy(image, self._residual, a=-length)
        left = float(np.linalg.norm(self._residual))
        if not left > self._enough():
            self._move()
            return
        scaled = self._residual / self._scale
        energy = float(self._residual @ scaled)
        self._direction = daxpy(p, scaled, a=energy / self._energy)
        self._energy = energy

    def _enough(self) -> float:
        """The norm of a residual that leads far enough."""
        asked = np.sqrt(2.0 * self._l2[0] * self._tolerance * self._value)
        size = float(np.linalg.norm(self._gradient))
        return max(_LEFT * size, _ENOUGH * max(float(asked), self._gtol))

    def _move(self) -> None:
        """Take the step, or as much of it as the objective falls along."""
        w, step, t = self._weights, self._step, 1.0
        slope = float(self._gradient @ step)
        self._promised = -slope
        while t > LOST:
            there, z = w + t * step, self._margins + t * self._moved
            value = self._objective(there, z)
            if value <= self._value * (1 + _ROUNDING) + SUFFICIENT * t * slope:
                self._weights, self._margins, self._arrived = there, z, True
                del self._curved_rows
                return
            t *= 0.5
        self._stuck = True

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of the same problem."""
        super().restore(state)
        vars(self).pop("_curved_rows", None)


def _slopes(block: Block) -> Array:
    return sloped(block.X, block.extra["slopes"], block.extra["curvatures"])


def _image(block: Block, p: Array) -> tuple[Array, Array]:
    return curved(block.X, block.extra["curvatures"], p)


def _price(outline: Outline, resources: Resources) -> Price | str:
    shape = outline.shape
    if outline.l2 == 0:
        return "nothing bounds its gap without a penalty: `l2` must be positive"
    curved = _CURVED if outline.loss == KINKED else 1.0  # others are not multiplied
    products = curved * _VALUE[shape.sparse] * shape.nonzero + _ROW * shape.n
    python = _STEP + handing(shape.blocks, resources)
    read = scan(shape, resources, 8.0 * (shape.d + shape.n))
    each = replace(read, python=python, flops=products / resources.workers)
    each += read_alone(_VECTORS * 8.0 * shape.d, resources)
    return lambda passes: shape.columns * passes * each


def _begin(problem: Problem, stop: Minimum, max_passes: int, start: Start) -> Solver:
    def one(plane: Problem, start: Start) -> NewtonCG:
        return NewtonCG(plane, stop, max_passes, start)

    return one_by_one(problem, one, start)


NEWTON_CG = Method(
    "newton-cg", LOSSES, lambda shape: _PASSES, _price, _begin,
    stops=(RelativeGap, GradientNorm), continues=True, least=at_least(1), doubt=_DOUBT,
    free=1,
)  # fmt: skip
