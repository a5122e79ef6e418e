"""Step sizes: functions of the iteration, counted from 1.

ML4all and MLlib take ``beta / sqrt(i)`` with beta = 1 for every algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from mlopt.gd.parameters import check_positive

Step = Callable[[int], float]
"""From the number of the iteration to a step size."""


@dataclass(frozen=True)
class InverseRoot:
    """``beta / sqrt(i)``."""

    beta: float = 1.0

    def __post_init__(self) -> None:
        check_positive("beta", self.beta)

    def __call__(self, iteration: int) -> float:
        return self.beta / math.sqrt(iteration)


@dataclass(frozen=True)
class Inverse:
    """``beta / i``."""

    beta: float = 1.0

    def __post_init__(self) -> None:
        check_positive("beta", self.beta)

    def __call__(self, iteration: int) -> float:
        return self.beta / iteration


@dataclass(frozen=True)
class Constant:
    """``beta``."""

    beta: float = 1.0

    def __post_init__(self) -> None:
        check_positive("beta", self.beta)

    def __call__(self, iteration: int) -> float:
        del iteration
        return self.beta
