"""Update: new weights from the sum of gradients.

``g`` is the mean gradient over the sample, ``a`` the step size of the iteration, counted
from 1. ML4all and MLlib take ``beta / sqrt(i)`` with beta = 1 for every algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlopt.errors import InputError
from mlopt.gd.batch import accepted
from mlopt.gd.operators.calling import wrong
from mlopt.gd.operators.compute import mean_gradient
from mlopt.gd.operators.interfaces import Context, Floats, Sums
from mlopt.gd.operators.samplers import is_snapshot
from mlopt.parameters import check_positive

_EPS = float(np.finfo(np.float64).eps)


Step = Callable[[int], float]
"""From the number of the iteration to a step size."""


@dataclass(frozen=True)
class _Scaled:
    """A step size that is ``beta`` times something."""

    beta: float = 1.0

    def __post_init__(self) -> None:
        check_positive("beta", self.beta)


class InverseRoot(_Scaled):
    """``beta / sqrt(i)``."""

    def __call__(self, iteration: int) -> float:
        return self.beta / math.sqrt(iteration)


class Inverse(_Scaled):
    """``beta / i``."""

    def __call__(self, iteration: int) -> float:
        return self.beta / iteration


class Constant(_Scaled):
    """``beta``."""

    def __call__(self, iteration: int) -> float:
        del iteration
        return self.beta


@dataclass(frozen=True)
class GradientStep:
    """``w - a g`` (Listing 3)."""

    step: Step = field(default_factory=InverseRoot)

    def __call__(self, total: Any, context: Context) -> Floats:
        a = self.step(context["iteration"])
        return np.asarray(context["weights"] - a * mean_gradient(total, context))


@dataclass(frozen=True)
class Adam:
    """Steps scaled by running moments (Kingma and Ba, 2015, Algorithm 1)."""

    step: Step = field(default_factory=InverseRoot)
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __call__(self, total: Any, context: Context) -> Floats:
        g, t = mean_gradient(total, context), context["iteration"]
        first, second = context.get("moments", (np.zeros_like(g), np.zeros_like(g)))
        first = self.beta1 * first + (1 - self.beta1) * g
        second = self.beta2 * second + (1 - self.beta2) * g * g
        context["moments"] = (first, second)
        mean, square = first / (1 - self.beta1**t), second / (1 - self.beta2**t)
        move = self.step(t) * mean / (np.sqrt(square) + self.epsilon)
        return np.asarray(context["weights"] - move)


@dataclass(frozen=True)
class BarzilaiBorwein:
    """``a = s's / s'r`` with s and r the last changes of weights and gradient.

    Source: Barzilai and Borwein (1988), equation (5). Where the curvature ``s'r`` is not
    positive, the step size of ``step`` is taken. It may increase the objective for a while.
    """

    step: Step = field(default_factory=InverseRoot)

    def __call__(self, total: Any, context: Context) -> Floats:
        g, a = mean_gradient(total, context), self.step(context["iteration"])
        if "last_gradient" in context:
            s, r = context["weights"] - context["previous"], g - context["last_gradient"]
            curvature = float(s @ r)
            if curvature > _EPS * float(np.linalg.norm(s) * np.linalg.norm(r)):
                a = float(s @ s) / curvature
        context["last_gradient"] = g
        return np.asarray(context["weights"] - a * g)


@dataclass(frozen=True)
class Backtracking:
    """Line search: ``a <- beta a`` until ``f(w) - f(w - a g) >= c a |g|^2``.

    One trial step is one iteration: the nested loop is flattened, as in Listings 9 and 10
    of the paper. Compute must have ``at="trial"``; it returns objective and gradient there,
    so that an accepted trial needs no pass for its gradient. While trials are refused there
    are no new weights.

    The paper's test compares the decrease with ``a i``, and goes on while it is large. That
    is no descent test. This is Armijo's, with c of `mlopt.gd.batch`.

    Parameters
    ----------
    beta : float, default=0.5
        Each search starts at the last step size divided by beta.
    first : float, default=1
        The first step size that is tried.
    """

    beta: float = 0.5
    first: float = 1.0

    def __post_init__(self) -> None:
        check_positive("first", self.first)
        if not 0 < self.beta < 1:
            raise InputError(f"`beta` must lie between 0 and 1, got {self.beta!r}.")

    def __call__(self, total: Any, context: Context) -> Floats | None:
        if not isinstance(total, Sums):
            raise wrong("compute", "`Sums` with an objective for a line search", total)
        g, f = mean_gradient(total, context), total.objective / context["rows"]
        at, f0, g0 = context.get("search", (self.first * self.beta, np.inf, None))
        if g0 is not None and not self._armijo(f0, f, float(g0 @ g0), at):
            context["search"] = (self.beta * at, f0, g0)
            context["trial"] = context["weights"] - self.beta * at * g0
            return None
        weights = np.asarray(context["trial"] if g0 is not None else context["weights"])
        context["search"] = (at / self.beta, f, g)
        context["trial"] = weights - at / self.beta * g
        return weights

    @staticmethod
    def _armijo(f0: float, f: float, square: float, a: float) -> bool:
        one = np.ones(1)
        return bool(accepted(f0 * one, f * one, -square * one, a * one, _EPS)[0])


@dataclass(frozen=True)
class Svrg:
    """Variance reduced steps (ML4all, Algorithm 2; Johnson and Zhang, 2013).

    In iterations 1, 1 + every, ...: ``u <- w``, ``mu <- `` the full gradient, ``w - a mu``.
    Otherwise ``w - a (g(w) - g(u) + mu)``. The Compute beside it has ``other="anchor"``,
    and the Sample is `Flattened` with the same ``every``.
    """

    step: Step = field(default_factory=InverseRoot)
    every: int = 100

    def __call__(self, total: Any, context: Context) -> Floats:
        g, a = mean_gradient(total, context), self.step(context["iteration"])
        if is_snapshot(context["iteration"], self.every):
            context["anchor"], context["anchor_gradient"] = context["weights"], g
            return np.asarray(context["weights"] - a * g)
        if not isinstance(total, Sums) or total.other is None:
            raise wrong("compute", "`Sums` with gradients at two weights for SVRG", total)
        calm = g - total.other / context["rows"] + context["anchor_gradient"]
        return np.asarray(context["weights"] - a * calm)
