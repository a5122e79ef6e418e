"""What a run is doing, on stderr: a bar on a terminal, a JSON line an event otherwise.

JSON lines are for whoever reads logs: ``{"at": 3.1, "event": "RungDone", ...}``. Single
trials are left out there, unless they fail; the line at the end of each rung sums them up.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from dataclasses import asdict
from typing import Any, TextIO

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

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Lines(Progress):
    """A JSON object a line.

    Parameters
    ----------
    stream : text file
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def __call__(self, event: events.Event) -> None:
        if isinstance(event, QUIET):
            return
        fields = {key: _plain(value) for key, value in asdict(event).items()}
        elapsed = fields.pop("elapsed")
        record = {"at": round(elapsed, 2), "event": type(event).__name__} | fields
        self.stream.write(json.dumps(record) + "\n")
        self.stream.flush()

    def close(self) -> None:
        """Leave the stream as it is; every line is complete."""
        self.stream.flush()


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
