"""What scikit-learn itself gives when each step rounds otherwise.

Sums come out otherwise in another order, with other threads or in other blocks, in their
last digits. Where a value depends on these digits (a mean that cancels, numbers that are
counted as categories, rows at equal distance), no two ways of computing it agree, nor do
two ways of scikit-learn's. So that is asked of scikit-learn: its pipeline is fitted again
with what its steps compute moved by as much as a sum may be off. What comes in stays as it
is, and so does what a step only hands on, and whole numbers. Of exact rows `KMeans` still
compares rounded distances, `SelectKBest` rounded scores, and `PCA` the rounded weights of
an axis, the largest of which is positive: these are moved as well. Among axes with equal
singular values rounding decides how ARPACK goes on from the start that `TruncatedSVD`
gives it: it is given others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy import special
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils import _set_output
from tests.judges.outcomes import Difference

FITS = 7
"""Of scikit-learn's pipeline, each rounded otherwise."""

SPREAD = 8.0
"""How far beyond the largest of `FITS` draws another draw of the same rounding may lie."""

PRODUCTS = {
    "PCA", "TruncatedSVD", "LinearDiscriminantAnalysis", "RBFSampler", "Nystroem",
    "GaussianRandomProjection", "KMeans", "KNNImputer", "FeatureAgglomeration",
    "StackingClassifier", "VotingClassifier", "TargetEncoder", "PowerTransformer",
    "Normalizer", "SplineTransformer",
}  # fmt: skip
"""Classes that sum over columns: rows with equal values may come out unequal, by where in
a block they lie."""


@contextmanager
def rounded_otherwise(seed: int) -> Iterator[None]:
    """Within, what transformers compute is moved by the rounding of a sum.

    And sparse rows of text are added up by column, also in `fit_transform`: by seed 0 that
    alone, so that `transform` finds the very numbers that `fit` saw, which no moved ones
    leave. What `PRODUCTS` make of equal rows is equal by one seed in three, and unequal by
    the others.
    """
    rng, alike = np.random.default_rng(seed), seed % 3 == 2
    wrap = _set_output._wrap_data_with_container

    def moved(method: str, data: Any, X: Any, estimator: Any) -> Any:
        if not isinstance(estimator, FeatureUnion | ColumnTransformer):
            sums = type(estimator).__name__ in PRODUCTS
            data = _alike(data, X) if sums and alike else data
            data = _moved(data, X, rng, sums and not alike)
        return wrap(method, data, X, estimator)

    fit = SelectKBest.fit

    def scored(self: Any, X: Any, y: Any = None) -> Any:
        fit(self, X, y)
        self.scores_ = _rescored(self.scores_, X, rng)
        if self.score_func is f_classif:
            between = len(np.unique(y)) - 1
            within = np.shape(X)[0] - between - 1
            self.pvalues_ = special.fdtrc(between, within, self.scores_)
        return self

    cluster = KMeans.fit

    def clustered(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        return cluster(self, _apart(X, rng), y, sample_weight)

    turn = TruncatedSVD.fit_transform

    def turned(self: Any, X: Any, y: Any = None) -> Any:
        with mock.patch.object(self, "random_state", seed):
            return turn(self, X, y)

    decompose = PCA._fit

    def decomposed(self: Any, X: Any) -> Any:
        return decompose(self, _apart(X, rng))

    count = CountVectorizer.fit_transform

    def counted(self: Any, raw_documents: Any, y: Any = None) -> Any:
        # In the order of words seen, which is none; `transform` gives them by column.
        return count(self, raw_documents, y).sorted_indices()

    moves = (
        (_set_output, "_wrap_data_with_container", moved),
        (SelectKBest, "fit", scored),
        (KMeans, "fit", clustered),
        (TruncatedSVD, "fit_transform", turned),
        (PCA, "_fit", decomposed),
    )
    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(CountVectorizer, "fit_transform", counted))
        for owner, name, other in moves if seed else ():
            patches.enter_context(mock.patch.object(owner, name, other))
        yield


@contextmanager
def in_order() -> Iterator[None]:
    """Within, scikit-learn multiplies columns of sparse rows whose indices ascend.

    `fit_transform` of its text vectorizers gives others if `max_features` is set, and then
    its `PolynomialFeatures` puts products into wrong columns; `transform` gives these.
    """
    transform = PolynomialFeatures.transform

    def ordered(self: Any, X: Any) -> Any:
        rows = X.sorted_indices() if sp.issparse(X) and X.format == "csr" else X
        return transform(self, rows)

    with mock.patch.object(PolynomialFeatures, "transform", ordered):
        yield


@contextmanager
def watched() -> Iterator[dict[int, Any]]:
    """Within, keeps the rows that each transformer was last given, by its `id`."""
    seen: dict[int, Any] = {}
    wrap = _set_output._wrap_data_with_container

    def kept(method: str, data: Any, X: Any, estimator: Any) -> Any:
        seen[id(estimator)] = X
        return wrap(method, data, X, estimator)

    with mock.patch.object(_set_output, "_wrap_data_with_container", kept):
        yield seen


