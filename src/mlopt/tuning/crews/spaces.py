"""How a scan descends: in which space it sees its rows, together or model by model.

Few rows of many columns may be seen in their own space. Prices are those of `Scans`, by
which searches are foreseen, on a modest machine: ways take different passes, a bandit
decides by what it sees after some, and what it gives up on must change neither with the
threads nor with how busy a machine was when it was probed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from mlopt.cluster import Threads
from mlopt.gd.columns import Model
from mlopt.gd.estimator_base import resources_of
from mlopt.gd.lockstep_then_newton import Patience
from mlopt.gd.narrow import RowSpace, gradient_bound, square_of
from mlopt.gd.plans.dual_cholesky import too_many, with_products
from mlopt.gd.plans.look import Look
from mlopt.gd.plans.stop import GradientNorm
from mlopt.gd.pricing import Shape, shape_of
from mlopt.gd.row_products import beyond, no_room
from mlopt.gd.sample import KINKED
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.tuning.crews.linear_task import LinearTask
from mlopt.tuning.crews.problem import Problem, View
from mlopt.tuning.crews.scans import LOCKSTEP, Scans, newton_alone, of_pass

_PASSES = price("newton.passes")
_THREADS = 2
"""Of a modest machine: what is chosen for these takes at most twice as long as what would
be for one, which has no others to train models on."""


@dataclass(frozen=True)
class Space:
    """How a scan sees its rows.

    Parameters
    ----------
    narrow : bool, default=False
        In their own space; see `mlopt.gd.narrow`.
    way : str, default="lockstep"
        Or model by model: "newton", with exact Hessians, or "dual".
    """

    narrow: bool = False
    way: str = LOCKSTEP

    def see(self, view: View) -> View:
        """The view in this space; scans of one precision share it."""
        if not self.narrow:
            return view
        key = f"narrow {view.rows.dtype}"
        if key not in view.kept:
            view.kept[key] = RowSpace.of(view.rows).rows(view.rows, view.rows.dtype)
        return replace(view, rows=view.kept[key])

    def bound(self, rows: Rows, largest: float) -> float:
        """Below which no component of a gradient may be, for those of all columns."""
        return gradient_bound(rows, largest) if self.narrow else largest


AS_THEY_ARE = Space()


def space_of(tasks: Sequence[LinearTask], rows: Rows, problem: Problem) -> Space:
    """Where the models of a scan are predicted to be trained first, one task a model."""
    if not (tasks[0].by_passes and isinstance(rows.executor, Threads)):
        return AS_THEY_ARE
    here, models = _modest(rows), len(tasks)
    shape = shape_of(rows, problem.outputs)
    stop = GradientNorm(tasks[0].tol)
    look = cache(lambda: Look.of(rows, problem.rare))
    scans = Scans.by_passes(problem, tasks, shape, look, stop)
    ways = scans.ways(shape, models, here, worst=True)
    costs = {Space(way=way): cost for way, cost in ways.items()}
    if rows.n < rows.d and _has_room(shape, len(problem.splits), here):
        inside, square = replace(stop, tol=gradient_bound(rows, stop.tol)), square_of(shape)
        scans = Scans.by_passes(problem, tasks, square, look, inside)
        ways = scans.ways(square, models, here, worst=True)
        before = with_products(shape, here)
        costs |= {Space(True, way): before + cost for way, cost in ways.items()}

    def seconds(space: Space) -> float:
        """On the threads that share its arithmetic: of a pass, or a model each."""
        threads = _sharing(rows, here) if space.way == LOCKSTEP else here.threads
        return costs[space].seconds(here, threads)

    return min(costs, key=seconds)


def _has_room(shape: Shape, views: int, here: Resources) -> bool:
    """Whether so many views may stay in the space of their rows, with a Hessian there."""
    kept = beyond(8.0 * views * shape.n**2, here, "rows in their own space")
    return not (
        kept or too_many(shape, here) or no_room(shape.n + 1, square_of(shape), here)
    )


def _sharing(rows: Rows, here: Resources) -> int:
    """How many threads share a pass: a block each."""
    return min(here.threads, len(rows.lengths))


def _modest(rows: Rows) -> Resources:
    """A modest machine, with the memory that there is for ``rows``."""
    return Resources(threads=_THREADS, memory=resources_of(rows.executor).memory)


def patience_with(rows: Rows) -> Patience:
    """How long a scan of these rows may stay in lockstep.

    Where the loss is smooth, models that take long are as good as there.
    """
    here = _modest(rows)

    @cache
    def by_newton(loss: str, outputs: int) -> float:
        cost = newton_alone(loss, shape_of(rows, outputs), here, _PASSES)
        return math.inf if cost is None else cost.seconds(here, here.threads)

    def of_model(model: Model) -> float:
        return by_newton(model.loss, model.outputs) if model.loss == KINKED else math.inf

    @cache  # asked at every pass
    def of_columns(columns: int) -> float:
        return of_pass(shape_of(rows, columns)).seconds(here, _sharing(rows, here))

    return Patience(of_columns, of_model)
