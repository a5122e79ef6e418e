"""What a job does, told as if it were done here."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any

from mlopt.detached.kinds import Predict
from mlopt.detached.records import OPEN, Folder
from mlopt.report.files import files_progress
from mlopt.report.progress import Progress, event_of, progress

_LINES, _STATUS = 0.1, 1.0
"""Seconds between two looks at the events, and at the scheduler."""


def follow(job: Any, client: Any, stream: Any = None) -> str:
    """See `Job.follow`."""
    from mlopt.detached.job import current

    stream = stream or sys.stderr
    folder: Folder = job.folder
    attempt, asked, status = 0, 0.0, ""
    while True:
        if time.monotonic() - asked >= _STATUS:
            status, asked = current(folder, client), time.monotonic()
        last = folder.read().attempt
        if last > attempt and folder.log(last).exists():
            attempt = last
            status = _attempt(folder, attempt, client, stream)
            asked = time.monotonic()
        elif status not in OPEN:
            return status
        else:
            time.sleep(_LINES)


def _attempt(folder: Folder, attempt: int, client: Any, stream: Any) -> str:
    """Tell of one attempt until it has ended; the status of the job then."""
    from mlopt.detached.job import current

    asked, status = time.monotonic(), OPEN[1]
    with _progress(folder, stream) as tell, folder.log(attempt).open() as log:
        while True:
            ended = status not in OPEN or folder.read().attempt > attempt
            for line in _whole(log):
                with suppress(ValueError, TypeError, AttributeError):  # cut off by a kill
                    tell(event_of(line))
            if ended:
                return status
            time.sleep(_LINES)
            if time.monotonic() - asked >= _STATUS:
                status, asked = current(folder, client), time.monotonic()


def _progress(folder: Folder, stream: Any) -> Progress:
    work = folder.read().work
    return (
        files_progress(stream)
        if isinstance(work, Predict)
        else progress(stream, *work.limits)
    )


def _whole(log: IO[str]) -> Iterator[str]:
    """The lines that are complete."""
    while True:
        place = log.tell()
        line = log.readline()
        if not line.endswith("\n"):
            log.seek(place)
            return
        yield line
