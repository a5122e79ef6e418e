"""Stochastic gradient descent: strata of users stay, blocks of items go round.

In this process the only member has all of them, and its threads the strata.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import Mesh
from mlopt.errors import InputError
from mlopt.factors.model import Factors, padded
from mlopt.factors.ratings import Ratings
from mlopt.factors.shelves import Grid, Shelf
from mlopt.kernels.factors_sgd import visit
from mlopt.server.layouts.rotate import Rotate
from mlopt.server.program import Part, Program, Step
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


@dataclass(frozen=True)
class Visits(Step):
    """A step for each rating of a shelf."""

    rule: Rule
    mean: float

    def visit(self, cell: Shelf, part: Part, state: Part, passes: int) -> float:
        return visit(
            cell,
            (state["P"], part["Q"]),
            (state["b"], part["c"]),
            mean=self.mean, rate=self.rule.rate * self.rule.decay**passes,
            penalty=self.rule.penalty, biased=self.rule.biased,
            nonnegative=self.rule.nonnegative,
        )  # fmt: skip


class SGDTraining:
    """A `mlopt.training.Training`: passes over all ratings, to the bit the same on any
    number of threads and members.

    Parameters
    ----------
    ratings : Ratings
    start : Factors
    rule : Rule
    seed : int
        Of the order of ratings and rounds.
    passes : int
        That ``start`` has behind it.
    mesh : Mesh
        Given a service.
    threads : int, optional
        Of each member. Default: its cores.
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
        mesh: Mesh,
        threads: int | None = None,
        grid: Grid | None = None,
    ) -> None:
        self.rule, self.done = rule, False
        self.n, self.k, self.mean = len(ratings.values), start.P.shape[1], start.mean
        self.grid, self.seed, self.mesh = grid or Grid.of(ratings, seed), seed, mesh
        self.threads, self._error = threads, math.nan
        self.layout = self._laid_out(start, passes)

    @property
    def passes(self) -> int:
        """Passes over the ratings so far."""
        return self.layout.passes

    def advance(self, passes: int) -> None:
        """Train for so many more passes.

        Raises
        ------
        InputError
            When factors grow without bounds.
        ClusterError
            When no member is left.
        """
        if passes <= 0:
            return
        self.layout.advance(passes)  # all at once: a task takes Dask milliseconds
        loss = self.layout.loss
        self._error = math.sqrt(loss / self.n) if loss < math.inf else math.inf
        if not math.isfinite(self._error):
            self._refuse()

    def quality(self) -> float:
        """The negative root of the mean squared error of the last pass, on its way."""
        return -self._error

    def factors(self) -> Factors:
        """Copies, users and items by their numbers.

        Raises
        ------
        InputError
            When they have grown without bounds.
        """
        parts, states = self.layout.model()
        users, items = self.grid.users.place, self.grid.items.place
        P, b = _joined(states, "P", "b")
        Q, c = _joined(parts, "Q", "c")
        if not np.isfinite(P).all():
            self._refuse()
        P, Q = P[users][:, : self.k].copy(), Q[items][:, : self.k].copy()
        return Factors(P, Q, b[users], c[items], self.mean)

    def state(self) -> dict[str, Any]:
        """Factors, biases and passes."""
        now = self.factors()
        return {
            "P": now.P, "Q": now.Q, "b": now.b, "c": now.c, "passes": self.passes,
            "error": self._error,
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        self.layout.close()
        P, Q, b, c = (state[name] for name in ("P", "Q", "b", "c"))
        start = Factors(P, Q, b, c, self.mean)
        self.layout = self._laid_out(start, state["passes"])
        self._error = state["error"]

    def close(self) -> None:
        """Let go of the members."""
        self.layout.close()

    def _laid_out(self, start: Factors, passes: int) -> Rotate:
        program = program_of(self.grid, start, self.rule, self.seed)
        return Rotate(program, self.mesh, passes=passes, threads=self.threads)

    def _refuse(self) -> NoReturn:
        raise InputError(
            f"Factors must stay finite, but grew without bounds by pass {self.passes}: "
            f"lower `learning_rate`, which is {self.rule.rate:g}, or scale the ratings "
            "down."
        )


def program_of(grid: Grid, start: Factors, rule: Rule, seed: int) -> Program:
    """What is to be done: strata of users, blocks of items, shelves for both."""
    users, items = grid.users, grid.items
    P, b = users.arranged(padded(start.P)), users.arranged(start.b)
    Q, c = items.arranged(padded(start.Q)), items.arranged(start.c)
    theirs = [slice(*items.edges[at : at + 2]) for at in range(grid.side)]
    own = [slice(*users.edges[at : at + 2]) for at in range(grid.side)]
    return Program(
        Visits(rule, start.mean),
        [{"Q": Q[rows], "c": c[rows]} for rows in theirs],
        grid.shelves,
        [{"P": P[rows], "b": b[rows]} for rows in own],
        Turns(seed),
    )


def _joined(parts: Sequence[Part], *names: str) -> tuple[Array, ...]:
    return tuple(np.concatenate([part[name] for part in parts]) for name in names)
