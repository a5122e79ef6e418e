"""The elastic net as an object: its value, its optimality, its conjugate.

Shapes: ``d`` columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Penalty:
    """``l1 ||w||_1 + l2/2 ||w||^2``, of the mean loss; perhaps for ``w >= 0`` only.

    Raises
    ------
    InputError
        When a share is negative or not finite.
    """

    l1: float = 0.0
    l2: float = 0.0
    positive: bool = False

    def __post_init__(self) -> None:
        for name in ("l1", "l2"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise InputError(f"`{name}` must be finite and at least 0, got {value!r}.")

    def value(self, w: Array) -> float:
        """The penalty of weights (d,)."""
        return self.l1 * float(np.abs(w).sum()) + 0.5 * self.l2 * float(w @ w)

    def violations(self, w: Array, gradient: Array) -> Array:
        """How far weights are from their optimum, by the gradient of the loss, (d,)."""
        g = gradient + self.l2 * w
        at_zero = -g - self.l1 if self.positive else np.abs(g) - self.l1
        away = np.abs(g + self.l1 * np.sign(w))
        return np.where(w == 0, np.maximum(at_zero, 0.0), away)

    def conjugate(self, v: Array) -> float:
        """``max_w v'w - penalty(w)`` for v (d,): infinite where it is not bounded."""
        over = self._over(v)
        if self.l2 > 0:
            return float(over @ over) / (2.0 * self.l2)
        return 0.0 if not over.any() else np.inf

    def maximiser(self, v: Array, curve: Array) -> Array:
        """The w (d,) of `conjugate`, if there were an L2 penalty of ``curve`` (d,)."""
        return np.copysign(self._over(v), v) / curve

    def _over(self, v: Array) -> Array:
        return np.maximum((v if self.positive else np.abs(v)) - self.l1, 0.0)

    def within(self, v: Array) -> float:
        """The largest share of ``v``, at most 1, whose conjugate is 0."""
        most = float((v if self.positive else np.abs(v)).max(initial=0.0))
        return 1.0 if most <= self.l1 else self.l1 / most
