"""A saved model on new data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from mlopt.errors import InputError, InputWarning
from mlopt.readers import read_table
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
    first = estimator.steps[0][1] if isinstance(estimator, Pipeline) else estimator
    table = read_table(data, columns=int(first.n_features_in_))
    X = as_features(table.X)
    for remark in table.remarks:
        tell(remark)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # it is told, with the rows
        predicted = predictions(estimator, X, proba=proba)
    if isinstance(first, ReadColumns):
        signs = first.decimals or {}
        for sentence in unreadable(X, first.numbers, first.dates or {}, signs):
            tell(sentence)
    return predicted


def predictions(model: Any, X: Any, *, proba: bool = False) -> pd.DataFrame:
    """The columns ``prediction`` and, if asked for, ``probability_<class>``."""
    columns = {"prediction": np.asarray(model.predict(X))}
    if proba:
        if not hasattr(model, "predict_proba"):
            raise InputError(
                "`proba` needs a model that gives probabilities; this one does not. "
                "Leave it out."
            )
        shares = np.asarray(model.predict_proba(X))
        names = [f"probability_{label}" for label in model.classes_]
        columns |= dict(zip(names, shares.T, strict=True))
    return pd.DataFrame(columns)
