"""Stochastic gradient descent, row by row, of many linear models in lockstep.

::

    epoch:   row 17 -> all models,  row 4 -> all models,  row 230 -> ...
             columns 0..63 on one thread, columns 64..127 on another

Every model sees the same rows in the same order, which one read serves. The updates are
those of scikit-learn's ``SGDClassifier`` and ``SGDRegressor``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import between_passes
from mlopt.errors import InputError
from mlopt.gd.columns import Indices, Layout, Model
from mlopt.gd.linear_training import LinearTraining
from mlopt.gd.passes import Floats
from mlopt.kernels.permutation import permutation
from mlopt.kernels.sgd import SCHEDULES, SPARSE_INTERCEPT_DECAY, Steps, sgd_epoch
from mlopt.passes import Passes, stretch
from mlopt.rows import Block, Rows

LANE = 64
"""Columns that go through the rows together."""
RUNNING, CONVERGED, DIVERGED = range(3)
ADAPTIVE_DIVISOR = 5.0
"""Of the rate, after epochs that do not help: scikit-learn's."""
ADAPTIVE_LEAST = 1e-6
"""The rate at which a training ends: scikit-learn's."""


@dataclass(frozen=True)
class Schedule:
    """How the step size of one model falls; ``t`` counts its steps from 1.

    Parameters
    ----------
    kind : str, default="optimal"
        "constant": ``eta0``; "invscaling": ``eta0 / t**power_t``; "optimal":
        ``1 / (l2 (t0 + t))`` with Bottou's ``t0``; "adaptive": ``eta0``, divided by 5 each
        time that the objective stops falling.
    eta0 : float, default=0.01
        Not used by "optimal".
    power_t : float, default=0.25
    """

    kind: str = "optimal"
    eta0: float = 0.01
    power_t: float = 0.25

    def __post_init__(self) -> None:
        if self.kind not in SCHEDULES:
            raise InputError(f"`kind` must be one of {list(SCHEDULES)}, got {self.kind!r}.")
        if self.kind != "optimal" and not self.eta0 > 0:
            raise InputError(f"`eta0` must be positive, got {self.eta0}.")


def first_steps(plan: Layout, schedules: Sequence[Schedule], *, sparse: bool) -> Steps:
    """The step sizes of all columns before their first step.

    Parameters
    ----------
    plan : Layout
    schedules : sequence of Schedule
        One a model.
    sparse : bool
        Whether rows are sparse; intercepts then take smaller steps, as in scikit-learn.
    """
    for model, schedule in zip(plan.models, schedules, strict=True):
        if schedule.kind == "optimal" and not model.l2 > 0:
            raise InputError(
                'The schedule "optimal" needs a penalty, got `l2` = 0: choose another.'
            )
    decay = SPARSE_INTERCEPT_DECAY if sparse else 1.0
    kinds = np.array([SCHEDULES[s.kind] for s in schedules], np.int64)
    return Steps(
        schedule=kinds[plan.owner],
        alpha=plan.l2.copy(),
        eta0=plan.per_column([s.eta0 for s in schedules]),
        power_t=plan.per_column([s.power_t for s in schedules]),
        t=np.ones(plan.width),
        intercept=np.where(plan.with_intercept, decay, 0.0),
    )


@dataclass(frozen=True)
class Lane:
    """Some columns on their way through the rows.

    Attributes
    ----------
    columns : ndarray of shape (B',)
        Which columns of the training these are.
    segments, deltas
        As in `Layout`.
    weights : ndarray of shape (d + 1, B')
    steps : Steps
    loss : ndarray of shape (B',)
        Sums since this part of the epoch began, each before its step.
    """

    columns: Indices
    segments: Indices
    deltas: NDArray[np.float64]
    weights: Floats
    steps: Steps
    loss: NDArray[np.float64]


@dataclass(frozen=True)
class Part:
    """Of an epoch: every block's rows, in its order, from one share of them to another."""

    epoch: int
    begin: Fraction
    end: Fraction


