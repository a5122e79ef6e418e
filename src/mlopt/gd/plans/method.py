"""One way of solving a task, as the optimizer sees it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

from numpy.typing import NDArray

from mlopt.costs import Cost
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import CoefficientError, RelativeGap, Stop
from mlopt.gd.plans.task import Problem
from mlopt.gd.pricing import Shape
from mlopt.gd.sizes import HALF
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.training import Training

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


OPERATOR = "gd"
"""What calibrations call the methods of the table, unless these have another name."""
_CALL = price("method.call")
_USUAL_DIGITS = -math.log10(HALF)
"""Decimal digits that typical passes are to."""


def digits(tolerance: float) -> float:
    """The digits asked for, of the eight that typical passes are for."""
    return -math.log10(tolerance) / _USUAL_DIGITS


def priced(
    cost: Callable[[Outline, Resources, float], Cost | str],
) -> Callable[[Outline, Resources], Price | str]:
    """A price from a cost of so many passes that may refuse a problem."""

    def price(outline: Outline, resources: Resources) -> Price | str:
        once = cost(outline, resources, 1.0)
        if isinstance(once, str):
            return once
        return lambda passes: cast(Cost, cost(outline, resources, passes))

    return price


def at_least(passes: float) -> Callable[[Outline, Resources], float]:
    """So many passes, and each no faster than memory."""

    def seconds(outline: Outline, resources: Resources) -> float:
        each = Cost(memory=outline.shape.nbytes / resources.workers, python=_CALL)
        return passes * each.seconds(resources, resources.threads)

    return seconds


def _nothing(outline: Outline, resources: Resources) -> float:
    del outline, resources
    return 0.0


def _unforeseen(outline: Outline, tolerance: float) -> None:
    del outline, tolerance


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
    steps : callable, optional
        From an outline and a `CoefficientError` to the passes until it is met; for methods
        that can stop there.
    factors : bool, default=False
        Whether it is made of factorizations, for which BLAS has all threads if they are
        large: between passes, its threads wait for more at the cost of the passes.
    price : callable
        From an outline and resources to the cost of so many passes, or why it cannot be
        used there.
    begin : callable
        The training, from a problem, when it may stop, the most passes it may take, and
        weights to start from; methods that cannot start anywhere ignore these.
    stops : tuple of types
        The criteria at which it can stop.
    sharp : bool, default=False
        Whether it is for penalties with kinks or edges.
    bounds : bool, default=False
        Whether its gap is a bound, that of a dual.
    iterates : bool, default=True
        Whether its passes depend on the data, so that a sample tells something.
    continues : bool, default=False
        Whether it can start from the weights of another.
    sudden : bool, default=False
        Whether its last steps bring nearly all digits of the gap, so that how it fell
        before them tells nothing.
    doubt : float, default=3.0
        By which factor ``passes`` may be off.
    foreseen : callable, optional
        From an outline and a gap to the passes, where shape or spectrum tells
        them better than a run on a small sample would; else None.
    usual : callable, optional
        From an outline and a gap to the passes that data of its kind took, and by which
        factor that may be off: a nearer guess than ``passes`` and ``doubt``, which a run on
        a sample still replaces; else None.
    algorithm : str, default=""
        What methods share that need the same passes, so that one speculates for all.
    unit : str, default="passes"
        What is counted: passes over the rows, or iterations that may touch a few rows only.
    stride : int, default=1
        Passes between two looks at limits, where passes are short.
    free : int, default=0
        Passes that no step has led to, and no limit of the user's counts.
    in_one_piece : bool, default=False
        Whether it steps from row to row or column to column, in this process.
    waves : bool, default=False
        Whether its costs are those of the thread that takes longest, and not those of all
        threads together.
    operator : str, default="gd"
        What calibrations call it, before its name.
    small : callable, optional
        Whether it can solve a problem of few values, and is to be taken for it without a
        price unless a method that stands before it in an estimator's list is.
    least : callable, optional
        From an outline and resources to seconds that it certainly takes to eight digits: a
        bound that costs next to nothing, so that what cannot be the cheapest needs no
        closer look.
    """

    name: str
    losses: frozenset[str]
    passes: Callable[[Shape], float]
    price: Callable[[Outline, Resources], Price | str]
    begin: Callable[[Problem, Any, int, Start], Solver]
    stops: tuple[type[Stop], ...] = (RelativeGap,)
    sharp: bool = False
    bounds: bool = False
    iterates: bool = True
    continues: bool = False
    sudden: bool = False
    doubt: float = 3.0
    foreseen: Callable[[Outline, float], float | None] = _unforeseen
    usual: Callable[[Outline, float], tuple[float, float] | None] = _unforeseen
    steps: Callable[[Outline, CoefficientError], float] | None = None
    factors: bool = False
    algorithm: str = ""
    unit: str = "passes"
    stride: int = 1
    free: int = 0
    in_one_piece: bool = False
    waves: bool = False
    operator: str = OPERATOR
    small: Callable[[Problem], bool] | None = None
    least: Callable[[Outline, Resources], float] = _nothing

    def calibrated(self, outline: Outline, resources: Resources) -> Price | str:
        """The price, with the factors that were measured on this machine."""
        counted = self.price(outline, resources)
        if isinstance(counted, str) or not resources.calibration.entries:
            return counted
        factors = resources.calibration.of(self.operator, self.name)
        return lambda passes: counted(passes).scaled(factors)
