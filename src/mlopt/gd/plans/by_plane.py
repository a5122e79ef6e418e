"""What trainings share whose planes are problems by themselves, one after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.columns import Model
from mlopt.gd.newton_training import planes_of
from mlopt.gd.plans.method import Solver, Start
from mlopt.gd.plans.task import Problem
from mlopt.locking import cached_property
from mlopt.rows import Rows

Array = NDArray[Any]


class ByPlane(ABC):
    """A `mlopt.training.Training` of models, one problem for each class against the others.

    Parameters
    ----------
    problem : Problem
    start : (coef, intercept), optional
        Arrays (outputs, d) and (outputs,), of all models.
    """

    def __init__(self, problem: Problem, start: Start = None) -> None:
        self._problem, self._start = problem, start

    @abstractmethod
    def _made(self) -> list[list[Any]]:
        """The trainings of each model's planes, in their order."""

    def _of_each(
        self, rows: Rows, start: Start, make: Callable[[Model, Rows, Start], Any]
    ) -> list[list[Any]]:
        """What ``make`` makes of the model of each plane, ``rows`` with its targets and
        weights, and its part of ``start``."""
        given, first = self._problem.beside(), 0
        made: list[list[Any]] = []
        for model in self._problem.models:
            weights, own = given["weights"][:, [model.rowset]], []
            for one, targets in planes_of(model, given["targets"][:, [model.target]]):
                part = slice(first, first + one.outputs)
                begun = None if start is None else (start[0][part], start[1][part])
                beside = rows.attach(targets=targets, weights=weights)
                own.append(make(one, beside, begun))
                first = part.stop
            made.append(own)
        return made

    @cached_property
    def _planes(self) -> list[list[Any]]:
        """Made at the first pass: what they have in common may take a while."""
        return self._made()

    @property
    def _begun(self) -> bool:
        return "_planes" in vars(self)

    @property
    def _all(self) -> list[Any]:
        return [one for own in self._planes for one in own]

    @property
    def passes(self) -> int:
        """Passes over the rows, of the problem that took most."""
        return max(one.passes for one in self._all) if self._begun else 0

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Which models are at the tolerance, (M,)."""
        if not self._begun:
            return np.zeros(len(self._problem.models), bool)
        return np.array([all(np.all(one.converged) for one in own) for own in self._planes])

    @property
    def done(self) -> bool:
        """Whether another pass would change nothing."""
        return self._begun and all(one.done for one in self._all)

    @property
    def gap(self) -> float:
        """How far the objective may be above its minimum, relative to it."""
        return max(one.gap for one in self._all) if self._begun else np.inf

    def ask(self, tolerance: float) -> None:
        """Go on to another gap."""
        for one in self._all:
            one.ask(tolerance)

    def quality(self) -> NDArray[np.float64]:
        """Minus the objectives, (M,)."""
        return np.array(
            [sum(float(np.sum(one.quality())) for one in own) for own in self._planes]
        )

    def advance(self, passes: int) -> None:
        """Up to so many passes of each problem."""
        for one in self._all:
            one.advance(passes)

    def coefficients(self, number: int = 0) -> tuple[Array, Array]:
        """Weights (outputs, d) and intercepts (outputs,)."""
        found = [one.coefficients() for one in self._planes[number]]
        coef, intercept = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return coef, intercept

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        return {"planes": [one.state() for one in self._all]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of the same models on the same rows."""
        for one, kept in zip(self._all, state["planes"], strict=True):
            one.restore(kept)


class OneByOne(ByPlane):
    """Each plane by a training of one column of weights, made by ``begin``."""

    def __init__(
        self, problem: Problem, begin: Callable[[Problem, Start], Solver], start: Start
    ) -> None:
        super().__init__(problem, start)
        self._begin = begin

    def _made(self) -> list[list[Any]]:
        def one(model: Model, rows: Rows, start: Start) -> Solver:
            return self._begin(Problem(self._problem.task, rows, (model,)), start)

        return self._of_each(self._problem.rows, self._start, one)


def one_by_one(
    problem: Problem, begin: Callable[[Problem, Start], Solver], start: Start
) -> Solver:
    """What ``begin`` makes of a single column of weights; of several, `OneByOne`."""
    alone = problem.outputs == len(problem.models) == 1
    return begin(problem, start) if alone else OneByOne(problem, begin, start)
