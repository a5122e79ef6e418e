"""Passes to expect of a problem, as problems of many kinds took them.

For a method, a loss and a kind of rows, the logarithm of the passes is a quadratic in
shape, criterion and what a look at a few rows tells, and so is the logarithm of the factor
by which these are off at most on four problems of five. `mlopt/prices/passes.csv` holds the
coefficients, fitted by ``benchmarks/passes.py`` to drawn problems and to real ones; beyond
what was seen there, a quantity counts as the last that was.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.plans.look import Look
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import Minimum, RelativeGap
from mlopt.gd.pricing import Shape
from mlopt.gd.sizes import ROUNDED
from mlopt.prices import EXPECTED, price

QUANTITIES = (
    "digits", "penalty", "rows", "columns", "values", "alike", "least", "centred_least",
    "scaled_alike", "scaled_least", "rare", "spread",
)  # fmt: skip
"""Logarithms to base 10: of the relative gap or the gradient asked for, negative; of the
penalty of the mean loss, over the mean squared length of a row; of rows for each weight of
a model; of columns; of stored values in a row; of `Look.alike`; of the least curvature,
`Look.least` and the penalty, over the mean squared length; the same of centred rows; of
what `Look` tells of scaled columns; of the share of the rarest class. And `Look.spread`."""
ANY, KINDS = "any", ("narrow", "wide", "sparse")
"""Kinds of rows: dense ones of fewer columns than there are rows, or more; sparse ones."""
_ROUNDED = float(np.sqrt(np.finfo(np.float64).eps))
"""Of curvatures over the mean squared length: what is less may be rounding."""
_SUREST = price("passes.surest")

Array = NDArray[np.float64]


def quantities(outline: Outline, tol: float, look: Look) -> Array:
    """`QUANTITIES` of a problem (12,)."""
    shape = outline.shape
    together = shape.columns if outline.loss == "multinomial" else 1
    values = (
        1.0 / max(tol, ROUNDED),
        max(outline.l2 / max(look.length, ROUNDED), ROUNDED),
        shape.n / (shape.d + 1) / together,
        shape.d,
        max(shape.nonzero / shape.n, ROUNDED),
        max(look.alike, _ROUNDED),
        _curvature(look.least + outline.l2, look.length),
        _curvature(look.centred_least + outline.l2, look.centred_length),
        max(look.scaled_alike, _ROUNDED),
        max(look.scaled_least, _ROUNDED),
        max(look.rare, ROUNDED),
    )
    return np.append(np.log10(values), look.spread)


def kind_of(shape: Shape) -> str:
    """One of `KINDS`."""
    return "sparse" if shape.sparse else "wide" if shape.d > shape.n else "narrow"


def _curvature(least: float, length: float) -> float:
    return max(least / max(length, ROUNDED), _ROUNDED)


def terms(found: Array, low: Array, high: Array) -> Array:
    """1, quantities and their products (..., 91), between what was seen as from -1 to 1."""
    middle, half = (high + low) / 2, np.maximum(high - low, ROUNDED) / 2
    scaled = (np.clip(found, low, high) - middle) / half
    first, second = np.triu_indices(scaled.shape[-1])
    ones = np.ones_like(scaled[..., :1])
    products = scaled[..., first] * scaled[..., second]
    return np.concatenate([ones, scaled, products], axis=-1)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A line of the file.

    Parameters
    ----------
    low, high : ndarray of shape (12,)
        Of each quantity, among the problems.
    passes, doubt : ndarray of shape (91,)
        Coefficients of `terms`.
    """

    low: Array
    high: Array
    passes: Array
    doubt: Array


def _read(line: list[str]) -> Fitted:
    numbers, size = np.array(line, np.float64), len(QUANTITIES)
    low, high, rest = np.split(numbers, [size, 2 * size])
    return Fitted(low, high, *np.split(rest, 2))


_, *_LINES = csv.reader(EXPECTED.splitlines())
FITTED = {tuple(line[:4]): _read(line[4:]) for line in _LINES}
"""By method, loss, kind of stop and kind of rows, of which one is any."""


def expected(method: str, outline: Outline, stop: Minimum) -> tuple[float, float] | None:
    """Passes, and by which factor they may be off.

    Parameters
    ----------
    method : str
    outline : Outline
    stop : RelativeGap or GradientNorm

    Returns
    -------
    (float, float) or None
        None where no such problems were seen.
    """
    known = [
        FITTED.get((method, outline.loss, stop.kind, kind))
        for kind in (kind_of(outline.shape), ANY)
    ]
    fitted = known[0] or known[1]
    if fitted is None or outline.sharp or outline.look is None:
        return None
    tol = stop.tolerance if isinstance(stop, RelativeGap) else stop.tol
    found = terms(quantities(outline, tol, outline.look()), fitted.low, fitted.high)
    doubt = max(float(found @ fitted.doubt), np.log(_SUREST))
    return float(np.exp(found @ fitted.passes)), float(np.exp(doubt))
