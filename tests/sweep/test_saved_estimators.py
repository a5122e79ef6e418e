"""Estimators of mlopt in files of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skops.io
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import mlopt
from mlopt.errors import InputError
from mlopt.pipeline.library.learning.block_least_squares import BlockLeastSquaresClassifier
from mlopt.pipeline.library.mixture import GaussianMixture

X, y = load_iris(return_X_y=True)


def own(rows: Any) -> Any:
    return rows


@pytest.mark.parametrize(
    "model",
    [
        mlopt.optimize(make_pipeline(StandardScaler(), mlopt.LogisticRegression())),
        make_pipeline(mlopt.PCA(2), mlopt.RandomFeatures(9, random_state=0), mlopt.Ridge()),
        mlopt.Lasso(alpha=0.01),
        BlockLeastSquaresClassifier(),
        GaussianMixture(2, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_is_loaded_predicts_the_same(model: Any, tmp_path: Path) -> None:
    skops.io.dump(model.fit(X, y), tmp_path / "m.skops")
    loaded = mlopt.load(tmp_path / "m.skops")
    ask = "predict" if hasattr(model, "predict") else "transform"
    np.testing.assert_array_equal(getattr(loaded, ask)(X), getattr(model, ask)(X))


def test_what_a_file_may_call_is_refused_by_name(tmp_path: Path) -> None:
    model = mlopt.optimize(make_pipeline(FunctionTransformer(own), mlopt.Ridge()))
    skops.io.dump(model.fit(X, y), tmp_path / "m.skops")
    with pytest.raises(InputError, match=r"reviewed types only; it has .*\.own"):
        mlopt.load(tmp_path / "m.skops")
