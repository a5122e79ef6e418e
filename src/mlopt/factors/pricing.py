"""What passes of SGD take on threads and on members, which come to the same factors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlopt.factors.model import Factors, padded
from mlopt.factors.sgd import Rule, program_of
from mlopt.factors.shelves import Grid
from mlopt.locking import cached_property
from mlopt.prices import price
from mlopt.server.layouts.pool import Pool
from mlopt.server.layouts.pricing import Load, Priced, rotate, threads
from mlopt.server.layouts.timing import timed

_RATING, _FACTOR = price("factors.rating"), price("factors.factor")


@dataclass(frozen=True)
class Passes:
    """Passes over ratings on shelves.

    Parameters
    ----------
    grid : Grid
    start : Factors
    rule : Rule
    seed : int
    count : int
    looks : int
        How often factors are judged on the way.
    """

    grid: Grid
    start: Factors
    rule: Rule
    seed: int
    count: int
    looks: int

    def __str__(self) -> str:
        ratings, side = self._ratings, self.grid.side
        return f"{self.count} passes over {ratings} ratings on {side} x {side} shelves"

    @property
    def _ratings(self) -> int:
        return sum(len(shelf[2]) for row in self.grid.shelves for shelf in row)

    def prices(self, pool: Pool, measure: bool) -> list[Priced]:
        """On threads, and on members."""
        load = self._load(pool, measure)
        found = rotate(load, pool)
        if self.grid.side == 1:
            found = Priced("rotate", found.place, None, "rotate: so few are on one shelf")
        elif not pool.apart:
            why = "the same threads, and messages between them"
            found = found._replace(why=found.why or why)
        return [threads(load, pool), found]

    @cached_property
    def _timed(self) -> float:
        return timed(program_of(self.grid, self.start, self.rule, self.seed))

    def _load(self, pool: Pool, measure: bool) -> Load:
        side, start = self.grid.side, self.start
        width = padded(start.P[:1]).shape[1]
        row, ratings = 4 * (width + 1), self._ratings
        if measure and side > 1:
            step = self._timed
        else:
            seconds = ratings * (_RATING + width * _FACTOR) / pool.resources.python
            step = seconds / side**2
        shelves = sum(_bytes(shelf) for line in self.grid.shelves for shelf in line)
        return Load(
            self.count, side, side, step, rows=shelves, part=row * len(start.Q) / side,
            states=row * len(start.P), looks=self.looks,
        )  # fmt: skip


def _bytes(shelf: Any) -> int:
    return sum(array.nbytes for array in shelf)


def as_least_squares(pool: Pool, measure: bool) -> list[Priced]:
    """Of alternating least squares, whose passes nothing is said of."""
    del measure
    place = f"{pool.here} thread{'s' * (pool.here > 1)}"
    why = 'rotate: is for `solver` "sgd"; least squares of one side need all of the other'
    return [Priced("threads", place, None), Priced("rotate", "", None, why)]
