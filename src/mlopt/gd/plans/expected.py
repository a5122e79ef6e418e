"""Passes to expect of a problem, as problems like it took them.

The files of `mlopt/prices/passes` hold problems, drawn ones and parts of real tables: what
is known of each before a run, and the passes that methods took. The logarithm of the passes
is foreseen from those of the nearest problems, as a Gaussian process: how far apart two may
be to tell of each other is fitted to them by ``benchmarks/passes.py``, for each method and
quantity. How far off that may be goes by how far off it would be for those beside it: where
rows begin to have no separating plane, neighbours take a hundred passes or thousands.
Beyond what was seen, a quantity counts as the last that was.

Rasmussen and Williams, "Gaussian processes for machine learning", 2006, equations (2.25),
(2.26), (4.17), with nu of 3/2, and (5.12).

Shapes: ``N`` problems, ``Q`` quantities.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from mlopt.gd.plans.look import Look
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import Minimum, RelativeGap
from mlopt.gd.sizes import ROUNDED
from mlopt.prices import SCALES, count, passes_of, price

QUANTITIES = (
    "digits", "penalty", "rows", "columns", "values", "alike", "least", "centred_least",
    "scaled_alike", "scaled_least", "rare", "spread", "sparse", "wide",
)  # fmt: skip
"""Logarithms to base 10: of the relative gap or the gradient asked for, negative; of the
penalty of the mean loss, over the mean squared length of a row; of rows for each weight of
a model; of columns; of stored values in a row; of `Look.alike`; of the least curvature,
`Look.least` and the penalty, over the mean squared length; the same of centred rows; of
what `Look` tells of scaled columns; of the share of the rarest class. `Look.spread`. And
whether rows are sparse; whether there are fewer of them than columns."""
RARE = 0.02
"""The share of problems beyond either end of what counts as seen."""
_ROUNDED = float(np.sqrt(np.finfo(np.float64).eps))
"""Of curvatures over the mean squared length: what is less may be rounding."""
_SUREST, _NEAR = price("passes.surest"), count("passes.near")
_BESIDE, _USUAL = count("passes.beside"), count("passes.usual")

Array = NDArray[np.float64]


def quantities(outline: Outline, tol: float, look: Look) -> Array:
    """`QUANTITIES` of a problem (Q,)."""
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
    rest = look.spread, shape.sparse, shape.d > shape.n
    return np.concatenate([np.log10(values), rest])


def _curvature(least: float, length: float) -> float:
    return max(least / max(length, ROUNDED), _ROUNDED)


@dataclass(frozen=True, eq=False)
class Scale:
    """How much problems tell of each other.

    Parameters
    ----------
    variance : float
        Of the logarithms of passes, of problems that have nothing in common.
    noise : float
        Of problems that have all quantities in common.
    doubt : float
        Standard deviations within which four problems of five were.
    lengths : ndarray of shape (Q,)
        Differences in quantities across which problems still tell of each other.
    """

    variance: float
    noise: float
    doubt: float
    lengths: Array

    def covariance(self, distance: Array) -> Array:
        """Of problems so many lengths apart."""
        far = np.sqrt(3.0) * distance
        return np.asarray(self.variance * (1.0 + far) * np.exp(-far))


@dataclass(frozen=True, eq=False)
class Seen:
    """Problems that a method has solved.

    Parameters
    ----------
    places : ndarray of shape (N, Q)
        Their quantities, in lengths.
    logs : ndarray of shape (N,)
        Of passes.
    scale : Scale
    """

    places: Array
    logs: Array
    scale: Scale

    @staticmethod
    def of(found: Array, logs: Array, scale: Scale) -> Seen:
        """From quantities (N, Q)."""
        return Seen(found / scale.lengths, logs, scale)

    def foresee(self, found: Array) -> tuple[float, float]:
        """The logarithm of the passes to expect of quantities (Q,), and its deviation."""
        scale, away = self.scale, self.places - found / self.scale.lengths
        distance = np.sqrt(np.einsum("nq,nq->n", away, away))
        near = np.arange(len(distance))
        if len(near) > _NEAR:
            near = np.argpartition(distance, _NEAR)[:_NEAR]
        places, mean = away[near], float(self.logs.mean())
        squares = np.einsum("nq,nq->n", places, places)
        apart = squares[:, None] + squares - 2.0 * (places @ places.T)
        inner = scale.covariance(np.sqrt(np.maximum(apart, 0.0)))
        inner[np.diag_indices_from(inner)] = scale.variance + scale.noise
        across = scale.covariance(distance[near])
        factor = cho_factor(inner, lower=True, overwrite_a=True, check_finite=False)
        right = np.column_stack([self.logs[near] - mean, across, np.eye(len(near))])
        solved = cho_solve(factor, right, check_finite=False)
        known, told = (across @ solved[:, :2]).tolist()
        left = max(scale.variance + scale.noise - told, scale.noise)
        # How far off each is when it is foreseen from the others, in variances.
        off = solved[:, 0] ** 2 / np.diag(solved[:, 2:])
        beside = off[np.argsort(distance[near])[:_BESIDE]]
        usual = (_USUAL + beside.sum()) / (_USUAL + len(beside))
        return mean + known, float(np.sqrt(left * usual))


@dataclass(frozen=True, eq=False)
class Problems:
    """Those of a file.

    Parameters
    ----------
    low, high : ndarray of shape (Q,)
        Of what counts as seen.
    seen : dict of method to Seen
    """

    low: Array
    high: Array
    seen: dict[str, Seen]

    @staticmethod
    def of(loss: str, stop: str, text: str) -> Problems:
        """From the lines of a file."""
        (*names,), *lines = csv.reader(text.splitlines())
        table = np.array([[float(one or "nan") for one in line] for line in lines])
        found, size = table[:, : len(QUANTITIES)], len(QUANTITIES)
        low, high = np.quantile(found, (RARE, 1 - RARE), axis=0)
        found, seen = np.clip(found, low, high), {}
        for method, passes in zip(names[size:], table[:, size:].T, strict=True):
            scale, took = scales().get((method, loss, stop)), ~np.isnan(passes)
            if scale is not None:
                seen[method] = Seen.of(found[took], np.log(passes[took]), scale)
        return Problems(low, high, seen)


@cache
def scales() -> dict[tuple[str, str, str], Scale]:
    """By method, loss and kind of stop."""
    _, *lines = csv.reader(SCALES.splitlines())
    found = {}
    for method, loss, stop, *numbers in lines:
        variance, noise, doubt, *lengths = map(float, numbers)
        found[method, loss, stop] = Scale(variance, noise, doubt, np.array(lengths))
    return found


@cache
def _problems(loss: str, stop: str) -> Problems | None:
    text = passes_of(loss, stop)
    return None if text is None else Problems.of(loss, stop, text)


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
    if outline.sharp or outline.look is None:
        return None
    if (method, outline.loss, stop.kind) not in scales():
        return None
    problems = _problems(outline.loss, stop.kind)
    assert problems is not None
    seen = problems.seen[method]
    tol = stop.tolerance if isinstance(stop, RelativeGap) else stop.tol
    found = np.clip(quantities(outline, tol, outline.look()), problems.low, problems.high)
    middle, deviation = seen.foresee(found)
    doubt = max(seen.scale.doubt * deviation, np.log(_SUREST))
    return float(np.exp(middle)), float(np.exp(doubt))
