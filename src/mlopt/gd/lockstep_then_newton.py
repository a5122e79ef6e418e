"""Models in lockstep, until those that are left are sooner trained by Newton's method.

::

    pass              1   2   3  ...  20      then
    still at work    80  80  76        5      5 models by Newton's method, each by itself

Most models of a scan take a few dozen passes. But a squared hinge of classes that can be
separated takes thousands of steps that must each go down, and nobody knows that before.
When passes have taken as long as Newton's method is to take for all that are left, it takes
them over: that is never much more than twice the better of the two, known beforehand.

Karlin, Manasse, Rudolph, Sleator, "Competitive snoopy caching", Algorithmica 3, 1988.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlopt.gd.columns import Model
from mlopt.gd.newton_training import NewtonTraining
from mlopt.gd.quasi_newton import CONVERGED, STUCK, QuasiNewton
from mlopt.rows import Rows


@dataclass(frozen=True)
class Patience:
    """When Newton's method takes over.

    Parameters
    ----------
    of_pass : callable
        Seconds of a pass in lockstep, from the columns of weights in it.
    of_newton : callable
        Seconds of Newton's method for a model; infinite where it cannot.
    """

    of_pass: Callable[[int], float]
    of_newton: Callable[[Model], float]


class LockstepThenNewton(QuasiNewton):
    """`QuasiNewton` as far as it is the quicker.

    Parameters
    ----------
    rows, models, gtol, max_passes, known
        See `QuasiNewton`. The rows lie in the memory of this process.
    patience : Patience
    """

    def __init__(
        self,
        rows: Rows,
        models: Sequence[Model],
        *,
        gtol: float,
        max_passes: int,
        patience: Patience,
        known: QuasiNewton | None = None,
    ) -> None:
        super().__init__(rows, models, gtol=gtol, max_passes=max_passes, known=known)
        self._bound, self._patience, self._spent = gtol, patience, 0.0

    def advance(self, passes: int) -> None:
        """Train for up to ``passes`` more passes; what Newton's method does counts as one.

        It goes all the way to the tolerance.
        """
        for _ in range(passes):
            if self.done:
                return
            super().advance(1)
            if self._batch is None:
                continue
            self._spent += self._patience.of_pass(self._batch.plan.width)
            left = self._batch.plan.models
            if not self.done and self._spent >= sum(map(self._patience.of_newton, left)):
                self._hand_over()

    def _hand_over(self) -> None:
        assert self._batch is not None
        numbers = self._batch.numbers
        models = [self.models[i] for i in numbers]
        most = self.max_passes - self.passes
        newton = NewtonTraining(self.rows, models, gtol=self._bound, max_iter=most)
        newton.advance(1)
        self._write(numbers.tolist(), newton._layout, newton._weights)
        self._status[numbers] = STUCK
        self._status[numbers[newton.converged]] = CONVERGED
        self._stale[:, numbers] = True
        self._shrink([])

    def _like(self, models: Sequence[Model]) -> QuasiNewton:
        return LockstepThenNewton(
            self.rows, models, gtol=self._bound, max_passes=self.max_passes,
            patience=self._patience, known=self,
        )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        return super().state() | {"spent": self._spent}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of a training of the same models on the same rows."""
        super().restore(state)
        self._spent = float(state["spent"])
