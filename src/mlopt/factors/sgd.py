"""Stochastic gradient descent over shelves, as a `mlopt.training.Training`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import Executor
from mlopt.errors import InputError
from mlopt.factors.model import Factors, padded
from mlopt.factors.ratings import Ratings
from mlopt.factors.shelves import Grid
from mlopt.kernels.factors_sgd import visit
from mlopt.server.strata import Turns

Array = NDArray[Any]


@dataclass(frozen=True)
class Rule:
    """What a training minimises, and how it steps.

    Parameters
    ----------
    penalty, rate, decay : float
        The rate of a pass is ``rate decay^p`` after ``p`` passes.
    biased, nonnegative : bool
    """

    penalty: float
    rate: float
    decay: float
    biased: bool
    nonnegative: bool


class SGDTraining:
    """Passes over all ratings, to the bit the same on any number of threads.

    Parameters
    ----------
    ratings : Ratings
    start : Factors
    rule : Rule
    seed : int
        Of the order of ratings and rounds.
    passes : int
        That ``start`` has behind it.
    executor : Executor
        Of this process: its threads change the factors in place.
    grid : Grid, optional
        Of these ratings and this seed.
    """

    def __init__(
        self,
        ratings: Ratings,
        start: Factors,
        rule: Rule,
        *,
        seed: int,
        passes: int,
        executor: Executor,
        grid: Grid | None = None,
    ) -> None:
        self.rule, self.turns, self.executor = rule, Turns(seed), executor
        self.n, self.k, self.mean = len(ratings.values), start.P.shape[1], start.mean
        self.grid = grid or Grid.of(ratings, seed)
        self.passes, self.done, self._error = passes, False, math.nan
        self._take(start)

    def _take(self, start: Factors) -> None:
        users, items = self.grid.users, self.grid.items
        self.P, self.Q = users.arranged(padded(start.P)), items.arranged(padded(start.Q))
        self.b, self.c = users.arranged(start.b), items.arranged(start.c)

    def advance(self, passes: int) -> None:
        """Train for so many more passes.

        Raises
        ------
        InputError
            When factors grow without bounds.
        """
        side = self.grid.side
        for _ in range(passes):
            rate, error = self.rule.rate * self.rule.decay**self.passes, 0.0
            for turn in self.turns(side, self.passes):
                cells = [(a, (a + turn) % side, rate) for a in range(side)]
                error += sum(self.executor.map(self._visit, cells))
            self.passes += 1
            self._error = math.sqrt(error / self.n) if error < math.inf else math.inf
            if not math.isfinite(self._error) or not np.isfinite(self.P).all():
                raise InputError(
                    f"Factors must stay finite, but grew without bounds in pass "
                    f"{self.passes}: lower `learning_rate`, which is {self.rule.rate:g}, "
                    "or scale the ratings down."
                )

    def _visit(self, cell: tuple[int, int, float]) -> float:
        stratum, block, rate = cell
        own = slice(*self.grid.users.edges[stratum : stratum + 2])
        theirs = slice(*self.grid.items.edges[block : block + 2])
        return visit(
            self.grid.shelves[stratum][block],
            (self.P[own], self.Q[theirs]),
            (self.b[own], self.c[theirs]),
            mean=self.mean, rate=rate, penalty=self.rule.penalty,
            biased=self.rule.biased, nonnegative=self.rule.nonnegative,
        )  # fmt: skip

    def quality(self) -> float:
        """The negative root of the mean squared error of the last pass, on its way."""
        return -self._error

    def factors(self) -> Factors:
        """Copies, users and items by their numbers."""
        users, items, k = self.grid.users.place, self.grid.items.place, self.k
        P, Q = self.P[users][:, :k].copy(), self.Q[items][:, :k].copy()
        return Factors(P, Q, self.b[users], self.c[items], self.mean)

    def state(self) -> dict[str, Any]:
        """Factors, biases and passes."""
        now = self.factors()
        return {
            "P": now.P, "Q": now.Q, "b": now.b, "c": now.c, "passes": self.passes,
            "error": self._error,
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        P, Q, b, c = (state[name] for name in ("P", "Q", "b", "c"))
        self._take(Factors(P, Q, b, c, self.mean))
        self.passes, self._error = state["passes"], state["error"]
