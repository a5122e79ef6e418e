"""Coordinate descent on the weights themselves, for rows that have little in common.

See `mlopt.kernels.coordinates`. An epoch visits every column once, in an order drawn
beforehand, and the intercept more often. After every few epochs it goes on from where the
last ones seem to lead (`mlopt.gd.plans.extrapolation`), if the objective is lower there;
weights and margins are extrapolated alike. When steps have become small, the whole
gradient, which slopes and columns give without a look at the losses, tells the gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.costs import Cost
from mlopt.gd.curvature import STEEPEST
from mlopt.gd.plans.by_columns import transposed
from mlopt.gd.plans.extrapolation import MEMORY, mixture
from mlopt.gd.plans.gathered import EPOCH, gathered
from mlopt.gd.plans.method import Method, Price, Solver, Start, at_least
from mlopt.gd.plans.one_model import OneModel
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import RelativeGap
from mlopt.gd.plans.task import Problem
from mlopt.gd.plans.watch import Watch, watch, watchable
from mlopt.gd.pricing import alone
from mlopt.gd.sizes import WIDEST
from mlopt.kernels.coordinates import column_slopes, coordinate_epoch
from mlopt.kernels.one_row import products
from mlopt.kernels.pointwise import losses_and_slopes
from mlopt.kernels.shrinkage import column_moments
from mlopt.locking import cached_property
from mlopt.prices import price
from mlopt.resources import Resources

Array = NDArray[Any]

LOSSES = frozenset({"logistic", "squared", "squared_hinge", "huber"})
"""What it can minimise."""

_EPOCHS, _DOUBT = price("primal.epochs"), price("sequential.doubt")
SETUP = price("sequential.setup")
"""Epochs in whose time the columns are copied, and their squares summed."""
_VISIT = (price("primal.visit.dense"), price("primal.visit.sparse"))
_ROW, _COLUMN = price("primal.row"), price("primal.column")
_LOGARITHMS = price("primal.logarithms")
_COLUMNS_PER_INTERCEPT = price("primal.intercept")
_AGAIN = price("primal.looks")
_ROUNDING = 1e-3 * float(np.finfo(float).eps)
_NEAR = 10.0
"""The gap is looked at when an epoch gained no more than so many tolerances."""
_TRIFLE = 0.005
"""Columns that promise less than this share of the last epoch's mean are passed over."""


