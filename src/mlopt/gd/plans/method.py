"""One way of solving a task, as the optimizer sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from mlopt.costs import Cost
from mlopt.gd.classifier_fit import shape_of
from mlopt.gd.classifier_plan import Shape
from mlopt.gd.plans.task import Problem
from mlopt.resources import Resources
from mlopt.training import Training

__all__ = ["Method", "Price", "Shape", "Solver", "Start", "problem_shape"]

Start = tuple[NDArray[Any], NDArray[Any]] | None
"""Weights (outputs, d) and intercepts (outputs,); None for the method's own start."""

Price = Callable[[float], Cost]
"""From a number of passes to what they cost."""


class Solver(Training, Protocol):
    """A training whose result are the weights of one model."""

    @property
    def converged(self) -> Any:
        """Whether it is at the tolerance."""
        ...

    @property
    def gap(self) -> float:
        """How far the objective may be above its minimum, relative to it; or infinite."""
        ...

    def ask(self, tolerance: float) -> None:
        """Go on until the gap is at most ``tolerance``."""
        ...

    def coefficients(self, number: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Weights (outputs, d) and intercepts (outputs,)."""
        ...


def _nothing(problem: Problem, resources: Resources) -> float:
    del problem, resources
    return 0.0


def _unforeseen(problem: Problem, tolerance: float) -> None:
    del problem, tolerance


@dataclass(frozen=True)
class Method:
    """One way of solving.

    Parameters
    ----------
    name : str
    losses : frozenset of str
        What it can minimise.
    passes : callable
        Passes to expect, to eight digits, where nothing is known of the data but their
        shape.
    price : callable
        From a problem and resources to the cost of so many passes, or why it cannot be used
        there.
    begin : callable
        The training, from a problem, a tolerance (relative to the minimum of the
        objective), the most passes it may take, and weights to start from; methods that
        cannot start anywhere ignore these.
    iterates : bool, default=True
        Whether its passes depend on the data, so that a sample tells something.
    continues : bool, default=False
        Whether it can start from the weights of another.
    doubt : float, default=3.0
        By which factor ``passes`` and ``usual`` may be off.
    foreseen : callable, optional
        From a problem and a tolerance to the passes, where its shape or its spectrum tells
        them better than a run on a small sample would; else None.
    usual : callable, optional
        From a problem and a tolerance to the passes that data of its kind took, a nearer
        guess than ``passes``, which a run on a sample still replaces; else None.
    believed : float, default=0.5
        The share of a trend from sample to sample that goes on up to all rows; the rest is
        chance.
    algorithm : str, default=""
        What methods share that need the same passes, so that one speculates for all.
    unit : str, default="passes"
        What is counted: passes over the rows, or iterations that may touch a few rows only.
    waves : bool, default=False
        Whether its costs are those of the thread that takes longest, and not those of all
        threads together.
    least : callable, optional
        From a problem and resources to seconds that it certainly takes to eight digits: a
        bound that costs next to nothing, so that what cannot be the cheapest needs no
        closer look.
    """

    name: str
    losses: frozenset[str]
    passes: Callable[[Shape], float]
    price: Callable[[Problem, Resources], Price | str]
    begin: Callable[[Problem, float, int, Start], Solver]
    iterates: bool = True
    continues: bool = False
    doubt: float = 3.0
    foreseen: Callable[[Problem, float], float | None] = _unforeseen
    usual: Callable[[Problem, float], float | None] = _unforeseen
    believed: float = 0.5
    algorithm: str = ""
    unit: str = "passes"
    waves: bool = False
    least: Callable[[Problem, Resources], float] = _nothing


def problem_shape(problem: Problem) -> Shape:
    """What costs depend on."""
    return shape_of(problem.rows, problem.outputs)
