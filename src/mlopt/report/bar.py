"""The bar on a terminal: budget spent, best score, pruned trials, passes, time left."""

from __future__ import annotations

import math
import time
from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.progress import Progress as RichProgress
from rich.table import Column
from rich.text import Text

from mlopt import events
from mlopt.passes import Passes, passes_text
from mlopt.report.progress import Progress

ENDS = (events.TrialPruned, events.TrialFailed, events.TrialFinished)
AFTER = {"interrupted:": "finishing", "best": "testing", "test": "writing"}
"""What is done after a search once a message that begins so was told."""

STATUS = Column(ratio=1, no_wrap=True, overflow="ellipsis")
"""The status has the width that the others leave it."""


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
        self.timeout, self.n_trials = timeout, n_trials
        self.console = Console(file=stream, highlight=False)
        self.left = TimeLeft(timeout)
        self.bars = RichProgress(
            SpinnerColumn(),
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[status]}", table_column=STATUS),
            self.left,
            console=self.console,
            expand=True,
            transient=True,
            refresh_per_second=8,
        )
        self.task = self.bars.add_task("preparing", total=None, status="")
        self.started = time.monotonic()
        self.ended = self.pruned = 0
        self.passes: Passes = 0
        self.best, self.best_family = -math.inf, ""
        self.doing = "preparing"
        self.begun = 0
        self.going: set[int] = set()
        self.reached: dict[int, Passes] = {}
        self.bars.start()

    def close(self) -> None:
        """Take the bar away."""
        self.bars.stop()

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.Message():
                self.console.print(
                    f"[dim]{event.elapsed:6.1f} s[/dim]  {escape(event.text)}"
                )
                if self.begun and not self.going:
                    after = AFTER.get(event.text.partition(" ")[0], self.doing)
                    self._end(after)
            case events.TrialStarted():
                self.begun += 1
                self.going.add(event.trial)
                self.doing, self.left.told = "searching", True
            case events.TrialScored():
                self.passes += event.passes - self.reached.get(event.trial, 0)
                self.reached[event.trial] = event.passes
                self._tell_best(event)
            case events.TrialPruned():
                self.ended, self.pruned = self.ended + 1, self.pruned + 1
            case events.TrialFailed():
                self.ended += 1
                self._say(event, event.said(), "red")
            case events.TrialFinished():
                self.ended += 1
            case events.TrialLeft():
                self._leave(event.trial, last=True)
        if isinstance(event, ENDS):
            self._leave(event.trial, last=self.begun == self.n_trials)
        self._update()

    def _leave(self, trial: int, *, last: bool) -> None:
        """A trial is in training no more; after the ``last`` ones the best is fitted."""
        self.going.discard(trial)
        if last and not self.going:
            self._end("fitting the best")

    def _end(self, doing: str) -> None:
        """The search has ended: nobody knows how long what is left will take."""
        self.doing, self.left.told = doing, False

    def _tell_best(self, event: events.TrialScored) -> None:
        if not event.score > self.best:
            return
        self.best, self.best_family = event.score, event.family
        text = f"best {event.score:.5g}, {event.family} (trial {event.trial})"
        self._say(event, text, "green")

    def _say(self, event: events.Event, text: str, style: str = "default") -> None:
        at = f"[dim]{event.elapsed:6.1f} s[/dim]"
        self.console.print(f"{at}  [{style}]{escape(text)}[/{style}]")

    def _update(self) -> None:
        share = self._share()
        best = f"best {self.best:.5g} ({self.best_family})" if self.best > -math.inf else ""
        counts = (
            f"{self.ended} trials, {self.pruned} pruned, {passes_text(self.passes)} passes"
        )
        self.bars.update(
            self.task,
            description=self.doing,
            total=None if share is None else 1.0,
            completed=share or 0.0,
            status=escape(f"{best}  {counts}".strip()),
        )

    def _share(self) -> float | None:
        """How much of the budget is spent; None without a budget."""
        shares = [self.ended / self.n_trials] if self.n_trials else []
        if self.timeout:
            shares.append((time.monotonic() - self.started) / self.timeout)
        return min(1.0, max(shares)) if shares else None


class TimeLeft(ProgressColumn):
    """Seconds until the time limit; counts down also while nothing happens.

    Those that have passed where there is no limit, or where it is ``told`` no more.
    """

    def __init__(self, timeout: float | None) -> None:
        super().__init__(Column(no_wrap=True, justify="right"))
        self.told = True
        self.ends = None if timeout is None else time.monotonic() + timeout

    def render(self, task: Task) -> Text:
        """What is left, or what has passed."""
        if self.ends is None or not self.told:
            return Text(f"{task.elapsed or 0:.0f} s")
        return Text(f"{max(0.0, self.ends - time.monotonic()):.0f} s left")
