"""What every operator would take at full size: time, bytes and shape, from samples.

KeystoneML profiles on two sizes and extrapolates both time and memory by a line (V-D).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from mlopt.costs import Fit as Line
from mlopt.pipeline import tables
from mlopt.pipeline.fits.base import Fit, ManyPasses, OnePass
from mlopt.pipeline.fits.registry import ways_of
from mlopt.pipeline.graph import Sinks, rebuild, walk
from mlopt.pipeline.operators import Apply, Given, Join, Learn, Operator
from mlopt.pipeline.trial import Trial
from mlopt.resources import Resources
from mlopt.stats import Stats

_GROWING = 0.3
"""Share of the time on the largest sample that grows with the rows, at least."""


Trials = Sequence[Trial]
"""By size; all of one sample, the largest last."""

ENOUGH = 0.05
"""Seconds at one size that tell enough: a last model is not tried on larger samples."""


@dataclass(frozen=True)
class Measure:
    """One operator at full size.

    Attributes
    ----------
    seconds : Line
        Of one thread, by rows.
    bytes : Line
        Of its value, by rows; of a model: zero.
    stats : Stats
        Of its value at full size. For a model: of what it is learnt from.
    """

    seconds: Line
    bytes: Line
    stats: Stats


@dataclass(frozen=True)
class Option:
    """One way of fitting an estimator, and what it would take.

    Attributes
    ----------
    way : Fit or None
        None: scikit-learn's own, on gathered rows.
    seconds : float or None
        In all, on all threads; None where ``reason`` says why it cannot be.
    passes : float
        How often it reads its input.
    """

    way: Fit | None
    name: str
    seconds: float | None
    passes: float = 1.0
    reason: str = ""


@dataclass
class Profile:
    """Measures of operators, by token.

    Attributes
    ----------
    rows : int
        Rows of the data.
    threads : int
        That share the work on blocks.
    measures : dict of token to Measure
    options : dict of token to tuple of Option
        Of every `Learn`, in the order of the registry, scikit-learn's own last.
    """

    rows: int
    blocks: int
    threads: int
    resources: Resources
    measures: dict[str, Measure] = field(default_factory=dict)
    options: dict[str, tuple[Option, ...]] = field(default_factory=dict)

    def seconds(self, op: Operator) -> float:
        """Of one computation of the operator's rows, on all threads; 0 for a model."""
        measure = self.measures.get(op.token)
        if measure is None or not op.gives_rows:
            return 0.0
        slots = max(1, min(self.threads, self.blocks))
        return measure.seconds.at(self.rows) / slots

    def bytes(self, op: Operator) -> int:
        """Of the operator's rows."""
        measure = self.measures.get(op.token)
        return 0 if measure is None else round(measure.bytes.at(self.rows))

    def stats(self, op: Operator) -> Stats | None:
        """Of the operator's rows at full size."""
        measure = self.measures.get(op.token)
        return None if measure is None else measure.stats


def profile(sinks: Sinks, trials: Trials, blocks: int, resources: Resources) -> Profile:
    """Try every operator on both samples, inputs first.

    The last model is not fitted to the samples where a formula tells what it costs.
    """
    found = Profile(trials[-1].sample.total, blocks, resources.threads, resources)
    ends = {id(sink) for sink in sinks}
    for op in walk(sinks):
        if op.token in found.measures:
            continue
        if isinstance(op, Learn):
            _profile_learn(op, found, trials, last=id(op) in ends)
        elif isinstance(op, Given):
            continue
        else:
            values = [trial.value(op) for trial in trials]
            found.measures[op.token] = Measure(
                _time_line(trials, [trial.seconds[op.token] for trial in trials]),
                _line(trials, [tables.count_bytes(value) for value in values]),
                _stats(values[-1], found.rows, blocks),
            )
    return found


def settle(sinks: Sinks, trial: Trial) -> Sinks:
    """Find out on the sample what was unknown: whether steps go row by row, or at random.

    A step without state may do anything with the rows it is given. If it makes the same of
    some rows alone as of these rows among others, it is taken to go row by row.
    """

    def look(op: Operator) -> Operator:
        if isinstance(op, Join) and op.layout == "auto":
            return _with_layout(op, trial)
        if isinstance(op, Apply) and op.scope == "unknown":
            return _with_scope(op, trial)
        return op

    return rebuild(sinks, look)


def _with_layout(op: Join, trial: Trial) -> Join:
    """A union comes out dense or sparse as scikit-learn would have it, in every block."""
    value = trial.value(op)
    if not any(tables.is_sparse(trial.value(part)) for part in op.parts):
        return op
    return replace(op, layout="sparse" if tables.is_sparse(value) else "dense")


