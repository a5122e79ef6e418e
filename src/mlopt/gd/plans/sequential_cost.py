"""What epochs of methods cost that go from row to row: pure functions of shapes.

Operations are in units of a matrix product's, as measured with one thread on rows with 14
to 1000 stored values.
"""

from __future__ import annotations

from dataclasses import replace

from mlopt.costs import Cost
from mlopt.gd.classifier_plan import Shape, dual_cost
from mlopt.resources import Resources

VARIANCE_REDUCED_EPOCHS, COORDINATE_EPOCHS, DUAL_EPOCHS = 20.0, 30.0, 30.0
"""Epochs to expect where nothing is known of the data but their shape."""

_SWEEPS = 10.0
"""Visits of all columns in whose time a working set ends: it holds few of them."""
_SETUP = 3.0
"""Epochs that go into a copy of the rows, their squares and a first Hessian."""

# For each stored value of dense and of sparse rows, and for each row.
_STEP_DENSE, _STEP_SPARSE, _STEP_ROW = 100.0, 800.0, 4000.0
_VISIT_DENSE, _VISIT_SPARSE = 130.0, 900.0
_LOGARITHMS = 20_000.0
_CALLS = 2e-3
"""Seconds of an epoch over rows that take none."""


def variance_reduced_cost(
    shape: Shape, resources: Resources, passes: float | None = None
) -> Cost:
    """Epochs of a full gradient and a step for every row, on one thread.

    Parameters
    ----------
    shape : Shape
    resources : Resources
    passes : float, optional
        Epochs; default `VARIANCE_REDUCED_EPOCHS`.
    """
    epochs = (VARIANCE_REDUCED_EPOCHS if passes is None else passes) + _SETUP
    price = _STEP_SPARSE if shape.sparse else _STEP_DENSE
    work = price * shape.nonzero + _STEP_ROW * shape.n
    return _alone(epochs * work, resources) + epochs * Cost(python=_CALLS)


def primal_coordinate_cost(
    shape: Shape, resources: Resources, passes: float | None = None
) -> Cost:
    """Epochs of a visit to every column, on one thread.

    Parameters
    ----------
    shape : Shape
    resources : Resources
    passes : float, optional
        Epochs; default `COORDINATE_EPOCHS`.
    """
    epochs = (COORDINATE_EPOCHS if passes is None else passes) + _SETUP
    price = _VISIT_SPARSE if shape.sparse else _VISIT_DENSE
    work = _alone(epochs * price * shape.nonzero, resources)
    return work + epochs * Cost(python=_CALLS)


def working_set_cost(shape: Shape, resources: Resources) -> Cost:
    """Sweeps over working sets of columns, target after target, on one thread."""
    targets = replace(shape, columns=1)
    each = primal_coordinate_cost(targets, resources, _SWEEPS)
    return shape.columns * each


def dual_logistic_cost(
    shape: Shape, resources: Resources, passes: float | None = None
) -> Cost:
    """As `dual_cost`, and the logarithms of every row.

    Parameters
    ----------
    shape : Shape
    resources : Resources
    passes : float, optional
        Epochs; default `DUAL_EPOCHS`.
    """
    epochs = DUAL_EPOCHS if passes is None else passes
    logarithms = _alone(epochs * _LOGARITHMS * shape.n, resources)
    return dual_cost(shape, resources, epochs) + logarithms + epochs * Cost(python=_CALLS)


def _alone(operations: float, resources: Resources) -> Cost:
    # Costs divide by all threads; a sequence of steps uses only one.
    return Cost(flops=operations * resources.threads)
