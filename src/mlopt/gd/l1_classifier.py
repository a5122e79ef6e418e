"""Planes between classes with an L1 penalty, by working sets of columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlopt.gd.classifier_fit import Outcome, Planes
from mlopt.gd.columns import Model
from mlopt.gd.penalty import Penalty
from mlopt.gd.plans.by_columns import Columns
from mlopt.gd.plans.task import beside
from mlopt.gd.working_set import WorkingSet
from mlopt.rows import Rows


def by_working_set(
    rows: Rows,
    models: Sequence[Model],
    tol: float,
    max_iter: int,
    start: Planes,
    constant: float = 0.0,
) -> Outcome:
    """Planes of one output each, until `WorkingSet.settle` has it.

    Parameters
    ----------
    rows : Rows
        With "targets" (n, T), -1 and 1, and "weights" (n, S) beside them.
    models : sequence of Model
    tol : float
    max_iter : int
        Sweeps of each plane.
    start : Planes
        Of the first model.
    constant : float, default=0.0
        LIBLINEAR's intercept: the weight of a column of this value, penalised as others.
    """
    free = models[0].fit_intercept and not constant
    first = Columns.of_rows(rows, free, constant)
    data = {name: values.astype(np.float64) for name, values in beside(rows).items()}
    found: list[WorkingSet] = []
    done = True
    for model in models:
        y, c = data["targets"][:, model.target], data["weights"][:, model.rowset]
        one = WorkingSet(
            first.of_target(y, c),
            model.loss,
            intercept=free,
            start=(start[0][0][0], float(start[0][1][0])) if start else None,
        )
        penalty = Penalty(model.l1, model.l2, model.positive)
        done &= one.settle(penalty, tol, max_iter)
        found.append(one)
    coef = np.array([one.w[: rows.d] for one in found])
    intercept = [constant * one.w[-1] if constant else one.intercept for one in found]
    passes = max(one.sweeps for one in found)
    return Outcome(coef, np.array(intercept), max(passes, 1), done)
