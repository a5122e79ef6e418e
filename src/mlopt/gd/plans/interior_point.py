"""Hinges with a free intercept by an interior point method: Newton's steps through a box.

Variables of the dual (`mlopt.gd.plans.bracket`) stay between their bounds, where

    s_i alpha_i = mu,    u_i (cost_i - alpha_i) = mu,    y_i (x_i w + b) - 1 = s_i - u_i

leads to the solution as mu goes to 0. A pass is a step, predicted and corrected (Mehrotra,
SIAM J. Optim. 2, 1992), by a factor of ``I + X' D^-1 X``, as few columns have it: how rows
are scaled, and whether classes can be separated, makes little difference (Ferris and
Munson, "Interior-point methods for massive support vector machines", SIAM J. Optim. 13,
2002).
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mlopt.cluster import single_threaded
from mlopt.costs import Cost
from mlopt.gd.gap import SPARE
from mlopt.gd.passes import pieces
from mlopt.gd.plans import newton_costs
from mlopt.gd.plans.bracket import Bracket
from mlopt.gd.plans.method import Method, Price, Start, at_least
from mlopt.gd.plans.one_model import OneModel
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import RelativeGap
from mlopt.gd.plans.task import Problem
from mlopt.gd.pricing import alone, gradient_pass
from mlopt.gd.row_products import no_room
from mlopt.gd.sizes import LOST
from mlopt.kernels.linear import weighted_gram
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.rows import Block

Array = NDArray[Any]

_START, _BACK = price("interior.start"), price("interior.back")
_FIRST, _DIGIT = price("interior.passes"), price("interior.passes.digit")
_PRODUCTS, _ROW = price("interior.products"), price("interior.row")
_STEP = price("interior.step")


class InteriorPoint(OneModel):
    """A `mlopt.training.Training` of one model, a step a pass.

    Its gap is that between the best weights so far and the best variables.

    Parameters
    ----------
    problem : Problem
        With the hinge loss, a penalty and a free intercept.
    stop : RelativeGap
    max_passes : int
    start : (coef, intercept), optional
        Arrays (1, d) and (1,); default 0.
    """

    _kept = (
        "passes", "_w", "_z", "_alpha", "_s", "_u", "_least", "_idle", "_stuck",
    )  # fmt: skip

    def __init__(
        self, problem: Problem, stop: RelativeGap, max_passes: int, start: Start = None
    ) -> None:
        self._problem, self._max_passes, self.passes = problem, max_passes, 0
        self._tolerance, self._bracket = stop.tolerance, Bracket(problem)
        # Rows without a weight have next to none: a box must have an inside.
        cost = self._bracket.cost
        self._cost = np.maximum(cost, LOST * cost.mean())
        self._w, d = np.zeros(problem.rows.d + 1), problem.rows.d
        if start is not None:
            self._w[:] = np.append(start[0][0], start[1][0])
        self._z = self._margins(self._w)
        self._bracket.narrow(self._w[:d], self._z - self._w[d], np.zeros_like(cost))
        self._central(_START * self._bracket.size / (2 * problem.rows.n))
        self._least, self._idle, self._stuck = np.inf, 0, False

    @property
    def gap(self) -> float:  # type: ignore[override]  # the bracket's
        """Of the best weights: a bound."""
        return self._bracket.gap

    @property
    def _weights(self) -> Array:  # type: ignore[override]  # the bracket's
        return self._bracket.best

    @property
    def _value(self) -> float:  # type: ignore[override]  # the bracket's
        return self._bracket.value

    def _margins(self, w: Array) -> Array:
        return np.asarray(self._bracket.margins(w[:-1]) + w[-1])

    def _central(self, mu: float) -> None:
        """Variables and slacks that agree with the margins, for a mean product ``mu``."""
        # s - u = r is a quadratic in t, of which alpha = cost (1 - t) / 2.
        q = (self._bracket.sign * self._z - 1.0) * self._cost / (4.0 * mu)
        t = np.clip(2.0 * q / (1.0 + np.hypot(1.0, 2.0 * q)), LOST - 1.0, 1.0 - LOST)
        self._alpha = 0.5 * self._cost * (1.0 - t)
        self._s, self._u = mu / self._alpha, mu / (self._cost - self._alpha)

    def _pass(self) -> None:
        with np.errstate(all="ignore"):
            try:
                length = self._step()
            except (LinAlgError, ValueError):  # rounding has made it indefinite, or NaN
                self._stuck = True
                return
        w, z = self._w, self._z
        self._bracket.narrow(w[:-1], z - w[-1], self._alpha)
        self._idle = 0 if self.gap < self._least else self._idle + 1
        self._least = min(self._least, self.gap)
        self._stuck = length < LOST or self._idle >= SPARE

    def _step(self) -> float:
        """Predict, correct, and go; how much of the step it could take."""
        sign, a, s, u = self._bracket.sign, self._alpha, self._s, self._u
        f, n, w = self._cost - a, len(a), self._w
        h = 1.0 / (s / a + u / f)
        off = sign * self._z - 1.0 - s + u
        lacking = np.append(w[:-1], 0.0) - self._sums(a * sign)
        with single_threaded():
            factor = cho_factor(self._hessian(h))

        def towards(low: Array, high: Array) -> tuple[Array, ...]:
            """The step to where ``s alpha`` and ``u (cost - alpha)`` have moved so far."""
            q = low / a - high / f - off
            dw = cho_solve(factor, self._sums(h * q * sign) - lacking)
            dz = self._margins(dw)
            da = h * (q - sign * dz)
            return dw, dz, da, (low - s * da) / a, (high + u * da) / f

        dw, dz, da, ds, du = towards(-a * s, -f * u)
        mu, t = float(a @ s + f @ u) / (2 * n), _length((a, da), (f, -da), (s, ds), (u, du))
        then = float((a + t * da) @ (s + t * ds) + (f - t * da) @ (u + t * du)) / (2 * n)
        wanted = mu * (then / mu) ** 3
        dw, dz, da, ds, du = towards(wanted - a * s - da * ds, wanted - f * u + da * du)
        t = _BACK * _length((a, da), (f, -da), (s, ds), (u, du))
        if not np.isfinite(t * dw).all():
            raise LinAlgError
        self._w, self._z, self._alpha = w + t * dw, self._z + t * dz, a + t * da
        self._s, self._u = s + t * ds, u + t * du
        return t

    def _sums(self, v: Array) -> Array:
        """``X' v``, and the sum of v (d + 1,)."""
        return np.append(self._bracket.combination(v), v.sum())

    def _hessian(self, h: Array) -> Array:
        """``I + X' diag(h) X``, bordered by the intercept (d + 1, d + 1)."""
        d = self._problem.rows.d
        H = np.empty((d + 1, d + 1))
        H[d] = H[:, d] = self._sums(h)
        H[:d, :d] = self._problem.rows.attach(h=h).map_reduce(_gram, operator.add)
        H[np.arange(d), np.arange(d)] += 1.0
        return H

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        return super().state() | {"bracket": self._bracket.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of the same problem."""
        super().restore(state)
        self._bracket.restore(state["bracket"])


def _length(*pairs: tuple[Array, Array]) -> float:
    """Of a step, 1 at most, at which nothing that is positive ends below zero."""
    ends = ((x / -dx)[dx < 0] for x, dx in pairs)
    return float(min(1.0, *(end.min(initial=1.0) for end in ends)))


def _gram(block: Block) -> Array:
    h = block.extra["h"]
    total = np.zeros((block.X.shape[1], block.X.shape[1]))
    for rows, X in pieces(block.X, np.float64):
        total += weighted_gram(X, h[rows])
    return total


def _foreseen(outline: Outline, tolerance: float) -> float:
    del outline
    return _FIRST - _DIGIT * float(np.log10(tolerance))


def _price(outline: Outline, resources: Resources) -> Price | str:
    shape = outline.shape
    if not outline.free_intercept:
        return "it is for a free intercept: without, each row's variable is free by itself"
    if outline.l2 == 0:
        return "there is no dual without a penalty: `l2` must be positive"
    if why := no_room(shape.d + 1, shape, resources):
        return why
    each = newton_costs.hessian_work(shape, resources, shape.n, outline.loss)
    each += newton_costs.factor_work(shape, resources) + Cost(python=_STEP)
    each += _PRODUCTS * gradient_pass(shape, resources) + alone(_ROW * shape.n, resources)
    return lambda passes: passes * each


INTERIOR_POINT = Method(
    "interior-point", frozenset({"hinge"}), lambda shape: _FIRST + 8 * _DIGIT, _price,
    InteriorPoint, bounds=True,
    continues=True, sudden=True, least=at_least(1), foreseen=_foreseen,
)  # fmt: skip
