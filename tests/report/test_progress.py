"""Whoever reads stderr learns what happens: people on a terminal, programs elsewhere."""

from __future__ import annotations

import io
import json

from mlopt import events
from mlopt.report.bar import Bar
from mlopt.report.progress import Lines, progress

EVENTS = [
    events.Message(0.1, "read [x]: 3 rows"),
    events.TrialStarted(0.2, 0, "tree", {"depth": 3}),
    events.TrialScored(1.0, 0, "tree", 10, 0.7, 1.0),
    events.TrialPruned(1.0, 0, 10, 0.7, "error 0.3"),
    events.TrialFailed(1.1, 1, "ValueError: no"),
    events.RungDone(1.2, 1, 0, 1, 0, 1, 10, float("nan"), -1),
]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_lines_are_json_objects_with_their_time() -> None:
    stream = io.StringIO()
    with progress(stream, 60.0, None) as tell:
        assert isinstance(tell, Lines)
        for event in EVENTS:
            tell(event)
    records = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [r["event"] for r in records] == ["Message", "TrialFailed", "RungDone"]
    assert records[2]["at"] == 1.2
    assert records[2]["best_score"] is None


def test_a_terminal_gets_a_bar_that_leaves_the_messages() -> None:
    stream = Terminal()
    with progress(stream, 60.0, 10) as tell:
        assert isinstance(tell, Bar)
        for event in EVENTS:
            tell(event)
        assert (tell.ended, tell.pruned, tell.passes, tell.best) == (2, 1, 10, 0.7)
    text = stream.getvalue()
    assert "read [x]: 3 rows" in text
    assert "best 0.7, tree (trial 0)" in text
    assert "ValueError: no" in text


def test_a_search_without_a_budget_has_a_bar_too() -> None:
    with Bar(Terminal(), None, None) as tell:
        for event in EVENTS:
            tell(event)


def test_brackets_are_written_as_they_are() -> None:
    out = io.StringIO()
    bar = Bar(out, None, 3)
    bar(events.Message(0.0, "must be in [0, 1]"))
    bar(events.Message(0.0, r"bad pattern \[/b] and [b]"))
    assert "must be in [0, 1]" in out.getvalue()
    assert r"bad pattern \[/b] and [b]" in out.getvalue()
