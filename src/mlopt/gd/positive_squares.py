"""Ridge regression of coefficients that may not be negative, by working sets of columns."""

from __future__ import annotations

import numpy as np

from mlopt.gd.choosing import choose
from mlopt.gd.classifier_fit import shape_of
from mlopt.gd.least_squares_solvers import Fit, Task
from mlopt.gd.penalty import Penalty
from mlopt.gd.plans.by_columns import Columns
from mlopt.gd.plans.sequential_cost import working_set_cost
from mlopt.gd.plans.task import beside
from mlopt.gd.working_set import WAY, WorkingSet
from mlopt.plan import Choice
from mlopt.resources import Resources


def choose_positive(operator: str, task: Task, resources: Resources) -> Choice:
    """The one method for coefficients that may not be negative, and its price."""
    cost = working_set_cost(shape_of(task.rows, len(task.alphas)), resources)
    return choose(operator, "auto", {WAY: cost}, resources)


def by_working_set(task: Task) -> Fit:
    """One target after the other, until no step along a column would move it.

    Done when the dual gap is at most ``accuracy`` of the target's spread and no step along
    one column is longer than ``accuracy`` times the largest coefficient.
    """
    columns = Columns.of_rows(task.rows, task.intercept)
    given = beside(task.rows)
    weights = given["weights"][:, 0].astype(np.float64)
    coef, sweeps, done = [], [], True
    for y, alpha in zip(given["targets"].T, task.alphas, strict=True):
        own = columns.of_target(y)
        one = WorkingSet(own, "squared", intercept=task.intercept)
        penalty = Penalty(l2=float(alpha) / float(weights.sum()), positive=True)
        done &= one.settle(penalty, task.accuracy, task.max_iter)
        coef.append(one.w)
        sweeps.append(one.sweeps)
    mean = np.zeros(len(columns.centre) + len(coef))
    if task.intercept:
        about = given["targets"].T @ columns.c
        mean = np.concatenate((columns.moments[0] + columns.centre, about))
    steps = np.array(sweeps, np.int64)
    return Fit(np.array(coef).T, mean, WAY, iterations=steps, converged=done)
