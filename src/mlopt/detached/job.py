"""What a client holds of a job, and how it gets there: `submit`, `jobs`, `Job`."""

from __future__ import annotations

import importlib.metadata
import shutil
import time
import uuid
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mlopt import errors
from mlopt.cluster import detached, pack, unpack
from mlopt.cluster.at_scheduler import DRIVERS
from mlopt.cluster.connect import reached
from mlopt.detached import driver
from mlopt.detached.kinds import Call, Query, Sweep, Train
from mlopt.detached.records import (
    CANCELLED,
    DONE,
    FAILED,
    LOST,
    OPEN,
    WAITING,
    Folder,
    Record,
    folders_in,
    make,
    no_such,
    now,
    storage_of,
)
from mlopt.detached.work import (
    GIVEN,
    RETURNED,
    Work,
    check_storage,
    has_its_data,
    lettered,
)
from mlopt.errors import ClusterError, InputError, MloptError
from mlopt.writing import copied

LOOK = 0.5
"""Seconds between two looks at a job that somebody waits for."""


class JobError(MloptError, RuntimeError):
    """A job ended with an error that is none of mlopt's; its text has it."""


@dataclass(frozen=True)
class Job:
    """A job that was submitted, from whichever process.

    Parameters
    ----------
    folder : Folder
    scheduler : str or distributed.Client
        Of the pool that it runs on.

    Examples
    --------
    >>> job = mlopt.submit(search, "people.csv", "buys")    # doctest: +SKIP
    >>> job.name, job.status                                # doctest: +SKIP
    ('ModelSearchCV-3f9a12', 'running')
    >>> job.result().best_params_                           # doctest: +SKIP
    """

    folder: Folder
    scheduler: Any

    @property
    def name(self) -> str:
        """By which `jobs`, and the command line, know it."""
        return self.folder.name

    @property
    def record(self) -> Record:
        """What its folder says of it."""
        return self.folder.read()

    @property
    def status(self) -> str:
        """waiting, running, done, failed, cancelled; or lost, where its scheduler knows
        nothing of it: `resume` then."""
        record = self.record
        if record.status not in OPEN:
            return record.status
        with reached(self.scheduler) as client:
            return current(self.folder, client)

    def follow(self, stream: Any = None) -> str:
        """Tell what happens, as the local command does, until it ends; its last status.

        Parameters
        ----------
        stream : text file, optional
            Default: stderr.
        """
        from mlopt.detached.following import follow

        with reached(self.scheduler) as client:
            return follow(self, client, stream)

    def result(self, timeout: float | None = None) -> Any:
        """Wait for what came of it.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait.

        Returns
        -------
        fitted estimator, value of a query, or dict
            What the local call returns: of `submit(search, X, y)` the fitted search, of a
            query its last value; of a sweep, a fit and predictions of files numbers as of
            `--json`, with their files in ``job.output``.

        Raises
        ------
        TimeoutError
            It has not ended in time; it goes on.
        ClusterError
            It is lost: `resume`.
        InputError
            It was cancelled.
        Exception
            What the local call would raise, by mlopt's classes.
        """
        status = self._wait(timeout)
        record = self.record
        if status == DONE and isinstance(record.work, Call | Query | Train):
            return self._returned()
        if status == DONE:
            assert record.outcome is not None
            return record.outcome.result
        raise error_of(record, status)

    @property
    def output(self) -> Path | None:
        """The file or folder with its results, once it is done."""
        outcome = self.record.outcome
        return None if outcome is None or outcome.output is None else Path(outcome.output)

    def cancel(self) -> None:
        """End it and leave nothing behind: its calls, its trials and what it kept are gone;
        its record says so. Files that were complete in a folder of the user's stay.

        Raises
        ------
        InputError
            It has ended.
        ClusterError
            A worker is still at it, in compiled code: cancel it again later, for the rest.
        """

        def cancelled(record: Record) -> Record:
            # Again, too: a worker may have been at it for longer than was waited for.
            if record.status not in (*OPEN, CANCELLED):
                raise InputError(f"{self.name} is {record.status}: it cannot be cancelled.")
            return replace(record, status=CANCELLED, ended=record.ended or now())

        with reached(self.scheduler) as client:
            record = self.folder.change(cancelled)
            assert record is not None
            detached.cancel(client, record.key)
            detached.forget(client, str(self.folder.path))
        self.folder.clear()

    def resume(self) -> None:
        """Have it go on where it was, as a job that is lost or failed can.

        Raises
        ------
        InputError
            It is done, at work, or cancelled.
        """
        with reached(self.scheduler) as client:
            status = self.status
            if status not in (LOST, FAILED):
                raise InputError(
                    f"{self.name} is {status}: only a job that is lost or failed can be "
                    "resumed."
                )
            before, key = self.record, _new_key(self.name)
            self.folder.change(
                lambda record: replace(
                    record, status=WAITING, key=key, failed=None, ended=None
                )
            )
            try:
                _check(client, self.folder, key)
                _send(client, self.folder, key)
            except BaseException:
                self.folder.change(lambda now: before if now.key == key else None)
                raise

    def fetch(self, output: Path | str) -> Path:
        """Copy its results to a file or folder; nothing that is there is replaced.

        Raises
        ------
        InputError
            There are none, or the place is taken.
        """
        found = self.output
        if found is None:
            raise InputError(
                f"{self.name} has no files to fetch: it is {self.record.status}, or its "
                "result is a value (`Job.result`)."
            )
        return copied(found, Path(output).expanduser())

    def __repr__(self) -> str:
        return f"Job({self.name!r}, {self.record.status})"

    def _returned(self) -> Any:
        try:
            return unpack(self.folder.kept().read(RETURNED))
        except KeyError:
            raise InputError(
                f"The result of {self.name} is gone, or damaged, in `{self.folder.path}`: "
                "submit it again."
            ) from None

    def _wait(self, timeout: float | None) -> str:
        end = None if timeout is None else time.monotonic() + timeout
        status: str = self.record.status
        if status not in OPEN:
            return status
        with reached(self.scheduler) as client:
            while (status := current(self.folder, client)) in OPEN:
                if end is not None and time.monotonic() > end:
                    raise TimeoutError(f"{self.name} is {status} after {timeout:g} s.")
                time.sleep(LOOK)
        return status


