"""A run of the seven operators that stops at a tolerance of the objective.

The operators' own rules watch what an iteration has seen: the gradient, or the mean
objective of samples. To compare them with other solvers at equal quality, the objective and
its gradient over all rows are looked at now and then, and `Watch` says how far the minimum
may still be. Losses without second derivatives, and gradients that the user brings, keep
the rule of the algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.columns import layout
from mlopt.gd.operators.algorithm import Algorithm
from mlopt.gd.operators.running import Run
from mlopt.gd.operators.sources import MatrixSource
from mlopt.gd.passes import evaluate
from mlopt.gd.plans.task import Problem
from mlopt.gd.plans.watch import Watch, watch
from mlopt.prices import price

Array = NDArray[Any]

LOOKS = price("descent.looks")
_FIRST = 4
"""Iterations before the first look."""


def looks(iterations: float) -> float:
    """How many times a run of so many iterations looks at all rows."""
    if iterations <= _FIRST:
        return 1.0
    return 1.0 + math.log(iterations / _FIRST) / math.log(LOOKS)


class Descent:
    """A `mlopt.gd.plans.methods.Solver` by an `mlopt.gd.Algorithm`. A pass is an iteration.

    Parameters
    ----------
    problem : Problem
    algorithm : Algorithm
        Its Loop has a say only where ``watched`` is False.
    tolerance : float
        Relative to the minimum of the objective.
    watched : bool
        Whether the objective over all rows tells the end.
    """

    def __init__(
        self, problem: Problem, algorithm: Algorithm, tolerance: float, *, watched: bool
    ) -> None:
        self._problem, self._tolerance = problem, tolerance
        targets = problem.beside()["targets"][:, 0]
        self._run = Run(algorithm, MatrixSource(problem.rows, targets))
        self._watch = watch(problem, tolerance, noisy=True) if watched else None
        self._next, self._gap = _FIRST, math.inf

    @property
    def passes(self) -> int:
        """Iterations so far."""
        return self._run.passes

    @property
    def gap(self) -> float:
        """How far the objective may be above its minimum, relative to it, at the last look.

        Without looks, what the algorithm's Converge said last.
        """
        if self._watch is None and self._run.history:
            return self._run.history[-1].delta
        return self._gap

    @property
    def converged(self) -> bool:
        """Whether it is at the tolerance."""
        return self._run.converged or self._gap <= self._tolerance

    @property
    def done(self) -> bool:
        """Whether it has converged or diverged, or all its iterations are used up."""
        return self.converged or self._run.done

    @property
    def message(self) -> str:
        """Why the run ended by itself, if it did."""
        return self._run.message

    def quality(self) -> float:
        """Minus the gap."""
        return -self.gap

    def ask(self, tolerance: float) -> None:
        """Go on to another tolerance."""
        self._tolerance = tolerance

    def advance(self, passes: int) -> None:
        """Up to ``passes`` more iterations, with looks at all rows between them."""
        for _ in range(passes):
            if self.done:
                return
            self._run.advance(1)
            if self._watch is not None and self.passes >= self._next:
                self._next = max(self.passes + 1, math.ceil(self.passes * LOOKS))
                self._gap = self._look(self._watch)

    def _look(self, watched: Watch) -> float:
        problem, (coef, intercept) = self._problem, self.coefficients()
        weights = np.append(coef[0], intercept)
        found = evaluate(
            problem.rows, weights[:, None].astype(problem.rows.dtype),
            layout([problem.model]), problem.sums, scored=False,
        )  # fmt: skip
        assert found.gradient is not None
        gradient = np.asarray(found.gradient[:, 0], np.float64)
        value = float(found.value[0])
        return watched.gap(value, gradient, weights) if math.isfinite(value) else math.inf

    def coefficients(self, number: int = 0) -> tuple[Array, Array]:
        """Weights (1, d) and intercept (1,)."""
        del number
        weights = np.asarray(self._run.context["weights"], np.float64)
        if self._run.algorithm.fit_intercept:
            return weights[None, :-1].copy(), weights[-1:].copy()
        return weights[None].copy(), np.zeros(1)

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        watch = {} if self._watch is None else self._watch.state()
        run = self._run.state()
        return {"run": run, "next": self._next, "gap": self._gap, "watch": watch}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self._run.restore(state["run"])
        self._next, self._gap = int(state["next"]), float(state["gap"])
        if self._watch is not None:
            self._watch.restore(state["watch"])