class LockstepSGD(LinearTraining):
    """One epoch of per-sample steps a pass; a part of a pass is a part of an epoch.

    Rows that are in one block are shuffled as a whole before every epoch, as scikit-learn
    does; rows are brought into one whenever memory allows, here and on workers alike. Where
    it does not, they are shuffled within their blocks, which are taken in a random order.

    A model has converged when its objective, averaged over an epoch, was not below its
    best by ``tol`` for ``n_iter_no_change`` epochs in a row (scikit-learn's rule; the
    penalty's average is taken from the weights before and after the epoch). With
    ``outputs`` > 1 every class is trained against the rest and stops by itself.

    Parameters
    ----------
    rows, models, max_passes
        See `LinearTraining`; row weights multiply the steps, and are not normalised.
    schedules : sequence of Schedule
        One each.
    seed : int, default=0
        Of the shuffles.
    tol : float or None, default=1e-3
        None: no stop before ``max_passes``.
    n_iter_no_change : int, default=5
    shuffle : bool, default=True
    """

    def __init__(
        self,
        rows: Rows,
        models: Sequence[Model],
        schedules: Sequence[Schedule],
        *,
        seed: int = 0,
        tol: float | None = 1e-3,
        n_iter_no_change: int = 5,
        max_passes: int = 1000,
        shuffle: bool = True,
    ) -> None:
        super().__init__(rows, models, max_passes)
        self.seed, self.shuffle = seed, shuffle
        self.tol = -np.inf if tol is None else tol
        self.n_iter_no_change = n_iter_no_change
        self._schedules = list(schedules)
        self._trained = rows.in_one_block()
        self._counts = self._trained.map_reduce(_count_rows, np.add)
        width = self._layout.width
        self._steps = first_steps(self._layout, self._schedules, sparse=rows.sparse)
        self._best = np.full(width, np.inf)
        self._worse = np.zeros(width, np.int64)
        self._status = np.full(width, RUNNING)
        self._part = Fraction(0)
        # Since the epoch began: losses, and the squared norms of the weights it began with.
        self._loss, self._begun = np.zeros(width), np.zeros(width)

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Which models have met the stop rule, (M,)."""
        return self._all(self._status == CONVERGED)

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Which models have converged, or overflowed, (M,)."""
        return self._all(self._status != RUNNING)

    def _all(self, columns: NDArray[np.bool_]) -> NDArray[np.bool_]:
        failing = np.bincount(self._layout.owner, ~columns, minlength=len(self.models))
        return np.asarray(failing == 0)

    @property
    def made(self) -> Passes:
        """Passes so far, with the part of one that has begun."""
        return self.passes + self._part if self._part else self.passes

    def advance(self, passes: int) -> None:
        """Train for up to ``passes`` more epochs."""
        self.advance_to(self.made + passes)

    def advance_to(self, passes: Passes) -> None:
        """Train until ``passes`` passes are made in all; it may end within an epoch."""
        with between_passes():
            while self.made < passes and not self.done:
                end = min(Fraction(passes - self.passes), Fraction(1))
                self._visit(Part(self.passes, self._part, end))
                self.passes, self._part = self.passes + int(end), end % 1

    def _visit(self, part: Part) -> None:
        numbers = np.flatnonzero(~self.finished)
        chosen = self._layout.lanes(numbers.tolist(), LANE)
        lanes = [self._lane(columns) for columns in chosen]
        seed = (self.seed, part.epoch) if self.shuffle else None
        rows = self._trained
        if self.shuffle and len(rows.shelves) > 1:
            order = permutation(len(rows.shelves), self.seed, part.epoch)
            rows = rows.in_order(order.tolist())
        for lane in rows.fold(_part_of_epoch, lanes, seed, part):
            self._arrive(lane, part)
        self._stale[:, numbers] = True

    def _lane(self, numbers: list[int]) -> Lane:
        plan, columns = self._layout.select(numbers)
        weights = np.ascontiguousarray(self._weights[:, columns])
        steps = self._steps.take(columns)
        zeros = np.zeros(plan.width)
        return Lane(columns, plan.segments, plan.deltas, weights, steps, zeros)

    def _arrive(self, lane: Lane, part: Part) -> None:
        """Take over what a part has made of some columns; judge those that overflowed.

        At the end of an epoch the stop rule applies to all.
        """
        going = self._status[lane.columns] == RUNNING
        columns, weights = lane.columns[going], lane.weights[:, going]
        if part.begin == 0:
            self._loss[columns] = 0.0
            self._begun[columns] = _squared_norms(self._weights[:, columns])
        self._weights[:, columns] = weights
        self._steps.t[columns] = lane.steps.t[going]
        self._loss[columns] += lane.loss[going]
        if part.end == 1:
            self._judge(columns)
        lost = ~(np.isfinite(weights).all(axis=0) & np.isfinite(self._loss[columns]))
        self._status[columns[lost]] = DIVERGED

    def _judge(self, columns: Indices) -> None:
        norms = 0.5 * (self._begun[columns] + _squared_norms(self._weights[:, columns]))
        count = self._counts[self._layout.rowsets[columns]]
        with np.errstate(over="ignore", invalid="ignore"):
            mean = self._loss[columns] / count + 0.5 * self._layout.l2[columns] * norms
        best = self._best[columns]
        worse = (mean > best - self.tol) & (self.tol > -np.inf)
        self._worse[columns] = np.where(worse, self._worse[columns] + 1, 0)
        self._best[columns] = np.fmin(best, mean)
        stale = self._worse[columns] >= self.n_iter_no_change
        adaptive = np.array([s.kind == "adaptive" for s in self._schedules])
        lower = stale & adaptive[self._layout.owner[columns]]
        lower &= self._steps.eta0[columns] > ADAPTIVE_LEAST
        self._steps.eta0[columns[lower]] /= ADAPTIVE_DIVISOR
        self._worse[columns[lower]] = 0
        self._status[columns[stale & ~lower]] = CONVERGED
        self._status[columns[~np.isfinite(mean)]] = DIVERGED

    def quality(self) -> NDArray[np.float64]:
        """Accuracy or minus the mean squared error, (M,); NaN for what overflowed."""
        quality = super().quality()
        lost = np.bincount(self._layout.owner, self._status == DIVERGED) > 0
        return np.where(lost, np.nan, quality)

    def learnt(self, number: int) -> dict[str, Any]:
        """The step that comes next, of the column that has made most."""
        return {"t_": float(self._steps.t[self._layout.columns(number)].max())}

    def _keep(self, numbers: Indices, taken: Indices) -> None:
        self._schedules = [self._schedules[i] for i in numbers]
        self._steps = self._steps.take(taken)
        self._best, self._worse = self._best[taken], self._worse[taken]
        self._status = self._status[taken]
        self._loss, self._begun = self._loss[taken], self._begun[taken]

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        return super().state() | {
            "t": self._steps.t.copy(),
            "eta0": self._steps.eta0.copy(),
            "best": self._best.copy(),
            "worse": self._worse.copy(),
            "status": self._status.copy(),
            "part": self._part,
            "loss": self._loss.copy(),
            "begun": self._begun.copy(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of a training of the same models on the same rows."""
        super().restore(state)
        t, eta0 = np.array(state["t"]), np.array(state["eta0"])
        self._steps = replace(self._steps, t=t, eta0=eta0)
        self._best, self._worse = np.array(state["best"]), np.array(state["worse"])
        self._status = np.array(state["status"])
        self._part = Fraction(state["part"])
        self._loss, self._begun = np.array(state["loss"]), np.array(state["begun"])


def _squared_norms(weights: Floats) -> NDArray[np.float64]:
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.einsum("ij,ij->j", weights[:-1], weights[:-1], dtype=np.float64)
    return np.asarray(norms)


def _count_rows(block: Block) -> NDArray[np.int64]:
    return np.asarray((block.extra["weights"] > 0).sum(axis=0))


def _part_of_epoch(
    block: Block, lane: Lane, seed: tuple[int, int] | None, part: Part
) -> Lane:
    if seed is None:
        order = np.arange(block.rows)
    else:
        order = permutation(block.rows, *seed, block.index)
    W, b = lane.weights[:-1].copy(), lane.weights[-1].copy()
    steps = replace(lane.steps, t=lane.steps.t.copy())
    extra = block.extra
    loss = sgd_epoch(
        block.X, stretch(order, part.begin, part.end), extra["targets"], extra["weights"],
        W, b, lane.segments, lane.deltas, steps,
    )  # fmt: skip
    return replace(lane, weights=np.vstack([W, b]), steps=steps, loss=lane.loss + loss)
