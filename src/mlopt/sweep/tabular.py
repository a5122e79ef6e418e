"""From a table to what models take: plain scikit-learn steps behind one that reads columns.

::

    table -> ReadColumns -> one-hot, scaled   -> linear models
                         -> ordinal           -> trees (missing stays missing)
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
    TargetEncoder,
)
from sklearn.utils.validation import check_is_fitted

from mlopt.errors import InputError, InputWarning, MissingColumnError, did_you_mean
from mlopt.rows.block import as_csr
from mlopt.rows.source import is_dask
from mlopt.sweep.cells import numbers_of
from mlopt.sweep.dates import date_part, read_dates
from mlopt.sweep.loading import in_pandas
from mlopt.sweep.roles import Roles
from mlopt.sweep.texts import as_documents, terms, topics
from mlopt.sweep.vectors import parts_of, vectors_of

SPELLED_OUT = 24
"""Forests see categories with at most so many values as codes, others by their target."""

DENSE_COLUMNS = 512
"""One-hot columns up to which a dense matrix is faster than a sparse one."""


class ReadColumns(TransformerMixin, BaseEstimator):
    """Read a table as it was read in training, whatever a new file makes of its columns.

    Parameters
    ----------
    numbers : list of str
        Read as float; what is no finite number is missing.
    categories : list of str
        Read as text.
    dates : dict of str to str
        Read by this format and replaced by ``parts``.
    parts : dict of str to list of str
    decimals : dict of str to str
        For numbers in people's notation, as in "$1,234.50": the sign in front of decimals.
    vectors : dict of str to int
        Lists of so many numbers, a column each: ``name[0]``, ``name[1]``, ...
    texts : list of str
        Read as text; a missing one has no words.
    """

    # Of models of earlier versions:
    decimals: Mapping[str, str] | None = None
    vectors: Mapping[str, int] | None = None
    texts: Sequence[str] = ()

    def __init__(
        self,
        numbers: Sequence[str] = (),
        categories: Sequence[str] = (),
        dates: Mapping[str, str] | None = None,
        parts: Mapping[str, Sequence[str]] | None = None,
        decimals: Mapping[str, str] | None = None,
        vectors: Mapping[str, int] | None = None,
        texts: Sequence[str] = (),
    ) -> None:
        self.numbers = numbers
        self.categories = categories
        self.dates = dates
        self.parts = parts
        self.decimals = decimals
        self.vectors = vectors
        self.texts = texts

    def fit(self, X: Any, y: Any = None) -> ReadColumns:
        """Remember the names; nothing else is learned."""
        del y
        self._named(X)
        self.feature_names_in_ = np.asarray(self._wanted, dtype=object)
        self.n_features_in_ = len(self._wanted)
        return self

    def transform(self, X: Any) -> pd.DataFrame:
        """A data frame of floats and texts, with dates and vectors as numbers."""
        check_is_fitted(self)
        X = self._named(X)
        signs = self.decimals or {}
        columns: dict[str, Any] = {
            name: numbers_of(X[name], signs.get(name, ".")) for name in self.numbers
        }
        for name in self.numbers:
            _check_read(X[name], columns[name], "number")
        for name, layout in (self.dates or {}).items():
            dates = read_dates(X[name], layout)
            _check_read(X[name], dates, "date")
            for part in (self.parts or {})[name]:
                columns[f"{name}: {part}"] = date_part(dates, part)
        for name, length in (self.vectors or {}).items():
            found = vectors_of(X[name], length)
            _check_read(X[name], found, f"list of {length} numbers")
            columns |= zip(parts_of(name, length), found.T, strict=True)
        for name in self.categories:
            columns[name] = as_text(X[name])
        for name in self.texts:
            columns[name] = as_documents(as_text(X[name]))
        return pd.DataFrame(columns, index=X.index)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Numbers, parts of dates, those of vectors, categories, then texts."""
        del input_features
        parts = [
            f"{name}: {p}" for name in self.dates or {} for p in (self.parts or {})[name]
        ]
        for name, length in (self.vectors or {}).items():
            parts += parts_of(name, length)
        names = [*self.numbers, *parts, *self.categories, *self.texts]
        return np.asarray(names, dtype=object)

    def _named(self, X: Any) -> pd.DataFrame:
        """The table, its columns called by their texts as in training."""
        try:
            X = in_pandas(X)
        except TypeError:
            kind = type(X)
            whole = ": give `X.compute()`" if is_dask(X) else ""
            raise InputError(
                "A model of a table needs a data frame of pandas, polars or Arrow, got "
                f"{kind.__module__.partition('.')[0]}.{kind.__name__}{whole}."
            ) from None
        check_columns(self._wanted, X.columns)
        return X

    @property
    def _wanted(self) -> list[str]:
        rest = (*(self.dates or {}), *(self.vectors or {}), *self.texts)
        return [*self.numbers, *self.categories, *rest]


class ToFloat32(TransformerMixin, BaseEstimator):
    """Halve the bytes that every pass must read; for scaled values nothing is lost."""

    def fit(self, X: Any, y: Any = None) -> ToFloat32:
        """Learn nothing."""
        del y
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        """The same values as float32, dense or CSR."""
        check_is_fitted(self, "n_features_in_")
        if sparse.issparse(X):
            return as_csr(X).astype(np.float32)
        return np.ascontiguousarray(X, dtype=np.float32)


