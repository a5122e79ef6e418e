"""From measurements to factors of the terms of costs: a pure function.

For an implementation with factors ``f`` and experiments i,

    minimise  sum_i rho(log(predicted_i(f) / measured_i)) + ridge^2 sum_t log(f_t)^2

with ``rho(r)`` about ``r^2`` for small r and linear in ``|r|`` for large ones. Logarithms
make every experiment count by its relative error, since times range over orders of
magnitude, and keep factors positive. The second sum leaves a term that no experiment tells
anything about at 1. A measurement that met a busy machine is an outlier: beyond small
errors, the sum grows only linearly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.resources import Calibration, Factors, Resources

RIDGE = 0.15
"""How strongly factors are drawn to 1: as by an experiment that is off by this share."""
MOST = 30.0
"""Factors lie between this and its inverse."""
_SMALL = 0.3
"""Relative errors up to this count by their square."""


@dataclass(frozen=True)
class Measurement:
    """One implementation in one experiment.

    Parameters
    ----------
    operator, implementation : str
        As in the calibration: "Ridge", "cholesky".
    cost : Cost
        As counted, without factors.
    seconds : float
        Measured, on one thread; positive.
    label : str, default=""
        The experiment, for people.
    """

    operator: str
    implementation: str
    cost: Cost
    seconds: float
    label: str = ""

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise InputError(f"`seconds` must be positive, got {self.seconds!r}.")

    def predicted(self, resources: Resources) -> float:
        """Seconds that the cost predicts, with the calibration of ``resources``."""
        factors = resources.calibration.of(self.operator, self.implementation)
        return self.cost.scaled(factors).seconds(resources)

    def ratio(self, resources: Resources) -> float:
        """Predicted over measured seconds: 1 is exact, 2 twice too slow."""
        return self.predicted(resources) / self.seconds


def fit(measurements: Iterable[Measurement], resources: Resources) -> Calibration:
    """The factors of every implementation that was measured.

    Parameters
    ----------
    measurements : iterable of Measurement
    resources : Resources
        The rates of the machine; its own calibration, if there is one, plays no part.
    """
    found = grouped(measurements)
    entries = {name: _factors(group, resources) for name, group in found.items()}
    return Calibration(tuple(sorted(entries.items())))


def grouped(measurements: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    """Measurements by "operator/implementation", in their order."""
    found: dict[str, list[Measurement]] = defaultdict(list)
    for one in measurements:
        found[f"{one.operator}/{one.implementation}"].append(one)
    return dict(found)


def _factors(group: Sequence[Measurement], resources: Resources) -> Factors:
    terms = [name for name in Factors.names() if any(getattr(m.cost, name) for m in group)]
    if not terms:
        return Factors()
    measured = np.log([m.seconds for m in group])

    def errors(logs: NDArray[np.float64]) -> NDArray[np.float64]:
        factors = _of(terms, logs)
        seconds = [m.cost.scaled(factors).seconds(resources) for m in group]
        off = np.log(np.maximum(seconds, 1e-12)) - measured
        return np.concatenate([robust(off), RIDGE * logs])

    bound = np.log(MOST)
    # A common factor first: it brings every term to where its share is seen.
    start = np.full(len(terms), -np.median(errors(np.zeros(len(terms)))[: len(group)]))
    start = np.clip(start, -0.99 * bound, 0.99 * bound)
    found = least_squares(errors, start, bounds=(-bound, bound), diff_step=1e-4)
    return _of(terms, found.x)


def _of(terms: Sequence[str], logs: NDArray[np.float64]) -> Factors:
    values = np.exp(logs).tolist()
    return Factors(**dict(zip(terms, values, strict=True)))


def robust(off: NDArray[np.float64]) -> NDArray[np.float64]:
    """Errors whose squares grow linearly beyond `_SMALL` (soft L1)."""
    scaled = (off / _SMALL) ** 2
    return np.asarray(np.sign(off) * _SMALL * np.sqrt(2 * (np.sqrt(1 + scaled) - 1)))
