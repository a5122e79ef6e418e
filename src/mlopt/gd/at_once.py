"""Trainings that bring models to their end in one pass: what is known of each model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.columns import Indices, Model
from mlopt.gd.linear_training import LinearTraining
from mlopt.rows import Rows


class SolvedAtOnce(LinearTraining):
    """A `LinearTraining` whose ``advance`` solves whatever is not solved yet.

    Parameters
    ----------
    rows, models, max_passes
        See `LinearTraining`.
    """

    _blank: ClassVar[Mapping[str, bool | float]] = {"_solved": False, "_converged": False}
    """Arrays with an entry for each model, (M,), by name, and the entry of a new one."""
    _solved: NDArray[np.bool_]
    _converged: NDArray[np.bool_]

    def __init__(self, rows: Rows, models: Sequence[Model], max_passes: int) -> None:
        super().__init__(rows, models, max_passes)
        for name, entry in self._blank.items():
            setattr(self, name, np.full(len(models), entry))

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Which models are solved to what was asked for, (M,)."""
        return self._converged.copy()

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Which models are solved as well as they can be, (M,)."""
        return self._solved.copy()

    def _alike(
        self, kind: Callable[[Model], Hashable], strength: Callable[[Model], float]
    ) -> list[list[int]]:
        """Numbers of unsolved models, kind by kind, the strongest penalties first."""
        groups: dict[Hashable, list[int]] = {}
        for number in np.flatnonzero(~self._solved).tolist():
            groups.setdefault(kind(self.models[number]), []).append(number)
        return [
            sorted(numbers, key=lambda i: -strength(self.models[i]))
            for numbers in groups.values()
        ]

    def _keep(self, numbers: Indices, taken: Indices) -> None:
        del taken
        for name in self._blank:
            setattr(self, name, getattr(self, name)[numbers])

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        own = {name: getattr(self, name).copy() for name in self._blank}
        return super().state() | own

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of a training of the same models on the same rows."""
        super().restore(state)
        for name in self._blank:
            setattr(self, name, np.array(state[name]))
