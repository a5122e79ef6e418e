"""What trainings of one column of weights share: on, until they are near or stuck."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class OneModel(ABC):
    """A `mlopt.training.Training` of one model that knows its objective and its gap.

    Weights are (d + 1,), the intercept's last.
    """

    _kept: ClassVar[tuple[str, ...]]
    """Attributes that make a checkpoint: arrays and numbers."""
    passes: int
    gap: float
    _tolerance: float
    _max_passes: int
    _weights: Array
    _value: float
    _stuck: bool

    @abstractmethod
    def _pass(self) -> None:
        """The next pass: `gap`, and what is `_stuck`, as it leaves them."""

    @property
    def converged(self) -> bool:
        """Whether the relative gap is within the tolerance."""
        return bool(self.gap <= self._tolerance)

    @property
    def done(self) -> bool:
        """Whether another pass would change nothing."""
        return self.converged or self._stuck or self.passes >= self._max_passes

    def ask(self, tolerance: float) -> None:
        """Go on to another gap."""
        self._tolerance = tolerance

    def quality(self) -> float:
        """Minus the objective."""
        return -self._value

    def advance(self, passes: int) -> None:
        """Up to so many passes."""
        for _ in range(passes):
            if self.done:
                return
            self._pass()
            self.passes += 1

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        return {name: np.copy(getattr(self, name)) for name in self._kept}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of the same problem."""
        for name in self._kept:
            found = np.copy(state[name])
            setattr(self, name, found if found.ndim else found.item())

    def coefficients(self, number: int = 0) -> tuple[Array, Array]:
        """Weights (1, d) and intercept (1,)."""
        del number
        return self._weights[None, :-1].copy(), self._weights[-1:].copy()
