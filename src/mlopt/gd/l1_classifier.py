"""Two classes with an L1 penalty, by working sets of columns."""

from __future__ import annotations

import numpy as np

from mlopt.gd.classifier_fit import Outcome, Planes
from mlopt.gd.columns import Model
from mlopt.gd.penalty import Penalty
from mlopt.gd.plans.by_columns import Columns
from mlopt.gd.working_set import WorkingSet
from mlopt.rows import Rows

_GAP = 0.01
"""Of `tol`, the relative duality gap with an L1 penalty: 1e-6 as a rule, which leaves some
1e-3 of a coefficient."""


def by_working_set(
    rows: Rows, model: Model, l1_ratio: float, tol: float, max_iter: int, start: Planes
) -> Outcome:
    """Two classes with an L1 penalty, until the duality gap is small."""
    columns = Columns.of_rows(rows, model.fit_intercept)
    first = (start[0][0][0], float(start[0][1][0])) if start else None
    one = WorkingSet(columns, model.loss, intercept=model.fit_intercept, start=first)
    penalty = Penalty(l1_ratio * model.l2, (1.0 - l1_ratio) * model.l2)
    done = one.solve(penalty, _GAP * tol, max_iter, relative=True)
    return Outcome(one.w[None], np.array([one.intercept]), max(one.sweeps, 1), done)
