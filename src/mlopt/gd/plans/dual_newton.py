"""Newton's method where rows are fewer than columns: in as many unknowns as there are rows.

See `mlopt.gd.narrow`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mlopt.costs import Cost
from mlopt.gd.columns import Model
from mlopt.gd.narrow import RowSpace, gradient_bound, square_of
from mlopt.gd.plans import newton_cholesky as newton
from mlopt.gd.plans import newton_costs
from mlopt.gd.plans.by_plane import ByPlane
from mlopt.gd.plans.dual_cholesky import why_not, with_products
from mlopt.gd.plans.method import Method, Price, Start
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import GradientNorm, Minimum, RelativeGap, tolerances
from mlopt.gd.plans.task import Problem
from mlopt.gd.row_products import no_room
from mlopt.locking import cached_property
from mlopt.resources import Resources
from mlopt.rows import Rows

Array = NDArray[np.float64]


class DualNewton(ByPlane):
    """A `mlopt.training.Training` of linear models, on few rows of many columns.

    One class against the others is a problem for each class; what a problem needs of the
    rows is the same for all.

    Parameters
    ----------
    problem : Problem
    stop : RelativeGap or GradientNorm
    max_passes : int
        Of each problem.
    start : (coef, intercept), optional
        Arrays (outputs, d) and (outputs,), of all models.
    """

    def __init__(
        self, problem: Problem, stop: Minimum, max_passes: int, start: Start = None
    ) -> None:
        super().__init__(problem, start)
        self._most = max_passes
        gtol, self._tol = tolerances(stop)
        self._gtol = gradient_bound(problem.rows, gtol)

    @cached_property
    def _narrow(self) -> RowSpace:
        return RowSpace.of(self._problem.rows)

    def _made(self) -> list[list[Any]]:
        start = self._start
        if start is not None:
            start = self._narrow.inside(np.asarray(start[0], np.float64)), start[1]

        def one(model: Model, rows: Rows, begun: Start) -> newton.Newton:
            return newton.Newton(
                rows, model, gtol=self._gtol, tol=self._tol, max_passes=self._most,
                start=begun, certain=self._tol > 0,
            )  # fmt: skip

        return self._of_each(self._narrow.rows(self._problem.rows), start, one)

    def coefficients(self, number: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
        """Weights (outputs, d) and intercepts (outputs,)."""
        found = [one.coefficients() for one in self._planes[number]]
        v, intercept = (np.concatenate(parts) for parts in zip(*found, strict=True))
        coef = self._narrow.outside(v)
        dtype = self._problem.rows.dtype
        return np.ascontiguousarray(coef, dtype), intercept.astype(dtype)


def _price(outline: Outline, resources: Resources) -> Price | str:
    shape = outline.shape
    if why := why_not(outline, resources):
        return why
    planes = 1 if outline.loss == "multinomial" else shape.columns
    square = replace(square_of(shape), columns=shape.columns // planes)
    if why := no_room(square.columns * (shape.n + 1), square, resources):
        return why
    before, here = with_products(shape, resources), resources.one_process

    def of(passes: float) -> Cost:
        return before + planes * cast(Cost, newton_costs.cost(square, here, passes))

    return of


DUAL_NEWTON = Method(
    "dual-newton", newton.LOSSES, lambda shape: newton_costs.passes(square_of(shape)),
    _price, DualNewton, stops=(RelativeGap, GradientNorm), continues=True, sudden=True,
    free=1,
)  # fmt: skip
