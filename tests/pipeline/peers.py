"""What the tests of the contract share: data of one block and of several, and a judge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.pipeline
from sklearn.base import BaseEstimator, TransformerMixin, clone

import mlopt

SIZES = pytest.mark.parametrize("n", [60, 9000], ids=["one-block", "blocks"])
"""One block, run as scikit-learn does; and several, planned on samples."""


def numbers(n: int, d: int = 6, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """X (n, d), and a class that two columns decide."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.arange(1, d + 1)
    return X, (X[:, 0] + X[:, 1] + rng.normal(size=n) > 0).astype(int)


def people(n: int, *, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of numbers, some missing, and of text; and a class of text."""
    rng = np.random.default_rng(seed)
    age = rng.normal(40, 10, size=n)
    age[::7] = np.nan
    table = pd.DataFrame({
        "age": age,
        "fare": rng.exponential(30, size=n),
        "sex": pd.Series(rng.choice(["female", "male"], size=n), dtype=object),
        "port": pd.Series(rng.choice(["C", "Q", "S"], size=n), dtype=object),
    })  # fmt: skip
    lived = (table["sex"] == "female") & (table["fare"] > 15)
    return table, np.where(lived, "lived", "died")


def both(steps: Any, **settings: Any) -> tuple[Any, Any]:
    """A planned pipeline and scikit-learn's own, of equal steps that are not shared."""
    ours = mlopt.Pipeline([(name, _fresh(step)) for name, step in steps], **settings)
    return ours, sklearn.pipeline.Pipeline([(name, _fresh(step)) for name, step in steps])


def _fresh(step: Any) -> Any:
    return step if step is None or isinstance(step, str) else clone(step)


def assert_same(left: Any, right: Any, *, rtol: float = 1e-5, atol: float = 1e-5) -> None:
    """Equal types, shapes and, up to rounding, values; of classes, nearly all."""
    assert sp.issparse(left) == sp.issparse(right)
    if sp.issparse(left):
        left, right = left.toarray(), right.toarray()
    if isinstance(right, pd.DataFrame):
        pd.testing.assert_frame_equal(left, right, rtol=rtol, atol=atol)
        return
    assert type(left) is type(right)
    left, right = np.asarray(left), np.asarray(right)
    assert left.shape == right.shape
    if right.dtype.kind in "fc":
        np.testing.assert_allclose(left, right, rtol=rtol, atol=atol)
        return
    same = (left == right) | (pd.isna(left) & pd.isna(right))
    # Of many rows, a few lie where rounding decides their class.
    assert same.mean() >= 1 - 1e-3


class Blanks(TransformerMixin, BaseEstimator):
    """Sets a column to zero, where it stands."""

    def __init__(self, column: int = 0) -> None:
        self.column = column

    def fit(self, X: Any, y: Any = None) -> Blanks:
        return self

    def transform(self, X: Any) -> Any:
        X[:, self.column] = 0.0
        return X
