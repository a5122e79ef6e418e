"""Weights of any size: what a class weighs in a block is little, in all rows it is not."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB

from mlopt.pipeline.fits.registry import ways_of

Array = NDArray[np.float64]


def by_blocks(estimator: Any, X: Array, y: Any, weight: Array, rows: int) -> Any:
    way: Any
    (way,) = ways_of(estimator)
    parts = [
        way.part(estimator, X[at : at + rows], y[at : at + rows], weight[at : at + rows])
        for at in range(0, len(X), rows)
    ]
    return way.finish(estimator, reduce(way.merge, parts))


@pytest.mark.parametrize("light", [2e-12, 1e-9, 1.0, 1e9])
def test_means_of_classes_that_weigh_little_in_each_block(light: float) -> None:
    n, random = 20_000, np.random.default_rng(0)
    y = np.arange(n) % 2
    X = random.normal(size=(n, 3)) + 5 + y[:, None]
    weight = light * random.uniform(0.5, 1.0, n)
    weight[y == 1] *= random.choice([0.0, 1.0, 3.0], n // 2)
    ours = by_blocks(GaussianNB(), X, y, weight, 2500)
    theirs = GaussianNB().fit(X, y, weight)
    for name in ("theta_", "var_", "class_count_", "class_prior_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9)


@pytest.mark.parametrize("kind", [MultinomialNB, ComplementNB, BernoulliNB])
@pytest.mark.parametrize("light", [1e-21, 1e-14, 0.3, 7.0])
def test_counts_of_classes_that_weigh_little(kind: type, light: float) -> None:
    random = np.random.default_rng(0)
    X, y = random.poisson(1.0, (600, 5)).astype(float), np.arange(600) % 2
    weight = np.where(y == 1, 1.0, light)
    ours = by_blocks(kind(), X, y, weight, 150)
    theirs = kind().fit(X, y, weight)
    for name in ("class_count_", "class_log_prior_", "feature_log_prob_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_labels_may_be_a_column() -> None:
    random = np.random.default_rng(0)
    X, y, weight = random.normal(size=(50, 2)), np.arange(50) % 2, random.uniform(1, 2, 50)
    ours = by_blocks(GaussianNB(), X, y[:, None], weight, 20)
    np.testing.assert_allclose(ours.theta_, GaussianNB().fit(X, y, weight).theta_)
