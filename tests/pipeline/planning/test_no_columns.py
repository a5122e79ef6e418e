"""A step that leaves no column: whoever comes after it says so, as in scikit-learn."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.pipeline
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.naive_bayes import BernoulliNB, MultinomialNB
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

import mlopt

N = 60
LAST = [
    LogisticRegression(), LogisticRegression(l1_ratio=1.0, solver="saga"), LinearSVC(),
    LinearSVC(loss="hinge"), Ridge(), Ridge(positive=True), RidgeClassifier(), Lasso(),
    ElasticNet(), LinearRegression(), SGDClassifier(), BernoulliNB(), MultinomialNB(),
    PCA(1), TruncatedSVD(1), KMeans(2), StandardScaler(with_mean=False),
]  # fmt: skip


def nothing(X: Any) -> Any:
    return X[:, :0]


def sparse_nothing(X: Any) -> Any:
    return sp.csr_array((X.shape[0], 0))


@pytest.mark.parametrize("cut", [nothing, sparse_nothing])
@pytest.mark.parametrize("last", LAST, ids=lambda last: str(last)[:40])
@pytest.mark.parametrize("where", ["array", "dask"])
def test_what_follows_says_so(cut: Any, last: Any, where: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, 3)), np.arange(N) % 2
    steps = [("cut", FunctionTransformer(cut)), ("last", last)]
    with pytest.raises(ValueError, match="0 feature"):
        sklearn.pipeline.Pipeline(steps).fit(X, y)
    given = (da.from_array(X, chunks=(17, 3)), da.from_array(y, chunks=17))
    with pytest.raises(ValueError, match=r"column|feature"):
        mlopt.Pipeline(clone(sklearn.pipeline.Pipeline(steps)).steps).fit(
            *(given if where == "dask" else (X, y))
        )
