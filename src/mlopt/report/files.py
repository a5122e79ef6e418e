"""How far predictions of files are, on stderr: a bar on a terminal, else JSON lines."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from mlopt import events
from mlopt.report.progress import Lines, Progress


class FileBar(Progress):
    """A bar of files, with rows so far, failures, and the time left.

    Parameters
    ----------
    stream : text file
        A terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self.rows = self.failed = 0
        self.bars = RichProgress(
            TextColumn("[bold]predicting"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[status]}"),
            TimeRemainingColumn(),
            console=Console(file=stream, highlight=False),
            transient=True,
        )
        self.task = self.bars.add_task("files", total=None, status="")
        self.bars.start()

    def close(self) -> None:
        """Take the bar away."""
        self.bars.stop()

    def __call__(self, event: events.Event) -> None:
        if not isinstance(event, events.FileDone):
            return
        self.rows += event.rows
        self.failed += bool(event.reason)
        failed = f", {self.failed} failed" if self.failed else ""
        self.bars.update(
            self.task,
            total=event.files,
            completed=event.done,
            status=f"{self.rows:,} rows{failed}",
        )


def files_progress(stream: TextIO) -> Progress:
    """A bar when ``stream`` is a terminal, JSON lines otherwise."""
    return FileBar(stream) if stream.isatty() else Lines(stream)
