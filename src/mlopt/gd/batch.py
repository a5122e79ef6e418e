"""The unfinished models of a quasi-Newton training: where each is, what it tries next.

Shapes: ``d + 1`` rows (the last one holds intercepts), ``B`` columns, ``U`` units (a unit
is a column, or the columns of one softmax). Every unit has its own step length, one trial a
pass, and its own curvature pairs; a unit whose trial step was refused remembers nothing of
that pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.columns import Layout
from mlopt.gd.gap import VALUES
from mlopt.gd.passes import Evaluation, Floats
from mlopt.gd.sizes import SUFFICIENT
from mlopt.kernels.by_column import LANES, step_along

Doubles = NDArray[np.float64]

_PER_UNIT = ("value", "slope", "t", "refusals", "estimate", "values", "estimates")


def dots(a: Floats, b: Floats, plan: Layout) -> NDArray[np.float64]:
    """Inner products of the units: (d + 1, B) and (d + 1, B) -> (U,)."""
    return plan.unit_sum(_dots(a, b))


def _dots(a: Floats, b: Floats) -> NDArray[np.float64]:
    """The same of the columns, (B,)."""
    (x, last), (y, end) = _wide(a), _wide(b)
    sums = np.einsum("ij,ij->j", x, y).astype(np.float64)
    rest = np.einsum("ij,ij->j", last, end)
    return np.asarray(sums.reshape(-1, a.shape[1]).sum(axis=0) + rest)


def largest(a: Floats, plan: Layout) -> Floats:
    """The largest magnitude in each unit, (d + 1, B) -> (U,)."""
    body, last = _wide(np.abs(a))
    tops = body.max(axis=0, initial=0).reshape(-1, a.shape[1])
    most = np.concatenate([tops, last]).max(axis=0)
    return np.asarray(np.maximum.reduceat(most, plan.units))


def _wide(a: Floats) -> tuple[Floats, Floats]:
    """Rows put side by side, as many as are worth a loop, and those that are left over."""
    n, columns = a.shape
    rows = max(1, LANES // columns)
    whole = n - n % rows
    return np.ascontiguousarray(a[:whole]).reshape(-1, rows * columns), a[whole:]


@dataclass
class Pairs:
    """Steps ``s``, changes of the gradient ``y`` and ``1 / s'y``, oldest first.

    Parameters
    ----------
    size : int
        How many pairs are kept.
    """

    size: int
    steps: list[Floats] = field(default_factory=list)
    changes: list[Floats] = field(default_factory=list)
    inverses: list[NDArray[np.float64]] = field(default_factory=list)

    def add(self, step: Floats, change: Floats, plan: Layout) -> None:
        """Remember one step; units with no positive curvature along it sit it out.

        Both arrays are kept as they are: they must not be changed afterwards.
        """
        curvature = dots(step, change, plan)
        # Below rounding of the gradient the curvature is noise.
        floor = np.finfo(step.dtype).eps * dots(change, change, plan)
        good = curvature > np.maximum(floor * 1e-2, np.finfo(np.float64).tiny)
        self.steps.append(step)
        self.changes.append(change)
        self.inverses.append(np.where(good, 1.0 / np.where(good, curvature, 1.0), 0.0))
        if len(self.steps) > self.size:
            del self.steps[0], self.changes[0], self.inverses[0]

    def direction(
        self,
        gradient: Floats,
        inverse: Callable[[Floats], Floats],
        plan: Layout,
        rescaled: bool | NDArray[np.bool_] = False,
    ) -> Floats:
        """``-H gradient`` by the two-loop recursion (Nocedal, 1980).

        Parameters
        ----------
        gradient : ndarray of shape (d + 1, B)
        inverse : callable
            The first guess of the inverse Hessian, times its argument.
        plan : Layout
        rescaled : bool, or ndarray of shape (U,)
            Whether the newest pair sets the overall scale of ``inverse``.
        """
        if not self.steps:
            return -inverse(gradient)
        # Each step is taken together with the inner product that the next one needs.
        q, factors = gradient.copy(), np.empty((len(self.steps), len(plan.units)))
        before = [self.steps[0], *self.steps]
        sums = _dots(self.steps[-1], q)
        for at in reversed(range(len(factors))):
            factors[at] = self.inverses[at] * plan.unit_sum(sums)
            factor = plan.spread(-factors[at])
            sums = step_along(q, self.changes[at], factor, before[at])
        z = np.ascontiguousarray(inverse(q))
        if np.any(rescaled):
            scale = np.where(rescaled, self._scale(inverse, plan), 1.0)
            z *= plan.spread(scale).astype(z.dtype)
        after = [*self.changes[1:], self.changes[-1]]
        sums = _dots(self.changes[0], z)
        for at in range(len(factors)):
            factor = plan.spread(factors[at] - self.inverses[at] * plan.unit_sum(sums))
            sums = step_along(z, self.steps[at], factor, after[at])
        return np.negative(z, out=z)

    def _scale(self, inverse: Callable[[Floats], Floats], plan: Layout) -> Floats:
        """``s'y / y'Hy`` of the newest pair, where there is one."""
        change, rho = self.changes[-1], self.inverses[-1]
        length = dots(change, inverse(change), plan)
        good = (rho > 0) & (length > 0)
        return np.where(good, 1.0 / np.where(good, rho * length, 1.0), 1.0)

    def forget(self, units: NDArray[np.bool_]) -> None:
        """Empty the memory of some units."""
        self.inverses = [np.where(units, 0.0, rho) for rho in self.inverses]

    def take(self, columns: NDArray[np.int64], units: NDArray[np.int64]) -> Pairs:
        """The memory of some columns and units."""
        return Pairs(
            self.size,
            [np.ascontiguousarray(step[:, columns]) for step in self.steps],
            [np.ascontiguousarray(change[:, columns]) for change in self.changes],
            [rho[units] for rho in self.inverses],
        )

    def state(self) -> dict[str, Any]:
        """Plain arrays."""
        return {
            "steps": list(self.steps),
            "changes": list(self.changes),
            "inverses": list(self.inverses),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from `state`."""
        self.steps = list(state["steps"])
        self.changes = list(state["changes"])
        self.inverses = list(state["inverses"])


