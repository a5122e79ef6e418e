"""In which order models are learnt, and how often that reads each operator.

Pure: from a graph and what is kept to jobs, and to seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from mlopt.pipeline.fits.base import OnePass
from mlopt.pipeline.graph import Sinks, walk
from mlopt.pipeline.operators import Learn, Operator, Outcome


@dataclass(frozen=True)
class Job:
    """Operators computed together, each at most once a block and pass.

    Attributes
    ----------
    ends : tuple of Operator
        The models learnt, or the rows wanted.
    passes : float
        How often it reads what it reads.
    """

    ends: tuple[Operator, ...]
    passes: float = 1.0

    @property
    def reads(self) -> tuple[Operator, ...]:
        """The rows that it needs."""
        rows = [i for e in self.ends for i in e.inputs] if self._learns else list(self.ends)
        return tuple(op for op in rows if op.gives_rows)

    @property
    def _learns(self) -> bool:
        return not self.ends[0].gives_rows


def schedule(
    sinks: Sinks, passes: Callable[[Learn], float], known: Collection[str] = ()
) -> list[Job]:
    """Jobs in their order: models of one depth that take one pass are learnt together.

    Parameters
    ----------
    sinks : tuple of Operator
    passes : callable
        How often a model's fit reads its input.
    known : collection of token
        Models that are there already.
    """
    levels: dict[int, list[Learn]] = {}
    depth: dict[int, int] = {}
    for op in walk(sinks, stop=lambda node: node.token in known):
        below = max((depth[id(i)] for i in op.inputs if id(i) in depth), default=0)
        learns = isinstance(op, Learn) and op.token not in known
        depth[id(op)] = below + learns
        if learns and isinstance(op, Learn):
            levels.setdefault(depth[id(op)], []).append(op)
    jobs: list[Job] = []
    for _, learns_ in sorted(levels.items()):
        together = tuple(one for one in learns_ if isinstance(one.way, OnePass))
        jobs += [Job(together)] if together else []
        jobs += [
            Job((one,), max(1.0, passes(one)))
            for one in learns_
            if not isinstance(one.way, OnePass)
        ]
    wanted = tuple(sink for sink in sinks if sink.gives_rows)
    return jobs + ([Job(wanted)] if wanted else [])


def cone(reads: Sequence[Operator], stop: Collection[str]) -> list[Operator]:
    """The operators on rows that are computed for ``reads``; none below ``stop``."""
    found = walk(reads, stop=lambda n: n.token in stop or isinstance(n, Outcome))
    return [op for op in found if op.gives_rows and op.token not in stop]


def executions(jobs: Sequence[Job], kept: Collection[str]) -> dict[str, float]:
    """How often each operator on rows is computed.

    What is kept is computed by the first job that needs it, once.
    """
    counts: dict[str, float] = {}
    there: set[str] = set()
    for job in jobs:
        waiting = list(job.reads)
        # Kept rows that this job is the first to need are computed on the way.
        for op in walk(waiting, stop=lambda n: n.token in there):
            if op.gives_rows and op.token in kept and op.token not in there:
                for node in cone(op.inputs, {*there, *kept}):
                    counts[node.token] = counts.get(node.token, 0.0) + 1.0
                counts[op.token] = counts.get(op.token, 0.0) + 1.0
                there.add(op.token)
        for node in cone(waiting, there):
            counts[node.token] = counts.get(node.token, 0.0) + job.passes
    return counts
