"""Working sets of columns as a method: for L1 penalties, and weights that stay positive."""

from __future__ import annotations

from mlopt.costs import Cost
from mlopt.gd.columns import SHARP
from mlopt.gd.l1_training import L1Training, begun_cost
from mlopt.gd.plans.method import Method, Solver, Start, at_least, priced
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.primal_coordinate import SETUP, epoch_cost
from mlopt.gd.plans.stop import GradientNorm, Minimum, RelativeGap
from mlopt.gd.plans.task import Problem
from mlopt.gd.working_set import WAY
from mlopt.prices import price
from mlopt.resources import Resources

_VISITS = price("working-set.visits")


def epochs_cost(outline: Outline, resources: Resources, passes: float) -> Cost:
    """A copy of the columns, and sweeps over working sets of them: each target's on a
    thread, each class's on the same one."""
    del passes  # all models end in the first one
    columns = outline.shape.columns
    threads = 1 if outline.loss == "multinomial" else min(columns, resources.threads)
    each = columns / threads
    begun = each * begun_cost(outline.loss)
    return (SETUP + each * _VISITS) * epoch_cost(outline, resources) + begun


def _begin(problem: Problem, stop: Minimum, max_passes: int, start: Start) -> Solver:
    return L1Training(
        problem.rows, problem.models, stop=stop, max_iter=max_passes, start=start
    )


WORKING_SET = Method(
    WAY, frozenset(SHARP), lambda shape: 1.0, priced(epochs_cost),
    _begin, stops=(RelativeGap, GradientNorm), sharp=True, bounds=True, iterates=False,
    in_one_piece=True, small=lambda problem: True, least=at_least(2),
)  # fmt: skip
