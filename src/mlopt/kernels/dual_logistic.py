"""Dual coordinate descent for logistic regression: arrays in, arrays out.

Yu, Huang, Lin, "Dual coordinate descent methods for logistic regression and maximum entropy
models", Machine Learning 85, 2011, Algorithm 5. The primal is

    min_w  1/2 ||w||^2 + sum_i C_i log(1 + exp(-y_i w.x_i))

and its dual has one variable a row,

    min_alpha  1/2 ||sum_i alpha_i y_i x_i||^2
               + sum_i alpha_i log(alpha_i / C_i) + rest_i log(rest_i / C_i)

with ``rest_i = C_i - alpha_i`` and ``0 <= alpha_i <= C_i``. The minimum over one variable
is found by Newton's method on whichever of ``alpha_i`` and ``rest_i`` ends up smaller, so
that neither loses its digits; both are kept.

Shapes: ``n`` rows, ``d`` columns; rows as in `mlopt.kernels.one_row`. ``w`` is (d,);
``y`` (-1 or 1), ``C``, ``norms`` (squared), ``alpha`` and ``rest`` are (n,); float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import inlined, kernel, read_only
from mlopt.kernels.one_row import add, combination, dot, layout, seeded, shuffle

Array = NDArray[Any]

_BACK = 0.1
_MOST_STEPS = 100
_START, _LEAST = 1e-3, 1e-8
_ROUGH, _FINE, _SHARPER = 1e-2, 1e-8, 0.1


@inlined
def _minimum(a: float, b: float, C: float, old: float, tol: float) -> tuple[float, int]:
    """Where ``z log z + (C-z) log(C-z) + a/2 (z - old)^2 + b (z - old)`` is least.

    Returns it, and how many steps that took.
    """
    z = 0.1 * old if C - old < 0.5 * C else old
    steps = 0
    for _ in range(_MOST_STEPS):
        slope = a * (z - old) + b + math.log(z / (C - z))
        if abs(slope) < tol:
            break
        trial = z - slope / (a + C / (C - z) / z)
        z = _BACK * z if trial <= 0.0 else min(trial, 0.5 * (z + C))
        steps += 1
    return z, steps


@kernel
def _epoch(
    X: Array, data: Array, indices: Array, indptr: Array, norms: Array, y: Array, C: Array,
    alpha: Array, rest: Array, w: Array, order: Array, random: Array, accuracy: Array,
) -> None:  # fmt: skip
    n, total = alpha.shape[0], 0
    shuffle(order, n, random)
    for position in range(n):
        i = order[position]
        if C[i] <= 0.0:
            continue
        a, b = norms[i], y[i] * dot(X, data, indices, indptr, i, w)
        high = 0.5 * a * (rest[i] - alpha[i]) + b < 0.0
        old = rest[i] if high else alpha[i]
        z, steps = _minimum(a, -b if high else b, C[i], old, accuracy[0])
        total += steps
        if z == old:
            continue
        if high:
            rest[i], alpha[i] = z, C[i] - z
        else:
            alpha[i], rest[i] = z, C[i] - z
        add(X, data, indices, indptr, i, y[i] * (old - z if high else z - old), w)
    if total <= n // 10:
        accuracy[0] = max(_FINE, _SHARPER * accuracy[0])


@dataclass(frozen=True)
class LogisticState:
    """Where the dual stands; `logistic_epoch` changes the arrays in place.

    Attributes
    ----------
    alpha, rest : ndarray of shape (n,)
        Their sum is C.
    w : ndarray of shape (d,)
        ``sum_i alpha_i y_i x_i``.
    order : ndarray of shape (n,), int64
    random : ndarray of shape (1,), int64
        State of the generator.
    accuracy : ndarray of shape (1,)
        Slope at which the minimum over one variable counts as found.
    """

    alpha: NDArray[np.float64]
    rest: NDArray[np.float64]
    w: NDArray[np.float64]
    order: NDArray[np.int64]
    random: NDArray[np.int64]
    accuracy: NDArray[np.float64]

    @staticmethod
    def start(X: Any, y: Array, C: Array, seed: int) -> LogisticState:
        """All variables near zero, where their logarithms still exist."""
        alpha = np.minimum(_START * C, _LEAST)
        w = combination(X, alpha * y)
        order = np.arange(len(y))
        accuracy = np.array([_ROUGH])
        return LogisticState(alpha, C - alpha, w, order, seeded(seed), accuracy)

    def objective(self, C: Array) -> float:
        """Of the dual, which the primal is never below minus this."""
        half = 0.5 * float(self.w @ self.w)
        used = C > 0
        both = [values[used] for values in (self.alpha, self.rest)]
        return half + sum(float(v @ np.log(v / C[used])) for v in both)


def logistic_epoch(X: Any, norms: Array, y: Array, C: Array, state: LogisticState) -> None:
    """Minimise over each variable in turn, in random order.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, d)
    norms, y, C : ndarray of shape (n,), float64
    state : LogisticState
        Changed in place.
    """
    _epoch(
        *map(read_only, (*layout(X), norms, y, C)),
        state.alpha, state.rest, state.w, state.order, state.random, state.accuracy,
    )  # fmt: skip
