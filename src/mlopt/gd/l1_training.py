"""Linear models with an L1 penalty of many strengths: paths along which each starts warm.

::

    models (penalty, row set)    row set 0: alphas 1 .1 .01   ->  1, from there .1, then .01
                                 row set 1: alphas 1 .1 .01   ->  1, from there .1, then .01

A path costs little more than its hardest model. Least squares of many dense rows are made
into few first (`mlopt.gd.plans.condensed`).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import Threads, between_passes
from mlopt.costs import Cost
from mlopt.gd.at_once import SolvedAtOnce
from mlopt.gd.columns import Model
from mlopt.gd.estimator_base import resources_of
from mlopt.gd.plans.by_columns import Columns
from mlopt.gd.plans.condensed import VISITS, condensed, worth_condensing
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.primal_coordinate import epochs_cost
from mlopt.gd.plans.stop import Minimum, RelativeGap
from mlopt.gd.pricing import Shape, shape_of
from mlopt.gd.ridge_path import sets_of
from mlopt.gd.row_products import beyond, gram_cost
from mlopt.gd.softmax_working_set import SoftmaxWorkingSet
from mlopt.gd.working_set import WorkingSet
from mlopt.locking import cached_property
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.rows import Block, Rows
from mlopt.training import Limits

Array = NDArray[np.float64]

_SQUARED, _CLASS = price("columns.model.squared"), price("columns.model.class")
_FIRST, _PRODUCTS = price("columns.path-first"), price("columns.model.products")


@dataclass(frozen=True, eq=False)
class Path:
    """Models of the same rows and the same target, the strongest penalty first.

    Attributes
    ----------
    numbers : tuple of int
    models : tuple of Model
    stop : Minimum
    steps : int
        Of each model, at most: see `WorkingSet`.
    limits : Limits
        Of the seconds of all.
    found : tuple of Found
        Of the models that are done.
    start : (W, b), optional
        Of the first model, as in `Found`.
    """

    numbers: tuple[int, ...]
    models: tuple[Model, ...]
    stop: Minimum
    steps: int
    limits: Limits
    found: tuple[Found, ...] = ()
    start: tuple[Array, Array] | None = None


@dataclass(frozen=True, eq=False)
class Found:
    """A model's weights (K, d) and intercepts (K,), and how it got there."""

    W: Array
    b: Array
    gap: float
    steps: int
    converged: bool
    late: bool


