"""A job on the worker that has it: begun, told of, ended, each in its record."""

from __future__ import annotations

import traceback
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mlopt import events
from mlopt.cluster.executor import contained
from mlopt.detached.records import (
    DONE,
    FAILED,
    OPEN,
    RUNNING,
    Failed,
    Folder,
    Record,
    now,
)
from mlopt.detached.work import GIVEN, STATE, Place
from mlopt.errors import ClusterError, masked
from mlopt.report.progress import Lines
from mlopt.writing import why_unwritable


def drive(where: Any, path: str, key: str) -> None:
    """Run the job in the folder ``path``, on from where an earlier attempt ended.

    Parameters
    ----------
    where : mlopt.cluster.detached.Drive
    path : str
    key : str
        Of the task that this is: a job that was cancelled, or given to another one, is left
        alone.
    """
    folder = Folder(Path(path))

    def begun(record: Record) -> Record | None:
        if record.key != key or record.status not in OPEN:
            return None
        return replace(
            record, status=RUNNING, attempt=record.attempt + 1, worker=where.worker,
            began=now(),
        )  # fmt: skip

    record = folder.change(begun)
    if record is None:
        return
    with folder.log(record.attempt).open("w", encoding="utf-8") as stream:
        tell = Lines(stream, quiet=())
        if record.attempt > 1:
            if folder.got_ahead(record.attempt - 1):
                where.forgive()
            tell(events.Message(0.0, f"attempt {record.attempt}, on {where.worker}"))
        ended = _ended(where, record, folder, tell)
    if ended is None:
        return
    ours = folder.change(lambda now: ended if _same(now, record) else None)
    if ours is not None and ours.status == DONE:
        for what in (GIVEN, STATE):  # of which nobody needs to go on
            folder.kept().remove(what)


def check(path: str, key: str, wanted: str) -> str:
    """On a worker: why it could not run the job, or nothing."""
    folder = Folder(Path(path))
    if version("mlopt") != wanted:
        return f"it has mlopt {version('mlopt')}, and not {wanted}"
    try:
        record = folder.read()
        if record.key != key:
            return f"`{path}` is another folder there"
        if reason := why_unwritable(folder.path):
            return f"`{path}` cannot be written to: {reason}"
        record.work.check()
    except Exception as error:
        return masked(str(error))
    return ""


def _ended(where: Any, record: Record, folder: Folder, tell: events.Observer) -> Any:
    """The record of the job when it has ended; None where it is somebody else's by then."""
    place = Place(
        where.client, where.threads, folder.output, folder.study, folder.kept(),
        folder.spent(record.attempt), tell,
    )  # fmt: skip
    try:
        with contained():
            outcome = record.work.run(place)
    except Exception as error:
        lost = isinstance(error, ClusterError) and where.client.status != "running"
        if lost or not where.wanted:
            return None  # another attempt goes on
        said = masked(str(error) or type(error).__name__)
        with suppress(OSError):  # a full disk, which may be the reason
            tell(events.Message(0.0, f"failed: {said}"))
        trace = masked(traceback.format_exc())
        failed = Failed(type(error).__name__, said, trace)
        return replace(record, status=FAILED, ended=now(), failed=failed)
    return replace(record, status=DONE, ended=now(), outcome=outcome)


def _same(now: Record, record: Record) -> bool:
    """Whether the job is still this attempt's."""
    return (now.key, now.attempt, now.status) == (record.key, record.attempt, RUNNING)
