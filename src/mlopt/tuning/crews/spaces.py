"""How a scan descends: in which space it sees its rows, together or model by model.

Few rows of many columns may be seen in their own space. Priced as single fits are: what
passes cost, times those that such problems take, for all models of the scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import cast

from mlopt.cluster import Threads
from mlopt.costs import Cost
from mlopt.gd.estimator_base import resources_of
from mlopt.gd.narrow import factor_of, gradient_bound, narrowed, square_of
from mlopt.gd.plans import lbfgs, newton_cholesky
from mlopt.gd.plans.dual_cholesky import with_products
from mlopt.gd.plans.forecast import typical
from mlopt.gd.plans.look import Look
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import GradientNorm
from mlopt.gd.pricing import shape_of
from mlopt.gd.sample import WIDEST
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.tuning.crews.linear_task import LinearTask
from mlopt.tuning.crews.problem import Problem, View


@dataclass(frozen=True)
class Space:
    """How a scan sees its rows.

    Parameters
    ----------
    narrow : bool, default=False
        In their own space; see `mlopt.gd.narrow`.
    by_newton : bool, default=False
        Model by model, with exact Hessians.
    """

    narrow: bool = False
    by_newton: bool = False

    def see(self, view: View) -> View:
        """The view in this space; scans of one precision share it."""
        if not self.narrow:
            return view
        key = f"narrow {view.rows.dtype}"
        if key not in view.kept:
            factor = factor_of(view.rows).astype(view.rows.dtype, copy=False)
            view.kept[key] = narrowed(view.rows, factor)
        return replace(view, rows=view.kept[key])

    def bound(self, rows: Rows, largest: float) -> float:
        """Below which no component of a gradient may be, for those of all columns."""
        return gradient_bound(rows, largest) if self.narrow else largest


AS_THEY_ARE = Space()


def space_of(tasks: Sequence[LinearTask], rows: Rows, problem: Problem) -> Space:
    """Where the models of a scan are predicted to be trained first, one task a model."""
    if not (tasks[0].by_passes and isinstance(rows.executor, Threads)):
        return AS_THEY_ARE
    first, here, models = tasks[0], resources_of(rows.executor), len(tasks)
    hardest = min(tasks, key=lambda task: task.strength)
    model = hardest.model(0, float(rows.n), problem.outputs)
    stop = GradientNorm(gradient_tolerance(problem, first))
    wide = Outline(
        model.loss, shape_of(rows, problem.outputs), model.l2,
        look=cache(lambda: Look.of(rows, problem.rare)),
    )  # fmt: skip
    costs = {AS_THEY_ARE: _together(wide, stop, here, models)}
    costs |= _one_by_one(Space(by_newton=True), wide, stop, here, models)
    if rows.n < rows.d and rows.n <= WIDEST:
        inside = replace(stop, tol=gradient_bound(rows, stop.tol))
        square = replace(wide, shape=square_of(wide.shape))
        narrow = {Space(narrow=True): _together(square, inside, here, models)}
        narrow |= _one_by_one(Space(True, True), square, inside, here, models)
        before = with_products(wide.shape, here)
        costs |= {space: before + cost for space, cost in narrow.items()}
    return min(costs, key=lambda space: costs[space].seconds(here))


def gradient_tolerance(problem: Problem, task: LinearTask) -> float:
    """Where the solver that scikit-learn would use stops, for columns of unit scale.

    L-BFGS at ``tol``, LIBLINEAR in the primal at ``tol`` times the share of the rarest
    class (Lin, Weng and Keerthi, 2008).
    """
    if task.loss != "squared_hinge":
        return task.tol
    return task.tol * problem.rare


def _together(outline: Outline, stop: GradientNorm, here: Resources, models: int) -> Cost:
    """All models in lockstep, by L-BFGS."""
    passes = typical(lbfgs.LBFGS, outline, stop).expected
    shape = replace(outline.shape, columns=outline.shape.columns * models)
    return lbfgs.cost(shape, here, passes)


def _one_by_one(
    space: Space, outline: Outline, stop: GradientNorm, here: Resources, models: int
) -> dict[Space, Cost]:
    """Each on a thread, by Newton; class by class where there is no softmax."""
    shape, softmax = outline.shape, outline.loss == "multinomial"
    if not softmax:
        models, shape = models * shape.columns, replace(shape, columns=1)
    too_large = shape.columns * (shape.d + 1) > newton_cholesky.LARGEST
    if outline.loss not in newton_cholesky.LOSSES or too_large:
        return {}
    alone = replace(outline, shape=shape)
    passes = typical(newton_cholesky.NEWTON_CHOLESKY, alone, stop).expected
    one = cast(
        Cost,
        newton_cholesky.cost(shape, replace(here, threads=1), passes, outline.loss),
    )
    return {space: (models / here.threads) * one}
