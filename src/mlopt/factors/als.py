"""Alternating least squares, of ratings and of counts, as `mlopt.training.Training`s."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import Executor
from mlopt.errors import InputError
from mlopt.factors.model import Factors, padded
from mlopt.factors.ratings import Ratings
from mlopt.factors.sgd import Rule
from mlopt.factors.shelves import MOST
from mlopt.kernels.factors_als import confide_rows, solve_rows

Array = NDArray[Any]
Rows = tuple[Array, Array, Array]

STEPS = 3
"""Of conjugate gradients for a row and pass, as its source has it: more change little."""
_ROUNDS, _STILL = 50, 1e-6
"""Rounds of steps at most for a solution, and the share of the largest factor by which the
last may move one: steps in single precision lose their way where counts weigh much."""


class ALSTraining:
    """Passes over all ratings: every user's factors, then every item's.

    Parameters
    ----------
    ratings : Ratings
    start : Factors
    rule : Rule
    passes : int
        That ``start`` has behind it.
    executor : Executor
        Of this process: its threads write to the factors.
    confidence : float, optional
        What a count of 1 weighs more than none, where ratings are counts.
    """

    def __init__(
        self,
        ratings: Ratings,
        start: Factors,
        rule: Rule,
        *,
        passes: int,
        executor: Executor,
        confidence: float | None = None,
    ) -> None:
        self.rule, self.confidence, self.executor = rule, confidence, executor
        self.passes, self.done = passes, False
        self.ratings = ratings
        self.sides = ratings.rows, ratings.by_item().rows
        self.now = start

    def advance(self, passes: int) -> None:
        """Train for so many more passes."""
        for _ in range(passes):
            now, (users, items) = self.now, self.sides
            P, b = self._half(users, now.Q, now.c, now.P, now.b)
            Q, c = self._half(items, P, b, now.Q, now.c)
            self.now = Factors(P, Q, b, c, now.mean)
            self.passes += 1

    def _half(
        self, rows: Rows, F: Array, other: Array, Z: Array, own: Array
    ) -> tuple[Array, Array]:
        return half(
            rows, F, other, (Z, own), self.now.mean, self.rule, self.confidence,
            executor=self.executor,
        )  # fmt: skip

    def quality(self) -> float:
        """The negative root of the mean squared error at the ratings."""
        r = self.ratings
        return -self.now.rmse(r.users, r.items, r.values, self.confidence)

    def factors(self) -> Factors:
        """Users' and items' by their numbers."""
        return self.now

    def state(self) -> dict[str, Any]:
        """Factors, biases and passes."""
        now = self.now
        return {"P": now.P, "Q": now.Q, "b": now.b, "c": now.c, "passes": self.passes}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        P, Q, b, c = (state[name] for name in ("P", "Q", "b", "c"))
        self.now, self.passes = Factors(P, Q, b, c, self.now.mean), state["passes"]


def half(
    rows: Rows,
    F: Array,
    biases: Array,
    start: tuple[Array, Array],
    mean: float,
    rule: Rule,
    confidence: float | None,
    *,
    executor: Executor,
    steps: int = STEPS,
    ends: bool = False,
) -> tuple[Array, Array]:
    """The factors and biases of one side for those of the other.

    Parameters
    ----------
    rows : starts, numbers on the other side, ratings
    F : (other side, k)
    biases : (other side,)
    start : (n, k) and (n,)
        Where steps begin.
    mean : float
    rule : Rule
    confidence : float or None
        None for ratings, which are solved for; for counts see `ALSTraining`.
    executor : Executor
    steps : int
        Of conjugate gradients, for counts.
    ends : bool
        Whether rows that may not be negative are to be at the solution, and not near it.

    Returns
    -------
    (n, k) and (n,)
        Zeros for a row without ratings.

    Raises
    ------
    InputError
        When they are not finite.
    """
    starts, numbers, values = rows
    k, biased = F.shape[1], rule.biased
    features, Z = padded(F, biased), padded(start[0], biased)
    if biased:
        features[:, k], Z[:, k] = 1, start[1]
    edges = np.searchsorted(starts, starts[-1] * np.arange(1, MOST) / MOST)
    cuts = np.unique(np.concatenate(([0], edges, [len(Z)])))
    spans = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
    if confidence is None:
        targets = values - np.float32(mean) - biases[numbers]

        def work(span: tuple[int, int]) -> None:
            solve_rows(
                (starts, numbers, targets), features, Z, columns=k + biased,
                penalty=rule.penalty, bounded=k if rule.nonnegative else 0, ends=ends,
                first=span[0], last=span[1],
            )  # fmt: skip
    else:
        some = values > 0
        weights = np.float32(confidence) * values
        if not some.all():  # a count of zero is none
            starts = np.concatenate(([0], np.cumsum(some)))[starts]
            numbers, weights = numbers[some], weights[some]
        gram = features.T @ features
        gram[np.diag_indices_from(gram)] += np.float32(rule.penalty)
        Z[np.diff(starts) == 0] = 0

        def work(span: tuple[int, int]) -> None:
            confide_rows(
                (starts, numbers, weights), features, gram, Z, steps=steps,
                first=span[0], last=span[1],
            )  # fmt: skip

    executor.map(work, spans)
    if not np.isfinite(Z).all():
        raise InputError(
            f"Factors must stay finite in single precision: raise `alpha`, which is "
            f"{rule.penalty:g}, or scale the ratings down, or `confidence`."
        )
    return Z[:, :k].copy(), Z[:, k].copy() if biased else start[1]


def solution(
    rows: Rows,
    F: Array,
    biases: Array,
    mean: float,
    rule: Rule,
    confidence: float | None,
    *,
    executor: Executor,
) -> tuple[Array, Array]:
    """As `half`, from zeros and to the end: steps begin anew until nothing moves."""
    n, k = len(rows[0]) - 1, F.shape[1]
    Z, own = np.zeros((n, k), np.float32), np.zeros(n, np.float32)
    for _ in range(_ROUNDS):
        before = Z
        Z, own = half(
            rows, F, biases, (Z, own), mean, rule, confidence, executor=executor,
            steps=k, ends=True,
        )  # fmt: skip
        moved, largest = (np.abs(A).max(initial=0) for A in (Z - before, Z))
        if confidence is None or moved <= _STILL * largest:
            break
    return Z, own
