"""Which columns a step keeps may hang on the rows it is fitted to, or on chance: what
stands behind it knows the columns of all rows, and not those of a sample."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectFromModel
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import Normalizer, StandardScaler

import mlopt

COLUMNS = 5
RNG = np.random.default_rng(0)


class ByCount(BaseEstimator):
    """Finds a column important by the number of rows: on a sample it is another one."""

    def fit(self, X: Any, y: Any) -> ByCount:
        self.n_features_in_ = X.shape[1]
        self.feature_importances_ = 1.0 * (np.arange(X.shape[1]) == len(X) % X.shape[1])
        return self


@pytest.mark.parametrize("n", [97, 3003])
@pytest.mark.parametrize(
    "step",
    [
        RBFSampler(n_components=2, random_state=0),
        StandardScaler(),
        Normalizer(),
        FeatureUnion([("a", Normalizer()), ("b", RBFSampler(n_components=2))]),
        "passthrough",
    ],
    ids=["drawn", "learnt", "stateless", "both", "none"],
)
def test_what_follows_a_selection_knows_what_is_selected(n: int, step: Any) -> None:
    X, y = RNG.normal(size=(n, COLUMNS)), RNG.integers(0, 2, n)
    pipe = mlopt.make_pipeline(SelectFromModel(ByCount(), max_features=1), step, Ridge())
    pipe.set_output(transform="pandas")
    cuts = ((10, 40, n - 50),)
    pipe.fit(da.from_array(X, chunks=(*cuts, COLUMNS)), da.from_array(y, chunks=cuts))
    selected = [f"x{n % COLUMNS}"]
    assert list(pipe[0].get_feature_names_out()) == selected
    behind = pipe[2] if step == "passthrough" else pipe[1]
    assert list(behind.feature_names_in_) == selected
    assert len(pipe.predict(X)) == n