def submit(
    what: Any,
    X: Any = None,
    y: Any = None,
    *,
    scheduler: Any = None,
    storage: str | Path | None = None,
    name: str | None = None,
    **fit_params: Any,
) -> Job:
    """Have something done by the workers of a Dask scheduler, whatever becomes of this
    process.

    Parameters
    ----------
    what : estimator, str, server.Job, callable or Work
        A search, a pipeline or another estimator to fit; a query, ``"RUN ... ON ..."``; a
        `mlopt.server.Job`, or a function that makes one where the data are, on a worker.
    X : dask collection, path or array, optional
        What to fit it to. Of a path, or of Dask's collections, this process reads nothing.
    y : dask collection or array, or str, optional
        Where X is a path: the name of the column to predict.
    scheduler : str or distributed.Client, optional
        Address. [default: the active client's]
    storage : path, optional
        A folder that this process and all workers share, for the job's record and results.
        [default: MLOPT_JOBS_STORAGE, or one in the user's home]
    name : str, optional
        [default: one that says what it is]
    **fit_params
        For ``fit``.

    Returns
    -------
    Job
        At once: it begins when its turn comes.

    Raises
    ------
    InputError
        The workers cannot read the data or the storage, or what is given cannot be sent.
    ConfigError
        No scheduler answers, or the line to it is not safe.

    Examples
    --------
    >>> job = mlopt.submit(search, X, y, scheduler="tcp://127.0.0.1:8786")  # doctest: +SKIP
    >>> job.result().best_score_                                            # doctest: +SKIP
    """
    work, given = what, None
    if isinstance(what, str):
        from mlopt.query.places import anywhere

        if X is not None or y is not None or fit_params:
            raise has_its_data("A query")
        work = Query(text=anywhere(what))
    elif not isinstance(what, Work):
        from mlopt.detached.calls import work_given

        work, given = work_given(what, X, y, fit_params)
    elif X is not None or y is not None or fit_params:
        raise has_its_data(type(what).__name__)
    if isinstance(work, Sweep):
        check_storage(work.config.search.storage)
    name = name or f"{lettered(work.title) or 'job'}-{uuid.uuid4().hex[:6]}"
    key = _new_key(name)
    with reached(scheduler) as client:
        folder = make(
            storage_of(storage), Record(name=name, work=work, key=key, created=now())
        )
        try:
            if given is not None:
                folder.kept().write(GIVEN, pack(given))
            _check(client, folder, key)
            _send(client, folder, key)
        except BaseException:
            shutil.rmtree(folder.path, ignore_errors=True)
            raise
    return Job(folder, scheduler)


