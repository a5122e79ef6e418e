"""One fit with the machine to itself: whatever can use several cores does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import joblib
from sklearn.utils.metadata_routing import _routing_enabled as routing_enabled
from sklearn.utils.validation import _num_samples

from mlopt.rows import Rows
from mlopt.tuning.boosting import can_be_tried, fit_boosted
from mlopt.tuning.crews.chain import assemble, cut, fit_steps, params_of_final
from mlopt.tuning.crews.clones import clone_apart
from mlopt.tuning.crews.fitting import Fold, fit_arguments, fit_fold


def every_row(
    X: Any, y: Any, weight: Any = None, fit_params: Mapping[str, Any] | None = None
) -> Fold:
    """All rows to train on, none to judge by."""
    return Fold(X, y, weight=weight, fit_params=dict(fit_params or {}))


def fit_alone(estimator: Any, rows: Fold, threads: int) -> Any:
    """A clone of ``estimator``, fitted with up to ``threads`` threads.

    What the caller has left open (``n_jobs=None``) stays open, in parts that are fitted
    within, too: the model may be used where others work too.
    """
    parts = cut(estimator)
    here = rows.y is not None and not isinstance(rows.X, Rows) and not routing_enabled()
    if here and can_be_tried(parts.final, _num_samples(rows.y)):
        fitted, X = fit_steps(parts, rows.X, rows.y, rows.fit_params)
        own = params_of_final(parts.path, rows.fit_params)
        model = clone_apart(parts.final)
        arguments = fit_arguments(model, replace(rows, X=X, fit_params=own))
        fitted[parts.name] = fit_boosted(model, X, rows.y, arguments)
        return assemble(estimator, fitted)
    fresh = clone_apart(estimator)
    # Starting processes takes seconds, and a copy of the rows for each.
    with joblib.parallel_config(backend="threading", n_jobs=threads):
        return fit_fold(fresh, rows)