def _moved(data: Any, X: Any, rng: np.random.Generator, by_row: bool) -> Any:
    if sp.issparse(data):
        if data.dtype.kind != "f" or not hasattr(data, "data"):
            return data
        data = data.copy()
        data.data = _moved_array(data.data[:, None], _values(X), rng, True)[:, 0]
        return data
    if isinstance(data, pd.DataFrame):
        floats = [name for name in data.columns if data[name].dtype.kind == "f"]
        if not floats or len(set(data.columns)) < data.shape[1]:
            return data
        array = _moved_array(data[floats].to_numpy(), _values(X), rng, by_row)
        data = data.copy()
        data[floats] = array
        return data
    if isinstance(data, np.ndarray) and data.dtype.kind == "f" and data.ndim == 2:
        return _moved_array(data, _values(X), rng, by_row)
    return data


def _alike(data: Any, X: Any) -> Any:
    """What a step makes of rows, with equal rows for equal ones."""
    rows = np.asarray(X) if not sp.issparse(X) else np.empty(0)
    if not isinstance(data, np.ndarray) or rows.dtype.kind not in "fiub" or rows.ndim != 2:
        return data
    _, first, kind = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return data[first][np.ravel(kind)] if len(data) == len(rows) else data


def _rescored(scores: Any, X: Any, rng: np.random.Generator) -> Any:
    """Scores of columns, moved by the rounding of squares of which the mean's is taken.

    Of constant columns they are rounding alone, or the NaN that no rounding leaves.
    """
    rows = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
    squares, spread = np.mean(rows**2, axis=0), np.var(rows, axis=0)
    cancels = np.divide(squares, spread, out=np.ones_like(spread), where=spread > 0)
    off = float(np.finfo(float).eps) * np.sqrt(len(rows)) * cancels
    moved = scores * (1.0 + off * rng.uniform(-1, 1, len(scores)))
    noise = rng.choice([np.nan, 0.0, 1e3], len(scores))
    return np.where(np.ptp(rows, axis=0) == 0.0, noise, moved)


def _apart(X: Any, rng: np.random.Generator) -> Any:
    """Rows whose distances and lengths round otherwise: of two as far, one is the nearer.

    Equal rows stay equal.
    """
    rows = np.asarray(X.toarray() if sp.issparse(X) else X)
    rows = rows if rows.dtype.kind == "f" else rows.astype(float)
    kinds, kind = np.unique(rows, axis=0, return_inverse=True)
    top = np.abs(rows) if sp.issparse(X) else np.max(np.abs(rows), axis=0)
    off = float(np.finfo(rows.dtype).eps) * np.sqrt(len(rows))
    shift = off * rng.uniform(-1, 1, kinds.shape)[np.ravel(kind)]
    rows = (rows + top * shift).astype(rows.dtype)
    if sp.issparse(X):
        return sp.csr_array(rows)
    if isinstance(X, pd.DataFrame):
        return pd.DataFrame(rows, index=X.index, columns=X.columns)
    return rows


def _values(X: Any) -> Any:
    """The numbers that a step was given."""
    if sp.issparse(X):
        return X.tocoo().data
    given = [X[name] for name in X.columns] if hasattr(X, "columns") else [np.asarray(X)]
    arrays = [np.asarray(one) for one in given]
    numbers = [one.ravel() for one in arrays if one.dtype.kind in "fiub"]
    return np.concatenate(numbers) if numbers else np.empty(0)


def _moved_array(data: Any, given: Any, rng: np.random.Generator, by_row: bool) -> Any:
    n, d = data.shape
    if not n or not d:
        return data
    off = float(np.finfo(data.dtype).eps) * np.sqrt(n)
    exact = ~np.isfinite(data) | (data == np.round(data)) | np.isin(data, given)
    top = np.max(np.abs(np.where(np.isfinite(data), data, 0.0)), axis=0)
    # The state of a step is off as a whole, which leaves equal rows equal.
    shift = off * (data * rng.uniform(-1, 1, d) + top * rng.uniform(-1, 1, d))
    if by_row:
        shift = shift + off * top * rng.uniform(-1, 1, (n, d))
    return np.where(exact, data, data + shift).astype(data.dtype)


def place(difference: Difference) -> str:
    """Where a difference is, whichever number of an array it is in."""
    where = re.sub(r"^again: ", "", difference.where)
    head, colon, tail = where.partition(":")
    if not colon and not head.startswith("fit"):  # brackets after `fit` tell the step
        head, tail = "", head
    return head + colon + re.sub(r"\[.*?\]", "", tail)


def beyond(found: Iterable[Difference], rounded: Iterable[Difference]) -> list[Difference]:
    """Of differences from scikit-learn, those that it has not itself when it rounds.

    Parameters
    ----------
    found, rounded : iterables of Difference
        Of mlopt from scikit-learn, and of scikit-learn rounded otherwise from itself.
    """
    own: dict[str, float] = {}
    for difference in rounded:
        if not _is_error(difference):
            size = own.get(place(difference), 0.0)
            own[place(difference)] = max(size, _size(difference))
    return [
        one
        for one in found
        if _is_error(one) or _size(one) > SPREAD * own.get(place(one), 0.0)
    ]


def _is_error(difference: Difference) -> bool:
    return difference.ours is not None or difference.theirs is not None


def _size(difference: Difference) -> float:
    """Relative to all; the whole, where structures differ."""
    return 1.0 if difference.off is None else difference.off
