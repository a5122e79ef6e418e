"""A job on disk: a folder that client and workers see, with one small record.

::

    STORAGE/NAME/job.json      what is to be done, how far it is, what came of it
                 log-1.jsonl   the events of the first attempt, as `mlopt sweep` writes them
                 kept/         what was submitted from Python, and what it returned
                 study.db      the trials of a search
                 output/       results, where nobody named another folder

The record is replaced whole, under a lock, so that whoever dies leaves an old one or a new
one. The scheduler knows no more than which jobs are run: it may go, and nothing is lost.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

import msgspec
from filelock import FileLock

from mlopt.caching.disk import Disk
from mlopt.detached.kinds import AnyWork
from mlopt.detached.work import Outcome
from mlopt.errors import InputError, did_you_mean, masked
from mlopt.options import state_folder
from mlopt.writing import check_writable, finish_files, write_file

RECORD, KEPT = "job.json", "kept"
_LOG = re.compile(r"log-(\d+)\.jsonl")
_AHEAD = (b'"TrialFinished"', b'"TrialPruned"', b'"FileDone"')
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

Status = Literal["waiting", "running", "done", "failed", "cancelled"]
WAITING: Final = "waiting"
RUNNING: Final = "running"
DONE: Final = "done"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
OPEN = (WAITING, RUNNING)
LOST = "lost"
"""Of a job that the record has open, and that no scheduler knows: it can be resumed."""


class Failed(msgspec.Struct, frozen=True):
    """What ended a job: the class of the error, its text, and where it was raised."""

    kind: str
    message: str
    trace: str = ""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A job.

    Parameters
    ----------
    name : str
    work : Work
    key : str
        Of the task that may run it: no other writes here.
    created : float
        Seconds since the epoch; so are ``began``, of the last attempt, and ``ended``.
    attempt : int
        How often it was begun: once, unless its worker died or somebody resumed it.
    worker : str
        Where, at the last attempt.
    outcome : Outcome, optional
    failed : Failed, optional
    """

    name: str
    work: AnyWork
    key: str
    created: float
    status: Status = WAITING
    attempt: int = 0
    worker: str = ""
    began: float | None = None
    ended: float | None = None
    outcome: Outcome | None = None
    failed: Failed | None = None


class Folder:
    """The folder of a job.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        """That of the job."""
        return self.path.name

    @property
    def output(self) -> Path:
        """Where results go unless somebody names another folder."""
        return self.path / "output"

    @property
    def study(self) -> str:
        """Where a search remembers its trials."""
        return f"sqlite:///{self.path / 'study.db'}"

    def log(self, attempt: int) -> Path:
        """The events of an attempt."""
        return self.path / f"log-{attempt}.jsonl"

    def kept(self) -> Disk:
        """Pickled values; only of this user's are they read."""
        return Disk(self.path / KEPT)

    def read(self) -> Record:
        """The record as it is now.

        Raises
        ------
        InputError
            There is none, or it is damaged or of another version.
        """
        try:
            return msgspec.json.decode((self.path / RECORD).read_bytes(), type=Record)
        except OSError as error:
            raise InputError(f"`{self.path}` must hold a job: {error.strerror}.") from None
        except msgspec.MsgspecError as error:
            raise InputError(
                f"`{self.path / RECORD}` must be the record of a job of this version of "
                f"mlopt: {error}."
            ) from None

    def write(self, record: Record) -> None:
        """Replace the record, whatever it was."""
        content = msgspec.json.format(msgspec.json.encode(record))
        write_file(self.path / RECORD, content)

    def change(self, change: Callable[[Record], Record | None]) -> Record | None:
        """Replace the record by what ``change`` makes of it, unless that is None."""
        with FileLock(self.path / ".lock"):
            finish_files(self.path)
            changed = change(self.read())
            if changed is not None:
                self.write(changed)
            return changed

    def clear(self) -> None:
        """Remove all but the record and the logs."""
        for path in self.path.iterdir():
            if path.name == RECORD or _LOG.fullmatch(path.name):
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def got_ahead(self, attempt: int) -> bool:
        """Whether something was finished in an attempt that the next need not do again."""
        log = self.log(attempt)
        return log.exists() and any(mark in log.read_bytes() for mark in _AHEAD)

    def spent(self, attempt: int) -> float:
        """Seconds of the attempts before this one."""
        return sum(_latest(self.log(before)) for before in range(1, attempt))


def make(storage: Path, record: Record) -> Folder:
    """The folder of a new job, for this user alone.

    Raises
    ------
    InputError
        There is a job of that name, or nothing can be written.
    """
    if not (isinstance(record.name, str) and _NAME.fullmatch(record.name)):
        raise InputError(
            "The name of a job must be 1 to 100 letters, digits, '.', '_' or '-', and "
            f"begin with a letter or digit; got {record.name!r}."
        )
    check_writable(storage, "storage")
    storage.mkdir(parents=True, exist_ok=True)
    folder = Folder(storage / record.name)
    try:
        folder.path.mkdir(mode=0o700)
    except FileExistsError:
        raise InputError(
            f"`{storage}` has a job {record.name!r} already: take another name."
        ) from None
    try:
        folder.write(record)
    except BaseException:
        shutil.rmtree(folder.path, ignore_errors=True)
        raise
    return folder


def folders_in(storage: Path) -> Iterator[Folder]:
    """The jobs of a storage, in no order."""
    paths = list[Path]()
    with suppress(OSError):
        paths += storage.iterdir()
    for path in paths:
        with suppress(OSError):  # that of another user
            if (path / RECORD).is_file():
                yield Folder(path)


def no_such(name: str, names: list[str]) -> InputError:
    """That no job has this name; which may be meant."""
    known = f" Jobs: {', '.join(sorted(names)[:20])}." if names else " There is no job."
    return InputError(f"No job is called {name!r}.{did_you_mean(name, names)}{known}")


def storage_of(given: Path | str | None) -> Path:
    """Where jobs are kept: what is given, else MLOPT_JOBS_STORAGE, else a folder of the
    user's."""
    found = given or os.environ.get("MLOPT_JOBS_STORAGE")
    if "://" in str(found):
        raise InputError(
            "`storage` of a job must be a folder; the address of a study's database goes "
            f"into its configuration, as `search.storage`. Got {masked(str(found))}."
        )
    return state_folder("jobs", found)


def now() -> float:
    """Seconds since the epoch."""
    return time.time()


def _latest(log: Path) -> float:
    """The time of the latest event: not all know theirs, and say 0."""
    latest = 0.0
    with suppress(OSError):
        for line in log.read_bytes().splitlines():
            with suppress(ValueError, KeyError, TypeError):  # cut off by a kill
                latest = max(latest, float(json.loads(line)["at"]))
    return latest
