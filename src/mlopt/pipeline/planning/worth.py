"""Whether a plan of a fit can save what it takes to find.

To plan is to call every step on a few hundred rows, several times. What that takes is known
beforehand, and so is, for steps that go through their values once and for models that have
a price, about what a fit takes that nobody planned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import OneToOneFeatureMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import get_tags

from mlopt.costs import Cost
from mlopt.identity import class_of
from mlopt.pipeline.blocks import tables
from mlopt.pipeline.fits.base import OnePass
from mlopt.pipeline.fits.numbers import table as numbers
from mlopt.pipeline.fits.numbers.drawing import Drawn
from mlopt.pipeline.fits.registry import own_cost, record_of, ways_of
from mlopt.pipeline.fits.text import table as text
from mlopt.pipeline.planning.build import counted_columns
from mlopt.pipeline.profiling.samples import SIZES
from mlopt.pipeline.steps.nested import (
    classifies,
    does_nothing,
    is_pipeline,
    is_simple,
    is_union,
    parts_of,
)
from mlopt.plan import format_seconds
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.stats import Stats, stored_share

LIGHT = numbers.LIGHT | text.LIGHT
"""Steps that go through their values once, and give no more than they are given."""
DRAWN = frozenset(Drawn.kinds)
"""Steps that multiply rows with what they drew."""
_CALLS = 3
"""Of each step on each sample: what is short is timed again."""
_FEW, _CLASSES = 4, 4096
"""Rows that tell the columns, and rows of which classes are counted."""


_SPARSE = ("sparse_output", "encode")
"""Parameters of classes that may give sparse rows, whatever they are given."""


class _Unknown(Exception):
    """A step of which nobody knows beforehand what it takes, or gives."""


@dataclass(frozen=True)
class Worth:
    """What is known before anything is run.

    Attributes
    ----------
    planning, saved : float
        Seconds of planning, and those of the fit that a plan may save, about.
    plainly : float or None
        Of the fit as scikit-learn runs it, where that is known.
    bytes : int
        Of what the steps make, held all at once.
    """

    planning: float
    plainly: float | None
    saved: float
    bytes: int = 0

    @property
    def planned(self) -> bool:
        """Whether a plan may save more than it takes."""
        return self.planning < self.saved

    @property
    def why(self) -> str:
        """These seconds, in words."""
        planning, saved = map(format_seconds, (self.planning, self.saved))
        fit = "" if self.plainly is None else f", the fit {format_seconds(self.plainly)}"
        return f"planning takes about {planning} and saves {saved} at most{fit}"


def worth(
    steps: Sequence[tuple[str, Any]],
    X: Any,
    y: Any,
    params: Mapping[str, Any],
    resources: Resources,
) -> Worth | None:
    """What planning a fit in memory takes beside the fit; None where that is not known.

    It is for tables whose steps go through their values once (scalers, encoders, imputers),
    or have a price, or one way alone; the last one may have ways of one pass.
    """
    table = issparse(X) or isinstance(X, np.ndarray) or hasattr(X, "iloc")
    if not table or len(X.shape) != 2 or 0 in X.shape or any(params.values()):
        return None
    try:
        few, outputs = tables.row_range(X, 0, _FEW), _outputs(steps, y)
        sum_of = _Sum(few, outputs, resources, _last(steps))
        sum_of.chain(steps, _stats(X))
        trial = _CALLS * sum(SIZES) * (sum_of.numbers + sum_of.cells) / X.shape[0]
        work = price("plan.begin") + sum_of.steps * price("plan.step") + trial
        planning = Cost(python=work).seconds(resources)
        saved = sum_of.saved(planning)
    except Exception:  # of what is wrong with a step it tells itself, where it is fitted
        return None
    size = (1 + sum_of.steps) * _stats(X).bytes
    plainly = None if sum_of.only else sum_of.light + sum_of.models
    return Worth(planning, plainly, saved, size)


def _last(steps: Sequence[tuple[str, Any]]) -> Any:
    """The step whose output nobody in the pipeline reads."""
    last = steps[-1][1]
    return _last(last.steps) if is_pipeline(last) and is_simple(last) else last


def worth_applying(steps: Sequence[tuple[str, Any]], X: Any) -> bool:
    """Whether a plan may save what it takes of what fitted steps do to rows in memory.

    True where that is not known. Speeds are left out: all of it is Python's.
    """
    if not is_light(steps, X):
        return True
    values = X.nnz if issparse(X) else X.shape[0] * X.shape[1]
    frame = hasattr(X, "iloc")
    each = price("apply.cell") if frame else price("apply.number")
    planning = price("plan.apply") + (price("apply.column") * X.shape[1] if frame else 0.0)
    return bool(planning < price("plan.saves") * each * values)


def is_light(steps: Sequence[tuple[str, Any]], X: Any) -> bool:
    """Whether fitted steps go through the values of a table once, to a linear model."""
    leaves = (leaf for _, step in steps for leaf in _leaves(step))
    table = len(getattr(X, "shape", ())) == 2
    return table and all(class_of(one) in LIGHT or hasattr(one, "coef_") for one in leaves)


def _leaves(step: Any) -> Iterator[Any]:
    """The steps of a fitted one that do something to rows."""
    if does_nothing(step) or isinstance(step, str):
        return
    if (parts := parts_of(step, fitted=True)) is None:
        yield step
        return
    for _, one in parts:
        yield from _leaves(one)


@dataclass
class _Sum:
    """Goes through the steps and adds up.

    Attributes
    ----------
    steps : int
        That learn.
    numbers, cells : float
        Seconds in Python of those that go through the numbers of an array once, or through
        the cells of a frame.
    products : float
        Additions and multiplications of those that multiply rows with what they drew.
    models : float
        Seconds of those that have a price.
    plain : list of (float, estimator, Stats, ways)
        Seconds of scikit-learn's own fits among these, of what they are, and how else those
        may be fitted.
    sparse : bool
        Whether a step may have given sparse rows.
    only : bool
        Whether a step has one way alone, which takes nobody knows how long.
    wider : bool
        Whether such a step may have given any number of columns.
    """

    example: Any
    outputs: int
    resources: Resources
    last: Any
    steps: int = 0
    numbers: float = 0.0
    cells: float = 0.0
    products: float = 0.0
    models: float = 0.0
    plain: list[tuple[float, Any, Stats, Sequence[Any]]] = field(default_factory=list)
    sparse: bool = False
    only: bool = False
    wider: bool = False

    @property
    def light(self) -> float:
        """Seconds of all that goes through values once."""
        work = Cost(python=self.numbers + self.cells, flops=self.products)
        return work.seconds(self.resources)

    def saved(self, planning: float) -> float:
        """Seconds that a plan may save: exactly known only where that is worth planning.

        Of scikit-learn's own fit, half of what mlopt's solvers are predicted to take less:
        how many passes either needs is a guess. They are priced where that can matter,
        since prices take time, too.
        """
        half, little = price("plan.saves"), price("plan.saves.cells")
        python = half * self.numbers + little * self.cells
        threads = Cost(python=python, flops=half * self.products)
        own = sum(seconds for seconds, *_ in self.plain)
        found = threads.seconds(self.resources) + half * (self.models - own)
        if found + half * own <= planning:
            return found + half * own
        each = (took - self._by_ways(*rest) for took, *rest in self.plain)
        return found + half * sum(max(0.0, one) for one in each)

    def chain(self, steps: Sequence[tuple[str, Any]], x: Stats) -> Stats:
        for _, step in steps:
            x = self.step(step, x)
        return x

    def step(self, step: Any, x: Stats) -> Stats:
        """What a step gives of rows like ``x``."""
        if does_nothing(step):
            return x
        if is_pipeline(step) and is_simple(step):
            return self.chain(step.steps, x)
        if is_union(step):
            parts = [self.step(part, x) for _, part in step.transformer_list]
            return replace(x, columns=sum(part.columns for part in parts), bytes=-1)
        if class_of(step) is ColumnTransformer:
            return self._by_columns(step, x)
        self.steps += 1
        if class_of(step) in DRAWN and isinstance(kept := step.n_components, int):
            self.products += 2.0 * x.nonzeros * kept
            x = replace(x, columns=kept, density=1.0, sparse=False, bytes=-1)
            self.numbers += price("step.number") * x.nonzeros
            return replace(x, dtype="float64", bytes=-1)
        if class_of(step) in LIGHT:
            if self.wider:
                raise _Unknown
            self.sparse |= any(hasattr(step, name) for name in _SPARSE)
            mixed = x.dtype == "mixed"
            if mixed:
                self.cells += price("step.cell") * x.nonzeros
            else:
                self.numbers += price("step.number") * x.nonzeros
            best = getattr(step, "k", x.columns)  # that are selected
            columns = min(best, x.columns) if isinstance(best, int) else x.columns
            return replace(x, columns=columns, dtype="float64", bytes=-1)
        return self._priced(step, x)

    def _by_columns(self, step: Any, x: Stats) -> Stats:
        if x.columns != tables.count_columns(self.example):
            raise _Unknown  # others than those of the data
        columns = 0
        for (_, part, _), count in counted_columns("", step, self.example):
            columns += self.step(part, replace(x, columns=count, bytes=-1)).columns
        return replace(x, columns=columns, dtype="float64", bytes=-1)

    def _priced(self, step: Any, x: Stats) -> Stats:
        sparse = x.sparse or self.sparse
        if record_of(class_of(step)).by_author or sparse > get_tags(step).input_tags.sparse:
            raise _Unknown  # a way may take sparse rows where scikit-learn takes none
        stats = replace(x, outputs=self.outputs, dtype="float64", bytes=-1)
        ways = [way for way in ways_of(step) if not way.refusal(step, stats)]
        if step is self.last and all(isinstance(way, OnePass) for way in ways):
            self.only |= not ways
            if ways:
                self.numbers += price("step.number") * x.nonzeros
            return x
        kept = getattr(step, "n_components", None)
        columns = kept if isinstance(kept, int) else x.columns
        if not ways:  # a plan cannot have it otherwise
            self.only = True
            self.wider |= not (columns == kept or _narrows(step))
            return replace(stats, columns=columns, bytes=-1)
        if self.wider:
            raise _Unknown  # how many columns a way would save on
        if (own := own_cost(step, replace(stats, sparse=sparse, bytes=-1))) is None:
            self.models += self._by_ways(step, stats, ways)
        else:
            self.plain.append((own.seconds(self.resources), step, stats, ways))
            self.models += self.plain[-1][0]
        return replace(stats, columns=min(columns, x.columns), bytes=-1)

    def _by_ways(self, step: Any, stats: Stats, ways: Sequence[Any]) -> float:
        """Seconds of the quickest way, where nobody knows those of the step's own fit."""
        machine = self.resources
        seconds: list[float] = []
        for way in ways:
            cost = way.cost(step, stats, machine)
            if cost is None:
                raise _Unknown
            seconds.append(cost.seconds(machine, machine.threads))
        if not seconds:
            raise _Unknown
        return min(seconds)


def _narrows(step: Any) -> bool:
    """Whether it gives as many columns as it is given, or fewer; imputers two for one."""
    kinds = OneToOneFeatureMixin, SelectorMixin
    return isinstance(step, kinds) or hasattr(step, "add_indicator")


def _stats(X: Any) -> Stats:
    n, columns = tables.count_rows(X), tables.count_columns(X)
    density = stored_share(X) if issparse(X) else 1.0
    mixed = hasattr(X, "iloc") or X.dtype.kind not in "fiub"
    dtype = "mixed" if mixed else "float64"
    return Stats(n, columns, density=density, dtype=dtype, sparse=issparse(X))


def _outputs(steps: Sequence[tuple[str, Any]], y: Any) -> int:
    """Columns of a linear model: targets, or classes where there are three or more."""
    if y is None or not steps:
        return 1
    some = np.asarray(y)
    some = some[:: -(-len(some) // _CLASSES)]
    if some.ndim > 1:
        return int(some.shape[1])
    if not classifies(steps[-1][1]):
        return 1
    classes = len(np.unique(some))
    return classes if classes > 2 else 1
