"""One hyperparameter: what users write, as an Optuna distribution and back.

=================================  ====================================================
what the user writes               what Optuna sees
=================================  ====================================================
an optuna distribution             the same
scipy uniform, loguniform          a float range, linear or logarithmic
scipy randint, a range             an integer range
any other scipy distribution       a quantile in (0, 1)
anything else with ``rvs``         a number in (0, 1) that seeds it
a list, tuple or array of values   the values; labels where Optuna cannot hold them
=================================  ====================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any, Protocol, runtime_checkable

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)
from sklearn.utils import check_random_state

from mlopt.errors import InputError
from mlopt.identity import identified

# A quantile of exactly 0 or 1 is infinite for a normal distribution.
EDGE = 1e-6
LONGEST_LABEL = 60


@runtime_checkable
class Drawn(Protocol):
    """What scikit-learn's random searches draw from, of whatever origin."""

    def rvs(self, *, random_state: Any) -> Any:
        """A value."""
        ...


@runtime_checkable
class FrozenDistribution(Drawn, Protocol):
    """What ``scipy.stats.norm(0, 1)`` and its like give."""

    def ppf(self, q: Any) -> Any:
        """The value below which a part ``q`` of the distribution lies."""
        ...

    def support(self) -> tuple[Any, Any]:
        """The smallest and the largest value."""
        ...


@runtime_checkable
class DiscreteDistribution(FrozenDistribution, Protocol):
    """One of whole numbers, as ``scipy.stats.poisson(3)``."""

    def pmf(self, k: Any) -> Any:
        """The probability of ``k``."""
        ...


@runtime_checkable
class RandomVariable(Protocol):
    """What ``scipy.stats.Normal()`` and its like, new in scipy 1.15, give."""

    def icdf(self, p: Any) -> Any:
        """The value below which a part ``p`` of the distribution lies."""
        ...


@dataclass(frozen=True, eq=False)
class Parameter:
    """A hyperparameter of an estimator.

    Parameters
    ----------
    name : str
        As the estimator's ``set_params`` takes it.
    distribution : optuna distribution
        What samplers draw from. What they draw is a coordinate: a plain value that a
        study can hold.
    choices : tuple, optional
        The values that the labels of a categorical distribution stand for.
    quantile : callable, optional
        Given when the coordinate is a quantile, or seeds a draw: gives the value.
    """

    name: str
    distribution: BaseDistribution
    choices: tuple[Any, ...] | None = None
    quantile: Callable[[float], Any] | None = None

    def value(self, coordinate: Any) -> Any:
        """What the estimator gets."""
        if self.quantile is not None:
            value = self.quantile(coordinate)
            scalar = isinstance(value, np.generic | np.ndarray) and value.size == 1
            return value.item() if scalar else value
        if self.choices is not None:
            return self.choices[self.distribution.choices.index(coordinate)]
        return coordinate

    def mark(self, coordinate: Any) -> Hashable:
        """Equal for two coordinates exactly when they mean the same value."""
        value: Hashable = coordinate if self.quantile is None else self.value(coordinate)
        try:
            hash(value)
        except TypeError:
            return identified(value) or coordinate
        return value

    def __str__(self) -> str:
        """The values, as text that changes when they do."""
        text = distribution_to_json(self.distribution)
        if self.quantile is None:
            return str(text)
        return f"{text} of {[self.value(level) for level in (0.1, 0.5, 0.9)]}"

    @property
    def label(self) -> str:
        """The name in a study."""
        return self.name if self.quantile is None else f"{self.name} (quantile)"


def parameter(name: str, given: Any) -> Parameter:
    """The parameter ``name`` with the values that a user wrote down.

    Raises
    ------
    InputError
        ``given`` is empty, or not a set of values.
    """
    if isinstance(given, FrozenDistribution) and np.isnan(given.support()).any():
        return _by_seed(name, given)  # of one value; or of parameters that are none
    match given:
        case CategoricalDistribution():
            return _from_values(name, given.choices)
        case BaseDistribution():
            return Parameter(name, given)
        case DiscreteDistribution():
            return _from_discrete(name, given)
        case FrozenDistribution():
            return _from_continuous(name, given)
        case RandomVariable():
            return _by_quantile(name, given.icdf)
        case range() if given:
            low, high = min(given[0], given[-1]), max(given[0], given[-1])
            return Parameter(name, IntDistribution(low, high, step=abs(given.step)))
        case str() | bytes():
            pass
        case np.ndarray() if given.ndim != 1:
            pass
        case Sequence() | np.ndarray():
            return _from_values(name, list(given))
        case Drawn() if not isinstance(given, type):
            return _by_seed(name, given)
    raise InputError(
        f"`{name}` in the space must be an optuna distribution, a scipy.stats "
        f"distribution, a range or a list of values, got {given!r}. "
        f"To keep one value, write [{given!r}] or set it on the estimator."
    )


