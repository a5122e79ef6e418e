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
from mlopt.gd.parameters import check_count, check_positive


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
    """The norm of the change of the weights: the paper's rule (Listing 5).

    Parameters
    ----------
    order : {1, 2}, default=1
        Listing 5 sums absolute values; section 4.3 names the Euclidean norm.
    """

    order: int = 1

    def __call__(self, weights: Any, context: Context) -> float:
        change = np.ravel(weights - context["previous"])
        return float(np.linalg.norm(change, ord=self.order))


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


@dataclass(frozen=True)
class ObjectiveDecrease:
    """The relative decrease of the objective's mean over a window of iterations.

    The objective is that of the samples, at the weights before each step. Windows follow
    each other; the rule speaks at the end of each from the second on, and is infinite in
    between. An increase counts as a decrease of zero.

    The means have noise: windows of w samples of m rows cannot resolve decreases below
    about ``1 / sqrt(w m)`` times the spread of the rows' losses.

    Parameters
    ----------
    window : int, optional
        Default: ``n / m``, at least 10: as many iterations as touch n rows.
    """

    window: int | None = None

    def __post_init__(self) -> None:
        if self.window is not None:
            check_count("window", self.window)

    def __call__(self, weights: Any, context: Context) -> float:
        total = context["_total"]
        value = total.objective / context["rows"] if isinstance(total, Sums) else math.nan
        if math.isnan(value):
            raise InputError(
                "`ObjectiveDecrease` needs the objective: let `compute` return `Sums` with "
                "one, or choose another `converge`."
            )
        rows = max(1.0, context["seen"] / context["iteration"])
        window = self.window or max(10, math.ceil(context["n"] / rows))
        added, count, before = context.get("window", (0.0, 0, math.nan))
        added, count = added + value, count + 1
        if count < window:
            context["window"] = (added, count, before)
            return math.inf
        mean = added / count
        context["window"] = (0.0, 0, mean)
        if math.isnan(before):
            return math.inf
        return float(max(0.0, before - mean) / max(abs(before), 1e-300))


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
