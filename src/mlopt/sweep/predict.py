"""A saved model on new data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from mlopt.errors import InputError
from mlopt.readers import read_table
from mlopt.sweep.loading import as_features
from mlopt.sweep.models import load


def predict_file(model: Path, data: str, *, proba: bool = False) -> pd.DataFrame:
    """Predictions for every row of a file.

    Parameters
    ----------
    model : path
        A ``.skops`` file.
    data : str
        A file as `sweep` reads them; it may have the target column too.
    proba : bool
        Add ``probability_<class>`` for each class.

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
    X = as_features(read_table(data, columns=int(first.n_features_in_)).X)
    return predictions(estimator, X, proba=proba)


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
