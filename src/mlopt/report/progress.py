"""What a run is doing, on stderr: a bar on a terminal, a JSON line an event otherwise.

JSON lines are for whoever reads logs: ``{"at": 3.1, "event": "RungDone", ...}``. Single
trials are left out there, unless they fail; the line at the end of each rung sums them up.
"""

from __future__ import annotations

import json
import math
import time
from abc import ABC, abstractmethod
from dataclasses import asdict
from typing import Any, TextIO

from mlopt import events

QUIET = (
    events.TrialScored,
    events.TrialStarted,
    events.TrialPruned,
    events.TrialFinished,
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


class Bar(Progress):
    """A bar on time or trials, with the best score, pruned trials, passes and time left.

    Parameters
    ----------
    stream : text file
        A terminal.
    timeout : float or None
        Seconds that the search has in all.
    n_trials : int or None
    """

    def __init__(self, stream: TextIO, timeout: float | None, n_trials: int | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self.timeout, self.n_trials = timeout, n_trials
        self.console = Console(file=stream, highlight=False)
        self.bars = RichProgress(
            SpinnerColumn(),
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=28),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[status]}"),
            console=self.console,
            transient=True,
            refresh_per_second=8,
        )
        self.task = self.bars.add_task("preparing", total=None, status="")
        self.started = time.monotonic()
        self.ended = self.passes = self.pruned = 0
        self.best, self.best_family = -math.inf, ""
        self.searching = False
        self.reached: dict[int, int] = {}
        self.bars.start()

    def close(self) -> None:
        """Take the bar away."""
        self.bars.stop()

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.Message():
                self.console.print(
                    f"[dim]{event.elapsed:6.1f} s[/dim]  {_safe(event.text)}"
                )
            case events.TrialStarted():
                self.searching = True
            case events.TrialScored():
                self.passes += event.passes - self.reached.get(event.trial, 0)
                self.reached[event.trial] = event.passes
                self._tell_best(event)
            case events.TrialPruned():
                self.ended, self.pruned = self.ended + 1, self.pruned + 1
            case events.TrialFailed():
                self.ended += 1
                self._say(event, f"trial {event.trial} failed: {event.reason}", "red")
            case events.TrialFinished():
                self.ended += 1
        self._update()

    def _tell_best(self, event: events.TrialScored) -> None:
        if not event.score > self.best:
            return
        self.best, self.best_family = event.score, event.family
        text = f"best {event.score:.5g}, {event.family} (trial {event.trial})"
        self._say(event, text, "green")

    def _say(self, event: events.Event, text: str, style: str = "default") -> None:
        at = f"[dim]{event.elapsed:6.1f} s[/dim]"
        self.console.print(f"{at}  [{style}]{_safe(text)}[/{style}]")

    def _update(self) -> None:
        share, left = self._share()
        best = f"best {self.best:.5g} ({self.best_family})" if self.best > -math.inf else ""
        counts = f"{self.ended} trials, {self.pruned} pruned, {self.passes:,} passes"
        status = "  ".join(part for part in (best, counts, left) if part)
        self.bars.update(
            self.task,
            description="searching" if self.searching else "preparing",
            total=None if share is None else 1.0,
            completed=share or 0.0,
            status=_safe(status),
        )

    def _share(self) -> tuple[float | None, str]:
        """How much of the budget is spent, and what is left in words."""
        shares = [self.ended / self.n_trials] if self.n_trials else []
        left = ""
        if self.timeout:
            elapsed = time.monotonic() - self.started
            shares.append(elapsed / self.timeout)
            left = f"{max(0.0, self.timeout - elapsed):.0f} s left"
        return (min(1.0, max(shares)) if shares else None), left


def progress(stream: TextIO, timeout: float | None, n_trials: int | None) -> Progress:
    """A bar when ``stream`` is a terminal, JSON lines otherwise."""
    return Bar(stream, timeout, n_trials) if stream.isatty() else Lines(stream)


def _safe(text: str) -> str:
    """Square brackets are markup to rich."""
    return text.replace("[", "\\[")


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str | None) else str(value)