def accepted(
    value: Doubles, trial: Doubles, slope: Doubles, t: Doubles, eps: float
) -> NDArray:
    """Which trial steps decrease their objective enough, (U,).

    Parameters
    ----------
    value, trial : ndarray of shape (U,)
        Objective before and after; infinite before a unit's first evaluation.
    slope : ndarray of shape (U,)
        Directional derivative at step 0, negative.
    t : ndarray of shape (U,)
        Step lengths.
    eps : float
        Relative rounding of an objective. Decreases below it cannot be told from
        increases, so steps that promise no more may pass.
    """
    # Before the first evaluation the bound is infinite, whatever the slope.
    bound = value + np.where(np.isfinite(value), SUFFICIENT * t * slope, 0.0)
    level = np.where(np.isfinite(value), np.abs(value), 0.0) * eps
    tiny = -t * slope <= 4 * level
    within = trial <= value + np.where(tiny, 2 * level, 0.0)
    good = (trial <= bound) | (tiny & within)
    return np.asarray(good & np.isfinite(trial))


def shortened(value: Doubles, trial: Doubles, slope: Doubles, t: Doubles) -> Doubles:
    """The minimiser of the parabola through what is known, within [0.1 t, 0.5 t]."""
    above = trial - value - t * slope
    with np.errstate(invalid="ignore", divide="ignore"):
        best = -0.5 * slope * t / above  # in units of t
    best = np.where(np.isfinite(best) & (above > 0), best, 0.1)
    return t * np.clip(best, 0.1, 0.5)


