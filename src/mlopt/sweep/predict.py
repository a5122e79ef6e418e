"""A saved model on new data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from mlopt.errors import InputError, InputWarning
from mlopt.readers import BUNDLED, read_jsonl, read_table
from mlopt.readers.blocks import is_json_lines, read_records
from mlopt.readers.files import File
from mlopt.sweep.cells import unreadable
from mlopt.sweep.loading import as_features
from mlopt.sweep.models import load
from mlopt.sweep.tabular import ReadColumns


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # it is told, with the rows
        predicted = predictions(estimator, X, proba=proba)
    for sentence in unreadable_cells(estimator, X):
        tell(sentence)
    return predicted


def first_step(estimator: Any) -> Any:
    """What gets the rows of a file."""
    return estimator.steps[0][1] if isinstance(estimator, Pipeline) else estimator


def read_rows(estimator: Any, data: str) -> tuple[Any, tuple[str, ...]]:
    """The rows of a whole file as a model takes them, and remarks on how it was read.

    JSON lines are the rows of a table where the model reads columns by their names; else
    each line has a document under "text".
    """
    first = first_step(estimator)
    if not data.startswith(BUNDLED) and is_json_lines(File.at(data)):
        if isinstance(first, ReadColumns):
            return read_records(data), ()
        return read_jsonl(data, label=None)[0], ()
    width = getattr(first, "n_features_in_", None)
    table = read_table(data, columns=None if width is None else int(width))
    return as_features(table.X), table.remarks


def unreadable_cells(estimator: Any, X: Any) -> list[str]:
    """A sentence for each column with cells that the model cannot read."""
    first = first_step(estimator)
    if not isinstance(first, ReadColumns):
        return []
    return unreadable(X, first.numbers, first.dates or {}, first.decimals or {})


def predictions(model: Any, X: Any, *, proba: bool = False) -> pd.DataFrame:
    """The columns ``prediction`` and, if asked for, ``probability_<class>``.

    Of a model that does not predict what it transforms to, by the names that it gives.
    """
    if proba and not hasattr(model, "predict_proba"):
        raise InputError(
            "`proba` needs a model that gives probabilities; this one does not. "
            "Leave it out."
        )
    if proba and type(model) is Pipeline and len(model.steps) > 1:
        # What both have in common is done once.
        X, model = model[:-1].transform(X), model.steps[-1][1]
    if not hasattr(model, "predict"):
        return _transformed(model, X)
    columns = {"prediction": np.asarray(model.predict(X))}
    if proba:
        shares = np.asarray(model.predict_proba(X))
        names = [f"probability_{label}" for label in model.classes_]
        columns |= dict(zip(names, shares.T, strict=True))
    return pd.DataFrame(columns)


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
    return pd.DataFrame(np.asarray(found), columns=[*model.get_feature_names_out()])
