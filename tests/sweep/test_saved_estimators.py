"""Estimators of mlopt in files of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skops.io
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.feature_selection import (
    SelectKBest,
    chi2,
    f_classif,
    f_regression,
    mutual_info_classif,
    mutual_info_regression,
    r_regression,
)
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import Matern, WhiteKernel
from sklearn.linear_model import LinearRegression, LogisticRegression, TweedieRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import LinearSVC

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


SCORED = [
    (f_classif, y), (chi2, y), (mutual_info_classif, y), (f_regression, X[:, 0]),
    (r_regression, X[:, 0]), (mutual_info_regression, X[:, 0]),
]  # fmt: skip


@pytest.mark.parametrize(("score", "target"), SCORED)
def test_a_choice_of_columns_is_loaded(score: Any, target: Any, tmp_path: Path) -> None:
    choose = SelectKBest(score, k=2)
    pipe = mlopt.optimize(make_pipeline(MinMaxScaler(), choose, mlopt.Ridge()))
    skops.io.dump(pipe.fit(X, target), tmp_path / "m.skops")
    loaded = mlopt.load(tmp_path / "m.skops")
    np.testing.assert_array_equal(loaded.predict(X), pipe.predict(X))


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(SplineTransformer(), LinearRegression()),
        CalibratedClassifierCV(LinearSVC(), cv=2),
        VotingClassifier(
            [("one", LogisticRegression(max_iter=500)), ("other", LinearSVC())]
        ),
        StackingClassifier([("one", LogisticRegression(max_iter=500))], cv=2),
        TweedieRegressor(),
        GaussianProcessClassifier(1.0 * Matern() + WhiteKernel()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_estimators_of_scikit_learn_are_loaded(model: Any, tmp_path: Path) -> None:
    skops.io.dump(model.fit(X, y), tmp_path / "m.skops")
    loaded = mlopt.load(tmp_path / "m.skops")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_what_a_file_may_call_is_refused_by_name(tmp_path: Path) -> None:
    model = mlopt.optimize(make_pipeline(FunctionTransformer(own), mlopt.Ridge()))
    skops.io.dump(model.fit(X, y), tmp_path / "m.skops")
    with pytest.raises(InputError, match=r"reviewed types only; it has .*\.own"):
        mlopt.load(tmp_path / "m.skops")
