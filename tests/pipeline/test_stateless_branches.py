"""Transformers of a user's own that learn nothing, as branches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler

import mlopt


class Square(TransformerMixin, BaseEstimator):
    def fit(self, X: Any, y: Any = None) -> Square:
        return self

    def transform(self, X: Any) -> Any:
        return np.asarray(X) ** 2


@pytest.mark.parametrize(
    "branches",
    [
        FeatureUnion([("a", Square()), ("b", StandardScaler())]),
        ColumnTransformer([("a", Square(), [0, 1]), ("b", StandardScaler(), [2])]),
        ColumnTransformer([("b", StandardScaler(), [2])], remainder=Square()),
    ],
)
def test_a_branch_that_has_nothing_to_learn_is_fitted_as_any(branches: Any) -> None:
    X = np.random.default_rng(0).normal(size=(300, 4))
    y = X[:, 0] ** 2 + X[:, 2]
    plain = make_pipeline(branches, Ridge())
    ours = mlopt.optimize(clone(plain)).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), plain.fit(X, y).predict(X), atol=1e-8)
