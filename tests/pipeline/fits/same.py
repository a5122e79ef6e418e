"""What it means that two fitted estimators are the same."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from tests.pipeline.fits.cases import Data

from mlopt.pipeline.fits.base import OnePass


@cache
def reference(estimator: Any, data: Data) -> Any:
    """scikit-learn's own fit on all rows; not to be changed."""
    beside = {} if data.weight is None else {"sample_weight": data.weight}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(estimator).fit(data.X, data.y, **beside)


def rows_of(data: Data, start: int, stop: int) -> Data:
    """Rows ``start`` to ``stop``."""
    X = data.X.iloc[start:stop] if hasattr(data.X, "iloc") else data.X[start:stop]
    y = None if data.y is None else data.y[start:stop]
    return Data(X, y, None if data.weight is None else data.weight[start:stop])


def parts(way: OnePass, estimator: Any, data: Data, cuts: Sequence[int]) -> list[Any]:
    """Statistics of the blocks between ``cuts``."""
    bounds = [0, *sorted(cuts), data.X.shape[0]]
    blocks = [rows_of(data, *pair) for pair in pairwise(bounds)]
    return [way.part(estimator, one.X, one.y, one.weight) for one in blocks]


def merged(way: OnePass, found: Sequence[Any], order: Sequence[int] = ()) -> Any:
    """All of them together, neighbours joined in the order that is asked for."""
    left = list(found)
    for choice in [*order, *[0] * len(left)]:
        if len(left) > 1:
            place = choice % (len(left) - 1)
            left[place : place + 2] = [way.merge(left[place], left[place + 1])]
    return left[0]


def finished(way: OnePass, estimator: Any, statistics: Any) -> Any:
    """The fitted estimator; what scikit-learn warns of at the end is its own affair."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return way.finish(estimator, statistics)


def assert_same_fit(ours: Any, theirs: Any, rtol: float) -> None:
    """The same class, parameters and public fitted attributes, types included."""
    assert type(ours) is type(theirs)
    assert repr(ours.get_params()) == repr(theirs.get_params())
    mine, wanted = learnt(ours), learnt(theirs)
    assert mine.keys() == wanted.keys()
    for name, value in wanted.items():
        assert_same(mine[name], value, rtol, name)


def learnt(model: Any) -> dict[str, Any]:
    """All that a fit has set for all to see."""
    return {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") and not name.startswith("_")
    }


def assert_same(ours: Any, theirs: Any, rtol: float, name: str = "") -> None:
    """Equal up to rounding in numbers, and in type."""
    if isinstance(theirs, BaseEstimator):
        assert_same_fit(ours, theirs, rtol)
    elif isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs), name
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other, rtol, name)
    elif sp.issparse(theirs):
        assert type(ours) is type(theirs), name
        assert_same(ours.toarray(), theirs.toarray(), rtol, name)
    elif isinstance(theirs, np.ndarray | np.generic):
        assert type(ours) is type(theirs), f"{name}: {type(ours)}, {type(theirs)}"
        assert ours.dtype == theirs.dtype, f"{name}: {ours.dtype}, {theirs.dtype}"
        _assert_same_array(np.asarray(ours), np.asarray(theirs), rtol, name)
    else:
        assert type(ours) is type(theirs), f"{name}: {type(ours)}, {type(theirs)}"
        assert ours == theirs or ours != ours, name


def _assert_same_array(ours: Any, theirs: Any, rtol: float, name: str) -> None:
    assert ours.shape == theirs.shape, name
    if theirs.dtype == object:
        for one, other in zip(ours.ravel(), theirs.ravel(), strict=True):
            assert_same(one, other, rtol, name)
    elif theirs.dtype.kind == "f":
        scale = np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0)
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol * scale, err_msg=name)
    else:
        np.testing.assert_array_equal(ours, theirs, err_msg=name)


def assert_same_use(ours: Any, theirs: Any, X: Any, rtol: float) -> None:
    """The same predictions or rows, and the same names of columns."""
    for verb in ("transform", "predict", "predict_proba"):
        if hasattr(theirs, verb):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found, wanted = getattr(ours, verb)(X), getattr(theirs, verb)(X)
            assert_same(found, wanted, 100 * rtol, verb)
    if hasattr(theirs, "get_feature_names_out"):
        names = ours.get_feature_names_out(), theirs.get_feature_names_out()
        np.testing.assert_array_equal(*names)
