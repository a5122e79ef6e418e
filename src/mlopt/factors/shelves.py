"""Ratings on shelves: strata of users across, blocks of items down.

::

             block 0   block 1   block 2
    stratum 0   1         2         3        shelves of one round share no user and no
    stratum 1   3         1         2        item: whoever works on them, in any order or
    stratum 2   2         3         1        at the same time, the result is the same

Users and items go to strata and blocks at random, so that shelves hold about as many
ratings each. A shelf has numbers within its stratum and its block: that is all that
somebody needs who is given both. Source: Gemulla et al., "Large-scale matrix factorization
with distributed stochastic gradient descent", KDD 2011.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.factors.ratings import Ratings
from mlopt.kernels.grouping import grouped
from mlopt.kernels.permutation import permutation
from mlopt.server.strata import Cut

Array = NDArray[Any]
Shelf = tuple[Array, Array, Array]

LEAST = 2**16
"""Ratings of a shelf on the average, at least: to hand over fewer takes longer than to
visit them."""
MOST = 16
"""Strata at most: as many threads can work at a time."""


@dataclass(frozen=True, eq=False)
class Grid:
    """All shelves: ``shelves[stratum][block]``."""

    users: Cut
    items: Cut
    shelves: tuple[tuple[Shelf, ...], ...]

    @property
    def side(self) -> int:
        """How many strata there are, and blocks."""
        return len(self.shelves)

    @staticmethod
    def of(ratings: Ratings, seed: int, side: int | None = None) -> Grid:
        """Put ratings on shelves, each in a random order.

        Parameters
        ----------
        ratings : Ratings
        seed : int
        side : int, optional
            Default: from the number of ratings alone, so that the result of a training
            depends on no machine.
        """
        n = len(ratings.values)
        fits = min(MOST, math.isqrt(n // LEAST), *ratings.shape)
        side = max(1, fits) if side is None else side
        users = Cut.of(np.diff(ratings.starts), side, seed, 0)
        counts = np.bincount(ratings.items, minlength=ratings.shape[1])
        items = Cut.of(counts, side, seed, 1)
        order = permutation(n, seed, 2)
        if side == 1:
            shelf = ratings.users[order], ratings.items[order], ratings.values[order]
            return Grid(users, items, ((shelf,),))
        u, i = users.place[ratings.users[order]], items.place[ratings.items[order]]
        stratum = np.searchsorted(users.edges[1:-1], u, side="right")
        block = np.searchsorted(items.edges[1:-1], i, side="right")
        found, starts = grouped(stratum * side + block, side * side)
        u = (u - users.edges[stratum])[found].astype(np.int32)
        i = (i - items.edges[block])[found].astype(np.int32)
        values = ratings.values[order[found]]
        cells = [slice(starts[c], starts[c + 1]) for c in range(side * side)]
        shelves = [(u[cell], i[cell], values[cell]) for cell in cells]
        return Grid(
            users,
            items,
            tuple(tuple(shelves[a * side : (a + 1) * side]) for a in range(side)),
        )
