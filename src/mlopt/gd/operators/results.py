"""What a run of an algorithm leaves behind: a record of each iteration, and the result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from mlopt.gd.operators.interfaces import Context, Floats


@dataclass(frozen=True)
class Record:
    """One iteration.

    Attributes
    ----------
    iteration : int
        From 1.
    delta : float
        What Converge said; infinite where it said nothing.
    objective : float
        After the iteration, over all rows; NaN unless asked for.
    seconds : float
        Since the start, preparation included.
    bytes_read, rows_parsed : int
        Since the start.
    """

    iteration: int
    delta: float
    objective: float
    seconds: float
    bytes_read: int
    rows_parsed: int


History = tuple[Record, ...]


def as_table(history: Sequence[Record]) -> Floats:
    """Records as rows of numbers, for a checkpoint, (iterations, 6)."""
    return np.array([astuple(record) for record in history], np.float64).reshape(-1, 6)


def from_table(table: Any) -> list[Record]:
    """The inverse of `as_table`."""
    return [
        Record(int(i), delta, objective, seconds, int(read), int(parsed))
        for i, delta, objective, seconds, read, parsed in np.asarray(table).tolist()
    ]


@dataclass(frozen=True)
class Result:
    """The end of a run.

    Attributes
    ----------
    weights : ndarray
        As Update returned them last.
    fit_intercept : bool
        Whether the last weight is an intercept.
    n_iter : int
    history : tuple of Record
    seconds : float
    converged : bool
        Whether Loop ended the run.
    message : str
        Why it ended.
    context : Context
        All globals at the end.
    """

    weights: Any
    fit_intercept: bool
    n_iter: int
    history: History
    seconds: float
    converged: bool
    message: str
    context: Context

    @property
    def coef(self) -> Any:
        """Weights of the columns, (d,)."""
        return self.weights[:-1] if self.fit_intercept else self.weights

    @property
    def intercept(self) -> float:
        """The intercept, or 0."""
        return float(self.weights[-1]) if self.fit_intercept else 0.0

    @property
    def errors(self) -> list[tuple[float, int]]:
        """Pairs of delta and iteration wherever Converge said something (Algorithm 1)."""
        return [(r.delta, r.iteration) for r in self.history if math.isfinite(r.delta)]
