"""In which order models are learnt, and how often that computes each operator.

Pure: from a graph and what is kept to jobs, and to counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass

from mlopt.pipeline.fits.base import ManyPasses, OnePass
from mlopt.pipeline.graph.operators import Apply, Fused, Learn, Operator, Outcome, Source
from mlopt.pipeline.graph.walking import Sinks, walk


@dataclass(frozen=True)
class Job:
    """Operators computed together, each at most once a block and pass.

    Attributes
    ----------
    ends : tuple of Operator
        The models learnt, then the rows wanted.
    passes : float
        How often it reads what it reads.
    """

    ends: tuple[Operator, ...]
    passes: float = 1.0

    @property
    def reads(self) -> tuple[Operator, ...]:
        """The rows that it needs."""
        rows = [i for e in self.ends for i in ([e] if e.gives_rows else e.inputs)]
        return tuple(op for op in rows if op.gives_rows)

    @property
    def iterates(self) -> bool:
        """Whether rows to keep are made before its passes begin, and not in the first."""
        first = self.ends[0]
        return isinstance(first, Learn) and isinstance(first.way, ManyPasses)


def schedule(
    sinks: Sinks,
    passes: Callable[[Learn], float],
    known: Collection[str] = (),
    *,
    at_once: bool = False,
) -> list[Job]:
    """Jobs in their order: models of one depth that take one pass are learnt together.

    Parameters
    ----------
    sinks : tuple of Operator
    passes : callable
        How often a model's fit reads its input.
    known : collection of token
        Models that are there already.
    at_once : bool
        Whether there is one job alone, for models that take one pass.
    """
    levels = learnt_by_depth(sinks, known)
    if not at_once:
        return jobs_of(levels, sinks, passes)
    learns = (one for level in levels for one in level)
    ends = (*learns, *(sink for sink in sinks if sink.gives_rows))
    return [Job(ends)] if ends else []


def learnt_by_depth(sinks: Sinks, known: Collection[str] = ()) -> list[list[Learn]]:
    """The models to learn: those of one list read nothing of each other."""
    levels: dict[int, list[Learn]] = {}
    depth: dict[int, int] = {}
    for op in walk(sinks, stop=lambda node: node.token in known):
        below = max((depth[id(i)] for i in op.inputs if id(i) in depth), default=0)
        learns = isinstance(op, Learn) and op.token not in known
        depth[id(op)] = below + learns
        if learns and isinstance(op, Learn):
            levels.setdefault(depth[id(op)], []).append(op)
    return [learns for _, learns in sorted(levels.items())]


def in_turn(sinks: Sinks) -> bool:
    """Whether models can only be fitted one after the other, and no rows are drawn."""
    one = all(len(level) == 1 for level in learnt_by_depth(sinks))
    drawn = (isinstance(op, Apply) and (op.random or op.pinned) for op in walk(sinks))
    return one and not any(drawn)


def jobs_of(
    levels: Iterable[Sequence[Learn]], sinks: Sinks, passes: Callable[[Learn], float]
) -> list[Job]:
    """Jobs in their order, by the ways that the models of `learnt_by_depth` have."""
    jobs: list[Job] = []
    for learns in _drawn_in_turn(list(levels)):
        together = tuple(one for one in learns if isinstance(one.way, OnePass))
        jobs += [Job(together)] if together else []
        jobs += [
            Job((one,), _scans(one, passes))
            for one in learns
            if not isinstance(one.way, OnePass)
        ]
    wanted = tuple(sink for sink in sinks if sink.gives_rows)
    return jobs + ([Job(wanted)] if wanted else [])


def _drawn_in_turn(levels: list[Sequence[Learn]]) -> list[Sequence[Learn]]:
    """The same models, of which those that may draw come in the order of the steps.

    They draw from one generator, and get from it what they get in scikit-learn's order. Of
    rows that are read anew for each job there are as few jobs as can be, and draws of the
    workers' own generators.
    """
    learns = {op.token: op for level in levels for op in level}
    drawing = sorted(
        (op for op in learns.values() if not op.repeats), key=lambda op: op.turn
    )
    sources = (op for op in walk(drawing) if isinstance(op, Source))
    if len(drawing) < 2 or any(op.lazy for op in sources):
        return levels
    turns: list[Sequence[Learn]] = []
    waiting = [op for op in learns.values() if op.repeats]
    needs = {
        op.token: {one.token for one in _models(op.inputs)} & learns.keys()
        for op in waiting
    }
    done: set[str] = set()
    while waiting or drawing:
        ready = [op for op in waiting if needs[op.token] <= done]
        turns.append(ready or [drawing.pop(0)])
        done |= {op.token for op in turns[-1]}
        waiting = [op for op in waiting if op.token not in done]
    return turns


def _models(ends: Iterable[Operator]) -> list[Learn]:
    return [op for op in walk(ends) if isinstance(op, Learn)]


def _scans(op: Learn, passes: Callable[[Learn], float]) -> float:
    """Gathered rows are read once; an iterative fit looks at its rows once before."""
    return 1.0 + max(1.0, passes(op)) if isinstance(op.way, ManyPasses) else 1.0


def must_stay(op: Operator) -> bool:
    """Whether rows are kept in any case.

    Because they cannot be made again, random ones and outcomes of a whole fit; or because
    the user says so.
    """
    return isinstance(op, Outcome) or (isinstance(op, Apply) and (op.random or op.pinned))


def takes_memory(op: Operator) -> bool:
    """Whether keeping a value takes memory of the budget: not models, nor given data."""
    return op.gives_rows and not (isinstance(op, Source) and not op.lazy)


def members(op: Operator) -> list[Operator]:
    """The operators that run when this one does: those within a fused one."""
    if not isinstance(op, Fused):
        return [op]
    reads = {i.token for i in op.reads}
    inside = walk([op.body], stop=lambda node: node.token in reads)
    return [node for node in inside if node.token not in reads]


def below(reads: Iterable[Operator], there: Collection[str]) -> list[Operator]:
    """The operators on rows that give ``reads``, inputs first; those ``there`` are ends.

    The models that they apply are learnt by then: nothing is computed for these.
    """
    ends = walk(reads, stop=lambda n: n.token in there or not n.gives_rows or _given(n))
    return [op for op in ends if op.gives_rows]


def _given(op: Operator) -> bool:
    """An outcome comes from its fit, which ran before anybody can read it."""
    return isinstance(op, Outcome)


@dataclass(frozen=True)
class Followed:
    """What a run does that keeps some rows.

    Attributes
    ----------
    executions : tuple of float
        How often each operator is computed.
    peak : float
        Bytes of kept rows at most at any one time.
    """

    executions: tuple[float, ...]
    peak: float


class Timetable:
    """Jobs over numbered operators, to be followed for many sets of kept rows.

    What is kept is computed by the first job that needs it, once, and let go of after the
    last one that does. Within a job every operator runs once a block and pass, however
    many paths lead to it.

    Parameters
    ----------
    jobs : sequence of Job
    there : collection of token
        Rows that are there from the beginning.
    nbytes : callable
        Of an operator's rows.
    others : sequence of Job
        Jobs that may be put in their place, by `of`.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        there: Collection[str] = (),
        nbytes: Callable[[Operator], float] = lambda _: 0.0,
        others: Sequence[Job] = (),
    ) -> None:
        reads = [op for job in (*jobs, *others) for op in job.reads]
        self.ops = below(reads, there)
        self._numbers = {id(op): v for v, op in enumerate(self.ops)}
        self._there = self._bits(op for op in self.ops if op.token in there)
        self._inputs = [
            0 if isinstance(op, Outcome) or op.token in there else self._bits(op.inputs)
            for op in self.ops
        ]
        self._stay = self._bits(op for op in self.ops if must_stay(op))
        self._bytes = [float(nbytes(op)) if takes_memory(op) else 0.0 for op in self.ops]
        self._memo: dict[tuple[int, int], int] = {}
        self._reads: dict[Operator, int] = {}
        self._jobs = [self._read(job) for job in jobs]

    def of(self, jobs: Sequence[Job]) -> Timetable:
        """Other jobs over the same operators."""
        other = copy(self)
        other._jobs = [self._read(job) for job in jobs]
        return other

    @property
    def candidates(self) -> list[int]:
        """Operators whose rows are worth keeping, if there is room.

        Those that are computed more than once when nothing is kept. Not one with a single
        reader that is no larger: keeping that one saves as much and more.
        """
        counts = self.follow(()).executions
        free = self._stay | self._there
        often = [v for v, n in enumerate(counts) if n > 1.0 and not free >> v & 1]
        able = {v for v in often if takes_memory(self.ops[v])}
        return [v for v in often if v in able and not self._outdone(v, counts, able)]

    def _outdone(self, v: int, counts: Sequence[float], able: set[int]) -> bool:
        if any(reads >> v & 1 for reads, _, _ in self._jobs):
            return False
        readers = [r for r, i in enumerate(self._inputs) if i >> v & 1 and counts[r]]
        one = len(readers) == 1 and readers[0] in able
        return one and self._bytes[readers[0]] <= self._bytes[v]

    def _read(self, job: Job) -> tuple[int, float, bool]:
        reads = 0
        for end in job.ends:
            if end not in self._reads:
                self._reads[end] = self._bits(Job((end,)).reads)
            reads |= self._reads[end]
        return reads, job.passes, job.iterates

    def follow(self, kept: Iterable[int]) -> Followed:
        """The run that keeps the rows of these operators."""
        wanted = sum(1 << v for v in set(kept)) | self._stay
        counts = [0.0] * len(self.ops)
        there, peak = self._there, 0.0
        for number, (reads, passes, iterates) in enumerate(self._jobs):
            new = self._cone(reads, there) & wanted & ~there
            if iterates:
                self._count(counts, self._cone(new, there), 1.0)
                self._count(counts, self._cone(reads, there | new), passes)
            else:
                self._count(counts, self._cone(reads, there), passes)
            peak = max(peak, self._size((there | new) & ~self._there))
            there = (there | new) & self._needed(number + 1, there | new) | self._there
        return Followed(tuple(counts), peak)

    def follow_tokens(
        self, kept: Collection[str], partly: tuple[str, float] | None = None
    ) -> Followed:
        """The same for operators by token, a share of one of them kept only."""
        whole = self.follow(v for v, op in enumerate(self.ops) if op.token in kept)
        if partly is None:
            return whole
        token, share = partly
        without = self.follow_tokens([one for one in kept if one != token])
        pairs = zip(whole.executions, without.executions, strict=True)
        mixed = tuple(share * more + (1.0 - share) * less for more, less in pairs)
        return Followed(mixed, share * whole.peak + (1.0 - share) * without.peak)

    def _needed(self, start: int, there: int) -> int:
        """What the jobs from ``start`` on read of what is there."""
        reads = 0
        for later, _, _ in self._jobs[start:] if there else ():
            reads |= later
        return self._reached(reads, there) & there

    def _cone(self, reads: int, there: int) -> int:
        """What is computed for ``reads``."""
        return self._reached(reads, there) & ~there

    def _reached(self, reads: int, there: int) -> int:
        # Asked for again and again: sets of kept rows differ in parts of the graph only.
        everything = self._memo.get((reads, 0))
        key = reads, there if everything is None else there & everything
        if (known := self._memo.get(key)) is not None:
            return known
        found = left = reads
        while left:
            v = left.bit_length() - 1
            left ^= 1 << v
            if not there >> v & 1:
                left |= self._inputs[v] & ~found
                found |= self._inputs[v]
        self._memo[key] = found
        return found

    def _count(self, counts: list[float], which: int, times: float) -> None:
        while which:
            v = which.bit_length() - 1
            which ^= 1 << v
            counts[v] += times

    def _size(self, which: int) -> float:
        found = 0.0
        while which:
            v = which.bit_length() - 1
            which ^= 1 << v
            found += self._bytes[v]
        return found

    def _bits(self, ops: Iterable[Operator]) -> int:
        found = 0
        for op in ops:
            found |= 1 << self._numbers[id(op)] if op.gives_rows else 0
        return found


def executions(
    jobs: Sequence[Job],
    kept: Collection[str],
    there: Collection[str] = (),
    partly: tuple[str, float] | None = None,
) -> dict[str, float]:
    """How often each operator on rows is computed, by token.

    Parameters
    ----------
    kept : collection of token
    there : collection of token
        Rows that are there from the beginning.
    partly : (token, float), optional
        One of those kept of which this share is kept only.
    """
    table = Timetable(jobs, there)
    followed = table.follow_tokens(kept, partly)
    counts: dict[str, float] = {}
    for op, count in zip(table.ops, followed.executions, strict=True):
        for one in members(op):
            counts[one.token] = counts.get(one.token, 0.0) + count
    return counts
