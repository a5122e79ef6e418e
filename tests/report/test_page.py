"""The page holds everything in itself, shows every trial, and escapes what users wrote."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from mlopt import events
from mlopt.plan import Choice, Plan
from mlopt.report.charts import lanes_chart
from mlopt.report.checked import Checked
from mlopt.report.history import TrialRow, trial_rows
from mlopt.report.page import Findings, render


def search(trials: int) -> tuple[TrialRow, ...]:
    """Events of a search in which every third trial is pruned and every tenth fails."""
    told: list[events.Event] = []
    for n in range(trials):
        family, at = ("tree", "line")[n % 2], float(n)
        params = {"model__C": 10.0**-n if n < 9 else 1.0, "model__kind": "ab"[n % 2]}
        told.append(events.TrialStarted(at, n, family, params))
        if n % 10 == 9:
            told.append(events.TrialFailed(at, n, "ValueError: <b>no</b>"))
            continue
        told.append(events.TrialScored(at, n, family, 10, 0.5 + n / 1000, 0.1))
        if n % 3 == 2:
            told.append(events.TrialPruned(at, n, 10, 0.5, "error 0.5"))
        else:
            told.append(events.TrialFinished(at, n, 10, 0.5 + n / 1000))
    return trial_rows(told)


PLAN = Plan(
    "sweep x",
    (
        Choice("read", "x", "csv", predicted=1.0, measured=2.0),
        Choice("fit", "y", "fast", predicted=1.0, measured=0.5),
    ),
)


def findings(rows: tuple[TrialRow, ...], checked: Checked | None = None) -> Findings:
    return Findings(
        title="<target> & co",
        summary="What was done.",
        facts=[("Trials", str(len(rows)), "")],
        trials=rows,
        scoring="accuracy",
        best_params={"model__C": 0.1},
        plan=PLAN,
        importance={"C": 0.8, "kind": 0.2},
        family="tree",
        checked=checked,
        columns=["2 numbers: a, <b>"],
        footer=["Seed 0"],
    )


class Balance(HTMLParser):
    """Counts what was opened and not closed, of elements that must be closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open[tag] = self.open.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        self.open[tag] = self.open.get(tag, 0) - 1


BINARY = Checked(
    9,
    "x.csv",
    {"accuracy": 0.9, "neg_log_loss": -0.3},
    ("no", "yes"),
    {("no", "no"): 5, ("yes", "yes"): 3, ("no", "yes"): 1},
    [(0.0, 0.0), (0.1, 0.9), (1.0, 1.0)],
)
NUMBERS = Checked(9, "x.csv", {"r2": 0.9}, pairs=[(1.0, 1.1), (2.0, 1.9)])


@pytest.mark.parametrize("checked", [None, BINARY, NUMBERS])
@pytest.mark.parametrize("trials", [1, 40])
def test_the_page_is_whole(trials: int, checked: Checked | None) -> None:
    page = render(findings(search(trials), checked))
    balance = Balance()
    balance.feed(page)
    for tag in ("svg", "section", "table", "div", "figure", "h2", "g", "circle", "text"):
        assert balance.open.get(tag, 0) == 0, tag


def test_nothing_is_loaded_from_elsewhere() -> None:
    page = render(findings(search(40), BINARY))
    assert not re.findall(r"https?://(?!www\.w3\.org)", page)
    assert "<script" not in page
    assert "<link" not in page


def test_what_users_wrote_is_escaped() -> None:
    page = render(findings(search(40), BINARY))
    assert "&lt;target&gt; &amp; co" in page
    assert "<b>no</b>" not in page


def test_every_trial_is_in_the_lanes() -> None:
    rows = search(40)
    picture = lanes_chart(rows)
    assert all(f"#{row.number} {row.family}" in picture for row in rows)


def test_many_trials_stay_a_picture() -> None:
    assert "60 more trials not shown" in lanes_chart(search(300))


def test_losses_are_shown_as_they_are() -> None:
    page = render(findings(search(4), BINARY))
    assert "log loss" in page
    assert "0.3000" in page


def test_predicted_stands_beside_measured() -> None:
    page = render(findings(search(4)))
    assert "off by" in page
    assert "2.0×" in page


def test_a_metric_without_a_value_says_why() -> None:
    checked = replace(BINARY, without={"roc_auc": "only <one> class"})
    assert "No roc_auc: only &lt;one&gt; class." in render(findings(search(4), checked))
