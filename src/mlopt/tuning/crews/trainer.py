"""What a search asks of whoever trains its trials: the contract of every trainer.

Laws, which ``tests/tuning/test_trainers.py`` holds every trainer against: each request has
one result at most, and one where time is not short; a result that is not done has made the
passes that were asked for; the last result scores as scikit-learn's own fits do, however
many requests led to it and whatever was trained beside it; what fails takes nobody with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from mlopt.tuning.crews.trials import TrainRequest, TrainResult, Trial


@dataclass(frozen=True)
class Clock:
    """When no fit begins any more, and how long those that run are waited for.

    Parameters
    ----------
    may_start : callable
        Asked before a fit, with the seconds that the fits of its trial will still take.
    waits : callable
        Gives the seconds after which what has not ended is given up.
    late : callable
        Whether so many seconds are more than are left beside the final fit.
    ahead : callable
        Whether more fits may be handed over than there are threads: not while nothing tells
        what they and the final fit take.
    """

    may_start: Callable[[Trial, float], bool] = lambda trial, seconds: True
    waits: Callable[[], float] = lambda: math.inf
    late: Callable[[float], bool] = lambda seconds: False
    ahead: Callable[[], bool] = lambda: True


class Trainer(Protocol):
    """Trains trials from look to look, on all splits."""

    def takes(self, trial: Trial) -> bool:
        """Whether it is the one that trains ``trial``."""
        ...

    def train(
        self, requests: Sequence[TrainRequest], clock: Clock
    ) -> Iterator[Sequence[TrainResult]]:
        """Train every request's trial as far as asked; results as soon as they are there.

        A trial without a result was not trained: there was no time for it, or this trainer
        does not take it any more.
        """
        ...

    def drop(self, alive: set[int]) -> None:
        """Let go of every trial whose number is not in ``alive``."""
        ...
