"""Stochastic variance-reduced gradient: an epoch of single-row steps around an anchor.

::

    epoch     the last weights are the anchor: objective, gradient, slopes of all rows
              n steps, one row each, drawn by how steep its loss is

A step has length ``1 / (steepness)`` in the metric of the Hessian's diagonal, bounded from
below so that rare columns do not slow down all others. Rows are drawn in proportion to
half their own bound of curvature and half to 1 (Xiao, Zhang, "A proximal stochastic
gradient method with progressive variance reduction", SIAM J. Optim. 24, 2014), at even
distances through the distribution: with equal bounds every row comes once. They are
shuffled once, in memory: an epoch that jumped from row to row would wait for memory, not
for arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlopt.costs import Cost
from mlopt.gd.curvature import STEEPEST
from mlopt.gd.plans import wide
from mlopt.gd.plans.gathered import Gathered, gathering
from mlopt.gd.plans.method import Method, Solver, Start, at_least
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.sequential import EPOCH, SETUP, Sequential
from mlopt.gd.plans.stop import RelativeGap
from mlopt.gd.plans.task import Problem
from mlopt.gd.plans.watch import watch
from mlopt.gd.pricing import alone
from mlopt.gd.sizes import CACHE
from mlopt.kernels.one_row import combination, products
from mlopt.kernels.pointwise import losses_and_slopes
from mlopt.kernels.variance_reduced import variance_reduced_steps
from mlopt.prices import price
from mlopt.resources import Resources

Array = NDArray[Any]

LOSSES = frozenset({"logistic", "squared", "squared_hinge", "huber"})
"""What it can minimise."""

_EPOCHS = price("svrg.epochs")
_DOUBT = price("svrg.doubt")
_STEP_DENSE = price("svrg.step.dense")
_STEP_SPARSE = price("svrg.step.sparse")
_STEP_ROW = price("svrg.step.row")
_FLOOR = 8.0
"""Mean squares of a column at least, in units of the mean row's length by all rows: rare
columns must not slow down all others."""
_CUT = 0.5
"""Of the length of steps, after an epoch that was taken back."""
_LEAST_RATE = 1e-6
"""Of the first length, at which no step helps any more."""


class VarianceReduced(Sequential):
    """A `mlopt.training.Training`; see `Sequential` for the parameters.

    The loss is smooth: "logistic", "squared", "squared_hinge" or "huber". An epoch after
    which the objective is higher is taken back, and steps are halved.
    """

    def __init__(
        self, problem: Problem, tolerance: float, max_passes: int, start: Start = None
    ) -> None:
        super().__init__(problem, tolerance, max_passes, start)
        self._data, task = Gathered.of(problem.rows).shuffled(problem.seed), problem.task
        h, n = STEEPEST[task.loss_name], problem.rows.n
        squares = h * _mean_squares(self._data)
        floor = _FLOOR * squares.sum() / n
        self._scale = 1.0 / np.append(squares + task.l2 + floor, h + floor)
        if not task.fit_intercept:
            self._scale[-1] = 0.0
        steep = h * n * self._data.c * _lengths(self._data.X, self._scale)
        self._chances = _chances(steep, self._data.c)
        used = self._chances > 0
        self._c = np.zeros(n)
        self._c[used] = self._data.c[used] / self._chances[used]
        largest = float(np.max(steep[used] / self._chances[used])) / n
        self._rate = 1.0 / max(largest, np.finfo(float).tiny)
        self._watch = watch(problem, tolerance)
        self._cut = 1.0
        self._measure()

    def _measure(self) -> None:
        """Objective, gradient of the loss and slopes at the weights."""
        data, task, w = self._data, self._problem.task, self._weights
        z = products(data.X, w) + w[-1]
        losses, self._slopes = losses_and_slopes(task.loss_name, z, data.y, task.delta)
        weighted = self._slopes * data.c
        self._gradient = np.append(combination(data.X, weighted), weighted.sum())
        penalty = 0.5 * task.l2 * float(w[:-1] @ w[:-1])
        self._value = float(losses @ data.c) + penalty

    def _epoch(self) -> None:
        anchor, before = self._weights.copy(), self._value
        self._step()
        self._measure()
        if self._value <= before:
            self._look()
            return
        self._weights = anchor
        self._measure()
        if np.isinf(self._gap):  # nobody looked at the start yet
            self._look()
        self._cut *= _CUT
        self._stuck = self._cut < _LEAST_RATE

    def _step(self) -> None:
        task, data = self._problem.task, self._data
        variance_reduced_steps(
            data.X, data.y, self._c, self._slopes, self._order(), loss=task.loss_name,
            rate=self._rate * self._cut, l2=task.l2, delta=task.delta,
            gradient=self._gradient, scale=self._scale, w=self._weights,
        )  # fmt: skip

    def _order(self) -> NDArray[np.int64]:
        random, n = (
            np.random.default_rng((self._problem.seed, self._passes)),
            len(self._chances),
        )
        ends = np.cumsum(self._chances)
        places = (np.arange(n) + random.random()) * (ends[-1] / n)
        drawn = np.minimum(np.searchsorted(ends, places, side="right"), n - 1)
        return np.asarray(np.roll(drawn, int(random.integers(n))), np.int64)

    def _look(self) -> None:
        gradient = self._penalised(self._gradient.copy())
        self._gap = self._watch.gap(self._value, gradient, self._weights)

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        return super().state() | {"cut": self._cut, "watch": self._watch.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of the same problem."""
        super().restore(state)
        self._measure()
        self._cut = float(state["cut"])
        self._watch.restore(state["watch"])


