"""A saved model on new data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from mlopt.errors import InputError, InputWarning
from mlopt.hearing import unheard
from mlopt.readers import BUNDLED, read_jsonl, read_table
from mlopt.readers.blocks import is_json_lines, read_records
from mlopt.readers.files import File
from mlopt.readers.table import Known
from mlopt.sweep.cells import unreadable
from mlopt.sweep.learned import (
    as_learned,
    decimal_of,
    first_step,
    learned,
    names_of,
    numbered_from,
)
from mlopt.sweep.loading import as_features
from mlopt.sweep.models import load
from mlopt.sweep.tabular import ReadColumns, check_columns

TRUTHS = {"True", "False"}
"""Texts of a category that files had as true and false, with gaps."""


def predict_file(
    model: Path,
    data: str,
    *,
    proba: bool = False,
    tell: Callable[[str], object] = lambda text: None,
) -> pd.DataFrame:
    """Predictions for every row of a file.

    Parameters
    ----------
    model : path
        A ``.skops`` file.
    data : str
        A file as `sweep` reads them; it may have the target column too.
    proba : bool
        Add ``probability_<class>`` for each class.
    tell : callable
        Called with what must be said of the data: how it was read, and what cannot be.

    Returns
    -------
    DataFrame with a column ``prediction``

    Raises
    ------
    InputError
        A file that cannot be read, or a model that does not fit the data.
    """
    estimator = load(model)
    X, remarks = read_rows(estimator, data)
    for remark in remarks:
        tell(remark)
    with unheard(InputWarning):  # it is told, with the rows
        try:
            predicted = predictions(estimator, X, proba=proba)
        except (TypeError, ValueError) as error:  # as scikit-learn says it
            if isinstance(error, InputError):
                raise
            raise InputError(f"The model refuses the rows of `{data}`: {error}") from error
    for sentence in unreadable_cells(estimator, X):
        tell(sentence)
    return predicted


def read_rows(estimator: Any, data: str) -> tuple[Any, tuple[str, ...]]:
    """The rows of a whole file as a model takes them, and remarks on how it was read.

    JSON lines are the rows of a table where the model reads columns by their names; else
    each line has a document under "text".
    """
    if not data.startswith(BUNDLED) and is_json_lines(File.at(data)):
        if names_of(estimator) is None:
            return read_jsonl(data, label=None)[0], ()
        return rows_for(estimator, read_records(data)), ()
    width = getattr(first_step(estimator), "n_features_in_", None)
    columns, first = None if width is None else int(width), numbered_from(estimator)
    known = known_of(estimator)
    table = read_table(data, columns=columns, numbered_from=first, known=known)
    return rows_for(estimator, table.X), table.remarks


def known_of(estimator: Any) -> Known:
    """What a model knows of texts that it reads."""
    return Known(names_of(estimator) or (), texts_of(estimator), decimal_of(estimator))


def texts_of(estimator: Any) -> list[str]:
    """Columns whose cells stay as files write them: files, too, gave texts in training."""
    known, first = learned(estimator), first_step(estimator)
    if not isinstance(first, ReadColumns):
        return [name for name, one in known.items() if one.is_text]
    categories = (
        name
        for name in first.categories
        if name in known and not TRUTHS.issuperset(known[name].values)
    )
    # As the model has learned to read them: "1.500" may be more than a thousand.
    return [*categories, *first.texts, *(first.dates or {}), *(first.decimals or {})]


def rows_for(estimator: Any, X: Any) -> Any:
    """Rows of a file as a model takes them: of a table the columns that it knows by name.

    Raises
    ------
    MissingColumnError
    """
    X, names = as_features(X), names_of(estimator)
    if names is None or not isinstance(X, pd.DataFrame):
        return X
    check_columns(names, X.columns)
    if isinstance(first_step(estimator), ReadColumns):  # which takes what it needs
        return X
    X = X[[*names]]
    gaps = [name for name in names if X[name].isna().any()]
    if gaps:
        known = learned(estimator)
        X = X.assign(**{name: as_learned(X[name], known.get(name)) for name in gaps})
    return X


def unreadable_cells(estimator: Any, X: Any) -> list[str]:
    """A sentence for each column with cells that the model cannot read."""
    first = first_step(estimator)
    if not isinstance(first, ReadColumns):
        return []
    rest = first.dates or {}, first.decimals or {}, first.vectors or {}
    return unreadable(X, first.numbers, *rest)


def predictions(model: Any, X: Any, *, proba: bool = False) -> pd.DataFrame:
    """The columns ``prediction`` and, if asked for, ``probability_<class>``.

    Of a model that does not predict what it transforms to, by the names that it gives.
    """
    if proba and not hasattr(model, "predict_proba"):
        raise InputError(
            "`proba` needs a model that gives probabilities; this one does not. "
            "Leave it out."
        )
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if proba and type(model) is Pipeline and len(model.steps) > 1:
        # What both have in common is done once.
        X, model = model[:-1].transform(X), model.steps[-1][1]
    if not hasattr(model, "predict"):
        return _as_many(_transformed(model, X), rows)
    columns = _by_output("prediction", np.asarray(model.predict(X)))
    if proba:
        columns |= _probabilities(model, X)
    return _as_many(pd.DataFrame(columns), rows)


def _by_output(name: str, found: np.ndarray) -> dict[str, np.ndarray]:
    """A column; of several outputs one each, numbered from 0 as scikit-learn does."""
    if found.ndim == 1:
        return {name: found}
    if found.shape[1] == 1:
        return {name: found[:, 0]}
    return {f"{name}_{k}": column for k, column in enumerate(found.T)}


def _probabilities(model: Any, X: Any) -> dict[str, np.ndarray]:
    """``probability_<class>``; of several outputs ``probability_<output>_<class>``."""
    shares, classes = model.predict_proba(X), model.classes_
    if isinstance(shares, list):  # an array of an output each
        return {
            f"probability_{k}_{label}": share
            for k, (labels, found) in enumerate(zip(classes, shares, strict=True))
            for label, share in zip(labels, np.asarray(found).T, strict=True)
        }
    shares = np.asarray(shares)
    if isinstance(classes, list):  # outputs of yes or no in a chain: that of yes
        return _by_output("probability", shares)
    names = [f"probability_{label}" for label in classes]
    return dict(zip(names, shares.T, strict=True))


def _as_many(predicted: pd.DataFrame, rows: int) -> pd.DataFrame:
    """What must have so many rows: a model of texts takes a table as a list of names."""
    if len(predicted) != rows:
        raise InputError(
            f"The model must give a row for each of {rows}, but gave {len(predicted)}. If "
            "it was trained on documents, give them as JSON lines, under `text`."
        )
    return predicted


def _transformed(model: Any, X: Any) -> pd.DataFrame:
    if not hasattr(model, "transform"):
        raise InputError(
            f"A model must predict or transform rows; {type(model).__name__} does neither."
        )
    found = model.transform(X)
    if sp.issparse(found):
        raise InputError(
            f"{type(model).__name__} gives a sparse matrix, which is no table: use it in "
            "Python, with `mlopt.load`."
        )
    names = [*model.get_feature_names_out()]
    return pd.DataFrame(np.asarray(found), columns=names)
