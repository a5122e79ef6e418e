"""Features and target, from a file or from a table in memory."""

from __future__ import annotations

import re
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
from mlopt.readers.delimited import is_text
from mlopt.readers.table import UNKNOWN, Known, column, listed
from mlopt.rows.block import as_csr
from mlopt.rows.source import collected
from mlopt.sweep.target import infer
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
    numbered_from : int or None
        As of `read_table`.
    decimal : str or None
        As of `Table`.
    """

    name: str
    X: Any
    y: pd.Series
    remarks: tuple[str, ...] = ()
    numbered_from: int | None = None
    decimal: str | None = None

    @property
    def known(self) -> Known:
        """What is known of another text with these columns."""
        if not isinstance(self.X, pd.DataFrame):
            return UNKNOWN
        columns = {**self.X, str(self.y.name): self.y}
        texts = [name for name, column in columns.items() if is_text(column)]
        return Known(tuple(columns), texts, self.decimal)


def from_file(
    path: str, target: str | None, like: Source | None = None, task: str = "regression"
) -> Source:
    """Read a file, or one of scikit-learn's bundled sets.

    Parameters
    ----------
    path : str
    target : str or None
        May be left out where the format sets the target apart.
    like : Source, optional
        The rows to train on, as which these are read: those of a LIBSVM file may lack the
        first or the last columns, and cells of a text may all look like numbers.
    task : {"auto", "classification", "regression"}
        Whether the target has labels, which stay as a text has them.

    Raises
    ------
    InputError
        The file cannot be read, is empty, or has no such column.
    ConfigError
        The format is a plain table, and ``target`` does not say which column to predict.
    """
    columns = None if like is None else like.X.shape[1]
    first = None if like is None else like.numbered_from
    known = UNKNOWN if like is None else like.known
    table = read_table(
        path, target=target, columns=columns, numbered_from=first, known=known
    )
    name = path if path.startswith("sklearn:") else name_of(path)
    if table.y is None:
        raise _no_target(name, table.names)
    y = pd.Series(table.y).rename(table.target or "target").reset_index(drop=True)
    found = infer(y.dropna())[0] if task == "auto" else task
    if like is None and found == "classification":
        y = table.labels(y)
    X = as_features(table.X)
    return Source(name, X, y, table.remarks, table.numbered_from, table.decimal)


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
    """A table: of pandas, polars, Arrow or Dask. Columns are called by their texts.

    Raises
    ------
    InputError
        ``target`` is no column of ``frame``, or two columns have one name.
    """
    try:
        frame = in_pandas(collected(frame))
    except TypeError:
        raise InputError(
            f"{name} must be a data frame in memory (pandas, polars, Arrow) or of Dask, or "
            f"the name of a file, got {type(frame).__name__}."
        ) from None
    names = list(frame.columns)
    if len(twice := frame.columns[frame.columns.duplicated()]):
        raise InputError(
            f"The columns of {name} must have names that differ as texts; {twice[0]!r} is "
            f"there {names.count(twice[0])} times. Rename or drop the others."
        )
    if target == "last" or re.fullmatch(r"-?\d+", str(target)):
        target = column(names, str(target), name)
    if target not in names:
        raise InputError(
            f"`target` must be a column of the table; {target!r} is none."
            f"{did_you_mean(target, names)} Columns: {listed(names)}."
        )
    return Source(name, frame.drop(columns=[target]), frame[target])


def in_pandas(frame: Any) -> pd.DataFrame:
    """A data frame in memory, columns called by their texts; else a TypeError."""
    if not isinstance(frame, pd.DataFrame):
        frame = nw.from_native(frame, eager_only=True).to_pandas()
    return frame.rename(columns=str)


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
