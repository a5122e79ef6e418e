"""`mlopt.sweep`: from a table to the best model, which says how it was found."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pandas as pd

from mlopt.errors import ConfigError
from mlopt.report.history import best_first
from mlopt.report.page import render
from mlopt.report.tables import frame_of
from mlopt.sweep.findings import findings_of
from mlopt.sweep.result import SweepResult
from mlopt.sweep.run import sweep


def best_model(data: Any = None, target: str | int | None = None, **given: Any) -> Any:
    """Search model families for the best model of a table, fit and test it.

    Parameters
    ----------
    data : data frame or str
        A table, or the name of a file. Rows of Dask come to this process.
    target : str or int, optional
        The column to predict, by its name.
    **given
        Of `mlopt.sweep.run.sweep`: ``test``, ``output``, a directory for the model,
        ``model.skops``, and the other results, ``families``, ``client``; any key of the
        sections of a configuration, such as ``timeout="2m"`` and ``scoring="roc_auc"``;
        ``scheduler`` is the address of one that a ``client`` is made for.

    Returns
    -------
    Pipeline
        Of scikit-learn, fitted on all training rows; it takes tables like ``data``. With
        ``leaderboard_``, a data frame of all trials, the best first; ``report_``, a page of
        HTML; ``plan_``, predicted beside measured; and ``test_scores_``, by metric. These
        are not in ``model.skops``.

    Raises
    ------
    InputError, ConfigError, StudyError
        When no sweep can come of the data, the settings or the storage.
    SweepInterrupted
        After Ctrl-C or SIGTERM, with the result so far; before the first score there is
        none, and it is a plain `KeyboardInterrupt`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> wine = load_wine(as_frame=True).frame
    >>> import mlopt
    >>> model = mlopt.sweep(wine, target="target", families=["linear"], n_trials=2)
    >>> model.predict(wine.head(2)).tolist()
    [0, 0]
    >>> model.leaderboard_["family"].tolist()
    ['linear', 'linear']
    """
    address = given.pop("scheduler", None)
    if address is not None and given.get("client") is not None:
        raise ConfigError("`client` and `scheduler` say the same: leave one of them out.")
    with ExitStack() as stack:
        if address is not None:
            from mlopt.cluster.connect import connect  # loads `distributed`

            given["client"] = stack.enter_context(connect(address))
        result = sweep(data, target, **given)
    model = result.model
    model.leaderboard_ = leaderboard(result)
    model.report_ = render(findings_of(result))
    model.plan_ = result.plan
    model.test_scores_ = {} if result.checked is None else dict(result.checked.scores)
    return model


def leaderboard(result: SweepResult) -> pd.DataFrame:
    """Every trial, the best first; those without a score last, in their order."""
    rows = result.trials
    first = best_first(rows)
    placed = {row.number for row in first}
    return frame_of([*first, *(row for row in rows if row.number not in placed)])
