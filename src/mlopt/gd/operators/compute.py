"""Compute: sums of gradients over a batch of rows.

Shapes: ``m`` rows of a batch, ``d`` columns, ``p`` weights: d, and one more for an
intercept, which comes last.

Each row has the objective ``f_i(w) = loss(x_i' w + b, y_i) + l2/2 |w|^2``. The intercept
has no penalty. The whole objective is the mean of all ``f_i``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlopt.errors import InputError
from mlopt.gd.columns import REGRESSION
from mlopt.gd.operators.calling import wrong
from mlopt.gd.operators.interfaces import Batch, Context, Floats, Sums
from mlopt.kernels.pointwise import losses_and_slopes, number_of
from mlopt.parameters import check_positive


@dataclass(frozen=True)
class Gradient:
    """The gradient of a linear model's loss.

    Parameters
    ----------
    loss : str, default="logistic"
        "squared", "logistic", "hinge", "squared_hinge" or "huber", as
        `mlopt.kernels.losses` defines them. Labels of margin losses are -1 and 1.
    l2 : float, default=0
    fit_intercept : bool, default=False
    delta : float, default=1
        Of the Huber loss.
    scale : float, default=1
        Times the loss. The paper's linear gradient is twice that of "squared".
    at : str, default="weights"
        The entry of the context at which gradients are taken.
    other : str, optional
        An entry at which gradients are taken too, once it is there (SVRG).
    """

    loss: str = "logistic"
    l2: float = 0.0
    fit_intercept: bool = False
    delta: float = 1.0
    scale: float = 1.0
    at: str = "weights"
    other: str | None = None

    def __post_init__(self) -> None:
        check_positive("l2", self.l2, zero=True)
        check_positive("delta", self.delta)
        check_positive("scale", self.scale)
        number_of(self.loss)

    def __call__(self, batch: Batch, context: Context) -> Sums:
        """Sums over the rows of the batch."""
        gradient, objective = self.sums(batch, context[self.at])
        if self.other is None or self.other not in context:
            return Sums(gradient, objective)
        return Sums(gradient, objective, self.sums(batch, context[self.other])[0])

    @np.errstate(over="ignore", invalid="ignore")  # in worker threads too
    def sums(self, batch: Batch, weights: Floats) -> tuple[Floats, float]:
        """The sum of gradients (p,) and of objectives at ``weights``."""
        d = len(weights) - self.fit_intercept
        if batch.X.shape[1] != d:
            raise InputError(
                f"`compute` has weights for {d} columns, but rows have {batch.X.shape[1]}: "
                "let `stage` set `weights` to fit what `transform` returns."
            )
        if self.loss not in REGRESSION and (no := batch.y[np.abs(batch.y) != 1]).size:
            raise InputError(
                f"Labels of the {self.loss} loss must be -1 and 1, got {no[0]:g}: give "
                "such, as sources of files do whose `positive` is the label of one class."
            )
        w, b = weights[:d], weights[-1] if self.fit_intercept else 0.0
        values, slopes = losses_and_slopes(self.loss, batch.X @ w + b, batch.y, self.delta)
        m = len(batch)
        total = self.scale * values.sum() + 0.5 * m * self.l2 * (w @ w)
        gradient = np.empty(len(weights))
        gradient[:d] = self.scale * (slopes @ batch.X) + (m * self.l2) * w
        if self.fit_intercept:
            gradient[-1] = self.scale * slopes.sum()
        return gradient, float(total)

    def objective(self, batch: Batch, weights: Floats) -> float:
        """The sum of objectives over the rows."""
        return self.sums(batch, weights)[1]


TABLE_3 = {
    "linear": Gradient("squared", scale=2.0),
    "logistic": Gradient("logistic"),
    "svm": Gradient("hinge"),
}
"""The gradients of ML4all's Table 3. They differ at one point only: for a row exactly on
the margin, y w'x = 1, the hinge loss of the kernels has slope -y and the paper's has 0.
Both are subgradients."""


@dataclass(frozen=True)
class UserGradient:
    """A gradient that the user brings.

    Parameters
    ----------
    gradient : callable
        ``gradient(x, y, w)`` of one row: x (d,), y a number, w (p,); returns (p,).
        With ``batched``, x is (m, d), y is (m,), and the sum over the rows is returned.
    objective_of : callable, optional
        ``objective_of(x, y, w)`` of one row, or of a batch as a sum. Rules that watch the
        objective need it.
    l2 : float, default=0
        Penalty on all weights.
    batched : bool, default=False
    at, other : str
        As for `Gradient`.
    """

    gradient: Callable[[Any, Any, Floats], Any]
    objective_of: Callable[[Any, Any, Floats], float] | None = None
    l2: float = 0.0
    batched: bool = False
    at: str = "weights"
    other: str | None = None

    def __call__(self, batch: Batch, context: Context) -> Sums:
        """Sums over the rows of the batch."""
        w = context[self.at]
        value = float("nan") if self.objective_of is None else self.objective(batch, w)
        if self.other is None or self.other not in context:
            return Sums(self._sum(batch, w), value)
        return Sums(self._sum(batch, w), value, self._sum(batch, context[self.other]))

    def _sum(self, batch: Batch, w: Floats) -> Floats:
        total = np.zeros(w.shape)
        for x, y in self._parts(batch):
            part = np.asarray(self.gradient(x, y, w))
            if part.shape != w.shape:
                raise wrong("compute", f"a gradient of shape {w.shape}", part)
            total += part
        return np.asarray(total + len(batch) * self.l2 * w)

    def objective(self, batch: Batch, weights: Floats) -> float:
        """The sum of objectives over the rows."""
        if self.objective_of is None:
            raise InputError("Give `objective_of` to see the objective of a UserGradient.")
        f = self.objective_of
        loss = sum(float(f(x, y, weights)) for x, y in self._parts(batch))
        return loss + 0.5 * len(batch) * self.l2 * float(weights @ weights)

    def _parts(self, batch: Batch) -> Any:
        if self.batched:
            return [(batch.X, batch.y)]
        X = batch.X if isinstance(batch.X, np.ndarray) else batch.X.toarray()
        return zip(X, batch.y, strict=True)


def mean_gradient(total: Any, context: Context) -> Floats:
    """The mean gradient over the sample, from `Sums` or a plain array of sums.

    Raises
    ------
    InputError
        When Compute returned something else, or a shape unlike the weights'.
    """
    gradient = total.gradient if isinstance(total, Sums) else np.asarray(total)
    if gradient.shape != np.shape(context["weights"]):
        raise wrong(
            "compute", f"a gradient of shape {np.shape(context['weights'])}", gradient
        )
    return np.asarray(gradient / context["rows"])