@dataclass
class Batch:
    """Columns in lockstep, each unit with its own step.

    Attributes
    ----------
    plan : Layout
        Of the models in the batch.
    numbers : ndarray of shape (M,)
        Their numbers in the training.
    weights, gradient, direction : ndarray of shape (d + 1, B)
    value : ndarray of shape (U,)
        Objectives at ``weights``; infinite before the first evaluation.
    slope : ndarray of shape (U,)
        Of the objective along ``direction``.
    t : ndarray of shape (U,)
        Step lengths to try next.
    refusals : ndarray of shape (U,)
        How often the present direction was too long.
    estimate : ndarray of shape (U,)
        Of the gap to the minimum.
    values, estimates : ndarray of shape (4, U)
        Objectives and estimates before the last steps, the newest first; or NaN.
    score : ndarray of shape (M,)
    """

    plan: Layout
    numbers: NDArray[np.int64]
    weights: Floats
    gradient: Floats
    direction: Floats
    value: NDArray[np.float64]
    slope: NDArray[np.float64]
    t: NDArray[np.float64]
    refusals: NDArray[np.float64]
    estimate: NDArray[np.float64]
    values: NDArray[np.float64]
    estimates: NDArray[np.float64]
    score: NDArray[np.float64]
    pairs: Pairs

    @staticmethod
    def at(weights: Floats, plan: Layout, numbers: Sequence[int], memory: int) -> Batch:
        """A batch that has not been evaluated yet."""
        units = len(plan.units)
        return Batch(
            plan=plan,
            numbers=np.asarray(numbers, np.int64),
            weights=weights,
            gradient=np.zeros_like(weights),
            direction=np.zeros_like(weights),
            value=np.full(units, np.inf),
            slope=np.zeros(units),
            t=np.ones(units),
            refusals=np.zeros(units),
            estimate=np.full(units, np.nan),
            values=np.full((VALUES, units), np.nan),
            estimates=np.full((VALUES, units), np.nan),
            score=np.full(len(numbers), np.nan),
            pairs=Pairs(memory),
        )

    @property
    def unpaired(self) -> NDArray[np.bool_]:
        """Units that know no curvature along any step, (U,)."""
        known = np.zeros(len(self.t), bool)
        for rho in self.pairs.inverses:
            known |= rho > 0
        return ~known

    def trial(self) -> Floats:
        """The weights that the next pass evaluates."""
        t = self.plan.spread(self.t).astype(self.weights.dtype)
        return self.weights + t * self.direction

    def settle(self, trial: Floats, found: Evaluation) -> NDArray[np.bool_]:
        """Take the steps that went down far enough, shorten the others.

        Returns
        -------
        ndarray of shape (U,)
            Which units moved; they need a new direction.
        """
        assert found.gradient is not None
        eps = float(np.finfo(trial.dtype).eps)
        ok = accepted(self.value, found.value, self.slope, self.t, eps)
        fresh = np.isinf(self.value)
        moved = self.plan.spread(ok)
        step = np.where(moved, trial - self.weights, 0)
        change = np.where(moved, found.gradient - self.gradient, 0)
        if (ok & ~fresh).any():
            self.pairs.add(step, change, self.plan)
        self.weights = self.weights + step
        self.gradient = self.gradient + change
        if found.score is not None:
            # That of all units' trials; of some of them nobody has looked.
            some, others = self.plan.any_unit(ok), self.plan.any_unit(~ok)
            moved_alone = np.where(some & others, np.nan, found.score)
            self.score = np.where(some, moved_alone, self.score)
        self._note(ok, fresh, found.value)
        return ok

    def _note(
        self, ok: NDArray[np.bool_], fresh: NDArray[np.bool_], value: NDArray[np.float64]
    ) -> None:
        refused = ~ok & ~fresh
        shorter = shortened(self.value, value, self.slope, self.t)
        self.t = np.where(refused, shorter, self.t)
        self.refusals = np.where(refused, self.refusals + 1, 0)
        stepped = ok & ~fresh
        self.values = _pushed(self.values, self.value, stepped)
        self.estimates = _pushed(self.estimates, self.estimate, stepped)
        self.value = np.where(ok, value, self.value)

    def aim(
        self,
        units: NDArray[np.bool_],
        inverse: Callable[[Floats], Floats],
        rescaled: bool,
    ) -> None:
        """Give some units a new direction, and a step length of 1 along it.

        Hessians of single classes know nothing of what the classes of a softmax do to each
        other, which the newest step has met: it sets the scale there in any case.
        """
        scaled = rescaled | (self.plan.widths > 1)
        direction = self.pairs.direction(self.gradient, inverse, self.plan, scaled)
        slope = dots(self.gradient, direction, self.plan)
        self._point(units, direction, slope)
        wrong = units & ~(slope < 0)
        if wrong.any():
            wrong &= largest(self.gradient, self.plan) > 0
        if wrong.any():  # rounding has eaten the memory's positive definiteness
            self.pairs.forget(wrong)
            direction = -inverse(self.gradient)
            self._point(wrong, direction, dots(self.gradient, direction, self.plan))

    def shorten(self, curvature: Doubles) -> None:
        """First steps of units no longer than to the end of the parabola along them.

        Parameters
        ----------
        curvature : ndarray of shape (U,)
            Second derivatives of the objectives along the directions.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            end = np.where(curvature > 0, -self.slope / curvature, 1.0)
        self.t = np.where(self.unpaired & (end > 0), np.minimum(end, self.t), self.t)

    def _point(
        self, units: NDArray[np.bool_], direction: Floats, slope: NDArray[np.float64]
    ) -> None:
        self.direction = np.where(self.plan.spread(units), direction, self.direction)
        self.slope = np.where(units, slope, self.slope)
        self.t = np.where(units, 1.0, self.t)
        self.refusals = np.where(units, 0.0, self.refusals)
        self.estimate = np.where(units, -0.5 * slope, self.estimate)

    def forget_steps(self) -> None:
        """Past steps tell nothing of the estimates of a Hessian that is exact."""
        self.values = np.full_like(self.values, np.nan)
        self.estimates = np.full_like(self.estimates, np.nan)

    def take(self, places: Sequence[int]) -> tuple[Batch, NDArray[np.int64]]:
        """Some models (counted within the batch), and the columns they had here."""
        plan, columns = self.plan.select(places)
        unit_at = np.full(self.plan.width, -1)
        unit_at[self.plan.units] = np.arange(len(self.plan.units))
        units = unit_at[columns]
        units = units[units >= 0]
        wide = {
            name: np.ascontiguousarray(getattr(self, name)[:, columns])
            for name in ("weights", "gradient", "direction")
        }
        narrow = {name: getattr(self, name)[..., units] for name in _PER_UNIT}
        return Batch(
            plan=plan, numbers=self.numbers[places], score=self.score[places],
            pairs=self.pairs.take(columns, units), **wide, **narrow,
        ), columns  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Plain arrays."""
        names = ("numbers", "weights", "gradient", "direction", "score", *_PER_UNIT)
        return {name: getattr(self, name).copy() for name in names} | {
            "pairs": self.pairs.state()
        }

    @staticmethod
    def restored(state: Mapping[str, Any], plan: Layout, memory: int) -> Batch:
        """The batch that `state` was taken of."""
        pairs = Pairs(memory)
        pairs.restore(state["pairs"])
        arrays = {k: np.array(v) for k, v in state.items() if k != "pairs"}
        return Batch(plan=plan, pairs=pairs, **arrays)


def _pushed(
    past: NDArray[np.float64], newest: NDArray[np.float64], units: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """``newest`` on top of the past of some units."""
    return np.where(units, np.vstack([newest, past[:-1]]), past)