def jobs(scheduler: Any = None, storage: str | Path | None = None) -> list[Job]:
    """The jobs of a storage, first come first.

    Parameters
    ----------
    scheduler : str or distributed.Client, optional
        [default: the active client's]
    storage : path, optional
        As of `submit`. [default: the default one, and all that this scheduler was told of]
    """
    found = list(folders_in(storage_of(storage)))
    with reached(scheduler) if storage is None else nullcontext() as client:
        known = [] if client is None else detached.remembered(client)
        found += [Folder(Path(path)) for path in known]
    each = {folder.path.resolve(): folder for folder in reversed(found)}.values()
    created = [(_created(folder), folder.name, Job(folder, scheduler)) for folder in each]
    there = sorted((one for one in created if one[0] is not None), key=lambda one: one[:2])
    return [job for _, _, job in there]


def job_of(name: str, scheduler: Any = None, storage: str | Path | None = None) -> Job:
    """The job of a name.

    Raises
    ------
    InputError
        There is none, or there are several.
    """
    every = jobs(scheduler, storage)
    found = [job for job in every if job.name == name]
    if not found:
        raise no_such(name, [job.name for job in every])
    if len(found) > 1:
        where = ", ".join(f"`{job.folder.path.parent}`" for job in found)
        raise InputError(
            f"{len(found)} jobs are called {name!r}, in {where}: name the `storage` of one."
        )
    return found[0]


def current(folder: Folder, client: Any) -> str:
    """The status of a job, as `Job.status`."""
    record = folder.read()
    if record.status not in OPEN:
        return record.status
    if record.key in detached.detached(client):
        return record.status
    after = folder.read()  # it may have ended in between
    return LOST if after.status in OPEN and after.key == record.key else after.status


def error_of(record: Record, status: str) -> Exception:
    """What `Job.result` raises of a job that is not done."""
    if status == LOST:
        return ClusterError(
            f"{record.name} is lost: its scheduler knows nothing of it. Resume it: `mlopt "
            f"jobs resume {record.name}`, or `Job.resume()`."
        )
    if record.failed is None:
        return InputError(f"{record.name} is {status}: there is no result.")
    known = getattr(errors, record.failed.kind, None)
    message = record.failed.message
    if isinstance(known, type) and issubclass(known, MloptError):
        with suppress(TypeError):  # of other arguments than a text
            return known(message)
        return InputError(message)
    error = JobError(f"{record.failed.kind}: {message}")
    error.add_note(record.failed.trace)
    return error


def _created(folder: Folder) -> float | None:
    with suppress(InputError):
        return folder.read().created
    return None


def _check(client: Any, folder: Folder, key: str) -> None:
    """Refuse a job that a worker could not run: all of them may be asked to."""
    version = importlib.metadata.version("mlopt")
    try:
        found: Mapping[str, str] = detached.ask_workers(
            client, driver.check, str(folder.path), key, version
        )
    except Exception as error:
        raise InputError(
            f"All workers must have mlopt {version}, and the scheduler too; asked for it, "
            f"they said: {error!r}."
        ) from error
    refused = {worker: why for worker, why in found.items() if why}
    if refused:
        worker, why = next(iter(refused.items()))
        raise InputError(
            f"All workers must be able to run the job, and {len(refused)} of {len(found)} "
            f"cannot: {worker} says: {why}"
        )


def _send(client: Any, folder: Folder, key: str) -> None:
    """Have a worker drive it."""
    detached.remember(client, str(folder.path))
    detached.detach(client, key, driver.drive, str(folder.path), key)


def _new_key(name: str) -> str:
    """Of a task that drives the job of this name."""
    return f"{DRIVERS}{name}-{uuid.uuid4().hex[:8]}"
