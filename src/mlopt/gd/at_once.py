"""Trainings that bring models to their end in one pass: what is known of each model."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.columns import Indices, Model
from mlopt.gd.linear_training import LinearTraining
from mlopt.rows import Rows
from mlopt.training import Limits


class Numbered(Protocol):
    """Models that are solved one after the other, by their numbers in the training."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """The strongest penalty first."""
        ...


P = TypeVar("P", bound=Numbered)
E = TypeVar("E")


class SolvedAtOnce(LinearTraining):
    """A `LinearTraining` whose first pass solves all models, in `_solve_all`.

    Parameters
    ----------
    rows, models, max_passes
        See `LinearTraining`.

    Attributes
    ----------
    limits : Limits
        Of whose seconds models are given up that go step by step; none by default.
    may_begin : callable
        Asked before a model, by its number, with the seconds that it will take, and those
        of its penalty on other row sets.
    """

    _blank: ClassVar[Mapping[str, bool | float]] = {"_solved": False, "_converged": False}
    """Arrays with an entry for each model, (M,), by name, and the entry of a new one."""
    _solved: NDArray[np.bool_]
    _converged: NDArray[np.bool_]

    def __init__(self, rows: Rows, models: Sequence[Model], max_passes: int) -> None:
        super().__init__(rows, models, max_passes)
        self.limits = Limits()
        self.may_begin: Callable[[int, float], bool] = lambda number, seconds: True
        self._left: set[int] = set()
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

    @property
    def reached(self) -> NDArray[np.bool_]:
        """Which models are trained as far as was asked: time was not short, (M,)."""
        return self._solved.copy()

    def advance(self, passes: int) -> None:
        """Solve what is not solved yet."""
        if self.done or passes < 1:
            return
        self._left.clear()
        self._solve_all()
        self._solved[:], self._stale[:] = True, True
        self._solved[list(self._left)] = False
        self.passes += 1

    @abstractmethod
    def _solve_all(self) -> None:
        """Solve what is not solved yet; `_put` and `_converged` take what is found.

        For what there is no time, `_left` takes its number.
        """

    def _ends(
        self, paths: Sequence[P], chains: Sequence[Iterator[E]], *, even: bool = True
    ) -> list[tuple[P, int, E]]:
        """Each path's models by number, with what its chain gives of them, in time.

        Parameters
        ----------
        paths : sequence of Numbered
        chains : sequence of iterator
            Gives what becomes of each model of a path, in its order.
        even : bool, default=True
            Whether all paths may be at work side by side. With a time limit they are: one
            penalty ends on all row sets before a weaker one is begun.
        """
        even, threads = even and self.limits.seconds is not None, self._crew(paths)
        waiting = [(0, place, 0) for place in range(len(paths))]
        lock, slowest, found = threading.Lock(), [0.0], list[tuple[P, int, E]]()
        failed = threading.Event()  # then what is under way is the last

        def begun() -> tuple[int, int] | None:
            with lock:
                while waiting and not failed.is_set():
                    _, place, rank = heappop(waiting)
                    fits = 1 + sum(other <= rank for *_, other in waiting)
                    seconds = -(-fits // threads) * slowest[0]
                    if self.may_begin(paths[place].numbers[rank], seconds):
                        return place, rank
                    self._left.update(paths[place].numbers[rank:])
            return None

        def work(_: int) -> None:
            while (job := begun()) is not None:
                (place, rank), start = job, time.monotonic()
                try:
                    end = next(chains[place])
                except BaseException:
                    failed.set()
                    raise
                last = rank + 1 == len(paths[place].numbers)
                if last:  # let go of its rows
                    next(chains[place], None)
                with lock:
                    found.append((paths[place], paths[place].numbers[rank], end))
                    slowest[0] = max(slowest[0], time.monotonic() - start)
                    if not last:
                        heappush(waiting, ((rank + 1) * even, place, rank + 1))

        self.rows.executor.map(work, range(threads))
        return found

    def _crew(self, paths: Sequence[Any]) -> int:
        """How many chains are at work at a time."""
        return min(self.rows.executor.threads, len(paths))

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
