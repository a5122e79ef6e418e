"""Whoever reads stderr learns what happens: people on a terminal, programs elsewhere."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from mlopt import ModelSearchCV, events
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


def told_of(bar: Bar, width: int) -> list[str]:
    """The lines of the bar on a terminal so wide."""
    console = Console(file=io.StringIO(), width=width)
    console.print(bar.bars.get_renderable())
    return str(console.file.getvalue()).splitlines()  # type: ignore[attr-defined]


def test_after_its_end_a_search_has_no_seconds_left() -> None:
    with Bar(Terminal(), 60.0, 2) as tell:
        for event in EVENTS[1:3]:
            tell(event)
        assert "searching" in told_of(tell, 120)[0]
        assert "s left" in told_of(tell, 120)[0]
        tell(events.TrialPruned(1.0, 0, 10, 0.7, "error 0.3"))
        assert "searching" in told_of(tell, 120)[0]  # the other one is to come
        tell(events.TrialStarted(1.1, 1, "tree", {}))
        tell(events.TrialFinished(1.2, 1, 10, 0.7))
        assert "fitting the best" in told_of(tell, 120)[0]
        tell(events.Message(1.3, "best accuracy: 0.7, #1 tree"))
        assert "testing" in told_of(tell, 120)[0]
        tell(events.Message(1.4, "test accuracy: 0.6"))
        assert "writing" in told_of(tell, 120)[0]
        assert "left" not in told_of(tell, 120)[0]


def test_a_search_that_time_ended_has_no_seconds_left() -> None:
    with Bar(Terminal(), 60.0, None) as tell:
        tell(EVENTS[1])
        tell(events.TrialLeft(1.0, 0, 3, 0.7, "no time was left"))
        assert "fitting the best" in told_of(tell, 120)[0]
        tell(events.TrialStarted(2.0, 0, "line", {}))  # the next search of a query
        assert "searching" in told_of(tell, 120)[0]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_bar_is_one_line_that_keeps_the_time(width: int) -> None:
    with Bar(Terminal(), 86_400.0, None) as tell:
        tell(events.TrialStarted(0.2, 0, "histogram_gradient_boosting", {}))
        scored = events.TrialScored(
            1.0, 0, "histogram_gradient_boosting", 123456, -0.123456, 1.0
        )
        tell(scored)
        (line,) = told_of(tell, width)
    assert line.rstrip().endswith("s left")
    assert "best -0.12346" in line


def test_the_bar_and_the_line_of_a_search_say_the_same() -> None:
    with Bar(stream := Terminal(), None, None) as tell:
        for event in EVENTS:
            tell(event)
    assert "trial 1 failed: ValueError: no" in stream.getvalue()
    assert str(EVENTS[4]) == "1.1 s: trial 1 failed: ValueError: no"


def test_events_are_sentences_and_their_repr_is_for_debugging() -> None:
    params: dict[str, Any] = {"model__C": 0.123456, "kind": "a"}
    assert str(events.TrialStarted(0.2, 3, "tree", params)) == (
        "0.2 s: trial 3 begins: tree, model__C=0.1235, kind=a"
    )
    assert str(EVENTS[2]) == "1.0 s: trial 0, tree: 0.7 after 10 passes"
    assert str(events.TrialFinished(2, 0, 1, 0.75)) == (
        "2.0 s: trial 0 is fully trained: 0.75 after 1 pass"
    )
    assert str(EVENTS[3]) == "1.0 s: trial 0 pruned: 0.7 after 10 passes, error 0.3"
    assert str(EVENTS[5]) == (
        "1.2 s: round 1: 0 in training, 1 pruned, 0 finished, 1 failed, 10 passes; "
        "no score yet"
    )
    done = events.RungDone(61.0, 2, 3, 1, 2, 0, 1234, 0.98765432, 7)
    assert str(done).endswith("1,234 passes; best 0.98765 (trial 7)")
    assert str(EVENTS[0]) == "0.1 s: read [x]: 3 rows"
    assert repr(EVENTS[0]) == "Message(elapsed=0.1, text='read [x]: 3 rows')"
    assert str(events.GateWaited(0.5, "in", 0.1)).startswith("GateWaited(")


@pytest.mark.parametrize("verbose", [1, 2])
def test_a_verbose_search_speaks_in_sentences(
    verbose: int, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y = load_iris(return_X_y=True)
    ModelSearchCV(
        LogisticRegression(), {"C": [0.1, 1.0]}, cv=2, verbose=verbose, random_state=0
    ).fit(X, y)
    said = capsys.readouterr().err
    assert "Done(" not in said
    assert " s: round 1: " in said
    assert ("trial 0 begins: " in said) == (verbose == 2)
    assert "best 0.9" in said.splitlines()[-1]
