"""A problem of gradient descent: what is to be minimised, and over which rows."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from mlopt.cluster import Executor, Threads
from mlopt.cluster.threads import threads_here
from mlopt.errors import InputError
from mlopt.gd.columns import REGRESSION, SHARP, Model, layout
from mlopt.gd.estimator_base import check_weights
from mlopt.gd.operators.compute import Gradient, UserGradient
from mlopt.gd.operators.interfaces import Batch
from mlopt.gd.passes import Sums, beside, evaluate, weighted
from mlopt.gd.plans.look import Look, rarest
from mlopt.gd.plans.outline import Outline
from mlopt.gd.preconditioned_plan import samples
from mlopt.gd.pricing import shape_of
from mlopt.gd.spectrum import Spectrum
from mlopt.kernels.losses import LOSSES
from mlopt.locking import cached_property
from mlopt.prices import count
from mlopt.rows import Block, Rows
from mlopt.rows.block import check_unmasked
from mlopt.rows.source import collected_together, split_with

Array = NDArray[Any]
Compute = Gradient | UserGradient
_LARGE = count("spectrum.values")
USER = "user"
"""The name of a loss that the user brings as a gradient."""


@dataclass(frozen=True)
class Task:
    """Minimise ``sum_i c_i loss(x_i w + b, y_i) / sum_i c_i + l1 ||w||_1 + l2/2 ||w||^2``.

    Parameters
    ----------
    loss : str or callable
        "logistic", "hinge", "squared_hinge" (two classes), "multinomial" (two or more),
        "squared" or "huber" (numbers). Or a gradient of your own: ``loss(x, y, w)`` of one
        row, x (d,), y a number, w (d,), returns (d,).
    l2 : float, default=0.0
        Of the mean loss: scikit-learn's C is ``1 / (n l2)``. The intercept is not
        penalised.
    fit_intercept : bool, default=True
        With a gradient of your own there is none: add a column of ones.
    delta : float, default=1.0
        Where the Huber loss turns from squares to absolute values.
    objective : callable, optional
        ``objective(x, y, w)`` of one row, a number: what ``loss`` is the gradient of, where
        that is your own. Without it, plans that need the objective are refused.
    batched : bool, default=False
        Whether your own functions take many rows, x (m, d) and y (m,), and return sums.
    l1 : float, default=0.0
        A penalty ``l1 ||w||_1`` beside: for "squared", "logistic", "squared_hinge" and
        "multinomial".
    positive : bool, default=False
        Whether weights may not be negative; for the same losses.

    Raises
    ------
    InputError
        When a parameter is out of its range.
    """

    loss: str | Callable[[Any, Any, Array], Any]
    l2: float = 0.0
    fit_intercept: bool = True
    delta: float = 1.0
    objective: Callable[[Any, Any, Array], float] | None = None
    batched: bool = False
    l1: float = 0.0
    positive: bool = False

    def __post_init__(self) -> None:
        if not callable(self.loss) and self.loss not in LOSSES:
            raise InputError(
                f"`loss` must be one of {sorted(LOSSES)}, or a gradient(x, y, w) of your "
                f"own, got {self.loss!r}."
            )
        if not callable(self.loss) and (self.objective is not None or self.batched):
            raise InputError(
                "`objective` and `batched` belong to a gradient of your own: leave them "
                f"out with `loss`={self.loss!r}."
            )
        for name in ("l2", "l1", "delta"):
            value = getattr(self, name)
            real = isinstance(value, Real) and math.isfinite(value)
            if not (real and (value > 0 if name == "delta" else value >= 0)):
                sign = "positive" if name == "delta" else "at least 0"
                raise InputError(f"`{name}` must be finite and {sign}, got {value!r}.")
        sharp = [name for name in ("l1", "positive") if getattr(self, name)]
        if sharp and self.loss_name not in SHARP:
            raise InputError(
                f"`{sharp[0]}` goes with the losses {', '.join(SHARP)}, got "
                f"`loss`={self.loss!r}: leave it out, or take one of these."
            )

    @classmethod
    def of(cls, model: Model) -> Task:
        """What one model of an estimator minimises."""
        return cls(
            model.loss, model.l2, model.fit_intercept, model.delta, l1=model.l1,
            positive=model.positive,
        )  # fmt: skip

    @property
    def loss_name(self) -> str:
        """The name of the loss; "user" for a gradient that the user brings."""
        return self.loss if isinstance(self.loss, str) else USER

    @property
    def title(self) -> str:
        """The loss in words."""
        if isinstance(self.loss, str):
            return f"the {self.loss} loss"
        return f"the loss of {getattr(self.loss, '__name__', 'your gradient')}"

    @property
    def intercept(self) -> bool:
        """Whether there is a weight without a penalty."""
        return self.fit_intercept and isinstance(self.loss, str)

    @property
    def compute(self) -> Compute:
        """The Compute operator of `mlopt.gd.operators` for this task."""
        if callable(self.loss):
            return UserGradient(self.loss, self.objective, l2=self.l2, batched=self.batched)
        return Gradient(
            self.loss, l2=self.l2, fit_intercept=self.intercept, delta=self.delta
        )

    @property
    def blind(self) -> bool:
        """Whether there is a gradient without the objective that it belongs to."""
        return callable(self.loss) and self.objective is None

    @property
    def classifies(self) -> bool:
        """Whether targets are classes."""
        return self.loss_name not in (*REGRESSION, USER)


@dataclass(frozen=True, eq=False)
class Problem:
    """A task on its rows.

    Attributes
    ----------
    task : Task
    rows : Rows
        With "targets" and "weights" (n, 1) beside them.
    models : tuple of Model
        Of the task's loss, as a rule one: as many as there are targets or row sets.
    classes : ndarray of shape (K,) or None
        The classes in order; None in regression.
    even : bool, default=False
        Whether all rows are known to weigh the same.
    seed : int
        Of what is drawn.
    known : Sums, optional
        Sums of row weights, where they were added up before.
    """

    task: Task
    rows: Rows
    models: tuple[Model, ...]
    classes: Array | None = None
    even: bool = False
    seed: int = 0
    known: Sums | None = None

    @property
    def model(self) -> Model:
        """The first model."""
        return self.models[0]

    @property
    def outputs(self) -> int:
        """Columns of weights."""
        return sum(model.outputs for model in self.models)

    @property
    def values(self) -> int:
        """That a pass goes through: stored ones and a target a row, for each column."""
        return (self.rows.nonzero + self.rows.n) * self.outputs

    @property
    def sharp(self) -> bool:
        """Whether a penalty has kinks, as L1, or edges, as for positive weights."""
        return any(model.sharp for model in self.models)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "here"}

    def split(self, start: tuple[Array, Array] | None) -> list[tuple[Array, Array]] | None:
        """Weights (columns, d) and intercepts (columns,) of all models, model by model."""
        if start is None:
            return None
        ends = np.cumsum([model.outputs for model in self.models])[:-1]
        parts = (np.split(np.asarray(part), ends) for part in start)
        return list(zip(*parts, strict=True))

    def on(self, rows: Rows) -> Problem:
        """The same task on other rows, such as a sample."""
        return replace(self, rows=rows, known=None)

    @cached_property
    def here(self) -> Problem:
        """The same on rows of this process, brought from workers once."""
        if isinstance(self.rows.executor, Threads):
            return self
        return self.on(self.rows.moved(threads_here()))

    @cached_property
    def sums(self) -> Sums:
        """Sums of row weights."""
        return self.known or Sums.of(self.rows)

    @cached_property
    def outline(self) -> Outline:
        """What its price depends on."""
        rows, penalised = self.rows, self.model.intercept_l2 > 0
        return Outline(
            self.task.loss_name, shape_of(rows, self.outputs),
            min(model.l2 for model in self.models),
            free_intercept=self.task.intercept and not penalised,
            sharp=self.sharp, even=self.even,
            blind=self.task.blind, spectrum=self._spectrum, look=Looks(self.task, rows),
        )  # fmt: skip

    @cached_property
    def rare(self) -> float:
        """The share of the rarest class of the first target; 0.5 in regression."""
        return _rare(self.task, self.rows)

    @cached_property
    def _spectrum(self) -> Spectrum | None:
        """Of rows too wide for a sample's Gram matrix: a run on one would tell little, too.

        Where a look at some of them is little beside a pass over all.
        """
        rows = self.rows
        large = self.task.loss == "squared" and rows.nonzero > _LARGE
        return Spectrum.of(rows) if large and not samples(rows.n, rows.d) else None

    @property
    def weight(self) -> float:
        """The sum of all row weights."""
        return float(self.sums.weights[0])

    def beside(self) -> dict[str, Array]:
        """Targets and weights of all rows, (n, 1) each, in this process."""
        return beside(self.rows)

    def targets_and_shares(self) -> tuple[Array, Array]:
        """Targets and weights of all rows, (n,) each in float64; weights add up to 1."""
        y, c = (array[:, 0].astype(np.float64) for array in self.beside().values())
        return y, c / c.sum()

    def objective(self, coef: Array, intercept: Array) -> float:
        """The objective at weights (outputs, d) and intercepts (outputs,): one pass.

        NaN where a gradient of the user's came without one.
        """
        if callable(self.task.loss):
            return self._own_objective(coef[0])
        weights = np.vstack([coef.T, intercept[None]]).astype(self.rows.dtype)
        plan = layout([self.model])
        found = evaluate(self.rows, weights, plan, self.sums, gradient=False, scored=False)
        return float(found.value[0]) + self.model.l1 * float(np.abs(coef).sum())

    def _own_objective(self, weights: Array) -> float:
        if self.task.objective is None:
            return float("nan")
        compute = self.task.compute
        total = self.rows.map_reduce(_block_objective, operator.add, compute, weights)
        return float(total) / self.rows.n


@dataclass(frozen=True, eq=False)
class Looks:
    """A look at some rows, when it is asked for; once."""

    task: Task
    rows: Rows

    @cached_property
    def _found(self) -> Look:
        return Look.of(self.rows, _rare(self.task, self.rows))

    def __call__(self) -> Look:
        return self._found


def _rare(task: Task, rows: Rows) -> float:
    if not task.classifies:
        return 0.5
    return rarest(rows.map_reduce(_block_counts, _add_counts))


def _block_counts(block: Block) -> Array:
    """Rows of each class, whether these are -1 and 1 or counted from 0."""
    return np.bincount(block.extra["targets"][:, 0].astype(np.intp) + 1)


def _add_counts(a: Array, b: Array) -> Array:
    size = max(len(a), len(b))
    return np.asarray(np.pad(a, (0, size - len(a))) + np.pad(b, (0, size - len(b))))


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
    check_unmasked(y, "y")
    check_unmasked(sample_weight, "sample_weight")
    if isinstance(X, Rows):
        rows, (y, sample_weight) = X, collected_together(y, sample_weight)
    else:
        source, (y, sample_weight) = split_with(X, (y, sample_weight), executor)
        rows = Rows.on_shelves(source, executor)
    dtype = None if task.classifies else "numeric"
    labels = check_array(y, ensure_2d=False, dtype=dtype)
    if labels.shape != (rows.n,):
        raise InputError(
            f"`y` must be 1-D with one value for each of the {rows.n} rows, got shape "
            f"{labels.shape}."
        )
    targets, classes = _encode(task, labels)
    weights = check_weights(sample_weight, rows.n)
    attached = weighted(rows, targets[:, None], weights[:, None])
    outputs = len(classes) if task.loss == "multinomial" and classes is not None else 1
    loss = task.loss if isinstance(task.loss, str) else "squared"
    model = Model(
        loss, task.l2, outputs=outputs, delta=task.delta, fit_intercept=task.intercept,
        l1=task.l1, positive=task.positive,
    )  # fmt: skip
    kept = weights[weights > 0] if attached.n < rows.n else weights
    even = bool((kept == kept[0]).all())
    return Problem(task, attached, (model,), classes, even=even)


def _block_objective(block: Block, compute: Compute, weights: Array) -> float:
    return compute.objective(Batch(block.X, block.extra["targets"][:, 0]), weights)


def _two_numbers(labels: Array) -> Array | None:
    """The classes if they are two numbers: without sorting all labels."""
    if labels.dtype.kind not in "biuf":
        return None
    low, high = labels.min(), labels.max()
    if low == high or not ((labels == low) | (labels == high)).all():
        return None
    return np.array([low, high], labels.dtype)


def _encode(task: Task, labels: Array) -> tuple[Array, Array | None]:
    """Numbers as they are; classes as -1 and 1, or counted from 0."""
    if not task.classifies:
        return np.asarray(labels, np.float64), None
    pair = _two_numbers(labels)
    if pair is not None and task.loss != "multinomial":
        return np.where(labels == pair[1], 1.0, -1.0), pair
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        only = classes.tolist()[0]
        raise InputError(f"`y` must hold at least two classes, got only {only!r}.")
    if task.loss == "multinomial":
        return codes.astype(np.float64), classes
    if len(classes) > 2:
        raise InputError(
            f"The {task.loss} loss separates two classes and `y` holds {len(classes)}: use "
            "'multinomial', or an estimator, which trains one class against the rest."
        )
    return np.where(codes == 1, 1.0, -1.0), classes
