"""Many logistic models in their duals, one after the other along their penalties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from mlopt.gd.columns import Model
from mlopt.gd.newton_training import AlongPenalties, Path
from mlopt.gd.plans.dual_logistic import DualLogistic
from mlopt.gd.plans.stop import GradientNorm
from mlopt.gd.plans.task import Problem, Task
from mlopt.rows import Rows

Array = NDArray[Any]


class DualTraining(AlongPenalties):
    """Those of "logistic", each from the variables of the one before."""

    def __init__(
        self, rows: Rows, models: Sequence[Model], *, gtol: float, max_iter: int
    ) -> None:
        whole = rows.in_one_block(must=True)
        super().__init__(whole, models, gtol=gtol, max_iter=max_iter)

    def _along(self, path: Path) -> list[tuple[Array, Array, bool]]:
        first, *others = path.models
        problem = Problem(Task.of(first), path.rows, (first,))
        one = DualLogistic(problem, GradientNorm(self._gtol), self.max_passes)
        ends: list[tuple[Array, Array, bool]] = []
        for model in (first, *others):
            one = one if model is first else one.weaker(model)
            one.advance(self.max_passes)
            ends.append((*one.coefficients(), one.converged))
        return ends
