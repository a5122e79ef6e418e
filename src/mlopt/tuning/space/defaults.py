"""Each family's configuration as its author left it, as the first points of a search."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from optuna.distributions import CategoricalDistribution, FloatDistribution

from mlopt.tuning.space.grid import at
from mlopt.tuning.space.parameters import Parameter
from mlopt.tuning.space.space import FAMILY, Family, Space

MIDDLE = 0.5


def default_points(space: Space) -> list[dict[str, Any]]:
    """First one point a family: the estimator's own values where the space has them.

    Then one for each family whose class has other defaults that the space has: a search is
    no worse than the class as it is. A parameter whose own value lies outside its
    distribution starts in the middle of it.
    """
    own = [_named(space, family, _point(family)) for family in space.families]
    return own + [point for point in class_points(space) if point not in own]


def class_points(space: Space) -> list[dict[str, Any]]:
    """One point a family: the defaults of its class, where the space has them."""
    return [
        _named(space, family, _point(family) | _class_values(family))
        for family in space.families
    ]


def _named(space: Space, family: Family, point: dict[str, Any]) -> dict[str, Any]:
    return ({FAMILY: family.name} if len(space.families) > 1 else {}) | point


def _point(family: Family) -> dict[str, Any]:
    own = family.estimator.get_params(deep=True)
    return {
        family.prefix + p.label: _coordinate(p, own.get(p.name)) for p in family.parameters
    }


def _class_values(family: Family) -> dict[str, Any]:
    """The coordinates whose distribution has the default of the parameter's class."""
    own = family.estimator.get_params(deep=True)
    values: dict[str, Any] = {}
    for p in family.parameters:
        path, _, name = p.name.rpartition("__")
        owner = own.get(path) if path else family.estimator
        known: Mapping[str, Any] = inspect.signature(type(owner).__init__).parameters
        found = _found(p, known[name].default) if name in known else []
        if p.choices is None and found:
            values[family.prefix + p.label] = found[0]
    return values


def _coordinate(parameter: Parameter, value: Any) -> Any:
    distribution = parameter.distribution
    if parameter.choices is not None:
        labels = distribution.choices
        pairs = zip(labels, parameter.choices, strict=True)
        return next((label for label, choice in pairs if choice is value), labels[0])
    return next(iter(_found(parameter, value)), at(distribution, MIDDLE))


def _found(parameter: Parameter, value: Any) -> list[Any]:
    """``value`` as the distribution has it; nothing where it has not."""
    distribution = parameter.distribution
    if parameter.quantile is not None:
        return []
    truth = isinstance(value, bool)  # True is not 1 here
    if isinstance(distribution, CategoricalDistribution):
        if not isinstance(value, str | int | float | np.generic | None):
            return []  # an array, say, which is no choice as it stands
        equal = [c for c in distribution.choices if c == value]
        equal = [c for c in equal if isinstance(c, bool) == truth]
        # Where 1 and 1.0 are both there, they mean one and all to some parameters.
        return sorted(equal, key=lambda c: type(c) is not type(value))
    if truth or not isinstance(value, int | float):
        return []
    whole = isinstance(distribution, FloatDistribution) or isinstance(value, int)
    if not whole or not distribution.low <= value <= distribution.high:
        return []
    if distribution.step is None:
        return [value]
    steps = (value - distribution.low) / distribution.step
    own = min(distribution.low + round(steps) * distribution.step, distribution.high)
    return [own] if math.isclose(steps, round(steps), abs_tol=1e-9) else []
