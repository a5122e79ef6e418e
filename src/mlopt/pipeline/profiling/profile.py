"""What every operator would take at full size: time, bytes and shape, from samples.

KeystoneML profiles on two sizes and extrapolates both time and memory by a line (V-D).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mlopt.costs import Cost
from mlopt.costs import Fit as Line
from mlopt.errors import InputError
from mlopt.pipeline.blocks import tables
from mlopt.pipeline.fits.base import SEEN, Fit, ManyPasses, OnePass, PartialFit
from mlopt.pipeline.fits.few import Few
from mlopt.pipeline.fits.registry import own_cost, own_of, ways_of
from mlopt.pipeline.graph.operators import Convert, Given, Learn, Operator, Source
from mlopt.pipeline.graph.walking import Sinks, walk
from mlopt.pipeline.profiling.shapes import grown, outputs_of, stats_of
from mlopt.pipeline.profiling.trial import Trial, timed
from mlopt.pipeline.tasks import fitting
from mlopt.plan import format_bytes
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.stats import Stats

_NOTHING = Line.of([1.0], [0.0])
_MATTERS = price("profile.matters")
_SPECULATE = price("profile.speculate")
_TASK = price("profile.task")
_GROWING = 0.3
"""Share of the time on the largest sample that grows with the rows, at least."""


Trials = Sequence[Trial]
"""By size; all of one sample, the largest last."""

_ENOUGH = price("profile.enough")


@dataclass(frozen=True)
class Measure:
    """One operator at full size.

    Attributes
    ----------
    seconds : mlopt.costs.Fit
        Of one thread, by rows.
    bytes : mlopt.costs.Fit
        Of its value, by rows; of a model, none.
    stats : Stats
        Of its value at full size. For a model: of what it is learnt from.
    crowding : float
        How much longer a call takes when all threads are at it.
    """

    seconds: Line
    bytes: Line
    stats: Stats
    crowding: float = 1.0


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
    memory : int
        Bytes of rows that it gathers in one place.
    doubt : float
        By which factor passes may be off, and so seconds; 1 where nothing was guessed.
    """

    way: Fit | None
    name: str
    seconds: float | None
    passes: float = 1.0
    reason: str = ""
    memory: int = 0
    doubt: float = 1.0


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
    room : float
        Bytes of rows that may be kept.
    """

    rows: int
    blocks: int
    threads: int
    resources: Resources
    room: float = 0.0
    measures: dict[str, Measure] = field(default_factory=dict)
    options: dict[str, tuple[Option, ...]] = field(default_factory=dict)

    def seconds(self, op: Operator) -> float:
        """Of one computation of the operator's rows, on all threads; 0 for a model."""
        tasks = max(_TASK, self.resources.task) * self.blocks
        if isinstance(op, Convert):
            moved = Cost(memory=float(self.bytes(op.x) + 2 * self.bytes(op)))
            return moved.seconds(self.resources, self.slots) + tasks
        measure = self.measures.get(op.token)
        if measure is None or not op.gives_rows or isinstance(op, Source):
            return 0.0
        return self.by_block(measure.seconds, measure.crowding) + tasks

    def own(self, op: Learn) -> float:
        """Of its fit as it is learnt, without what makes its input; 0 where unknown."""
        found = (o for o in self.options.get(op.token, ()) if o.way is op.way)
        return next((option.seconds or 0.0 for option in found), 0.0)

    def passes(self, op: Learn) -> float:
        """How often its fit reads its input as it is learnt; 1 where unknown."""
        if op.way is None:
            return 1.0
        found = (o for o in self.options.get(op.token, ()) if o.way is op.way)
        return next((option.passes for option in found), 1.0)

    def by_block(self, line: Line, crowding: float = 1.0) -> float:
        """Seconds of one call a block.

        What a call takes however few its rows are, it takes for every block: the
        interpreter's part, in which threads do not help.
        """
        return line.a * self.rows * crowding / self.slots + line.b * self.blocks

    @property
    def slots(self) -> int:
        """Blocks that are worked on at a time."""
        return max(1, min(self.threads, self.blocks))

    def bytes(self, op: Operator) -> int:
        """Of the operator's rows."""
        if isinstance(op, Convert):
            stats = self.stats(op.x)
            sparse = op.layout == "sparse"
            return replace(stats, sparse=sparse, bytes=-1).bytes if stats else 0
        measure = self.measures.get(op.token)
        return 0 if measure is None else round(measure.bytes.at(self.rows))

    def stats(self, op: Operator) -> Stats | None:
        """Of the operator's rows at full size."""
        measure = self.measures.get(op.token)
        return None if measure is None else measure.stats


