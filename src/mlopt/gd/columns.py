"""Linear models as columns of one weight matrix: which columns are whose.

Models that share loss, target, row set and number of outputs lie side by side, in
segments, so that a pass treats each segment in one sweep.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError
from mlopt.gd.penalty import Penalty
from mlopt.kernels.losses import LOSSES
from mlopt.locking import cached_property
from mlopt.prices import count

Indices = NDArray[np.int64]
REGRESSION = ("squared", "huber")
SHARP = ("squared", "logistic", "squared_hinge", "multinomial")
"""Losses that there are with an L1 penalty, or with weights that stay positive."""
_FEW = count("batch.few")


@dataclass(frozen=True)
class Model:
    """One linear model to train.

    It minimises ``sum_i c_i loss_i / sum_i c_i + l1 ||w||_1 + l2/2 ||w||^2 +
    intercept_l1 |b| + intercept_l2/2 b^2``, perhaps for ``w >= 0`` only.

    Parameters
    ----------
    loss : str
        "squared", "logistic", "hinge", "squared_hinge", "huber" or "multinomial".
    l2 : float
        Penalty on the weights, against the *mean* loss: ``1 / (C sum_i c_i)`` for
        scikit-learn's ``C``.
    rowset : int
        Which column of ``weights`` (and of ``score_weights``) holds its row weights ``c``.
    outputs : int
        1, or the number of classes: softmax for "multinomial", otherwise one against rest.
    target : int
        Which column of ``targets`` it learns.
    delta : float
        Where the Huber loss turns linear.
    fit_intercept : bool
    intercept_l2 : float
        Penalty on the intercept; 0 except for models that treat it as a weight.
    l1, intercept_l1 : float
        As `l2` and `intercept_l2`.
    positive : bool
    """

    loss: str
    l2: float
    rowset: int = 0
    outputs: int = 1
    target: int = 0
    delta: float = 1.0
    fit_intercept: bool = True
    intercept_l2: float = 0.0
    l1: float = 0.0
    intercept_l1: float = 0.0
    positive: bool = False

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise InputError(f"`loss` must be one of {sorted(LOSSES)}, got {self.loss!r}.")
        least = 2 if self.loss == "multinomial" else 1
        if self.outputs < least or (self.outputs > 1 and self.loss in REGRESSION):
            raise InputError(
                f"`outputs` must be at least {least} for {self.loss!r}, and 1 for "
                f"regression, got {self.outputs}."
            )
        penalties = self.l2, self.intercept_l2, self.l1, self.intercept_l1
        if not (min(penalties) >= 0 and self.delta > 0):
            raise InputError(
                "`l2`, `intercept_l2`, `l1` and `intercept_l1` must be at least 0 and "
                f"`delta` positive, got {penalties} and {self.delta}."
            )

    @property
    def sharp(self) -> bool:
        """Whether its penalty has kinks or edges, which few methods can minimise."""
        return self.l1 > 0 or self.positive

    @property
    def penalty(self) -> Penalty:
        """On the weights; what there is on the intercept is apart."""
        return Penalty(self.l1, self.l2, self.positive)

    @property
    def classifies(self) -> bool:
        """Whether its score counts right predictions; otherwise squared errors."""
        return self.loss not in REGRESSION


@dataclass(frozen=True)
class Layout:
    """Where each model's columns are.

    Attributes
    ----------
    models : tuple of Model
        In the order in which they were given; numbers of models count in this order.
    order : tuple of int
        Model numbers in the order of their columns.
    """

    models: tuple[Model, ...]
    order: tuple[int, ...]

    @property
    def width(self) -> int:
        """B, the number of columns."""
        return len(self.owner)

    @cached_property
    def owner(self) -> Indices:
        """The model of each column, (B,)."""
        outputs = [self.models[i].outputs for i in self.order]
        return np.repeat(np.array(self.order, np.int64), outputs)

    @cached_property
    def first(self) -> Indices:
        """The first column of each model, (M,)."""
        outputs = np.array([self.models[i].outputs for i in self.order], np.int64)
        first = np.empty(len(self.models), np.int64)
        first[list(self.order)] = np.cumsum(outputs) - outputs
        return first

    @cached_property
    def segments(self) -> Indices:
        """Rows of (start, stop, loss, target, weight, K), as the kernels take them."""
        rows = [
            (a, b, LOSSES[m.loss], m.target, m.rowset, m.outputs) for m, a, b in self._runs
        ]
        return np.array(rows, np.int64).reshape(-1, 6)

    @cached_property
    def deltas(self) -> NDArray[np.float64]:
        """Huber's delta of each segment."""
        return np.array([model.delta for model, _, _ in self._runs])

    @cached_property
    def _runs(self) -> list[tuple[Model, int, int]]:
        runs: list[tuple[Model, int, int]] = []
        stop = 0
        for number in self.order:
            model = self.models[number]
            start, stop = stop, stop + model.outputs
            if runs and _kind(runs[-1][0]) == _kind(model):
                runs[-1] = (runs[-1][0], runs[-1][1], stop)
            else:
                runs.append((model, start, stop))
        return runs

    @cached_property
    def units(self) -> Indices:
        """First columns of the groups that one step size moves, (U,).

        The columns of a softmax move together; every other column is on its own.
        """
        joint = np.array([m.loss == "multinomial" for m in self.models])
        inner = np.arange(self.width) != self.first[self.owner]
        return np.flatnonzero(~(joint[self.owner] & inner))

    @cached_property
    def widths(self) -> Indices:
        """How many columns each unit has, (U,)."""
        return np.diff(self.units, append=self.width)

    @cached_property
    def unit_owner(self) -> Indices:
        """The model of each unit, (U,)."""
        owners: Indices = self.owner[self.units]
        return owners

    def per_column(self, values: Sequence[float]) -> NDArray[np.float64]:
        """One value a model, repeated over the model's columns, (B,)."""
        return np.asarray(values, np.float64)[self.owner]

    @cached_property
    def l2(self) -> NDArray[np.float64]:
        """Penalty of each column's weights, (B,)."""
        return self.per_column([m.l2 for m in self.models])

    @cached_property
    def intercept_l2(self) -> NDArray[np.float64]:
        """Penalty of each column's intercept, (B,)."""
        return self.per_column([m.intercept_l2 for m in self.models])

    @cached_property
    def with_intercept(self) -> NDArray[np.bool_]:
        """Which columns have an intercept, (B,)."""
        return np.array([m.fit_intercept for m in self.models], bool)[self.owner]

    @cached_property
    def rowsets(self) -> Indices:
        """The row set of each column, (B,)."""
        return np.array([m.rowset for m in self.models], np.int64)[self.owner]

    def columns(self, number: int) -> slice:
        """The columns of one model."""
        start = int(self.first[number])
        return slice(start, start + self.models[number].outputs)

    def unit_sum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums of per-column values over each unit: (B,) -> (U,)."""
        if len(self.units) == self.width:
            return values
        return np.asarray(np.add.reduceat(values, self.units), np.float64)

    def spread(self, values: NDArray) -> NDArray:
        """Per-unit values over the units' columns: (U,) -> (B,)."""
        if len(self.units) == self.width:
            return values
        return np.repeat(values, self.widths)

    def per_model(self, by_column_order: NDArray) -> NDArray:
        """Values in the order of columns (one a model), in the models' own order."""
        out = np.empty_like(by_column_order)
        out[list(self.order)] = by_column_order
        return out

    def model_sum(self, values: NDArray[np.floating]) -> NDArray[np.float64]:
        """Sums of per-unit values over each model: (U,) -> (M,)."""
        sums = np.bincount(self.unit_owner, values, minlength=len(self.models))
        return np.asarray(sums, np.float64)

    def any_unit(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether any unit of each model is flagged: (U,) -> (M,)."""
        return np.bincount(self.unit_owner, flags, minlength=len(self.models)) > 0

    def lanes(self, numbers: Sequence[int], width: int) -> list[list[int]]:
        """Some models cut into parts of about ``width`` columns, for threads to share.

        In the order of their columns, so that a part has few segments. A few columns make
        two parts, but very few stay together: every part reads all rows. Depends on the
        models alone, never on threads.
        """
        chosen = set(numbers)
        order = [i for i in self.order if i in chosen]
        columns = sum(self.models[i].outputs for i in order)
        count = min(len(order), max(1, min(columns // _FEW, 2), -(-columns // width)))
        return [part.tolist() for part in np.array_split(order, count)]

    def select(self, numbers: Sequence[int]) -> tuple[Layout, Indices]:
        """The layout of some models, and which columns of this one they take over."""
        chosen = layout([self.models[i] for i in numbers])
        taken = [self.columns(numbers[i]) for i in chosen.order]
        parts = [np.arange(s.start, s.stop) for s in taken]
        return chosen, np.concatenate(parts) if parts else np.empty(0, np.int64)


def _kind(model: Model) -> tuple[int, int, int, int, float]:
    delta = model.delta if model.loss == "huber" else 0.0
    return (LOSSES[model.loss], model.target, model.rowset, model.outputs, delta)


def layout(models: Sequence[Model]) -> Layout:
    """Sort models into segments; equal kinds keep the order in which they were given."""
    order = sorted(range(len(models)), key=lambda i: (_kind(models[i]), i))
    return Layout(tuple(models), tuple(order))


def without_penalty(models: Sequence[Model]) -> Iterator[Model]:
    """The models as far as the mean loss at zero weights knows them."""
    for m in models:
        yield Model(m.loss, 0.0, m.rowset, m.outputs, m.target, m.delta)
