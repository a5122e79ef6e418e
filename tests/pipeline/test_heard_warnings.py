"""Steps warn as often as in scikit-learn: not on samples, and once for all blocks."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import dask
import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import Ridge
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import mlopt
from mlopt.hearing import unheard


def _ones(rows: Any) -> Any:
    return np.ones((len(rows), 1))


class Speaks(TransformerMixin, BaseEstimator):
    """Warns of each fit, and of what it transforms."""

    def fit(self, X: Any, y: Any = None) -> Speaks:
        warnings.warn(f"fitted to {len(X)} rows", UserWarning, stacklevel=2)
        self.n_ = len(X)
        return self

    def transform(self, X: Any) -> Any:
        warnings.warn("applied", UserWarning, stacklevel=2)
        return X


class SpeaksByRows(Speaks):
    """The same, declared row by row."""


mlopt.register(SpeaksByRows, row_wise=True)

CASES: dict[str, Callable[[], list[Any]]] = {
    "a constant column": lambda: [("k", SelectKBest(f_classif, k=2)), ("m", Ridge())],
    "no column": lambda: [
        ("k", SelectKBest(f_classif, k=0)),
        ("o", FunctionTransformer(_ones)),
        ("m", Ridge()),
    ],
    "undeclared": lambda: [("s", Speaks()), ("c", StandardScaler()), ("m", Ridge())],
    "declared": lambda: [("s", SpeaksByRows()), ("c", StandardScaler()), ("m", Ridge())],
    "in a union": lambda: [
        ("u", FeatureUnion([("s", SpeaksByRows()), ("c", StandardScaler())])),
        ("m", Ridge()),
    ],
}


def _heard(run: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run()
    return sorted(str(one.message) for one in found)


@pytest.mark.parametrize("plan", ["where it pays", "always"])
@pytest.mark.parametrize("n", [500, 2000, 60_000])
@pytest.mark.parametrize("case", CASES)
def test_each_warning_is_heard_as_often(case: str, n: int, plan: str) -> None:
    X = np.c_[np.random.default_rng(0).normal(size=(n, 2)), np.ones(n)]
    y = X[:, 0] > 0
    plain, planned = Pipeline(CASES[case]()), mlopt.Pipeline(CASES[case]())
    with dask.config.set({"mlopt.plan": plan}):
        assert _heard(lambda: planned.fit(X, y)) == _heard(lambda: plain.fit(X, y))
        found = _heard(lambda: planned.predict(X))
        assert found == _heard(lambda: plain.predict(X))


def test_other_threads_are_heard() -> None:
    before = list(warnings.filters)

    def speak() -> None:
        warnings.warn("of another thread", UserWarning, stacklevel=2)

    def run() -> None:
        with unheard():
            warnings.warn("of this one", UserWarning, stacklevel=2)
            other = threading.Thread(target=speak)
            other.start()
            other.join()

    assert _heard(run) == ["of another thread"]
    assert warnings.filters == before
