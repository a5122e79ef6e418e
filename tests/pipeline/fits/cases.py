"""Estimators with data, for every kind that a one-pass fit is registered for.

A new kind needs a line in `CASES`; the contract suite does the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.feature_selection import (
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
    chi2,
    f_classif,
    f_regression,
)
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import (
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from mlopt.pipeline.library.random_features import RandomFeatures
from mlopt.pipeline.library.signal import RandomSign

N = 37


@dataclass(frozen=True, eq=False)
class Data:
    """Rows with what stands beside them; ``float32`` where results may be as rough."""

    X: Any
    y: Any = None
    weight: Any = None

    @property
    def tolerance(self) -> float:
        """Relative, of results."""
        return 2e-5 if getattr(self.X, "dtype", None) == np.float32 else 1e-11


def _numbers() -> Any:
    rng = np.random.default_rng(0)
    return np.round(rng.normal(3.0, 2.0, (N, 4)) * [1, 10, 0.1, 1], 3)


def _with_gaps() -> Any:
    X = _numbers()
    X[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
    return X


def _counts() -> Any:
    rng = np.random.default_rng(2)
    return rng.poisson([0.3, 2.0, 0.8, 5.0], (N, 4)).astype(float)


def _objects() -> Any:
    rng = np.random.default_rng(3)
    return np.stack(
        [
            rng.choice(np.array(words, object), N)
            for words in (["a", "b", "cc"], ["x", "y"])
        ],
        1,
    )


def _with_none() -> Any:
    X = _objects()
    X[::5, 0] = None
    return X


def _object_gaps() -> Any:
    X = _objects()
    X[::4, 1] = np.nan
    return X


def _frame() -> Any:
    return pd.DataFrame(_with_gaps(), columns=["one", "two", "three", "four"])


def _mixed() -> Any:
    rng = np.random.default_rng(4)
    colour = pd.Categorical(rng.choice(["red", "green"], N), ["green", "red", "blue"])
    frame = pd.DataFrame({"size": rng.integers(0, 4, N), "colour": colour})
    frame["word"] = pd.Series(_object_gaps()[:, 1], dtype=object)
    frame["share"] = np.where(rng.random(N) < 0.2, np.nan, rng.integers(0, 3, N))
    return frame


def _nullable() -> Any:
    frame = pd.DataFrame({"share": _with_gaps()[:, 0]})
    frame["count"] = pd.array([None, 1, 2, 2] * 9 + [None], dtype="Int64")
    return frame


def _labels() -> Any:
    return np.random.default_rng(5).choice(["no", "some", "yes"], N, p=[0.1, 0.3, 0.6])


WEIGHT = np.random.default_rng(6).integers(0, 4, N).astype(float)
TARGET = np.random.default_rng(7).normal(size=N)

ROWS: dict[str, Any] = {
    "dense": _numbers(),
    "far": _numbers() + 1e6,
    "float32": _numbers().astype(np.float32),
    "integers": _counts().astype(np.int64),
    "gaps": _with_gaps(),
    "gaps32": _with_gaps().astype(np.float32),
    "frame": _frame(),
    "counts": _counts(),
    "csr": sp.csr_array(_counts()),
    "csr32": sp.csr_array(_counts().astype(np.float32)),
    "csr gaps": sp.csr_array(np.where(np.isnan(_with_gaps()), np.nan, _counts())),
    "objects": _objects(),
    "none": _with_none(),
    "object gaps": _object_gaps(),
    "text": _objects().astype(str),
    "mixed": _mixed(),
    "nullable": _nullable(),
}

SCALED = ("dense", "far", "float32", "integers", "gaps", "gaps32", "frame")
SPARSE = ("csr", "csr32", "csr gaps")
DRAWN = ("dense", "float32", "integers", "csr", "csr32")
CATEGORIES = ("objects", "none", "object gaps", "text", "mixed", "integers", "gaps")

PLAIN: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (StandardScaler(), SCALED),
    (StandardScaler(with_mean=False), ("dense", *SPARSE)),
    (StandardScaler(with_std=False), ("dense", "gaps")),
    (StandardScaler(with_mean=False, with_std=False), ("dense", "gaps", *SPARSE)),
    (MinMaxScaler((-1, 2), clip=True), SCALED),
    (MaxAbsScaler(), (*SCALED, *SPARSE)),
    (SimpleImputer(), (*SCALED, *SPARSE)),
    (SimpleImputer(add_indicator=True), ("gaps", "frame", "csr gaps", "dense")),
    (SimpleImputer(strategy="median"), (*SCALED, *SPARSE)),
    (SimpleImputer(strategy="most_frequent"), (*SCALED, *SPARSE, "object gaps", "mixed")),
    (SimpleImputer(strategy="most_frequent", missing_values=None), ("none",)),
    (SimpleImputer(strategy="most_frequent", missing_values="x"), ("objects",)),
    (SimpleImputer(missing_values=pd.NA), ("nullable",)),
    (SimpleImputer(strategy="most_frequent", missing_values=pd.NA), ("nullable",)),
    (SimpleImputer(strategy="median", missing_values=1), ("integers", "counts", "csr")),
    (SimpleImputer(missing_values=0), ("integers", "counts")),
    (SimpleImputer(strategy="constant", fill_value=7), ("gaps", "integers", *SPARSE)),
    (SimpleImputer(strategy="constant"), ("object gaps", "gaps32", "frame")),
    (
        SimpleImputer(strategy="constant", missing_values=None, add_indicator=True),
        ("none",),
    ),
    (OneHotEncoder(), CATEGORIES),
    (OneHotEncoder(drop="first", sparse_output=False, dtype=np.float32), CATEGORIES),
    (OneHotEncoder(drop="if_binary", handle_unknown="ignore"), ("objects", "mixed")),
    (OneHotEncoder(categories=[["a", "b", "cc", "d"], ["y", "x"]]), ("objects", "text")),
    (OrdinalEncoder(), CATEGORIES),
    (OrdinalEncoder(encoded_missing_value=-2), ("object gaps", "mixed", "gaps")),
    (
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        ("objects", "mixed"),
    ),
    (KBinsDiscretizer(3, strategy="uniform"), ("dense", "float32", "integers")),
    (KBinsDiscretizer(3, encode="ordinal"), ("dense", "float32", "counts")),
    (
        KBinsDiscretizer([2, 3, 4, 5], encode="onehot-dense", quantile_method="linear"),
        ("dense", "counts"),
    ),
    (VarianceThreshold(), (*SCALED, *SPARSE)),
    (VarianceThreshold(2.0), ("dense", "gaps", "csr")),
    (RBFSampler(gamma=0.1, n_components=7, random_state=0), DRAWN),
    (SkewedChi2Sampler(n_components=7, random_state=0), ("counts", "integers")),
    (PolynomialCountSketch(n_components=7, random_state=0), ("counts", "csr")),
    (GaussianRandomProjection(3, random_state=0), DRAWN),
    (SparseRandomProjection(3, random_state=0), DRAWN),
    (RandomFeatures(7, gamma=0.1, random_state=0), DRAWN),
    (RandomSign(random_state=0), ("dense", "float32")),
)

LABELLED: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (SelectKBest(k=2), ("dense", "float32", "integers", "csr", "csr32")),
    (SelectPercentile(f_classif, percentile=50), ("dense", "counts")),
    (SelectKBest(chi2, k=1), ("counts", "integers", "csr", "csr32")),
    (SelectPercentile(chi2, percentile=25), ("counts",)),
    (GaussianNB(), ("dense", "far", "float32", "integers")),
    (GaussianNB(priors=[0.2, 0.3, 0.5], var_smoothing=0.1), ("dense",)),
    (MultinomialNB(), ("counts", "integers", "csr", "csr32")),
    (MultinomialNB(alpha=0.0, class_prior=[0.2, 0.3, 0.5]), ("counts",)),
    (MultinomialNB(alpha=[0.1, 0.2, 0.3, 0.4], fit_prior=False), ("csr",)),
    (ComplementNB(norm=True), ("counts", "csr")),
    (BernoulliNB(binarize=0.5), ("counts", "csr", "dense")),
    (BernoulliNB(binarize=None), ("counts",)),
)

WEIGHTED: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (StandardScaler(), ("dense", "gaps", "float32")),
    (StandardScaler(with_mean=False), ("csr", "csr gaps")),
    (KBinsDiscretizer(3), ("dense",)),
    (KBinsDiscretizer(3, strategy="uniform", encode="ordinal"), ("dense",)),
    (GaussianNB(), ("dense", "float32")),
    (MultinomialNB(), ("counts", "csr")),
    (ComplementNB(), ("counts",)),
    (BernoulliNB(), ("counts",)),
)

SCORED: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (SelectKBest(f_regression, k=2), ("dense", "float32", "csr")),
    (SelectPercentile(f_regression, percentile=50), ("dense",)),
)


def _cases() -> Iterator[tuple[str, Any, Data]]:
    groups = (
        (PLAIN, None, None),
        (LABELLED, _labels(), None),
        (WEIGHTED, _labels(), WEIGHT),
        (SCORED, TARGET, None),
    )
    for group, y, weight in groups:
        for estimator, names in group:
            for name in names:
                beside = " weighted" if weight is not None else ""
                # Addresses would differ between processes that share the tests.
                known = re.sub(r"<function (\w+) at 0x\w+>", r"\1", repr(estimator))
                title = " ".join(f"{known} {name}{beside}".split())
                yield title, estimator, Data(ROWS[name], y, weight)


CASES = tuple(_cases())
"""What it is, estimator, data."""
