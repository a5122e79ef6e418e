"""All rows in one piece in this process, for methods that step from row to row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import Threads
from mlopt.costs import Cost
from mlopt.gd.plans.method import Shape, problem_shape
from mlopt.gd.plans.task import Problem, beside
from mlopt.resources import Resources
from mlopt.resources.probe import memory_limit
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Gathered:
    """One problem's data.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, d)
    y : ndarray of shape (n,), float64
    c : ndarray of shape (n,), float64
        Row weights; their sum is 1.
    """

    X: Any
    y: Array
    c: Array

    @staticmethod
    def of(rows: Rows) -> Gathered:
        """From rows with "targets" and "weights" (n, 1) beside them.

        Without a copy where they are one block of this process.

        Raises
        ------
        InputError
            When they do not fit into the memory of this process.
        """
        here = isinstance(rows.executor, Threads) and len(rows.lengths) == 1
        X, found = rows.first(_features) if here else rows.collect(), beside(rows)
        y, c = (found[k][:, 0].astype(np.float64) for k in ("targets", "weights"))
        return Gathered(X, y, c / c.sum())

    def shuffled(self, seed: int) -> Gathered:
        """A copy with its rows in random order."""
        order = np.random.default_rng(seed).permutation(len(self.y))
        return Gathered(self.X[order], self.y[order], self.c[order])


def _features(block: Block) -> Any:
    return block.X


def refusal(problem: Problem) -> str | None:
    """Why the rows cannot be gathered; None if they can."""
    rows = problem.rows
    if isinstance(rows.executor, Threads):
        return None
    half = memory_limit() // 2
    if rows.nbytes <= half:
        return None
    return (
        f"its steps follow each other, so it needs all rows in one process: {rows.nbytes} "
        f"bytes, and half of this one's memory is {half}"
    )


def gathering(
    cost: Callable[[Shape, Resources, float], Cost],
) -> Callable[[Problem, Resources, float], Cost | str]:
    """From the cost of passes over gathered rows to that on a problem, or a refusal.

    Parameters
    ----------
    cost : callable
        Of a shape, resources and a number of passes.
    """

    def whole(problem: Problem, resources: Resources, passes: float) -> Cost | str:
        why = refusal(problem)
        if why is not None:
            return why
        return cost(problem_shape(problem), resources, passes) + sending(problem)

    return whole


def sending(problem: Problem) -> Cost:
    """What it takes to gather the rows: nothing where they are in this process."""
    if isinstance(problem.rows.executor, Threads):
        return Cost()
    return Cost(network=float(problem.rows.nbytes))
