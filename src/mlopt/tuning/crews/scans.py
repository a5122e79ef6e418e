"""What linear models take that train in shared scans: passes to expect, and their price.

In lockstep, or each by Newton's method or in its dual: whoever plans a search, chooses how
a scan descends or ends one that drags on asks here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mlopt.costs import Cost
from mlopt.gd.direct_training import cheapest_of, direct_ways, squared_length
from mlopt.gd.l1_training import paths_cost
from mlopt.gd.penalty_path import FEWEST
from mlopt.gd.plans.dual_logistic import DUAL_LOGISTIC, work_of
from mlopt.gd.plans.forecast import Passes, typical
from mlopt.gd.plans.lbfgs import LBFGS, beside_pass
from mlopt.gd.plans.look import Look
from mlopt.gd.plans.method import Method
from mlopt.gd.plans.newton_cholesky import LOSSES, NEWTON_CHOLESKY
from mlopt.gd.plans.newton_costs import cost as newton_cost
from mlopt.gd.plans.newton_costs import (
    factor_work,
    hessian_work,
    renewals,
    rows_of_hessian,
)
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import GradientNorm
from mlopt.gd.pricing import Shape, gradient_pass, gradient_work, shape_of_stats
from mlopt.gd.sample import KINKED
from mlopt.gd.sizes import WIDEST
from mlopt.prices import count, price
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.stats import Stats
from mlopt.tuning.crews.linear_task import LinearTask
from mlopt.tuning.crews.problem import Problem

TYPICAL_PASSES, _LOCKSTEP = count("batch.typical"), price("batch.lockstep")
_STEP, _EPOCH = price("batch.step"), price("sequential.epoch")
_SCAN, _WEIGHT = price("batch.scan"), price("batch.weight")
_NEAR, _LEVEL = price("batch.near"), price("batch.level")
_NEWTON, _NEIGHBOUR = price("batch.newton"), price("batch.neighbour")
_FOLLOWED = price("batch.neighbour.dual")
LOCKSTEP, NEWTON, DUAL = "lockstep", "newton", "dual"
"""How the models of a scan descend."""


@dataclass(frozen=True)
class Scans:
    """Trains models of one family in scans.

    Parameters
    ----------
    mean : float
        Passes of a model, of all those that may come.
    most : float
        Passes of the slowest: a scan goes on until that has converged.
    step : float
        Seconds, in Python, of a pass.
    follows : bool
        Whether models start between solutions of others where there are many.
    newton : float
        Passes of a model by Newton's method, from zero; 0 where that does not train it.
    dual : float
        Epochs of a model in its dual, from zero; 0 where that does not train it.
    loss : str
    worst : float
        Passes that the slowest may take, where neighbours may save none: a way that is
        chosen is to be no trap.
    """

    mean: float = TYPICAL_PASSES
    most: float = TYPICAL_PASSES
    step: float = _STEP
    follows: bool = False
    newton: float = 0.0
    dual: float = 0.0
    loss: str = ""
    worst: float = 0.0

    @classmethod
    def of(
        cls, problem: Problem, tasks: Sequence[LinearTask], stats: Stats, example: Any
    ) -> Scans:
        """As models with the settings of ``tasks`` took where problems were alike.

        ``example`` are some rows as the models see them, or None.
        """
        first, limit = tasks[0], max(task.max_iter for task in tasks)
        if first.schedule is not None:
            passes = _LOCKSTEP * min(limit, TYPICAL_PASSES)
            return cls(passes, passes, _EPOCH)
        if not first.by_passes or example is None:
            passes = min(limit, TYPICAL_PASSES)
            return cls(passes, passes)
        look = cache(lambda: Look.of(Rows.of(example), problem.rare))
        try:
            stop = GradientNorm(first.tol, _first(first.loss, example))
            return cls.by_passes(
                problem, tasks, shape_of_stats(stats, problem.outputs), look, stop
            )
        except (TypeError, ValueError):  # rows that are no numbers: the search will tell
            return cls()

    @classmethod
    def by_passes(
        cls,
        problem: Problem,
        tasks: Sequence[LinearTask],
        shape: Shape,
        look: Callable[[], Look],
        stop: GradientNorm,
    ) -> Scans:
        """Of models that are descended to by passes over rows of one shape."""
        tasks, limit = _spread(tasks), max(task.max_iter for task in tasks)
        found = [_expected(LBFGS, task, problem, shape, look, stop) for task in tasks]
        # Its logarithm lies anywhere in the interval; the slowest is further up.
        mean = float(np.mean([min(limit, p.expected) for p in found]))
        slowest = max(found, key=lambda p: p.expected)
        loss = _model(problem, tasks[0]).loss
        most = min(limit, (slowest.expected * slowest.high) ** 0.5)
        # Kinks take thousands of steps where classes can be separated.
        worst = min(limit, slowest.most) if loss == KINKED and problem.apart else 0.0
        alone = replace(shape, columns=_columns(loss, shape))

        def taken(method: Method) -> float:
            if loss not in method.losses:
                return 0.0
            given = problem, alone, look, stop
            found = [_expected(method, task, *given) for task in tasks]
            if method is DUAL_LOGISTIC and max(p.high for p in found) > limit:
                return 0.0  # cheap, since it would be cut off: lockstep may converge
            return float(np.mean([min(limit, p.expected) for p in found]))

        return cls(
            mean, max(mean, most), follows=True, newton=taken(NEWTON_CHOLESKY),
            dual=taken(DUAL_LOGISTIC), loss=loss, worst=worst,
        )  # fmt: skip

    def on_workers(self) -> Scans:
        """Of rows there: no model is trained by itself."""
        return replace(self, newton=0.0, dual=0.0)

    def cost(self, stats: Stats, models: int, outputs: int, scans: int = 1) -> Cost:
        """Of so many ``models`` of ``outputs`` columns each, shared out among ``scans``."""
        given = shape_of_stats(stats, outputs), -(-models // scans), Resources()
        return scans * self.ways(*given)[self.way(stats, models, outputs, scans)]

    def way(self, stats: Stats, models: int, outputs: int, scans: int = 1) -> str:
        """How they are expected to descend."""
        here = Resources()
        shape, each = shape_of_stats(stats, outputs), -(-models // scans)
        at_worst = self.ways(shape, each, here, worst=True)
        return min(at_worst, key=lambda way: at_worst[way].seconds(here))

    def ways(
        self, shape: Shape, models: int, here: Resources, *, worst: bool = False
    ) -> dict[str, Cost]:
        """Of one scan: `LOCKSTEP`, and what else there is, and what it costs then.

        Parameters
        ----------
        shape : Shape
            With the columns of one model.
        models : int
        here : Resources
        worst : bool, default=False
            As if it took so long, by which a way is chosen.
        """
        ways = {LOCKSTEP: self.in_lockstep(shape, models, worst=worst)}
        one = self.by_newton(shape, here, self.alone(NEWTON, models))
        if one is not None:
            ways[NEWTON] = models * one + Cost(python=_SCAN)
        if self.dual:
            one = dual_alone(shape, self.alone(DUAL, models))
            ways[DUAL] = models * one + Cost(python=_SCAN)
        return ways

    def alone(self, way: str, models: int) -> float:
        """Passes, or epochs, of each of so many models of a scan that descend alone."""
        passes, near = (self.dual, _FOLLOWED) if way == DUAL else (self.newton, _NEIGHBOUR)
        return passes * (near if models >= FEWEST else 1.0)

    def in_lockstep(self, shape: Shape, models: int, *, worst: bool = False) -> Cost:
        """All models of a scan share every pass."""
        passes, near = self.passes(models), _NEAR if self.follows else 1.0
        at_once = max(1, round(models * shape.columns * self.mean * near / passes))
        one = of_pass(replace(shape, columns=at_once), self.step)
        return max(passes, self.worst * worst) * one + Cost(python=_SCAN)

    def passes(self, models: int) -> float:
        """Of a scan of so many in lockstep."""
        if not self.follows:
            return self.most
        levels = 1
        while models / 2 ** (levels - 1) >= FEWEST:
            levels += 1  # every other one is trained first, of these too
        return min(self.most * levels, self.most * _NEAR + levels * _LEVEL)

    def by_newton(self, shape: Shape, here: Resources, passes: float) -> Cost | None:
        """One model, while others train on other threads; None where it cannot."""
        return newton_alone(self.loss, shape, here, passes) if self.newton else None

    def final(self, stats: Stats, outputs: int) -> Cost:
        """Of one model."""
        return replace(self, most=self.mean).cost(stats, 1, outputs)


def of_pass(shape: Shape, step: float = _STEP) -> Cost:
    """A pass in lockstep of so many columns of weights, and what steps take beside it."""
    if shape.d >= WIDEST:  # without Hessians of a sample
        beside = beside_pass(shape, Resources())
    else:
        beside = Cost(python=shape.columns * (shape.d + 1) * _WEIGHT)
    return gradient_pass(shape, Resources()) + beside + Cost(python=step)


def dual_alone(shape: Shape, epochs: float) -> Cost:
    """One model in its dual, in a scan: others descend on other threads."""
    steps, looks = work_of(shape, epochs)
    return shape.columns * (Cost(flops=steps) + looks)


def newton_alone(loss: str, shape: Shape, here: Resources, passes: float) -> Cost | None:
    """One model by Newton's method, in a scan; None where it cannot.

    Class by class, unless all classes have one Hessian.
    """
    columns = _columns(loss, shape)
    alone, thread = replace(shape, columns=columns), replace(here, threads=1)
    if loss not in LOSSES or isinstance(newton_cost(alone, thread, passes, loss), str):
        return None
    rows = rows_of_hessian(alone, loss)
    hessian = hessian_work(alone, thread, rows, loss) + factor_work(alone, thread)
    work = passes * gradient_work(alone) + renewals(alone, passes, loss) * hessian
    one = work + Cost(python=passes * _NEWTON)
    return (shape.columns // columns) * one


def _spread(tasks: Sequence[LinearTask]) -> list[LinearTask]:
    """Five at most, from the one with the least penalty to the one with the largest."""
    apart = sorted({task.strength: task for task in tasks}.items())
    places = {round(quarter * (len(apart) - 1) / 4) for quarter in range(5)}
    return [apart[place][1] for place in sorted(places)]


def _first(loss: str, example: Any) -> float:
    """What a tolerance is relative to, of a few rows, about: see `first_gradient`."""
    if loss != "squared_hinge":
        return 1.0
    return min(1.0, float(np.asarray(np.abs(example).mean(axis=0)).max())) or 1.0


def _columns(loss: str, shape: Shape) -> int:
    """Of weights that have one Hessian."""
    return shape.columns if loss == "multinomial" else 1


def _model(problem: Problem, task: LinearTask) -> Any:
    return task.model(0, float(len(problem.splits[0].train)), problem.outputs)


def _expected(
    method: Method,
    task: LinearTask,
    problem: Problem,
    shape: Shape,
    look: Callable[[], Look],
    stop: GradientNorm,
) -> Passes:
    model = _model(problem, task)
    return typical(method, Outline(model.loss, shape, model.l2, look=look), stop)


def at_once_cost(
    problem: Problem,
    tasks: Sequence[LinearTask],
    stats: Stats,
    models: int,
    sets: int,
    example: Any,
) -> Cost:
    """Of so many ``models`` that are solved at once on each of ``sets`` parts of the rows.

    With the scores of all of them, where no Gram matrix tells these. ``tasks`` are some of
    them, and ``example`` some rows as they see them, or None.
    """
    task, rows = tasks[0], shape_of_stats(stats, problem.outputs)
    if task.by_columns:
        loss, share = _model(problem, task).loss, 1.0 if sets == 1 else 1.0 - 1.0 / sets
        n, nonzero = (max(1, round(share * all_of)) for all_of in (rows.n, rows.nonzero))
        part = replace(rows, n=n, nonzero=nonzero)
        found = paths_cost(loss, rows, part, sets, models, task.tol)
    else:
        penalties = [_model(problem, one).l2 for one in tasks]
        length = squared_length(example) if issparse(example) else 0.0
        given = penalties, length, task.tol, Resources()
        ways = direct_ways(rows, sets, models, *given)
        found = ways[cheapest_of(ways, Resources())]
    if task.by_columns or task.classifier or sets == 1:
        columns = models * sets * problem.outputs
        # One of the two products of a pass.
        found = found + 0.5 * gradient_work(replace(rows, columns=columns))
    return found + Cost(python=_STEP)
