"""Newton's method where rows are fewer than columns: in as many unknowns as there are rows.

The minimum is a combination of rows. With ``X X' = L L'`` and ``w = X' inv(L)' v`` the
margins ``X w`` are ``L v``, and ``|w| = |v|``: the same problem, with the rows of L.

Chapelle, "Training a support vector machine in the primal", Neural Computation 19, 2007.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from mlopt.costs import Cost
from mlopt.gd.plans import newton_cholesky as newton
from mlopt.gd.plans.dual_cholesky import row_products, why_not, with_products
from mlopt.gd.plans.method import Method, Price, Solver, Start
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import GradientNorm, RelativeGap, Stop
from mlopt.gd.plans.task import Problem
from mlopt.gd.pricing import Shape
from mlopt.gd.sample import local_executor
from mlopt.resources import Resources
from mlopt.rows import Rows

Array = NDArray[np.float64]

_LIFT = 4 * float(np.finfo(np.float64).eps)
"""Of the mean product, for each row: what rounding may have made of one that depends on
others."""


class DualNewton:
    """A `mlopt.training.Training` of one model, on few rows of many columns.

    Parameters
    ----------
    problem : Problem
    stop : RelativeGap or GradientNorm
    max_passes : int
    start : (coef, intercept), optional
        Arrays (outputs, d) and (outputs,).
    """

    def __init__(
        self, problem: Problem, stop: Stop, max_passes: int, start: Start = None
    ) -> None:
        self._problem, self._start, self._most = problem, start, max_passes
        self._near = isinstance(stop, GradientNorm)
        # No component of a gradient is larger than its length, which is the same for v.
        rooted = np.sqrt(problem.rows.n)
        self._gtol = cast(GradientNorm, stop).tol / rooted if self._near else 0.0
        self._tol = 0.0 if self._near else cast(RelativeGap, stop).tolerance

    @cached_property
    def _rows(self) -> Rows:
        return self._problem.rows.in_one_block(must=True)

    @cached_property
    def _factor(self) -> Array:
        """L, lower: rows that depend on others are lifted above their rounding."""
        (X,) = self._rows.map(lambda block: block.X)
        products = row_products(X)
        n = len(products)
        products.flat[:: n + 1] += _LIFT * n * products.trace() / n
        return np.asarray(cholesky(products, lower=True, overwrite_a=True))

    @cached_property
    def _newton(self) -> newton.Newton:
        """Of v; made at the first pass, since products of all rows take a while."""
        beside, factor = self._problem.beside(), self._factor
        rows = Rows.of(factor, executor=local_executor(self._rows)).attach(**beside)
        start = None
        if self._start is not None:
            coef, intercept = self._start
            (z,) = self._rows.map(lambda block: block.X @ np.asarray(coef, np.float64).T)
            start = solve_triangular(factor, z, lower=True).T, intercept
        return newton.Newton(
            rows, self._problem.model, gtol=self._gtol, tol=self._tol,
            max_passes=self._most, start=start, certain=not self._near,
        )  # fmt: skip

    @property
    def _begun(self) -> bool:
        return "_newton" in vars(self)

    @property
    def passes(self) -> int:
        """Passes over the rows of L."""
        return self._newton.passes if self._begun else 0

    @property
    def converged(self) -> NDArray[np.bool_]:
        """As that of v, (1,)."""
        return self._newton.converged if self._begun else np.array([False])

    @property
    def done(self) -> bool:
        """Whether another pass would change nothing."""
        return self._begun and self._newton.done

    @property
    def gap(self) -> float:
        """How far the objective may be above its minimum, relative to it."""
        return self._newton.gap if self._begun else np.inf

    def ask(self, tolerance: float) -> None:
        """Go on to another gap."""
        self._newton.ask(tolerance)

    def quality(self) -> NDArray[np.float64]:
        """Minus the objective, (1,)."""
        return self._newton.quality()

    def advance(self, passes: int) -> None:
        """Up to so many passes."""
        self._newton.advance(passes)

    def coefficients(self, number: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
        """Weights (outputs, d) and intercepts (outputs,)."""
        v, intercept = self._newton.coefficients(number)
        dual = solve_triangular(self._factor, v.T, lower=True, trans="T")
        (coef,) = self._rows.map(lambda block: (block.X.T @ dual).T)
        dtype = self._problem.rows.dtype
        return np.ascontiguousarray(coef, dtype), intercept.astype(dtype)

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        return self._newton.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of the same model on the same rows."""
        self._newton.restore(state)


def _square(shape: Shape) -> Shape:
    """Of the rows of L."""
    n = shape.n
    return replace(shape, d=n, nonzero=n * n, sparse=False, itemsize=8, blocks=1)


def _price(outline: Outline, resources: Resources) -> Price | str:
    shape = outline.shape
    if shape.columns > 1 and outline.loss != "multinomial":
        return "its Hessian is that of one column of weights, or of a softmax"
    if why := why_not(outline, resources):
        return why
    if (size := shape.columns * (shape.n + 1)) > newton.LARGEST:
        return f"a Hessian of {size} x {size} is beyond {newton.LARGEST}"
    square, here = _square(shape), replace(resources, workers=1)
    before = with_products(shape, resources)

    def of(passes: float) -> Cost:
        return before + cast(Cost, newton.cost(square, here, passes))

    return of


def _begin(problem: Problem, stop: Stop, max_passes: int, start: Start) -> Solver:
    return DualNewton(problem, stop, max_passes, start)


DUAL_NEWTON = Method(
    "dual-newton", newton.LOSSES, lambda shape: newton.passes(_square(shape)), _price,
    _begin, stops=(RelativeGap, GradientNorm), continues=True, free=1,
)  # fmt: skip
