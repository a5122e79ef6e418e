"""Ridge regression of coefficients that may not be negative, by the table's methods."""

from __future__ import annotations

import numpy as np

from mlopt.gd.columns import Model
from mlopt.gd.least_squares_solvers import Fit, Task
from mlopt.gd.passes import Sums
from mlopt.gd.plans import task as tasks
from mlopt.gd.plans.fitting import Chosen, choose
from mlopt.gd.plans.stop import GradientNorm
from mlopt.gd.working_set import WAY
from mlopt.resources import Resources


def choose_positive(operator: str, task: Task, resources: Resources) -> Chosen:
    """The one method for coefficients that may not be negative, and its price."""
    weight = float(Sums.of(task.rows).weights[0])
    models = tuple(
        Model(
            "squared",
            float(alpha) / weight,
            target=number,
            fit_intercept=task.intercept,
            positive=True,
        )
        for number, alpha in enumerate(task.alphas)
    )
    of = tasks.Task("squared", models[0].l2, task.intercept, positive=True)
    problem = tasks.Problem(of, task.rows, models)
    return choose(operator, "auto", (WAY,), problem, GradientNorm(task.accuracy), resources)


def fit_positive(task: Task, chosen: Chosen) -> Fit:
    """One target after the other, until no step along a column would move it."""
    outcome = chosen.run(task.max_iter)
    mean = np.concatenate((np.zeros(task.rows.d), outcome.intercept))
    steps = np.array([found["n_iter_"] for found in outcome.learnt], np.int64)
    done = outcome.converged
    return Fit(outcome.coef.T, mean, WAY, iterations=steps, converged=done)