def _chances(steep: Array, c: Array) -> Array:
    """With which rows are drawn, (n,), of sum 1."""
    used = c > 0
    even = used / used.sum()
    total = steep.sum()
    return np.asarray(0.5 * steep / total + 0.5 * even if total > 0 else even)


def _mean_squares(data: Gathered) -> Array:
    """Weighted mean squares of the columns, (d,)."""
    X, c = data.X, data.c
    if sp.issparse(X):
        weights = np.repeat(c, np.diff(X.indptr))
        found = np.bincount(X.indices, weights * X.data**2.0, minlength=X.shape[1])
        return np.asarray(found, np.float64)
    total = np.zeros(X.shape[1])
    for part in _parts(X):
        total += c[part] @ np.square(X[part], dtype=np.float64)
    return total


def _parts(X: Array) -> list[slice]:
    """Rows whose squares are near the core together."""
    size = max(CACHE // (8 * X.shape[1]), 64)
    return [slice(start, start + size) for start in range(0, len(X), size)]


def _lengths(X: Any, scale: Array) -> Array:
    """Squared lengths of the rows, with a 1 behind them, in a diagonal metric, (n,)."""
    if sp.issparse(X):
        squared = sp.csr_array((X.data**2.0, X.indices, X.indptr), shape=X.shape)
        return np.asarray(squared @ scale[:-1] + scale[-1])
    found = [np.square(X[part], dtype=np.float64) @ scale[:-1] for part in _parts(X)]
    return np.asarray(np.concatenate(found) + scale[-1])


def epochs_cost(outline: Outline, resources: Resources, epochs: float) -> Cost:
    """Epochs of a full gradient and a step for every row, on one thread."""
    shape = outline.shape
    price = _STEP_SPARSE if shape.sparse else _STEP_DENSE
    work = price * shape.nonzero + _STEP_ROW * shape.n
    all_ = epochs + SETUP
    return alone(all_ * work, resources) + all_ * EPOCH


def _begin(problem: Problem, stop: RelativeGap, max_passes: int, start: Start) -> Solver:
    return VarianceReduced(problem, stop.tolerance, max_passes, start)


SVRG = Method(
    "svrg", LOSSES, lambda shape: _EPOCHS, gathering(epochs_cost), _begin, continues=True,
    least=at_least(16), believed=1.0, doubt=_DOUBT, foreseen=wide.epochs,
)  # fmt: skip
