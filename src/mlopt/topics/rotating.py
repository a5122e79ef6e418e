"""Sweeps on members: documents stay, counts of blocks of words go from member to member.

::

    a part     counts of its words, and their sum over words: exact, one owner at a time
    a stratum  the topics of its tokens, and the sums of all parts as it last saw them

The sum of a topic over all words is thus exact for the words of the part that is at hand,
and at most a pass old for the others; who draws when makes no difference to it, so topics
are the same on any number of members. Sources: Gemulla et al., KDD 2011; for topics Yu,
Hsieh, Yun, Vishwanathan, Dhillon, "A scalable asynchronous distributed algorithm for topic
modeling", WWW 2015, whose sums of topics go round, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from mlopt.cluster import Mesh
from mlopt.kernels.gibbs import sweep
from mlopt.server.layouts.rotate import Rotate
from mlopt.server.program import Part, Program, Step
from mlopt.server.strata import Turns
from mlopt.topics.counting import Priors, is_sparse, likelihood
from mlopt.topics.documents import Array, Documents
from mlopt.topics.strata import Cell, Strata

LISTS = ("kept", "counts", "sizes")
"""What a part has in place of a table of counts, for the sparse sampler."""


@dataclass(frozen=True)
class Draws(Step):
    """The topic of each token of a cell, drawn anew."""

    priors: Priors
    seed: int

    def visit(self, cell: Cell, part: Part, state: Part, passes: int) -> float:
        where, words, upto, first, starts, *rooms = cell
        stratum, block, vocabulary = where.tolist()
        seen, own = state["seen"], part["of_all"]
        seen[block] = own
        before = seen.sum(axis=0)
        of_all = before.copy()
        counts = LISTS if rooms else ("of_words",)
        model = *rooms, *(part[name] for name in counts)
        sweep(
            words, starts, state["topics"], model, of_all, alpha=self.priors.alpha,
            beta=self.priors.beta, seed=(self.seed, passes, stratum, block),
            vocabulary=vocabulary, some=(upto, first),
        )  # fmt: skip
        own += of_all - before
        seen[block] = own
        return 0.0


class RotatingGibbs:
    """Sweeps over all tokens, on any number of members the same, to the bit.

    Parameters
    ----------
    documents, topics, number, priors, sampler, seed, passes
        As of `GibbsTraining`.
    mesh : Mesh
        Given a service.
    threads : int, optional
        Of each member. Default: its cores.
    side : int, optional
        See `Strata.of`.
    cut : tuple of Strata and Program, optional
        Of these documents and topics.
    """

    def __init__(
        self,
        documents: Documents,
        topics: Array,
        number: int,
        priors: Priors,
        *,
        sampler: str = "auto",
        seed: int,
        passes: int = 0,
        mesh: Mesh,
        threads: int | None = None,
        side: int | None = None,
        cut: tuple[Strata, Program] | None = None,
    ) -> None:
        self.documents, self.number, self.priors = documents, number, priors
        self.sparse, self.seed, self.done = is_sparse(sampler, number), seed, False
        self.mesh, self.threads = mesh, threads
        self.strata = cut[0] if cut else Strata.of(documents, seed, side)
        program = cut[1] if cut else self._program({"topics": topics})
        self.layout = self._laid_out(program, passes)

    @property
    def passes(self) -> int:
        """Sweeps so far."""
        return self.layout.passes

    @property
    def topics(self) -> Array:
        """Of all tokens."""
        return self.strata.topics(self.layout.model()[1])

    def advance(self, passes: int) -> None:
        """Draw all topics so many times anew.

        Raises
        ------
        ClusterError
            When no member is left.
        """
        if passes > 0:
            self.layout.advance(passes)

    def quality(self) -> float:
        """The mean logarithm of how likely tokens are, given the topics that there are."""
        return likelihood(self.documents, self.topics, self.number, self.priors)

    def state(self) -> dict[str, Any]:
        """Topics and passes; and what they do not tell: the sums that strata have last
        seen, and the order of lists."""
        parts, states = self.layout.model()
        return {
            "topics": self.strata.topics(states),
            "passes": self.passes,
            "seen": [state["seen"] for state in states],
            "rooms": [
                {name: part[name] for name in LISTS if name in part} for part in parts
            ],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`, or from the topics of a `GibbsTraining`."""
        self.layout.close()
        self.layout = self._laid_out(self._program(state), state["passes"])

    def close(self) -> None:
        """Let go of the members."""
        self.layout.close()

    def _program(self, state: Mapping[str, Any]) -> Program:
        given = self.number, self.priors, self.sparse, self.seed
        return program_of(self.strata, state, *given)

    def _laid_out(self, program: Program, passes: int) -> Rotate:
        return Rotate(program, self.mesh, passes=passes, threads=self.threads)


def program_of(
    strata: Strata,
    state: Mapping[str, Any],
    number: int,
    priors: Priors,
    sparse: bool,
    seed: int,
) -> Program:
    """What is to be done: strata of documents, blocks of words, tokens of both.

    Of a ``state`` of such a training all counts; of another one, those of its topics.
    """
    topics = state["topics"]
    model = strata.model(topics, number, sparse)
    states = strata.states(topics, model)
    if len(state.get("seen", ())) == strata.side:
        for part, rooms in zip(model, state["rooms"], strict=True):
            if rooms.keys() <= part.keys():
                cast(dict[str, Array], part).update(rooms)
        for own, seen in zip(states, state["seen"], strict=True):
            cast(dict[str, Array], own).update(seen=seen)
    cells = strata.cells(number, sparse)
    return Program(Draws(priors, seed), model, cells, states, Turns(seed))
