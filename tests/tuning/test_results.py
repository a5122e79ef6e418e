"""The table of a search."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from mlopt.tuning.crews.scoring import metrics_of
from mlopt.tuning.crews.trials import TrainResult, Trial
from mlopt.tuning.results import cv_results, ranks


def trial(number: int, state: str, scores: tuple[float, ...], **params: object) -> Trial:
    one = Trial(number, "", params, state=state)
    if scores:
        one.record(TrainResult(number, 3, {"score": scores}, True, 1.0))
    return one


def test_equal_scores_share_a_rank_and_nan_comes_last() -> None:
    np.testing.assert_array_equal(ranks(np.array([0.5, np.nan, 0.9, 0.5])), [2, 4, 1, 2])


def test_the_table_has_scikit_learns_keys_and_masks_absent_parameters() -> None:
    trials = [
        trial(0, "COMPLETE", (0.8, 0.9), C=1.0),
        trial(1, "FAIL", (), gamma=2.0),
    ]
    metrics = metrics_of(None, LogisticRegression(), refit=True)
    trials[1].record(TrainResult(1, 0, {}, True, 1.0, reason="it raised"))
    table = cv_results(trials, metrics, 2)

    assert {"split0_test_score", "mean_test_score", "std_test_score", "rank_test_score",
            "params", "param_C", "mean_fit_time"} <= set(table)  # fmt: skip
    np.testing.assert_allclose(table["mean_test_score"], [0.85, np.nan])
    assert table["param_C"].mask.tolist() == [False, True]
    assert table["state"].tolist() == ["COMPLETE", "FAIL"]
