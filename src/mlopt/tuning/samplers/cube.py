"""A space as a cube, an axis of length 1 for each parameter: for samplers of places.

Axes of parameters of other families than a point's stand beside its own, and say nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from mlopt.locking import cached_property
from mlopt.tuning.space.grid import at, level
from mlopt.tuning.space.space import Space

Array = NDArray[np.float64]
_LAST = float(np.nextafter(1.0, 0.0))


@dataclass(frozen=True, eq=False)
class Cube:
    """A space, axis by axis."""

    space: Space

    @cached_property
    def axes(self) -> dict[str, BaseDistribution]:
        """Of all parameters that vary, in the order of the space."""
        return {n: d for n, d in self.space.distributions.items() if not d.single()}

    def point(self, place: Array) -> dict[str, Any]:
        """The point at a place (axes,) of the cube."""
        levels = dict(zip(self.axes, np.clip(place, 0.0, _LAST).tolist(), strict=True))
        return self.space.draw(lambda name, one: at(one, levels.get(name, 0.0)))

    def place(self, point: Mapping[str, Any]) -> Array:
        """A place (axes,) of a point; the middle on axes that are not its own."""
        return np.array([
            _level(one, name, point) for name, one in self.axes.items()
        ])  # fmt: skip

    def features(self, points: Iterable[Mapping[str, Any]]) -> Array:
        """Points for a model (points, features): a choice has a column for each value."""
        table = [self._features(point) for point in points]
        return np.array(table, dtype=np.float64)

    def _features(self, point: Mapping[str, Any]) -> list[float]:
        found: list[float] = []
        for name, one in self.axes.items():
            if isinstance(one, CategoricalDistribution):
                chosen = one.to_internal_repr(point[name]) if name in point else -1
                found += [float(number == chosen) for number in range(len(one.choices))]
            else:
                found.append(_level(one, name, point))
        return found


def _level(one: BaseDistribution, name: str, point: Mapping[str, Any]) -> float:
    """The middle where the point has no such parameter."""
    return level(one, point[name]) if name in point else 0.5


class CubeSampler(BaseSampler):
    """An Optuna sampler of whole points of a space.

    Parameters
    ----------
    space : Space
    seed : int
    """

    def __init__(self, space: Space, seed: int) -> None:
        self._cube, self._rng = Cube(space), np.random.default_rng(seed)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        del study, trial
        return {}  # what is conditional is no product of distributions

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        del study, trial, param_name
        return at(param_distribution, self._rng.random())


def others(study: Study, trial: FrozenTrial) -> Iterator[FrozenTrial]:
    """All trials that have a point, but for ``trial``."""
    for other in study.get_trials(deepcopy=False):
        if other.number != trial.number and (other.params or other.state.is_finished()):
            yield other


def score_of(trial: FrozenTrial) -> float | None:
    """The last score of a trial, more is better; -inf where it failed, None in training."""
    if not trial.state.is_finished():
        return None
    if trial.state == TrialState.COMPLETE and trial.value is not None:
        return float(trial.value)
    looks = trial.intermediate_values
    last = looks[max(looks)] if looks and trial.state == TrialState.PRUNED else -np.inf
    return float(last) if np.isfinite(last) else -np.inf


def scores_of(trials: Sequence[FrozenTrial]) -> Array:
    """Of trials that have ended, or else nan."""
    found = (score_of(trial) for trial in trials)
    return np.array([np.nan if one is None else one for one in found], dtype=np.float64)