def profile(
    sinks: Sinks, trials: Trials, blocks: int, resources: Resources, room: float = 0.0
) -> Profile:
    """Try every operator on both samples, inputs first.

    The last model is not fitted to the samples where a formula tells what it costs.
    """
    total = trials[-1].sample.total
    found = Profile(total, blocks, resources.threads, resources, room)
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
            seconds = _line(trials, [trial.seconds[op.token] for trial in trials])
            sizes = [float(tables.count_bytes(value)) for value in values]
            held = Line.of([trial.rows for trial in trials], sizes)
            stats = grown(stats_of(values[-1], found.rows, blocks), values)
            crowding = _crowding(op, seconds, found, trials[0])
            found.measures[op.token] = Measure(seconds, held, stats, crowding)
    return found


def _crowding(op: Operator, line: Line, found: Profile, trial: Trial) -> float:
    """What holds Python's lock gets no faster by threads: tried where it matters."""
    alone = line.at(found.rows)
    if isinstance(op, Source) or found.slots == 1 or alone < _MATTERS:
        return 1.0
    if getattr(op, "scope", "rows") == "all":  # called once, and maybe by one thread only
        return 1.0
    # Workers are processes, each with a lock of its own.
    return 1.0 if found.resources.workers > 1 else trial.crowding(op, found.slots)


def _profile_learn(op: Learn, found: Profile, trials: Trials, *, last: bool) -> None:
    x = found.measures[op.x.token].stats if op.x.token in found.measures else None
    if x is None:
        return
    stats = replace(x, outputs=outputs_of(op, trials[-1]))
    ways = () if op.params else ways_of(op.estimator)
    options = [_option(op, way, stats, found, trials) for way in ways]
    line = _NOTHING
    if not op.gathers:
        for trial in trials:
            trial.value(op)
        options.append(Option(None, "scikit-learn", None, reason="reads the text twice"))
    elif last and any(option.seconds is not None for option in options):
        options.append(_own(op, stats, found))
    else:
        line = _tried(op, trials, last)
        options.append(_whole(line.at(found.rows), stats, found))
    if _is_long(op, options, stats, found):
        x, y = (None if i is None else trials[0].value(i) for i in (op.x, op.y))
        few = Few(x, y)
        options = [_speculated(op, one, stats, found, trials[0], few) for one in options]
        options = _in_time(op, options)
    found.options[op.token] = tuple(options)
    found.measures[op.token] = Measure(line, _NOTHING, stats)


def _option(op: Learn, way: Fit, stats: Stats, found: Profile, trials: Trials) -> Option:
    weighted = op.weight is not None
    reason = way.refusal(op.estimator, stats, weighted=weighted)
    if reason := reason or way.beyond(op.estimator, stats, found.resources):
        return Option(way, way.name, None, reason=reason)
    passes = way.passes(op.estimator, stats)
    seconds = _priced(op, way, stats, found, passes)
    if seconds is not None:
        gathers = isinstance(way, ManyPasses) and way.gathers and found.blocks > 1
        memory, doubt = stats.bytes if gathers else 0, way.doubt(op.estimator)
        return Option(way, way.name, seconds, passes, memory=memory, doubt=doubt)
    if isinstance(way, OnePass):
        return Option(way, way.name, _one_pass(op, way, found, trials), passes)
    if isinstance(way, PartialFit):
        times = [trial.in_turn(op, way) for trial in trials]
        line = _line(trials, times)
        return Option(way, way.name, line.a * found.rows + line.b * found.blocks, passes)
    assert isinstance(way, ManyPasses)
    return Option(way, way.name, _many_passes(op, way, found, trials), passes)


def _is_long(op: Learn, options: Sequence[Option], stats: Stats, found: Profile) -> bool:
    """Whether a fit to a sample is worth its time: the fit takes long in any way.

    And there is something to decide: several ways, or rows for which there is no room.
    """
    possible = [option for option in options if option.seconds is not None]
    roomy = stats.bytes <= found.room
    guessed = any(option.doubt > 1.0 for option in possible)
    if not guessed or (roomy and len(possible) == 1):
        return False
    reading = sum(found.seconds(below) for below in walk([op.x]))
    # Where there is room, rows are made once.
    times = ((one.seconds or 0.0, 1.0 if roomy else one.passes) for one in possible)
    return min(took + made * reading for took, made in times) > _SPECULATE


def _speculated(
    op: Learn, option: Option, stats: Stats, found: Profile, trial: Trial, few: Few
) -> Option:
    """The same with passes as on a sample, where that tells something of them.

    Of scikit-learn's steps over sparse rows it does not: 8 over 512 reviews, 56 over all.
    """
    if option.seconds is None or option.doubt == 1.0:
        return option
    if option.way is None and stats.sparse:
        return option
    if option.way is None:
        passes = float(np.max(trial.value(op).n_iter_))
        cost = own_cost(op.estimator, stats, passes)
        assert cost is not None
        seconds = cost.seconds(found.resources)
        return replace(_whole(seconds, stats, found), doubt=SEEN)
    assert isinstance(option.way, ManyPasses)
    seen = option.way.speculate(op.estimator, few, stats)
    if seen is None:
        return option
    passes, doubt = seen
    priced = _priced(op, option.way, stats, found, passes)
    return replace(option, seconds=priced, passes=passes, doubt=doubt)


