"""Where new configurations come from: one table, and Optuna's own samplers beside it.

A sampler is a plan and perhaps a guide. The plan names a point for a trial's *number*, so
that a search that is taken up again goes on as if never interrupted. The guide is an
Optuna sampler that learns from the scores; the plan's point stands in when the guide
repeats itself.
"""

from __future__ import annotations

import copy
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, GridSampler

from mlopt.errors import InputError, did_you_mean
from mlopt.hearing import unheard
from mlopt.prices import price
from mlopt.tuning.samplers.descents import Descents
from mlopt.tuning.samplers.surrogates import Surrogate, forest, process
from mlopt.tuning.space.grid import at, shares
from mlopt.tuning.space.space import Space

Point = dict[str, Any]
Taken = Callable[[Point], bool]

_DRAWN, _MODELLED = price("search.proposal"), price("search.model")
TRIES = 64
"""Draws of a point that was not proposed before; then what is left is listed."""
# Above this many points, a space is not listed to find the ones that are left.
LISTED = 20_000
# Points of a grid over continuous ranges when the number of trials is not known.
GRID_POINTS = 100


class Plan(ABC):
    """Names a point for each trial; a pure function of the number and what is taken."""

    @abstractmethod
    def point(self, number: int, taken: Taken) -> Point | None:
        """A point for trial ``number`` that is not ``taken``; None when there is none."""

    @abstractmethod
    def __str__(self) -> str:
        """What runs out, as the end of a sentence."""


@dataclass(frozen=True)
class RandomPlan(Plan):
    """Independent uniform draws, the same for the same seed and number."""

    space: Space
    seed: int

    def point(self, number: int, taken: Taken) -> Point | None:
        for attempt in range(TRIES):
            rng = np.random.default_rng((self.seed, number, attempt))
            point = self.space.draw(partial(_uniform, rng))
            if not taken(point):
                return point
        return self._left(rng, taken)

    def _left(self, rng: np.random.Generator, taken: Taken) -> Point | None:
        """One of the few points that are left, of a small space."""
        if (self.space.size or math.inf) > LISTED:
            return None
        left = [point for grid in self.space.grids() for point in grid if not taken(point)]
        return left[rng.integers(len(left))] if left else None

    def __str__(self) -> str:
        size = self.space.size
        return "configurations of the space" if size is None else f"{size} configurations"


def _uniform(rng: np.random.Generator, name: str, distribution: BaseDistribution) -> Any:
    del name
    return at(distribution, rng.random())


class GridPlan(Plan):
    """The points of a grid, one after the other.

    Parameters
    ----------
    size : int
    points : iterable of points
    """

    def __init__(self, size: int, points: Iterable[Point]) -> None:
        self.size, self._rest = size, iter(points)
        self._next: Point | None = next(self._rest, None)

    @classmethod
    def of(cls, space: Space, seed: int, n_trials: int | None) -> GridPlan:
        """Of a space: families in turn, each in the order of nested loops.

        Of a grid with more points than ``n_trials``, a random part: the first ones would
        leave the outermost parameter at its first value. So they would of more points than
        there may be time for, which are taken from everywhere.
        """
        whole = space.size is not None and space.size <= (n_trials or math.inf)
        grids = space.grids(None if whole else n_trials or GRID_POINTS)
        sizes = [*map(len, grids)]
        fits = n_trials is None or sum(sizes) <= n_trials
        most = sizes if fits else shares(sizes, n_trials or 0)
        orders = [_order(*pair, seed) for pair in zip(sizes, most, strict=True)]
        walks = [map(g.__getitem__, order) for g, order in zip(grids, orders, strict=True)]
        turns = zip_longest(*walks) if space.in_turn else walks
        points = (point for turn in turns for point in turn if point is not None)
        return cls(sum(map(min, sizes, most)), points)

    def point(self, number: int, taken: Taken) -> Point | None:
        del number  # the first that is left, so that a wider grid is walked from its start
        while self._next is not None and taken(self._next):
            self._next = next(self._rest, None)
        return self._next

    def __str__(self) -> str:
        return f"{self.size} points of the grid"


