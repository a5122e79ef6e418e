"""Many logistic models in their duals, one after the other along their penalties."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlopt.gd.columns import Model
from mlopt.gd.newton_training import AlongPenalties, End, Path
from mlopt.gd.plans.dual_logistic import DualLogistic
from mlopt.gd.plans.stop import GradientNorm
from mlopt.gd.plans.task import Problem, Task
from mlopt.rows import Rows
from mlopt.training import run


class DualTraining(AlongPenalties):
    """Those of "logistic", each from the variables of the one before."""

    def __init__(
        self, rows: Rows, models: Sequence[Model], *, gtol: float, max_iter: int
    ) -> None:
        whole = rows.in_one_block(must=True)
        super().__init__(whole, models, gtol=gtol, max_iter=max_iter)

    def _along(self, path: Path) -> Iterator[End]:
        first, *others = path.models
        problem = Problem(Task.of(first), path.rows, (first,))
        one = DualLogistic(problem, GradientNorm(self._gtol), self.max_passes)
        for model in (first, *others):
            one = one if model is first else one.weaker(model)
            late = run(one, self.limits) == "seconds"
            yield End(*one.coefficients(), one.passes, one.converged, late)