def _by_quantile(name: str, quantile: Callable[[float], Any]) -> Parameter:
    return Parameter(name, FloatDistribution(EDGE, 1 - EDGE), quantile=quantile)


def _by_seed(name: str, given: Drawn) -> Parameter:
    try:
        _drawn(given, 0.5)
    except Exception as error:  # of the user's own code, or of scipy's parameters
        raise InputError(
            f"`{name}` in the space must give a value by `rvs(random_state=...)`; "
            f"{given!r} raises {type(error).__name__}: {error}"
        ) from error
    return _by_quantile(name, partial(_drawn, given))


def _drawn(given: Drawn, seed: float) -> Any:
    return given.rvs(random_state=check_random_state(int(seed * 2**32)))


def _from_continuous(name: str, given: FrozenDistribution) -> Parameter:
    """Uniform in the value or in its logarithm: a range. Else by quantile."""
    low, high = (float(end) for end in given.support())
    if math.isfinite(low) and math.isfinite(high):
        levels = np.linspace(0.1, 0.9, 9)
        values = np.array([given.ppf(q) for q in levels], dtype=float)
        if np.allclose(values, low + levels * (high - low), rtol=1e-9, atol=0.0):
            return Parameter(name, FloatDistribution(low, high))
        by_log = low * (high / low) ** levels if low > 0 else np.nan
        if np.allclose(values, by_log, rtol=1e-9, atol=0.0):
            return Parameter(name, FloatDistribution(low, high, log=True))
    return _by_quantile(name, given.ppf)


def _from_discrete(name: str, given: DiscreteDistribution) -> Parameter:
    """Whole numbers of equal probability: a range. Else by quantile."""
    low, high = (float(end) for end in given.support())
    if math.isfinite(low) and math.isfinite(high):
        masses = [float(given.pmf(k)) for k in (low, (low + high) // 2, high)]
        if np.allclose(masses, 1 / (high - low + 1), atol=0.0):
            return Parameter(name, IntDistribution(int(low), int(high)))
    return _by_quantile(name, partial(_whole_quantile, given))


def _whole_quantile(given: DiscreteDistribution, level: float) -> int:
    return int(given.ppf(level))


def _from_values(name: str, given: Sequence[Any]) -> Parameter:
    """The values themselves where a study can hold and tell them apart; else labels."""
    values, seen = [], set[tuple[type, Any]]()
    for value in (v.item() if isinstance(v, np.generic) else v for v in given):
        if _is_plain(value):
            if (type(value), value) in seen:
                continue
            seen.add((type(value), value))
        values.append(value)
    if not values:
        raise InputError(
            f"`{name}` in the space must have at least one value, got {given!r}."
        )
    # True equals 1 and 1 equals 1.0, so Optuna would take one for the other
    if all(_is_plain(v) for v in values) and len(set(values)) == len(values):
        return Parameter(name, CategoricalDistribution(values))
    return Parameter(name, CategoricalDistribution(_labels(values)), tuple(values))


def _is_plain(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, (bool, int, str))


def _labels(values: Sequence[Any]) -> list[str]:
    """A short and distinct name for each value, the same in every process."""
    labels: list[str] = []
    for number, value in enumerate(values):
        label = name_of_value(value)
        labels.append(f"{label} #{number}" if label in labels else label)
    return labels


def name_of_value(value: Any) -> str:
    """A short text for a value, the same in every process."""
    if isinstance(value, (type, FunctionType)):
        return value.__name__
    text = value if isinstance(value, str) else " ".join(repr(value).split())
    # an address differs from process to process
    return (
        text
        if len(text) <= LONGEST_LABEL and " at 0x" not in text
        else type(value).__name__
    )