def _listed(sampler: GridSampler, space: Space, seed: int, n_trials: int | None) -> Plan:
    """What a user's own grid lists, in the order in which Optuna would walk it."""
    del seed, n_trials
    drawn = dict(space.chooser)
    for family in space.families:
        drawn |= family.distributions
    fixed = {name: at(one, 0.0) for name, one in drawn.items() if one.single()}
    names, points = sampler._param_names, sampler._all_grids
    if missing := sorted(drawn.keys() - fixed.keys() - {*names}):
        raise InputError(
            f"The GridSampler must list values for every parameter of the space; {missing} "
            'are missing. List them, or take sampler="grid", which makes its own grid.'
        )
    made = (fixed | dict(zip(names, point, strict=True)) for point in points)
    return GridPlan(len(points), made)


def _order(length: int, most: int, seed: int) -> Iterable[int]:
    if length <= most:
        return range(length) if length <= LISTED else _scattered(length)
    return random.Random(seed).sample(range(length), most)


def _scattered(length: int) -> Iterator[int]:
    """All numbers below, each far from the last ones: steps of the golden section."""
    step = round(length * (math.sqrt(5) - 1) / 2)
    while math.gcd(step, length) > 1:
        step += 1
    return (number * step % length for number in range(length))


@dataclass(frozen=True)
class Sampler:
    """A way to propose configurations.

    Parameters
    ----------
    name : str
    plan : callable
        ``plan(space, seed, n_trials)`` gives a `Plan`.
    guide : callable, optional
        ``guide(space, seed)`` gives the Optuna sampler that learns from scores.
    trial, parameter : float
        Seconds in Python that a proposal takes, and each of its parameters.
    """

    name: str
    plan: Callable[[Space, int, int | None], Plan]
    guide: Callable[[Space, int], BaseSampler] | None = None
    trial: float = 0.0
    parameter: float = 0.0

    @property
    def learns(self) -> bool:
        """Whether it looks at scores."""
        return self.guide is not None


def _random_plan(space: Space, seed: int, n_trials: int | None) -> Plan:
    del n_trials
    return RandomPlan(space, seed)


def _draws(space: Space, seed: int, n_trials: int | None) -> Plan:
    """Random draws; where they would take in the whole space, that in its order."""
    if n_trials is not None and space.size is not None and n_trials >= space.size:
        return GridPlan.of(space, seed, n_trials)
    return RandomPlan(space, seed)


def _tpe(space: Space, seed: int) -> BaseSampler:
    """Tree-structured Parzen estimators, aware of what is being trained right now.

    In groups: the parameters of a family are learnt together, from the family's trials.
    """
    del space
    with unheard(optuna.exceptions.ExperimentalWarning):
        return optuna.samplers.TPESampler(
            seed=seed, multivariate=True, group=True, constant_liar=True
        )


def _cmaes(space: Space, seed: int) -> BaseSampler:
    """Covariances of the best ranges; choices, and families, are drawn."""
    del space
    return optuna.samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False)


SAMPLERS: dict[str, Sampler] = {
    sampler.name: sampler
    for sampler in (
        Sampler("random", _draws),
        Sampler("grid", GridPlan.of),
        Sampler("tpe", _random_plan, _tpe, parameter=_DRAWN),
        Sampler("gp", _random_plan, partial(Surrogate, model=process), _MODELLED),
        Sampler("smac", _random_plan, partial(Surrogate, model=forest), _MODELLED),
        Sampler("cmaes", _random_plan, _cmaes, parameter=_DRAWN),
        Sampler(
            "nelder-mead",
            _random_plan,
            partial(Descents, method="Nelder-Mead"),
            parameter=_DRAWN,
        ),
        Sampler(
            "powell", _random_plan, partial(Descents, method="Powell"), parameter=_DRAWN
        ),
    )
}
"""The family's table: a new sampler is added here and nowhere else."""


def sampler_of(sampler: str | BaseSampler) -> Sampler:
    """The sampler of that name, or the Optuna sampler given.

    Raises
    ------
    InputError
        No sampler has that name.
    """
    if isinstance(sampler, GridSampler):
        return Sampler(type(sampler).__name__, partial(_listed, sampler))
    if isinstance(sampler, BaseSampler):
        # A copy, since it learns and draws: the same search again must begin as this one.
        return Sampler(
            type(sampler).__name__, _random_plan,
            lambda space, seed: copy.deepcopy(sampler), parameter=_DRAWN,
        )  # fmt: skip
    if sampler in SAMPLERS:
        return SAMPLERS[sampler]
    raise InputError(
        f"`sampler` must be one of {sorted(SAMPLERS)} or an optuna sampler, "
        f"got {sampler!r}.{did_you_mean(str(sampler), SAMPLERS)}"
    )
