"""The store in a database: one writer a study, one transaction a write, in a thread."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import sqlalchemy
from filelock import FileLock, Timeout
from optuna.exceptions import OptunaError
from optuna.storages import RDBStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from mlopt.errors import StudyError
from mlopt.tuning.samplers.proposer import quiet
from mlopt.tuning.storage import database
from mlopt.tuning.storage.fingerprint import Fingerprint, differences, unknown
from mlopt.tuning.storage.records import Recorded, recorded
from mlopt.tuning.storage.store import Store
from mlopt.writing import why_unwritable

FINGERPRINT = "mlopt:fingerprint"

log = logging.getLogger("mlopt")


class DatabaseStore(Store):
    """An Optuna study in a database; `open_database` makes one."""

    def __init__(
        self,
        url: sqlalchemy.URL,
        storage: RDBStorage,
        study_id: int,
        held: FileLock,
        told: str = "",
    ) -> None:
        self._url = url
        self._storage = storage
        self._study_id = study_id
        self._held = held
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="mlopt-storage")
        self._writing: Future[None] | None = None
        database.release(storage.engine, study_id)  # of a process that was killed
        self._found = [recorded(t) for t in storage.get_all_trials(study_id)]
        seen = sum(bool(trial.rungs) for trial in self._found)
        self.told = f"going on from {seen} trials of an earlier run" if seen else told

    def recorded(self) -> list[Recorded]:
        return sorted(self._found, key=lambda trial: trial.number)

    def write(self, trials: Iterable[FrozenTrial]) -> None:
        self.flush()
        batch = list(trials)
        if batch:
            self._writing = self._writer.submit(
                database.save, self._storage.engine, self._study_id, batch
            )

    def flush(self) -> None:
        writing, self._writing = self._writing, None
        if writing is None:
            return
        try:
            writing.result()
        except sqlalchemy.exc.SQLAlchemyError as error:
            raise StudyError(
                f"The study at {database.shown(self._url)} must be writable, and the last "
                f"rung could not be written: {_cause(error)}. {_remedy(self._url)}"
            ) from error

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._writer.shutdown()
            self._storage.engine.dispose()
            self._held.release()


def open_database(
    storage: Any, study_name: str, fingerprint: Fingerprint, wait: float
) -> DatabaseStore:
    """`mlopt.tuning.storage.open_store`, for a storage that is not None."""
    url = database.address(storage)
    held = database.lock(url, study_name)
    with _explained(url):
        _take(held, study_name, wait)
        try:
            with database.lock(url), quiet():
                connection = database.connect(url)
                told = _sibling(connection, study_name, fingerprint)
                study_id = _study(connection, study_name, fingerprint)
            return DatabaseStore(url, connection, study_id, held, told)
        except BaseException:
            held.release()
            raise


def _take(held: FileLock, study_name: str, wait: float) -> None:
    try:
        held.acquire(timeout=0)
    except Timeout:
        log.warning(
            "Study %r is being searched by another process; waiting for it to end.",
            study_name,
        )
        try:
            held.acquire(timeout=wait)
        except Timeout:
            raise StudyError(
                f"Study {study_name!r} must not be in use, and another process has been "
                f"at it for {wait:.3g} seconds. Wait for it, or use another `study_name`."
            ) from None


def _sibling(storage: RDBStorage, name: str, fingerprint: Fingerprint) -> str:
    """How a new study differs from the last one whose name begins as its own, in words."""
    family, dash, _ = name.rpartition("-")
    known = {study.study_name: study for study in storage.get_all_studies()}
    others = [
        study.user_attrs[FINGERPRINT]
        for other, study in known.items()
        if dash and other.startswith(f"{family}-") and FINGERPRINT in study.user_attrs
    ]
    if name in known or not others:
        return ""
    differ = differences(others[-1], fingerprint, "the last one")
    return f"a new study: {differ or 'other data or settings than of the last one'}"


def _study(storage: RDBStorage, name: str, fingerprint: Fingerprint) -> int:
    """The id of the study, which is made if it is not there."""
    known = {study.study_name: study for study in storage.get_all_studies()}
    if name not in known:
        made: int = storage.create_new_study([StudyDirection.MAXIMIZE], name)
        storage.set_study_user_attr(made, FINGERPRINT, dict(fingerprint))
        return made
    study = known[name]
    if FINGERPRINT not in study.user_attrs:
        raise StudyError(
            f"Study {name!r} must have been made by mlopt, and it was not. "
            "Use another `study_name`."
        )
    before = study.user_attrs[FINGERPRINT]
    if "mlopt" in fingerprint and "mlopt" not in before:
        raise StudyError(
            f"Study {name!r} was made by an earlier mlopt, which did not keep what it was "
            "of: it cannot go on; give another `study_name`."
        )
    if differ := differences(before, fingerprint):
        raise StudyError(
            f"Study {name!r} is of another search. {differ}; give another `study_name`."
        )
    if untold := unknown(before, fingerprint):
        raise StudyError(
            f"Study {name!r} cannot go on: whether `{untold[0]}` is the same cannot be "
            "told from its content; give another `study_name`."
        )
    found: int = storage.get_study_id_from_name(name)
    return found


@contextlib.contextmanager
def _explained(url: sqlalchemy.URL) -> Iterator[None]:
    """Whatever a database fails with, as one error that names it without its password."""
    try:
        yield
    except StudyError:
        raise
    except (sqlalchemy.exc.SQLAlchemyError, OptunaError, ImportError, OSError) as error:
        raise StudyError(
            f"The study at {database.shown(url)} must be a database that can be opened: "
            f"{_cause(error)}. {_remedy(url)}"
        ) from error
    except RuntimeError as error:  # Optuna: a schema of another version
        raise StudyError(
            f"The study at {database.shown(url)} must have been made by a version of "
            f"Optuna that fits the one installed: {_cause(error)}"
        ) from error


def _remedy(url: sqlalchemy.URL) -> str:
    """What to do: SQLite does not tell a full disk from one that may only be read."""
    folder = Path(url.database or "").absolute().parent
    reason = why_unwritable(folder) if database.is_sqlite(url) else ""
    if not reason:
        return "Check the address and the access to it."
    return f"No file can be written to {folder}: {reason}."


def _cause(error: BaseException) -> str:
    """The database's own words; SQLAlchemy wraps them in statements and links."""
    origin = error.orig if isinstance(error, sqlalchemy.exc.DBAPIError) else error
    return str(origin or error).strip().split("\n")[0].rstrip(".")
