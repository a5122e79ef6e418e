"""Sample: Bernoulli, random-partition and shuffled-partition (ML4all, section 6).

They differ in what they touch: everything, one place for each row, or one partition for
many iterations. All randomness comes from the seed and the number of the iteration, so
that a checkpoint holds two numbers and no generator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import cast

import numpy as np

from mlopt.gd.operators.interfaces import Batch, Context, Units, pick, stacked
from mlopt.gd.operators.sources import Source
from mlopt.parameters import check_count

_ROWS, _ORDER, STAGE, SPECULATION = range(4)
"""Streams of random numbers: which rows of an iteration, the order of partitions, the rows
for Stage, and those for speculation."""


@dataclass(frozen=True)
class Sampler(ABC):
    """A Sample that reads rows by itself, rather than naming them.

    Parameters
    ----------
    size : int, default=1
        m: rows of a sample.
    """

    size: int = 1

    def __post_init__(self) -> None:
        check_count("size", self.size)

    @abstractmethod
    def draw(self, source: Source, context: Context) -> Units | None:
        """The rows of this iteration; None for all rows."""


def generator_of(context: Context, stream: int, number: int) -> np.random.Generator:
    """Random numbers that depend on the seed and ``number`` alone."""
    return np.random.default_rng([context["seed"], stream, number])


@dataclass(frozen=True)
class Bernoulli(Sampler):
    """Every row with probability ``size / n``, independently: scans all partitions.

    The number of rows varies; a sample without rows is drawn again.
    """

    def draw(self, source: Source, context: Context) -> Units | None:
        """Scan the source and keep each row by its own coin."""
        generator = generator_of(context, _ROWS, context["iteration"])
        probability = min(1.0, self.size / source.n)
        while True:
            kept = []
            for units in source.scan():
                chosen = np.flatnonzero(generator.random(len(units)) < probability)
                if len(chosen):
                    kept.append(pick(units, chosen))
            if kept:
                return _joined(kept)


def _joined(parts: list[Units]) -> Units:
    if isinstance(parts[0], Batch):
        return stacked(cast(list[Batch], parts))
    return [line for part in cast(list[list[bytes]], parts) for line in part]


@dataclass(frozen=True)
class RandomPartition(Sampler):
    """Each row from a random place in a random partition, with replacement."""

    def draw(self, source: Source, context: Context) -> Units | None:
        """Go to ``size`` random places."""
        generator = generator_of(context, _ROWS, context["iteration"])
        return source.random(generator, self.size)


@dataclass(frozen=True)
class ShuffledPartition(Sampler):
    """One random partition, shuffled, then read in that order until it is used up.

    A partition of p rows serves ``ceil(p / size)`` iterations; the last of them may have
    fewer rows. Partitions are drawn uniformly: each is read to its end, so in the long run
    all rows are used equally often, however unequal the partitions are.
    """

    def draw(self, source: Source, context: Context) -> Units | None:
        """The next rows of the present partition."""
        visit, place = context.get("shuffled", (0, 0))
        units = self._visit(source, context, visit)
        while place >= len(units):
            visit, place = visit + 1, 0
            units = self._visit(source, context, visit)
        context["shuffled"] = (visit, place + self.size)
        order = context["_shuffled"][1][place : place + self.size]
        return pick(units, order)

    def _visit(self, source: Source, context: Context, visit: int) -> Units:
        cached = context.get("_shuffled")
        if cached is None or cached[2] != visit:
            generator = generator_of(context, _ORDER, visit)
            units = source.partition(int(generator.integers(source.partitions)))
            cached = (units, generator.permutation(len(units)), visit)
            context["_shuffled"] = cached
        return cast(Units, cached[0])


@dataclass(frozen=True)
class Flattened(Sampler):
    """All rows in iterations 1, 1 + every, 1 + 2 every, ...; otherwise another Sampler.

    SVRG's two nested loops as one (ML4all, Algorithm 2: ``t mod m = 1``).
    """

    every: int = 100
    inner: Sampler = RandomPartition()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("every", self.every)

    def draw(self, source: Source, context: Context) -> Units | None:
        """None, that is all rows, or what the inner Sampler draws."""
        if is_snapshot(context["iteration"], self.every):
            return None
        return self.inner.draw(source, context)


def is_snapshot(iteration: int, every: int) -> bool:
    """Whether SVRG takes the full gradient in this iteration."""
    return iteration % every == 1 % every
