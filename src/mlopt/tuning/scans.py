"""What linear models take that train in shared scans: passes to expect, and their price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from mlopt.costs import Cost
from mlopt.gd.penalty_path import FEWEST
from mlopt.gd.plans.forecast import Passes, typical
from mlopt.gd.plans.lbfgs import LBFGS
from mlopt.gd.plans.look import Look
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import GradientNorm
from mlopt.gd.pricing import gradient_pass, shape_of_stats
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.stats import Stats
from mlopt.tuning.crews.linear_task import LinearTask
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.crews.spaces import gradient_tolerance

TYPICAL_PASSES = 20
"""Passes that a model costs until it stops on its own, where nobody has looked at rows."""
SGD_SLOWNESS = 1.5
"""Arithmetic of a lockstep epoch against a pass of matrix products: it follows one row at a
time, so that weights come from cache and not from registers."""
_STEP, _EPOCH = price("batch.step"), price("sequential.epoch")
_SCAN, _WEIGHT = price("batch.scan"), price("batch.weight")
_NEAR, _LEVEL = price("batch.near"), price("batch.level")


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
    """

    mean: float = TYPICAL_PASSES
    most: float = TYPICAL_PASSES
    step: float = _STEP
    follows: bool = False

    @classmethod
    def of(
        cls, problem: Problem, tasks: Sequence[LinearTask], stats: Stats, example: Any
    ) -> Scans:
        """As models with the settings of ``tasks`` took where problems were alike.

        ``example`` are some rows as the models see them, or None.
        """
        first, limit = tasks[0], max(task.max_iter for task in tasks)
        if first.schedule is not None:
            passes = SGD_SLOWNESS * min(limit, TYPICAL_PASSES)
            return cls(passes, passes, _EPOCH)
        if not first.by_passes or example is None:
            passes = min(limit, TYPICAL_PASSES)
            return cls(passes, passes)
        look = cache(lambda: Look.of(Rows.of(example), problem.rare))
        try:
            found = [_expected(problem, task, stats, look) for task in tasks]
        except (TypeError, ValueError):  # rows that are no numbers: the search will tell
            return cls()
        # Its logarithm lies anywhere in the interval; the slowest is further up.
        mean = float(np.mean([min(limit, p.expected) for p in found]))
        slowest = max(found, key=lambda p: p.expected)
        most = min(limit, (slowest.expected * slowest.high) ** 0.5)
        return cls(mean, max(mean, most), follows=True)

    def cost(self, stats: Stats, models: int, outputs: int, scans: int = 1) -> Cost:
        """Of so many ``models`` of ``outputs`` columns each, shared out among ``scans``."""
        each, near, levels = -(-models // scans), 1.0, 0
        if self.follows:
            near, levels = _NEAR, 1
            while each / 2 ** (levels - 1) >= FEWEST:
                levels += 1  # every other one is trained first, of these too
        passes = self.most * near + levels * _LEVEL
        at_once = max(1, round(each * outputs * self.mean * near / passes))
        beside = at_once * (stats.columns + 1) * _WEIGHT
        scan = gradient_pass(shape_of_stats(stats, at_once), Resources())
        one = scan + Cost(python=self.step + beside)
        return scans * (passes * one + Cost(python=_SCAN))

    def final(self, stats: Stats, outputs: int) -> Cost:
        """Of one model."""
        return replace(self, most=self.mean).cost(stats, 1, outputs)


def _expected(problem: Problem, task: LinearTask, stats: Stats, look: Any) -> Passes:
    model = task.model(0, float(len(problem.splits[0].train)), problem.outputs)
    shape = shape_of_stats(stats, problem.outputs)
    outline = Outline(model.loss, shape, model.l2, look=look)
    return typical(LBFGS, outline, GradientNorm(gradient_tolerance(problem, task)))
