"""Grids: every combination of lists, with ranges cut into levels to meet a budget.

On a space of k ranges and a budget of n**k points, each range has n levels (TuPAQ 4.1).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution


@dataclass(frozen=True)
class Grid:
    """The product of ``axes``, in the order of nested loops, the last axis innermost."""

    axes: dict[str, Sequence[Any]]

    def __len__(self) -> int:
        return math.prod(len(levels) for levels in self.axes.values())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Point ``index``, without building the others."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        point = {}
        for name, levels in reversed(list(self.axes.items())):
            index, place = divmod(index, len(levels))
            point[name] = levels[place]
        return {name: point[name] for name in self.axes}


def grid(distributions: Mapping[str, BaseDistribution], budget: int | None) -> Grid:
    """The grid of at most about ``budget`` points.

    Choices are all kept, even when they alone exceed the budget; a range has one level at
    least, and levels are added to the range with the fewest while the budget allows.

    Parameters
    ----------
    distributions : mapping of str to optuna distribution
    budget : int, optional
        Without one, every value of every distribution; all must be finite then.
    """
    levels = {n: _fewest(d) if budget else _most(d) for n, d in distributions.items()}
    open_ = {n for n, d in distributions.items() if levels[n] < (count(d) or math.inf)}
    while budget and open_:
        name = min(sorted(open_, key=list(levels).index), key=lambda n: levels[n])
        grown = math.prod(levels.values()) // levels[name] * (levels[name] + 1)
        if grown > budget:
            break
        levels[name] += 1
        if levels[name] == count(distributions[name]):
            open_.remove(name)
    return Grid({n: cut(d, levels[n]) for n, d in distributions.items()})


def shares(sizes: Sequence[float], total: int) -> list[int]:
    """How many of ``total`` each gets: as many, but for those that have not, whose rest the
    others get; one each at least."""
    found, left = [0] * len(sizes), total
    for place, number in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        even = max(1, left // (len(sizes) - place))
        found[number] = int(min(sizes[number], even))
        left -= found[number]
    return found


def count(distribution: BaseDistribution) -> int | None:
    """How many values there are; None for a continuous range."""
    if isinstance(distribution, CategoricalDistribution):
        return len(distribution.choices)
    if distribution.single():
        return 1
    if distribution.step is None:
        return None
    steps: float = (distribution.high - distribution.low) / distribution.step
    return round(steps) + 1


def cut(distribution: BaseDistribution, levels: int) -> Sequence[Any]:
    """Evenly spaced values from end to end, in the logarithm where the range says so."""
    if isinstance(distribution, CategoricalDistribution):
        return list(distribution.choices)
    low, high = distribution.low, distribution.high
    every = levels == count(distribution)
    if every and isinstance(distribution, IntDistribution):
        return range(low, high + 1, distribution.step)  # there may be billions
    space = np.geomspace if distribution.log and not every else np.linspace
    middle = math.sqrt(low * high) if distribution.log else (low + high) / 2
    values = space(low, high, levels) if levels > 1 else np.array([middle])
    if distribution.step is not None:
        steps = np.unique(np.rint((values - low) / distribution.step))
        values = low + steps * distribution.step
    whole = isinstance(distribution, IntDistribution)
    return [int(v) if whole else float(min(max(v, low), high)) for v in values]


def at(distribution: BaseDistribution, level: float) -> Any:
    """The value at a ``level`` in [0, 1): a uniform level gives a uniform draw."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[int(level * len(distribution.choices))]
    # every step has an interval of its own length around it
    half = (distribution.step or 0) / 2
    low, high = distribution.low - half, distribution.high + half
    value = low * (high / low) ** level if distribution.log else low + level * (high - low)
    if distribution.step is not None:
        value = distribution.low + round((value - distribution.low) / distribution.step) * (
            distribution.step
        )
    value = min(max(value, distribution.low), distribution.high)
    return int(value) if isinstance(distribution, IntDistribution) else float(value)


def level(distribution: BaseDistribution, value: Any) -> float:
    """A level at which `at` gives a value, up to the rounding of logarithms."""
    if isinstance(distribution, CategoricalDistribution):
        place = distribution.to_internal_repr(value)
        return (float(place) + 0.5) / len(distribution.choices)
    if distribution.single():
        return 0.5
    half = (distribution.step or 0) / 2
    low, high = distribution.low - half, distribution.high + half
    if distribution.log:
        return math.log(value / low) / math.log(high / low)
    return float((value - low) / (high - low))


def _fewest(distribution: BaseDistribution) -> int:
    categorical = isinstance(distribution, CategoricalDistribution)
    return len(distribution.choices) if categorical else 1


def _most(distribution: BaseDistribution) -> int:
    values = count(distribution)
    assert values is not None
    return values
