"""A problem of gradient descent: what is to be minimised, and over which rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from mlopt.cluster import Executor
from mlopt.errors import InputError
from mlopt.gd.columns import REGRESSION, Model, layout
from mlopt.gd.estimator_base import check_weights, in_memory
from mlopt.gd.passes import Sums, evaluate
from mlopt.kernels.losses import LOSSES
from mlopt.rows import Block, Rows

Array = NDArray[Any]


@dataclass(frozen=True)
class Task:
    """Minimise ``sum_i c_i loss(x_i w + b, y_i) / sum_i c_i + l2/2 ||w||^2``.

    Parameters
    ----------
    loss : str
        "logistic", "hinge", "squared_hinge" (two classes), "multinomial" (two or more),
        "squared" or "huber" (numbers).
    l2 : float, default=0.0
        Of the mean loss: scikit-learn's C is ``1 / (n l2)``. The intercept is not
        penalised.
    fit_intercept : bool, default=True
    delta : float, default=1.0
        Where the Huber loss turns from squares to absolute values.

    Raises
    ------
    InputError
        When a parameter is out of its range.
    """

    loss: str
    l2: float = 0.0
    fit_intercept: bool = True
    delta: float = 1.0

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise InputError(f"`loss` must be one of {sorted(LOSSES)}, got {self.loss!r}.")
        for name, least in (("l2", self.l2 >= 0), ("delta", self.delta > 0)):
            value = getattr(self, name)
            if not (least and np.isfinite(value)):
                sign = "at least 0" if name == "l2" else "positive"
                raise InputError(f"`{name}` must be finite and {sign}, got {value!r}.")

    @property
    def classifies(self) -> bool:
        """Whether targets are classes."""
        return self.loss not in REGRESSION


@dataclass(frozen=True, eq=False)
class Problem:
    """A task on its rows.

    Attributes
    ----------
    task : Task
    rows : Rows
        With "targets" and "weights" (n, 1) beside them.
    model : Model
    classes : ndarray of shape (K,) or None
        The classes in order; None in regression.
    """

    task: Task
    rows: Rows
    model: Model
    classes: Array | None

    def on(self, rows: Rows) -> Problem:
        """The same task on other rows, such as a sample."""
        return replace(self, rows=rows)

    @cached_property
    def sums(self) -> Sums:
        """Sums of row weights."""
        return Sums.of(self.rows)

    @property
    def weight(self) -> float:
        """The sum of all row weights."""
        return float(self.sums.weights[0])

    def beside(self) -> dict[str, Array]:
        """Targets and weights of all rows, (n, 1) each, in this process."""
        parts = self.rows.map(_extra)
        names = ("targets", "weights")
        return {name: np.concatenate([part[name] for part in parts]) for name in names}

    def objective(self, coef: Array, intercept: Array) -> float:
        """The objective at weights (outputs, d) and intercepts (outputs,): one pass."""
        weights = np.vstack([coef.T, intercept[None]]).astype(self.rows.dtype)
        plan = layout([self.model])
        found = evaluate(self.rows, weights, plan, self.sums, gradient=False, scored=False)
        return float(found.value[0])


def problem_of(
    task: Task, X: Any, y: Any, executor: Executor, sample_weight: Any = None
) -> Problem:
    """Check the data and place targets and weights beside the rows.

    Parameters
    ----------
    task : Task
    X : array-like, sparse, data frame or dask collection of shape (n, d), or Rows
    y : array-like of shape (n,)
    executor : Executor
    sample_weight : array-like of shape (n,), optional

    Raises
    ------
    InputError
        When lengths differ, values are not finite, or classes do not fit the loss.
    """
    rows = X if isinstance(X, Rows) else Rows.of(X, executor=executor)
    dtype = None if task.classifies else "numeric"
    labels = check_array(in_memory(y), ensure_2d=False, dtype=dtype)
    if labels.shape != (rows.n,):
        raise InputError(
            f"`y` must be 1-D with one value for each of the {rows.n} rows, got shape "
            f"{labels.shape}."
        )
    targets, classes = _encode(task, labels)
    weights = check_weights(in_memory(sample_weight), rows.n)
    beside = rows.attach(
        targets=targets[:, None].astype(rows.dtype),
        weights=weights[:, None].astype(rows.dtype),
    )
    outputs = len(classes) if task.loss == "multinomial" and classes is not None else 1
    model = Model(
        task.loss, task.l2, outputs=outputs, delta=task.delta,
        fit_intercept=task.fit_intercept,
    )  # fmt: skip
    return Problem(task, beside, model, classes)


def _extra(block: Block) -> dict[str, Array]:
    return dict(block.extra)


def _encode(task: Task, labels: Array) -> tuple[Array, Array | None]:
    """Numbers as they are; classes as -1 and 1, or counted from 0."""
    if not task.classifies:
        return np.asarray(labels, np.float64), None
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"`y` must hold at least two classes, got only {classes[0]!r}.")
    if task.loss == "multinomial":
        return codes.astype(np.float64), classes
    if len(classes) > 2:
        raise InputError(
            f"The {task.loss} loss separates two classes and `y` holds {len(classes)}: use "
            "'multinomial', or an estimator, which trains one class against the rest."
        )
    return np.where(codes == 1, 1.0, -1.0), classes
