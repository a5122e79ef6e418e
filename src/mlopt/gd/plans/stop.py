"""When a solution is good enough: what every front end of a task has to say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeVar

from mlopt.errors import InputError


@dataclass(frozen=True)
class RelativeGap:
    """The objective is within a share of its minimum.

    Parameters
    ----------
    tolerance : float
        In (0, 1).
    """

    kind: ClassVar[str] = "gap"
    tolerance: float

    def __post_init__(self) -> None:
        if not 0 < self.tolerance < 1:
            raise InputError(
                f"`tolerance` must lie between 0 and 1, got {self.tolerance!r}."
            )

    def __str__(self) -> str:
        return f"tolerance {self.tolerance:g}"


@dataclass(frozen=True)
class GradientNorm:
    """No component of the gradient is larger: the rule of scikit-learn's lbfgs.

    Of a dual, where violations of its optimality count, that of LIBLINEAR.

    Parameters
    ----------
    tol : float
        At least 0, of the mean loss plus penalty.
    first : float, default=1.0
        What ``tol`` is relative to, but in a dual: the largest component at zero.
    """

    kind: ClassVar[str] = "gradient"
    tol: float
    first: float = 1.0

    def __post_init__(self) -> None:
        if not self.tol >= 0:
            raise InputError(f"`tol` must be at least 0, got {self.tol!r}.")

    def __str__(self) -> str:
        beside = "" if self.first == 1.0 else f" x {self.first:.3g}"
        return f"gradient {self.tol:g}{beside}"


@dataclass(frozen=True)
class CoefficientError:
    """Coefficients of least squares are as good as a factorization would make them.

    Parameters
    ----------
    accuracy : float
        Their relative error that is acceptable.
    gradient : float
        Conjugate gradients without a preconditioner stop where the gradient's norm is so
        many times that at zero, and with a penalty coefficients are certain to be as good.
    cutoff : float, optional
        Singular values below this fraction of the largest count as zero, in the units that
        columns have. By default what rounding hides, in units in which they are alike.
    """

    kind: ClassVar[str] = "coefficients"
    accuracy: float
    gradient: float
    cutoff: float | None = None

    def __str__(self) -> str:
        return f"coefficient error of {self.accuracy:g}"


Minimum = RelativeGap | GradientNorm
"""How near an objective is to its minimum."""
Stop = Minimum | CoefficientError
AnyStop = TypeVar("AnyStop", bound=Stop)


def tolerances(stop: Minimum) -> tuple[float, float]:
    """Of the gradient, and of the gap: 0 for what is not asked for."""
    if isinstance(stop, GradientNorm):
        return stop.tol, 0.0
    return 0.0, stop.tolerance


def asked_of(stop: AnyStop, *, dual: bool) -> AnyStop | Minimum:
    """The criterion in numbers that a method holds against its own.

    It sees a gap beside the objective where it is, of which the minimum may be a part.
    """
    if isinstance(stop, RelativeGap):
        return RelativeGap(stop.tolerance / (1.0 + stop.tolerance))
    if dual or not isinstance(stop, GradientNorm):
        return stop
    return GradientNorm(stop.tol * stop.first)


def of_minimum(gap: float) -> float:
    """What is at most a share ``gap`` of an objective, as a share of its minimum."""
    return gap / (1.0 - gap) if gap < 1.0 else float("inf")
