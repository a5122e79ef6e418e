"""The story of a search follows from its events alone."""

from __future__ import annotations

import math

import pytest

from mlopt import events
from mlopt.report.history import best_first, best_so_far, format_score, shown, trial_rows
from mlopt.report.tables import frame_of

EVENTS = [
    events.TrialStarted(0.0, 0, "tree", {"depth": 3}),
    events.TrialStarted(0.0, 1, "line", {"C": 0.1}),
    events.TrialScored(1.0, 0, "tree", 10, 0.70, 1.0),
    events.TrialScored(2.0, 1, "line", 10, 0.60, 0.5),
    events.TrialPruned(2.0, 1, 10, 0.60, "error 0.4 is above 0.33"),
    events.TrialStarted(2.0, 2, "line", {"C": 9.0}),
    events.TrialScored(3.0, 0, "tree", 20, 0.75, 1.5),
    events.TrialFinished(3.0, 0, 20, 0.75),
    events.TrialFailed(3.5, 2, "ValueError: no"),
    events.TrialStarted(3.5, 3, "tree", {"depth": 5}),
    events.TrialScored(4.0, 3, "tree", 10, 0.80, 1.0),
]


def test_each_trial_has_one_row_with_its_end() -> None:
    rows = trial_rows(EVENTS)
    assert [row.number for row in rows] == [0, 1, 2, 3]
    assert [row.state for row in rows] == ["COMPLETE", "PRUNED", "FAIL", "RUNNING"]
    assert [row.passes for row in rows] == [20, 10, 0, 10]
    assert rows[0].seconds == pytest.approx(2.5)
    assert math.isnan(rows[2].score)


def test_pruned_trials_come_last_and_failed_ones_not_at_all() -> None:
    assert [row.number for row in best_first(trial_rows(EVENTS))] == [3, 0, 1]


def test_the_best_so_far_only_rises() -> None:
    line = best_so_far(trial_rows(EVENTS))
    assert line == [(1.0, 0.70), (3.0, 0.75), (4.0, 0.80)]


def test_the_table_has_every_parameter_as_it_was_given() -> None:
    table = frame_of(trial_rows(EVENTS))
    assert table["param_depth"].dtype == "Int64"
    assert table["param_depth"].isna().tolist() == [False, True, True, False]
    assert table["param_depth"].dropna().tolist() == [3, 5]
    assert table["param_C"].dropna().tolist() == [0.1, 9.0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (1e-4, "1e-4"),
        (0.00012345, "1.23e-4"),
        (123456.0, "123,456"),
        (0.0, "0"),
        (math.inf, "inf"),
        (math.nan, "nan"),
        (True, "True"),
        ("l2", "l2"),
        (300, "300"),
        (2.5e9, "2.5e9"),
    ],
)
def test_values_are_shown_short(value: object, text: str) -> None:
    assert shown(value) == text


def test_scores_are_shown_with_what_matters() -> None:
    assert (format_score(0.87312), format_score(-1234.5)) == ("0.8731", "-1,234")
