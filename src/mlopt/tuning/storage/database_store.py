"""The store in a database: one writer a study, one transaction a write, in a thread."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import sqlalchemy
from filelock import FileLock, Timeout
from optuna.exceptions import OptunaError
from optuna.storages import RDBStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from mlopt.errors import StudyError
from mlopt.tuning.samplers.proposer import quiet
from mlopt.tuning.storage import database
from mlopt.tuning.storage.records import Recorded, recorded
from mlopt.tuning.storage.store import Store

FINGERPRINT = "mlopt:fingerprint"
# Shown at most, when a search does not fit its study.
DIFFERENCES = 5

log = logging.getLogger("mlopt")


class DatabaseStore(Store):
    """An Optuna study in a database; `open_database` makes one."""

    def __init__(
        self, url: sqlalchemy.URL, storage: RDBStorage, study_id: int, held: FileLock
    ) -> None:
        self._shown = database.shown(url)
        self._storage = storage
        self._study_id = study_id
        self._held = held
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="mlopt-storage")
        self._writing: Future[None] | None = None
        database.release(storage.engine, study_id)  # of a process that was killed
        self._found = [recorded(t) for t in storage.get_all_trials(study_id)]

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
                f"The study at {self._shown} must be writable, and the last rung could not "
                f"be written: {_cause(error)}. Make room or give access, then run it again."
            ) from error

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._writer.shutdown()
            self._storage.engine.dispose()
            self._held.release()


def open_database(
    storage: str | Path, study_name: str, fingerprint: dict[str, str], wait: float
) -> DatabaseStore:
    """`mlopt.tuning.storage.open_store`, for a storage that is not None."""
    url = database.address(storage)
    held = database.lock(url, study_name)
    with _explained(url):
        _take(held, study_name, wait)
        try:
            with database.lock(url), quiet():
                connection = database.connect(url)
                study_id = _study(connection, study_name, fingerprint)
            return DatabaseStore(url, connection, study_id, held)
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
                f"at it for {wait:g} seconds. Wait for it, or use another `study_name`."
            ) from None


def _study(storage: RDBStorage, name: str, fingerprint: dict[str, str]) -> int:
    """The id of the study, which is made if it is not there."""
    known = {study.study_name: study for study in storage.get_all_studies()}
    if name not in known:
        made: int = storage.create_new_study([StudyDirection.MAXIMIZE], name)
        storage.set_study_user_attr(made, FINGERPRINT, fingerprint)
        return made
    study = known[name]
    if FINGERPRINT not in study.user_attrs:
        raise StudyError(
            f"Study {name!r} must have been made by mlopt, and it was not. "
            "Use another `study_name`."
        )
    differences = _differences(study.user_attrs[FINGERPRINT], fingerprint)
    if differences:
        raise StudyError(
            f"Study {name!r} must be of the same search to go on, and this differs: "
            f"{'; '.join(differences)}. Undo the change, or use another `study_name`."
        )
    found: int = storage.get_study_id_from_name(name)
    return found


def _differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    names = [n for n in {**before, **now} if before.get(n) != now.get(n)]
    told = [
        f"`{n}` was {before.get(n, 'absent')}, is now {now.get(n, 'absent')}"
        for n in names[:DIFFERENCES]
    ]
    more = len(names) - len(told)
    return [*told, f"and {more} more"] if more > 0 else told


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
            f"{_cause(error)}. Check the address and the access to it."
        ) from error
    except RuntimeError as error:  # Optuna: a schema of another version
        raise StudyError(
            f"The study at {database.shown(url)} must have been made by a version of "
            f"Optuna that fits the one installed: {_cause(error)}"
        ) from error


def _cause(error: BaseException) -> str:
    """The database's own words; SQLAlchemy wraps them in statements and links."""
    origin = error.orig if isinstance(error, sqlalchemy.exc.DBAPIError) else error
    return str(origin or error).strip().split("\n")[0].rstrip(".")
