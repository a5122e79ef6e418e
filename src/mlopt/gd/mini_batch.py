"""Mini-batch gradient descent of many linear models: two matrix products a batch.

The batches of one block follow each other; columns go in lanes, one a thread. Steps have
Nesterov's momentum, and what a pass leaves behind is also averaged (Polyak and Juditsky,
1992): the average of the last pass is the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError
from mlopt.gd.batch_steps import (
    STEEPEST,
    Lane,
    Recipe,
    batch_eigenvalue,
    pass_of_block,
)
from mlopt.gd.columns import Indices, Model
from mlopt.gd.linear_training import LinearTraining
from mlopt.rows import Rows

RUNNING, CONVERGED, DIVERGED = range(3)
LANE = 64
"""Columns that go through the rows together."""
CUT, MOST_CUTS = 4.0, 4
_SAVED = ("iterate", "velocity", "rate", "best", "cuts", "status")


class MiniBatch(LinearTraining):
    """Steps on batches of rows, for any loss.

    A model whose objective, averaged over a pass, did not fall by ``tol`` (relative) has
    its learning rate divided by 4; after the fourth time it counts as converged. That says
    that these steps gain nothing more, not how far the minimum is.

    Parameters
    ----------
    rows, models, max_passes
        See `LinearTraining`.
    learning_rate : float or sequence of float, optional
        One for all models, or one each. Default: what is safe for the largest eigenvalue of
        the Hessian, from a sample.
    batch_rows : int, default=256
    momentum : float, default=0.9
        Nesterov's; 0 for none.
    average : bool, default=True
        Whether results are averages over the last pass.
    seed : int, default=0
        Of the order of rows within blocks.
    tol : float, default=1e-4
    """

    def __init__(
        self,
        rows: Rows,
        models: Sequence[Model],
        *,
        learning_rate: float | Sequence[float] | None = None,
        batch_rows: int = 256,
        momentum: float = 0.9,
        average: bool = True,
        seed: int = 0,
        tol: float = 1e-4,
        max_passes: int = 100,
    ) -> None:
        super().__init__(rows, models, max_passes)
        if not 0 <= momentum < 1 or batch_rows < 1:
            raise InputError(
                "`momentum` must be in [0, 1) and `batch_rows` at least 1, got "
                f"{momentum} and {batch_rows}."
            )
        self.batch_rows, self.momentum, self.average = batch_rows, momentum, average
        self.seed, self.tol = seed, tol
        self._eigenvalue = np.nan
        self._rate = self._rates(models, learning_rate)
        self._iterate = self._weights.copy()
        self._velocity = np.zeros_like(self._weights)
        self._best = np.full(len(models), np.inf)
        self._cuts = np.zeros(len(models), np.int64)
        self._status = np.full(len(models), RUNNING)

    def _rates(
        self, models: Sequence[Model], given: float | Sequence[float] | None
    ) -> NDArray[np.float64]:
        if given is None:
            return np.array([self._safe_rate(model) for model in models])
        rates = np.broadcast_to(np.asarray(given, np.float64), (len(models),))
        if not (rates > 0).all():
            raise InputError(f"`learning_rate` must be positive, got {given}.")
        return rates.copy()

    def _safe_rate(self, model: Model) -> float:
        if np.isnan(self._eigenvalue):
            self._eigenvalue = batch_eigenvalue(self.rows, self.batch_rows)
        curvature = STEEPEST[model.loss] * self._eigenvalue + model.l2
        # Momentum adds up 1 / (1 - momentum) steps.
        return (1 - self.momentum) / curvature

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Which models gain nothing from smaller steps, (M,)."""
        return np.asarray(self._status == CONVERGED)

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Which models have converged, or overflowed, (M,)."""
        return np.asarray(self._status != RUNNING)

    def advance(self, passes: int) -> None:
        """Train for up to ``passes`` more passes."""
        for _ in range(passes):
            if self.done:
                return
            numbers = np.flatnonzero(~self.finished)
            scale = self.rows.n / self._sums.weights
            seed = (self.seed, self.passes)
            recipe = Recipe(self.batch_rows, self.momentum, seed, scale)
            parts = self._layout.lanes(numbers.tolist(), LANE)
            lanes = [self._lane(part) for part in parts]
            for lane in self.rows.fold(pass_of_block, lanes, recipe):
                self._arrive(lane)
            self._stale[:, numbers] = True
            self.passes += 1

    def _lane(self, numbers: list[int]) -> Lane:
        plan, columns = self._layout.select(numbers)
        weights = np.ascontiguousarray(self._iterate[:, columns])
        rate = self._rate[self._layout.owner[columns]].astype(weights.dtype)
        velocity = np.ascontiguousarray(self._velocity[:, columns])
        zeros = np.zeros_like(weights)
        return Lane(columns, plan, weights, velocity, zeros, rate, np.zeros(plan.width))

    def _arrive(self, lane: Lane) -> None:
        columns = lane.columns
        self._iterate[:, columns] = lane.weights
        self._velocity[:, columns] = lane.velocity
        result = lane.total / lane.batches if self.average else lane.weights
        self._weights[:, columns] = result
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.einsum("ij,ij->j", result[:-1], result[:-1], dtype=np.float64)
            sums = self._sums.weights[lane.plan.rowsets]
            mean = lane.plan.model_sum(
                lane.plan.unit_sum(lane.loss / sums + 0.5 * lane.plan.l2 * norms)
            )
        owners = self._layout.owner[columns[lane.plan.first]]
        self._judge(owners, mean)

    def _judge(self, numbers: Indices, mean: NDArray[np.float64]) -> None:
        best = self._best[numbers]
        least = self.tol * np.abs(np.where(np.isfinite(best), best, 0.0))
        worse = mean > best - least
        self._best[numbers] = np.fmin(best, mean)
        cut = numbers[worse]
        self._rate[cut] /= CUT
        self._cuts[cut] += 1
        self._status[numbers[self._cuts[numbers] >= MOST_CUTS]] = CONVERGED
        self._status[numbers[~np.isfinite(mean)]] = DIVERGED

    def quality(self) -> NDArray[np.float64]:
        """Accuracy or minus the mean squared error, (M,); NaN for what overflowed."""
        return np.where(self._status == DIVERGED, np.nan, super().quality())

    def _keep(self, numbers: Indices, taken: Indices) -> None:
        self._iterate = np.ascontiguousarray(self._iterate[:, taken])
        self._velocity = np.ascontiguousarray(self._velocity[:, taken])
        for name in ("_rate", "_best", "_cuts", "_status"):
            setattr(self, name, getattr(self, name)[numbers])

    def _add(self, source: Indices, models: Sequence[Model], **options: Any) -> None:
        old = source >= 0
        self._iterate = np.where(old, self._iterate[:, source], 0)
        self._velocity = np.where(old, self._velocity[:, source], 0)
        rates = self._rates(models, options.get("learning_rate"))
        self._rate = np.append(self._rate, rates)
        self._best = np.append(self._best, np.full(len(models), np.inf))
        self._cuts = np.append(self._cuts, np.zeros(len(models), np.int64))
        self._status = np.append(self._status, np.full(len(models), RUNNING))

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        own = {name: getattr(self, "_" + name).copy() for name in _SAVED}
        return super().state() | own

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of a training of the same models on the same rows."""
        super().restore(state)
        for name in _SAVED:
            setattr(self, "_" + name, np.array(state[name]))
