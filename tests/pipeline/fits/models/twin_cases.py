"""Estimators with a twin, and data that each must be fitted to as scikit-learn does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
)
from sklearn.svm import LinearSVC

from mlopt.pipeline.fits.base import ManyPasses
from mlopt.pipeline.fits.registry import ways_of
from mlopt.stats import Stats

N, D = 300, 12
TIGHT = {"tol": 1e-8, "max_iter": 5000}
_RANDOM = np.random.default_rng(7)
_DENSE = _RANDOM.normal(size=(N, D)) * np.linspace(1.0, 2.0, D)
_ZEROS = np.where(_RANDOM.random((N, D)) < 0.7, 0.0, _DENSE)
_PLANES = _RANDOM.normal(size=(D, 3))
_SCORES = _DENSE @ _PLANES + 2.0 * _RANDOM.normal(size=(N, 3))
NAMES = np.array(["apple", "pear", "quince"])
TARGETS = {
    "binary": NAMES[(_SCORES[:, 0] > 0.5).astype(int)],
    "classes": NAMES[_SCORES.argmax(axis=1)],
    "numbers": np.arange(3)[_SCORES.argmax(axis=1)] * 2,
    "one": _SCORES[:, 0] + 3.0,
    "column": _SCORES[:, :1],
    "several": _SCORES,
    "none": None,
}
DUAL = {"dual_cholesky", "dual-newton", "dual-coordinate-descent"}
WEIGHTS = _RANDOM.integers(0, 4, N).astype(float)


@dataclass(frozen=True)
class Case:
    """An estimator, a way of fitting it, and data."""

    estimator: Any
    way: ManyPasses
    layout: str
    dtype: str
    target: str
    weighted: bool

    @property
    def rows(self) -> int:
        """How many: what solves for a variable each has fewer than columns."""
        return D - 1 if self.way.name in DUAL else N

    @property
    def X(self) -> Any:
        X = (_ZEROS if self.layout == "sparse" else _DENSE).astype(self.dtype)[: self.rows]
        return sp.csr_array(X) if self.layout == "sparse" else X

    @property
    def y(self) -> Any:
        y = TARGETS[self.target]
        return None if y is None else y[: self.rows]

    @property
    def weight(self) -> Any:
        return WEIGHTS[: self.rows] if self.weighted else None

    @property
    def stats(self) -> Stats:
        sparse, y = self.layout == "sparse", self.y
        outputs = 1
        if y is not None:
            labels = 1 if y.dtype.kind == "f" else len(np.unique(y))
            outputs = y.shape[1] if y.ndim == 2 else labels if labels > 2 else 1
        density = float((_ZEROS != 0).mean()) if sparse else 1.0
        return Stats(
            self.rows, D, outputs=outputs, density=density, dtype=self.dtype, sparse=sparse
        )

    def __str__(self) -> str:
        words = str(self.estimator), self.way.name, self.layout, self.dtype, self.target
        return "-".join([*words, "weighted"] if self.weighted else words).replace(" ", "")


_LABELS, _NUMBERS = ("binary", "classes"), ("one", "column", "several")
ESTIMATORS: list[tuple[Any, tuple[str, ...]]] = [
    (LogisticRegression(**TIGHT), (*_LABELS, "numbers")),
    (LogisticRegression(C=0.3, class_weight="balanced", **TIGHT), ("classes",)),
    (LogisticRegression(fit_intercept=False, **TIGHT), ("binary",)),
    (LogisticRegression(C=np.inf, **TIGHT), ("binary",)),
    (LinearSVC(C=0.1, **TIGHT), _LABELS),
    (LinearSVC(C=0.1, dual=True, class_weight={"pear": 3.0}, **TIGHT), ("binary",)),
    (LinearSVC(C=0.1, intercept_scaling=5.0, **TIGHT), ("binary",)),
    (Ridge(alpha=2.0, tol=1e-10), _NUMBERS),
    (Ridge(alpha=[0.5, 1.0, 50.0], tol=1e-10), ("several",)),
    (Ridge(alpha=2.0, fit_intercept=False, tol=1e-10), ("one",)),
    (LinearRegression(tol=1e-12), _NUMBERS),
    (LinearRegression(fit_intercept=False, tol=1e-12), ("one",)),
    (RidgeClassifier(alpha=2.0, tol=1e-10), _LABELS),
    (RidgeClassifier(class_weight="balanced", tol=1e-10), ("classes",)),
    (PCA(4, random_state=0), ("none",)),
    (PCA(0.8), ("none",)),
    (PCA(3, whiten=True, svd_solver="covariance_eigh"), ("none",)),
    (PCA(3, svd_solver="randomized", random_state=0, iterated_power=40), ("none",)),
    (PCA(3, svd_solver="arpack", random_state=0), ("none",)),
    (PCA(3, svd_solver="full"), ("none",)),
]


def cases() -> Iterator[Case]:
    """Every way of every estimator that does not refuse, on every kind of data."""
    for estimator, targets in ESTIMATORS:
        for way in ways_of(estimator):
            # scikit-learn finds no share of the variance of sparse rows
            shares = isinstance(estimator, PCA) and estimator.n_components == 0.8
            assert isinstance(way, ManyPasses)
            for number, target in enumerate(targets):
                for layout in ("dense",) if shares else ("dense", "sparse"):
                    yield from _of(estimator, way, layout, target, first=number == 0)


def _of(
    estimator: Any, way: ManyPasses, layout: str, target: str, *, first: bool
) -> Iterator[Case]:
    """Both types; weights with the one, for the first target only with the other."""
    kinds = [("float64", target != "none")]
    # Without an intercept, scikit-learn's least squares of sparse float32 are in float64.
    first = first and getattr(estimator, "fit_intercept", True)
    kinds += [("float32", False)] if first else []
    for dtype, weighted in kinds:
        case = Case(estimator, way, layout, dtype, target, weighted)
        if not way.refuses(estimator, case.stats):
            yield case