def _with_scope(op: Apply, trial: Trial) -> Apply:
    whole, n = trial.value(op), trial.rows
    if not _equal(whole, trial.again(op)):
        return replace(op, scope="all", random=True)
    half = trial.sample.part(max(1, n // 2))
    step = max(1, n // max(1, n // 2))
    among = tables.take_rows(whole, list(range(0, n, step))[: half.size])
    alone = Trial(half).value(op)
    return replace(op, scope="rows" if _equal(alone, among) else "all")


def _profile_learn(op: Learn, found: Profile, trials: Trials, *, last: bool) -> None:
    x = found.measures[op.x.token].stats if op.x.token in found.measures else None
    if x is None:
        return
    outputs = _outputs(op, trials[-1])
    stats = replace(x, outputs=outputs)
    options = [_option(op, way, stats, found, trials) for way in ways_of(op.estimator)]
    if op.params:
        options = []
    priced = [option for option in options if option.seconds is not None]
    if not op.gathers:
        for trial in trials:
            trial.value(op)
        line = Line.of([1.0], [0.0])
    elif not (last and priced):
        times: list[float] = []
        for trial in trials:
            trial.value(op)
            times.append(trial.seconds[op.token])
            if last and times[-1] > ENOUGH:
                break
        line = _time_line(trials[: len(times)], times)
        options.append(_whole(line, stats, found))
    else:
        line = Line.of([1.0], [0.0])
        options.append(Option(None, "scikit-learn", None, reason="not tried"))
    found.options[op.token] = tuple(options)
    found.measures[op.token] = Measure(line, Line.of([1.0], [0.0]), stats)


def _option(op: Learn, way: Fit, stats: Stats, found: Profile, trials: Trials) -> Option:
    if reason := way.refuses(op.estimator, stats):
        return Option(way, way.name, None, reason=reason)
    passes = way.passes(op.estimator, stats)
    cost = way.cost(op.estimator, stats, found.resources)
    if cost is not None:
        return Option(way, way.name, cost.seconds(found.resources, found.threads), passes)
    if isinstance(way, OnePass):
        line = _time_line(trials, [trial.time_part(op, way) for trial in trials])
        slots = max(1, min(found.threads, found.blocks))
        return Option(way, way.name, line.at(found.rows) / slots, passes)
    assert isinstance(way, ManyPasses)
    return Option(way, way.name, None, passes, "no prediction")


def _whole(line: Line, stats: Stats, found: Profile) -> Option:
    """scikit-learn's own fit: rows are gathered, and must fit."""
    if stats.bytes > found.resources.memory / max(1, found.resources.workers):
        need = f"{stats.bytes / 2**30:.1f} GB gathered"
        return Option(None, "scikit-learn", None, reason=f"needs {need}")
    copying = 2 * stats.bytes / found.resources.bandwidth
    return Option(None, "scikit-learn", line.at(found.rows) + copying)


def _line(trials: Trials, values: Sequence[float]) -> Line:
    """Bytes by rows."""
    return Line.of([trial.rows for trial in trials], [float(value) for value in values])


def _time_line(trials: Trials, seconds: Sequence[float]) -> Line:
    """Seconds by rows: not less than most of what the largest sample took for a row.

    What was interrupted on a small sample would else make the line flat, or fall.
    """
    line, last, rows = _line(trials, seconds), float(seconds[-1]), trials[-1].rows
    if line.a * rows >= _GROWING * last:
        return line
    return Line.of([1.0, rows], [(1 - _GROWING) * last, last])


def _outputs(op: Learn, trial: Trial) -> int:
    """Columns of a linear model: targets, or classes where there are three or more."""
    if op.y is None:
        return 1
    y = np.asarray(trial.value(op.y))
    if y.ndim == 2:
        return int(y.shape[1])
    if is_classifier(op.estimator):
        classes = len(np.unique(y))
        return classes if classes > 2 else 1
    return 1


def _stats(value: Any, rows: int, blocks: int) -> Stats:
    n, columns = max(1, tables.count_rows(value)), tables.count_columns(value)
    if tables.is_sparse(value):
        density = value.nnz / max(1, n * columns)
        return Stats(
            rows,
            columns,
            density=density,
            dtype=value.dtype.name,
            partitions=blocks,
            sparse=True,
        )
    dtype = getattr(getattr(value, "dtype", None), "name", "mixed")
    nbytes = round(tables.count_bytes(value) / n * rows)
    density = 1.0
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and value.size:
        density = float(np.count_nonzero(value)) / value.size
    return Stats(
        rows, columns, density=density, dtype=dtype, bytes=nbytes, partitions=blocks
    )


def _equal(left: Any, right: Any) -> bool:
    if tables.kind_of(left) != tables.kind_of(right):
        return False
    if tables.is_sparse(left):
        left, right = left.toarray(), right.toarray()
    a, b = np.asarray(left), np.asarray(right)
    if a.shape != b.shape:
        return False
    if a.dtype.kind in "fc":
        return bool(np.allclose(a, b, rtol=1e-6, atol=1e-12, equal_nan=True))
    return bool((a == b).all())