class PrimalCoordinate(OneModel):
    """A `mlopt.training.Training` of one model, an epoch at a time, until its gap is small.

    Parameters
    ----------
    problem : Problem
        With a smooth loss: "logistic", "squared", "squared_hinge" or "huber".
    tolerance : float
        Converged when the relative gap of the objective is at most this.
    max_passes : int
        Epochs.
    start : (coef, intercept), optional
        Arrays (1, d) and (1,).
    """

    _kept = (
        "passes", "_weights", "_margins", "_slopes", "_curvature", "_past",
        "_past_margins", "_trifle", "_value", "gap", "_stuck", "_next",
    )  # fmt: skip

    def __init__(
        self, problem: Problem, tolerance: float, max_passes: int, start: Start = None
    ) -> None:
        self._problem, self._tolerance = problem, tolerance
        self._max_passes, self.passes = max_passes, 0
        self._weights = np.zeros(problem.rows.d + 1)
        if start is not None:
            self._weights[:-1], self._weights[-1] = start[0][0], start[1][0]
        self._value = self.gap = np.inf
        self._stuck, self._next = False, 0
        X, task = gathered(problem.rows), problem.task
        self._y, self._c = problem.targets_and_shares()
        self._columns = transposed(X)
        _, weighted = column_moments(self._columns, np.arange(problem.rows.d), self._c)
        self._bound = STEEPEST[task.loss_name] * np.append(weighted, 1.0)
        self._bound[:-1] += task.l2
        self._curvature = self._bound.copy()
        self._margins = products(X, self._weights) + self._weights[-1]
        self._order = _order(problem)
        self._past = np.tile(self._weights, (MEMORY + 1, 1))
        self._past_margins = np.tile(self._margins, (MEMORY + 1, 1))
        self._fell, self._trifle = np.inf, 0.0
        self._refresh()

    @cached_property
    def _watch(self) -> Watch:
        return watch(self._problem, self._tolerance)

    def _losses(self) -> tuple[Array, Array]:
        task = self._problem.task
        return losses_and_slopes(task.loss_name, self._margins, self._y, task.delta)

    def _refresh(self) -> None:
        values, slopes = self._losses()
        self._slopes = slopes * self._c
        self._measure(values)

    def _measure(self, losses: Array) -> None:
        w = self._weights[:-1]
        penalty = 0.5 * self._problem.task.l2 * float(w @ w)
        self._value = float(losses @ self._c) + penalty

    def _pass(self) -> None:
        task, before = self._problem.task, self._value
        self._fell = coordinate_epoch(
            self._columns, self._y, self._c, self._order, loss=task.loss_name, l2=task.l2,
            delta=task.delta, trifle=self._trifle, bound=self._bound, z=self._margins,
            slopes=self._slopes, w=self._weights, curvature=self._curvature,
        )  # fmt: skip
        most = self._fell + self._trifle * len(self._weights)
        self._stuck = most <= _ROUNDING * abs(before)
        self._trifle = _TRIFLE * self._fell / len(self._weights)
        self._measure(self._losses()[0])
        if self._value > before:
            np.copyto(self._curvature, self._bound)
        self._remember()
        near = self._fell <= _NEAR * self._tolerance * abs(self._value)
        if near and (self.passes >= self._next or self._stuck):
            self._look()
            self._next = self.passes + 1 + int(_AGAIN * self.passes)

    def _remember(self) -> None:
        turn = (self.passes + 1) % (MEMORY + 1)
        self._past[turn], self._past_margins[turn] = self._weights, self._margins
        if turn == MEMORY:
            self._extrapolate()

    def _extrapolate(self) -> None:
        share = mixture(self._past)
        if share is None:
            return
        kept = self._weights, self._margins, self._slopes, self._value
        self._weights = share @ self._past[1:]
        self._margins = share @ self._past_margins[1:]
        self._refresh()
        if not self._value < kept[-1]:
            self._weights, self._margins, self._slopes, self._value = kept

    def _look(self) -> None:
        gradient = column_slopes(self._columns, self._slopes)
        gradient[:-1] += self._problem.task.l2 * self._weights[:-1]
        if not self._problem.task.fit_intercept:
            gradient[-1] = 0.0
        self.gap = self._watch.gap(self._value, gradient, self._weights)

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        watched = self._watch.state() if "_watch" in self.__dict__ else None
        return super().state() | {"watch": watched}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of the same problem."""
        super().restore(state)
        if state["watch"] is not None:
            self._watch.restore(state["watch"])


def _order(problem: Problem) -> NDArray[np.int64]:
    """All columns in random order, with the intercept, number d, among them."""
    rows = problem.rows
    order = np.random.default_rng(problem.seed).permutation(rows.d).astype(np.int64)
    if not problem.task.fit_intercept:
        return order
    visits = _visits_of_intercept(rows.nonzero / rows.n, rows.d)
    places = np.linspace(0, rows.d, visits + 1).astype(np.int64)[1:]
    return np.insert(order, places, rows.d)


def _visits_of_intercept(stored: float, d: int) -> int:
    """An epoch's visits to the column of ones, which every row has, of so many values."""
    return int(min(max(stored / _COLUMNS_PER_INTERCEPT, 1), d))


def epochs_cost(outline: Outline, resources: Resources, epochs: float) -> Cost:
    """Epochs of a visit to every column, on one thread, and what comes before them."""
    return (epochs + SETUP) * epoch_cost(outline, resources)


def epoch_cost(outline: Outline, resources: Resources) -> Cost:
    """A visit to every column, on one thread."""
    shape = outline.shape
    intercept = _visits_of_intercept(shape.nonzero / shape.n, shape.d)
    # Losses of all rows take about what a visit of the intercept does.
    visited = _VISIT[shape.sparse] * shape.nonzero + _ROW * (1 + intercept) * shape.n
    visited *= _LOGARITHMS if outline.loss == "logistic" else 1.0
    return alone(visited + _COLUMN * shape.d, resources) + EPOCH


def _price(outline: Outline, resources: Resources) -> Price | str:
    if not watchable(outline.l2, outline.shape.d):
        return (
            f"without a penalty, and with {WIDEST} columns and more, nothing tells its "
            "gap: `l2` must be positive"
        )
    return lambda epochs: epochs_cost(outline, resources, epochs)


def _foreseen(outline: Outline, tolerance: float) -> float | None:
    """Of wide rows' least squares: many, on columns so alike."""
    if outline.loss != "squared" or (seen := outline.spectrum) is None:
        return None
    l2 = outline.l2
    return seen.epochs(l2, tolerance / seen.looseness(l2))


def _begin(problem: Problem, stop: RelativeGap, max_passes: int, start: Start) -> Solver:
    return PrimalCoordinate(problem, stop.tolerance, max_passes, start)


PRIMAL_COORDINATE = Method(
    "primal-coordinate-descent", LOSSES, lambda shape: _EPOCHS, _price, _begin,
    continues=True, least=at_least(16), doubt=_DOUBT, foreseen=_foreseen,
    in_one_piece=True,
)  # fmt: skip
