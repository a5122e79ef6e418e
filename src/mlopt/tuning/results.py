"""The table of a search, with scikit-learn's keys: ``cv_results_``."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.model_selection._search import _yield_masked_array_for_each_param

from mlopt.passes import plain
from mlopt.tuning.crews.scoring import SINGLE, Metrics, given_names
from mlopt.tuning.crews.trials import Trial


def cv_results(
    trials: Sequence[Trial], metrics: Metrics, n_splits: int, *, train: bool = False
) -> dict[str, Any]:
    """One entry a trial, in the order in which they were proposed.

    Beside scikit-learn's keys: ``family``, ``state`` ("COMPLETE", "PRUNED", "FAIL"),
    ``passes`` and ``reason``. Scores of a pruned trial are its last; of a failed one, the
    error score. With ``train``, scores of training rows are there: NaN where an earlier run
    that had not been asked for them has stored the trial.
    """
    table = _times(trials, n_splits)
    table |= dict(_yield_masked_array_for_each_param([dict(t.params) for t in trials]))
    table["params"] = [dict(t.params) for t in trials]
    table["family"] = np.array([t.family for t in trials], dtype=object)
    table["state"] = np.array([t.state for t in trials], dtype=object)
    table["passes"] = np.array([plain(t.passes) for t in trials])
    table["reason"] = np.array([t.reason for t in trials], dtype=object)
    for metric in metric_names(trials, metrics):
        table |= _metric_columns(metric, "test", trials, metrics, n_splits)
        table[f"rank_test_{metric}"] = ranks(table[f"mean_test_{metric}"])
        if train:
            table |= _metric_columns(metric, "train", trials, metrics, n_splits)
    return table


def metric_names(trials: Iterable[Trial], metrics: Metrics) -> tuple[str, ...]:
    """The metrics by name: a scorer that is a function says them when it is called."""
    if metrics.multiple:
        return tuple(metrics.scorers)
    found = sorted(trials, key=lambda trial: trial.state == "FAIL")
    return given_names(tuple(trial.scores) for trial in found) or (SINGLE,)


def _times(trials: Sequence[Trial], n_splits: int) -> dict[str, Any]:
    """Seconds a split; where nobody measured each, the mean alone is known."""
    table: dict[str, Any] = {}
    every = np.full((len(trials), n_splits, 2), np.nan)
    for own, trial in zip(every, trials, strict=True):
        if trial.by_split is not None:
            own[:] = trial.by_split
    for column, name in enumerate(("fit_time", "score_time")):
        whole = np.array([(t.seconds, t.score_seconds)[column] for t in trials])
        mean = every[:, :, column].mean(axis=1)
        table[f"mean_{name}"] = np.where(np.isnan(mean), whole / n_splits, mean)
        table[f"std_{name}"] = every[:, :, column].std(axis=1)
    return table


def ranks(scores: NDArray[Any]) -> NDArray[np.int32]:
    """1 for the best; equal scores share a rank; NaN comes last."""
    if np.isnan(scores).all():
        return np.ones(len(scores), dtype=np.int32)
    worst = np.nanmin(scores) - 1
    filled = np.where(np.isnan(scores), worst, scores)
    return np.asarray(rankdata(-filled, method="min"), dtype=np.int32)


def _metric_columns(
    metric: str, side: str, trials: Sequence[Trial], metrics: Metrics, n_splits: int
) -> dict[str, Any]:
    values = np.full((len(trials), n_splits), np.nan)
    for row, trial in zip(values, trials, strict=True):
        known = (trial.scores if side == "test" else trial.train_scores or {}).get(metric)
        if known:
            row[: len(known)] = known
        elif side == "train" and trial.replayed and trial.failed is None:
            continue
        elif trial.failed is not None or trial.scores:  # its scorer failed on all splits
            row[:] = metrics.failed([metric])[metric]
    columns: dict[str, Any] = {
        f"split{s}_{side}_{metric}": values[:, s] for s in range(n_splits)
    }
    means = values.mean(axis=1)
    with np.errstate(invalid="ignore"):
        spread = np.sqrt(((values - means[:, None]) ** 2).mean(axis=1))
    # Of trials that were stopped before their last split there is nothing to say.
    ended = means[[not t.unfinished for t in trials]]
    if not np.isfinite(ended).all():
        warnings.warn(
            f"One or more of the {side} scores are non-finite: {means}",
            UserWarning,
            stacklevel=6,
        )
    return columns | {f"mean_{side}_{metric}": means, f"std_{side}_{metric}": spread}
