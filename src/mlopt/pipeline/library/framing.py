"""Frames that `set_output` asks for, made of each block of a Dask collection.

scikit-learn's wrapper of `transform` would make one frame of all rows, in this process.
"""

from __future__ import annotations

import copy
import functools
from typing import Any, TypeVar

import numpy as np
from sklearn.utils._set_output import _get_output_config

from mlopt.rows.source import is_dask

_Kind = TypeVar("_Kind", bound=type)


def framed_lazily(kind: _Kind) -> _Kind:
    """A class whose ``transform`` gives lazy arrays for Dask collections; frames if asked.

    Frames have the index of the rows, or are numbered.
    """
    own: Any = kind
    wrapped = own.transform
    plain = wrapped.__wrapped__

    @functools.wraps(plain)
    def transform(self: Any, X: Any) -> Any:
        if not is_dask(X) or _get_output_config("transform", self)["dense"] != "pandas":
            return wrapped(self, X)
        return _framed(self, X, plain(self, X))

    own.transform = transform
    if "fit_transform" in vars(kind):  # which calls `transform`
        own.fit_transform = own.fit_transform.__wrapped__
    return kind


def _framed(fitted: Any, X: Any, rows: Any) -> Any:
    import dask.dataframe as dd
    import pandas as pd

    names = fitted.get_feature_names_out()
    if not hasattr(X, "columns"):
        return dd.from_dask_array(rows, columns=names)
    none = pd.DataFrame(np.empty((0, len(names)), rows.dtype), X._meta.index, names)
    return X.map_partitions(_of_part, copy.copy(fitted), none, meta=none)


def _of_part(part: Any, fitted: Any, none: Any) -> Any:
    if not len(part):
        return none
    values = type(fitted).transform.__wrapped__(fitted, part)
    return type(none)(values, part.index, none.columns)
