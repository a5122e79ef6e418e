"""What a query asks to be learnt: plain values, no syntax."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlopt.query.words import DEFAULT_EPSILON, Task


@dataclass(frozen=True)
class Function:
    """A function of the user's, by its name in the query."""

    name: str
    call: Callable[..., Any]

    def __str__(self) -> str:
        return f"{self.name}()"


@dataclass(frozen=True)
class Request:
    """What is to be learnt, and under which constraints.

    Parameters
    ----------
    task : {"classification", "regression"}, optional
        None for a gradient of the user's.
    tolerance : float
        EPSILON.
    time_limit : float, optional
        TIME in seconds, reading included.
    max_iter : int, optional
        MAX_ITER; None for the default of the algorithm.
    algorithm : str, optional
    step : float or Function, optional
    sampler : str or Function, optional
    convergence : Function, optional
    gradient : str or Function
        A loss by name, or the user's gradient.
    """

    task: Task | None
    tolerance: float = DEFAULT_EPSILON
    time_limit: float | None = None
    max_iter: int | None = None
    algorithm: str | None = None
    step: float | Function | None = None
    sampler: str | Function | None = None
    convergence: Function | None = None
    gradient: str | Function = "logistic"
