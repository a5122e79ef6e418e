"""Features and target, from a file or from a table in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from mlopt.errors import ConfigError, InputError, did_you_mean
from mlopt.readers import check_table, read_table
from mlopt.readers.table import listed
from mlopt.rows.block import as_csr
from mlopt.writing import name_of


@dataclass(frozen=True, eq=False)
class Source:
    """Features and the target beside them.

    Parameters
    ----------
    name : str
        What people call the data; never a whole path.
    X : data frame or CSR matrix of shape (n, d)
    y : Series of shape (n,)
        May have missing values, if ``X`` is a table.
    remarks : tuple of str
        How it was read, where that may surprise.
    """

    name: str
    X: Any
    y: pd.Series
    remarks: tuple[str, ...] = ()


def from_file(path: str, target: str | None, columns: int | None = None) -> Source:
    """Read a file, or one of scikit-learn's bundled sets.

    Parameters
    ----------
    path : str
    target : str or None
        May be left out where the format sets the target apart.
    columns : int, optional
        Features of a LIBSVM file, when its rows may lack the last ones.

    Raises
    ------
    InputError
        The file cannot be read, is empty, or has no such column.
    ConfigError
        The format is a plain table, and ``target`` does not say which column to predict.
    """
    table = read_table(path, target=target, columns=columns)
    name = path if path.startswith("sklearn:") else name_of(path)
    if table.y is None:
        raise _no_target(name, table.names)
    y = pd.Series(table.y).rename(table.target or "target").reset_index(drop=True)
    return Source(name, as_features(table.X), y, table.remarks)


def check_source(path: str, target: str | None) -> None:
    """Refuse what `from_file` would, as far as the beginning of the file tells."""
    names = check_table(path, target)
    if names is not None and target is None:
        raise _no_target(name_of(path), names)


def _no_target(name: str, names: Sequence[str]) -> ConfigError:
    return ConfigError(
        f"`target` must name the column of {name} to predict; it has {listed(names)}."
    )


def from_frame(frame: Any, target: str, name: str = "data") -> Source:
    """A table in memory: pandas, polars or Arrow.

    Raises
    ------
    InputError
        ``target`` is no column of ``frame``.
    """
    if not isinstance(frame, pd.DataFrame):
        try:
            frame = nw.from_native(frame, eager_only=True).to_pandas()
        except TypeError:
            raise InputError(
                f"{name} must be a data frame in memory (pandas, polars, Arrow) or the "
                f"name of a file, got {type(frame).__name__}."
            ) from None
    names = list(map(str, frame.columns))
    if target not in frame.columns:
        raise InputError(
            f"`target` must be a column of the table; {target!r} is none."
            f"{did_you_mean(target, names)} Columns: {listed(names)}."
        )
    return Source(name, as_features(frame.drop(columns=[target])), frame[target])


def as_features(X: Any) -> Any:
    """A data frame with named columns, or a CSR matrix."""
    if sparse.issparse(X):
        return as_csr(X)
    if isinstance(X, pd.DataFrame):
        return X.rename(columns=str)
    X = np.asarray(X)
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])


def without(source: Source, unwanted: NDArray[np.bool_]) -> Source:
    """``source`` without some of its rows."""
    keep = np.flatnonzero(~unwanted)
    if isinstance(source.X, pd.DataFrame):
        return replace(source, X=source.X.iloc[keep], y=source.y.iloc[keep])
    return replace(source, X=source.X[keep], y=source.y.iloc[keep])
