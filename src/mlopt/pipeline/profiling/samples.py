"""Trials on samples of several sizes: what the profile of a pipeline is taken from.

KeystoneML profiles on 512 and 1024 rows (V-D). Where rows are many and quick, a third
sample tells what is short from noise; where they are slow, smaller ones must do: planning
is to take a small part of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import suppress
from numbers import Number
from typing import Any, TypeVar

import numpy as np

from mlopt.cluster import Executor
from mlopt.errors import InputError
from mlopt.hearing import unheard
from mlopt.pipeline.blocks import tables
from mlopt.pipeline.blocks.cut import Blocks
from mlopt.pipeline.graph.operators import Join, Operator
from mlopt.pipeline.graph.walking import walk
from mlopt.pipeline.profiling.sampling import Sample, take_sample
from mlopt.pipeline.profiling.trial import Trial
from mlopt.pipeline.tasks.functions import TooLarge, Unforeseen, names_step
from mlopt.prices import price

Found = TypeVar("Found")

SIZES = (512, 1024)
"""Rows of the two samples."""
SHARE, LARGEST = 40, 8192
"""A third takes this share of all rows, and so many at most."""
FEW, PART = 1000, 4
"""Up to so many rows all of them are the sample; of few more, this part at most."""
AFFORD = price("profile.second"), price("profile.third")
WARM = 16
"""Rows on which every step is called once before it is timed: first calls load code."""


class Samples:
    """Drawn when they are first needed.

    Parameters
    ----------
    sources : mapping of token to Blocks
    executor : Executor

    Attributes
    ----------
    total : int
        Rows in all.
    """

    def __init__(self, sources: Mapping[str, Blocks], executor: Executor) -> None:
        self._sources, self._executor = sources, executor
        first = next(iter(sources.values()))
        assert first.lengths is not None  # by `bind`
        self.total = sum(first.lengths)
        self.blocks = first.count
        self._least = 0
        self._drawn: Sample | None = None
        self._warm: Trial | None = None
        self._first: Trial | None = None
        self._trials: tuple[Trial, ...] = ()
        self._asked: list[Operator] = []
        self._tried: list[Trial] = []

    @property
    def all(self) -> tuple[Trial, ...]:
        """By size. The largest sample is drawn; the others are some of its rows.

        How many there are is settled when they are first asked for, by what the steps that
        were tried until then took.
        """
        if not self._trials:
            self._trials = tuple(self._affordable(*self._begin()))
        return self._trials

    @property
    def large(self) -> Trial:
        """On the largest sample."""
        return self.all[-1]

    def example(self, op: Operator) -> Any:
        """Some rows of an operator's value."""
        first, _ = self._begin()
        self._asked.append(op)
        if self._warm is not None:
            with suppress(Exception), unheard():
                self._warm.value(op)
        return first.value(op)

    def keep(self, tokens: Set[str]) -> None:
        """Let go of what operators gave whose tokens are not among these."""
        self._asked = [op for op in self._asked if op.token in tokens]
        for trial in (self._warm, self._first, *self._trials):
            if trial is not None:
                trial.keep(tokens)

    def enough_for(self, work: Callable[[], Found]) -> Found:
        """``work()``, on larger samples if it fails on small ones.

        A step may ask for more rows than a sample has: so many components, so many
        clusters. What fails on the largest may know how many rows there are, or share an
        object with another step: scikit-learn's own loop then tells.

        Raises
        ------
        Unforeseen
            When only all rows can tell whether ``work`` fails; from what it raised.
        """
        while True:
            try:
                return work()
            except Exception as error:
                told = isinstance(error, Unforeseen | TooLarge)
                if self._drawn is None or told:
                    raise
                if self._has_no_columns():
                    raise Unforeseen(
                        f"{error} That is so of rows without columns."
                    ) from error
                judged, doubtful = self._judged_unions(), self._may_be_its_fault(error)
                if (names_step(error) or self._one_class()) and self._enlarge():
                    continue
                if self._one_class():
                    raise Unforeseen(
                        f"{error} That is so on a sample, whose targets are all alike."
                    ) from error
                if judged:
                    raise Unforeseen(
                        f"{error} That is so on a sample, whose unions may be sparse where "
                        "those of all rows are dense, or the other way."
                    ) from error
                if doubtful:
                    raise Unforeseen(f"{error} That is so on a sample.") from error
                raise

    def _has_no_columns(self) -> bool:
        """Whether rows in memory are single values and no documents: what steps for tables
        say of them is for scikit-learn to tell."""
        assert self._drawn is not None
        token, rows = next(iter(self._drawn.rows.items()))
        if self._sources[token].lazy or not tables.count_rows(rows):
            return False
        some = rows.iloc[:1] if hasattr(rows, "iloc") else rows[:1]
        if tables.is_sparse(some) or np.ndim(some) != 1:
            return False
        return isinstance(np.asarray(some)[0], Number)

    def _one_class(self) -> bool:
        """Whether the targets of the sample are all alike, and there are other rows."""
        assert self._drawn is not None
        last = list(self._drawn.rows.values())[1:2]
        partial = self._drawn.size < self._drawn.total
        return partial and any(len(np.unique(np.asarray(y))) == 1 for y in last)

    def _may_be_its_fault(self, error: Exception) -> bool:
        """Whether a step failed, and we are not who refused it."""
        failed = any(trial.failed is error for trial in self._tried)
        return failed and not isinstance(error, InputError)

    @property
    def _lazy(self) -> bool:
        return any(source.lazy for source in self._sources.values())

    def _judged_unions(self) -> bool:
        """Whether the density of some rows in memory decides what steps are given."""
        assert self._drawn is not None
        whole = self._drawn.size >= self._drawn.total
        if self._lazy or whole or self._first is None:
            return False
        values = self._first.values
        return any(
            isinstance(op, Join)
            and op.sparse_below <= 1.0
            and any(tables.is_sparse(values.get(part.token)) for part in op.parts)
            for op in walk(self._asked)
        )

    def _enlarge(self) -> bool:
        before = max(trial.rows for trial in (self._begin()[0], *self._trials))
        others = self._least == 0 and self._lazy
        self._least = min(4 * before, LARGEST)
        self._drawn, self._first, self._trials = None, None, ()
        self._asked, self._tried = [], []
        return others or self.large.rows > before

    def _begin(self) -> tuple[Trial, Sample]:
        """The trial that comes first, and the sample that it is a part of."""
        if self._drawn is None or self._first is None:
            # Where a step failed on rows of some blocks, those of all are looked at.
            drawn = take_sample(
                self._sources, self._executor, self._largest(), everywhere=self._least > 0
            )
            self._drawn = drawn
            more = drawn.size > WARM
            self._warm = self._trial(drawn.part(WARM), repeats=1) if more else None
            first = drawn.part(self._sizes(drawn.size)[0])
            self._first = self._trial(first, earlier=self._warm)
        return self._first, self._drawn

    def _trial(self, sample: Sample, **settings: Any) -> Trial:
        self._tried.append(Trial(sample, **settings))
        return self._tried[-1]

    def _largest(self) -> int:
        if self.total <= FEW:
            return self.total
        few = min(SIZES[-1], self.total // PART)
        many = min(self.total // SHARE, LARGEST)
        return max(few, many if many >= 2 * few else 0, self._least)

    def _sizes(self, drawn: int) -> tuple[int, ...]:
        if self.total <= FEW or self._least:  # small samples have failed
            return (drawn,)
        return (*SIZES, drawn) if drawn > SIZES[-1] else (drawn // 2, drawn)

    def _affordable(self, first: Trial, drawn: Sample) -> Iterator[Trial]:
        sizes = self._sizes(drawn.size)
        if len(sizes) > 1 and first.spent * sizes[1] > AFFORD[0] * sizes[0]:
            yield self._trial(drawn.part(first.rows // 2), earlier=first)
            yield first
            return
        yield first
        before = first
        for size in sizes[1:]:
            trial = self._trial(drawn.part(size), earlier=first)
            yield trial
            for op in self._asked:
                trial.value(op)
            # What grows with the rows grows on.
            growth = max(0.0, trial.spent - before.spent) / (trial.rows - before.rows)
            if trial.spent + growth * (drawn.size - trial.rows) > AFFORD[1]:
                return
            before = trial
