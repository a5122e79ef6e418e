"""Trainings that bring models to their end in one pass: what is known of each model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.columns import Indices, Model
from mlopt.gd.linear_training import LinearTraining
from mlopt.rows import Rows


class SolvedAtOnce(LinearTraining):
    """A `LinearTraining` whose first pass solves all models, in `_solve_all`.

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

    def advance(self, passes: int) -> None:
        """Solve what is not solved yet."""
        if self.done or passes < 1:
            return
        self._solve_all()
        self._solved[:], self._stale[:] = True, True
        self.passes += 1

    @abstractmethod
    def _solve_all(self) -> None:
        """Solve what is not solved yet; `_put` and `_converged` take what is found."""

    def _put(self, columns: Any, coef: Any, intercept: Any) -> None:
        """Store planes: coefficients (planes, d), intercepts (planes,)."""
        self._weights[:-1, columns], self._weights[-1, columns] = coef.T, intercept

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
