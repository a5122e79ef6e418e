"""The report says what was tried, what was not, and what to do with the model."""

from __future__ import annotations

import io
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from mlopt import events
from mlopt.report.bar import Bar
from mlopt.report.page import render
from mlopt.sweep.findings import findings_of


def happened(result: Any, *told: events.Event) -> Any:
    """The same result, of a search with these events."""
    search = SimpleNamespace(events_=told, interrupted_=False, study_=result.search.study_)
    return replace(result, search=search)


def test_what_was_looked_at_is_counted(swept: Any) -> None:
    """A clock ends a search with trials in training that nobody has seen."""
    first = [
        events.TrialStarted(0, 0, "linear"),
        events.TrialScored(1, 0, "linear", 1, 0.5, 1),
    ]
    begun = events.TrialStarted(0, 1, "extra_trees")
    failed = events.TrialFailed(1, 1, "ValueError: no")
    left = events.TrialLeft(1, 1, 0, 0.0, "no time was left")
    said = findings_of(happened(swept.result, *first, begun, left)).summary
    assert (
        "1 configuration of 1 model family was tried. 1 family (extra_trees) never" in said
    )
    assert "more time or trials would give it one" in said
    said = findings_of(happened(swept.result, *first, begun, failed)).summary
    assert "never got a turn" not in said  # it had one
    said = findings_of(swept.result).summary
    assert "10 configurations of 2 model families were tried." in said
    assert "never" not in said


def test_the_baseline_stands_beside_the_test(swept: Any) -> None:
    facts = findings_of(swept.result).facts
    names = [name for name, _, _ in facts[:2]]
    assert names == ["Test " + swept.result.prepared.scoring.replace("_", " "), "Baseline"]
    assert float(facts[1][1]) == round(swept.result.baseline, 4)
    assert "majority class" in facts[1][2]


def test_the_page_says_how_to_predict(swept: Any) -> None:
    page = render(findings_of(swept.result))
    assert "mlopt predict FOLDER new.csv" in page
    assert 'mlopt.load("FOLDER").predict(' in page
    assert "To predict" not in render(findings_of(replace(swept.result, model=None)))


def test_the_section_on_parameters_is_of_the_family_of_the_best(swept: Any) -> None:
    found = findings_of(swept.result)
    assert found.family in (None, swept.result.best.family)


def test_the_bar_of_a_sweep_knows_what_follows_the_search(swept: Any) -> None:
    with Bar(io.StringIO(), 60.0, 10) as tell:
        said = []
        for event in swept.told:
            tell(event)
            said.append(tell.doing)
    assert [*dict.fromkeys(said)] == [
        "preparing", "searching", "fitting the best", "testing", "writing",
    ]  # fmt: skip
