"""Configurations of a family that a plan looks at: typical, extreme, all over the space."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain, islice, zip_longest
from numbers import Real
from typing import Any

import numpy as np
from optuna.distributions import CategoricalDistribution

from mlopt.tuning.crews.chain import Parts
from mlopt.tuning.crews.families import Views, Way
from mlopt.tuning.space.grid import at
from mlopt.tuning.space.grid import cut as cut_range
from mlopt.tuning.space.parameters import Parameter
from mlopt.tuning.space.space import Family

MOST_LOOKS = 64
"""Configurations of a family that a plan looks at before it says how the family trains."""


def ways_of(views: Views, family: Family) -> list[Way]:
    """How configurations of a family train: a typical one, and one for each extreme.

    That is each choice of a parameter, and each end of a range, with the others as in the
    first; the parameters in turn, so that a long list leaves room for the others.
    """
    levels = {p.name: levels_of(p) for p in family.parameters}
    first = {name: values[0] for name, values in levels.items()}
    turns = zip_longest(*([(n, v) for v in own[1:]] for n, own in levels.items()))
    others = (first | dict([one]) for turn in turns for one in turn if one is not None)
    return [
        views.of(family.name, params)
        for params in islice(chain([first], others), MOST_LOOKS)
    ]


def spread(views: Views, family: Family) -> Callable[[int], list[Parts]]:
    """Gives so many configurations, each parameter in as many even steps as there are.

    References
    ----------
    McKay, Beckman and Conover (1979), "A comparison of three methods for selecting values
    of input variables": Latin hypercubes.
    """

    def drawn(number: int) -> list[Parts]:
        draw = np.random.default_rng(views.seed)
        steps = {p: (draw.permutation(number) + 0.5) / number for p in family.parameters}
        points = (
            {p.name: p.value(at(p.distribution, at_[k])) for p, at_ in steps.items()}
            for k in range(number)
        )
        return [views.of(family.name, params).parts for params in points]

    return drawn


def levels_of(parameter: Parameter) -> list[Any]:
    """The values of a parameter that are looked at: a typical one first, then the ends."""
    drawn = cut_range(parameter.distribution, 2)
    if not isinstance(parameter.distribution, CategoricalDistribution):
        drawn = [at(parameter.distribution, 0.5), *drawn]
        return [parameter.value(value) for value in drawn]
    values = [parameter.value(value) for value in drawn]
    sizes = [math.inf if value is None else value for value in values]
    if not all(isinstance(size, Real) and not isinstance(size, bool) for size in sizes):
        return values
    middle = sizes.index(sorted(sizes)[len(sizes) // 2])  # None is no limit
    ends = sizes.index(max(sizes)), sizes.index(min(sizes))
    return [values[place] for place in dict.fromkeys((middle, *ends, *range(len(values))))]
