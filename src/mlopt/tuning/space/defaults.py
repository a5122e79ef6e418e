"""Each family's configuration as its author left it, as the first points of a search."""

from __future__ import annotations

from typing import Any

from optuna.distributions import CategoricalDistribution, FloatDistribution

from mlopt.tuning.space.grid import at
from mlopt.tuning.space.parameters import Parameter
from mlopt.tuning.space.space import FAMILY, Family, Space

MIDDLE = 0.5


def default_points(space: Space) -> list[dict[str, Any]]:
    """One point a family: the estimator's own values where the space has them.

    A parameter whose own value lies outside its distribution starts in the middle of it.
    """
    many = len(space.families) > 1
    return [({FAMILY: f.name} if many else {}) | _point(f) for f in space.families]


def _point(family: Family) -> dict[str, Any]:
    own = family.estimator.get_params(deep=True)
    return {
        family.prefix + p.label: _coordinate(p, own.get(p.name)) for p in family.parameters
    }


def _coordinate(parameter: Parameter, value: Any) -> Any:
    distribution = parameter.distribution
    if parameter.quantile is not None:
        return at(distribution, MIDDLE)
    if parameter.choices is not None:
        labels = distribution.choices
        pairs = zip(labels, parameter.choices, strict=True)
        return next((label for label, choice in pairs if choice is value), labels[0])
    return value if _contains(distribution, value) else at(distribution, MIDDLE)


def _contains(distribution: Any, value: Any) -> bool:
    if isinstance(distribution, CategoricalDistribution):
        return value in distribution.choices
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    whole = isinstance(distribution, FloatDistribution) or isinstance(value, int)
    return whole and distribution.low <= value <= distribution.high
