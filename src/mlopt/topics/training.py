"""Sweeps over all tokens, by several threads at a time.

::

    topics of the tokens  ->  counts of words and topics
      each shard of documents draws its topics anew, from a copy of the counts
      that only its own tokens change
    topics of the tokens  ->  counts, exactly

With one shard, as small data have, nobody works with old counts: that is the sequential
sampler. Source: Newman, Asuncion, Smyth and Welling, "Distributed algorithms for topic
models", JMLR 10, 2009.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import Executor
from mlopt.kernels.gibbs import sweep
from mlopt.prices import count
from mlopt.topics.counting import Priors, is_sparse, likelihood, lists, padded_table
from mlopt.topics.documents import Documents

Array = NDArray[Any]

SHARD = count("gibbs.shard")
MOST = 16
"""Shards at most: as many threads can work at a time, and so many copies of the counts."""


def shards_of(n: int) -> int:
    """Of so many tokens: 1 if they are swept one after the other."""
    return min(MOST, max(1, n // SHARD))


def first_topics(n: int, topics: int, seed: int) -> Array:
    """Any topic for every token, int32 (n,)."""
    return np.random.default_rng([seed, 0]).integers(topics, size=n, dtype=np.int32)


def likely_topics(documents: Documents, shares: Array, seed: int) -> Array:
    """A topic for every token, as likely as its word makes it, int32 (n,).

    Parameters
    ----------
    documents : Documents
    shares : float64 ndarray (topics, words)
        Of a word in each topic.
    """
    upto = np.cumsum(shares, axis=0)
    tokens, begins = documents.by_word
    drawn = np.random.default_rng([seed, 0]).random(len(documents.words))
    out = np.empty(len(documents.words), np.int32)
    for word in np.flatnonzero(np.diff(begins)):
        own = tokens[begins[word] : begins[word + 1]]
        edges = upto[:, word]
        out[own] = np.searchsorted(edges[:-1], drawn[own] * edges[-1], side="right")
    return out


class GibbsTraining:
    """Sweeps over all tokens; on any number of threads the same, to the bit.

    Parameters
    ----------
    documents : Documents
    topics : int32 ndarray (n,)
        Of each token, to begin with.
    number : int
        Of topics.
    priors : Priors
    sampler : {"auto", "dense", "sparse"}
        Whether all topics are looked at for each token, or those that there are.
    seed : int
    passes : int
        Sweeps that ``topics`` have behind them.
    executor : Executor
        Of this process: its threads change the topics in place.
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
        executor: Executor,
    ) -> None:
        self.documents, self.topics, self.number = documents, topics.copy(), number
        self.priors, self.seed, self.executor = priors, seed, executor
        self.sparse = is_sparse(sampler, number)
        self.shards = documents.shards(shards_of(len(topics)))
        self.passes, self.done = passes, False
        self._model: tuple[Array, ...] | None = None
        self._of_all: Array = np.empty(0)

    def advance(self, passes: int) -> None:
        """Draw all topics so many times anew."""
        for _ in range(passes):
            if self._model is None:
                self._count()
            self.passes += 1
            self.executor.map(self._sweep, range(len(self.shards)))
            if len(self.shards) > 1:
                self._model = None

    def _sweep(self, number: int) -> None:
        rows, tokens = self.shards[number]
        starts = self.documents.starts[rows.start : rows.stop + 1]
        model, of_all = self._model, self._of_all
        assert model is not None
        if len(self.shards) > 1:
            # Where the room of a word begins is the same for all.
            same = model[:-3]
            own = (array.copy() for array in model[len(same) :])
            model, of_all = (*same, *own), of_all.copy()
        sweep(
            self.documents.words[tokens], starts - starts[0], self.topics[tokens], model,
            of_all, alpha=self.priors.alpha, beta=self.priors.beta,
            seed=(self.seed, self.passes, number),
        )  # fmt: skip

    def _count(self) -> None:
        self._of_all = np.bincount(self.topics, minlength=self.number).astype(np.int64)
        given = self.documents, self.topics, self.number
        self._model = lists(*given) if self.sparse else (padded_table(*given),)

    def quality(self) -> float:
        """The mean logarithm of how likely tokens are, given the topics that there are."""
        return likelihood(self.documents, self.topics, self.number, self.priors)

    def state(self) -> dict[str, Any]:
        """Topics and passes; and of lists that go from sweep to sweep the order, which
        topics of equal counts have from what was before."""
        state = {"topics": self.topics.copy(), "passes": self.passes}
        if self.sparse and self._model is not None:
            state["lists"] = [array.copy() for array in self._model[1:]]
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`, or from the topics of a `RotatingGibbs`."""
        self.topics, self.passes = state["topics"].copy(), state["passes"]
        self._model = None
        if self.sparse and "lists" in state:
            self._count()
            assert self._model is not None
            self._model = self._model[0], *(array.copy() for array in state["lists"])
