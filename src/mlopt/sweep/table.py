"""`mlopt.sweep`: from a table to the best model, which says how it was found."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from mlopt import events
from mlopt.report.history import best_first
from mlopt.report.page import render
from mlopt.report.tables import records
from mlopt.sweep.config import Config
from mlopt.sweep.findings import findings_of
from mlopt.sweep.result import SweepResult
from mlopt.sweep.run import sweep


def best_model(
    data: Any = None,
    target: str | None = None,
    *,
    config: Config | None = None,
    test: Any = None,
    output: Path | str | None = None,
    families: Iterable[str] = (),
    name: str = "data",
    client: Any = None,
    observer: events.Observer = events.ignore,
    **settings: Any,
) -> Any:
    """Search model families for the best model of a table, fit and test it.

    Parameters
    ----------
    data : data frame or str
        A table in memory, or the name of a file; None: what ``config`` names.
    target : str, optional
        The column to predict.
    config : Config, optional
        Settings; by default those of a configuration file without a line.
    test : data frame or str, optional
        Rows to test on at the end; by default a fifth of ``data`` is set aside.
    output : path, optional
        Directory for the model, ``model.skops``, and the other results; nothing is written
        without one.
    families : iterable of str
        Families to search; empty for all.
    name : str
        What to call a table in memory.
    client : distributed.Client, optional
    observer : callable
        Called with every event.
    **settings
        Any key of the sections of a configuration: ``timeout="2m"``, ``scoring="roc_auc"``.

    Returns
    -------
    Pipeline
        Of scikit-learn, fitted on all training rows; it takes tables like ``data``. With
        ``leaderboard_``, a data frame of all trials, the best first; ``report_``, a page of
        HTML; ``plan_``, predicted beside measured; and ``test_scores_``, by metric.

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
    result = sweep(
        data, target, config=config, test=test, output=output, families=families,
        name=name, client=client, observer=observer, **settings,
    )  # fmt: skip
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
    return pd.DataFrame(
        records([*first, *(row for row in rows if row.number not in placed)])
    )