def _in_time(op: Learn, options: Sequence[Option]) -> list[Option]:
    """Without ways that likely end before they are done, where others are done by then."""
    able = [
        (one, one.way.most(op.estimator))
        for one in options
        if one.way is not None and one.seconds is not None
    ]
    late = {one.name: most for one, most in able if one.passes > most}
    if len(late) == len(able):
        return list(options)
    return [
        replace(one, seconds=None, reason=f"likely more than {late[one.name]:g} passes")
        if one.name in late
        else one
        for one in options
    ]


def _tried(op: Learn, trials: Trials, last: bool) -> Line:
    """Seconds of scikit-learn's own fit by rows, as samples tell them."""
    times: list[float] = []
    for trial in trials:
        trial.value(op)
        times.append(trial.seconds[op.token])
        if last and times[-1] > _ENOUGH:
            break
    return _line(trials[: len(times)], times)


def _own(op: Learn, stats: Stats, found: Profile) -> Option:
    """scikit-learn's own fit by its price, beside ways that have one: rows are here."""
    sources = (one for one in walk([op.x]) if isinstance(one, Source))
    here = not found.resources.remote and not any(one.lazy for one in sources)
    own = own_of(op.estimator) if here else None
    cost = None if own is None else own.cost(op.estimator, stats, None)
    if own is None or cost is None:
        return Option(None, "scikit-learn", None, reason="not tried")
    threads = found.resources.threads if own.threaded else 1
    seconds = cost.seconds(found.resources, threads)
    return replace(_whole(seconds, stats, found), doubt=own.doubt)


def _one_pass(op: Learn, way: OnePass, found: Profile, trials: Trials) -> float:
    """Statistics of all blocks, added up two by two.

    What is added up may grow with the rows, as the terms of a text do, or stay as it is,
    as moments do: the work is at most what it would be in either case.
    """
    parts = [trial.part(op, way) for trial in trials]
    line = _line(trials, [seconds for _, seconds in parts])
    left, right = parts[0][0], parts[-1][0]
    try:
        _, once = timed(lambda: fitting.merge(op.step, way, left, right))
    except InputError:  # samples may have unlike columns: one has a category more
        _, once = timed(lambda: fitting.merge(op.step, way, right, right))
    growing = math.log2(max(found.blocks, 1)) * found.rows
    growing /= trials[0].rows + trials[-1].rows
    merging = once * min(found.blocks - 1.0, growing)
    if not way.by_columns:
        return found.by_block(line) + merging
    trials[-1].value(op)
    return merging + trials[-1].seconds[op.token]


def _many_passes(op: Learn, way: ManyPasses, found: Profile, trials: Trials) -> float:
    """A fit without a formula: as long for each row as on the samples."""
    line = _line(trials, [trial.many_passes(op, way) for trial in trials])
    return line.a * found.rows / found.slots + line.b


def _priced(
    op: Learn, way: Fit, stats: Stats, found: Profile, passes: float
) -> float | None:
    cost = way.cost(op.estimator, stats, found.resources, passes)
    return None if cost is None else cost.seconds(found.resources, found.threads)


def _whole(alone: float, stats: Stats, found: Profile) -> Option:
    """scikit-learn's own fit, in seconds without what brings all rows to one place."""
    size = stats.bytes
    if size > found.resources.memory / max(1, found.resources.workers):
        need = f"{format_bytes(size)} gathered"
        return Option(None, "scikit-learn", None, reason=f"needs {need}")
    many = found.resources.remote
    gathering = Cost(
        memory=2.0 * size,
        network=size * (1 - 1 / found.resources.workers) if many else 0.0,
        tasks=float(found.blocks) if many else 0.0,
    )
    seconds = alone + gathering.seconds(found.resources)
    return Option(None, "scikit-learn", seconds, memory=0 if found.blocks == 1 else size)


def _line(trials: Trials, seconds: Sequence[float]) -> Line:
    """Seconds by rows.

    They are not less than most of what the largest sample took for a row: what was
    interrupted on a small sample would else make the line flat, or fall.
    """
    line = Line.of([trial.rows for trial in trials], seconds)
    last, rows = float(seconds[-1]), trials[-1].rows
    if line.a * rows >= _GROWING * last:
        return line
    return Line.of([1.0, rows], [(1 - _GROWING) * last, last])
