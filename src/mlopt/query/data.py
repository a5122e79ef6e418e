"""Labels and features from the sources of a query.

The columns of all sources in their order: the first one is the label, the others are the
features. So the defaults of ML4all (Appendix A) hold, and ``file:2, file:4-20`` works.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlopt.errors import InputError, InputWarning
from mlopt.query import ast
from mlopt.query.files import Library, Sheet, picked, taken
from mlopt.query.format import format_source
from mlopt.query.model import Features
from mlopt.readers.table import as_integers

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Data:
    """What is learnt from.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,)
        Of integers, floats, booleans or texts.
    label : str
        The name of its column.
    features : Features
    """

    X: Any
    y: Array
    label: str
    features: Features


def training_data(
    library: Library, sources: Sequence[ast.Source], task: str | None
) -> Data:
    """The label and the features of a RUN; labels of classes stay as a text has them.

    Raises
    ------
    QuerySyntaxError
        A column that is not there, or no features.
    InputError
        A file that cannot be read, text or missing values in features, or files with
        different numbers of rows.
    """
    parts = []
    for number, source in enumerate(sources):
        sheet = library.sheet(source)
        columns = picked(sheet, source, library.text)
        # Only the first source says what the label is.
        if number and source.columns is None and sheet.label_apart:
            columns = columns[1:]
        parts.append((source, sheet, columns))
    _check_once(library, parts)
    source, sheet, (first, *others) = parts[0]
    y, (label,) = taken(sheet, [first])
    rest = [(source, sheet, others), *parts[1:]] if others else parts[1:]
    if not rest:
        raise library.text.error(
            sources[0].span.to(sources[-1].span),
            "there is a label, but no features: name more columns, as in "
            f"`{source.path.value}:1, {source.path.value}:2-5`.",
        )
    X, names = _features(rest)
    if task == "classification" and hasattr(y, "iloc"):
        y = sheet.table.labels(y.iloc[:, 0]).to_frame()
    y = _label(y, f"{format_source(source)}, column {first}")
    if X.shape[0] != len(y):
        raise InputError(
            f"Label and features must have the same number of rows: "
            f"`{format_source(source)}` has {len(y)} and "
            f"`{format_source(rest[0][0])}` {X.shape[0]}."
        )
    return Data(X, y, label, _described(rest, names))


def prediction_data(
    library: Library, sources: Sequence[ast.Source], features: Features
) -> Any:
    """The features of a PREDICT, in the order of the model.

    Named columns are taken as they are. Without any: the columns with the model's names if
    the file has a header; or, where none has, those at the same places, if the file is as
    wide as the one for training; or all, if there are as many as the model has features.

    Warns
    -----
    InputWarning
        Named columns are those of the model, in another order.

    Raises
    ------
    InputError
        Some of the model's columns are there and others are not, or there are too many.
    """
    parts = []
    for source in sources:
        sheet = library.sheet(source)
        columns = picked(sheet, source, library.text)
        if source.columns is None and sheet.label_apart:
            columns = columns[1:]
        if source.columns is None and len(sources) == 1:
            columns = _matching(source, sheet, columns, features)
        parts.append((source, sheet, columns))
    X, names = _features(parts)
    d = len(features.names)
    if X.shape[1] != d:
        files = ", ".join(map(format_source, sources))
        raise InputError(
            f"The model has {d} features, but `{files}` gives {X.shape[1]} columns: name "
            f"{d} of them, as in `{sources[0].path.value}:2-{d + 1}`."
        )
    moved = [i for i in range(d) if names[i] != features.names[i]]
    if features.named and moved and sorted(names) == sorted(features.names):
        place = moved[0]
        warnings.warn(
            f"The columns of this PREDICT have the names of the model's, in another order: "
            f"`{names[place]}` goes for `{features.names[place]}`. Without columns they "
            "are found by their names.",
            InputWarning,
            stacklevel=2,
        )
    return X


def _matching(
    source: ast.Source, sheet: Sheet, columns: list[int], features: Features
) -> list[int]:
    if features.named and _has_names(sheet):
        places = features.places(sheet.table.names, f"`{format_source(source)}`")
        if places is not None:
            return [sheet.numbers[place] for place in places]
    if sheet.width == features.width and set(features.columns) <= set(sheet.numbers):
        return list(features.columns)
    return columns


def _has_names(sheet: Sheet) -> bool:
    """Whether a file names its columns, which are called c0, c1, ... otherwise."""
    return any(name != f"c{i}" for i, name in enumerate(sheet.table.names))


def _check_once(
    library: Library, parts: Sequence[tuple[ast.Source, Sheet, list[int]]]
) -> None:
    """Refuse a column that is named twice: a label among the features tells everything."""
    label = (id(parts[0][1]), parts[0][2][0])
    seen: set[tuple[int, int]] = set()
    for source, sheet, columns in parts:
        here = {(id(sheet), number) for number in columns}
        if twice := sorted(number for _, number in here & seen):
            span = source.columns.span if source.columns else source.span
            what = "the label" if (id(sheet), twice[0]) == label else "a feature"
            raise library.text.error(
                span, f"column {twice[0]} is {what} already: name each column once."
            )
        seen |= here


def _features(
    parts: Sequence[tuple[ast.Source, Sheet, list[int]]],
) -> tuple[Any, list[str]]:
    blocks: list[Any] = []
    names: list[str] = []
    for source, sheet, columns in parts:
        block, found = taken(sheet, columns)
        blocks.append(_numbers(block, format_source(source)))
        names += found
    rows = [block.shape[0] for block in blocks]
    if len(set(rows)) > 1:
        files = [format_source(source) for source, _, _ in parts]
        told = ", ".join(f"`{f}` {n}" for f, n in zip(files, rows, strict=True))
        raise InputError(f"All files of features must have as many rows, but have: {told}.")
    if len(blocks) == 1:
        return blocks[0], names
    if any(map(sp.issparse, blocks)):
        return sp.csr_array(sp.hstack(blocks, format="csr")), names
    return np.column_stack(blocks), names


def _numbers(block: Any, where: str) -> Any:
    """Features as float, dense or CSR."""
    found: Any
    if sp.issparse(block):
        found = sp.csr_array(block)
    elif hasattr(block, "iloc"):
        for place, name in enumerate(block.columns):  # which may have a name twice
            _check_column(block.iloc[:, place], str(name), where)
        found = block.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        found = np.asarray(block)
        if found.dtype.kind not in "fiub":
            raise InputError(
                f"Features must be numbers, but `{where}` holds {found.dtype}."
            )
        if found.dtype != np.float32:
            found = found.astype(np.float64)
    if not np.isfinite(found.data if sp.issparse(found) else found).all():
        raise InputError(f"Features must be finite numbers, but some of `{where}` are not.")
    return found


def _check_column(column: Any, name: str, where: str) -> None:
    if missing := int(column.isna().sum()):
        raise InputError(
            f"Features must have no missing values, but column `{name}` of `{where}` lacks "
            f"{missing} of {len(column)}: leave it out, fill them in, or use `mlopt "
            "sweep`, which does."
        )
    if column.dtype.kind not in "fiub":
        raise InputError(
            f"Features must be numbers, but column `{name}` of `{where}` holds "
            f"`{column.iloc[0]}`: name the columns of numbers, or use `mlopt sweep`, which "
            "encodes text."
        )


def _label(y: Any, where: str) -> Array:
    """One of four dtypes, which a stored model keeps."""
    column = y.iloc[:, 0] if hasattr(y, "iloc") else y
    if sp.issparse(column):
        column = column.toarray()
    array = np.asarray(column).ravel()
    if hasattr(column, "isna") or array.dtype.kind == "O":
        import pandas as pd

        if missing := int(pd.isna(array).sum()):
            raise InputError(
                f"Labels must not be missing, but {missing} of {len(array)} are ({where}): "
                "leave these rows out."
            )
    if array.dtype.kind in "iu":
        return as_integers(array)
    kinds = {"f": np.float64, "b": np.bool_}
    if array.dtype.kind not in kinds:
        return array.astype(np.str_)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(f"Labels must be finite, but some are not ({where}).")
    return array.astype(kinds[array.dtype.kind])


def _described(
    parts: Sequence[tuple[ast.Source, Sheet, list[int]]], names: list[str]
) -> Features:
    sheets = {id(sheet): sheet for _, sheet, _ in parts}
    named = any(map(_has_names, sheets.values()))
    if len(sheets) > 1:
        return Features(tuple(names), named=named)
    columns = tuple(number for _, _, numbers in parts for number in numbers)
    sheet = parts[0][1]
    first, decimal = sheet.table.numbered_from, sheet.table.decimal
    return Features(tuple(names), columns, sheet.width, named, first, decimal)
