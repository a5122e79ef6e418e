"""Each family's configuration as its author left it, as the first points of a search."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

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
        if p.choices is None and name in known and _contains(p, known[name].default):
            values[family.prefix + p.label] = known[name].default
    return values


def _coordinate(parameter: Parameter, value: Any) -> Any:
    distribution = parameter.distribution
    if parameter.choices is not None:
        labels = distribution.choices
        pairs = zip(labels, parameter.choices, strict=True)
        return next((label for label, choice in pairs if choice is value), labels[0])
    return value if _contains(parameter, value) else at(distribution, MIDDLE)


def _contains(parameter: Parameter, value: Any) -> bool:
    distribution = parameter.distribution
    if parameter.quantile is not None:
        return False
    if isinstance(distribution, CategoricalDistribution):
        truth = isinstance(value, bool)  # True is not 1 here
        return any(
            c == value and isinstance(c, bool) == truth for c in distribution.choices
        )
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    whole = isinstance(distribution, FloatDistribution) or isinstance(value, int)
    return whole and distribution.low <= value <= distribution.high
