"""What scikit-learn's own fit costs, on rows in one place, where a formula tells it.

Its lbfgs reads X twice a step: scores of all rows are written out between two products.
LIBLINEAR goes through a list of what is stored in each row, several times a step.
"""

from __future__ import annotations

from typing import Any

from mlopt.costs import Cost
from mlopt.gd.pricing import Shape, arithmetic, shape_of_stats
from mlopt.prices import price
from mlopt.stats import Stats

_PASSES, _SPARSE = price("theirs.lbfgs.passes"), price("theirs.lbfgs.passes.sparse")
_SOFTMAX = price("theirs.lbfgs.passes.softmax")
_CALL, _STEP = price("theirs.lbfgs.call"), price("theirs.lbfgs.step")
_LOSS, _PRODUCT = price("theirs.lbfgs.loss"), price("theirs.lbfgs.product")
_READS, _STORED = price("theirs.lbfgs.reads"), price("theirs.lbfgs.stored")
_NEWTON = price("theirs.liblinear.passes")
_LISTED, _SPARSELY = price("theirs.liblinear.listed"), price("theirs.liblinear.stored")


def svc_cost(estimator: Any, stats: Stats, passes: float | None = None) -> Cost | None:
    """Of a `LinearSVC`, on one thread; None in the dual, whose epochs only a trial tells.

    Parameters
    ----------
    estimator : LinearSVC
    stats : Stats
        Of all rows; ``outputs`` are classes where there are three or more.
    passes : float, optional
        Steps that it takes, where that is known.
    """
    dual = stats.rows < stats.columns if estimator.dual == "auto" else estimator.dual
    kinds = (estimator.loss, estimator.penalty, estimator.multi_class)
    if dual or kinds != ("squared_hinge", "l2", "ovr"):
        return None
    shape = shape_of_stats(stats)
    steps = min(_NEWTON, estimator.max_iter) if passes is None else passes
    each = _SPARSELY if shape.sparse else _LISTED
    return arithmetic(shape, steps * each * shape.nonzero * shape.columns)


def logistic_cost(estimator: Any, stats: Stats, passes: float | None = None) -> Cost | None:
    """Of a `LogisticRegression`, on one thread; None for solvers without a price.

    Parameters
    ----------
    estimator : LogisticRegression
    stats : Stats
        Of all rows; ``outputs`` are classes where there are three or more.
    passes : float, optional
        Steps that it takes, where that is known.
    """
    if estimator.solver != "lbfgs":
        return None
    shape = shape_of_stats(stats)
    if passes is None:
        dense = _SOFTMAX if shape.columns > 1 else _PASSES
        passes = min(_SPARSE if shape.sparse else dense, estimator.max_iter)
    return Cost(python=_CALL) + passes * _step(shape)


def _step(shape: Shape) -> Cost:
    """Two products, and between them loss and slope of each row and column of weights."""
    columns, beside = shape.columns, Cost(python=_STEP)
    loss = arithmetic(shape, _LOSS * shape.n * columns)
    if shape.sparse:
        products = arithmetic(shape, _STORED * shape.nonzero * columns)
    else:
        work = arithmetic(shape, _PRODUCT * 4.0 * shape.nonzero * columns)
        products = work | Cost(memory=_READS * shape.nbytes)
    return products + loss + beside
