"""L-BFGS for many linear models in lockstep: one pass over the rows is a step of each.

::

    sample of the rows          all rows
    ------------------          ----------------------------------------------
    train all models on it  ->  start
    Hessians of groups      ->  first guess of the inverse Hessians
                                pass: objective, gradient and score of all trial steps;
                                every unit takes its step or shortens it; who has
                                converged leaves the batch

Byrd, Hansen, Nocedal and Singer (2016) and Bollapragada, Byrd and Nocedal (2018) study
subsampled Hessians; the recursion is that of Liu and Nocedal (1989).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.gd import gap, penalty_path
from mlopt.gd.batch import Batch, Pairs, dots, largest
from mlopt.gd.columns import Indices, Layout, Model
from mlopt.gd.linear_training import SCORE, VALUE, LinearTraining
from mlopt.gd.passes import evaluate
from mlopt.gd.row_products import most_held
from mlopt.gd.sample import left_by_step, start_gap
from mlopt.gd.sampled_curvature import SampledCurvature
from mlopt.gd.sizes import CACHE, LOST
from mlopt.prices import count, price
from mlopt.resources import Resources
from mlopt.rows import Rows

RUNNING, CONVERGED, STUCK = range(3)
_NEWTON = price("quasi-newton.passes")
_PYTHON = price("quasi-newton.pass")
_COARSE_PASSES = count("quasi-newton.coarse")
_PAIR_BYTES = 2**30
"""That pairs of steps and gradients may take: a GiB."""
_NOTHING = 1e-5
"""Objectives below this share of what they are at zero weights count as zero."""


class QuasiNewton(LinearTraining):
    """Full passes with curvature from a sample; for every loss that is smooth.

    A model has converged when its objective is within ``tol`` (relative) of the minimum by
    the estimate of `mlopt.gd.gap`, or, with ``gtol``, when no component of its gradient is
    larger; or when rounding leaves nothing to gain. The hinge loss is not smooth: its
    models descend along sub-gradients until no step helps, and never count as converged.

    Parameters
    ----------
    rows, models, max_passes
        See `LinearTraining`. A pass evaluates one trial step of every unfinished model; the
        training on the sample, and of those between which others start, comes before the
        first one and is not counted.
    tol : float, default=1e-4
    gtol : float, optional
        Used instead of ``tol``: bound on ``max |gradient|`` of the objective.
    start : sequence of (coef, intercept), optional
        Where to start, one pair a model: arrays (outputs, d) and (outputs,). Default: the
        solutions on a sample of the rows if there are many, otherwise 0.
    memory : int, default=10
        Curvature pairs at most; fewer, down to 3, where all of them would pass 1 GiB, or a
        quarter of the memory.
    certain : bool, default=False
        Count models with a penalty as converged only where ``||g||^2 / (2 l2)``, which
        bounds the gap, is within ``tol``; what is estimated does not count then.
    known : QuasiNewton, optional
        A training on the same rows, whose sums and sample of them serve here too.
    """

    def __init__(
        self,
        rows: Rows,
        models: Sequence[Model],
        *,
        tol: float = 1e-4,
        gtol: float | None = None,
        max_passes: int = 100,
        start: Sequence[tuple[Any, Any]] | None = None,
        memory: int = 10,
        certain: bool = False,
        known: QuasiNewton | None = None,
    ) -> None:
        super().__init__(rows, models, max_passes, None if known is None else known._sums)
        self.tol, self.gtol, self._bounded = tol, gtol, certain
        self.memory = _pairs(memory, 2 * self._weights.nbytes)
        self._status = np.full(len(models), RUNNING)
        self._curvature: SampledCurvature = (
            known._curvature.afresh()
            if known is not None
            else SampledCurvature.of(rows, self._sums, self._layout.width)
        )
        self._started = start is not None
        for number, (coef, intercept) in enumerate(start or ()):
            own = np.column_stack((coef, intercept)).T
            self._weights[:, self._layout.columns(number)] = own
        self._batch: Batch | None = None
        self._idle = 0

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Which models have reached the tolerance, (M,)."""
        return np.asarray(self._status == CONVERGED)

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Which models are converged, or find no step that helps, (M,)."""
        return np.asarray(self._status != RUNNING)

    @property
    def gap(self) -> float:
        """How far objectives may be above their minima, relative to them.

        The worst of those in training, by the estimate of `mlopt.gd.gap`.
        """
        if self._batch is None:
            return self.tol if self.converged.all() else np.inf
        return float((self._gap(self._batch) / self._size(self._batch)).max())

    def ask(self, tolerance: float) -> None:
        """Go on to another ``tol``, those that have converged as well."""
        self.tol = tolerance
        if self.converged.any():
            self._status[self.converged] = RUNNING
            self._batch = None
            self._curvature.forget()

    def advance(self, passes: int) -> None:
        """Train for up to ``passes`` more passes."""
        for _ in range(passes):
            if self.done:
                return
            batch = self._enter()
            trial = batch.trial()
            found = evaluate(self.rows, trial, batch.plan, self._sums)
            self.passes += 1
            self._progress(batch, batch.settle(trial, found))

    def _enter(self) -> Batch:
        """The batch, with all unfinished models in it."""
        if self._batch is None:
            if not self._started:
                self._start(np.flatnonzero(self._status == RUNNING).tolist())
            self._batch = self._fresh(np.flatnonzero(self._status == RUNNING).tolist())
            if (known := np.isfinite(self._batch.value)).any():
                self._aim(self._batch, known, 0)
        return self._batch

    def _fresh(self, numbers: list[int]) -> Batch:
        """Models that have not been evaluated; except at zero, where that is cheap."""
        plan, columns = self._layout.select(numbers)
        weights = np.ascontiguousarray(self._weights[:, columns])
        fresh = Batch.at(weights, plan, numbers, self.memory)
        if not weights.any():
            # Margins are zero: a few columns serve all models.
            found = evaluate(self.rows, weights, plan, self._sums, scored=False)
            fresh.settle(weights, found)
        return fresh

    def _start(self, numbers: list[int]) -> None:
        """Train some models on the sample, or those between which the others start."""
        self._started = True
        models = [self.models[i] for i in numbers]
        first = list(range(len(models)))
        if len(models) >= penalty_path.FEWEST and self.max_passes >= penalty_path.ENOUGH:
            first = penalty_path.trained_first(models)
        if len(first) == len(models):
            self._start_on_sample(numbers, models)
            return
        coarse = self._like([models[i] for i in first])
        coarse.advance(self.max_passes)
        own = np.array(numbers)[first]
        self._write(own.tolist(), coarse._layout, coarse._weights)
        self._status[own[coarse.converged]] = CONVERGED
        self._value[own], self._score[own] = coarse._value, coarse._score
        self._stale[:, own] = coarse._stale
        places = [self._layout.columns(i) for i in numbers]
        trained = {i: self._weights[:, places[i]] for i in first}
        for i, weights in penalty_path.between(models, trained):
            self._weights[:, places[i]] = weights

    def _like(self, models: Sequence[Model]) -> QuasiNewton:
        """A training of other models, of the same kind and on the same rows."""
        return QuasiNewton(
            self.rows, models, tol=self.tol, gtol=self.gtol, max_passes=self.max_passes,
            memory=self.memory, certain=self._bounded, known=self,
        )  # fmt: skip

    def _start_on_sample(self, numbers: list[int], models: Sequence[Model]) -> None:
        """Train some models on the sample first, if it is much smaller than the rows."""
        sample, n, d = self._curvature.sample, self.rows.n, self.rows.d
        if sample.n > n // 2 or sample.n < 4 * d or not self._curvature.covers_row_sets():
            return
        # A sample that is hardly larger than d can be fitted too well: weights run off in
        # directions that all rows hold back.
        least = 0.1 * float(self._curvature.moments.squares.mean()) * d / sample.n
        milder = [replace(model, l2=max(model.l2, least)) for model in models]
        coarse = QuasiNewton(
            sample, milder, tol=0.3 * d / sample.n, max_passes=_COARSE_PASSES
        )
        coarse.advance(_COARSE_PASSES)
        self._write(numbers, coarse._layout, coarse._weights)

    def _progress(self, batch: Batch, moved: NDArray[np.bool_]) -> None:
        """Store what was reached, aim anew, let go of who is finished."""
        self._aim(batch, moved, 1)
        self._write(batch.numbers.tolist(), batch.plan, batch.weights)
        self._value[batch.numbers] = batch.plan.model_sum(batch.value)
        self._score[batch.numbers] = batch.score
        self._status[batch.numbers] = status = self._judge(batch)
        self._stale[VALUE, batch.numbers] = False
        self._stale[SCORE, batch.numbers] = np.isnan(batch.score)
        if (status != RUNNING).any():
            self._shrink(np.flatnonzero(status == RUNNING).tolist())

    def _aim(self, batch: Batch, moved: NDArray[np.bool_], passes: int) -> None:
        work = self._work(batch.plan)
        curvature, where = self._curvature, (batch.weights, batch.plan)
        if curvature.full and bool((batch.plan.widths > 1).all()):
            # Hessians of single classes are no Newton's, however new: what is learnt of
            # the classes together, step by step, is kept on top of the first ones.
            if curvature.inverse is None:
                curvature.current(*where, work=0.0)
            assert curvature.inverse is not None
            batch.aim(moved, curvature.inverse, rescaled=True)
            return
        if curvature.inverse is None:
            curvature.sharper(*where, ahead=(work + _PYTHON) * self._expected(batch.plan))
        inverse = curvature.current(*where, work=passes * work)
        batch.aim(moved, inverse, inverse.rescaled)
        if inverse.rescaled and batch.unpaired.any():
            batch.shorten(curvature.along(batch.weights, batch.direction, batch.plan))
        sharper = curvature.sharper(*where, ahead=work * self._ahead(batch))
        if sharper is not None:
            batch.aim(np.isfinite(batch.value), sharper, sharper.rescaled)
            if curvature.own_hessians(batch.plan):
                batch.forget_steps()

    def _work(self, plan: Layout) -> float:
        """Multiplications in whose time a pass is made.

        One column costs about as much as eight: X goes through memory all the same.
        """
        return 2.0 * self.rows.nonzero * max(plan.width, 8)

    def _ahead(self, batch: Batch) -> float:
        """Passes still to come at the present pace, beyond those of an exact Newton.

        The mean over all units: those that are there already count as none.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            pace = np.clip(batch.estimate / batch.estimates[0], 1e-3, 0.98)
            left = np.log(self._excess(batch)) / -np.log(pace)
        return max(float(np.clip(np.nan_to_num(left), 0, 50).mean()) - _NEWTON, 0.0)

    def _expected(self, plan: Layout) -> float:
        """The same from the solution of the sample, before any step."""
        size = self._curvature.sample.n
        if self.gtol is not None or size >= self.rows.n:
            return 0.0
        parameters = (self.rows.d + 1) * plan.width // len(plan.units)
        asked = max(self.tol, float(np.finfo(np.float64).eps))
        digits = np.log(start_gap(parameters, size) / asked)
        share = left_by_step(parameters, size, self.rows.sparse)
        return max(float(digits / -np.log(share)) - _NEWTON, 0.0)

    def _excess(self, batch: Batch) -> NDArray[np.float64]:
        """How many times each unit's gap is what was asked for; with ``gtol``, about."""
        if self.gtol is None:
            # An objective of zero, as of a constant target, asks for a gap of zero.
            asked = np.maximum(self.tol * self._size(batch), np.finfo(np.float64).tiny)
            return self._gap(batch) / asked
        most = largest(batch.gradient, batch.plan).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 is as near as it gets
            return np.asarray((most / self.gtol) ** 2)

    def _judge(self, batch: Batch) -> NDArray[np.int64]:
        plan = batch.plan
        eps = float(np.finfo(batch.weights.dtype).eps)
        size = self._size(batch)
        close = self._excess(batch) <= 1.0
        reached, idle = close, batch.estimate <= eps * size
        if self._bounded and idle.any():
            # Objectives do not tell steps from here apart, but gradients still shrink.
            self._idle += 1
            idle &= self._idle > gap.SPARE
        close = close | idle
        still = batch.t < LOST
        # A direction of descent along which nothing descends: rounding has the last word.
        close |= still & (batch.estimate <= np.sqrt(eps) * size)
        close &= np.array([m.loss != "hinge" for m in plan.models])[plan.unit_owner]
        going = plan.any_unit(~(close | still))
        # Where rounding has the last word, no bound is reached.
        reached = reached & close if self._bounded else close
        ended = np.where(plan.any_unit(~reached), STUCK, CONVERGED)
        return np.where(going, RUNNING, ended)

    def _size(self, batch: Batch) -> NDArray[np.float64]:
        """What the tolerance of each unit is relative to.

        Its objective; but where that falls towards zero, as with separable classes and no
        penalty, nobody wants it to the last digit. A bound is relative to the objective
        itself, as far as rounding tells it from zero.
        """
        scales = np.array([self._sums.scale(model) for model in batch.plan.models])
        l2, eps = batch.plan.l2[batch.plan.units], float(np.finfo(np.float64).eps)
        nothing = np.where(l2 > 0, eps, _NOTHING) if self._bounded else _NOTHING
        least = nothing * scales[batch.plan.unit_owner]
        return np.asarray(np.maximum(np.abs(batch.value), least), np.float64)

    def _gap(self, batch: Batch) -> NDArray[np.float64]:
        plan, past = batch.plan, (batch.values, batch.estimates)
        estimate = gap.safeguarded(batch.value, batch.estimate, *past)
        estimate = np.where(self._straight(batch), np.inf, estimate)
        least = np.minimum(plan.l2, plan.intercept_l2)
        held = np.where(plan.with_intercept, least, plan.l2)
        squares = dots(batch.gradient, batch.gradient, plan)
        bound = gap.strong_convexity_bound(squares, held[plan.units])
        if self._bounded:
            # As if the intercept were held, too: with its best one, it is a bound.
            l2 = plan.l2[plan.units]
            return np.where(l2 > 0, gap.strong_convexity_bound(squares, l2), estimate)
        return np.minimum(estimate, bound)

    def _straight(self, batch: Batch) -> NDArray[np.bool_]:
        """Whether a loss may be a line there, (U,), whose curvature tells nothing.

        Steps then bring twice what a parabola would have been estimated to.
        """
        huber = np.array([model.loss == "huber" for model in batch.plan.models])
        curved = gap.curved(batch.values[0] - batch.value, batch.estimates[0])
        return np.asarray(huber[batch.plan.unit_owner] & ~curved, bool)

    def _shrink(self, places: list[int]) -> None:
        """Go on with some models of the batch only."""
        assert self._batch is not None
        if places:
            self._batch, columns = self._batch.take(places)
            self._curvature.take(columns)
        else:
            self._batch = None
            self._curvature.forget()

    def rest(self) -> None:
        if self._batch is not None:
            self._batch.pairs = Pairs(self.memory)

    def _keep(self, numbers: Indices, taken: Indices) -> None:
        del taken
        self._status = self._status[numbers]
        if self._batch is None:
            return
        self._shrink(np.flatnonzero(np.isin(self._batch.numbers, numbers)).tolist())
        if self._batch is not None:
            self._batch.numbers = np.searchsorted(numbers, self._batch.numbers)

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        out = super().state() | {
            "status": self._status.copy(),
            "started": self._started,
            "idle": self._idle,
            "curvature": self._curvature.state(),
        }
        return out if self._batch is None else out | {"batch": self._batch.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of a training of the same models on the same rows."""
        super().restore(state)
        self._status = np.array(state["status"])
        self._started = bool(state["started"])
        self._idle = int(state["idle"])
        self._batch = None
        self._curvature.forget()
        if "batch" in state:
            numbers = np.asarray(state["batch"]["numbers"]).tolist()
            plan, _ = self._layout.select(numbers)
            self._batch = Batch.restored(state["batch"], plan, self.memory)
            self._curvature.restore(state["curvature"], plan)


def _pairs(most: int, nbytes: int) -> int:
    """How many pairs of ``nbytes`` each are kept, ``most`` of them if there is room."""
    room: float = _PAIR_BYTES
    # For few nobody asks how much memory there is, which takes as long as a short pass.
    if most * nbytes > CACHE:  # weights are in this process, wherever the rows are
        room = min(room, most_held(Resources.remembered()) / 2)
    return max(min(most, int(room // nbytes)), 3)
