"""What fitted steps know of the columns of a table: values, an example, what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.pipeline import FeatureUnion, Pipeline

WORD = "text"
"""A document to show, where a step keeps none of the words that it has seen."""


@dataclass(frozen=True)
class Learned:
    """What a step has learned of a column.

    Parameters
    ----------
    values : tuple
        Of a category, without the missing one.
    example : number or str or None
        A value that the step can read.
    missing : float or None
        A cell without a value, as in training: encoders tell None from NaN.
    """

    values: tuple[Any, ...] = ()
    example: Any = None
    missing: float | None = np.nan

    @property
    def is_text(self) -> bool:
        """Whether the cells are texts."""
        return isinstance(self.example, str)


def first_step(estimator: Any) -> Any:
    """What gets the rows of a file."""
    return estimator.steps[0][1] if isinstance(estimator, Pipeline) else estimator


def names_of(estimator: Any) -> tuple[str, ...] | None:
    """The columns that a model needs; None where it was trained on no table."""
    names = getattr(first_step(estimator), "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def numbered_from(estimator: Any) -> int | None:
    """The number of the first column in the LIBSVM file that a model was trained on."""
    return getattr(estimator, "numbered_from_", None)


def decimal_of(estimator: Any) -> str | None:
    """The decimal sign of the text that a model was trained on, where that told it."""
    return getattr(estimator, "decimal_", None)


def learned(estimator: Any) -> dict[str, Learned]:
    """What is known of columns, by name."""
    known: dict[str, Learned] = {}
    for name, one in _learned(estimator, names_of(estimator) or ()):
        # What a later step has seen of a column, the first one made of it.
        first = known.setdefault(name, one)
        if first.is_text and one.is_text and not first.values:
            known[name] = replace(first, values=one.values)
    return known


def as_learned(column: pd.Series, known: Learned | None) -> pd.Series:
    """A column with missing cells as in training.

    One of nothing else has no type of its own: an encoder of texts refuses it as numbers.
    """
    missing = column.isna().to_numpy()
    if not missing.any():
        return column
    known = known or Learned()
    nothing = bool(missing.all())
    if nothing and not known.is_text:
        return column.astype(float) if column.dtype == object else column
    if not nothing and column.dtype != object and known.missing is not None:
        return column
    cells = np.array(column, dtype=object)
    cells[missing] = known.missing
    return pd.Series(cells, index=column.index, name=column.name, dtype=object)


def _learned(step: Any, names: Sequence[str]) -> Iterator[tuple[str, Learned]]:
    match step:
        case Pipeline():
            for _, inner in step.steps:
                yield from _learned(inner, names)
                if (given := _names_out(inner, names)) is None:
                    return
                names = given
        case FeatureUnion():
            for _, inner in step.transformer_list:
                yield from _learned(inner, names)
        case ColumnTransformer():
            for _, inner, columns in step.transformers_:
                yield from _learned(inner, _chosen(columns, names))
        case CountVectorizer() | HashingVectorizer():
            words = getattr(step, "vocabulary_", None) or (WORD,)
            yield from ((name, Learned((), str(next(iter(words))))) for name in names)
        case _:
            # Boosting encodes the categories of a data frame by a step of its own.
            if isinstance(inner := getattr(step, "_preprocessor", None), ColumnTransformer):
                yield from _learned(inner, names)
            yield from _of_columns(step, names)


def _of_columns(step: Any, names: Sequence[str]) -> Iterator[tuple[str, Learned]]:
    """Of a step with something for each column: an encoder, an imputer, a scaler."""
    categories = getattr(step, "categories_", None)
    middle = getattr(step, "statistics_", getattr(step, "mean_", None))
    if categories is not None and len(categories) == len(names):
        for name, seen in zip(names, categories, strict=True):
            values = tuple(v for v in map(_plain, seen) if v is not None and v == v)
            missing = None if any(value is None for value in seen) else np.nan
            yield name, Learned(values, values[0] if values else None, missing)
    elif middle is not None and np.shape(middle) == (len(names),):
        missing = None if getattr(step, "missing_values", np.nan) is None else np.nan
        for name, value in zip(names, map(_plain, middle), strict=True):
            if isinstance(value, str) or (value is not None and np.isfinite(value)):
                yield name, Learned((), value, missing)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _chosen(columns: Any, names: Sequence[str]) -> Sequence[str]:
    """The columns of one part of a `ColumnTransformer`, by name."""
    if isinstance(columns, str):
        return (columns,)
    if not isinstance(columns, slice):
        columns = np.atleast_1d(np.asarray(columns))
        if columns.dtype.kind not in tuple("iub"):
            return tuple(map(str, columns))
    return tuple(np.asarray(names, dtype=object)[columns])


def _names_out(step: Any, names: Sequence[str]) -> Sequence[str] | None:
    """The columns that come out of a step; None where they are others than went in."""
    if step is None or step == "passthrough":
        return names
    if isinstance(step, ColumnTransformer | FeatureUnion | CountVectorizer):
        return None
    try:
        return tuple(map(str, step.get_feature_names_out(np.asarray(names, dtype=object))))
    except Exception:  # a step need not have names
        return None
