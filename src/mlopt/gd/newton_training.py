"""Many linear models one after the other along their penalties: by Newton's method."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.at_once import SolvedAtOnce
from mlopt.gd.columns import Model
from mlopt.gd.estimator_base import resources_of
from mlopt.gd.passes import beside
from mlopt.gd.plans.newton_cholesky import Newton
from mlopt.gd.row_products import side_by_side
from mlopt.limits import between_passes
from mlopt.rows import Rows
from mlopt.training import run

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Path:
    """Models that differ in nothing but the penalty, the strongest first.

    Parameters
    ----------
    numbers : tuple of int
        Of the models in the training.
    column : int
        Of weights within each model: one of LIBLINEAR's problems, or the first of all.
    models : tuple of Model
    rows : Rows
        With one column of targets and of weights.
    """

    numbers: tuple[int, ...]
    column: int
    models: tuple[Model, ...]
    rows: Rows


class End(NamedTuple):
    """What became of a model: its planes, passes for them, and whether time was up."""

    coef: Array
    intercept: Array
    passes: int
    converged: bool
    late: bool


def planes_of(model: Model, targets: Array) -> list[tuple[Model, Array]]:
    """Problems of one Hessian each, with their targets (n, 1)."""
    one = replace(model, rowset=0, target=0)
    if model.outputs == 1 or model.loss == "multinomial":
        return [(one, targets)]
    alone = replace(one, outputs=1)
    codes = range(model.outputs)
    return [(alone, np.where(targets == code, 1.0, -1.0)) for code in codes]


class AlongPenalties(SolvedAtOnce):
    """Minima in the first pass, each path of penalties by itself.

    Parameters
    ----------
    rows, models
        See `LinearTraining`. The rows lie in the memory of this process.
    gtol : float
        Converged when no component of an objective's gradient is larger.
    max_iter : int
        Passes of each model.
    """

    _blank: ClassVar[Mapping[str, bool | float]] = {**SolvedAtOnce._blank, "_steps": 0}
    _steps: NDArray[np.int64]

    def __init__(
        self, rows: Rows, models: Sequence[Model], *, gtol: float, max_iter: int
    ) -> None:
        super().__init__(rows, models, max_iter)
        self._gtol = gtol

    def _solve_all(self) -> None:
        paths = self._paths()
        self._converged[~self._solved] = True
        with between_passes():
            found = self._ends(paths, [self._along(path) for path in paths])
        for path, number, end in found:
            first = self._layout.columns(number).start + path.column
            self._put(slice(first, first + len(end.coef)), end.coef, end.intercept)
            self._converged[number] &= end.converged
            self._steps[number] = max(self._steps[number], end.passes)
            self._left |= {number} if end.late else set()

    def learnt(self, number: int) -> dict[str, Any]:
        """Attributes of a fitted estimator that only its solver knows."""
        return {"n_iter_": int(self._steps[number])}

    @abstractmethod
    def _along(self, path: Path) -> Iterator[End]:
        """What becomes of each model of a path."""

    def _paths(self) -> list[Path]:
        extra = beside(self.rows)
        return [
            path
            for numbers in self._alike(_kind, lambda model: model.l2)
            for path in self._of(numbers, extra)
        ]

    def _of(self, numbers: Sequence[int], extra: Mapping[str, Array]) -> list[Path]:
        first, dtype = self.models[numbers[0]], self.rows.dtype
        weights = extra["weights"][:, [first.rowset]]
        targets = extra["targets"][:, [first.target]]
        planes = [planes_of(self.models[i], targets) for i in numbers]
        return [
            Path(
                tuple(numbers), k, tuple(model for model, _ in alike),
                self.rows.attach(targets=alike[0][1].astype(dtype), weights=weights),
            )
            for k, alike in enumerate(zip(*planes, strict=True))
        ]  # fmt: skip


class NewtonTraining(AlongPenalties):
    """Those of "logistic", "multinomial" and "squared_hinge", with exact Hessians."""

    def _crew(self, paths: Sequence[Any]) -> int:
        """As many as there is room for Hessians of."""
        columns = max(path.models[0].outputs for path in paths)
        here = resources_of(self.rows.executor)
        room = side_by_side(columns * (self.rows.d + 1), here)
        return min(super()._crew(paths), room)

    def _along(self, path: Path) -> Iterator[End]:
        start = None
        for model in path.models:
            one = Newton(
                path.rows, model, gtol=self._gtol, max_passes=self.max_passes, start=start
            )
            late = run(one, self.limits) == "seconds"
            start = one.coefficients()
            end = End(*start, one.passes, bool(one.converged[0]), late)
            del one  # its Hessian, while others are at work
            yield end


def _kind(model: Model) -> Hashable:
    """What models of one path share."""
    scaling = model.intercept_l2 / model.l2
    data = model.loss, model.outputs, model.rowset, model.target
    return *data, model.fit_intercept, scaling
