"""Stage, Converge and Loop: how a run starts, and how it knows its end.

The paper's rule, `WeightDelta`, is unsound for stochastic steps. A row that is on the right
side of the margin has a zero gradient under the hinge loss, so that SGD "converges" in its
first such iteration, with a model that is hardly trained. It is here for comparison.
`GradientNorm` and `ObjectiveDecrease` are the rules to use.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlopt.errors import InputError
from mlopt.gd.operators.compute import mean_gradient
from mlopt.gd.operators.interfaces import Batch, Context, Sums
from mlopt.parameters import check_positive


@dataclass(frozen=True)
class ZeroWeights:
    """Weights of zero: as many as columns, and one more for an intercept (Listing 4).

    Parameters
    ----------
    fit_intercept : bool, default=False
    columns : int, optional
        Default: those of the source.
    also : str, optional
        Another entry that starts like the weights: where Compute takes its gradients.
    """

    fit_intercept: bool = False
    columns: int | None = None
    also: str | None = None

    def __call__(self, rows: Batch | None, context: Context) -> Batch | None:
        d = context["columns"] if self.columns is None else self.columns
        context["weights"] = np.zeros(d + self.fit_intercept)
        if self.also is not None:
            context[self.also] = context["weights"]
        return rows


@dataclass(frozen=True)
class WeightDelta:
    """The sum of the changes of the weights: the paper's rule (Listing 5).

    Its section 4.3 names the Euclidean norm, which is less.
    """

    def __call__(self, weights: Any, context: Context) -> float:
        return float(np.abs(weights - context["previous"]).sum())


@dataclass(frozen=True)
class GradientNorm:
    """The norm of the full gradient, relative to that at the first weights, which are zero.

    Infinite in iterations that see a sample only. The gradient is that with which the last
    step was made.
    """

    def __call__(self, weights: Any, context: Context) -> float:
        if not context["full"]:
            return math.inf
        norm = float(np.linalg.norm(mean_gradient(context["_total"], context)))
        first = context.setdefault("first_norm", norm)
        return norm / first if first > 0 else 0.0


_BLOWN = 1e4
"""Times the first objective that are divergence: steps of ``1 / sqrt(i)`` may start far too
long and recover from less."""
_TIMES = 3
"""Iterations in a row that must be so far off."""
_FIRST_ROWS = 100
"""Rows that the first objective is of, at least where an iteration has as many."""


def diverges(total: Any, context: Context) -> str:
    """What tells that steps are too long, or nothing.

    The objective of `Sums`, that of the rows of an iteration at the weights before the
    step, has been far above those of the first rows for a few iterations, and rises.
    """
    if not isinstance(total, Sums) or math.isnan(total.objective):
        return ""
    value = total.objective / context["rows"]
    first = context.setdefault("first_value", value)
    if context["seen"] <= _FIRST_ROWS:
        first = context["first_value"] = max(first, value)
    last = context.get("last_value", value)
    blown = not value <= _BLOWN * max(abs(first), 1e-300) and value >= last
    context["last_value"] = value
    context["blown"] = context.get("blown", 0) + 1 if blown else 0
    if context["blown"] < _TIMES:
        return ""
    return (
        f"diverged: after {context['iteration']} iterations the objective is {value:.3g}, "
        f"{_BLOWN:g} times that of the first rows and more; take a smaller step"
    )


@dataclass(frozen=True)
class ObjectiveDecrease:
    """The relative decrease of the objective's mean from one window to the next.

    The objective is that of the samples, at the weights before each step. Windows follow
    each other, each twice as long as the last: steps of ``1 / sqrt(i)`` leave an excess
    that shrinks by a share whenever i doubles, so that a small decrease says that little is
    left, which it would not for windows of one length. The rule speaks at the end of each
    window from the second on, and is infinite in between.

    Delta is not below the standard error of the decrease. So noise cannot end a run; and
    with few rows in a sample, a tight tolerance takes many iterations to confirm: about
    ``2 v / (m tolerance^2)`` for a variance v of the rows' losses in units of their mean.
    The first window has ``n / m`` iterations, at least 10: as many as touch n rows.
    """

    def __call__(self, weights: Any, context: Context) -> float:
        total = context["_total"]
        value = total.objective / context["rows"] if isinstance(total, Sums) else math.nan
        if math.isnan(value):
            raise InputError(
                "`ObjectiveDecrease` needs the objective: let `compute` return `Sums` with "
                "one, or choose another `converge`."
            )
        present = Moments(*context.get("window", ())).with_value(value)
        first = _iterations_over_all(context, context["rows"])
        length = context.setdefault("window_length", first)
        context["window"] = present.as_tuple()
        if present.count < length:
            return math.inf
        context["window"], context["window_length"] = (), 2 * length
        last = Moments(*context.get("last_window", ()))
        context["last_window"] = present.as_tuple()
        return present.decrease_from(last) if last.count else math.inf


def _iterations_over_all(context: Context, rows: float) -> int:
    """Iterations of so many rows that touch n rows, at least 10."""
    return max(10, math.ceil(float(context["n"]) / max(1, rows)))


@dataclass(frozen=True)
class Moments:
    """How many values there were, their mean, and squared deviations (Welford, 1962)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def with_value(self, value: float) -> Moments:
        """One value more."""
        count, off = self.count + 1, value - self.mean
        mean = self.mean + off / count
        return Moments(count, mean, self.squares + off * (value - mean))

    def as_tuple(self) -> tuple[int, float, float]:
        """Plain numbers, for a checkpoint."""
        return self.count, self.mean, self.squares

    @property
    def variance(self) -> float:
        """Of the mean."""
        return self.squares / max(1, self.count - 1) / self.count

    def decrease_from(self, last: Moments) -> float:
        """The relative decrease since another window, or its standard error if larger."""
        noise = math.sqrt(self.variance + last.variance)
        found = max(last.mean - self.mean, noise) / max(abs(last.mean), 1e-300)
        return math.inf if math.isnan(found) else found  # a mean that overflowed


@dataclass(frozen=True)
class AverageDelta:
    """The relative change of the weights' mean, from window to window of iterations.

    For stochastic steps whose objective is not known: single changes say nothing (a row
    whose gradient is zero changes nothing), their mean over as many iterations as touch n
    rows does. Infinite within windows, and while all weights are zero.
    """

    def __call__(self, weights: Any, context: Context) -> float:
        length = _iterations_over_all(context, context["seen"] / context["iteration"])
        added, count, before = context.get("window", (0.0, 0, None))
        added, count = added + np.ravel(weights), count + 1
        if count < length:
            context["window"] = (added, count, before)
            return math.inf
        mean = added / count
        context["window"] = (0.0, 0, mean)
        size = float(np.linalg.norm(mean))
        if before is None or size == 0:
            return math.inf
        return float(np.linalg.norm(mean - before)) / size


@dataclass(frozen=True)
class Tolerance:
    """Go on until delta falls below the tolerance (Listing 6).

    Parameters
    ----------
    tolerance : float, default=1e-3
        ML4all's default.
    """

    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        check_positive("tolerance", self.tolerance, zero=True)

    def __call__(self, delta: float, context: Context) -> bool:
        del context
        return delta >= self.tolerance


def always(delta: float) -> bool:
    """The Loop of a run that something else ends."""
    del delta
    return True
