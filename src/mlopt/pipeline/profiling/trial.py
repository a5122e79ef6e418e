"""A pipeline run on a sample, operator by operator, each timed.

KeystoneML's execution subsampling: what an operator gives on the sample is what the next
one is tried on, so that all of them are known at their own place (IV-A).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from mlopt.cluster import single_threaded
from mlopt.hearing import unheard
from mlopt.kernels.compiling import worked
from mlopt.pipeline.blocks import tables
from mlopt.pipeline.fits.base import ManyPasses, OnePass, PartialFit
from mlopt.pipeline.fits.few import Few
from mlopt.pipeline.fits.registry import ways_of
from mlopt.pipeline.graph.operators import Given, Learn, Operator, Outcome, Source
from mlopt.pipeline.graph.walking import walk
from mlopt.pipeline.profiling.sampling import Sample
from mlopt.pipeline.steps.copies import private_copy
from mlopt.pipeline.tasks import fitting
from mlopt.pipeline.tasks.functions import block_function
from mlopt.prices import count, price
from mlopt.stats import Stats

_REPEAT, _WARM = price("profile.again"), price("profile.warm")
_CROWDED, _CALL = price("profile.together"), price("profile.call")
_CROWDS, _FREE = count("profile.trials"), price("profile.free")


@dataclass
class Trial:
    """Values and times of operators on one sample, each computed once.

    Attributes
    ----------
    earlier : Trial or None
        On another sample: what counts columns only is not learnt once more.
    values : dict of token to value
    seconds : dict of token to float
        Of the operator alone, on one thread.
    repeats : int
        How often what is short is timed; once where only values are asked for.
    failed : Exception or None
        What an operator raised on these rows.
    """

    sample: Sample
    earlier: Trial | None = None
    repeats: int = 3
    values: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    fitted: dict[str, fitting.Both] = field(default_factory=dict)
    failed: Exception | None = None

    @property
    def rows(self) -> int:
        """Rows of the sample."""
        return self.sample.size

    def value(self, op: Operator) -> Any:
        """What the operator gives on the sample."""
        for node in walk([op], stop=lambda n: n.token in self.values):
            if node.token not in self.values:
                try:
                    self.values[node.token] = self._compute(node)
                except Exception as error:
                    self.failed = error
                    raise
        return self.values[op.token]

    def keep(self, tokens: Set[str]) -> None:
        """Let go of what other operators gave than these; it can be computed again."""
        self.values = {t: value for t, value in self.values.items() if t in tokens}
        self.fitted = {t: both for t, both in self.fitted.items() if t in tokens}

    @property
    def spent(self) -> float:
        """Seconds of all operators so far."""
        return sum(self.seconds.values())

    def part(self, op: Learn, way: OnePass) -> tuple[Any, float]:
        """Statistics of the whole sample, as one block, and seconds for these."""
        x, y, weight = (
            None if i is None else self.value(i) for i in (op.x, op.y, op.weight)
        )
        return timed(lambda: fitting.part(op.step, way, op.estimator, x, y, weight))

    def in_turn(self, op: Learn, way: PartialFit) -> float:
        """Seconds of ``partial_fit`` of the whole sample, as one block."""
        block = [None if i is None else self.value(i) for i in (op.x, op.y, op.weight)]
        classes = fitting.classes_of(op.estimator, None if op.y is None else block[1:2])
        job = op.step, way, op.writes, way.start(op.estimator)
        return timed(lambda: fitting.in_turn(*job, block, classes))[1]

    def many_passes(self, op: Learn, way: ManyPasses) -> float:
        """Seconds of a fit to the whole sample."""
        x, y, weight = (
            None if i is None else self.value(i) for i in (op.x, op.y, op.weight)
        )
        rows = Few(tables.as_numbers(x, flattens=way.flattens), y).rows
        return timed(lambda: way.fit(op.estimator, rows, y, weight))[1]

    def crowding(self, op: Operator, threads: int) -> float:
        """How much longer a call takes when so many threads are at it: 1 to ``threads``."""
        function, inputs = block_function(op), self._short(op)

        def call(_: int) -> None:
            with single_threaded(), unheard():
                function(*inputs)

        alone = together = float("inf")
        with ThreadPoolExecutor(threads) as pool:
            started = time.perf_counter()
            for number in range(_CROWDS):
                begin = time.perf_counter()
                call(0)
                between = time.perf_counter()
                list(pool.map(call, range(threads)))
                # The least of each: an interruption only ever makes a call longer.
                alone = min(alone, between - begin)
                together = min(together, time.perf_counter() - between)
                over = time.perf_counter() - started > _CROWDED
                if number and (over or together < _FREE * alone):
                    break
        return min(max(1.0, together / alone), float(threads))

    def _short(self, op: Operator) -> list[Any]:
        """Inputs for a short call: some of the rows, where they can be cut."""
        values = [self.value(i) for i in op.inputs]
        wholes = [v for i, v in zip(op.inputs, values, strict=True) if i.gives_rows]
        share = _CALL / max(self.seconds[op.token], 1e-9)
        if share > 1 or not all(hasattr(value, "__getitem__") for value in wholes):
            return values
        rows = range(math.ceil(self.rows * share))
        return [
            tables.take_rows(value, rows) if i.gives_rows else value
            for i, value in zip(op.inputs, values, strict=True)
        ]

    def _compute(self, op: Operator) -> Any:
        if isinstance(op, Source):
            self.seconds[op.token] = 0.0
            return self.sample.rows[op.token]
        if isinstance(op, Given):
            self.seconds[op.token] = 0.0
            return op.model
        if isinstance(op, Outcome):
            self.seconds[op.token] = 0.0
            return self.fitted[op.learn.token].output
        if isinstance(op, Learn):
            return self._learn(op)
        inputs = [self.values[i.token] for i in op.inputs]
        function = block_function(op)
        applies = any(not i.gives_rows and not isinstance(i, Given) for i in op.inputs)
        value, took = timed(lambda: function(*inputs), self.repeats)
        if applies and _REPEAT < took < _WARM and self.repeats > 1:
            value, took = timed(lambda: function(*inputs))
        self.seconds[op.token] = took
        return value

    def _learn(self, op: Learn) -> Any:
        wanted = (op.x, op.y, op.weight)
        x, y, weight = (None if i is None else [self.values[i.token]] for i in wanted)
        if self._is_known(op):
            assert self.earlier is not None
            self.seconds[op.token] = self.earlier.seconds[op.token]
            return self.earlier.values[op.token]
        if not op.gathers and isinstance(op.way, OnePass):
            return self._one_pass(op, op.way)
        beside = self.sample.beside
        cut = {k: beside(v) if _is_long(v) else v for k, v in op.params.items()}
        params = {k: v for k, v in cut.items() if v is not None or op.params[k] is None}
        estimator = private_copy(op.estimator, apart=True)
        given = op.step, estimator, params, op.transforms
        job = fitting.Job(*given, None, writes=op.writes)
        both, self.seconds[op.token] = timed(
            lambda: fitting.fit_gathered(job, x or [], y, weight),
            repeats=self.repeats if op.repeats else 1,
        )
        self.fitted[op.token] = both
        return both.model

    def _is_known(self, op: Learn) -> bool:
        """Whether an earlier trial learnt it: only columns count, and they are the same."""
        before = self.earlier.values if self.earlier else {}
        if op.token not in before or op.transforms or not _by_columns(op.estimator):
            return False
        # What chooses columns may have chosen others on these rows.
        columns = [tables.columns_of(of[op.x.token]) for of in (before, self.values)]
        return columns[0] == columns[1]

    def _one_pass(self, op: Learn, way: OnePass) -> Any:
        def fit() -> Any:
            part = fitting.part(
                op.step, way, op.estimator, self.values[op.x.token], None, None
            )
            return fitting.finish(op.step, way, op.estimator, part)

        model, self.seconds[op.token] = timed(fit, self.repeats)
        return model


def _by_columns(estimator: Any) -> bool:
    """Whether nothing but the columns counts in a fit."""
    ways = (way for way in ways_of(estimator) if isinstance(way, OnePass))
    return any(w.by_columns and not w.refuses(estimator, Stats(1, 1)) for w in ways)


def timed(function: Callable[[], Any], repeats: int = 3) -> tuple[Any, float]:
    """The value, and seconds on one thread: the least of a few, until a few ms are over."""
    best, begin = float("inf"), time.perf_counter()
    with single_threaded():
        for _ in range(repeats):
            start = time.perf_counter()
            value = function()
            best = min(best, worked(start))
            if worked(begin) > _REPEAT:
                break
    return value, best


def _is_long(value: Any) -> bool:
    """Whether an argument of ``fit`` may go with the rows: a sample has fewer."""
    return hasattr(value, "__len__") and not isinstance(value, str | Mapping)
