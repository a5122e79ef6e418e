"""What a run takes with these ways of fitting and these rows kept: the one price of both.

A way takes its own time, and that of making its input as often as it reads it: how long
that is depends on what is kept, and what is worth keeping depends on the ways. So they are
priced together, as the engine runs them, each operator once a job and pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from mlopt.caching import Found, Graph, Kept, Node, choose, search
from mlopt.locking import cached_property
from mlopt.pipeline.graph.operators import Learn, Operator
from mlopt.pipeline.graph.schedule import (
    Job,
    Timetable,
    jobs_of,
    learnt_by_depth,
    must_stay,
    takes_memory,
)
from mlopt.pipeline.graph.walking import Sinks, walk
from mlopt.pipeline.profiling.profile import Profile
from mlopt.pipeline.rules.base import Context

MARGIN = 0.98
"""Share of the budget that sizes as predicted may fill."""

Ways = Mapping[str, Learn]
"""By the token of a model: the same, in the way in which it is learnt."""


class Engine:
    """Prices ways and kept rows. Nodes are the numbers of the operators on rows.

    Parameters
    ----------
    sinks : tuple of Operator
    context : Context
    profile : Profile
    ways : mapping of token to sequence of Learn
        All those in which a model may be learnt; default: as in ``sinks``.

    Attributes
    ----------
    ops : list of Operator
    """

    def __init__(
        self,
        sinks: Sinks,
        context: Context,
        profile: Profile,
        ways: Mapping[str, Sequence[Learn]] | None = None,
    ) -> None:
        self._sinks, self._context, self._profile = sinks, context, profile
        self._levels = learnt_by_depth(sinks, context.known)
        others = [Job((one,)) for each in (ways or {}).values() for one in each]
        jobs = jobs_of(self._levels, sinks, context.passes)
        self._table = Timetable(jobs, context.there, profile.bytes, others)
        self.ops = self._table.ops
        self._here = {id(op): v for v, op in enumerate(self.ops)}
        self._own, self._passes = cache(profile.own), cache(context.passes)
        self._seconds = [profile.seconds(op) for op in self.ops]

    def run(self, ways: Ways | None = None, without: str = "") -> Run:
        """With the models learnt in these ways; one of them, by token, not at all."""
        jobs = self._jobs(ways or {}, without)
        learns = (end for job in jobs for end in job.ends if isinstance(end, Learn))
        own = sum(self._own(one) for one in learns)
        return Run(self._table.of(jobs), self._seconds, own, self._profile.blocks)

    def reads(self, op: Learn) -> frozenset[int]:
        """The number of the rows that a model is learnt from."""
        return frozenset([self._here[id(op.x)]]) if id(op.x) in self._here else frozenset()

    def graph(self) -> tuple[list[Operator], Graph]:
        """The operators as they are in ``sinks``, and what one execution of each takes."""
        context, profile = self._context, self._profile
        ops = list(walk(self._sinks, stop=lambda node: node.token in context.known))
        numbers = {id(op): number for number, op in enumerate(ops)}
        nodes = []
        for op in ops:
            ends = op.token in context.known | context.there
            free = ends or not takes_memory(op)
            nodes.append(
                Node(
                    op.step,
                    0.0 if ends else profile.seconds(op),
                    0.0 if free else float(profile.bytes(op)),
                    round(context.passes(op)) if isinstance(op, Learn) else 1,
                    () if ends else tuple(numbers[id(i)] for i in op.inputs),
                    always=free or must_stay(op),
                    estimator=isinstance(op, Learn),
                )
            )
        return ops, Graph(tuple(nodes))

    def numbers(self, ops: Sequence[Operator]) -> dict[int, int]:
        """From places in ``ops`` to numbers of operators here."""
        places = self._here
        return {v: places[id(op)] for v, op in enumerate(ops) if id(op) in places}

    def begin(self, budget: float) -> frozenset[int]:
        """What the recurrences would keep."""
        ops, graph = self.graph()
        numbers = self.numbers(ops)
        return frozenset(numbers[v] for v in choose(graph, budget).nodes if v in numbers)

    def _jobs(self, ways: Ways, without: str = "") -> list[Job]:
        levels = [
            [ways.get(op.token, op) for op in level if op.token != without]
            for level in self._levels
        ]
        return jobs_of(levels, self._sinks, self._passes)


class Run:
    """The run with given ways, for any set of kept rows.

    Attributes
    ----------
    own : float
        Seconds of the fits themselves.
    price : callable
        Seconds of all fits and rows, and bytes at most, when these nodes are kept.
    """

    def __init__(
        self, table: Timetable, seconds: Sequence[float], own: float, blocks: int
    ) -> None:
        self._table, self._seconds, self._blocks = table, seconds, blocks
        self.own = own
        self.price = cache(self._price)

    @cached_property
    def able(self) -> list[int]:
        """Operators whose rows are worth keeping, if there is room."""
        return self._table.candidates

    def _price(self, nodes: frozenset[int]) -> Kept:
        followed = self._table.follow(nodes)
        pairs = zip(followed.executions, self._seconds, strict=True)
        made = sum(n * seconds for n, seconds in pairs)
        return Kept(nodes, followed.peak, self.own + made)

    @property
    def least(self) -> float:
        """Seconds that no set undercuts: every operator once."""
        counts = self._table.follow(()).executions
        once = sum(s for n, s in zip(counts, self._seconds, strict=True) if n)
        return self.own + once

    def as_in(self, found: Found, more: frozenset[int] = frozenset()) -> float:
        """Seconds when the same is kept, and ``more``."""
        nodes = found.kept.nodes | more
        seconds = self.price(nodes).seconds
        if found.partly is None or found.partly in nodes:
            return seconds
        whole = self.price(nodes | {found.partly}).seconds
        return found.share * whole + (1.0 - found.share) * seconds

    def best(self, budget: float, starts: Iterable[frozenset[int]] = ()) -> Found:
        """The shortest run within the budget."""
        return search(self.price, self.able, MARGIN * budget, starts, self._blocks)
