"""What a rule is: from a graph to another that gives the same result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mlopt.pipeline.graph.operators import Learn, Operator
from mlopt.pipeline.graph.walking import Sinks, rebuild
from mlopt.pipeline.profiling.profile import Profile

Prices = tuple[tuple[str, tuple[float | None, ...]], ...]
"""By the token of a model: seconds of each of its options, in their order."""


@dataclass(frozen=True)
class Draft:
    """A plan in the making: the graph, and what was decided about it.

    Attributes
    ----------
    sinks : tuple of Operator
    kept : frozenset of token
        Rows that stay in memory from their first use to their last.
    budget : float
        Bytes that they may take. Where they turn out larger than predicted, the least
        recently used are forgotten, and made again.
    partly : (token, float) or None
        One of those kept of which there is room for this share of its blocks only. They
        are kept where there is room, and drive out nothing.
    at_once : bool
        Whether one graph gives all models and rows, every operator run once in it. Else
        each depth of models has its own, and reads rows anew that are not kept.
    brief : bool
        Whether that is over before a second thread of BLAS pays.
    notes : tuple of (token, str)
        What plans say of an operator.
    prices : tuple of (token, (float or None, ...))
        What learning a model in each of its ways adds to the run, what makes its input
        included; None for one that cannot be.
    """

    sinks: Sinks
    kept: frozenset[str] = frozenset()
    budget: float = float("inf")
    partly: tuple[str, float] | None = None
    at_once: bool = False
    brief: bool = False
    notes: tuple[tuple[str, str], ...] = ()
    prices: Prices = ()

    def rebuilt(self, step: Callable[[Operator], Operator]) -> Draft:
        """With ``step`` applied to every operator; this one when that changes nothing."""
        sinks = rebuild(self.sinks, step)
        same = all(a is b for a, b in zip(sinks, self.sinks, strict=True))
        return self if same else replace(self, sinks=sinks)

    def note(self, op: Operator, text: str) -> Draft:
        """The same with a further note."""
        return replace(self, notes=(*self.notes, (op.token, text)))


@dataclass(frozen=True)
class Context:
    """What a rule may look at besides the draft.

    Attributes
    ----------
    profile : Profile or None
        None where no sample was taken: the data are small.
    budget : int
        Bytes that may be kept.
    known : frozenset of token
        Models that are there already.
    passes : callable
        How often a model's fit reads its input.
    there : frozenset of token
        Rows that are there already.
    keep : str
        How `keep_results` chooses: "best", or a name of `mlopt.caching.STRATEGIES`.
    at_once : bool
        Whether one graph may hold all fits: rows are one block in this process, no later
        run wants any of them, and no fit draws numbers that another in turn would draw.
    """

    profile: Profile | None
    budget: int
    known: frozenset[str] = frozenset()
    passes: Callable[[Learn], float] = field(default=lambda _: 1.0)
    there: frozenset[str] = frozenset()
    keep: str = "best"
    at_once: bool = False


Rule = Callable[[Draft, Context], Draft]
"""Gives a draft with the same values; the same object when nothing changes."""