def check_columns(wanted: Iterable[str], given: Collection[str]) -> None:
    """Columns that a model needs must be there.

    Raises
    ------
    MissingColumnError
    """
    missing = tuple(name for name in wanted if name not in given)
    if missing:
        more = f" and {len(missing) - 1} more" * (len(missing) > 1)
        raise MissingColumnError(
            f"The table must have the columns of the training data; {missing[0]!r} is "
            f"missing{more}.{did_you_mean(missing[0], list(given))}",
            missing,
        )


def read_columns(roles: Roles) -> ReadColumns:
    """The first step of every pipeline over a table."""
    return ReadColumns(
        numbers=[*roles.numbers, *roles.codes],
        categories=list(roles.categories),
        dates=dict(roles.dates),
        parts={name: list(parts) for name, parts in roles.parts.items()},
        decimals=dict(roles.decimals),
        vectors=dict(roles.vectors),
        texts=list(roles.texts),
    )


def for_linear(
    roles: Roles, target_type: str, rows: int, seed: int
) -> list[tuple[str, Any]]:
    """Steps that one-hot encode, impute, scale and narrow to float32."""
    few = {name: roles.categories[name] for name in roles.few}
    width = sum(few.values()) + 12 * len(roles.codes) + len(roles.used)
    one_hot = OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        min_frequency=max(2, min(20, rows // 1000)),
        sparse_output=width > DENSE_COLUMNS,
    )
    scaled = make_pipeline(
        SimpleImputer(strategy="median", add_indicator=True), StandardScaler()
    )
    encoders = [
        ("scaled", scaled, _numeric_names(roles, codes=False)),
        ("one_hot", one_hot, [*roles.codes, *roles.few]),
        (
            "by_target",
            make_pipeline(_by_target(target_type, seed), StandardScaler()),
            roles.many,
        ),
        *((f"words {k}", terms(), name) for k, name in enumerate(roles.texts)),
    ]
    return _steps(roles, encoders, [("float32", ToFloat32())])


def for_trees(
    roles: Roles, target_type: str, seed: int, *, spelled_out: int
) -> tuple[list[tuple[str, Any]], list[int]]:
    """Steps that keep numbers as they are, and the positions of columns that are codes.

    Categories with more than ``spelled_out`` values are replaced by their target's mean.
    """
    coded = [name for name, n in roles.categories.items() if n <= spelled_out]
    others = [name for name in roles.categories if name not in coded]
    ordinal = OrdinalEncoder(
        handle_unknown="use_encoded_value",
        unknown_value=np.nan,
        encoded_missing_value=np.nan,
    )
    encoders = [
        ("codes", ordinal, coded),
        ("by_target", _by_target(target_type, seed), others),
        ("numbers", "passthrough", _numeric_names(roles, codes=True)),
        *((f"topics {k}", topics(seed), name) for k, name in enumerate(roles.texts)),
    ]
    return _steps(roles, encoders, []), list(range(len(coded)))


def _steps(
    roles: Roles,
    encoders: Iterable[tuple[str, Any, str | Sequence[str]]],
    last: list[tuple[str, Any]],
) -> list[tuple[str, Any]]:
    # A vectorizer of words takes one column, by its name alone.
    present = [
        (name, encoder, columns if isinstance(columns, str) else list(columns))
        for name, encoder, columns in encoders
        if columns
    ]
    encode = ColumnTransformer(present, verbose_feature_names_out=bool(roles.texts))
    return [("read", read_columns(roles)), ("encode", encode), *last]


def _numeric_names(roles: Roles, *, codes: bool) -> list[str]:
    parts = [f"{name}: {part}" for name, parts in roles.parts.items() for part in parts]
    parts += [one for item in roles.vectors.items() for one in parts_of(*item)]
    return [*roles.numbers, *(roles.codes if codes else ()), *parts]


def _by_target(target_type: str, seed: int) -> TargetEncoder:
    # Its own folds keep a row's target out of that row's features.
    continuous = target_type == "continuous"
    folds = KFold if continuous else StratifiedKFold
    # A part of the rows may have two of three classes.
    return TargetEncoder(
        target_type=target_type if continuous else "auto",
        cv=folds(5, shuffle=True, random_state=seed),
    )


def _check_read(column: pd.Series, values: Any, kind: str) -> None:
    """Warn of a column that says nothing to the model, though its cells are not empty."""
    if len(column) and pd.isna(values).all() and column.notna().any():
        cell = column[column.notna()].iloc[0]
        warnings.warn(
            f"`{column.name}` is no {kind} in any of {len(column)} rows, as in "
            f"{cell!r:.80}; the model takes it as missing. Is it the column of the "
            "training data?",
            InputWarning,
            stacklevel=2,
        )


def as_text(column: pd.Series) -> np.ndarray:
    """Texts with NaN where missing; whole numbers read the same as integer or float."""
    missing = column.isna().to_numpy()
    if column.dtype.kind == "f" and (column.dropna() % 1 == 0).all():
        column = column.astype("Int64")
    texts = np.asarray(column.astype(str).to_numpy(dtype=object))
    texts[missing] = np.nan
    return texts