class L1Training(SolvedAtOnce):
    """Minima in the first pass; for the squared loss, and for classes.

    Parameters
    ----------
    rows, models
        See `LinearTraining`.
    stop : Minimum
        A gap; or the ``tol`` of an estimator: see `WorkingSet.settle`.
    max_iter : int
        Steps of each model, as `WorkingSet.steps` counts them.
    kept : dict, optional
        What trainings of the same rows, targets and weights leave for each other.
    start : (coef, intercept), optional
        Arrays (columns, d) and (columns,), model by model.
    """

    _blank: ClassVar[Mapping[str, bool | float]] = {
        **SolvedAtOnce._blank, "_gaps": np.inf, "_steps": 0,
    }  # fmt: skip
    _gaps: NDArray[np.float64]
    _steps: NDArray[np.int64]

    def __init__(
        self,
        rows: Rows,
        models: Sequence[Model],
        *,
        stop: Minimum,
        max_iter: int,
        kept: dict[str, Any] | None = None,
        start: tuple[Any, Any] | None = None,
    ) -> None:
        super().__init__(rows, models, max_iter)
        self._kept = {} if kept is None else kept
        self.stop, self._start = stop, start

    @property
    def gap(self) -> float:
        """The largest duality gap of a model, relative to its objective."""
        least = float(np.finfo(np.float64).tiny)
        return float((self._gaps / np.maximum(self.objective(), least)).max())

    def ask(self, tolerance: float) -> None:
        """Go on to another gap."""
        self.stop = RelativeGap(tolerance)
        self._solved[:] = self._converged[:] = False

    def learnt(self, number: int) -> dict[str, Any]:
        """Attributes of a fitted estimator that only its solver knows."""
        steps, gap = int(self._steps[number]), float(self._gaps[number])
        return {"n_iter_": steps, "dual_gap_": gap}

    def objective(self) -> NDArray[np.float64]:
        """The objective of each model at its present weights, (M,)."""
        norms = np.abs(self._weights[:-1]).sum(axis=0, dtype=np.float64)
        own = [norms[self._layout.columns(i)].sum() for i in range(len(self.models))]
        l1 = [model.l1 for model in self.models]
        return super().objective() + np.multiply(l1, own)

    def _solve_all(self) -> None:
        paths = self._paths()
        with between_passes():
            if isinstance(self.rows.executor, Threads):
                whole = (path for path in paths if not self._condenses(path))
                alike = Counter(map(_rows_kind, whole))
                shared = {kind: _Shared(paths) for kind, paths in alike.items()}
                chains = [self._chain(path, shared) for path in paths]
                for _, number, found in self._ends(paths, chains, even=self._may_share()):
                    self._arrive(number, found)
                return
            short = [path for path in paths if self._condenses(path)]
            done: list[Path] = []
            if long := [path for path in paths if path not in short]:
                done += self._whole.fold(_on_block, long)
            if short:
                ready = [(path, self._few(path)) for path in short]
                done += self.rows.executor.map(_on_columns, ready)
        for path in done:
            for number, found in zip(path.numbers, path.found, strict=True):
                self._arrive(number, found)

    def _chain(self, path: Path, shared: Mapping[Hashable, _Shared]) -> Iterator[Found]:
        """The models of a path of rows in this process, as they are asked for."""
        if self._condenses(path):
            return _along(path, self._few(path))
        return _on_shared(path, shared[_rows_kind(path)], self._whole)

    def _may_share(self) -> bool:
        """Whether paths are limited, and there is room for a copy of the rows for each."""
        if self.limits.seconds is None:
            return False
        held, here = self._sums.weights.size * self.rows.nbytes, self.rows.executor
        return beyond(held, resources_of(here), "rows of all sets") is None

    @cached_property
    def _whole(self) -> Rows:
        """The rows as one block; too many of them are refused."""
        return self.rows.in_one_block(must=True)

    def _condenses(self, path: Path) -> bool:
        sets, penalties = len(self._sums.weights), len(path.models)
        asked = shape_of(self.rows, 1), sets, penalties, _finest(self.stop)
        return may_condense(path.models[0].loss, *asked)

    def _few(self, path: Path) -> Columns:
        first = path.models[0]
        asked = first.target, first.fit_intercept
        kept = self._kept.setdefault("moments", {})
        if asked not in kept:
            kept[asked] = sets_of(self.rows, *asked)
        weight = float(self._sums.weights[first.rowset])
        return condensed(kept[asked].moments[first.rowset], weight)

    def _paths(self) -> list[Path]:
        return [self._path(numbers) for numbers in self._alike(_kind, _strength)]

    def _path(self, numbers: Sequence[int]) -> Path:
        models = tuple(self.models[number] for number in numbers)
        path = Path(tuple(numbers), models, self.stop, self.max_passes, self.limits)
        if self._start is None:
            return path
        first = sum(model.outputs for model in self.models[: numbers[0]])
        own = slice(first, first + models[0].outputs)
        return replace(path, start=(self._start[0][own], self._start[1][own]))

    def _arrive(self, number: int, found: Found) -> None:
        self._put(self._layout.columns(number), found.W, found.b)
        self._gaps[number], self._steps[number] = found.gap, found.steps
        self._converged[number] = found.converged
        self._left |= {number} if found.late else set()


def _kind(model: Model) -> Hashable:
    """What models of one path share."""
    data = model.loss, model.outputs, model.rowset, model.target
    return *data, _constant(model), _free(model)


def _strength(model: Model) -> float:
    return model.l1 + model.l2


def _rows_kind(path: Path) -> Hashable:
    """What paths of the same columns share, but for their targets."""
    first = path.models[0]
    return first.rowset, _constant(first), _free(first)


class _Shared:
    """The columns of several paths: the first one makes them, the last lets go of them."""

    def __init__(self, paths: int) -> None:
        self._paths = self._left = paths
        self._making = threading.Lock()
        self._known: Columns | None = None

    def of(self, rows: Rows, path: Path) -> Columns:
        """Those of a path that begins."""
        with self._making:
            known: Columns = self._known or rows.first(_of_set, path, self._paths)
            # Nobody works on it: what paths find out by the way is theirs alone.
            columns: Columns = rows.first(_of_set, path, self._paths, known)
            self._left -= 1
            self._known = known if self._left else None
        return columns


def _on_shared(path: Path, shared: _Shared, rows: Rows) -> Iterator[Found]:
    yield from _along(path, shared.of(rows, path))


def _on_block(block: Block, path: Path) -> Path:
    return replace(path, found=tuple(_along(path, _of_set(block, path))))


def _on_columns(given: tuple[Path, Columns]) -> Path:
    return replace(given[0], found=tuple(_along(*given)))


