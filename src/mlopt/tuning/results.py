"""The table of a search, with scikit-learn's keys: ``cv_results_``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from mlopt.passes import plain
from mlopt.tuning.crews.trials import Trial


def cv_results(
    trials: Sequence[Trial], metrics: Iterable[str], n_splits: int, *, multiple: bool
) -> dict[str, Any]:
    """One entry a trial, in the order in which they were proposed.

    Beside scikit-learn's keys: ``family``, ``state`` ("COMPLETE", "PRUNED", "FAIL"),
    ``passes`` and ``reason``. Scores of a pruned trial are its last; of a failed one, NaN.
    """
    table: dict[str, Any] = {
        "mean_fit_time": np.array([t.seconds / n_splits for t in trials]),
        "std_fit_time": np.zeros(len(trials)),
        "mean_score_time": np.array([t.score_seconds / n_splits for t in trials]),
        "std_score_time": np.zeros(len(trials)),
    }
    table |= _parameters([t.params for t in trials])
    table["params"] = [dict(t.params) for t in trials]
    table["family"] = np.array([t.family for t in trials], dtype=object)
    table["state"] = np.array([t.state for t in trials], dtype=object)
    table["passes"] = np.array([plain(t.passes) for t in trials])
    table["reason"] = np.array([t.reason for t in trials], dtype=object)
    for metric in metrics:
        scores = [t.scores.get(metric, ()) for t in trials]
        table |= _metric_columns(metric, "test", scores, n_splits)
        table[f"rank_test_{metric}"] = ranks(table[f"mean_test_{metric}"])
        train = [(t.train_scores or {}).get(metric, ()) for t in trials]
        if any(train):
            table |= _metric_columns(metric, "train", train, n_splits)
    return table


def ranks(scores: NDArray[Any]) -> NDArray[np.int32]:
    """1 for the best; equal scores share a rank; NaN comes last."""
    worst = np.nanmin(scores) - 1 if np.isfinite(scores).any() else 0.0
    filled = np.where(np.isnan(scores), worst, scores)
    return np.asarray(rankdata(-filled, method="min"), dtype=np.int32)


def _parameters(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = dict.fromkeys(name for row in rows for name in row)
    columns: dict[str, Any] = {}
    for name in names:
        column = np.ma.MaskedArray(np.empty(len(rows), dtype=object), mask=True)
        for i, row in enumerate(rows):
            if name in row:
                column[i] = row[name]
        columns[f"param_{name}"] = column
    return columns


def _metric_columns(
    metric: str, side: str, scores: Sequence[Sequence[float]], n_splits: int
) -> dict[str, Any]:
    values = np.full((len(scores), n_splits), np.nan)
    for row, known in enumerate(scores):
        values[row, : len(known)] = known
    columns = {f"split{s}_{side}_{metric}": values[:, s] for s in range(n_splits)}
    columns[f"mean_{side}_{metric}"] = values.mean(axis=1)
    columns[f"std_{side}_{metric}"] = values.std(axis=1)
    return columns
