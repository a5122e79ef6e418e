"""What fitted encoders do to many rows of few categories: they encode those that differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import sklearn
from scipy.sparse import issparse
from sklearn.preprocessing import OneHotEncoder

_FEWER = 8
"""Rows for each value that differs, from which each value is encoded once; of fewer, to
tell them apart takes as long as to encode them."""


def encoded(model: Any, X: Any) -> Any:
    """`OneHotEncoder.transform` and that of `OrdinalEncoder`, to the last bit.

    The encoder itself sees the values that differ: errors and warnings are its own.
    """
    columns = _columns(model, X)
    factors = [] if columns is None else [pd.factorize(column) for column in columns]
    most = max((len(values) for _, values in factors), default=0)
    if not most or most * _FEWER > len(X) or any((c < 0).any() for c, _ in factors):
        return model.transform(X)  # what is missing is told apart by scikit-learn alone
    distinct = model.transform(_block(X, [codes for codes, _ in factors], most))
    wide = isinstance(model, OneHotEncoder)
    widths = model._n_features_outs if wide else [1] * len(factors)
    edges = np.cumsum([0, *widths])
    if issparse(distinct):
        return _sparse(distinct, [codes for codes, _ in factors], edges)
    result = np.empty((len(X), distinct.shape[1]), distinct.dtype)
    for (codes, _), start, stop in zip(factors, edges[:-1], edges[1:], strict=True):
        result[:, start:stop] = distinct[codes, start:stop]
    return result


def _columns(model: Any, X: Any) -> list[Any] | None:
    """The columns, where equal values are sure to be one category: text and numbers."""
    frame = isinstance(X, pd.DataFrame)
    array = type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind == "O"
    settled = sklearn.get_config()["transform_output"] == "default"
    settled &= not hasattr(model, "_sklearn_output_config")
    if not (frame or array) or not settled or X.shape[1] != model.n_features_in_:
        return None
    columns = [X.iloc[:, j] if frame else X[:, j] for j in range(X.shape[1])]
    return columns if all(map(_is_plain, columns)) else None


def _is_plain(column: Any) -> bool:
    if column.dtype.kind in "biuf" or isinstance(column.dtype, pd.StringDtype):
        return True
    kind = pd.api.types.infer_dtype(column) if column.dtype == object else ""
    return kind in ("string", "integer")


def _block(X: Any, codes: list[np.ndarray], most: int) -> Any:
    """Rows that have each value of each column; shorter columns repeat a value."""
    places = []
    for one in codes:
        place = np.empty(one.max() + 1, np.intp)
        place[one] = np.arange(len(one))
        places.append(place[np.minimum(np.arange(most), len(place) - 1)])
    if isinstance(X, np.ndarray):
        return np.column_stack([X[at, j] for j, at in enumerate(places)])
    parts = [X.iloc[at, j].reset_index(drop=True) for j, at in enumerate(places)]
    return pd.concat(parts, axis=1)


def _sparse(distinct: Any, codes: list[np.ndarray], edges: np.ndarray) -> Any:
    """At most one 1 a column of categories: where it is, or -1, by row."""
    coo = distinct.tocoo()
    table = np.full((len(codes), distinct.shape[0]), -1, distinct.indices.dtype)
    table[np.searchsorted(edges, coo.col, side="right") - 1, coo.row] = coo.col
    places = np.column_stack([table[j][one] for j, one in enumerate(codes)])
    there = places >= 0
    lengths = there.sum(axis=1)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(distinct.indptr.dtype)
    indices = places.ravel() if there.all() else places[there]
    data = np.ones(len(indices), distinct.dtype)
    shape = (len(places), distinct.shape[1])
    return type(distinct)((data, indices, indptr), shape=shape)
