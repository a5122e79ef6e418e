"""What sweeps take on threads and on members; who draws which topics, the data alone say.

::

    few tokens     one after the other, in this process: the sampler as it is defined
    many tokens    strata that rotate, in this process or on members: the same to the bit
                   (shards of "threads" have counts of each other that are a sweep old)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlopt.kernels.gibbs import LANES
from mlopt.locking import cached_property
from mlopt.prices import price
from mlopt.server.layouts.places import Places
from mlopt.server.layouts.pool import Pool
from mlopt.server.layouts.pricing import Load, Priced, rotate, threads
from mlopt.server.layouts.timing import timed
from mlopt.server.program import Program
from mlopt.topics.counting import Priors, is_sparse
from mlopt.topics.documents import Array, Documents
from mlopt.topics.rotating import RotatingGibbs, program_of
from mlopt.topics.strata import Strata, sides_of
from mlopt.topics.training import GibbsTraining, shards_of

_TOKEN = price("gibbs.token.dense"), price("gibbs.token.sparse")
_TOPIC = price("gibbs.topic.dense"), price("gibbs.topic.sparse")
_INT = 4
"""Bytes of a topic, a word and a count."""


@dataclass(frozen=True)
class Sweeps:
    """Sweeps over the tokens of documents.

    Parameters
    ----------
    documents : Documents
    state : mapping
        Topics to begin with, and passes behind them; of a training's `state` all of it.
    number : int
        Of topics.
    priors : Priors
    sampler : {"auto", "dense", "sparse"}
    seed : int
    last : int
        Passes at the end.
    """

    documents: Documents
    state: Mapping[str, Any]
    number: int
    priors: Priors
    sampler: str
    seed: int
    last: int

    @property
    def topics(self) -> Array:
        """Of each token, int32 (n,), to begin with."""
        topics: Array = self.state["topics"]
        return topics

    @property
    def passes(self) -> int:
        """Behind them."""
        return int(self.state["passes"])

    def __str__(self) -> str:
        return f"{self.last - self.passes} sweeps over {len(self.topics)} tokens"

    @property
    def are_few(self) -> bool:
        """Whether tokens are few enough to be swept one after the other."""
        return shards_of(len(self.topics)) == 1

    def training(self, places: Places) -> GibbsTraining | RotatingGibbs:
        """Where it takes the least of what comes to the same topics, unless told."""

        def pricing(pool: Pool, measure: bool) -> list[Priced]:
            return self.prices(pool, measure, places.layout)

        chosen = places.choose(str(self), pricing)
        given = self.documents, self.topics, self.number, self.priors
        how = {"sampler": self.sampler, "seed": self.seed, "passes": self.passes}
        if chosen.layout == "threads":
            training = GibbsTraining(*given, **how, executor=places.threads)  # type: ignore[arg-type]
            training.restore(self.state)
            return training
        count = None if chosen.apart else places.pool.here
        return RotatingGibbs(*given, **how, mesh=places.mesh, threads=count, cut=self._cut)  # type: ignore[arg-type]

    def prices(self, pool: Pool, measure: bool, wanted: str = "auto") -> list[Priced]:
        """On threads, on members, and in this process as the only one."""
        load = self._load(pool, measure, sides_of(len(self.topics)))
        here = threads(self._load(pool, False, shards_of(len(self.topics))), pool)
        found = [rotate(load, pool)]
        if pool.apart and wanted == "auto":
            found.append(rotate(load, pool.alone))
        if self.are_few:
            why = "other topics: so few tokens are swept one after the other"
            return [here, *(one._replace(why=one.why or why) for one in found)]
        why = "other topics: those that rotate are the same wherever they are"
        return [here._replace(why=here.why or why), *found]

    @cached_property
    def _cut(self) -> tuple[Strata, Program]:
        strata = Strata.of(self.documents, self.seed)
        sparse = is_sparse(self.sampler, self.number)
        given = self.state, self.number, self.priors, sparse, self.seed
        return strata, program_of(strata, *given)

    @cached_property
    def _timed(self) -> float:
        return timed(self._cut[1], self.passes)

    def _load(self, pool: Pool, measure: bool, side: int) -> Load:
        n, words, sparse = len(self.topics), self.documents.vocabulary, self._sparse
        if measure and not self.are_few:
            step = self._timed
        else:
            seconds = n * (_TOKEN[sparse] + self.number * _TOPIC[sparse])
            step = seconds / pool.resources.python / side**2
        counts = min(2 * n, 2 * words * self.number) if sparse else words * self._width
        lines = 3 * self.documents.count * side * 2 * _INT
        return Load(
            self.last - self.passes, side, side, step, rows=float(_INT * n + lines),
            part=_INT * counts / side, states=float(_INT * n),
        )  # fmt: skip

    @property
    def _sparse(self) -> bool:
        return is_sparse(self.sampler, self.number)

    @property
    def _width(self) -> int:
        return -(-self.number // LANES) * LANES
