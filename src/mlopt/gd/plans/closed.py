"""Least squares in closed form and by conjugate gradients, as a training and as methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.costs import Cost
from mlopt.gd.plans.method import Method, Solver, Start, at_least, priced
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.squares import Fit, Iteration, Squares, Way
from mlopt.gd.plans.stop import CoefficientError, RelativeGap
from mlopt.gd.plans.task import Problem
from mlopt.gd.pricing import Shape
from mlopt.resources import Resources

Array = NDArray[Any]

OPERATOR = "Ridge"
"""What calibrations call these methods."""


class LeastSquares:
    """A `mlopt.training.Training` of one model a target.

    What goes step by step takes one a pass, after one that prepares it; what is solved at
    once takes one pass in all.

    Parameters
    ----------
    squares : Squares
    name : str
        Of the method.
    way : callable
    max_passes : int

    Attributes
    ----------
    passes : int
    converged : bool
        Whether it is solved by the method's own rule.
    direct : bool
        Whether that was at once, to rounding.
    """

    def __init__(self, squares: Squares, name: str, way: Way, max_passes: int) -> None:
        self._squares, self._name, self._way = squares, name, way
        self._steps: Iteration | None = None
        self._found: Fit | None = None
        self._max_passes, self._ended = max_passes, False
        self.passes, self.converged, self.direct = 0, False, False

    @property
    def done(self) -> bool:
        """Whether it was solved, or all passes are used up."""
        return self._ended or self.passes >= self._max_passes

    def ask(self, tolerance: float) -> None:
        """Go on to another tolerance, where it goes step by step."""
        if self._steps is None:
            return
        self._steps.training.ask(tolerance)
        self._judge()

    def advance(self, passes: int) -> None:
        """Up to ``passes`` steps; or all at once."""
        for _ in range(passes):
            if self.done:
                return
            self._advance()

    def _advance(self) -> None:
        if self._steps is None:
            # Sums of all columns, and what a preconditioner needs; or the solution.
            found = self._way(self._squares)
            if isinstance(found, Fit):
                self._take(found)
                return
            self._steps = found
        elif self._steps.gives_up and self._steps.instead is not None:
            why = f"`{self._name}` had not converged in {self._steps.patience} steps"
            note = f"{why}, so the normal equations were solved instead"
            found = self._steps.instead()
            self._take(replace(found, notes=(note, *found.notes)))
            return
        else:
            self._steps.training.advance(1)
        self.passes += 1
        self._judge()

    def _judge(self) -> None:
        assert self._steps is not None
        training = self._steps.training
        self._ended = training.done
        self.converged = bool(np.all(training.converged))

    def _take(self, found: Fit) -> None:
        """What was solved at once; the normal equations may have led to a QR."""
        self.passes += 2 if found.solver == "svd" != self._name else 1
        self._found, self._steps, self._ended = found, None, True
        self.converged = self.direct = True

    @property
    def found(self) -> Fit | None:
        """What it has come to; None before the first pass."""
        return self._found if self._steps is None else self._steps.fit()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a plan has to say of the run."""
        return () if self.found is None else self.found.notes

    @property
    def gap(self) -> float:
        """A bound where there is a penalty; 0 once it is solved at once."""
        if self.direct:
            return 0.0
        return np.inf if self._steps is None else float(self._steps.training.gap.max())

    def quality(self) -> float:
        """1 once it is solved."""
        return float(self._ended)

    def coefficients(self, number: int = 0) -> tuple[Array, Array]:
        """Weights (1, d) and intercept (1,) of one target."""
        if (found := self.found) is None:
            return np.zeros((1, self._squares.rows.d)), np.zeros(1)
        return found.plane(number)

    def learnt(self, number: int) -> dict[str, Any]:
        """Attributes of a fitted estimator that only its solver knows, by name."""
        if (found := self.found) is None:
            return {}
        steps = 1 if found.iterations is None else int(found.iterations[number])
        own: dict[str, Any] = {"n_iter_": steps, "solver_": found.solver}
        if found.rank is not None:
            own |= {"rank_": found.rank, "singular_": found.singular}
        return own

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        return {
            "found": None if self._found is None else vars(self._found).copy(),
            "steps": None if self._steps is None else self._steps.training.state(),
            **{name: getattr(self, name) for name in _STATE},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self._found = None if state["found"] is None else Fit(**state["found"])
        for name in _STATE:
            setattr(self, name, state[name])
        if state["steps"] is not None:
            started = self._way(self._squares)
            assert isinstance(started, Iteration)
            self._steps = started
            self._steps.training.restore(state["steps"])


_STATE = ("passes", "converged", "direct", "_ended")


def _once(outline: Outline, stop: CoefficientError) -> float:
    del outline, stop
    return 1.0


def least_squares(
    name: str,
    cost: Callable[[Outline, Resources, float], Cost | str],
    way: Way,
    steps: Callable[[Outline, CoefficientError], float] = _once,
    *,
    passes: Callable[[Shape], float] = lambda shape: 1.0,
    least: float = 0.0,
    **options: Any,
) -> Method:
    """A method of the squared loss.

    Parameters
    ----------
    name : str
        As `mlopt.Ridge` has it.
    cost : callable
        Of so many passes, or why it cannot be used.
    way : callable
    steps : callable, optional
        See `Method`.
    passes : callable, optional
        See `Method`.
    least : float, default=0.0
        Passes that it takes at least.
    **options
        Of `Method`.
    """

    def whole(outline: Outline, resources: Resources, passes: float) -> Cost | str:
        return cost(outline, resources, max(1, round(passes)))

    def begin(
        problem: Problem,
        stop: RelativeGap | CoefficientError,
        max_passes: int,
        start: Start,
    ) -> Solver:
        del start
        return LeastSquares(Squares.of(problem, stop), name, way, max_passes)

    given = {"iterates": False, "factors": True, "operator": OPERATOR, **options}
    return Method(
        name, frozenset({"squared"}), passes, priced(whole), begin,
        stops=(RelativeGap, CoefficientError), steps=steps, least=at_least(least), **given,
    )  # fmt: skip


def penalised(outline: Outline) -> str | None:
    """Why a method for positive penalties alone cannot take a problem, or None."""
    if outline.l2 > 0:
        return None
    return "needs a positive penalty: without one it finds neither ranks nor least norms"
