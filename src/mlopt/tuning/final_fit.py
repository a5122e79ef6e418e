"""The final fit, begun as soon as only one trial can still win.

That trial then trains on a thread of its own to its last score, and the fit on all rows
need not wait for it: a stochastic model keeps one core busy, not two.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from mlopt.cluster import Threads
from mlopt.cluster.pool import Pool
from mlopt.kernels.compiling import worked
from mlopt.tuning.crews.families import Way
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.crews.trials import Trial
from mlopt.tuning.refit import refit


class FinalFit:
    """Fits the winner on all rows, once: early or when it is asked for.

    Parameters
    ----------
    problem : Problem
    configured : callable
        Gives the estimator of a trial, not fitted.
    way : callable
        Says how a trial trains.
    max_passes : int, optional
        Passes that end every training of the search.
    """

    def __init__(
        self,
        problem: Problem,
        configured: Callable[[Trial], Any],
        way: Callable[[Trial], Way],
        max_passes: int | None = None,
    ) -> None:
        self._problem, self._configured = problem, configured
        self._way, self._max_passes = way, max_passes
        self._begun: dict[int, Future[tuple[Any, float]]] = {}
        self._thread: Pool | None = None
        self.fits = 0
        """How many were begun."""

    def begin(self, trial: Trial) -> None:
        """Start on ``trial``, whose last passes are still to come, if a core is idle."""
        executor = self._problem.executor
        if self._begun or not isinstance(executor, Threads) or executor.threads < 2:
            return
        way = self._way(trial)
        if way.parts.steps or way.task is None or way.task.schedule is None:
            return  # would take all cores by itself
        if self._problem.outputs > 1:
            return
        self._thread = Pool(1, "mlopt-final", lambda: None)
        self._begun[trial.number] = self._thread.submit(self._fit, trial)
        self._thread.shutdown(wait=False)

    def of(self, trial: Trial) -> tuple[Any, float]:
        """The estimator of ``trial``, fitted on all rows, and the seconds that took."""
        early = self._begun.pop(trial.number, None)
        return self._fit(trial) if early is None else early.result()

    def abandon(self) -> None:
        """Wait for no fit any more."""
        self._begun.clear()
        if self._thread is not None:
            self._thread.abandon()

    def close(self) -> None:
        """Wait for a fit that nobody has asked for: it uses the rows."""
        for fit in self._begun.values():
            fit.exception()

    def _fit(self, trial: Trial) -> tuple[Any, float]:
        start = time.perf_counter()
        self.fits += 1
        way, estimator = self._way(trial), self._configured(trial)
        return refit(self._problem, estimator, way, self._max_passes), worked(start)
