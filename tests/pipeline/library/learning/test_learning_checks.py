"""scikit-learn's own checks, over every estimator of the folder."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from mlopt import RandomFeatures
from mlopt.pipeline.library import learning

# with gamma="scale" the features would depend on rows whose weight is zero
COSINES = RandomFeatures(20, gamma=0.1, random_state=0)
ESTIMATORS = [
    learning.BlockLeastSquares(n_iter=1),
    learning.BlockLeastSquares(block_size=1, n_iter=2, memory_budget=0),
    learning.BlockLeastSquaresClassifier(),
    learning.BlockLeastSquaresClassifier(features=COSINES),
    learning.KernelRidge(),
    learning.KernelRidgeClassifier(),
    learning.PerClassWeightedLeastSquares(),
]


def test_every_estimator_is_checked() -> None:
    assert {type(one).__name__ for one in ESTIMATORS} == set(learning.__all__)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)