def _of_set(
    block: Block, path: Path, paths: int = 1, known: Columns | None = None
) -> Columns:
    """The rows of a path's row set, ``known`` but for the target if so many paths share
    them.
    """
    first, X = path.models[0], block.by_columns
    y = block.extra["targets"][:, first.target].astype(np.float64)
    c = block.extra["weights"][:, first.rowset].astype(np.float64)
    used = None if c.all() else np.flatnonzero(c)
    numeric, free = first.loss == "squared", _free(first)
    if known is not None:
        return known.facing(y if used is None else y[used], numeric and free)
    if used is not None:
        X, y, c = block.X[used], y[used], c[used]
    columns = Columns.of(X, y, c, free, _constant(first), numeric=numeric)
    if numeric and _pay(_shape_of(columns), paths * len(path.models)):
        columns.products.of(np.arange(len(columns.X)))
    return columns


def _along(path: Path, columns: Columns) -> Iterator[Found]:
    """The models of a path, each from where the last one ended."""
    first, start = path.models[0], path.start
    intercept, constant = _free(first) and not columns.centred, _constant(first)
    if start is not None and constant:
        start = np.column_stack((start[0], start[1] / constant)), np.zeros(1)
    one = _working_set(columns, first, intercept, start)

    def late() -> bool:
        return path.limits.seconds_left <= 0

    for model in path.models:
        before = one.steps
        penalty = model.penalty
        done = one.settle(penalty, path.stop, path.steps, late)
        W, b = one.w.reshape(model.outputs, -1).copy(), np.atleast_1d(one.intercept)
        if constant:
            W, b = W[:, :-1], constant * W[:, -1]
        yield Found(W, b, one.gap, one.steps - before, done, not done and late())


def _pay(rows: Shape, penalties: int) -> bool:
    """Whether products of all columns take less than they save so many models in Python."""
    if rows.sparse or rows.d > rows.n:
        return False
    thread, saved = Resources(threads=1), penalties * (_SQUARED - _PRODUCTS)
    return gram_cost(rows, thread).seconds(thread) <= saved


def _shape_of(columns: Columns) -> Shape:
    d, n = columns.X.shape
    dense = isinstance(columns.X, np.ndarray)
    stored = n * d if dense else columns.X.nnz
    return Shape(n, d, 1, stored, columns.X.dtype.itemsize, not dense, blocks=1)


def _working_set(
    columns: Columns, model: Model, intercept: bool, start: tuple[Array, Array] | None
) -> WorkingSet:
    if model.loss == "multinomial":
        return SoftmaxWorkingSet(columns, model.outputs, intercept=intercept, start=start)
    alone = None if start is None else (start[0][0], float(start[1][0]))
    return WorkingSet(columns, model.loss, intercept=intercept, start=alone)


def _constant(model: Model) -> float:
    """The value of a column whose weight is the intercept, with an L1 penalty; or 0."""
    return model.l1 / model.intercept_l1 if model.intercept_l1 else 0.0


def _free(model: Model) -> bool:
    """Whether there is an intercept without a penalty."""
    return model.fit_intercept and not model.intercept_l1


def may_condense(loss: str, rows: Shape, sets: int, penalties: int, tol: float) -> bool:
    """Whether dense rows are made into few."""
    if loss != "squared" or rows.sparse or penalties == 1:
        return False
    return worth_condensing(rows.n, rows.d, sets, penalties, tol)


def _finest(stop: Minimum) -> float:
    return stop.tolerance if isinstance(stop, RelativeGap) else stop.tol


def _own(loss: str) -> float:
    """Seconds in Python of a model, for a column of its weights."""
    return _SQUARED if loss == "squared" else _CLASS


def begun_cost(loss: str) -> Cost:
    """In Python, of the first model of a path, for a column of its weights."""
    return Cost(python=(_FIRST + 1) * _own(loss))


def paths_cost(
    loss: str, rows: Shape, part: Shape, sets: int, models: int, tol: float
) -> Cost:
    """Of a path of so many models on each of so many row sets, a thread each.

    Parameters
    ----------
    loss : str
    rows, part : Shape
        Of all rows, and of a set; with the columns of one model.
    sets, models : int
    tol : float
        At which a model ends.
    """
    thread, first, paths = Resources(threads=1), Cost(), rows.columns * sets
    own = _own(loss)
    few = replace(part, columns=1, blocks=1)
    if may_condense(loss, rows, sets, models, tol):
        first, own = gram_cost(replace(rows, columns=1), thread), _PRODUCTS
        part = replace(part, n=rows.d + 1, nonzero=(rows.d + 1) * rows.d)
    elif loss == "squared" and _pay(few, rows.columns * models):
        first, own = sets * gram_cost(few, thread), _PRODUCTS
    each = epochs_cost(Outline(loss, part), thread, VISITS)
    return first + paths * (models * each + Cost(python=(_FIRST + models) * own))
