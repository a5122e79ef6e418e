"""What a run is doing, on stderr: a bar on a terminal, a JSON line an event otherwise.

JSON lines are for whoever reads logs: ``{"at": 3.1, "event": "RungDone", ...}``. Single
trials are left out there, unless they fail; the line at the end of each rung sums them up.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from dataclasses import asdict
from typing import Any, Self, TextIO

from mlopt import events

QUIET = (
    events.TrialScored,
    events.TrialStarted,
    events.TrialPruned,
    events.TrialFinished,
    events.TrialLeft,
)


class Progress(ABC):
    """Hears events, tells people. Use as a context manager."""

    @abstractmethod
    def __call__(self, event: events.Event) -> None:
        """Tell what happened."""

    @abstractmethod
    def close(self) -> None:
        """Give the stream back as it was."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Lines(Progress):
    """A JSON object a line.

    Parameters
    ----------
    stream : text file
    quiet : tuple of types
        Events that are left out.
    """

    def __init__(
        self, stream: TextIO, quiet: tuple[type[events.Event], ...] = QUIET
    ) -> None:
        self.stream, self.quiet = stream, quiet

    def __call__(self, event: events.Event) -> None:
        if isinstance(event, self.quiet):
            return
        fields = {key: _plain(value) for key, value in asdict(event).items()}
        elapsed = fields.pop("elapsed")
        record = {"at": round(elapsed, 2), "event": type(event).__name__} | fields
        self.stream.write(json.dumps(record) + "\n")
        self.stream.flush()

    def close(self) -> None:
        """Leave the stream as it is; every line is complete."""
        self.stream.flush()


def event_of(line: str) -> events.Event:
    """The event of a line of `Lines`, whose seconds are rounded and whose parameters are
    left out; what is not finite comes back as NaN."""
    record = json.loads(line)
    kind = getattr(events, record.pop("event"))
    fields = {key: math.nan if value is None else value for key, value in record.items()}
    fields.pop("params", None)
    event: events.Event = kind(elapsed=fields.pop("at"), **fields)
    return event


def progress(stream: TextIO, timeout: float | None, n_trials: int | None) -> Progress:
    """A bar when ``stream`` is a terminal, JSON lines otherwise."""
    if not stream.isatty():
        return Lines(stream)
    from mlopt.report.bar import Bar

    return Bar(stream, timeout, n_trials)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str | None) else str(value)
