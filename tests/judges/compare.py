"""What came out of a fit, and whether another gives the same to rounding."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.tree._tree import Tree
from tests.judges.known import ATTRIBUTES

ROUNDING = 1e-7
"""Of the largest value: sums in another order."""

SOLVED = 2e-4
"""Of the largest value: minima that two solvers find with a tolerance of 1e-9."""

FAMILIES = (
    AttributeError, TypeError, KeyError, IndexError, NotImplementedError, ArithmeticError,
    MemoryError, OSError, ValueError, RuntimeError,
)  # fmt: skip


class Difference(AssertionError):
    """Where two results differ, and how."""

    def __init__(
        self, where: str, what: str, *, both_raise: bool = False, off: float | None = None
    ) -> None:
        super().__init__(f"{where}: {what}")
        self.where, self.what = where, what
        self.both_raise, self.off = both_raise, off


@dataclass(frozen=True)
class Raised:
    """An exception in place of a value."""

    error: BaseException

    @property
    def family(self) -> type[BaseException]:
        """The built-in class that a caller would catch."""
        return next((f for f in FAMILIES if isinstance(self.error, f)), Exception)

    def __str__(self) -> str:
        text = str(self.error).strip().splitlines() or [""]
        return f"{type(self.error).__name__}: {text[0][:150]}"


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, computed if it is lazy, or what it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = call()
            return found.compute() if hasattr(found, "dask") else found
        except Exception as error:  # as scikit-learn raises, whatever it is
            return Raised(error)


def check(where: str, ours: Any, theirs: Any, tolerance: float) -> None:
    """That two outcomes are the same.

    Raises
    ------
    Difference
    """
    if isinstance(ours, Raised) or isinstance(theirs, Raised):
        both = isinstance(ours, Raised) and isinstance(theirs, Raised)
        if not both or ours.family is not theirs.family:
            what = f"{_short(ours)} != {_short(theirs)}"
            raise Difference(where, what, both_raise=both)
        return
    for name, left, right in _leaves(where, ours, theirs):
        _check_leaf(name, left, right, tolerance)


def _leaves(where: str, a: Any, b: Any) -> Iterator[tuple[str, Any, Any]]:
    """Pairs of arrays, tables and plain values within two like objects."""
    if isinstance(b, Mapping):
        if not isinstance(a, Mapping) or set(a) != set(b):
            raise Difference(where, f"{_short(a)} != {_short(b)}")
        for key, value in b.items():
            yield from _leaves(f"{where}[{key!r}]", a[key], value)
    elif isinstance(b, list | tuple) and not _plain(b):
        if not isinstance(a, list | tuple) or len(a) != len(b):
            raise Difference(where, f"{_short(a)} != {_short(b)}")
        for number, (left, right) in enumerate(zip(a, b, strict=True)):
            yield from _leaves(f"{where}[{number}]", left, right)
    elif isinstance(b, BaseEstimator | Tree):
        if type(a).__name__ != type(b).__name__:
            raise Difference(where, f"{type(a).__name__} != {type(b).__name__}")
        yield from (_nodes if isinstance(b, Tree) else _attributes)(where, a, b)
    elif isinstance(b, np.ndarray) and b.dtype == object and b.ndim:
        a = np.asarray(a)
        if a.shape != b.shape:
            raise Difference(where, f"shape {a.shape} != {b.shape}")
        for number, (left, right) in enumerate(zip(a.ravel(), b.ravel(), strict=True)):
            yield from _leaves(f"{where}[{number}]", left, right)
    else:
        yield where, a, b


def _plain(values: Any) -> bool:
    return all(isinstance(v, int | float | np.number) for v in values)


def _nodes(where: str, a: Any, b: Any) -> Iterator[tuple[str, Any, Any]]:
    for name in ("children_left", "feature", "threshold", "value"):
        yield f"{where}.{name}", getattr(a, name), getattr(b, name)


def _attributes(where: str, a: Any, b: Any) -> Iterator[tuple[str, Any, Any]]:
    mine, others = learnt(a), learnt(b)
    if set(mine) != set(others):
        missing, more = sorted(set(others) - set(mine)), sorted(set(mine) - set(others))
        raise Difference(f"{where}:{type(b).__name__}", f"lacks {missing}, has also {more}")
    inner = _parts(a), _parts(b)
    if inner[1] is not None:
        yield from _leaves(where, *inner)
        mine, others = {}, {}
    for name, value in others.items():
        full = f"{type(b).__name__}.{name}"
        if full not in ATTRIBUTES:
            yield from _leaves(f"{where}:{full}", mine[name], value)


def learnt(estimator: Any) -> dict[str, Any]:
    """The fitted attributes."""
    return {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and not name.startswith("_") and name != "plan_"
    }


def _parts(estimator: Any) -> list[Any] | None:
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
            raise Difference(
                where, f"{np.mean(~same):.0%} differ: {_short(a)} != {_short(b)}"
            )
        return
    if a.dtype != b.dtype:
        raise Difference(where, f"dtype {a.dtype} != {b.dtype}")
    if b.dtype == np.float32:
        tolerance = max(tolerance, 1e-4)
    finite = np.isfinite(b)
    scale = float(np.max(np.abs(b[finite]), initial=0.0))
    # With what is neither finite nor equal on both sides nothing is close.
    if not np.allclose(
        a, b, rtol=tolerance, atol=tolerance * max(scale, 1e-3), equal_nan=True
    ):
        with np.errstate(all="ignore"):
            off = float(np.nanmax(np.abs(a - b), initial=0.0))
        share = off / scale if scale else None
        raise Difference(where, f"off by {off:.2g} of {scale:.2g}", off=share)


def _short(value: Any) -> str:
    text = str(value) if isinstance(value, Raised) else f"{type(value).__name__} {value!r}"
    return " ".join(text.split())[:160]
