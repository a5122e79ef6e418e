"""Nelder-Mead's simplexes and Powell's lines, as samplers (TuPAQ, section 4.1).

SciPy's functions call what they minimise, and a search is asked for points and told scores
later. So a descent is run anew for each point, through the scores that are known, which
takes next to nothing, up to the first point of which none is. Where its score is awaited,
another descent goes on, from a start of its own, and so does one after a descent that has
ended: as many are under way as trials are in training. Outside of the cube a point is worse
than all that a descent has seen, the more the farther it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial
from scipy.optimize import minimize

from mlopt.tuning.samplers.cube import CubeSampler, others, score_of
from mlopt.tuning.space.space import Space

Array = NDArray[np.float64]

_NEAR = 1e-2
"""Of an axis: two points that are as good as one."""
_SIDE = 0.25
"""Of an axis: the first simplex has sides of it, into the larger part of the cube."""


class Descents(CubeSampler):
    """Descents of one kind, each from a start that is drawn.

    Parameters
    ----------
    space : Space
    seed : int
    method : {"Nelder-Mead", "Powell"}
    """

    def __init__(self, space: Space, seed: int, method: str) -> None:
        super().__init__(space, seed)
        self._seed, self._method = seed, method

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        del search_space
        space = self._cube.space
        seen = list(others(study, trial))
        known = {space.key(other.params): score_of(other) for other in seen}
        # Each of them has asked for one of the points, or ended at points of others.
        for number in range(len(seen) + 1) if self._cube.axes else ():
            place = self._next(number, known)
            if place is not None:
                return self._cube.point(place)
        return {}

    def _next(self, number: int, known: Mapping[Any, float | None]) -> Array | None:
        """Where a descent wants to know the score; None where it waits, or has ended."""
        axes = len(self._cube.axes)
        start = np.random.default_rng((self._seed, number)).random(axes)
        worst = 0.0

        def loss(place: Array) -> float:
            nonlocal worst
            outside = float(np.sum(np.maximum(np.abs(place - 0.5) - 0.5, 0.0)))
            if outside > 0.0:
                return worst + outside
            key = self._cube.space.key(self._cube.point(place))
            if key not in known:
                raise _AsksError(place.copy())
            if (score := known[key]) is None:
                raise _WaitsError
            value = worst + 1.0 if score == -np.inf else -score
            worst = max(worst, value)
            return value

        inwards = start + np.diag(np.where(start < 0.5, _SIDE, -_SIDE))
        options = {
            "Nelder-Mead": {
                "xatol": _NEAR, "fatol": 0.1 * _NEAR,
                "initial_simplex": np.vstack([start, inwards]),
            },
            "Powell": {"xtol": _NEAR, "ftol": 0.1 * _NEAR},
        }  # fmt: skip
        try:
            minimize(loss, start, method=self._method, options=options[self._method])
        except _AsksError as asks:
            return asks.place
        except _WaitsError:
            pass
        return None


class _AsksError(Exception):
    """There is a point whose score nobody knows."""

    def __init__(self, place: Array) -> None:
        super().__init__()
        self.place = place


class _WaitsError(Exception):
    """There is a point whose model is in training."""
