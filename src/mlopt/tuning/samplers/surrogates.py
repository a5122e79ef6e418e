"""Samplers that model the scores: Gaussian processes, and forests as in SMAC.

The next point is that of whose score most is to be expected above the best so far: Jones,
Schonlau, Welch, "Efficient global optimization of expensive black-box functions", J. Global
Optimization 13, 1998, equation (15). Snoek, Larochelle, Adams, "Practical Bayesian
optimization of machine learning algorithms", NIPS 2012 (Spearmint); Hutter, Hoos,
Leyton-Brown, "Sequential model-based optimization for general algorithm configuration",
LION 2011 (SMAC), whose variance is that between trees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from mlopt.hearing import unheard
from mlopt.tuning.samplers.cube import CubeSampler, others, scores_of
from mlopt.tuning.space.space import Space

Array = NDArray[np.float64]
Model = Callable[[Array, Array, Array, int], tuple[Array, Array]]
"""From features and scores, at other features: means and deviations. A seed is the last."""

STARTUP = 10
"""Trials that are drawn before there is a model, as Optuna's TPE has them."""
_DRAWN, _BESIDE, _BEST = 1000, 50, 4
"""Candidates: drawn anywhere, and beside each of the best."""
_STEP = 0.1
"""Of an axis: a deviation of those beside."""
_TREES, _LEAF, _SHARE = 50, 2, 5 / 6
"""Of a forest, trials in a leaf at least, and the share of features that a split looks at,
which is SMAC's; trees more than its 10, since their spread is the deviation."""


class Surrogate(CubeSampler):
    """The largest expected improvement, as a model has it.

    What is in training counts with the mean of all scores, so that the next ones are
    elsewhere. Scores are known to the model by their ranks alone: one that is far off, as
    of a model that diverged, does not hide what others tell.

    Parameters
    ----------
    space : Space
    seed : int
    model : callable
    """

    def __init__(self, space: Space, seed: int, model: Model) -> None:
        super().__init__(space, seed)
        self._model = model

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        del search_space
        cube, seen = self._cube, list(others(study, trial))
        scores = scores_of(seen)
        ended = ~np.isnan(scores)
        if ended.sum() < STARTUP or not cube.axes:
            return {}
        known = [other.params for other in seen]
        taken = {cube.space.key(point) for point in known}
        targets = np.zeros(len(seen))  # which is the mean
        ranks = rankdata(scores[ended])
        targets[ended] = ndtri((ranks - 0.5) / len(ranks))
        order = np.argsort(np.where(ended, -targets, np.inf), kind="stable")
        best = [known[place] for place in order[:_BEST]]
        candidates = [p for p in self._candidates(best) if cube.space.key(p) not in taken]
        if not candidates:
            return {}
        mean, deviation = self._model(
            cube.features(known), targets, cube.features(candidates),
            int(self._rng.integers(2**31)),
        )  # fmt: skip
        gains = improvement(mean - targets[ended].max(), deviation)
        return candidates[int(np.argmax(gains))]

    def _candidates(self, best: list[dict[str, Any]]) -> list[dict[str, Any]]:
        axes = len(self._cube.axes)
        places = [self._rng.random((_DRAWN, axes))]
        for point in best:
            steps = _STEP * self._rng.standard_normal((_BESIDE, axes))
            moved = self._rng.random((_BESIDE, axes)) < max(0.5, 1.0 / axes)
            places.append(self._cube.place(point) + steps * moved)
        return [self._cube.point(place) for place in np.concatenate(places)]


def improvement(above: Array, deviation: Array) -> Array:
    """What is to be expected above 0 of normal values with these means and deviations."""
    deviation = np.maximum(deviation, 1e-12)
    z = above / deviation
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    return np.asarray(above * ndtr(z) + deviation * density)


def process(X: Array, y: Array, at: Array, seed: int) -> tuple[Array, Array]:
    """A Gaussian process whose length on each axis is the likeliest."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    lengths = Matern(np.ones(X.shape[1]), (1e-2, 1e2), nu=2.5)
    kernel = ConstantKernel() * lengths + WhiteKernel(1e-2, (1e-6, 1.0))
    model = GaussianProcessRegressor(kernel, random_state=seed)
    with unheard():  # that a parameter says nothing is no news
        model.fit(X, y)
        mean, deviation = model.predict(at, return_std=True)
    return mean, deviation


def forest(X: Array, y: Array, at: Array, seed: int) -> tuple[Array, Array]:
    """A random forest: means of its trees, and how far these are apart."""
    from sklearn.ensemble import RandomForestRegressor

    model = RandomForestRegressor(
        _TREES, min_samples_leaf=_LEAF, max_features=_SHARE, random_state=seed
    ).fit(X, y)
    trees = np.array([tree.predict(at) for tree in model.estimators_])
    return trees.mean(axis=0), trees.std(axis=0)
