"""What came out of a fit, and whether another gives the same to rounding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.tree._tree import Tree
from tests.judges.known import ATTRIBUTES, SHARE_OF
from tests.judges.outcomes import Difference, Raised

ROUNDING = 1e-7
"""Of the largest value: sums in another order."""

SINGLE = 1e-4
"""Of the largest value: sums of about a thousand float32, each rounded to 1.2e-7."""

SOLVED = 2e-4
"""Of the largest value: minima that two solvers find with a tolerance of 1e-9."""


def check(where: str, ours: Any, theirs: Any, tolerance: float) -> None:
    """That two outcomes are the same.

    Raises
    ------
    Difference
        The first.
    """
    for difference in differences(where, ours, theirs, tolerance):
        raise difference


def differences(
    where: str, ours: Any, theirs: Any, tolerance: float
) -> Iterator[Difference]:
    """Where two outcomes differ."""
    left, right = (one if isinstance(one, Raised) else None for one in (ours, theirs))
    if left or right:
        if not (left and right) or left.family is not right.family:
            what = f"{_short(ours)} != {_short(theirs)}"
            yield Difference(where, what, ours=left, theirs=right)
        return
    for found in _leaves(where, ours, theirs):
        if isinstance(found, Difference):
            yield found
            continue
        try:
            _check_leaf(*found, tolerance)
        except Difference as difference:
            yield difference


Leaf = tuple[str, Any, Any]


def _leaves(where: str, a: Any, b: Any) -> Iterator[Leaf | Difference]:
    """Pairs of arrays, tables and plain values within two objects; where these differ."""
    if isinstance(b, Mapping):
        if not isinstance(a, Mapping) or set(a) != set(b):
            yield Difference(where, f"{_short(a)} != {_short(b)}")
            return
        for key, value in b.items():
            yield from _leaves(f"{where}[{key!r}]", a[key], value)
    elif isinstance(b, list | tuple) and not _plain(b):
        if not isinstance(a, list | tuple) or len(a) != len(b):
            yield Difference(where, f"{_short(a)} != {_short(b)}")
            return
        for number, (left, right) in enumerate(zip(a, b, strict=True)):
            yield from _leaves(f"{where}[{number}]", left, right)
    elif isinstance(b, BaseEstimator | Tree):
        if type(a).__name__ != type(b).__name__:
            yield Difference(where, f"{type(a).__name__} != {type(b).__name__}")
            return
        yield from (_nodes if isinstance(b, Tree) else _attributes)(where, a, b)
    elif _are_objects(b) and not (_are_words(a) and _are_words(b)):
        a = np.asarray(a)
        if a.shape != b.shape:
            yield Difference(where, f"shape {a.shape} != {b.shape}")
            return
        for number, (left, right) in enumerate(zip(a.ravel(), b.ravel(), strict=True)):
            yield from _leaves(f"{where}[{number}]", left, right)
    else:
        yield where, a, b


def _are_objects(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype == object and values.ndim > 0


def _are_words(values: Any) -> bool:
    """Whether values are an array of text, of which a share may differ."""
    return _are_objects(values) and all(isinstance(one, str) for one in values.ravel())


def _plain(values: Any) -> bool:
    return all(isinstance(v, int | float | np.number) for v in values)


def _nodes(where: str, a: Any, b: Any) -> Iterator[Leaf]:
    for name in ("children_left", "feature", "threshold", "value"):
        yield f"{where}.{name}", getattr(a, name), getattr(b, name)


def _attributes(where: str, a: Any, b: Any) -> Iterator[Leaf | Difference]:
    mine, others = learnt(a), learnt(b)
    if set(mine) != set(others):
        missing, more = sorted(set(others) - set(mine)), sorted(set(mine) - set(others))
        yield Difference(f"{where}:{type(b).__name__}", f"lacks {missing}, has also {more}")
    inner = inside(a), inside(b)
    if inner[1] is not None:
        yield from _leaves(where, *inner)
        return
    for name in sorted(set(mine) & set(others)):
        full = f"{type(b).__name__}.{name}"
        if full not in ATTRIBUTES:
            values = mine[name], others[name]
            if full in SHARE_OF:
                whole = np.max(np.abs(others[SHARE_OF[full]]))
                values = values[0] / whole, values[1] / whole
            if full in _CLEAR:
                clear = _CLEAR[full](b)
                if np.shape(values[0]) == np.shape(values[1]):
                    values = values[0][clear], values[1][clear]
            yield from _leaves(f"{where}:{full}", *values)


def _have_direction(pca: Any) -> Any:
    """Which axes rows vary along, by more than the rounding of their sums."""
    total = np.max(pca.explained_variance_, initial=0.0) + np.sum(np.square(pca.mean_))
    rounding = pca.n_samples_ * np.finfo(pca.components_.dtype).eps
    return pca.explained_variance_ > rounding * total


def _have_variance(svd: Any) -> Any:
    """Along which axes rows vary, by more than the rounding of sums of squares."""
    rounding = np.finfo(svd.components_.dtype).eps
    return svd.explained_variance_ > rounding * np.square(svd.singular_values_)


_CLEAR = {
    "PCA.components_": _have_direction,
    "PCA.explained_variance_ratio_": _have_direction,
    "TruncatedSVD.explained_variance_ratio_": _have_variance,
}
"""Attributes that are compared along some axes only: of constant columns the share of a
variance of zero is infinite where rounding has left any, and no number where not."""


def learnt(estimator: Any) -> dict[str, Any]:
    """The fitted attributes."""
    return {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and not name.startswith("_") and name != "plan_"
    }


def inside(estimator: Any) -> list[Any] | None:
    """The estimators that one is made of; None for one that is none of these."""
    if isinstance(estimator, Pipeline):
        return [one for _, one in estimator.steps]
    if isinstance(estimator, FeatureUnion):
        return [one for _, one in estimator.transformer_list]
    if isinstance(estimator, ColumnTransformer) and hasattr(estimator, "transformers_"):
        return [one for _, one, _ in estimator.transformers_]
    return None


def _check_leaf(where: str, a: Any, b: Any, tolerance: float) -> None:
    if isinstance(b, pd.DataFrame | pd.Series):
        _check_frame(where, a, b, tolerance)
    elif sp.issparse(b):
        if not sp.issparse(a) or a.shape != b.shape:
            raise Difference(where, f"{_short(a)} != {_short(b)}")
        _check_numbers(where, a.toarray(), b.toarray(), tolerance)
    elif isinstance(b, str | bool | type(None)) or callable(b):
        same = callable(a) if callable(b) else isinstance(a, type(b)) and a == b
        if not same:
            raise Difference(where, f"{_short(a)} != {_short(b)}")
    elif isinstance(b, np.ndarray | np.number | int | float | list | tuple):
        if type(a) is not type(b) and isinstance(b, np.ndarray):
            raise Difference(where, f"a {type(a).__name__} is not an ndarray")
        _check_numbers(where, np.asarray(a), np.asarray(b), tolerance)
    elif type(a).__name__ != type(b).__name__:
        raise Difference(where, f"{type(a).__name__} != {type(b).__name__}")


def _check_frame(where: str, a: Any, b: Any, tolerance: float) -> None:
    if type(a) is not type(b):
        raise Difference(where, f"{type(a).__name__} != {type(b).__name__}")
    if isinstance(b, pd.Series):
        a, b = a.to_frame(), b.to_frame()
    if list(a.columns) != list(b.columns):
        raise Difference(where, f"columns {_short(list(a.columns))} != {list(b.columns)}")
    if not a.index.equals(b.index):
        raise Difference(where, f"index {a.index} != {b.index}")
    for name in b.columns:
        left, right = a[name].to_numpy(), b[name].to_numpy()
        _check_numbers(f"{where}[{name!r}]", left, right, tolerance)


def _check_numbers(where: str, a: Any, b: Any, tolerance: float) -> None:
    if a.shape != b.shape:
        raise Difference(where, f"shape {a.shape} != {b.shape}")
    if a.dtype.kind != b.dtype.kind:
        raise Difference(where, f"dtype {a.dtype} != {b.dtype}")
    if b.dtype.kind not in "fc":
        same = (a == b) | (pd.isna(a) & pd.isna(b))
        if not np.all(same):
            unlike = float(np.mean(~same))
            what = f"{unlike:.0%} differ: {_short(a)} != {_short(b)}"
            raise Difference(where, what, off=unlike)
        return
    if a.dtype != b.dtype:
        raise Difference(where, f"dtype {a.dtype} != {b.dtype}")
    if b.dtype == np.float32:
        tolerance = max(tolerance, SINGLE)
    finite = np.isfinite(b)
    scale = float(np.max(np.abs(b[finite]), initial=0.0))
    # With what is neither finite nor equal on both sides nothing is close.
    if not np.allclose(
        a, b, rtol=tolerance, atol=tolerance * max(scale, 1e-3), equal_nan=True
    ):
        with np.errstate(all="ignore"):
            off = float(np.nanmax(np.abs(a - b), initial=0.0))
        alike = np.array_equal(np.isnan(a), np.isnan(b))
        share: float | None = off / scale if scale and alike else None
        raise Difference(where, f"off by {off:.2g} of {scale:.2g}", off=share)


def _short(value: Any) -> str:
    text = str(value) if isinstance(value, Raised) else f"{type(value).__name__} {value!r}"
    return " ".join(text.split())[:160]
