"""What is applied the quick way is refused as scikit-learn does it when not fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import mlopt
from mlopt.pipeline.fits.applying import _QUICK, apply_fitted

X = np.random.default_rng(0).normal(size=(200, 3))
FITTED = [one for one in _QUICK if one[0] is not HashingVectorizer]  # which learns nothing


@pytest.mark.parametrize("quick", FITTED, ids=lambda one: one[0].__name__)
def test_a_model_that_is_not_fitted_says_so(quick: tuple[Any, str]) -> None:
    kind, method = quick
    with pytest.raises(NotFittedError):
        apply_fitted(kind(), X, method)


def test_a_step_that_was_replaced_is_not_fitted() -> None:
    steps = [("scale", StandardScaler()), ("model", LogisticRegression())]
    pipeline = mlopt.Pipeline(steps).fit(X, X[:, 0] > 0).set_params(scale=StandardScaler())
    with pytest.raises(NotFittedError):
        pipeline.predict(X)
